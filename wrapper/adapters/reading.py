"""What a client's output says, found where its preset says it stands. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from consilium.messages import MAX_COUNT, MAX_USD, Usage
from wrapper.clean import clean_line, clean_text, decode_output

if TYPE_CHECKING:
    from wrapper.adapters.presets import AnswerPlaces

MODEL_CHARS = 200
"""As long as a `messages.Label` may be."""

Json = Any  # whatever a client prints


class Unreadable(ValueError):  # noqa: N818 - a state of the output, told as one
    """Raised when an output is not what the preset says the client prints; the message says how."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One turn as the client tells it: which chat answered, what, and at what cost. ``text`` is cleaned."""

    id: str | None
    text: str
    usage: Usage


def read_answer(output: bytes, places: AnswerPlaces) -> Reading:
    """Find the answer in a client's standard output. Raises `Unreadable`."""
    document = _document(output)
    text = _at(document, places.text)
    if not isinstance(text, str):
        raise Unreadable(f"its output holds no text at {places.text}")
    chat = _at(document, places.id)
    usage = Usage(
        tokens_in=_count(_at(document, places.tokens_in)),
        tokens_out=_count(_at(document, places.tokens_out)),
        tokens_cached=_count(_at(document, places.tokens_cached)),
        usd=_amount(_at(document, places.usd)),
        model=_label(_at(document, places.model)),
    )
    return Reading(chat if isinstance(chat, str) else None, clean_text(text), usage)


def _document(output: bytes) -> Json:
    try:
        # Not strict: clients put raw control characters into strings.
        return json.loads(decode_output(output), strict=False)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"its output is not JSON: {error}") from None


def _at(document: Json, pointer: str | None) -> Json:
    """The value at an RFC 6901 pointer, or None where there is none: to a client, absent is unknown."""
    for step in pointer.split("/")[1:] if pointer is not None else ():
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(key)
        elif isinstance(document, list) and key.isdecimal() and int(key) < len(document):
            document = document[int(key)]
        else:
            return None
    return document if pointer is not None else None


def _count(value: Json) -> int | None:
    """A count that makes sense, or None: unknown is never 0."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MAX_COUNT else None


def _amount(value: Json) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= MAX_USD else None


def _label(value: Json) -> str | None:
    return clean_line(value, MODEL_CHARS) or None if isinstance(value, str) else None
