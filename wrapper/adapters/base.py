"""The contract between a seat and its client or its person (§3.3.B), in its asynchronous form."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.messages import Usage


@dataclass(frozen=True, slots=True)
class Answer:
    """What one turn produced: cleaned text, and what the client says it cost; None where it does not say.

    ``refused`` tells, a line each, what the client wanted to do in this turn and was not allowed to.
    """

    text: str
    usage: Usage | None = None
    refused: tuple[str, ...] = ()


class ParticipantAdapter(ABC):
    """One seat's chat. One turn at a time; `open` comes first, `close` last, and both may be called twice.

    A client's failure is an `AdapterFault`, which says whether the prompt may have reached the client. A turn
    that is cancelled leaves nothing running, and is never tried again by the adapter.
    """

    @abstractmethod
    async def open(self, system_prompt: str) -> None:
        """Make this seat's chat ready: the one of an earlier run where it can be resumed, else a new one.

        Raises `AdapterFault`. Nothing is sent before the first turn.
        """

    @abstractmethod
    async def send_turn(self, text: str) -> Answer:
        """Have the chat answer ``text``; never with empty text. Raises `AdapterFault`."""

    @abstractmethod
    async def restart(self, system_prompt: str) -> None:
        """Give up the chat and begin a new one: a cold restart, which only the operator orders (§6.6).

        `memory_lost` is True from here on. Raises `AdapterFault`.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of the chat without ending it: an ordinary close can be resumed. Never raises."""

    @property
    @abstractmethod
    def memory_lost(self) -> bool:
        """Whether this seat had a chat that it cannot or may not resume (§3.3.B)."""
