"""What came of a turn, and what a check says of it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from consilium.errors import AdapterFault
    from consilium.messages import Fault, PromptSent
    from council.conformance.provider.script import Heard
    from council.conformance.provider.stub import Request
    from wrapper.adapters.base import Answer

SHOWN_CHARS = 70
"""What is shown of a text, to tell which one it is."""


class Failed(Exception):  # noqa: N818 - what a check says, not a failure of ours
    """Raised when what a check says does not hold; the message tells what was seen instead."""


class NotApplicable(Exception):  # noqa: N818 - as above
    """Raised where there is nothing to check; the message tells why."""


def need(holds: object, why: str) -> None:
    """Raise `Failed` unless it ``holds``."""
    if not holds:
        raise Failed(why)


def need_text(turn: Turn, expected: str) -> None:
    """Raise `Failed` unless the turn was answered by just that."""
    said = turn.answered.text
    need(said == expected, f"{turn.shown} was answered by {_short(said)}, not by {_short(expected)}")


def need_fault(turn: Turn, kind: Fault, *sent: PromptSent) -> AdapterFault:
    """The turn's fault. Raises `Failed` unless it is of that kind, and says so of the prompt."""
    fault = turn.failed
    told, expected = f"{fault.fault}, prompt sent: {fault.prompt_sent}", " or ".join(sent)
    right = fault.fault is kind and fault.prompt_sent in sent
    need(right, f"{turn.shown} is told as {told}, not as {kind}, prompt sent: {expected} ({fault.detail})")
    return fault


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: what was asked, what came of it, what reached the provider, what runs afterwards."""

    prompt: str
    answer: Answer | None
    fault: AdapterFault | None
    requests: tuple[Request, ...]
    left: tuple[str, ...]
    kept: str | None
    """The chat that the seat keeps after this turn."""
    seconds: float

    @property
    def answered(self) -> Answer:
        """The answer. Raises `Failed` if there is none."""
        if self.answer is None:
            what = f"{self.fault.fault}: {self.fault.detail}" if self.fault else "nothing"
            raise Failed(f"{self.shown} was answered by {what}")
        return self.answer

    @property
    def failed(self) -> AdapterFault:
        """The fault. Raises `Failed` if the turn was answered."""
        if self.fault is None:
            raise Failed(f"{self.shown} was answered: {_short(self.answered.text)}")
        return self.fault

    @property
    def heard(self) -> tuple[Heard, ...]:
        """The model requests of this turn."""
        return tuple(request.heard for request in self.requests if request.heard is not None)

    @property
    def last(self) -> Heard:
        """The last model request of this turn. Raises `Failed` if there was none."""
        need(self.heard, f"{self.shown} reached no model")
        return self.heard[-1]

    @property
    def shown(self) -> str:
        """The prompt, cut short."""
        return _short(self.prompt)


def _short(text: str) -> str:
    return repr(text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}...")
