"""An invitation: one file for a guest on another machine, and the line to run there."""

from __future__ import annotations

import ipaddress
import os
import re
import secrets
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium import passphrase
from consilium.errors import UserError
from pki.bundle import bundle
from pki.profiles import check_name_at_table, issuer_for
from pki.store import write_private
from pki.terms import PRESET

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from pki.authority import Authority
    from pki.index import Record

_NAME = re.compile(r"[a-z0-9_]{1,64}")
_LETTERS = "abcdefghijkmnpqrstuvwxyz23456789"
"""Those that nobody mistakes for another, 32 of them: five bits each."""

GROUPS, IN_GROUP = 5, 5


@dataclass(frozen=True, slots=True)
class Asked:
    """What an invitation is to be. ``host`` None: as an Arbiter's certificate says; ``out``: the bundle."""

    holder: str
    profile: str
    name: str
    out: Path
    days: int
    profiles: Path | None = None
    host: str | None = None
    preset: str = PRESET
    role: str | None = None
    replace: bool = False


@dataclass(frozen=True, slots=True)
class Invitation:
    """What was made: the line to run, and what the host must still know."""

    bundle: Path
    line: str
    notes: tuple[str, ...]


def invite(authority: Authority, asked: Asked, secret: Callable[[], bytes]) -> Invitation:
    """Issue, bundle, and say what to run. Raises `UserError`; what is refused was refused before issuing.

    ``secret`` gives the passphrase, and is called when all else is in order.
    """
    if _NAME.fullmatch(asked.name) is None:
        raise UserError(f"{asked.name!r} cannot be a name at the table", hint="1 to 64 of a-z, 0-9 and _")
    issuer = issuer_for(asked.profile, asked.profiles, days=asked.days, trust_domain=authority.trust_domain)
    authority.check_free(asked.holder, replace=asked.replace)
    check_name_at_table(asked.name, asked.holder, asked.profile, asked.profiles)
    if os.path.lexists(asked.out):
        raise UserError(f"{asked.out} is there already, and no key is overwritten", hint="--out FILE")
    if not asked.out.absolute().parent.is_dir():
        raise UserError(f"{asked.out.parent} is no folder to write {asked.out.name} to", hint="--out FILE")
    arbiters = _arbiters(authority)
    host = asked.host or _reachable(authority, arbiters)
    key = secret()
    authority.issue(
        asked.holder, profile=asked.profile, issuer=issuer, days=asked.days, replace=asked.replace
    )
    write_private(asked.out, bundle(authority.folder, asked.holder, form="p12", passphrase=key))
    words = ["consilium", "join", host, "--bundle", asked.out.name, "--name", asked.name]
    words += ["--preset", asked.preset, *(["--role", asked.role] if asked.role else [])]
    return Invitation(asked.out, shlex.join(words), tuple(_notes(authority, asked, host, arbiters)))


def made_up() -> bytes:
    """A passphrase of 125 bits that can be read out."""
    groups = ["".join(secrets.choice(_LETTERS) for _ in range(IN_GROUP)) for _ in range(GROUPS)]
    return "-".join(groups).encode()


def given(file: Path | None) -> bytes | None:
    """The passphrase that ``file`` or the environment gives; None if neither does. Raises `UserError`."""
    if file is None and passphrase.VARIABLE not in os.environ:
        return None
    found = passphrase.read(file) if file is not None else os.fsencode(os.environ[passphrase.VARIABLE])
    if not found:
        raise UserError("an empty passphrase protects nothing", hint=passphrase.WAYS)
    return found


def show_once(text: str) -> None:
    """Write ``text`` to the terminal and to nothing else, wherever standard output goes."""
    try:
        with open("/dev/tty", "w", encoding="utf-8") as terminal:  # noqa: PTH123 - a device, opened to be written
            terminal.write(text)
    except OSError:
        raise UserError("there is no terminal to show the passphrase at", hint=passphrase.WAYS) from None


def _arbiters(authority: Authority) -> list[Record]:
    """The certificates with which an Arbiter of this authority may be reached now."""
    now = authority.clock()
    last = [authority.index.latest(name) for name in authority.index.names()]
    return [
        record
        for record in last
        if record and record.issuer == "servers" and record.revoked is None and record.not_after > now
    ]


def _hosts(arbiters: list[Record]) -> list[str]:
    return [host for record in arbiters for host in (*record.dns, *record.ips)]


def _reachable(authority: Authority, arbiters: list[Record]) -> str:
    found = next((host for host in _hosts(arbiters) if not _is_local(host)), None)
    if found is None:
        raise UserError(
            "no Arbiter's certificate names a host that a guest could reach, and nothing was issued",
            hint=f"with the host's name: {_naming(authority, arbiters, 'council.example')}",
        )
    return found


def _is_local(host: str) -> bool:
    address = _address(host)
    if address is not None:
        return address.is_loopback
    return host == "localhost" or "." not in host  # a name without a dot is known on one network only


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _naming(authority: Authority, arbiters: list[Record], host: str) -> str:
    """The command that gives an Arbiter a certificate for ``host`` too."""
    words = ["consilium", "pki", "issue", str(authority.folder)]
    words += [arbiters[0].name if arbiters else "arbiter", "--profile", "arbiter"]
    dns, ips = (arbiters[0].dns, arbiters[0].ips) if arbiters else ((), ())
    for option, values in (("--dns", dns), ("--ip", ips)):
        words += [word for value in values for word in (option, value)]
    words += ["--dns" if _address(host) is None else "--ip", host]
    return shlex.join([*words, "--replace"] if arbiters else words)


def _notes(authority: Authority, asked: Asked, host: str, arbiters: list[Record]) -> Iterable[str]:
    if asked.profiles is None:
        yield (
            f"{asked.name} is allowed by the profile {asked.profile} that is built in; if the Arbiter was "
            "started with --profiles FILE, that file must allow it"
        )
    else:
        yield f"{asked.name} is allowed by the profile {asked.profile} in {asked.profiles}"
    yield f"a council with a static roster must name {asked.name} in it, too"
    if host not in _hosts(arbiters):
        yield (
            f"no Arbiter's certificate here names {host}, and the guest's end will refuse one that does not: "
            f"{_naming(authority, arbiters, host)}"
        )
    yield "another client or role is the guest's to choose: --preset and --role"
