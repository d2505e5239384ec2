"""Many seats in one process, which do as they are told: a line of JSON is an order, and gets one in answer.

    {"join": [[control, data], ["name", ...]]}   take these seats; answers when all of them are bound
    {"storm": ["name", ...]}                     cut these off, let them all come back at once
    {"raw": [port, count]}                       as many bare connections at once to an echo
    {"hush": true}                               whoever has the floor keeps it, and says nothing
    {"part": true}                               all connections are let go
    {}                                           nothing

Every answer says how many seconds the order took, and how the seats are.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import orjson

from benchmarks.hosts import common
from benchmarks.hosts.attendee import Attendee, Manners
from benchmarks.hosts.model import line
from benchmarks.texts import discourse
from consilium.credentials import Credentials
from consilium.tls import TlsStream, client_context

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from anyio.abc import SocketStream, TaskGroup

PING = line("PING", 0, ts=0)


class Crowd:
    """The seats, by name, and the task group that they live in."""

    def __init__(self, manners: Manners, tasks: TaskGroup) -> None:
        self._manners = manners
        self._tasks = tasks
        self._seats: dict[str, Attendee] = {}

    async def obey(self, order: dict[str, Any]) -> dict[str, Any]:
        """Carry one order out; return the answer."""
        began = anyio.current_time()
        before = sum(seat.attempts for seat in self._seats.values())
        for verb, words in order.items():
            await getattr(self, f"_{verb}")(words)
        return {
            "seconds": anyio.current_time() - began,
            "attempts": sum(seat.attempts for seat in self._seats.values()) - before,
            "seats": len(self._seats),
            "turns": self._manners.turns,
            "lost": self._manners.lost,
            "beats": {name: beats_of(seat) for name, seat in self._seats.items()},
        }

    async def _join(self, words: tuple[Sequence[int], list[str]]) -> None:
        ports, names = words
        coming = {f"{ports[0]}/{name}": Attendee(ports, name, self._manners) for name in names}
        self._seats |= coming
        await self._come(coming.values())

    async def _storm(self, names: list[str]) -> None:
        chosen = [self._seats[name] for name in names]
        for seat in chosen:
            await seat.cut()
        await self._come(chosen)

    async def _come(self, seats: Iterable[Attendee]) -> None:
        for seat in seats:
            self._tasks.start_soon(seat.live)
        for seat in seats:
            await seat.bound.wait()

    async def _raw(self, words: tuple[int, int]) -> None:
        port, count = words
        opened: list[SocketStream] = []

        async def open_one() -> None:
            raw = await anyio.connect_tcp(common.HOST, port)
            opened.append(raw)
            context = self._manners.context
            stream = await TlsStream.handshake(raw, context, server_side=False, server_hostname=common.HOST)
            await stream.send(PING)
            await stream.receive()

        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(open_one)
        for raw in opened:
            await anyio.aclose_forcefully(raw)

    async def _hush(self, words: bool) -> None:  # noqa: FBT001 - as it stands in the order
        self._manners.hushed = words

    async def _part(self, _words: object) -> None:
        for seat in self._seats.values():
            await seat.cut()


def beats_of(seat: Attendee) -> dict[str, float]:
    """How one heart beats."""
    beats = seat.beats
    return {
        "count": beats.count,
        "missed": beats.missed,
        "worst_gap": beats.worst_gap,
        "worst_pong": beats.worst_pong,
    }


async def attend(args: argparse.Namespace) -> None:
    """Obey until standard input ends."""
    folder: Path = args.seat
    context = client_context(Credentials.load(folder))
    said = discourse(2000 * args.speech_chars)
    manners = Manners(context, args.interval, args.pace, said, args.speech_chars, hushed=args.hushed)
    async with anyio.create_task_group() as tasks:
        crowd = Crowd(manners, tasks)
        common.announce(ports=[])
        while order := await anyio.to_thread.run_sync(common.question):
            common.announce(**await crowd.obey(orjson.loads(order)))
        common.leave()


def main() -> None:
    """Read the command line and attend."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--seat", type=Path, required=True)
    parser.add_argument("--interval", type=float, default=1.0)
    parser.add_argument("--pace", type=float, default=1.0)
    parser.add_argument("--speech-chars", type=int, default=300)
    parser.add_argument("--hushed", action="store_true")
    anyio.run(attend, parser.parse_args())


if __name__ == "__main__":
    main()
