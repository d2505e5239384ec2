"""`consilium verify-isolation`: tries, in a live seat, what its client must not be able to do (§14.2).

In a container it finds the seat, goes where the client goes by the same launcher, and tells what was tried,
what came of it, and what should have. Outside, `consilium verify-isolation SEAT` has Compose run it in there.

Exit codes: 0 everything is as it shall be, 1 something is not, 2 it could not be tried.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from consilium.errors import UserError
from consilium.ports import Ports
from wrapper.isolation import launch, launcher
from wrapper.isolation.attempts import Outcome
from wrapper.isolation.confinement import add_options, confinement
from wrapper.isolation.fence import named_places
from wrapper.isolation.trial import tried

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from wrapper.isolation.attempts import Verdict
    from wrapper.isolation.confinement import Confinement

COMMAND = "verify-isolation"

ELSEWHERE = "203.0.113.1"
"""An address that stands for a provider's: nobody has it (RFC 5737)."""

REACH, PROXY = "CONSILIUM_REACH", "HTTPS_PROXY"

TRIES = 3
"""How often the probe begins again because a turn's end took it along."""


def parser() -> argparse.ArgumentParser:
    """The options of `consilium verify-isolation`."""
    own = argparse.ArgumentParser(
        prog=f"consilium {COMMAND}",
        description="Try, in a live seat and in its client's place, what the client must not be able to do.",
        epilog="""\
examples:
  consilium verify-isolation sceptic            from the host: the seat in the service `sceptic`
  docker compose exec sceptic consilium verify-isolation --json
  consilium verify-isolation sceptic --egress-host api.example.org

Exit codes: 0 all is as it shall be, 1 something is not, 2 it could not be tried.""",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    own.add_argument(
        "seat", nargs="?", help="the Compose service to run this in (default: here, in a seat's container)"
    )
    own.add_argument("--json", action="store_true", help="one JSON object, for programs")
    own.add_argument("--egress-host", metavar="HOST", help="a host that the egress proxy has on its list")
    own.add_argument(
        "--direct", default=ELSEWHERE, metavar="ADDRESS", help="a provider's address (default: %(default)s)"
    )
    for name, what in (("certs", "the seat's certificates"), ("state", "the wrapper's own folder")):
        own.add_argument(f"--{name}", type=Path, metavar="DIR", help=f"{what}, if no seat runs here")
    add_options(own)
    return own


def main(argv: list[str]) -> int:
    """Try it and tell. Raises `UserError` for what cannot be tried."""
    options = parser().parse_args(argv)
    if options.seat is not None:
        return _in_service(options)
    if os.geteuid() == 0 and os.environ.get(launch.CLIENT_USER):
        _as_the_wrapper(argv)
    seat = _live_seat()
    confined = confinement(options, "relaxed", os.environ)
    verdicts = _tried(confined, seat, options)
    surprises = [verdict for verdict in verdicts if verdict.surprise]
    if options.json:
        told = {"ok": not surprises, "seat": seat.pid if seat else None, "attempts": [*map(_row, verdicts)]}
        sys.stdout.write(orjson.dumps(told).decode() + "\n")
    else:
        sys.stdout.write("\n".join(_table(verdicts, seat)) + "\n")
    return 1 if surprises else 0


# --- where it runs ------------------------------------------------------------------------------------------


def _in_service(options: argparse.Namespace) -> int:
    """Become `docker compose exec`, with the same options but the service's name."""
    service = options.seat
    docker = shutil.which("docker")
    if docker is None:
        raise UserError("docker is not installed here", hint="leave SEAT out where the seat itself runs")
    if service.startswith("-"):
        raise UserError(f"{service!r} is not the name of a service")
    given = {name: value for name, value in vars(options).items() if name != "seat" and value}
    words = [_word(name, value) for name, value in given.items()]
    command = [docker, "compose", "exec", "-T", service, "consilium", COMMAND, *words]
    os.execv(docker, command)  # noqa: S606 - no shell


def _word(name: str, value: object) -> str:
    option = f"--{name.replace('_', '-')}"
    return option if value is True else f"{option}={value}"


def _as_the_wrapper(argv: Sequence[str]) -> None:
    """Become what the seat's wrapper is: `docker exec` makes us root, and root proves nothing."""
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        raise UserError("setpriv (package util-linux) is not installed")
    drop = launch.wrapper_for_good(launch.IMAGE_WRAPPER, setpriv=setpriv)
    os.execv(setpriv, [*drop, sys.executable, "-P", "-m", "consilium", COMMAND, *argv])  # noqa: S606


class LiveSeat:
    """A wrapper that runs here as our user, and what its command line says."""

    def __init__(self, pid: int, options: argparse.Namespace) -> None:
        self.pid = pid
        self.options = options


def _live_seat() -> LiveSeat | None:
    for folder in sorted(Path("/proc").glob("[0-9]*"), key=lambda path: int(path.name)):
        try:
            if int(folder.name) == os.getpid() or folder.stat().st_uid != os.getuid():
                continue
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
        except OSError:  # gone meanwhile
            continue
        if "seat" in words and any(Path(word).name in ("consilium", "__main__.py") for word in words):
            return LiveSeat(int(folder.name), _seat_options(words[words.index("seat") + 1 :]))
    return None


def _seat_options(words: list[str]) -> argparse.Namespace:
    reader = argparse.ArgumentParser(add_help=False, exit_on_error=False, allow_abbrev=False)
    for name in ("--certs", "--state", "--host", "--control-port", "--data-port"):
        reader.add_argument(name)
    return reader.parse_known_args(words)[0]


# --- what it is tried on ------------------------------------------------------------------------------------


def _tried(confined: Confinement, seat: LiveSeat | None, options: argparse.Namespace) -> tuple[Verdict, ...]:
    targets = dict(_targets(seat, options))
    for left in range(TRIES - 1, -1, -1):
        try:
            # A client may be at work: only what the probe starts is ended with it.
            return tried(confined, targets, wrapper=seat.pid if seat else None, alone=False)
        except UserError:
            if not left:
                raise
    raise AssertionError


def _targets(seat: LiveSeat | None, options: argparse.Namespace) -> Iterator[tuple[str, Any]]:
    certs = options.certs or (seat.options.certs if seat else None)
    if certs:
        yield "key", str(Path(certs) / "key.pem")
    if state := options.state or (seat.options.state if seat else None):
        yield "state", str(state)
    yield from _arbiter(seat)
    yield "direct", (options.direct, 443)
    yield "direct_by_port", (options.direct, launch.PORT)
    if resolver := _resolver():
        yield "resolver", resolver
    try:
        places = named_places(os.environ.get(REACH, ""))
    except ValueError as error:
        raise UserError(f"{REACH}: {error}") from None
    reach = [(address, place.port) for place in places[:1] if (address := _address(place.host))]
    if reach:
        yield "reach", reach[0]
    proxy = urlsplit(os.environ.get(PROXY, ""))
    if proxy.hostname and (address := _address(proxy.hostname)):
        yield "proxy", (address, proxy.port or launch.PORT)
        yield "host", options.egress_host


def _arbiter(seat: LiveSeat | None) -> Iterator[tuple[str, Any]]:
    """The Arbiter's doors, if it is there: what nobody reaches proves nothing."""
    given = {
        name: value
        for name in ("host", "control_port", "data_port")
        if seat and (value := getattr(seat.options, name))
    }
    ports = Ports.of(**given)
    address = _address(ports.host)
    if ports.sockets or address is None or not _reached(address, ports.control_port):
        return
    yield "control", (address, ports.control_port)
    yield "data", (address, ports.data_port)
    yield "admin", (address, ports.admin_port)
    yield "arbiter_by_port", (address, launch.PORT)


def _reached(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), 3):
            return True
    except OSError:
        return False


def _address(host: str) -> str | None:
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except OSError:
        return None


def _resolver() -> str | None:
    lines = Path("/etc/resolv.conf").read_text(errors="replace").splitlines()
    found = [line.split()[1] for line in lines if line.startswith("nameserver ")]
    return next((address for address in found if ":" not in address), None)


# --- what is told -------------------------------------------------------------------------------------------


def _row(verdict: Verdict) -> dict[str, Any]:
    return {
        "attempt": verdict.attempt.name,
        "what": verdict.attempt.what,
        "layer": verdict.attempt.layer,
        "outcome": verdict.outcome,
        "expected": verdict.expected,
        "surprise": verdict.surprise,
        "detail": verdict.detail,
    }


def _table(verdicts: Sequence[Verdict], seat: LiveSeat | None) -> Iterator[str]:
    whom = f"the seat's wrapper is process {seat.pid}" if seat else "no seat runs here: tried on this process"
    yield f"In the client's place ({whom}; Landlock version {launcher.abi()}):"
    yield ""
    width = max(len(verdict.attempt.what) for verdict in verdicts)
    for verdict in verdicts:
        mark = "!" if verdict.surprise else "-" if verdict.outcome is Outcome.NOT_TRIED else " "
        shall = f", shall be {verdict.expected}" if verdict.surprise else ""
        detail = f" ({verdict.detail})" if verdict.detail else ""
        yield f"{mark} {verdict.attempt.what:<{width}}  {verdict.outcome}{shall}{detail}"
    yield ""
    yield _sum(verdicts)


def _sum(verdicts: Iterable[Verdict]) -> str:
    verdicts = tuple(verdicts)
    surprises = sum(verdict.surprise for verdict in verdicts)
    untried = sum(verdict.outcome is Outcome.NOT_TRIED for verdict in verdicts)
    held = len(verdicts) - surprises - untried
    return f"{held} as they shall be, {surprises} not (!), {untried} not tried (-)"
