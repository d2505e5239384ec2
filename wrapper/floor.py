"""The seat's turn and its chat (§5.4, §6, §13.5): the part of the seat machine that knows no connection.

1. One chat, one turn at a time: nothing is given to the adapter before the turn is assigned, and nothing
   while an older turn, or a restart, is still at work in the chat.
2. For a revoked turn, and for one whose connection is gone, nothing is sent, ever; every other turn is
   answered with one TURN_END or TURN_FAILED.

Control and data are two connections: what was sent on one may overtake what was sent on the other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from consilium import messages
from consilium.messages import Fault, PromptSent
from wrapper import events
from wrapper.clean import cut_at_bytes
from wrapper.events import CancelTurn, News, Note, RestartChat, RunTurn, SendControl, SendData, Tell, Weight

if TYPE_CHECKING:
    from wrapper.events import Effect

MAX_REASON_BYTES = 2000
"""What is kept of a client's or a person's reason; `messages.Reason` admits as many characters."""


class BrokenOrder(Exception):  # noqa: N818 - what the Arbiter did, told as one
    """Raised for a message that cannot come at this point; the words say which, and after what."""


class Chat(StrEnum):
    """What the adapter's one chat is doing."""

    FREE = "free"
    RUNNING = "running"
    STOPPING = "stopping"
    RESTARTING = "restarting"
    BROKEN = "broken"


@dataclass(slots=True)
class _OpenTurn:
    """The turn that is ours: assigned, not answered, not revoked."""

    turn_id: int
    deadline: float
    context: messages.Context | None


def as_reason(text: str) -> str:
    """Make ``text`` fit a `messages.Reason`, whatever it holds."""
    return text.encode("utf-8", "replace")[:MAX_REASON_BYTES].decode("utf-8", "ignore")


class Floor:
    """The open turn, if there is one, and the chat that works on it, or on an older one."""

    def __init__(self, *, speech_bytes: int) -> None:
        """``speech_bytes`` bounds the text of a SPEECH."""
        self.speech_bytes = speech_bytes
        self._turn: _OpenTurn | None = None
        self._last_turn = -1
        self._early: messages.Context | None = None
        self._chat = Chat.FREE
        self._chat_turn = -1
        self._restart_wanted = False
        self._broken = ""

    # --- what the Arbiter says -----------------------------------------------------------------------

    def assigned(self, message: messages.TurnStart, now: float) -> list[Effect]:
        """TURN_START. Raises `BrokenOrder`."""
        if message.turn_id <= self._last_turn:
            raise BrokenOrder(f"TURN_START {message.turn_id} came after turn {self._last_turn}")
        effects = self._withdraw(f"turn {message.turn_id} was assigned instead")
        self._last_turn = message.turn_id
        early, self._early = self._early, None
        if early is not None and early.turn_id > message.turn_id:
            self._early, early = early, None
        context = early if early is not None and early.turn_id == message.turn_id else None
        self._turn = _OpenTurn(message.turn_id, now + message.deadline_ms / 1000, context)
        # §5.4: the wrapper acknowledges that it has the turn; the chat may still be busy with an older one.
        effects.append(SendControl(messages.Ack(turn_id=message.turn_id)))
        return [*effects, *self.advance()]

    def told(self, message: messages.Context) -> list[Effect]:
        """CONTEXT. Raises `BrokenOrder`."""
        if message.turn_id > self._last_turn:
            if self._early is not None and message.turn_id <= self._early.turn_id:
                raise BrokenOrder(f"CONTEXT {message.turn_id} came after CONTEXT {self._early.turn_id}")
            self._early = message
            return []
        if self._turn is None or self._turn.turn_id != message.turn_id:
            return [Note(Weight.DEBUG, f"CONTEXT {message.turn_id} came for a turn that is over")]
        if self._turn.context is not None:
            raise BrokenOrder(f"CONTEXT {message.turn_id} came twice")
        self._turn.context = message
        return self.advance()

    def revoked(self, message: messages.TurnRevoked) -> list[Effect]:
        """TURN_REVOKED. Raises `BrokenOrder`."""
        if message.turn_id > self._last_turn:
            raise BrokenOrder(f"TURN_REVOKED {message.turn_id} came without its TURN_START")
        if self._turn is None or self._turn.turn_id != message.turn_id:
            late = f"it was revoked, which crossed its end: {message.reason}"
            return [
                Note(Weight.INFO, f"turn {message.turn_id} was revoked after its end: {message.reason}"),
                Tell(News.FAILED, {"turn_id": message.turn_id, "reason": late}),
            ]
        return self._withdraw(f"it was revoked: {message.reason}")

    def cold(self) -> list[Effect]:
        """SEAT_RECOVERY: start cold, once the chat is free."""
        self._restart_wanted = True
        return self.advance()

    # --- what becomes of it --------------------------------------------------------------------------

    def answered(self, event: events.Answered) -> list[Effect]:
        """The chat produced text: SPEECH and TURN_END."""
        text = cut_at_bytes(event.text, self.speech_bytes)
        if not text.strip():
            # An empty answer is a fault, never a skip: nobody chose it.
            what, seen = "the answer holds no text", len(event.text.encode("utf-8", "replace"))
            empty = events.Failed(event.turn_id, Fault.EMPTY_ANSWER, PromptSent.YES, what, seen)
            return self.failed(replace(empty, refused=event.refused))
        speech = messages.Speech(turn_id=event.turn_id, text=text, usage=event.usage)
        end = messages.TurnEnd(turn_id=event.turn_id, speech=True, refused=event.refused)
        spoke = Tell(News.SPOKE, {"turn_id": event.turn_id, "words": len(text.split())})
        return self._finish(event.turn_id, [SendData(speech), SendControl(end), spoke])

    def passed(self, event: events.Passed) -> list[Effect]:
        """The participant chose not to speak: TURN_END alone."""
        end = messages.TurnEnd(turn_id=event.turn_id, usage=event.usage, refused=event.refused)
        return self._finish(event.turn_id, [SendControl(end), Tell(News.PASSED, {"turn_id": event.turn_id})])

    def skipped(self, event: events.Skipped, participant_id: str) -> list[Effect]:
        """A person let the turn go by: HUMAN_SKIP for the record (§5.5), and TURN_END alone (§6.2)."""
        skip = messages.SystemEvent(event="HUMAN_SKIP", participant_id=participant_id)
        end = messages.TurnEnd(turn_id=event.turn_id)
        told = Tell(News.PASSED, {"turn_id": event.turn_id})
        return self._finish(event.turn_id, [SendData(skip), SendControl(end), told])

    def failed(self, event: events.Failed) -> list[Effect]:
        """The chat produced no turn: TURN_FAILED."""
        return self._finish(event.turn_id, self._report(event))

    def stopped(self, event: events.Stopped) -> list[Effect]:
        """Nothing is left of a turn that was cancelled."""
        unasked = events.Failed(event.turn_id, Fault.INTERNAL, PromptSent.MAYBE, "the turn was stopped")
        return self._finish(event.turn_id, self._report(unasked))

    def restarted(self) -> bool:
        """Whether a restart was under way; the chat is free then, and new."""
        if self._chat is not Chat.RESTARTING:
            return False
        self._chat = Chat.FREE
        return True

    def restart_failed(self, detail: str) -> str:
        """What the next turn will fail with, if a restart was under way.

        The former chat is given up all the same. The seat stays, so that the operator can see the cause and
        try again.
        """
        if self._chat is not Chat.RESTARTING:
            return ""
        self._chat = Chat.BROKEN
        self._broken = f"the chat could not be started cold: {detail}"
        return self._broken

    def leave(self, why: str) -> list[Effect]:
        """Forget the session's turns: its connection is gone, and the next session counts on its own."""
        effects = self._withdraw(why)
        self._early = None
        self._last_turn = -1
        return effects

    def stop(self) -> list[Effect]:
        """Stop whatever runs: the seat ends."""
        return [CancelTurn(self._chat_turn)] if self._chat is Chat.RUNNING else []

    def advance(self) -> list[Effect]:
        """Give the chat its next piece of work, if it is free and there is one."""
        if self._chat in (Chat.RUNNING, Chat.STOPPING, Chat.RESTARTING):
            return []
        if self._restart_wanted:
            self._restart_wanted = False
            self._chat = Chat.RESTARTING
            return [RestartChat()]
        turn = self._turn
        if turn is None:
            return []
        if self._chat is Chat.BROKEN:
            self._turn = None
            return self._report(events.Failed(turn.turn_id, Fault.START_FAILED, PromptSent.NO, self._broken))
        if turn.context is None:
            return []
        self._chat = Chat.RUNNING
        self._chat_turn = turn.turn_id
        speaking = Tell(News.SPEAKING, {"turn_id": turn.turn_id, "phase": turn.context.phase.value})
        return [RunTurn(turn.context, turn.deadline), speaking]

    def _report(self, event: events.Failed) -> list[Effect]:
        detail = as_reason(event.detail)
        failed = messages.TurnFailed(
            turn_id=event.turn_id,
            fault=event.fault,
            prompt_sent=event.prompt_sent,
            detail=detail,
            partial_bytes=event.partial_bytes,
            resets_at=event.resets_at,
            refused=event.refused,
        )
        reason = f"{event.fault}: {detail}"
        back = f" (its quota comes back: {event.resets_at})" if event.resets_at else ""
        return [
            Note(Weight.WARNING, f"turn {event.turn_id} failed: {reason}{back}"),
            SendControl(failed),
            Tell(
                News.FAILED, {"turn_id": event.turn_id, "reason": reason, "resets_at": event.resets_at or ""}
            ),
        ]

    def _finish(self, turn_id: int, outcome: list[Effect]) -> list[Effect]:
        """The chat is done with ``turn_id``; ``outcome`` counts only if the turn is still ours."""
        if self._chat not in (Chat.RUNNING, Chat.STOPPING) or self._chat_turn != turn_id:
            return [Note(Weight.DEBUG, f"turn {turn_id} is not at work; its result is dropped")]
        if self._chat is Chat.RUNNING:
            self._turn = None
        else:
            outcome = []
        self._chat = Chat.FREE
        return [*outcome, *self.advance()]

    def _withdraw(self, why: str) -> list[Effect]:
        """Give up the open turn, if there is one: nothing will be sent for it."""
        if self._turn is None:
            return []
        turn_id = self._turn.turn_id
        self._turn = None
        effects: list[Effect] = [
            Note(Weight.WARNING, f"turn {turn_id} is given up: {why}"),
            Tell(News.FAILED, {"turn_id": turn_id, "reason": why}),
        ]
        if self._chat is Chat.RUNNING:
            self._chat = Chat.STOPPING
            effects.append(CancelTurn(self._chat_turn))
        return effects
