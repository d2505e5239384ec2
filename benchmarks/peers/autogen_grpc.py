"""Reference of P8: AutoGen's distributed runtime, in three processes: host, agents, and who calls on them.

A turn is one call: the context goes to an agent in another process through the host, the speech comes back.
There is no TLS, nobody proves who they are, and nothing is recorded.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import socket
import subprocess
import sys
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autogen_core import (
    AgentId,
    MessageContext,
    RoutedAgent,
    message_handler,
    try_get_known_serializers_for_type,
)
from autogen_ext.runtimes.grpc import GrpcWorkerAgentRuntime, GrpcWorkerAgentRuntimeHost

from benchmarks.peers.common import SPEAKERS, Taken, answer, questions, ready, speech, topic

if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE = 20.0
"""Seconds that the other two processes may take to be there."""


@dataclass
class Context:
    """What a seat is sent for a turn."""

    turn_id: int
    phase: str
    topic: str
    delta: list[str]


@dataclass
class Speech:
    """What it says."""

    turn_id: int
    text: str


class Speaker(RoutedAgent):
    """A seat that answers at once."""

    @message_handler
    async def on_context(self, message: Context, _ctx: MessageContext) -> Speech:
        """Take a turn."""
        return Speech(message.turn_id, speech(message.turn_id))


async def connected(address: str) -> GrpcWorkerAgentRuntime:
    """A worker that is connected to the host and knows the two messages."""
    worker = GrpcWorkerAgentRuntime(address)
    for kind in (Context, Speech):
        worker.add_message_serializer(try_get_known_serializers_for_type(kind))
    await worker.start()
    return worker


async def host(address: str) -> None:
    """Pass messages on, until the end of standard input."""
    GrpcWorkerAgentRuntimeHost(address).start()
    await asyncio.to_thread(reachable, address)
    print(flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def agents(address: str) -> None:
    """Hold the three seats, until the end of standard input."""
    worker = await connected(address)
    for name in SPEAKERS:
        await Speaker.register(worker, name, lambda: Speaker("a seat"))
    print(flush=True)
    await asyncio.to_thread(sys.stdin.read)


class Caller:
    """Gives the seats their turns."""

    def __init__(self, worker: GrpcWorkerAgentRuntime) -> None:
        self._worker = worker
        self._turn = 0
        self._recent: deque[str] = deque(maxlen=2)

    async def take(self, turns: int) -> Taken:
        """Take ``turns`` turns, one after the other."""
        taken = []
        used = time.process_time()
        for _ in range(turns):
            then = time.perf_counter()
            context = Context(self._turn, "OPENING", topic(), list(self._recent))
            seat = AgentId(SPEAKERS[self._turn % len(SPEAKERS)], "default")
            said = await self._worker.send_message(context, seat)
            self._recent.append(said.text)
            self._turn += 1
            taken.append(time.perf_counter() - then)
        return Taken(taken, time.process_time() - used)


async def call(address: str) -> None:
    """Answer the parent's questions."""
    caller = Caller(await connected(address))
    ready()
    asked = questions()
    while turns := await asyncio.to_thread(next, asked, 0):
        answer(await caller.take(turns))


def reachable(address: str) -> None:
    """Return once somebody listens at ``address``."""
    name, _, port = address.rpartition(":")
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection((name, int(port))).close()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return


@contextmanager
def beside(role: str, address: str) -> Iterator[None]:
    """Run one of the other two processes, from when it is ready."""
    command = [sys.executable, "-m", "benchmarks.peers.autogen_grpc", role, address]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            if not process.stdout.readline():
                raise RuntimeError(f"the {role} did not start")
            yield
        finally:
            process.kill()


def free_port() -> int:
    """A port of the loopback interface that nobody has just now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def main() -> None:
    """Be the caller, and start the other two; or be one of these."""
    logging.disable()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("role", nargs="?", choices=["host", "agents"])
    parser.add_argument("address", nargs="?", default=f"127.0.0.1:{free_port()}")
    args = parser.parse_args()
    if args.role == "host":
        asyncio.run(host(args.address))
    elif args.role == "agents":
        asyncio.run(agents(args.address))
    else:
        with beside("host", args.address), beside("agents", args.address):
            asyncio.run(call(args.address))


if __name__ == "__main__":
    main()
