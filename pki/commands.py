"""The commands: what each does and what it writes. Refusals are `UserError`; `pki.main` shows them."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import orjson

from consilium import passphrase
from consilium.credentials import CERT
from consilium.errors import UserError
from pki.authority import Authority
from pki.bundle import bundle
from pki.show import show
from pki.store import write_private
from pki.terms import CA_FOLDER, ROOT
from pki.verify import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def run(args: argparse.Namespace, *, now: float) -> int:
    """Do what ``args`` (of `pki.main.parser`) say at ``now``, in seconds. Returns the exit code."""
    return _COMMANDS[args.command](args, now)


def _init(args: argparse.Namespace, now: float) -> int:
    Authority.create(args.dir, trust_domain=args.trust_domain, days=args.days, clock=lambda: now)
    sys.stdout.write(show(args.dir / CA_FOLDER / ROOT / CERT, now=now).as_text())
    sys.stdout.write(f"next: consilium pki issue {args.dir} NAME --profile participant\n")
    return 0


def _issue(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    credentials = authority.issue(
        args.name, profile=args.profile, dns=args.dns, ips=args.ip, days=args.days, replace=args.replace
    )
    sys.stdout.write(show(credentials.cert, now=now).as_text())
    return 0


def _bundle(args: argparse.Namespace, now: float) -> int:
    secret = b"" if args.no_passphrase else _new_passphrase(args)
    write_private(args.out, bundle(args.dir, args.name, form=args.format, passphrase=secret))
    sys.stdout.write(show(args.dir / args.name / CERT, now=now).as_text())
    guarded = "protected by the passphrase" if secret else "NOT protected by a passphrase"
    sys.stdout.write(f"{'bundle':13}{args.out} (mode 0600, {guarded})\n")
    return 0


def _new_passphrase(args: argparse.Namespace) -> bytes:
    """The passphrase to protect a bundle with; whoever types it types it twice."""
    typed = args.passphrase_file is None and passphrase.VARIABLE not in os.environ
    secret = passphrase.source(args.passphrase_file, os.environ, prompt=f"New passphrase for {args.out}")()
    if not secret:
        hint = "--no-passphrase writes a bundle without one"
        raise UserError("an empty passphrase protects nothing", hint=hint)
    if typed and passphrase.ask("The same again") != secret:
        raise UserError("the two passphrases differ", hint="nothing was written; try again")
    return secret


def _show(args: argparse.Namespace, now: float) -> int:
    shown = show(args.path, now=now)
    sys.stdout.write(_json(shown.as_json()) if args.json else shown.as_text())
    return 0


def _verify(args: argparse.Namespace, now: float) -> int:
    report = verify(args.path, ca=args.ca, now=now)
    sys.stdout.write(_json(report.as_json()) if args.json else report.as_text())
    return 0 if report.ok else 1


def _json(content: dict[str, object]) -> str:
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE).decode()


_COMMANDS: dict[str, Callable[[argparse.Namespace, float], int]] = {
    "init": _init,
    "issue": _issue,
    "bundle": _bundle,
    "show": _show,
    "verify": _verify,
}
