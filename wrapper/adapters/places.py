"""Places: where in a client's output things are, and what stands there. Pure.

A place is a JSON pointer (RFC 6901), with two steps besides: ``*`` is every member of an object or a list,
and a last ``*#`` the names of an object's members.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from wrapper.adapters.parts import COUNTERS, Counter, Part, Pointer

if TYPE_CHECKING:
    from collections.abc import Iterator

Place = Annotated[str, StringConstraints(pattern=r"^[a-z_]*(/[^/]+)+$")]
Summand = Annotated[str, StringConstraints(pattern=r"^-?[a-z_]*(/[^/]+)+$")]
"""The place of a count; behind a minus, it is taken away from the others."""

LineName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z_]*$")]
AddedUp = Literal["text", "tokens_in", "tokens_out", "tokens_cached", "usd"]

EVERY, NAMES = "*", "*#"

Json = Any  # whatever a client prints


class AnswerPlaces(Part):
    """Where in the client's output things are.

    A place leads into the one document of the format ``json``. In ``json_lines`` the name of a line stands
    before it: ``lines`` says by which values a line is known, and the last such line counts. For the keys in
    ``each`` every such line does: texts are joined, and counts added up.

    ``end`` is the line without which the output breaks off. ``failed`` is true, or there at all, if the
    turn failed whatever the exit code says; ``words`` are the places where the client says why. ``calls``
    counts the model requests of a turn, or the models by their names: none means that nobody was asked.
    ``refused`` lists what the client was not allowed to do. Several places of a count are added up.
    ``cumulative`` counters grow over the chat's life.
    """

    format: Literal["json", "json_lines"]
    lines: dict[LineName, dict[Pointer, str | bool | int]] = Field(default_factory=dict)
    end: LineName | None = None
    id: Place
    text: Place
    failed: Place | None = None
    words: tuple[Place, ...] = ()
    calls: Place | None = None
    refused: Place | None = None
    model: Place | None = None
    tokens_in: Summand | tuple[Summand, ...] = ()
    tokens_out: Summand | tuple[Summand, ...] = ()
    tokens_cached: Summand | tuple[Summand, ...] = ()
    usd: Place | None = None
    each: tuple[AddedUp, ...] = ()
    cumulative: tuple[Counter, ...] = ()

    def counted(self, counter: Counter) -> tuple[str, ...]:
        """The places that make up ``counter``; none if the client does not tell."""
        places: str | tuple[str, ...] | None = getattr(self, counter)
        return (places,) if isinstance(places, str) else places or ()

    @property
    def all_places(self) -> tuple[tuple[str, str], ...]:
        """Every place, with the key that it stands under."""
        single = ("id", "text", "failed", "calls", "refused", "model")
        named = [(key, place) for key in single if (place := getattr(self, key)) is not None]
        named += [("words", place) for place in self.words]
        counts = ((key, place.removeprefix("-")) for key in COUNTERS for place in self.counted(key))
        return (*named, *counts)

    @model_validator(mode="after")
    def _lines_are_those_that_there_are(self) -> Self:
        if self.format == "json" and (self.lines or self.end or self.each):
            raise ValueError("lines, end and each are for the format json_lines")
        if self.end is not None and self.end not in self.lines:
            raise ValueError(f"end: {self.end} is not one of the lines; there is {self._offered()}")
        for key, place in self.all_places:
            line = place.partition("/")[0]
            if self.format == "json" and line:
                raise ValueError(f"{key}: {place}: the format json has one document and no lines")
            if self.format == "json_lines" and line not in self.lines:
                raise ValueError(f"{key}: {place}: begin with the name of a line; there is {self._offered()}")
            if f"/{NAMES}/" in place:
                raise ValueError(f"{key}: {place}: {NAMES} is the last step of a place, or none")
        return self

    @model_validator(mode="after")
    def _cumulative_counters_are_counted(self) -> Self:
        for counter in self.cumulative:
            if not self.counted(counter):
                raise ValueError(f"cumulative: {counter} has no place")
            if counter in self.each:
                raise ValueError(f"cumulative: {counter} is added up already")
        return self

    def _offered(self) -> str:
        return ", ".join(sorted(self.lines)) or "none"


def values_at(document: Json, place: str) -> list[Json] | None:
    """What stands at a place; None where there is no such place: to a client, absent and null are unknown.

    Behind an `EVERY` there is one value for each member, which is None where that member has none: a list
    without members holds nothing, and is there.
    """
    found, several = [document], False
    for step in place.split("/")[1:]:
        if step in (EVERY, NAMES):
            parents = [value for value in found if isinstance(value, dict | list)]
            if len(parents) < len(found):
                return None
            several = True
            found = [member for parent in parents for member in _members(parent, step)]
        else:
            key = step.replace("~1", "/").replace("~0", "~")
            found = [_member(value, key) for value in found]
    return found if several or found[0] is not None else None


def _members(parent: dict[str, Json] | list[Json], step: str) -> Iterator[Json]:
    if isinstance(parent, list):
        return iter(parent if step == EVERY else ())
    return iter(parent if step == NAMES else parent.values())


def _member(value: Json, key: str) -> Json:
    if isinstance(value, dict):
        return value.get(key)
    if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
        return value[int(key)]
    return None
