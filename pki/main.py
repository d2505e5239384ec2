"""``consilium pki``: the certificate authority of a council, on the command line.

Exit codes: 0 done, or every step of ``verify`` held; 1 a step of ``verify`` failed; 2 it could not be done.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, get_args

from consilium.errors import UserError
from consilium.identity import MAX_LIFETIME_DAYS
from pki.terms import CA_DAYS, LEAF_DAYS, MAX_CA_DAYS, TRUST_DOMAIN, Profile

if TYPE_CHECKING:
    from collections.abc import Callable

_Parser: TypeAlias = argparse.ArgumentParser

_EXAMPLES = """\
examples:
  consilium pki init certs
  consilium pki issue certs hub --profile arbiter --dns localhost --ip 127.0.0.1
  consilium pki issue certs claude_sonnet --profile participant
  consilium pki issue certs anna --profile operator --days 7
  consilium pki bundle certs anna --out anna.p12
  consilium pki show certs/claude_sonnet
  consilium pki verify certs/claude_sonnet
  consilium pki verify received.pem --ca certs/ca/cert.pem --json
"""

_INIT = """\
example:
  consilium pki init certs --trust-domain council.example --days 365

The authority's key stays in DIR/ca/key.pem, readable by its owner only. Keep it away from the seats.
"""

_ISSUE = """\
examples:
  consilium pki issue certs hub --profile arbiter --dns arbiter --dns localhost --ip 127.0.0.1
  consilium pki issue certs claude_sonnet --profile participant
  consilium pki issue certs claude_sonnet --profile participant --replace     (renew it)

DIR/NAME then holds cert.pem, key.pem and ca.pem: all that this one holder needs.
"""

_BUNDLE = """\
examples:
  consilium pki bundle certs anna --out anna.p12                      (asks for a passphrase, twice)
  consilium pki bundle certs anna --out anna.p12 --passphrase-file secret.txt
  consilium pki bundle certs anna --out anna.pem --format pem --no-passphrase

FILE then holds the certificate, the key and the CA of this one holder, and is readable by its owner only.
Without an option the passphrase is taken from CONSILIUM_BUNDLE_PASSPHRASE, or asked for. Whoever gets hold of
FILE can try many passphrases a second: make it a long one.
"""

_SHOW = """\
example:
  consilium pki show certs/claude_sonnet
"""

_VERIFY = """\
examples:
  consilium pki verify certs/claude_sonnet
  consilium pki verify received.pem --ca certs/ca/cert.pem

Exit code 0 when every step held, 1 when one failed, 2 when there was nothing to verify.
"""


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium pki``."""
    top = argparse.ArgumentParser(
        prog="consilium pki",
        description="The certificate authority of a council. It needs no network and runs no service.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _init(_command(commands.add_parser, "init", "make an authority", _INIT))
    _issue(_command(commands.add_parser, "issue", "make a key and a certificate for one holder", _ISSUE))
    _bundle(_command(commands.add_parser, "bundle", "put one holder's files into one file", _BUNDLE))
    _show(_command(commands.add_parser, "show", "say what a certificate says", _SHOW))
    _verify(_command(commands.add_parser, "verify", "check a certificate step by step", _VERIFY))
    return top


def _command(add: Callable[..., argparse.ArgumentParser], name: str, what: str, examples: str) -> _Parser:
    return add(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _init(command: _Parser) -> None:
    command.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority and its holders")
    command.add_argument(
        "--trust-domain",
        default=TRUST_DOMAIN,
        metavar="DOMAIN",
        help="the first part of every identity, spiffe://DOMAIN/... (%(default)s)",
    )
    _days(command, CA_DAYS, MAX_CA_DAYS)


def _issue(command: _Parser) -> None:
    command.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority")
    command.add_argument("name", metavar="NAME", help="the holder; also the name of its folder in DIR")
    command.add_argument(
        "--profile", required=True, choices=get_args(Profile), help="what it may be used for"
    )
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


def _bundle(command: _Parser) -> None:
    command.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority")
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


def _show(command: _Parser) -> None:
    command.add_argument("path", type=Path, metavar="PATH", help="a certificate, or a folder with cert.pem")
    _json(command)


def _verify(command: _Parser) -> None:
    command.add_argument(
        "path", type=Path, metavar="FOLDER_OR_CERT", help="a holder's folder, or a certificate"
    )
    command.add_argument("--ca", type=Path, metavar="PATH", help="whom to trust (the ca.pem beside it)")
    _json(command)


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
