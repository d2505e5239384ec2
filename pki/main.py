"""``consilium pki``: the certificate authority of a council, on the command line.

Exit codes: 0 done, or every step of ``verify`` held; 1 a step of ``verify`` failed, or a part of what was
asked could not be done; 2 it could not be done.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from consilium.errors import UserError
from consilium.identity import MAX_LIFETIME_DAYS
from pki import examples
from pki.terms import (
    CA_DAYS,
    CRL_DAYS,
    ISSUER_OF,
    LEAF_DAYS,
    MAX_CA_DAYS,
    MAX_CRL_DAYS,
    PRESET,
    TRUST_DOMAIN,
    Reason,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_Parser: TypeAlias = argparse.ArgumentParser


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium pki``."""
    top = argparse.ArgumentParser(
        prog="consilium pki",
        description="The certificate authority of a council. It needs no network and runs no service.",
        epilog=examples.ALL,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (what, text, options) in _COMMANDS.items():
        command = commands.add_parser(
            name,
            help=what,
            description=f"{what[0].upper()}{what[1:]}.",
            epilog=text,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        options(command)
    return top


def _init(command: _Parser) -> None:
    command.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority and its holders")
    command.add_argument(
        "--trust-domain",
        default=TRUST_DOMAIN,
        metavar="DOMAIN",
        help="the first part of every identity, spiffe://DOMAIN/... (%(default)s)",
    )
    _days(command, CA_DAYS, MAX_CA_DAYS)
    _json(command)


def _issue(command: _Parser) -> None:
    _dir(command)
    command.add_argument("name", metavar="NAME", help="the holder; also the name of its folder in DIR")
    _profile(command)
    command.add_argument(
        "--dns", action="append", default=[], metavar="HOST", help="arbiter: a host name of it"
    )
    command.add_argument(
        "--ip", action="append", default=[], metavar="ADDRESS", help="arbiter: an address of it"
    )
    _days(command, LEAF_DAYS, MAX_LIFETIME_DAYS)
    command.add_argument(
        "--replace", action="store_true", help="put a new key in the place of an existing one"
    )
    _json(command)


def _renew(command: _Parser) -> None:
    _dir(command)
    who = command.add_mutually_exclusive_group(required=True)
    who.add_argument("name", nargs="?", metavar="NAME", help="the holder")
    who.add_argument("--all", action="store_true", help="every holder, and the revocation lists")
    command.add_argument(
        "--if-within",
        type=int,
        metavar="DAYS",
        help="only what ends within so many days, or cannot be used any more",
    )
    command.add_argument(
        "--days", type=int, metavar="N", help=f"another lifetime, at most {MAX_LIFETIME_DAYS}"
    )
    command.add_argument("--revoke", action="store_true", help="revoke what is replaced, as superseded")
    _json(command)


def _revoke(command: _Parser) -> None:
    _dir(command)
    command.add_argument(
        "key", metavar="NAME_OR_SERIAL_OR_FINGERPRINT", help="a holder, or one certificate (as `list` shows)"
    )
    command.add_argument(
        "--reason",
        choices=get_args(Reason),
        default="unspecified",
        help="why; it stands in the list (%(default)s)",
    )
    _json(command)


def _crl(command: _Parser) -> None:
    _dir(command)
    text = f"how long they are good for, at most {MAX_CRL_DAYS} (as the last were; {CRL_DAYS} at first)"
    command.add_argument("--days", type=int, metavar="N", help=text)
    _json(command)


def _list(command: _Parser) -> None:
    _dir(command)
    _json(command)


def _bundle(command: _Parser) -> None:
    _dir(command)
    command.add_argument("name", metavar="NAME", help="the holder")
    command.add_argument("--out", type=Path, required=True, metavar="FILE", help="the bundle; must not exist")
    command.add_argument(
        "--format", choices=("p12", "pem"), default="p12", help="PKCS#12 or one PEM file (%(default)s)"
    )
    secret = command.add_mutually_exclusive_group()
    secret.add_argument(
        "--passphrase-file", type=Path, metavar="FILE", help="protect it with the first line of this file"
    )
    secret.add_argument("--no-passphrase", action="store_true", help="leave the key as it is")
    _json(command)


def _invite(command: _Parser) -> None:
    _dir(command)
    command.add_argument("holder", metavar="NAME", help="the holder; also the name of its folder in DIR")
    _profile(command)
    command.add_argument(
        "--name", required=True, metavar="LOGICAL", help="the name at the table (a-z, 0-9 and _)"
    )
    command.add_argument("--host", help="where the guest reaches the Arbiter (a host of its certificate)")
    command.add_argument(
        "--preset",
        default=PRESET,
        metavar="NAME",
        help="the guest's client, for the line to run (%(default)s)",
    )
    command.add_argument("--role", metavar="NAME", help="the guest's role, for the line to run")
    command.add_argument("--out", type=Path, metavar="FILE", help="the bundle; must not exist (NAME.p12)")
    command.add_argument(
        "--passphrase-file", type=Path, metavar="FILE", help="protect it with the first line of this file"
    )
    _days(command, LEAF_DAYS, MAX_LIFETIME_DAYS)
    command.add_argument(
        "--replace", action="store_true", help="invite a holder again, with a new key and certificate"
    )
    _json(command)


def _show(command: _Parser) -> None:
    command.add_argument("path", type=Path, metavar="PATH", help="a certificate, or a folder with cert.pem")
    _json(command)


def _verify(command: _Parser) -> None:
    command.add_argument(
        "path", type=Path, metavar="FOLDER_OR_CERT", help="a holder's folder, or a certificate"
    )
    command.add_argument("--ca", type=Path, metavar="PATH", help="whom to trust (the ca.pem beside it)")
    command.add_argument("--crl", type=Path, metavar="PATH", help="the revocation lists (crl.pem near it)")
    _json(command)


_COMMANDS: dict[str, tuple[str, str, Callable[[_Parser], None]]] = {
    "init": ("make an authority", examples.INIT, _init),
    "issue": ("make a key and a certificate for one holder", examples.ISSUE, _issue),
    "invite": ("make one file and one line for a guest on another machine", examples.INVITE, _invite),
    "renew": ("give a holder a new key and certificate", examples.RENEW, _renew),
    "revoke": ("revoke what a holder has, and make the revocation lists anew", examples.REVOKE, _revoke),
    "crl": ("make the revocation lists anew", examples.CRL, _crl),
    "list": ("say what was issued and revoked", examples.LIST, _list),
    "bundle": ("put one holder's files into one file", examples.BUNDLE, _bundle),
    "show": ("say what a certificate says", examples.SHOW, _show),
    "verify": ("check a certificate step by step", examples.VERIFY, _verify),
}
"""Command -> (what it does, examples, its options)."""


def _dir(command: _Parser) -> None:
    command.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority")


def _profile(command: _Parser) -> None:
    known = ", ".join(ISSUER_OF)
    command.add_argument(
        "--profile",
        required=True,
        metavar="PROFILE",
        help=f"what it may be used for: {known}, or a profile in --profiles",
    )
    command.add_argument(
        "--profiles", type=Path, metavar="FILE", help="the Arbiter's own profiles, to check against"
    )


def _days(command: _Parser, default: int, most: int) -> None:
    text = f"lifetime in days, at most {most} (%(default)s)"
    command.add_argument("--days", type=int, default=default, metavar="N", help=text)


def _json(command: _Parser) -> None:
    command.add_argument("--json", action="store_true", help="write one JSON object instead of text")


def main(argv: list[str]) -> int:
    """Run one command; returns the exit code. A mistake in ``argv`` ends in `SystemExit`, as in argparse."""
    args = parser().parse_args(argv)
    from pki import commands  # noqa: PLC0415 - loads `cryptography`, which --help can do without

    try:
        # The shell of this room: here the clock enters.
        return commands.run(args, now=time.time())  # noqa: TID251
    except UserError as refusal:
        sys.stderr.write(f"consilium pki: {refusal}\n")
        return 2
