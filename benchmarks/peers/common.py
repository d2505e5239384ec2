"""What every peer does: say that it is ready, take the turns it is asked for, say how long they took."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import orjson

from benchmarks.hosts.model import TOPIC, names
from benchmarks.texts import discourse

if TYPE_CHECKING:
    from collections.abc import Iterator

SEATS = 3
SPEAKERS = names(SEATS)
SPEECH_CHARS = 1700
"""As long as our own seats' speeches."""

SAID = discourse(400 * SPEECH_CHARS)


@dataclass(frozen=True, slots=True)
class Taken:
    """Some turns. ``turns_s`` is what each took; ``cpu_s`` what they cost this process, in seconds."""

    turns_s: list[float]
    cpu_s: float


def speech(turn: int) -> str:
    """What is said in ``turn``; it begins again after 400 turns."""
    start = turn * SPEECH_CHARS % len(SAID)
    return SAID[start : start + SPEECH_CHARS]


def topic() -> str:
    """What the debate is about."""
    return TOPIC


def ready() -> None:
    """Tell the parent that turns may be asked for."""
    answer({"ports": []})


def questions() -> Iterator[int]:
    """How many turns the parent wants, again and again, until it closes our standard input. Blocks."""
    for line in sys.stdin.buffer:
        yield int(orjson.loads(line)["turns"])


def answer(facts: object) -> None:
    """Print one JSON line for the parent."""
    sys.stdout.buffer.write(orjson.dumps(facts) + b"\n")
    sys.stdout.flush()
