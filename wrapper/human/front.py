"""The seam between a seat's person and what they sit at: a terminal now, a page or a full screen as well.

`wrapper.human.adapter` knows what a turn, a skip and an absence are, and a front knows none of it: it brings
what was entered, and shows what it is given.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TextIO

    from consilium.console import Console
    from wrapper.human.commands import Command


class Mood(StrEnum):
    """What the person's text is for at the moment."""

    WAITING = "waiting"
    TURN = "turn"
    AWAY = "away"


@dataclass(frozen=True, slots=True)
class Entered:
    """The person sent a text."""

    text: str


@dataclass(frozen=True, slots=True)
class Pressed:
    """The person pressed the key of a command."""

    command: Command


@dataclass(frozen=True, slots=True)
class Ended:
    """The person says that there is no more; ``final`` if there can be none. ``reason`` is a sentence."""

    reason: str
    final: bool = False


Input = Entered | Pressed | Ended


class Front(Protocol):
    """What a person sits at."""

    @property
    def screen(self) -> TextIO:
        """Where others may write lines, without harm to what is being typed."""

    @property
    def owns_stdout(self) -> bool:
        """Whether the person reads from standard output."""

    @property
    def waits(self) -> bool:
        """Whether a text that is entered between turns waits for the next one; else it is given back."""

    @property
    def touched(self) -> float:
        """When the person last did something, on the event loop's clock."""

    @property
    def draft(self) -> str:
        """What is typed and not sent."""

    def open(self) -> None:
        """Take possession. Raises `AdapterFault` where nobody can type anything."""

    async def serve(self, take: Callable[[Input], Awaitable[None]]) -> None:
        """Bring whatever is entered to ``take``, one after the other, until there can be no more."""

    def show(self, page: Callable[[Console], None]) -> None:
        """Have ``page`` write what the person shall read; all of it appears at once."""

    def invite(self, mood: Mood) -> None:
        """Say what is awaited of the person."""

    def give_back(self, text: str) -> None:
        """Put ``text``, which was not sent, ahead of what is typed meanwhile."""

    def begin(self, text: str) -> None:
        """Have the person complete ``text``; what is typed comes back after that."""

    def close(self) -> None:
        """Leave everything as it was found. May be called at any time, and twice."""
