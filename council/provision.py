"""`consilium provision`: certificates for everybody whom a council's containers need, made and kept fresh.

1. It may run as often as one likes: what is there and good is left alone, what ends soon is renewed.
2. Who was revoked stays revoked.
3. As root it gives each folder to the user of the container that it is for; anybody else keeps all of them.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from consilium.console import printable
from consilium.credentials import CERT
from consilium.errors import UserError
from consilium.settings import load_council
from pki.authority import Authority
from pki.terms import CA_FOLDER, MAX_CA_DAYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from consilium.config import Council

ARBITER_USER, WRAPPER_USER, OPERATOR_USER = 10000, 10001, 10004
"""Who runs in the images: the Arbiter, a seat's wrapper, an operator and the moderator."""

ARBITER, MODERATOR, OPERATOR = "arbiter", "moderator", "operator"

RENEW_WITHIN = 1 / 3
"""A certificate or a revocation list is made anew in the last third of its life."""

PRIVATE = 0o700

PUBLIC_FOLDER, PUBLIC_FILE = 0o755, 0o644

COUNCIL_FILE, ROLES = "council.yaml", "roles"

EXAMPLES = """\
examples:
  consilium provision certs --council council.yaml
  consilium provision certs --council council.yaml --dns council.example.org

DIR then holds an authority (DIR/ca) and a folder each for the Arbiter, the moderator, the operator and every
seat of the council file. Run it again to renew what ends soon; the rest is left alone."""


@dataclass(frozen=True, slots=True)
class Holder:
    """One who needs a certificate, and the user whose container needs it."""

    name: str
    profile: str
    user: int


def parser() -> argparse.ArgumentParser:
    """The command line of ``consilium provision``."""
    made = argparse.ArgumentParser(
        prog="consilium provision",
        description="Issue and renew the certificates that the containers of a council need.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("dir", type=Path, metavar="DIR", help="the folder of the authority and its holders")
    made.add_argument("--council", type=Path, required=True, metavar="FILE", help="the council file")
    made.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help="put a copy of the council file there, council.yaml, which is the one in force",
    )
    made.add_argument(
        "--dns", action="append", default=[], metavar="HOST", help="one more name of the Arbiter (repeat it)"
    )
    return made


def main(argv: Sequence[str]) -> int:
    """Provide for a council; returns 0. Raises `UserError`."""
    options = parser().parse_args(argv)
    wanted = holders(load_council(options.council))
    if (options.dir / CA_FOLDER).exists():
        authority = Authority.open(options.dir)
    else:
        _close(options.dir)
        authority = Authority.create(options.dir, days=MAX_CA_DAYS)  # nobody renews an authority
        _say(f"{CA_FOLDER}: a new authority for {authority.trust_domain}")
    hosts = ["arbiter", "localhost", *options.dns]
    for line in provide(authority, wanted, hosts):
        _say(line)
    if options.publish is not None:
        publish(options.council, options.publish)
        _say(f"{options.publish / COUNCIL_FILE}: the council in force, for every container")
    return 0


def publish(council: Path, folder: Path) -> None:
    """Put ``council`` into ``folder``, whole or not at all, with room for roles. Raises `UserError`.

    Everybody may read it: it holds no secret, and each container has a user of its own.
    """
    data = council.read_bytes()
    try:
        for needed in (folder, folder / ROLES):
            needed.mkdir(exist_ok=True)
            needed.chmod(PUBLIC_FOLDER)
        unfinished = folder / f".{COUNCIL_FILE}"
        unfinished.write_bytes(data)
        unfinished.chmod(PUBLIC_FILE)
        unfinished.replace(folder / COUNCIL_FILE)
    except OSError as error:
        raise UserError(
            f"{folder}: the council file cannot be put there: {error.strerror}",
            hint="--publish names a folder that this user may write",
        ) from None


def holders(council: Council) -> list[Holder]:
    """Everybody whom the containers of ``council`` need. Raises `UserError` for a seat with such a name."""
    central = [
        Holder(ARBITER, "arbiter", ARBITER_USER),
        Holder(MODERATOR, "operator", OPERATOR_USER),
        Holder(OPERATOR, "operator", OPERATOR_USER),
    ]
    taken = {CA_FOLDER, *(holder.name for holder in central)}
    names = [seat.name for seat in council.participants]
    if clash := sorted(taken.intersection(names)):
        raise UserError(
            f"a seat cannot be called {clash[0]} here: the folder {clash[0]} is for somebody else",
            hint="give the participant another name in the council file",
        )
    return [*central, *(Holder(name, "participant", WRAPPER_USER) for name in names)]


def provide(authority: Authority, wanted: Iterable[Holder], hosts: Sequence[str]) -> Iterator[str]:
    """Have a good certificate in the folder of each holder; yields a line for each. Raises `UserError`."""
    now, index = authority.clock(), authority.index
    for holder in wanted:
        last, folder = index.latest(holder.name), authority.folder / holder.name
        dns = list(dict.fromkeys(hosts)) if holder.profile == "arbiter" else []
        ips = ["127.0.0.1"] if holder.profile == "arbiter" else []
        if last is not None and last.revoked is not None:
            # First of all: with its folder gone, it would look like one who never had a certificate.
            yield f"{holder.name}: revoked, and left so"
            continue
        if last is None or not (folder / CERT).exists() or list(last.dns) != dns:
            # A folder may be there already: an engine makes one for a container before we are asked.
            authority.issue(holder.name, profile=holder.profile, dns=dns, ips=ips, replace=folder.is_dir())
            did = "issued"
        elif last.not_after - now <= (last.not_after - last.not_before) * RENEW_WITHIN:
            authority.renew(holder.name)
            did = "renewed"
        else:
            did = "kept"
        _give(folder, holder.user)
        found = authority.index.latest(holder.name)
        assert found is not None
        yield f"{holder.name}: {did}, good until {time.strftime('%Y-%m-%d', time.gmtime(found.not_after))}"
    lists = authority.index.lists
    if lists.end_within(now, lists.days * RENEW_WITHIN):
        published = authority.publish()
        yield f"revocation lists: number {published.lists.number}"


def _close(folder: Path) -> None:
    """Take from others the right to write to ``folder``, which a checkout gives them under many a umask.

    Only before there is an authority: with one, whoever could write there may have put something there.
    """
    try:
        if (
            folder.is_dir()
            and not folder.is_symlink()
            and (mode := stat.S_IMODE(folder.stat().st_mode)) & 0o022
        ):
            folder.chmod(mode & ~0o022)
            _say(f"{folder}: is no longer open for others to write to")
    except OSError as error:
        raise UserError(f"{folder} cannot be closed to others: {error.strerror}") from error


def _give(folder: Path, user: int) -> None:
    """Have ``folder`` and what is in it belong to ``user``, and to nobody else."""
    try:
        folder.chmod(PRIVATE)
        if os.geteuid() == 0:
            for path in (*folder.iterdir(), folder):
                os.chown(path, user, user, follow_symlinks=False)
    except OSError as error:
        raise UserError(
            f"{folder} cannot be given to user {user}: {error.strerror}",
            hint="as root this takes the capabilities CHOWN, FOWNER and DAC_OVERRIDE",
        ) from error


def _say(line: str) -> None:
    sys.stdout.write(printable(line) + "\n")
