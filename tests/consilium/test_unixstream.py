"""`consilium.unixstream`: a stream that survives peers that come and go at any moment."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

import anyio
import pytest
from anyio.abc import SocketAttribute

from consilium import unixstream
from consilium.unixstream import UnixStream, connect_unix

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@contextlib.contextmanager
def pair() -> Iterator[tuple[UnixStream, UnixStream]]:
    ends = socket.socketpair(socket.AF_UNIX)
    with ends[0], ends[1]:
        yield UnixStream(ends[0]), UnixStream(ends[1])


def listening(path: Path, backlog: int = 8) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(os.fspath(path))
    made.listen(backlog)
    return made


async def test_what_is_sent_arrives_whole_however_much_it_is() -> None:
    data = os.urandom(3_000_000)
    got = bytearray()
    with pair() as (ours, theirs):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ours.send, data)
            while len(got) < len(data):
                got += await theirs.receive(65536)
    assert got == data


async def test_the_end_of_the_peers_sending_is_told_and_the_other_way_still_works() -> None:
    with pair() as (ours, theirs):
        await ours.send_eof()
        with pytest.raises(anyio.EndOfStream):
            await theirs.receive()
        await theirs.send(b"still here")
        assert await ours.receive(5) == b"still"


async def test_a_peer_that_is_gone_is_a_broken_resource() -> None:
    with pair() as (ours, theirs):
        await ours.send(b"unread")
        await theirs.aclose()
        with pytest.raises(anyio.BrokenResourceError):
            await ours.receive()
        with pytest.raises(anyio.BrokenResourceError):
            await ours.send(b"x")


async def test_what_is_closed_here_says_so_to_whoever_uses_it_and_to_whoever_waits() -> None:
    with pair() as (ours, _):
        async with anyio.create_task_group() as tasks:

            async def waits() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await ours.receive()

            tasks.start_soon(waits)
            await anyio.wait_all_tasks_blocked()
            await ours.aclose()
        await ours.aclose()
        for use in (ours.receive, ours.send_eof, lambda: ours.send(b"x")):
            with pytest.raises(anyio.ClosedResourceError):
                await use()


async def test_two_readers_at_once_are_a_mistake() -> None:
    with pair() as (ours, theirs):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ours.receive)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BusyResourceError):
                await ours.receive()
            await theirs.send(b"x")


async def test_cancelling_a_reader_whose_bytes_arrive_loses_nothing() -> None:
    with pair() as (ours, theirs):
        for _ in range(200):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ours.receive)
                for _ in range(5):  # it waits by then; anyio's own way to know looks every 0.1 s
                    await anyio.lowlevel.checkpoint()
                theirs.extra(SocketAttribute.raw_socket).send(b"x")
                tasks.cancel_scope.cancel()
            assert await ours.receive() == b"x"


async def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    with listening(tmp_path / "s", 0) as listener:
        first = await connect_unix(tmp_path / "s")
        async with anyio.create_task_group() as tasks:

            async def second() -> None:
                await (await connect_unix(str(tmp_path / "s"))).aclose()

            tasks.start_soon(second)
            await anyio.sleep(3 * unixstream.BUSY_PAUSE)
            listener.accept()[0].close()
        await first.aclose()


async def test_nobody_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await connect_unix(tmp_path / "s")
    listening(tmp_path / "s").close()
    with pytest.raises(ConnectionRefusedError):
        await connect_unix(tmp_path / "s")
