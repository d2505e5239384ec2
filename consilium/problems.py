"""What is wrong with a council file, in words: the key, the rule, the way out."""

from __future__ import annotations

import difflib
import json
from typing import TYPE_CHECKING, Any, get_args

from consilium.config import Caps, Council, Limits, Participant, Roster, RosterSeat, Section

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from consilium.strict_yaml import Place

SECTIONS: dict[str, type[Section]] = {
    "at the top level": Council,
    "under caps": Caps,
    "under limits": Limits,
    "under participants": Participant,
    "under roster": Roster,
    "under roster.participants": RosterSeat,
}
"""Every section of the file, by the words that say where it stands."""

_RULES = {
    "missing": "is required",
    "bool_type": "must be true or false",
    "int_type": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text; in doubt, put it in quotes",
    "tuple_type": "must be a list",
    "model_type": "must be a section of keys and values",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    "greater_than": "must be more than {gt:g}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "string_too_long": "must be at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
}
_PATTERNS = {
    r"^[a-z0-9_]{1,64}$": "must be 1 to 64 of a-z, 0-9 and _",
    r"^(\*|\{id\}|\{id\}_\*|[a-z0-9_]{1,64}|[a-z0-9_]{1,63}\*)$": (
        "must be a name, the beginning of one and then *, or *; {id} is the certificate's own"
    ),
    r"^[a-z0-9][a-z0-9_-]{0,63}$": "must be 1 to 64 of a-z, 0-9, and then also _ and -",
    r"^(ctrl\+[abefgj-lnopq-z]|alt\+[a-z]|f[1-8])$": (
        "must be ctrl+ or alt+ and a letter, or f1 to f8; ctrl+c, d, h, i and m have their meaning already"
    ),
    r"^[a-z0-9][a-z0-9._-]{0,63}$": "must be 1 to 64 of a-z, 0-9, and then also . _ and -",
}
_SHOWN = 60


def describe(problem: ErrorDetails) -> str:
    """One line for one problem that pydantic found in a council: ``key: rule (given: value)``."""
    place = problem["loc"]
    key = _path(place)
    if problem["type"] == "extra_forbidden":
        return f"{key}: {_unknown_key(place)}"
    if problem["type"] == "value_error":
        words = problem["msg"].removeprefix("Value error, ")
        return f"{key}: {words}" if key else words
    if place == ("caps",) and problem["type"] == "missing":
        return "caps: at least one cap is mandatory: max_rounds, max_tokens, max_seconds or max_usd"
    return f"{key}: {_rule(problem)}{_given(problem)}"


def _path(place: Place) -> str:
    path = ""
    for part in place:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _rule(problem: ErrorDetails) -> str:
    context = problem.get("ctx", {})
    if context.get("pattern") in _PATTERNS:
        return _PATTERNS[context["pattern"]]
    return _RULES.get(problem["type"], problem["msg"]).format(**context)


def _given(problem: ErrorDetails) -> str:
    value: Any = problem["input"]
    if problem["type"] == "missing" or isinstance(value, (dict, list)):
        return ""
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    return f" (given: {shown if len(shown) <= _SHOWN else shown[:_SHOWN] + '…'})"


def _unknown_key(place: Place) -> str:
    key = str(place[-1])
    section = section_at(place[:-1])
    if homes := [where for where, model in SECTIONS.items() if key in model.model_fields]:
        return f"is not a key here; it belongs {' or '.join(homes)}"
    known = list(section.model_fields)
    if near := difflib.get_close_matches(key, known, n=1):
        return f"is not a key here; did you mean {near[0]}?"
    return f"is not a key here; the keys are {', '.join(known)}"


def is_section(key: str) -> bool:
    """Whether the top-level ``key`` holds one section: caps, limits, roster."""
    field = Council.model_fields.get(key)
    return field is not None and isinstance(field.annotation, type) and issubclass(field.annotation, Section)


def section_at(place: Place) -> type[Section]:
    """The model of the section at ``place``, or of the entries of the list there."""
    section: type[Section] = Council
    for part in place:
        if isinstance(part, str):
            annotation = section.model_fields[part].annotation
            (section, *_) = get_args(annotation) or (annotation,)
    return section
