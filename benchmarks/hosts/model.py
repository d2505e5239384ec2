"""The five messages of a turn as a reference writes them: dictionaries, orjson, and nothing checked."""

from __future__ import annotations

import os
from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

TOPIC = "Should we rewrite the billing service or wrap it?"


def names(seats: int) -> list[str]:
    """The seats' names, in speaking order."""
    return [f"seat_{number:04}" for number in range(seats)]


def line(kind: str, msg_id: int, **fields: Any) -> bytes:
    """One message as it travels."""
    message = {"protocol_version": 4, "msg_id": f"a-{msg_id}", "type": kind, **fields}
    return orjson.dumps(message, option=orjson.OPT_APPEND_NEWLINE)


@dataclass(slots=True)
class Model:
    """One debate without rules: who speaks next is known, and the last two speeches are the delta."""

    record: int
    """Descriptor of the file that each turn is appended to."""
    turn: int = 0
    _recent: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=2))

    @classmethod
    def recorded_in(cls, folder: Path) -> Model:
        """Begin one, with a new file in ``folder`` as its record."""
        path = folder / f"reference-{os.getpid()}.jsonl"
        return cls(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600))

    def start(self) -> tuple[bytes, bytes]:
        """The next turn's TURN_START and CONTEXT."""
        self.turn += 1
        start = line("TURN_START", self.turn, turn_id=self.turn, phase="OPENING", deadline_ms=3_600_000)
        context = line(
            "CONTEXT",
            self.turn,
            turn_id=self.turn,
            phase="OPENING",
            topic=TOPIC,
            delta=list(self._recent),
        )
        return start, context

    def end(self, speaker: str, said: Iterable[bytes]) -> None:
        """Take the seat's three messages, in any order, and append the turn to the record."""
        text = None
        for each in said:
            text = orjson.loads(each).get("text", text)
        self._recent.append({"from": speaker, "text": text})
        entry = {
            "seq": self.turn,
            "kind": "turn",
            "turn_id": self.turn,
            "participant_id": speaker,
            "text": text,
        }
        os.write(self.record, orjson.dumps(entry, option=orjson.OPT_APPEND_NEWLINE))
