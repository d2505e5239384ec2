"""The loop of `consilium up`: start the processes, follow the record, steer by the plan, and clear away.

1. One task decides (`_follow`); the watch and the processes post to its one inbox.
2. However it ends, the debate is closed through the administrative channel where that is possible, and
   `Driver.run` returns when every process is gone.
3. The first interruption closes in good order; a second one only hurries it.
"""

from __future__ import annotations

import math
import shlex
import signal
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import anyio
import orjson

from consilium.config import TurnPolicy
from consilium.errors import ChannelError, ConsiliumError, UserError
from consilium.messages import Resume, Status, StatusRequest, Terminate
from consilium.records import Stored, unseal
from council import operator
from council.causes import first_cause
from council.course import FAULT, Course, Verdict
from council.giving import give
from council.plan import Starter, course
from council.processes import Ended, Processes, Said, processes
from council.screen import SIGNALLED, TICK_SECONDS
from council.startup import MODEL_STAGE, OPERATOR, Startup

if TYPE_CHECKING:
    from collections.abc import Callable

    from anyio.abc import TaskGroup, TaskStatus
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from council.live import View
    from council.plan import Order
    from council.startup import Endpoint, Job

    Post: TypeAlias = MemoryObjectSendStream["Happening"]
    Inbox: TypeAlias = MemoryObjectReceiveStream["Happening"]

SEATING_SECONDS = 120.0
"""How long the seats may take until the debate starts."""

SETTLE_SECONDS = 1.0
"""After the first sign of trouble, how long the other signs of the same trouble are waited for."""

CLOSE_SECONDS = 3.0
"""How long TERMINATE may take, and then how long the processes may take to end by themselves."""

LOOK_SECONDS = 2.0
"""How often the Arbiter is asked where it stands: of a disk that refuses records, no record tells."""

INBOX = 100

INTERRUPTED = "INTERRUPTED"
MAX_REASON = 2000


@dataclass(frozen=True, slots=True)
class WatchEnded:
    """The operator's connection has ended."""

    why: str


Happening = Stored | Said | Ended | WatchEnded | Status


class Driver:
    """Holds one debate, from the first process to the last."""

    def __init__(self, job: Job, view: View, *, busy: Callable[[], bool] = lambda: False) -> None:
        """``busy`` says that the view has more to show than its reader takes: it then gets no ticks."""
        self._job = job
        self._view = view
        self._busy = busy
        self._course = Course(seat.name for seat in job.council.participants)
        self._starter = Starter(job.council)
        self._by_hand = job.council.turn_policy is TurnPolicy.MANUAL
        self._work = anyio.CancelScope()
        self._courtesy = anyio.CancelScope()
        self._interrupted = 0
        self._closing = False
        self._running: Processes | None = None
        self._admin: Endpoint | None = None

    def interrupt(self, code: int) -> None:
        """Close the debate and end with ``code``; once that is under way, hurry."""
        if self._interrupted or self._closing:
            self._courtesy.cancel()
            if self._running is not None:
                self._running.hurry()
        else:
            self._interrupted = code
            self._work.cancel()

    async def run(self) -> Verdict:
        """Hold the debate; return what it came to. Every process has ended by then."""
        post, inbox = anyio.create_memory_object_stream[Happening](INBOX)
        with post, inbox, first_cause():
            async with anyio.create_task_group() as tasks:
                await tasks.start(self._hear_signals)
                tasks.start_soon(self._tick)
                async with processes(self._job.space.logs, post) as running:
                    self._running = running
                    verdict = await self._hold(running, post, inbox)
                    await self._close(running, verdict)
                tasks.cancel_scope.cancel()
        return verdict

    # --- beside the debate ---------------------------------------------------------------------------

    async def _hear_signals(self, *, task_status: TaskStatus[None]) -> None:
        numbers = [signal.SIGINT, signal.SIGTERM]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # nohup means what it says
            numbers.append(signal.SIGHUP)
        with anyio.open_signal_receiver(*numbers) as signals:
            task_status.started()
            async for number in signals:
                self.interrupt(SIGNALLED + number)

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_SECONDS)
            if not self._busy():
                self._view.tick(time.monotonic())

    # --- the debate ----------------------------------------------------------------------------------

    async def _hold(self, running: Processes, post: Post, inbox: Inbox) -> Verdict:
        with self._work:
            try:
                return await self._debate(running, post, inbox)
            except UserError as error:
                return Verdict(1, FAULT, error.message, error.hint)
            except ConsiliumError as error:
                self._course.connection_lost(str(error))
                return await self._settled(inbox)
        # An interruption may come when there is nothing left to interrupt.
        return self._course.over or Verdict(self._interrupted, INTERRUPTED, "interrupted", self._course.stood)

    async def _debate(self, running: Processes, post: Post, inbox: Inbox) -> Verdict:
        self._admin = await Startup(self._job, running, self._doing).run(self._order_course)
        async with operator.connect(*self._admin) as admin, anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch, admin, post.clone())
            tasks.start_soon(self._look, admin, post.clone())
            verdict = await self._follow(admin, tasks, inbox)
            tasks.cancel_scope.cancel()
        return verdict

    async def _order_course(self, admin: Endpoint) -> None:
        """Order the whole course of the debate, before there is a seat that could outrun it."""
        async with operator.connect(*admin) as there:
            for order in course(self._job.council):
                await self._order(there, order)

    async def _settled(self, inbox: Inbox) -> Verdict:
        """The verdict after the connection failed, with the ends of processes that may explain it."""
        with anyio.move_on_after(SETTLE_SECONDS):
            while True:
                happening = await inbox.receive()
                if isinstance(happening, Ended):
                    self._note_end(happening)
        return self._course.verdict()

    async def _watch(self, admin: operator.Operator, post: Post) -> None:
        with post:
            try:
                async for record in admin.watch():
                    await post.send(unseal(orjson.dumps(record)))
                await post.send(WatchEnded("the Arbiter closed it"))
            except ConsiliumError as error:
                await post.send(WatchEnded(str(error)))

    async def _look(self, admin: operator.Operator, post: Post) -> None:
        with post, suppress(ConsiliumError):  # the watch meets the same end, and tells it
            while True:
                await anyio.sleep(LOOK_SECONDS)
                status = await admin.request(StatusRequest())
                assert isinstance(status, Status)
                await post.send(status)

    async def _follow(self, admin: operator.Operator, tasks: TaskGroup, inbox: Inbox) -> Verdict:
        """Take what happens until the debate is over, or cannot go on."""
        limit = anyio.current_time() + SEATING_SECONDS
        while self._course.over is None:
            with anyio.CancelScope(deadline=limit) as scope:
                happening = await inbox.receive()
            if scope.cancelled_caught:
                break
            was_well = not self._course.troubled
            self._take(happening, admin, tasks)
            if self._course.troubled and was_well:
                limit = anyio.current_time() + SETTLE_SECONDS
            elif self._course.started and was_well:
                limit = math.inf
        return self._course.verdict()

    def _take(self, happening: Happening, admin: operator.Operator, tasks: TaskGroup) -> None:
        match happening:
            case WatchEnded(why=why):
                self._course.connection_lost(why)
            case Ended():
                self._note_end(happening)
            case Status(debate_state=state, reason=reason):
                self._course.seen_at(state, reason)
            case Stored(entry=entry):
                self._course.observe(entry)
                self._view.record(happening, time.monotonic())
                if self._by_hand and self._course.awaits_a_choice(entry):
                    self._doing(f"waiting for you to say who speaks: {self._next_command()}")
                start = self._starter.observe(entry)
                if start is not None:
                    tasks.start_soon(self._order, admin, start)

    def _next_command(self) -> str:
        """What an operator types, in another terminal, to give somebody the floor (§7.4, ``manual``)."""
        assert self._admin is not None
        bundle = str(self._job.space.certs / OPERATOR)
        port = str(self._admin.port)
        return f"{shlex.join(['consilium', 'admin', '--bundle', bundle, '--port', port, 'next'])} SEAT"

    def _note_end(self, ended: Ended) -> None:
        assert self._running is not None
        self._course.process_ended(ended, self._running.last_words(ended.process))

    async def _order(self, admin: operator.Operator, order: Order | Resume) -> None:
        """Send what the plan orders."""
        with suppress(ChannelError):  # the watch meets the same end, and tells it
            await give(admin, order, self._say)

    # --- the end -------------------------------------------------------------------------------------

    async def _close(self, running: Processes, verdict: Verdict) -> None:
        """Let everything end in good order; what does not is ended by leaving `processes`."""
        self._closing = True
        self._doing("closing")
        with self._courtesy:
            if self._course.over is None and not await self._terminated(verdict.cause):
                return  # nobody knows that it is over, and nobody would go
            await running.until_gone(CLOSE_SECONDS, above=MODEL_STAGE)

    async def _terminated(self, reason: str) -> bool:
        """Close the debate, if there is one that answers."""
        if self._admin is None:
            return False
        with anyio.move_on_after(CLOSE_SECONDS):
            # On a connection of its own: the other one may be what broke.
            try:
                async with operator.connect(*self._admin) as admin:
                    await admin.request(Terminate(reason=reason[:MAX_REASON]))
            except ConsiliumError:
                return False
            return True
        return False

    def _doing(self, what: str) -> None:
        self._view.doing(what, time.monotonic())

    def _say(self, sentence: str) -> None:
        self._view.say(sentence, time.monotonic())
