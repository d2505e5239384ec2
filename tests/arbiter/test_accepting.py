"""`arbiter.edge.accepting`: a listener of either kind hands over who connects, until it is closed."""

from __future__ import annotations

import contextlib
import os
import socket
from typing import TYPE_CHECKING

import anyio
import pytest
from house import until

from arbiter.edge.accepting import Listener
from arbiter.edge.tcp import TcpStream
from consilium.unixstream import UnixStream

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from anyio.abc import SocketStream

pytestmark = pytest.mark.anyio


def tcp(_: Path) -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def unix(folder: Path) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.bind(os.fspath(folder / "s"))
    made.listen()
    return made


@pytest.mark.parametrize(("listening", "stream"), [(tcp, TcpStream), (unix, UnixStream)], ids=["tcp", "unix"])
async def test_a_listener_hands_over_each_who_connects_until_it_is_closed(
    listening: Callable[[Path], socket.socket],
    stream: Callable[[socket.socket], SocketStream],
    tmp_path: Path,
) -> None:
    below = listening(tmp_path)
    listener = Listener(below, stream)
    accepted: list[SocketStream] = []
    ended = anyio.Event()

    async def accept() -> None:
        with contextlib.suppress(anyio.ClosedResourceError):
            while True:
                accepted.append(await listener.accept())
        ended.set()

    with contextlib.ExitStack() as clients:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(accept)
            for _ in range(20):
                client = clients.enter_context(socket.socket(below.family))
                client.connect(below.getsockname())
            await until(lambda: len(accepted) == 20)
            await listener.aclose()
            with anyio.fail_after(20):
                await ended.wait()
        await listener.aclose()
        with pytest.raises(anyio.ClosedResourceError):
            await listener.accept()
        assert below.fileno() < 0
        for each in accepted:
            await each.aclose()
