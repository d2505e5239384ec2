"""One debate's record, followed across the Arbiter's restarts (`consilium admin watch`).

1. The next record is the one after the last that was taken: nothing is shown twice, nothing is left out.
2. A connection that ends is made anew, after pauses that grow and differ; a refusal is final.
3. The same debate is followed or none: after each new connection, the header is compared first.
"""

from __future__ import annotations

import secrets
from contextlib import aclosing, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast

import anyio
import orjson

from consilium.errors import ChannelBroken, ChannelError, ConsiliumError, PeerError, TranscriptError
from consilium.messages import Status, StatusRequest
from consilium.records import HeaderRecord, unseal
from council.causes import first_cause
from council.course import Course, Verdict
from council.orders import entitled, refused
from council.status import OVER, state

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from consilium.records import Stored
    from council.live import View
    from council.operator import Operator

    Records = AsyncGenerator[dict[str, Any], None]

FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0
"""Seconds between two attempts to connect: doubled each time, each with jitter."""

GIVE_UP_SECONDS = 600.0
"""How long an Arbiter may be away."""

PROBE_SECONDS, ANSWER_SECONDS = 20.0, 10.0
"""So long may the record be silent until the Arbiter is asked whether it lives, and so long may it take."""

LINK_LOST = 4
"""Exit code: no connection, or none any more."""

REFUSED = 1


def spread() -> float:
    """A factor around 1: who lost one Arbiter at one moment comes back at different ones."""
    return secrets.SystemRandom().uniform(0.5, 1.5)


class Companion(Protocol):
    """Who takes part in what is followed. What it raises ends the connection as the watch would."""

    async def arrive(self, admin: Operator) -> None:
        """Do what is to be done on a new connection, before the record is asked for."""

    async def hear(self, record: Stored, admin: Operator) -> None:
        """Take one record, after it was shown."""


class Follower:
    """Follows one debate. Call `run` once."""

    def __init__(
        self,
        connect: Callable[[], AbstractAsyncContextManager[Operator]],
        view: View,
        *,
        from_seq: int,
        clock: Callable[[], float],
        jitter: Callable[[], float] = spread,
        companion: Companion | None = None,
        patience: float = 0.0,
    ) -> None:
        """``clock`` is monotonic, in seconds; ``jitter`` gives a factor around 1.

        ``patience`` is how many seconds an Arbiter is waited for that has not been met yet.
        """
        self._connect = connect
        self._view = view
        self._next = from_seq
        self._clock = clock
        self._jitter = jitter
        self._companion = companion
        self._patience = patience
        self._course = Course(())
        self._debate: str | None = None
        self._pause = FIRST_PAUSE
        self._away_since: float | None = None
        self._why = ""
        self._ending: Verdict | None = None

    async def run(self) -> Verdict:
        """Follow until the debate is over, or can be followed no more; return what came of it.

        The code is the exit code: that of the outcome, `REFUSED`, or `LINK_LOST`.
        """
        self._view.doing("connecting to the Arbiter", self._clock())
        while self._ending is None:
            try:
                await self._session()
                why = "it closed the connection"
            except PeerError as refusal:
                return await self._final(refusal)
            except ChannelError as error:
                why = str(error)
            if self._ending is None:
                await self._wait(why)
        return self._ending

    async def _session(self) -> None:
        """Take records over one connection, to its end or to that of the debate."""
        if self._next:
            async with self._records(0) as (_, records):
                self._take_header(await anext(records, None))
            if self._ending is not None:
                return
        async with self._records(self._next) as (admin, records):
            if self._companion is not None:
                await self._companion.arrive(admin)
            async for record in records:
                stored = self._take(record)
                if self._ending is not None:
                    return
                if stored is not None and self._companion is not None:
                    await self._companion.hear(stored, admin)

    @asynccontextmanager
    async def _records(self, from_seq: int) -> AsyncIterator[tuple[Operator, Records]]:
        with first_cause():
            async with self._connect() as admin, anyio.create_task_group() as tasks:
                tasks.start_soon(self._probe, admin)
                async with aclosing(cast("Records", admin.watch(from_seq))) as records:
                    yield admin, records
                tasks.cancel_scope.cancel()

    async def _probe(self, admin: Operator) -> None:
        """Ask now and then whether somebody is there: a machine that is gone closes no connection."""
        while True:
            await anyio.sleep(PROBE_SECONDS)
            with anyio.move_on_after(ANSWER_SECONDS) as limit, suppress(PeerError):
                await admin.request(StatusRequest())
            if limit.cancelled_caught:
                raise ChannelBroken(f"the Arbiter did not answer for {ANSWER_SECONDS:g} s")

    # --- records -------------------------------------------------------------------------------------

    def _take(self, record: dict[str, Any]) -> Stored | None:
        try:
            stored = unseal(orjson.dumps(record))
        except TranscriptError:
            told = f"Record {self._next} is of a kind that this version does not know; left out."
            self._view.say(told, self._clock())
            self._next += 1
            return None
        if isinstance(stored.entry, HeaderRecord):
            self._meet(stored.entry)
        self._next = stored.seq + 1
        self._pause, self._away_since = FIRST_PAUSE, None
        self._course.observe(stored.entry)
        self._view.record(stored, self._clock())
        self._ending = self._ending or self._course.over
        return stored

    def _take_header(self, record: dict[str, Any] | None) -> None:
        """Take the first record of a debate that is followed from a later one."""
        if record is None:
            return  # the connection ended before it came; the next one will too, or will not
        header = unseal(orjson.dumps(record)).entry
        assert isinstance(header, HeaderRecord)
        known = self._debate is not None
        self._meet(header)
        if known and self._ending is None:
            self._away_since = None
            self._view.doing(f"following again, from record {self._next}", self._clock())

    def _meet(self, header: HeaderRecord) -> None:
        if self._debate is None:
            self._debate = header.debate_id
            self._view.say(f"Debate {header.debate_id}: {header.topic}", self._clock())
        elif header.debate_id != self._debate:
            cause = f"another debate is held there now, {header.debate_id}; {self._debate} was watched"
            self._ending = Verdict(LINK_LOST, "ANOTHER_DEBATE", cause, "watch again to follow the new one")

    # --- ends ----------------------------------------------------------------------------------------

    async def _wait(self, why: str) -> None:
        """Let some time pass before the next attempt; end it when there have been enough of them."""
        now = self._clock()
        if self._away_since is None:
            self._away_since, self._pause, self._why = now, FIRST_PAUSE, ""
        if self._debate is None and now - self._away_since >= self._patience:
            self._ending = Verdict(LINK_LOST, "LINK_LOST", why)
            return
        if now - self._away_since > GIVE_UP_SECONDS:
            stood = f"it did not come back within {GIVE_UP_SECONDS / 60:g} minutes; its transcript says more"
            self._ending = Verdict(LINK_LOST, "LINK_LOST", why, stood)
            return
        if why != self._why:
            self._why = why
            self._view.doing(f"waiting for the Arbiter: {why}", now)
        await anyio.sleep(self._pause * self._jitter())
        self._pause = min(2 * self._pause, LONGEST_PAUSE)

    async def _final(self, refusal: PeerError) -> Verdict:
        """A refusal: for good, or since the debate has ended and its record is closed."""
        status = None
        if refusal.in_reply_to is not None:
            with suppress(ConsiliumError):
                async with self._connect() as admin:
                    status = await admin.request(StatusRequest())
        if isinstance(status, Status) and status.debate_state in OVER:
            code = 0 if status.debate_state != "ERROR" else 1
            return Verdict(code, status.debate_state, f"the debate has ended: {state(status)}")
        return Verdict(REFUSED, "REFUSED", refused("watch", refusal), entitled(refusal))
