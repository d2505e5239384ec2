"""`arbiter.edge.tcp`: a stream that is read as it comes, and still neither loses nor hoards anything."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketAttribute

from arbiter.edge.tcp import MOST, TcpStream

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio

MUCH = os.urandom(3_000_000)


def listening() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


@contextlib.contextmanager
def pair() -> Iterator[tuple[TcpStream, socket.socket]]:
    """Our end, and a peer's blocking socket."""
    with (
        listening() as listener,
        socket.create_connection(listener.getsockname()) as peer,
        listener.accept()[0] as ours,
    ):
        yield TcpStream(ours), peer


async def test_what_is_sent_arrives_whole_in_both_directions_however_much_it_is() -> None:
    got = bytearray()
    with pair() as (ours, peer):
        theirs = TcpStream(peer)
        for sender, receiver in ((ours, theirs), (theirs, ours)):
            got.clear()
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(sender.send, MUCH)
                while len(got) < len(MUCH):
                    got += await receiver.receive(5000)
            assert got == MUCH


async def test_a_peer_whose_bytes_nobody_takes_has_to_wait() -> None:
    with pair() as (ours, peer):
        peer.setblocking(False)
        peer.send(b"first")
        assert await ours.receive() == b"first"
        sent = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                sent += peer.send(MUCH)
                await anyio.sleep(0.01)
        assert sent > 4 * MOST
        assert MOST <= ours._size < 2 * MOST
        got = bytearray()
        while len(got) < sent:
            got += await ours.receive()
        assert got == (MUCH * (sent // len(MUCH) + 1))[:sent]
        assert ours._size == 0


async def test_small_messages_are_not_held_back() -> None:
    with pair() as (ours, _):
        below: socket.socket = ours.extra(SocketAttribute.raw_socket)
        assert below.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


async def test_the_end_of_the_peers_sending_comes_after_what_was_sent_and_the_other_way_still_works() -> None:
    with pair() as (ours, peer):
        peer.sendall(b"last words")
        peer.shutdown(socket.SHUT_WR)
        assert await ours.receive(4) == b"last"
        assert await ours.receive() == b" words"
        for _ in range(2):
            with pytest.raises(anyio.EndOfStream):
                await ours.receive()
        await ours.send(b"heard")
        await ours.send_eof()
        assert peer.recv(10) == b"heard"
        assert peer.recv(10) == b""


async def test_a_reset_is_a_broken_resource_with_the_systems_reason() -> None:
    with pair() as (ours, peer):
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        peer.close()
        for _ in range(2):
            with pytest.raises(anyio.BrokenResourceError) as broken:
                await ours.receive()
            assert isinstance(broken.value.__cause__, ConnectionResetError)
        with pytest.raises(anyio.BrokenResourceError):
            await ours.send(b"x")
        await ours.send_eof()


async def test_what_is_closed_here_says_so_to_whoever_uses_it_and_to_whoever_waits() -> None:
    with pair() as (ours, _):
        async with anyio.create_task_group() as tasks:

            async def reads() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await ours.receive()

            async def writes() -> None:
                with pytest.raises(anyio.ClosedResourceError):
                    await ours.send(100 * MUCH)

            tasks.start_soon(reads)
            tasks.start_soon(writes)
            await anyio.wait_all_tasks_blocked()
            await ours.aclose()
        await ours.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await ours.receive()
        with pytest.raises(anyio.ClosedResourceError):
            await ours.send(b"x")


async def test_whoever_sends_without_end_leaves_room_for_others_and_can_be_cancelled() -> None:
    with pair() as (ours, peer):
        peer.settimeout(20)
        async with anyio.create_task_group() as tasks:

            async def sends() -> None:
                while True:
                    await ours.send(b"x" * 100)

            tasks.start_soon(sends)
            for _ in range(20):
                await anyio.lowlevel.checkpoint()
                peer.recv(MOST)
            tasks.cancel_scope.cancel()


async def test_a_cancelled_scope_sends_nothing() -> None:
    with pair() as (ours, peer):
        with anyio.CancelScope() as scope:
            scope.cancel()
            await ours.send(b"x")
        assert scope.cancelled_caught
        peer.setblocking(False)
        with pytest.raises(BlockingIOError):
            peer.recv(1)


async def test_two_readers_at_once_are_a_mistake() -> None:
    with pair() as (ours, peer):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ours.receive)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(anyio.BusyResourceError):
                await ours.receive()
            peer.send(b"x")


async def test_cancelling_a_reader_whose_bytes_arrive_loses_nothing() -> None:
    with pair() as (ours, peer):
        for _ in range(200):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(ours.receive)
                await anyio.wait_all_tasks_blocked()
                peer.send(b"x")
                tasks.cancel_scope.cancel()
            assert await ours.receive() == b"x"
