"""The board on which an Arbiter's figures stand: who counts, who looks, and the door for those who ask."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import anyio

from arbiter.metrics.door import MetricsDoor
from arbiter.metrics.exposition import CONTENT_TYPE, render
from arbiter.metrics.look import Looker, is_over
from arbiter.metrics.tally import Tally

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from anyio.abc import SocketListener

    from arbiter.inbox import Inbox
    from arbiter.journal import Journal
    from arbiter.metrics.look import Look
    from arbiter.reception import Reception
    from arbiter.reload import Reloader
    from arbiter.service import Service

RECENT = 90.0
"""Seconds since the last scrape after which another is not expected."""

LAST_SCRAPE = 20.0
"""Seconds for which an Arbiter that was being scraped waits for its outcome to be fetched."""


class Board:
    """One Arbiter's figures. Make it first: its ``tally`` is the observer that the rest is built with."""

    def __init__(self) -> None:
        self.tally = Tally()
        self._looker: Looker | None = None
        self._shown: Look | None = None
        self._fetched = anyio.Event()
        self._door = MetricsDoor(self._make, CONTENT_TYPE)
        self._door.on_served = self._note_served

    def look_at(
        self,
        service: Service,
        reception: Reception,
        journal: Journal,
        inbox: Inbox,
        reloader: Reloader,
        *,
        clock: Callable[[], float],
        wall_clock: Callable[[], float],
    ) -> None:
        """Show these from now on."""
        self._looker = Looker(service, reception, journal, inbox, reloader, self.tally, clock, wall_clock)

    async def serve(self, listeners: Sequence[SocketListener]) -> None:
        """Answer who asks, until cancelled."""
        await self._door.serve(listeners)

    async def last_scrape(self, seconds: float = LAST_SCRAPE) -> None:
        """Wait until the outcome was fetched, if somebody fetches figures; at most so long.

        An Arbiter ends with its debate. Without this, what that came to would stand in no figure.
        """
        if anyio.current_time() - self._door.served_at < RECENT:
            with anyio.move_on_after(seconds):
                await self._fetched.wait()

    def _make(self) -> Callable[[], bytes]:
        assert self._looker is not None, "look_at comes before serve"
        self._shown = self._looker()
        return partial(render, self._shown)

    def _note_served(self) -> None:
        if self._shown is not None and is_over(self._shown):
            self._fetched.set()
