"""One turn's life (§6): assigned, acknowledged, spoken, ended. It ends once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.errors import ErrorCode, PeerError

if TYPE_CHECKING:
    from consilium.messages import Phase, Usage


@dataclass(slots=True)
class OpenTurn:
    """The turn that is open. Times are on the debate's own clock, in seconds.

    ``heard`` is how far into the discourse its CONTEXT reached: the seat's cursor, once it ends well.
    """

    turn_id: int
    participant_id: str
    phase: Phase
    started: float
    deadline: float
    heard: int
    text: str | None = None
    usage: Usage | None = None
    refused: tuple[str, ...] = ()
    ended: bool = False
    announced: bool = False

    def speak(self, text: str, usage: Usage | None) -> None:
        """Take the turn's speech. Raises `PeerError` on a second one."""
        if self.text is not None:
            raise PeerError(ErrorCode.TURN_MISMATCH, f"turn {self.turn_id} already has its SPEECH")
        self.text = text
        self.usage = usage or self.usage

    def end(self, *, speech: bool, usage: Usage | None, refused: tuple[str, ...] = ()) -> None:
        """Take the TURN_END, which may announce a speech. Raises `PeerError` on a second one."""
        if self.ended:
            raise PeerError(ErrorCode.TURN_MISMATCH, f"turn {self.turn_id} already has its TURN_END")
        self.ended = True
        self.announced = speech
        self.usage = self.usage or usage
        self.refused = refused

    @property
    def is_over(self) -> bool:
        """Whether nothing more is awaited.

        The channels are two connections: a TURN_END that announces a speech may overtake it.
        """
        return self.ended and (self.text is not None or not self.announced)
