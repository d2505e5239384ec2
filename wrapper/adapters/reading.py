"""What a client's output says, found where its preset says it stands. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.messages import MAX_COUNT, MAX_LABEL, MAX_REFUSED, MAX_USD, REFUSED_CHARS
from wrapper.adapters.parts import COUNTERS
from wrapper.adapters.places import values_at
from wrapper.clean import clean_line, clean_text, decode_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from wrapper.adapters.parts import Counter
    from wrapper.adapters.places import AnswerPlaces, Json

MAX_PIECES = 1_000_000
"""How many values and lines of JSON are taken apart at most. A client chooses what its bytes are made of: a
pair of brackets takes more than sixty of ours, and a line takes time."""


class Unreadable(ValueError):  # noqa: N818 - a state of the output, told as one
    """Raised when an output is not what the preset says the client prints; the message says how."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One turn as the client tells it: which chat answered, what, and at what cost. ``text`` is cleaned.

    ``counters`` are as printed, so that some may be those of the whole chat. ``calls`` is how often the
    model was asked. Unknown is None, or not there. ``refused`` tells what the client was not allowed to do.
    """

    id: str | None
    text: str
    model: str | None
    counters: dict[Counter, float]
    calls: int | None
    refused: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Complaint:
    """What an output says of a failure: whether there was one, and the client's words, which may be empty.

    ``refused`` tells what the client was not allowed to do, which may be the reason.
    """

    failed: bool
    words: str
    refused: tuple[str, ...] = ()


class _Output:
    """An output, and the places in it."""

    def __init__(self, output: bytes, places: AnswerPlaces) -> None:
        """Raises `Unreadable`."""
        self._lines = places.lines
        self._known: dict[str, list[Json]] = {}
        if sum(map(output.count, (b",", b"[", b"{", b"\n"))) > MAX_PIECES:
            raise Unreadable(f"its output is made of more than {MAX_PIECES:,} pieces")
        text = decode_output(output)
        if places.format == "json":
            self._documents = [_parsed(text)]
            return
        self._documents = [document for line in _lines(text) if isinstance(document := _or_none(line), dict)]
        if not self._documents:
            raise Unreadable("its output is not lines of JSON")
        if places.end is not None and not self._known_as(places.end):
            raise Unreadable(f"its output breaks off: there is no {places.end} line")

    def at(self, place: str | None) -> Json:
        """The value at ``place``, in the last line of that name; None if there is none."""
        lines = self.each(place)
        return next((value for value in lines[-1] or () if value is not None), None) if lines else None

    def text(self, place: str, *, joined: bool) -> Json:
        """The text at ``place``; ``joined``, that of every line of its name, one after the other."""
        if not joined:
            return self.at(place)
        texts = [value for found in self.each(place) for value in found or () if isinstance(value, str)]
        return "".join(texts) if texts else None

    def total(self, place: str | None, read: Callable[[Json], float | None], *, added: bool) -> float | None:
        """The counts at ``place`` together; ``added``, over all lines of its name. None if one is unknown."""
        lines = self.each(place)
        counted = lines if added else lines[-1:]
        counts = [read(value) for found in counted for value in ((None,) if found is None else found)]
        if not lines or None in counts:
            return None
        return sum(count for count in counts if count is not None)

    def each(self, place: str | None) -> list[list[Json] | None]:
        """What stands at ``place`` in every line of that name."""
        return [values_at(document, pointer) for document, pointer in self._where(place)]

    def _where(self, place: str | None) -> Iterator[tuple[Json, str]]:
        name, slash, pointer = (place or "").partition("/")
        if place is not None:
            for document in self._known_as(name) if name else self._documents:
                yield document, slash + pointer

    def _known_as(self, name: str) -> list[Json]:
        """The lines of that name. Many places are in the same ones: they are looked for once."""
        if name not in self._known:
            signs = self._lines[name].items()
            self._known[name] = [
                document
                for document in self._documents
                if all(values_at(document, at) == [value] for at, value in signs)
            ]
        return self._known[name]


def read_answer(output: bytes, places: AnswerPlaces) -> Reading:
    """Find the answer in a client's standard output. Raises `Unreadable`."""
    found = _Output(output, places)
    text = found.text(places.text, joined="text" in places.each)
    if text is None and places.format == "json_lines" and places.end is not None:
        text = ""  # the turn is told to its end, and held no text
    if not isinstance(text, str):
        raise Unreadable(f"its output holds no text at {places.text}")
    chat = found.at(places.id)
    calls = found.total(places.calls, _asked, added=False)
    return Reading(
        id=chat if isinstance(chat, str) else None,
        text=clean_text(text),
        model=_label(found.at(places.model)),
        counters=dict(_counters(found, places)),
        calls=None if calls is None else int(calls),
        refused=_refused(found, places),
    )


def read_complaint(output: bytes, places: AnswerPlaces) -> Complaint:
    """What a client's standard output says of a failure; an output that nobody understands says nothing."""
    try:
        found = _Output(output, places.model_copy(update={"end": None}))
    except Unreadable:
        return Complaint(failed=False, words="")
    told = (found.at(place) for place in places.words)
    words = next((clean for text in told if isinstance(text, str) and (clean := clean_text(text))), "")
    return Complaint(bool(found.at(places.failed)), words, _refused(found, places))


def _refused(found: _Output, places: AnswerPlaces) -> tuple[str, ...]:
    """What the client was not allowed to do, a line each; of very many, how many more there are."""
    told = [one for values in found.each(places.refused) for one in _flat(values)]
    shown = told if len(told) <= MAX_REFUSED else told[: MAX_REFUSED - 1]
    lines = (clean_line(json.dumps(one, ensure_ascii=False), REFUSED_CHARS) for one in shown)
    more = len(told) - len(shown)
    return (*lines, f"and {more} more") if more else tuple(lines)


def _counters(found: _Output, places: AnswerPlaces) -> Iterator[tuple[Counter, float]]:
    for counter in COUNTERS:
        read = _amount if counter == "usd" else _count
        added = counter in places.each
        counts = [_signed(found, place, read, added=added) for place in places.counted(counter)]
        known = [count for count in counts if count is not None]
        if counts and len(known) == len(counts) and (total := sum(known)) >= 0:
            yield counter, total


def _signed(found: _Output, place: str, read: Callable[[Json], float | None], *, added: bool) -> float | None:
    """The counts at a summand's place, negative where they are taken away."""
    count = found.total(place.removeprefix("-"), read, added=added)
    return -count if count is not None and place.startswith("-") else count


def _flat(values: list[Json] | None) -> Iterator[Json]:
    for value in values or ():
        yield from value if isinstance(value, list) else () if value is None else (value,)


def _lines(text: str) -> Iterator[str]:
    r"""The lines, one at a time. Only ``\n`` ends one: clients print U+2028 as it is."""
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start:end]
        start = end + 1
    yield text[start:]


def _parsed(text: str) -> Json:
    try:
        # Not strict: clients put raw control characters into strings.
        return json.loads(text, strict=False)
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"its output is not JSON: {error}") from None


def _or_none(line: str) -> Json:
    try:
        return _parsed(line)
    except Unreadable:
        return None


def _count(value: Json) -> int | None:
    """A count that makes sense, or None: unknown is never 0."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= MAX_COUNT else None


def _asked(value: Json) -> int | None:
    """How many requests a value tells of; the name of a model that was asked is one."""
    return 1 if isinstance(value, str) else _count(value)


def _amount(value: Json) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if number and 0 <= value <= MAX_USD else None


def _label(value: Json) -> str | None:
    return clean_line(value, MAX_LABEL) or None if isinstance(value, str) else None
