"""Peers that are silent, slow, many, rude or gone: tables of what they do, and what becomes of them alone.

Before somebody is known: the limits of the doors. After that: whatever ends one connection ends that one.
"""

from __future__ import annotations

import contextlib
import resource
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from standing import DOORS, HOST, PATIENCE, Standing, line, standing
from tls13 import TEXT, Client, record

PROFILES = """\
participant: {role: participant, names: ["*"], may_ask_status: true}
operator: {role: operator, may_ask_status: true}
doors:
  handshakes: 40
  handshakes_per_address: 20
  handshake_seconds: 1
  first_message_seconds: 1
  write_seconds: 2
"""
SLACK = 8.0
"""Seconds that a machine full of other tests may be late."""


@pytest.fixture(scope="module")
def arbiter() -> Iterator[Standing]:
    with standing(profiles=PROFILES) as made:
        yield made


def ends(raw: socket.socket) -> float:
    """Seconds until the other end closes."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionError):
        while raw.recv(65536):
            pass
    return time.monotonic() - began


def plain(arbiter: Standing, door: str, local: str = HOST) -> socket.socket:
    raw = socket.create_connection((HOST, arbiter.ports[door]), PATIENCE, source_address=(local, 0))
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return raw


HELLO = record(22, b"\x01\x00\x01\xfc\x03\x03" + bytes(500))

DAWDLERS: dict[str, tuple[bytes, float]] = {
    # what is sent at first, and then a byte at a time at this pace; 0: nothing more
    "says nothing": (b"", 0),
    "says half a hello": (HELLO[:200], 0),
    "says a byte, and waits": (HELLO[:1], 0),
    "drips a byte at a time": (b"", 0.05),
    "drips after half a hello": (HELLO[:100], 0.1),
}


@pytest.mark.parametrize(("first", "pace"), DAWDLERS.values(), ids=DAWDLERS)
def test_who_dawdles_in_the_handshake_is_closed_in_time(arbiter: Standing, first: bytes, pace: float) -> None:
    with contextlib.ExitStack() as stack:
        began = time.monotonic()
        doors = [stack.enter_context(plain(arbiter, door)) for door in DOORS]
        for raw in doors:
            raw.sendall(first)
        if pace:
            drip(doors, HELLO[len(first) :], pace)
        for raw in doors:
            ends(raw)
            assert 0.5 < time.monotonic() - began < 1 + SLACK
    arbiter.serves()


def drip(doors: list[socket.socket], rest: bytes, pace: float) -> None:
    """Send a byte at a time, for as long as it is taken."""
    until = time.monotonic() + 1 + SLACK
    for byte in rest:
        for raw in doors:
            try:
                raw.sendall(bytes([byte]))
            except OSError:
                return
        assert time.monotonic() < until, "nobody has closed it"
        time.sleep(pace)


SILENT: dict[str, tuple[str, bytes]] = {
    # on which channel, and what is said instead of a first message
    "nothing on control": ("control", b""),
    "nothing on data": ("data", b""),
    "half a line on control": ("control", line("REG", name="x")[:-1]),
    "half a line on data": ("data", b'{"protocol_version":4,'),
    "PINGs on control": ("control", line("PING", ts=1)),
}


@pytest.mark.parametrize(("door", "said"), SILENT.values(), ids=SILENT)
def test_who_does_not_say_whose_it_is_is_told_and_closed_in_time(
    arbiter: Standing, door: str, said: bytes
) -> None:
    with arbiter.peer(door) as peer:
        began = time.monotonic()
        peer.say_bytes(said)
        heard = peer.rest()
        assert time.monotonic() - began < 1 + SLACK
    errors = [told["code"] for told in heard if isinstance(told, dict) and told["type"] == "ERROR"]
    assert (errors, heard[-1]) == (["TIMEOUT"], "closed")
    arbiter.serves()


def test_two_thousand_half_open_connections_keep_nobody_out(arbiter: Standing) -> None:
    """From one address, and then from many: the cap holds, memory does not grow, the operator is answered."""
    _allow_descriptors(3000)
    before = memory(arbiter)
    for spread in (1, 64):
        with contextlib.ExitStack() as stack:
            for number in range(1000):
                raw = stack.enter_context(plain(arbiter, "control", f"127.0.1.{1 + number % spread}"))
                raw.setblocking(False)
                if not number % 250:
                    arbiter.answers()
            arbiter.answers()
    eventually(lambda: served(arbiter))
    assert memory(arbiter) - before < 40 * 2**20, "no more than the places there are"


def _allow_descriptors(count: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def memory(arbiter: Standing) -> int:
    """Bytes of it that are in memory."""
    pages = Path(f"/proc/{arbiter.process.pid}/statm").read_text().split()[1]
    return int(pages) * resource.getpagesize()


def served(arbiter: Standing) -> bool:
    try:
        arbiter.serves()
    except (OSError, ssl.SSLError):
        return False
    return True


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.1)


# --- somebody who is known ----------------------------------------------------------------------------

Leave = Callable[[Client], None]


def reset(client: Client) -> None:
    client.raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.raw.close()


def endless(client: Client) -> None:
    for _ in range(40):
        client.send(b"x" * 16384)


LEAVE: dict[str, Leave] = {
    # how somebody who is at home goes
    "a reset": reset,
    "no close_notify": lambda client: client.raw.close(),
    "only the one direction": lambda client: client.raw.shutdown(socket.SHUT_WR),
    "half a record": lambda client: client.send_raw(record(TEXT, bytes(100))[:50]),
    "a record that is none": lambda client: client.send_raw(record(TEXT, b"\xaa" * 64)),
    "an alert": lambda client: client.send(b"\2\x50", 21),
    "a line that is none": lambda client: client.send(b"\x00\xff\n"),
    "a line without an end": endless,
    "a flood of lines": lambda client: client.send(line("PING", ts=1) * 200),
}


@pytest.mark.parametrize("leave", LEAVE.values(), ids=LEAVE)
def test_however_somebody_goes_only_that_session_ends(arbiter: Standing, leave: Leave) -> None:
    with arbiter.peer("control") as witness, Client.connect(arbiter.ports["control"], arbiter.seat) as client:
        assert witness.ask("REG", name="witness")["type"] == "REG_OK"
        client.shake_hands()
        client.send(line("REG", name="leaver"))
        told = client.next()
        assert told is not None
        assert b"REG_OK" in told[1]
        leave(client)
        with contextlib.suppress(OSError):
            client.raw.close()
        eventually(lambda: name_is_free(arbiter, "leaver"))
        assert witness.ask("STATUS")["type"] == "STATUS"
    arbiter.serves()


def name_is_free(arbiter: Standing, name: str) -> bool:
    with arbiter.peer("control") as peer:
        return bool(peer.ask("REG", name=name)["type"] == "REG_OK")


def test_a_reader_that_never_reads_is_cut_and_costs_nobody_else(arbiter: Standing) -> None:
    before = memory(arbiter)
    context = arbiter.context(arbiter.operator)
    raw = socket.socket()
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    raw.settimeout(PATIENCE)
    raw.connect((HOST, arbiter.ports["admin"]))
    with context.wrap_socket(raw, server_hostname="localhost") as deaf:
        with contextlib.suppress(OSError):
            for _ in range(400):
                deaf.sendall(line("STATUS"))
                time.sleep(0.005)
        arbiter.serves()
    assert memory(arbiter) - before < 40 * 2**20


def test_a_gigabyte_without_a_line_end_is_cut_at_the_limit(arbiter: Standing) -> None:
    before = memory(arbiter)
    sent = 0
    with arbiter.peer("control") as peer:
        assert peer.ask("REG", name="endless")["type"] == "REG_OK"
        with contextlib.suppress(OSError):
            for _ in range(1024):
                peer.say_bytes(b"x" * 2**20)
                sent += 2**20
    assert sent < 64 * 2**20, "what the buffers between us hold, and no more"
    assert memory(arbiter) - before < 40 * 2**20
    arbiter.serves()


def test_the_log_of_many_refusals_is_short_and_says_how_many_there_were(arbiter: Standing) -> None:
    before = len(arbiter.log().splitlines())
    for _ in range(300):
        with plain(arbiter, "control") as raw:
            raw.sendall(b"GET / HTTP/1.1\r\n\r\n")
            ends(raw)
    arbiter.serves()
    lines = arbiter.log().splitlines()[before:]
    assert len(lines) < 150
    assert not [each for each in lines if "Traceback" in each]
