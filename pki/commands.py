"""The four commands: what each does and what it writes. Refusals are `UserError`; `pki.main` shows them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import orjson

from consilium.credentials import CERT
from pki.authority import Authority
from pki.show import show
from pki.terms import CA_FOLDER
from pki.verify import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable


def run(args: argparse.Namespace, *, now: float) -> int:
    """Do what ``args`` (of `pki.main.parser`) say at ``now``, in seconds. Returns the exit code."""
    return _COMMANDS[args.command](args, now)


def _init(args: argparse.Namespace, now: float) -> int:
    Authority.create(args.dir, trust_domain=args.trust_domain, days=args.days, clock=lambda: now)
    sys.stdout.write(show(args.dir / CA_FOLDER / CERT, now=now).as_text())
    sys.stdout.write(f"next: consilium pki issue {args.dir} NAME --profile participant\n")
    return 0


def _issue(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    credentials = authority.issue(
        args.name, profile=args.profile, dns=args.dns, ips=args.ip, days=args.days, replace=args.replace
    )
    sys.stdout.write(show(credentials.cert, now=now).as_text())
    return 0


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
    "show": _show,
    "verify": _verify,
}
