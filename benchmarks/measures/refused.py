"""P17: thousands of refused handshakes: the Arbiter's memory, and its time against accepted ones."""

from __future__ import annotations

import contextlib
import itertools
import socket
import ssl
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from benchmarks.hosts.common import HOST
from benchmarks.hosts.model import line
from benchmarks.process import Host, running
from benchmarks.seats import SILENCE, Wire
from benchmarks.table import Row, Target, ratios
from consilium.credentials import Credentials
from consilium.tls import client_context
from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.setting import Setting

REFUSED = 10_000
WARM_UP = 0.2
"""Of these, the share after which the memory is read first: by then everything has been loaded once."""

ROUNDS = 5
ACCEPTED = 100
"""Handshakes that are accepted in each round, to compare with."""

CLIENTS = 3
GROWTH_KIB = 256
GARBAGE = bytes(range(256)) * 2
HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(24)
"""The beginning of a ClientHello, after which nothing comes."""

PING = line("PING", 0, ts=0)


def tls(context: ssl.SSLContext, port: int) -> None:
    """Shake hands as ``context`` does, and hear that it was not enough."""
    with (
        contextlib.suppress(OSError),
        socket.create_connection((HOST, port), SILENCE) as raw,
        context.wrap_socket(raw, server_hostname=HOST) as connection,
    ):
        connection.recv(1)  # in TLS 1.3 a client hears only now that its certificate was refused


def plain(data: bytes, port: int) -> None:
    """Send ``data``, and wait for the other end to close."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), SILENCE) as raw:
        raw.sendall(data)
        while raw.recv(4096):
            pass


def cut(data: bytes, port: int) -> None:
    """Send ``data`` and hang up."""
    with contextlib.suppress(OSError), socket.create_connection((HOST, port), SILENCE) as raw:
        raw.sendall(data)


def ways(setting: Setting) -> list[Callable[[int], None]]:
    """Every way to be refused; each takes the port."""
    stranger = Authority.create(setting.folder / "strangers").issue("seat", profile="participant")
    other = client_context(stranger)
    other.load_verify_locations(setting.credentials.ca)
    nobody = ssl.create_default_context(cafile=setting.credentials.ca)
    old = ssl.create_default_context(cafile=setting.credentials.ca)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    server = client_context(Credentials.load(setting.certs))
    shaken = [lambda port, context=each: tls(context, port) for each in (nobody, other, server, old)]
    return [
        *shaken,
        lambda port: plain(GARBAGE, port),
        lambda port: cut(HELLO, port),
        lambda port: cut(b"", port),
    ]


class Door:
    """The Arbiter's control port, and what each round came to, in CPU seconds a handshake."""

    def __init__(self, host: Host, setting: Setting) -> None:
        self.host = host
        self._port = host.ports[0][0]
        self._context = setting.seat
        self._ways = itertools.cycle(ways(setting))
        self.refused: list[float] = []
        self.accepted: list[float] = []
        self.seconds = 0.0

    def refuse(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Be refused ``count`` times. Raises `RuntimeError` when one of them was let in."""
        before, used, began = self.host.ask()["refused"], self.host.cpu, time.perf_counter()
        chosen = list(itertools.islice(self._ways, count))
        list(pool.map(lambda way: way(self._port), chosen))
        self.seconds += time.perf_counter() - began
        until = began + SILENCE
        while (refused := self.host.ask()["refused"] - before) < count:
            if time.perf_counter() > until:
                raise RuntimeError(f"of {count} bad handshakes {refused} were refused")
            time.sleep(0.01)
        self.refused.append((self.host.cpu - used) / count)

    def accept(self, pool: ThreadPoolExecutor, count: int) -> None:
        """Be let in ``count`` times, send a PING each time, and part."""
        used = self.host.cpu
        list(pool.map(self._good, range(count)))
        self.accepted.append((self.host.cpu - used) / count)

    def _good(self, _number: int) -> None:
        wire = Wire(self._port, self._context)
        wire.echo(PING)
        wire.part()


def measure(setting: Setting) -> list[Row]:
    """Fill P17."""
    total = setting.some(REFUSED)
    first = int(total * WARM_UP)
    each = (total - first) // ROUNDS
    with contextlib.ExitStack() as stack:
        pool = stack.enter_context(ThreadPoolExecutor(CLIENTS))
        place = ("--certs", setting.certs, "--folder", setting.folder, "--idle")
        door = Door(stack.enter_context(running("arbiter", *place)), setting)
        door.accept(pool, ACCEPTED)
        door.refuse(pool, first)
        door.refused.clear()
        door.accepted.clear()
        memory = [door.host.rss]
        for _ in range(ROUNDS):
            door.refuse(pool, each)
            memory.append(door.host.rss)
            door.accept(pool, ACCEPTED)
    return [_memory(memory, first, each), _time(door, total)]


def _memory(memory: list[int], first: int, each: int) -> Row:
    total = first + each * ROUNDS
    what = f"memory after {total} refused handshakes, KiB above that after {first}"
    basis = f"{', '.join(f'{size / 1024:.1f}' for size in memory)} MiB"
    detail = {"rss_kib": memory}
    growth = float(memory[-1] - memory[0])
    return Row("P17", what, Target("<=", GROWTH_KIB), (growth,), basis, wall=False, detail=detail)


def _time(door: Door, total: int) -> Row:
    basis = (
        f"{statistics.median(door.refused) * 1e3:.2f} ms to {statistics.median(door.accepted) * 1e3:.2f} ms; "
        f"{total} in {door.seconds:.1f} s"
    )
    detail = {"subject_s": door.refused, "reference_s": door.accepted}
    figures = ratios(door.refused, door.accepted)
    return Row(
        "P17",
        "CPU of a refused handshake, x an accepted one",
        Target("<=", 1),
        figures,
        basis,
        wall=False,
        detail=detail,
    )
