"""The Arbiter's process: read the council file, open the transcript and three doors, hold the debate."""

from __future__ import annotations

import contextlib
import logging
import signal
import socket
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import anyio
import orjson
from anyio.abc import SocketAttribute

from arbiter.edge.listener import Door, HandshakeOutcome, bind
from arbiter.edge.sockets import open_sockets
from arbiter.folder import transcript_in
from arbiter.inbox import Inbox
from arbiter.observe import NOBODY
from arbiter.opening import begin
from arbiter.options import parser as parser  # noqa: PLC0414 - `consilium completion` asks for it here
from arbiter.reception import Reception
from arbiter.reload import Configuration, Reloader, Sources
from arbiter.service import Service
from arbiter.vitals import vitals
from consilium.bucket import TokenBucket
from consilium.dumps import forbid_core_dumps
from consilium.errors import TranscriptError, UserError
from consilium.health import Report, place
from consilium.lifeline import until_orphaned
from consilium.messages import DebateState
from consilium.naming import MOMENT
from consilium.ports import Ports
from consilium.reporting import report_health
from consilium.settings import load_council

if TYPE_CHECKING:
    import argparse
    import ssl
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from pathlib import Path

    from anyio.abc import SocketListener, TaskGroup, TaskStatus

    from arbiter.debate import Debate
    from arbiter.debate.effects import Effect
    from arbiter.debate.events import Event
    from arbiter.edge.limits import Doors
    from arbiter.journal import Journal
    from arbiter.metrics.board import Board
    from arbiter.observe import Observer
    from consilium.config import Council

    Listeners = Mapping[str, Sequence[SocketListener]]

GRACE = 5.0
"""Seconds that everybody has to hear how it ended, before the Arbiter closes."""

LOG_RATE, LOG_BURST = 5.0, 20
"""Log lines about strangers at the door, a second and at once: a flood of them fills no disk."""

GOOD_OUTCOMES = (DebateState.FINISHED, DebateState.STOPPED_BY_CAP)

log = logging.getLogger("arbiter")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the Arbiter. Returns 0 after an outcome, 1 when it was stopped before. Raises `UserError`."""
    forbid_core_dumps()
    args = parser().parse_args(argv)
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    return anyio.run(_run, args)


@dataclass(slots=True)
class House:
    """What the three doors and the owner share, and what came of the debate.

    ``outcome`` is None until there is one; ``whole`` is false once the transcript is known not to be.
    ``board`` is there where somebody measures.
    """

    service: Service
    reception: Reception
    journal: Journal
    reloader: Reloader
    board: Board | None = None
    outcome: DebateState | None = None
    whole: bool = True

    @property
    def exit_code(self) -> int:
        """0 for a debate that came to a good end with a record that proves it."""
        return 0 if self.outcome in GOOD_OUTCOMES and self.whole else 1

    async def hold(self, grace: float = GRACE) -> None:
        """Hold the debate to its outcome, seal its record, and let everybody hear of it."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.reception.pulse)
            tasks.start_soon(self.reloader.watch)
            self.outcome = await self.service.run()
            tasks.start_soon(self.service.linger)
            await self.close()  # Whoever watches has seen the end once the record has one.
            await self.reception.farewell(grace)
            if self.board is not None:
                await self.board.last_scrape()
            tasks.cancel_scope.cancel()

    async def close(self) -> None:
        """Seal the transcript, if that is still to do."""
        with anyio.CancelScope(shield=True):
            try:
                await self.journal.close()
            except TranscriptError as failure:
                self.whole = False
                log.error("the transcript is not complete: %s", failure)  # noqa: TRY400 - said in full


async def _run(args: argparse.Namespace) -> int:
    tcp = ("host", "admin_host", "control_port", "data_port", "admin_port")
    places = ("listen", "socket_dir", *tcp, "metrics_host", "metrics_port")
    ports = Ports.of(**{name: getattr(args, name) for name in places})
    council = load_council(args.council)
    sources = Sources(args.certs, args.profiles, args.crl)
    configuration = Configuration.read(sources, _wall_clock())
    async with contextlib.AsyncExitStack() as stack:
        listeners = dict(await _listen(ports, stack))
        if ports.metrics_port is not None:
            listeners["metrics"] = await _bind("metrics", ports.metrics_host, ports.metrics_port, stack)
        board = _board(ports)
        observer = NOBODY if board is None else board.tally
        path = args.transcript or _next_in(args.transcripts, council)
        begun = await begin(council, configuration, path, observer, _wall_clock)
        house = _build(*begun, stack, configuration, sources=sources, board=board)
        try:
            async with anyio.create_task_group() as tasks:
                await tasks.start(_stop_on_signal, tasks.cancel_scope)
                await tasks.start(_reload_on_signal, house.reloader)
                if (health := place(args.health_file)) is not None:
                    tasks.start_soon(report_health, health, lambda: _health(begun[0], house))
                if args.lifeline:
                    tasks.start_soon(_stop_when_orphaned, tasks.cancel_scope)
                _open_doors(tasks, listeners, house)
                _announce(listeners)
                await house.hold()
                tasks.cancel_scope.cancel()
        finally:
            await house.close()
    if house.outcome is None:
        log.warning("stopped before the debate had an outcome; the transcript ends where it stood")
    return house.exit_code


async def _listen(ports: Ports, stack: contextlib.AsyncExitStack) -> Listeners:
    """Open the three ports or sockets, to be closed by ``stack``. Raises `UserError`."""
    if ports.sockets is not None:
        return await stack.enter_async_context(open_sockets(ports.sockets))
    hosts = {"control": ports.host, "data": ports.host, "admin": ports.admin_host or ports.host}
    return {
        name: await _bind(name, host, getattr(ports, f"{name}_port"), stack) for name, host in hosts.items()
    }


async def _bind(
    name: str, host: str, port: int, stack: contextlib.AsyncExitStack
) -> Sequence[SocketListener]:
    """Listen on a port, until ``stack`` is left. Raises `UserError`."""
    listeners = await bind(host, port, setting=f"--{name}-port or CONSILIUM_{name.upper()}_PORT")
    for listener in listeners:
        await stack.enter_async_context(listener)
    return listeners


def _board(ports: Ports) -> Board | None:
    """Who measures, if a port says that somebody shall."""
    if ports.metrics_port is None:
        return None
    from arbiter.metrics.board import Board  # noqa: PLC0415 - nobody else pays for prometheus_client

    return Board()


def _next_in(folder: Path, council: Council) -> Path:
    """The transcript of this run among those in ``folder``. Raises `UserError`."""
    return transcript_in(folder, moment=time.strftime(MOMENT), topic=council.topic)


def _health(debate: Debate, house: House) -> Report:
    since, now = house.service.busy_since, time.monotonic()
    return vitals(debate, house.journal, house.reloader, busy_since=since, now=now)


def _build(
    debate: Debate,
    journal: Journal,
    first: list[Effect],
    stack: contextlib.AsyncExitStack,
    configuration: Configuration,
    *,
    sources: Sources,
    board: Board | None,
) -> House:
    observer = NOBODY if board is None else board.tally
    inbox = stack.enter_context(Inbox())

    async def tell(event: Event) -> None:
        with contextlib.suppress(anyio.BrokenResourceError):  # The owner is gone, and needs to know no more.
            await inbox.post(event)

    reloader = Reloader(configuration, sources, tell, journal.sign_with, _wall_clock, observer=observer)
    reception = Reception(
        inbox.post,
        lambda from_seq: follow(journal, from_seq),
        configuration.configured.profiles,
        reload=reloader,
        heartbeat=debate.council.limits.heartbeat_seconds,
        clock=time.monotonic,
        wall_clock=_wall_clock,
        observer=observer,
    )
    reception.obey(reloader)
    service = Service(debate, journal, reception, inbox, time.monotonic, first=first, observer=observer)
    if board is not None:
        board.look_at(
            service, reception, journal, inbox, reloader, clock=time.monotonic, wall_clock=_wall_clock
        )
    return House(service, reception, journal, reloader, board)


def _wall_clock() -> float:
    return time.time()  # noqa: TID251 - the Arbiter's one wall clock: record times, certificate ends


async def follow(journal: Journal, from_seq: int) -> AsyncGenerator[dict[str, Any], None]:
    """The record from ``from_seq`` on, until it is closed. Raises `TranscriptError`."""
    lots = cast("AsyncGenerator[list[bytes], None]", journal.follow(from_seq))
    async with contextlib.aclosing(lots):
        async for lines in lots:
            for line in lines:
                yield orjson.loads(line)


def _open_doors(
    tasks: TaskGroup,
    listeners: Listeners,
    house: House,
) -> None:
    observe = _Porter(NOBODY if house.board is None else house.board.tally)
    reception = house.reception

    def context() -> ssl.SSLContext:
        return house.reloader.current.context

    def limits() -> Doors:
        return house.reloader.current.configured.doors

    handlers = {"control": reception.control, "data": reception.data, "admin": reception.admin}
    if house.board is not None:
        tasks.start_soon(house.board.serve, listeners["metrics"])
    for name, handler in handlers.items():
        tasks.start_soon(Door(context, handler, observe, limits).serve, listeners[name])


class _Porter:
    """Writes down who was turned away at the door, as far as the log can take it."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._bucket = TokenBucket(LOG_RATE, LOG_BURST)
        self._silenced = 0

    def __call__(self, outcome: HandshakeOutcome, peer: str, detail: str) -> None:
        self._observer.shook_hands(outcome)
        if outcome is HandshakeOutcome.ACCEPTED:
            return
        if not self._bucket.take(time.monotonic()):
            self._silenced += 1
            return
        if self._silenced:
            log.warning("%d more connections were turned away", self._silenced)
            self._silenced = 0
        log.warning("%s %s: %s", outcome, peer, detail)


def _announce(listeners: Listeners) -> None:
    places = {name: _place(each[0]) for name, each in listeners.items()}
    # Whoever started us may be gone: the lifeline says what that means.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.buffer.write(orjson.dumps({"event": "listening", **places}) + b"\n")
        sys.stdout.flush()


def _place(listener: SocketListener) -> int | str:
    """A port, or the path of a socket."""
    if listener.extra(SocketAttribute.family) == socket.AF_UNIX:
        return str(listener.extra(SocketAttribute.local_address))
    return listener.extra(SocketAttribute.local_port)


async def _stop_on_signal(scope: anyio.CancelScope, *, task_status: TaskStatus[None]) -> None:
    """Stop at the first signal. A second one, while the transcript is being sealed, finds no handler."""
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        task_status.started()
        async for _ in signals:
            scope.cancel()
            return


async def _reload_on_signal(reloader: Reloader, *, task_status: TaskStatus[None]) -> None:
    with anyio.open_signal_receiver(signal.SIGHUP) as signals:
        task_status.started()
        async for _ in signals:
            with contextlib.suppress(UserError):  # It has been logged.
                await reloader()


async def _stop_when_orphaned(scope: anyio.CancelScope) -> None:
    await until_orphaned()
    scope.cancel()
