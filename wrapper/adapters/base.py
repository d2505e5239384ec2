"""The contract between a seat and its client or its person (§3.3.B), in its asynchronous form.

What only a person needs has a default that does nothing: a program is asked for text, and asks for nothing.
"""

from __future__ import annotations

import secrets
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from wrapper.envelope import assemble
from wrapper.prompts import phase_instruction

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TextIO

    from consilium.messages import Context, Status, Usage
    from wrapper.events import PersonEvent


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn that was assigned: its content, when it is over, on the event loop's clock, and its bounds.

    ``limit_chars`` bounds each contribution that is shown, ``speech_bytes`` the text that is sent; ``first``
    says that nobody has spoken in this debate yet.
    """

    context: Context
    deadline: float
    limit_chars: int
    speech_bytes: int
    first: bool = False

    def prompt(self) -> str:
        """The envelope in which a program is given it (§14.5)."""
        return assemble(
            self.context,
            # Whoever wrote the delta cannot know this, and so cannot imitate our markers.
            secrets.token_hex(16),
            limit_chars=self.limit_chars,
            phase_instruction=phase_instruction(self.context.phase),
            first=self.first,
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What one turn produced: cleaned text, and what the client says it cost; None where it does not say.

    ``refused`` tells, a line each, what the client wanted to do in this turn and was not allowed to.
    ``skipped`` is a person's choice not to speak; a client that says nothing has failed.
    """

    text: str
    usage: Usage | None = None
    refused: tuple[str, ...] = ()
    skipped: bool = False


class Requests(Protocol):
    """Where a person's requests go: the seat's inbox."""

    async def send(self, item: PersonEvent) -> None:
        """Post one; wait while the inbox is full."""


class Person(Protocol):
    """The person at a seat, as those see it who write beside it on the same terminal."""

    @property
    def screen(self) -> TextIO:
        """Where lines for the person are written, without harm to the one that is being typed."""

    @property
    def owns_stdout(self) -> bool:
        """Whether standard output is the person's, so that nothing else may be written there."""

    def hear(self, event: Mapping[str, Any]) -> None:
        """Take a line of the seat's life."""


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

    async def take_turn(self, turn: Turn) -> Answer:
        """Have the participant take ``turn``: a program by its envelope. Raises `AdapterFault`."""
        return await self.send_turn(turn.prompt())

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

    @property
    def person(self) -> Person | None:
        """Who sits here, where that is no program."""
        return None

    async def attend(self, seat: Requests) -> None:  # noqa: B027 - a program asks for nothing
        """Run beside the seat from its start until it ends, and bring ``seat`` what the person asks for."""

    def show(self, status: Status) -> None:  # noqa: B027 - nor has it eyes
        """Show where the debate stands (§5.7), which was asked for."""
