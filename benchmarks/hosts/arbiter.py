"""The subject: the real Arbiter, as `arbiter.main` builds it, with what a measurement needs different.

Different are: the message rate that a participant may have, the heartbeat (an hour, so that none falls into
a measurement), several debates in one process over one record, and the record without ``--sync``.
"""

from __future__ import annotations

import argparse
import os
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

import anyio
from anyio.abc import SocketAttribute

from arbiter.debate import Debate
from arbiter.disk import RealDisk
from arbiter.edge.listener import Door, HandshakeOutcome, bind
from arbiter.inbox import Inbox
from arbiter.journal import Journal
from arbiter.main import follow
from arbiter.reception import Reception
from arbiter.service import Service
from benchmarks.hosts import common, model
from benchmarks.hosts.fleeting import Fleeting
from benchmarks.texts import english
from consilium.config import Caps, Council, Limits, Roster, RosterSeat
from consilium.credentials import Credentials
from consilium.errors import UserError
from consilium.headseal import HeadSigner
from consilium.messages import DisconnectPolicy
from consilium.profile import CapabilityProfile
from consilium.tls import server_context

if TYPE_CHECKING:
    import ssl

    from anyio.abc import TaskGroup

HOUR = 3600

PROFILES = {
    "participant": CapabilityProfile(
        role="participant",
        names=("*",),
        disconnect_ceiling=DisconnectPolicy.KEEP_ALIVE,
        messages_per_second=10_000,
        burst=100_000,
        max_seats=4096,
        max_connections=100_000,
    )
}
"""A seat that answers at once sends more messages a second than any that thinks."""


@dataclass(slots=True)
class CountingDisk(RealDisk):
    """The real disk; counts the syncs, and how many of them held up the event loop's thread.

    A sync lasts ``at_least`` so many seconds.
    """

    at_least: float = 0.0
    loop_thread: int = field(default_factory=threading.get_ident)
    syncs: int = 0
    syncs_on_loop: int = 0

    def fdatasync(self, descriptor: int) -> None:
        """See `Disk`."""
        self.syncs += 1
        self.syncs_on_loop += threading.get_ident() == self.loop_thread
        until = time.monotonic() + self.at_least
        RealDisk.fdatasync(self, descriptor)
        time.sleep(max(until - time.monotonic(), 0))


def council(seats: int, *, idle: bool, heartbeat: float = HOUR) -> Council:
    """A debate of ``seats`` without an end; an idle one waits for a seat that never comes."""
    limits = Limits(turn_seconds=HOUR, heartbeat_seconds=heartbeat, max_seats=4096)
    if idle:
        roster = Roster(mode="dynamic", required_names=("nobody",))
    else:
        roster = Roster(participants=tuple(RosterSeat(name=name) for name in model.names(seats)))
    topic = english(3500) if idle else model.TOPIC
    return Council(topic=topic, roster=roster, caps=Caps(max_rounds=2**40), limits=limits)


async def hold(args: argparse.Namespace) -> None:
    """Hold the debates until standard input ends."""
    credentials = Credentials.load(args.certs)
    context = server_context(credentials)
    disk = CountingDisk(args.sync_ms / 1000)
    path = args.folder / f"debate-{os.getpid()}.jsonl"
    record: Journal | Fleeting = Fleeting(path, wall_clock)
    if args.sync:
        path = path.with_suffix(".durable.jsonl")
        record = Journal.create(path, signer=HeadSigner.load(credentials), clock=wall_clock, disk=disk)
    watchman = Watchman()
    rules = council(args.seats, idle=args.idle, heartbeat=args.heartbeat)
    async with anyio.create_task_group() as tasks:
        debates = [Debate(f"bench-{n}", rules, arbiter="bench") for n in range(args.debates)]
        ports = [await open_one(tasks, debate, record, context, watchman) for debate in debates]
        common.announce(ports=ports)
        await common.answer(
            lambda: {
                "turns": sum(debate.turn_counter for debate in debates),
                "syncs": disk.syncs,
                "syncs_on_loop": disk.syncs_on_loop,
                "refused": watchman.refused,
                "tasks": len(anyio.get_running_tasks()),
            }
        )
        if isinstance(record, Journal):
            await record.close()
        common.leave()


async def open_one(
    tasks: TaskGroup,
    debate: Debate,
    record: Journal | Fleeting,
    context: ssl.SSLContext,
    watchman: Watchman,
) -> list[int]:
    """Start one debate with a control and a data port of its own; return the two."""
    inbox = Inbox()
    journal = cast("Journal", record)  # the owner of a debate only appends
    reception = Reception(
        inbox.post,
        lambda from_seq: follow(journal, from_seq),
        PROFILES,
        reload=refuse_reload,
        heartbeat=debate.council.limits.heartbeat_seconds,
        clock=time.monotonic,
        wall_clock=wall_clock,
    )
    service = Service(debate, journal, reception, inbox, time.monotonic)
    ports = []
    for handler in (reception.control, reception.data):
        listeners = await bind(common.HOST, 0, setting="a port")
        ports.append(listeners[0].extra(SocketAttribute.local_port))
        tasks.start_soon(Door(lambda: context, handler, watchman.observe).serve, listeners)
    tasks.start_soon(reception.pulse)
    tasks.start_soon(service.run)
    return ports


async def refuse_reload(_session: str, _msg_id: str) -> None:
    """There is nothing to read again here, and no operator to ask for it."""
    raise UserError("this host reloads nothing")


class Watchman:
    """Counts whom the doors refuse, and says what went wrong at them, which nothing should."""

    def __init__(self) -> None:
        self.refused = 0

    def observe(self, outcome: HandshakeOutcome, peer: str, detail: str) -> None:
        """See `Door`."""
        if outcome in {HandshakeOutcome.ACCEPT_FAILED, HandshakeOutcome.HANDLER_FAILED}:
            print(f"{outcome} {peer}: {detail}", file=sys.stderr)
        self.refused += outcome is not HandshakeOutcome.ACCEPTED


def wall_clock() -> float:
    """Seconds since the epoch."""
    return time.time()  # noqa: TID251 - a process of its own, as `arbiter.main` is


def main() -> None:
    """Read the command line and hold the debates."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--certs", type=Path, required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--debates", type=int, default=1)
    parser.add_argument("--seats", type=int, default=3)
    parser.add_argument("--heartbeat", type=float, default=HOUR)
    parser.add_argument("--idle", action="store_true")
    parser.add_argument("--sync", action="store_true")
    parser.add_argument("--sync-ms", type=float, default=0.0)
    anyio.run(hold, parser.parse_args())


if __name__ == "__main__":
    main()
