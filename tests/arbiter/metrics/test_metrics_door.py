"""The port that Prometheus asks: what it answers, and what nobody can do to it."""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute
from house import house, until
from hypothesis import given
from hypothesis import strategies as st
from playbook import council
from scrapes import HOST, ask

from arbiter.edge.listener import bind
from arbiter.metrics import door as door_module
from arbiter.metrics.door import HEAD_BYTES, MOST_INSIDE, MetricsDoor, judge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

PAGE = b"consilium_something 1\n"


@contextlib.asynccontextmanager
async def opened(door: MetricsDoor) -> AsyncIterator[int]:
    """The door, open; its port."""
    listeners = await bind(HOST, 0, setting="metrics")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(door.serve, listeners)
        yield listeners[0].extra(SocketAttribute.local_port)
        tasks.cancel_scope.cancel()


def a_door(page: bytes = PAGE, **how: Any) -> MetricsDoor:
    return MetricsDoor(lambda: lambda: page, "text/plain; version=1.0.0", **how)


async def test_it_serves_the_page_and_closes() -> None:
    async with opened(a_door()) as port:
        reply = await ask(port)
        assert (reply.status, reply.body) == (200, PAGE)
        assert reply.headers["Content-Type"] == "text/plain; version=1.0.0"
        assert reply.headers["Connection"] == "close"
        assert (await ask(port, b"GET /metrics?name[]=x HTTP/1.0\r\n\r\n")).body == PAGE


ANSWERS = {
    "another page": (b"GET / HTTP/1.1\r\n\r\n", 404),
    "a page below": (b"GET /metrics/ HTTP/1.1\r\n\r\n", 404),
    "a page above": (b"GET /../metrics HTTP/1.1\r\n\r\n", 404),
    "a whole address": (b"GET http://a/metrics HTTP/1.1\r\n\r\n", 404),
    "another method elsewhere": (b"POST / HTTP/1.1\r\n\r\n", 404),
    "HEAD": (b"HEAD /metrics HTTP/1.1\r\n\r\n", 405),
    "POST": (b"POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", 405),
    "CONNECT": (b"CONNECT a:443 HTTP/1.1\r\n\r\n", 404),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "a TLS greeting": (b"\x16\x03\x01\x02\x00" + bytes(200) + b"\r\n\r\n", 400),
    "nothing but an end": (b"\r\n\r\n", 400),
    "no version": (b"GET /metrics\r\n\r\n", 400),
    "lower case": (b"get /metrics HTTP/1.1\r\n\r\n", 400),
    "bytes that are no text": (b"GET /\xff\xfe HTTP/1.1\r\n\r\n", 404),
    "two requests": (b"GET /x HTTP/1.1\r\n\r\nGET /metrics HTTP/1.1\r\n\r\n", 404),
    "a long head": (b"GET /metrics HTTP/1.1\r\nA: " + b"a" * HEAD_BYTES, 431),
    "a long address": (b"GET /" + b"m" * 5000 + b" HTTP/1.1\r\n\r\n", 400),
}


@pytest.mark.parametrize("what", ANSWERS)
async def test_anything_else_is_answered_with_its_code(what: str) -> None:
    request, status = ANSWERS[what]
    async with opened(a_door()) as port:
        reply = await ask(port, request)
        assert reply.status == status
        assert PAGE not in reply.body
        assert ("Allow" in reply.headers) is (status == 405)
        assert (await ask(port)).status == 200


@given(st.binary(max_size=300))
def test_no_request_is_too_strange_to_be_judged(head: bytes) -> None:
    good = head.startswith((b"GET /metrics HTTP/1.", b"GET /metrics?"))
    assert (judge(head) == 200) <= good


async def test_a_head_without_an_end_is_judged_when_the_peer_is_done() -> None:
    async with opened(a_door()) as port, await anyio.connect_tcp(HOST, port) as stream:
        await stream.send(b"GET /metrics HTTP/1.1\r\n")
        await stream.send_eof()
        assert (await stream.receive()).startswith(b"HTTP/1.1 200 ")


async def test_the_silent_are_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "PATIENCE", 0.3)
    async with opened(a_door()) as port, await anyio.connect_tcp(HOST, port) as silent:
        await silent.send(b"GET /metr")
        with anyio.fail_after(20), pytest.raises((anyio.EndOfStream, anyio.BrokenResourceError)):
            await silent.receive()
        assert (await ask(port)).status == 200


async def test_a_byte_now_and_then_buys_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "PATIENCE", 0.5)
    async with opened(a_door()) as port, await anyio.connect_tcp(HOST, port) as slow:
        with anyio.fail_after(20), contextlib.suppress(anyio.BrokenResourceError):
            while True:
                await slow.send(b"a")
                await anyio.sleep(0.05)


async def test_one_that_does_not_read_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "PATIENCE", 0.5)
    door = a_door(bytes(16_000_000))
    async with opened(door) as port:
        raw = socket.create_connection((HOST, port))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        raw.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        await until(lambda: len(door._inside) == 1)
        await until(lambda: not door._inside)
        raw.close()
        assert door.served_at < 0
        monkeypatch.undo()
        assert (await ask(port)).status == 200


async def test_a_hundred_that_wait_keep_nobody_out() -> None:
    door = a_door()
    async with opened(door) as port, contextlib.AsyncExitStack() as crowd:
        for _ in range(100):
            stream = await crowd.enter_async_context(await anyio.connect_tcp(HOST, port))
            await stream.send(b"GET")
        with anyio.fail_after(door_module.PATIENCE - 1):
            assert (await ask(port)).status == 200
        assert len(door._inside) <= MOST_INSIDE


async def test_a_page_is_made_once_however_many_ask_at_once() -> None:
    made = 0

    def make() -> Any:
        nonlocal made
        made += 1
        return lambda: PAGE

    async with opened(MetricsDoor(make, "text/plain", fresh=60)) as port, anyio.create_task_group() as many:
        for _ in range(20):
            many.start_soon(ask, port)
    assert made == 1


async def test_a_bug_in_a_figure_is_said_once_and_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async with opened(MetricsDoor(lambda: lambda: [PAGE][int("x")], "text/plain", fresh=0)) as port:
        for _ in range(3):
            assert (await ask(port)).status == 500
    assert len(caplog.records) == 1
    assert "a bug in the metrics" in caplog.text


async def test_a_debate_goes_on_while_its_metrics_are_besieged(tmp_path: Path) -> None:
    async with (
        house(tmp_path, council(("ada", "bob")), measured=True) as home,
        contextlib.AsyncExitStack() as crowd,
    ):
        port = int(home.ports["metrics"])
        for number in range(100):
            stream = await crowd.enter_async_context(await anyio.connect_tcp(HOST, port))
            with contextlib.suppress(anyio.BrokenResourceError):
                await stream.send(bytes(number * 100) or b"GET /metrics HTTP/1.1\r\n")
        ada, bob = await home.joined("ada", "bob")
        await ada.speaks("First.")
        await bob.speaks("Second.")
        assert (await ask(port)).status == 200
        assert await home.serves()
