"""Transcripts for tests: entries of a debate, sealed lines, a head for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from consilium.messages import Meta, Phase, Usage
from consilium.records import (
    GENESIS,
    AnyEntry,
    EventName,
    EventRecord,
    Head,
    HeaderRecord,
    TurnOutcome,
    TurnRecord,
    digest,
    seal,
    timestamp,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pydantic import JsonValue

DEBATE = "d-2f91"
START = 1_790_000_000.0
SCEPTIC = "sceptic_AB12CD34"
BUILDER = "builder_77AA11BB"
HUMAN = "ana_0F0F0F0F"

HOSTILE = 'a"}\n{"turn_id": 9}\u2028\u2029\x00\x1b[2J\x7f\x85\u202e\u200b😀'
"""Text that must survive a record and must not survive the way to a terminal."""


def header(**council: JsonValue) -> HeaderRecord:
    rules: dict[str, JsonValue] = {"caps": {"max_rounds": 3, "max_tokens": 9000, "max_seconds": None}}
    return HeaderRecord(
        debate_id=DEBATE,
        topic="Should the billing service be rewritten?",
        council=rules | council,
        arbiter="spiffe://council.local/arbiter/main",
    )


def event(
    name: EventName, seat: str | None = None, /, *, turn: int | None = None, **data: JsonValue
) -> EventRecord:
    return EventRecord(event=name, participant_id=seat, turn_id=turn, data=data)


def turn(
    turn_id: int,
    seat: str = SCEPTIC,
    *,
    outcome: TurnOutcome = TurnOutcome.SPEECH,
    phase: Phase = Phase.OPENING,
    text: str | None = "Rewriting loses what the old code knows.",
    tokens: tuple[int | None, int | None] | None = (900, 100),
    meta: Meta | None = None,
    detail: str | None = None,
    usage: Usage | None = None,
    refused: tuple[str, ...] = (),
) -> TurnRecord:
    return TurnRecord(
        turn_id=turn_id,
        participant_id=seat,
        phase=phase,
        outcome=outcome,
        meta=meta or Meta(brand="claude", model="sonnet", effort="deep", role_label="sceptic"),
        tokens=None if tokens is None else {"in": tokens[0], "out": tokens[1]},
        usage=usage,
        duration_s=12.5,
        text=text if outcome is TurnOutcome.SPEECH else None,
        detail=detail,
        refused=refused,
    )


def joined(seat: str, **data: JsonValue) -> EventRecord:
    meta: dict[str, JsonValue] = {"brand": "claude", "model": "sonnet", "role_label": "sceptic"}
    fields: dict[str, JsonValue] = {"name": seat.rsplit("_", 1)[0], "required": True, "meta": meta}
    return EventRecord(event=EventName.PARTICIPANT_JOINED, participant_id=seat, data=fields | data)


def debate() -> list[AnyEntry]:
    """A short debate with one of everything."""
    human = Meta(adapter="human", role_label="chair")
    coder = Meta(brand="qwen", model="coder", role_label="builder")
    return [
        header(),
        joined(SCEPTIC),
        joined(
            BUILDER, pseudonym="Speaker B", meta={"brand": "qwen", "model": "coder", "role_label": "builder"}
        ),
        joined(HUMAN, required=False, meta={"adapter": "human", "role_label": "chair"}),
        event(EventName.DEBATE_STARTED),
        event(EventName.TURN_STARTED, SCEPTIC, turn=1, phase="OPENING", deadline_ms=120_000),
        turn(1),
        turn(2, BUILDER, text=HOSTILE, tokens=None, meta=coder),
        event(EventName.ROUND_COMPLETED, round=1),
        event(EventName.PHASE_CHANGED, phase="REBUTTAL", previous="OPENING"),
        event(EventName.MODERATOR_STEERING, text="Name the cost\nof waiting."),
        turn(3, HUMAN, outcome=TurnOutcome.SKIP, phase=Phase.REBUTTAL, tokens=None, meta=human),
        event(EventName.PARTICIPANT_FAULT, BUILDER, turn=4, reason="stalled", prompt_sent="maybe"),
        turn(
            4,
            BUILDER,
            outcome=TurnOutcome.FAILED,
            phase=Phase.REBUTTAL,
            detail="stalled",
            tokens=None,
            meta=coder,
        ),
        event(EventName.DEBATE_PAUSED, reason="a turn failed", seats=[BUILDER]),
        event(EventName.DEBATE_RESUMED),
        turn(5, SCEPTIC, phase=Phase.REBUTTAL, text="Then wrap it first.", tokens=(1200, 80)),
        event(EventName.ROUND_COMPLETED, round=2),
        event(EventName.DEBATE_ENDED, outcome="FINISHED", cap=None, reason="the operator closed it"),
    ]


def sealed(entries: Iterable[AnyEntry]) -> list[bytes]:
    """The lines of a file that holds ``entries``, one second apart, each with its newline."""
    lines: list[bytes] = []
    prev = GENESIS
    for seq, entry in enumerate(entries):
        line = seal(entry, seq=seq, prev=prev, ts=timestamp(START + seq))
        prev = digest(line)
        lines.append(line + b"\n")
    return lines


def head_of(lines: Sequence[bytes]) -> Head:
    """An unsigned head that vouches for all of ``lines``."""
    return Head(debate_id=DEBATE, count=len(lines), last=digest(lines[-1].removesuffix(b"\n")))


def write(path: Path, lines: Sequence[bytes]) -> Path:
    path.write_bytes(b"".join(lines))
    return path


def split(data: bytes) -> list[bytes]:
    """Cut bytes into lines as a file does: each with its newline, the last perhaps without."""
    return [line for line in data.replace(b"\n", b"\n\xff").split(b"\xff") if line]
