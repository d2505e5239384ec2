"""The commands: what each does and what it writes. Refusals are `UserError`; `pki.main` shows them."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from consilium import passphrase
from consilium.credentials import CERT
from consilium.errors import UserError
from pki import listing
from pki.authority import Authority
from pki.bundle import bundle
from pki.invite import Asked, given, invite, made_up, show_once
from pki.profiles import issuer_for
from pki.renewal import renew
from pki.show import show
from pki.store import write_private
from pki.terms import CA_FOLDER, ROOT
from pki.verify import verify

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping

    from pki.outcomes import Published


def run(args: argparse.Namespace, *, now: float) -> int:
    """Do what ``args`` (of `pki.main.parser`) say at ``now``, in seconds. Returns the exit code."""
    return _COMMANDS[args.command](args, now)


def _init(args: argparse.Namespace, now: float) -> int:
    Authority.create(args.dir, trust_domain=args.trust_domain, days=args.days, clock=lambda: now)
    shown = show(args.dir / CA_FOLDER / ROOT / CERT, now=now)
    if args.json:
        _say(_json(shown.as_json()))
        return 0
    _say(shown.as_text())
    _say(f"next: consilium pki issue {args.dir} NAME --profile participant\n")
    return 0


def _issue(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    issuer = issuer_for(args.profile, args.profiles, days=args.days, trust_domain=authority.trust_domain)
    credentials = authority.issue(
        args.name,
        profile=args.profile,
        issuer=issuer,
        dns=args.dns,
        ips=args.ip,
        days=args.days,
        replace=args.replace,
    )
    shown = show(credentials.cert, now=now)
    _say(_json(shown.as_json()) if args.json else shown.as_text())
    return 0


def _renew(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    done = renew(
        authority,
        args.name,
        within=args.if_within,
        days=args.days,
        revoke=args.revoke,
    )
    if args.json:
        _say(_json(done.as_json(now)))
    else:
        _say(done.as_text(now))
        _say(_published(done.published, authority, now))
    return 1 if done.refused else _code(done.published)


def _revoke(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    done = authority.revoke(args.key, reason=args.reason)
    if args.json:
        revoked = [listing.fields(record, now) for record in done.records]
        before = [listing.fields(record, now) for record in done.before]
        _say(_json({"revoked": revoked, "before": before} | _published_json(done.published)))
        return _code(done.published)
    for word, records in (("revoked", done.records), ("before", done.before)):
        for record in records:
            told = listing.sentence(record, now)
            _say(f"{word:13}{record.name}_{record.suffix}, serial {record.serial}: {told}\n")
    _say(_published(done.published, authority, now))
    return _code(done.published)


def _crl(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    published = authority.publish(days=args.days)
    _say(_json(_published_json(published)) if args.json else _published(published, authority, now))
    return _code(published)


def _list(args: argparse.Namespace, now: float) -> int:
    authority = Authority.open(args.dir, clock=lambda: now)
    index = authority.index
    if args.json:
        _say(_json({"trust_domain": authority.trust_domain} | listing.as_json(index, now)))
    else:
        _say(listing.as_text(index, now))
    return 0


def _bundle(args: argparse.Namespace, now: float) -> int:
    secret = b"" if args.no_passphrase else _new_passphrase(args)
    write_private(args.out, bundle(args.dir, args.name, form=args.format, passphrase=secret))
    shown = show(args.dir / args.name / CERT, now=now)
    if args.json:
        told = {"bundle": str(args.out), "protected": bool(secret), "certificate": shown.as_json()}
        _say(_json(told))
        return 0
    _say(shown.as_text())
    guarded = "protected by the passphrase" if secret else "NOT protected by a passphrase"
    _say(f"{'bundle':13}{args.out} (mode 0600, {guarded})\n")
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


def _invite(args: argparse.Namespace, now: float) -> int:
    out = args.out or Path(f"{args.holder}.p12")
    asked = Asked(
        holder=args.holder,
        profile=args.profile,
        name=args.name,
        out=out,
        days=args.days,
        profiles=args.profiles,
        host=args.host,
        preset=args.preset,
        role=args.role,
        replace=args.replace,
    )

    def secret() -> bytes:
        found = given(args.passphrase_file)
        if found is None:
            found = made_up()
            show_once(f"{'passphrase':13}{found.decode()} (shown once; send it another way than the file)\n")
        return found

    made = invite(Authority.open(args.dir, clock=lambda: now), asked, secret)
    shown = show(args.dir / args.holder / CERT, now=now)
    if args.json:
        told = {"bundle": str(made.bundle), "run": made.line, "notes": made.notes}
        _say(_json(told | {"certificate": shown.as_json()}))
        return 0
    _say(shown.as_text())
    _say(f"{'bundle':13}{made.bundle} (mode 0600, protected by the passphrase)\n")
    _say("".join(f"{'note':13}{note}\n" for note in made.notes))
    _say(f"on the other machine, beside {made.bundle.name}:\n  {made.line}\n")
    return 0


def _show(args: argparse.Namespace, now: float) -> int:
    shown = show(args.path, now=now)
    _say(_json(shown.as_json()) if args.json else shown.as_text())
    return 0


def _verify(args: argparse.Namespace, now: float) -> int:
    report = verify(args.path, ca=args.ca, crl=args.crl, now=now)
    _say(_json(report.as_json()) if args.json else report.as_text())
    return 0 if report.ok else 1


def _published(published: Published | None, authority: Authority, now: float) -> str:
    """New revocation lists, where they are, and what is left to do."""
    if published is None:
        return ""
    lines = [f"{'lists':13}{listing.lists_sentence(published.lists, now)}"]
    lines += [f"{'written':13}{path}" for path in published.written]
    lines += [f"{'FAILED':13}{path}: {why}" for path, why in published.failed.items()]
    lines += [
        "next: nothing, where an Arbiter runs with these files: it takes them within a second",
        f"  where its folder is elsewhere: copy {authority.lists} there, as crl.pem",
        "",
    ]
    return "\n".join(lines)


def _published_json(published: Published) -> dict[str, Any]:
    return {
        "lists": published.lists.model_dump(mode="json"),
        "written": [str(path) for path in published.written],
        "failed": {str(path): why for path, why in published.failed.items()},
    }


def _code(published: Published | None) -> int:
    return 1 if published is not None and published.failed else 0


def _say(text: str) -> None:
    sys.stdout.write(text)


def _json(content: Mapping[str, Any]) -> str:
    return orjson.dumps(content, option=orjson.OPT_APPEND_NEWLINE).decode()


_COMMANDS: dict[str, Callable[[argparse.Namespace, float], int]] = {
    "init": _init,
    "issue": _issue,
    "invite": _invite,
    "renew": _renew,
    "revoke": _revoke,
    "crl": _crl,
    "list": _list,
    "bundle": _bundle,
    "show": _show,
    "verify": _verify,
}
