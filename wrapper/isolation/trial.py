"""Runs the probe in the client's place, on targets that it puts up, and judges what came of it (§14.2).

The packet fence was built by a root that is gone, and nobody left may look at it: whether it is there is
found out by trying. A strict seat does that before it takes its first turn.
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import socket
import sys
import sysconfig
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from consilium.errors import AdapterFault, UserError
from wrapper import sandbox
from wrapper.clean import clean_line, decode_output
from wrapper.isolation import launch, launcher, probe
from wrapper.isolation.attempts import Outcome, Verdict, holes, judge
from wrapper.isolation.confinement import Confinement, refusal
from wrapper.remains import RUN_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

log = logging.getLogger("consilium.seat")

PROBE_BOUNDS = sandbox.Bounds(overall=60, output_bytes=256 * 1024)

_NOT_FILES = frozenset({"proc", "sysfs", "cgroup", "cgroup2", "devpts", "mqueue", "nsfs", "securityfs"})

_NOT_OTHERS = ("/proc/", "/sys", "/etc/ssl/certs/")
"""Below these are the kernel's own mounts, and the trust anchors that a person adds for a provider."""


async def settled(confined: Confinement, *, certs: Path, state: Path) -> None:
    """Return once ``confined`` is known to hold, or a relaxed one has said what it goes without.

    Raises `UserError` where a strict one does not hold.
    """
    found = confined.missing
    if confined.client is not None:
        verdicts = await anyio.to_thread.run_sync(lambda: tried(confined, _of_the_seat(certs, state)))
        found = (*found, *holes(verdicts))
    if confined.isolation == "relaxed":
        log.warning("isolation: relaxed: %s", "; ".join(found) or "every layer holds all the same")
    elif found:
        raise refusal(found)


def _of_the_seat(certs: Path, state: Path) -> dict[str, str]:
    return {"key": str((certs / "key.pem").absolute()), "state": str(state.absolute())}


def tried(
    confined: Confinement, targets: Mapping[str, Any], *, wrapper: int | None = None, alone: bool = True
) -> tuple[Verdict, ...]:
    """What came of every attempt that there is a target for. Blocking.

    ``targets`` are those that are not put up here (see `wrapper.isolation.probe`); ``wrapper`` is the process
    to try on (default: this one). Raises `UserError` if the probe itself cannot be run.
    """
    if confined.client is None:
        raise UserError(
            "the client has no user of its own here, so there is nothing to try",
            hint="run this in a seat's container, or name the client's user with --client-user",
        )
    with _put_up() as local:
        everything = {
            **local,
            "wrapper": wrapper or os.getpid(),
            "wrapper_user": (os.getuid(), os.getgid()),
            "variables": ["PATH", RUN_VARIABLE],
            "home": str(confined.client.home),
            "image": ["/", "/etc", "/usr/local/bin", sys.prefix, sysconfig.get_path("purelib")],
            "mounts": _other_mounts(str(confined.client.home)),
            **targets,
        }
        command = sandbox.Command(
            argv=(sys.executable, "-I", "-S", probe.__file__),
            env={"PATH": os.defpath},
            cwd=confined.client.home,
            stdin=json.dumps(everything).encode(),
            confinement=confined,
            alone=alone,
        )
        try:
            done = sandbox.run_blocking(command, PROBE_BOUNDS)
        except AdapterFault as fault:
            raise UserError(f"the isolation cannot be tried: {fault.detail}") from None
    try:
        said = json.loads(done.stdout)
    except ValueError:
        why = clean_line(decode_output(done.stderr), 300) or f"it ended with {done.returncode}"
        raise UserError(f"the isolation was not tried to the end: {why}", hint="try again") from None
    results = {name: (Outcome(outcome), detail) for name, (outcome, detail) in said.items()}
    return judge(results, scopes=not launcher.NETWORK_ABI <= launcher.abi() < launcher.SCOPE_ABI)


@contextmanager
def _put_up() -> Iterator[dict[str, Any]]:
    """Sockets of ours for the probe to try."""
    with ExitStack() as held:
        # An address of its own: another attempt may run at the same time.
        here = f"127.88.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"
        by_port = held.enter_context(_listener(socket.AF_INET, (here, launch.PORT)))
        loopback = held.enter_context(_listener(socket.AF_INET, ("127.0.0.1", 0)))
        abstract = f"consilium-{secrets.token_hex(8)}"
        held.enter_context(_listener(socket.AF_UNIX, f"\0{abstract}"))
        targets = {
            "loopback": loopback.getsockname(),
            "loopback_by_port": by_port.getsockname(),
            "abstract_socket": abstract,
            "path_socket": held.enter_context(_path_socket()),
        }
        with suppress(OSError):  # no IPv6 here, or somebody else is trying just now
            held.enter_context(_listener(socket.AF_INET6, ("::1", launch.PORT)))
            targets["loopback6"] = ("::1", launch.PORT)
        yield targets


@contextmanager
def _listener(family: socket.AddressFamily, address: Any) -> Iterator[socket.socket]:
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.bind(address)
        listener.listen(8)
        yield listener


@contextmanager
def _path_socket() -> Iterator[str]:
    """A socket for ourselves alone, where others may pass: only its own mode holds them back."""
    path = Path("/tmp") / f"consilium-{secrets.token_hex(8)}.sock"  # noqa: S108 - nobody can guess the name
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        mask = os.umask(0o177)
        try:
            listener.bind(str(path))
        except OSError as error:
            raise UserError(
                f"{path.parent} cannot be written: {error.strerror}",
                hint="give the container a tmpfs at /tmp: clients want one too",
            ) from None
        finally:
            os.umask(mask)
        try:
            listener.listen(8)
            yield str(path)
        finally:
            path.unlink(missing_ok=True)


def _other_mounts(home: str) -> list[str]:
    """What is mounted here and is none of the client's business."""
    # Docker puts its init among the programs; it is one.
    theirs = {"/", home, *launch.READ_ONLY, *launch.WRITABLE, "/sbin/docker-init", "/usr/sbin/docker-init"}
    mounts = []
    for line in Path("/proc/self/mountinfo").read_text(errors="replace").splitlines():
        before, _, after = line.partition(" - ")
        path, kind = before.split()[4], after.split()[0]
        if path not in theirs and kind not in _NOT_FILES and not path.startswith(_NOT_OTHERS):
            mounts.append(path)
    return mounts
