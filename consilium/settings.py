"""What a person configures in the council file (§5.3, §7).

Every mistake in a council file is a `UserError` that names the file, the line, the key and what is accepted;
up to ten are told at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from pydantic import ValidationError

from consilium.config import Council, Participant
from consilium.errors import UserError
from consilium.problems import describe, is_section
from consilium.strict_yaml import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from consilium.strict_yaml import Place

MAX_PROBLEMS = 10
"""How many mistakes are told at once."""


def load_council(path: Path, overrides: Mapping[str, Any] | None = None) -> Council:
    """Read and check the council file at ``path``.

    ``overrides`` are values that win over the file's, as the command line gives them: sections are merged
    key by key, anything else is replaced, and None removes a key. Raises `UserError`.
    """
    tree, lines = read_tree(path)
    return check_council(tree, overrides or {}, name=str(path), lines=lines)


def participant_of(council: Council, name: str) -> Participant:
    """The participant called ``name``. Raises `UserError` if the council has none."""
    for participant in council.participants:
        if participant.name == name:
            return participant
    known = ", ".join(participant.name for participant in council.participants)
    raise UserError(f"the council file has no participant named {name}", hint=f"it has: {known or 'none'}")


def check_council(
    tree: Any, overrides: Mapping[str, Any], *, name: str, lines: Mapping[Place, int] | None = None
) -> Council:
    """Make a council of a plain tree. ``name`` and ``lines`` say where its values stand."""
    if not isinstance(tree, dict):
        raise UserError(f"{name}: must hold keys and values: topic, participants, caps and the like")
    merged = _merge(_without_empty_sections(tree), overrides)
    try:
        # Strict JSON takes lists for tuples and words for enumerations, but no word for a number.
        return Council.model_validate_json(orjson.dumps(merged), strict=True)
    except orjson.JSONEncodeError as error:  # no text on the command line, or a number too large
        raise UserError(f"{name}: a value cannot be used: {error}") from None
    except ValidationError as error:
        raise _refusal(error, overrides, name, lines or {}) from None


def _without_empty_sections(tree: dict[str, Any]) -> dict[str, Any]:
    """A section whose every line is commented out is a section without keys, not a null."""
    return {key: {} if value is None and is_section(key) else value for key, value in tree.items()}


def _merge(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(base)
    for key, value in over.items():
        below = merged.get(key)
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(below, dict):
            merged[key] = _merge(below, value)
        else:
            merged[key] = value
    return merged


def _refusal(
    error: ValidationError, overrides: Mapping[str, Any], name: str, lines: Mapping[Place, int]
) -> UserError:
    problems = []
    for problem in error.errors(include_url=False):
        place = problem["loc"]
        line = 0 if _holds(overrides, place) else _line(place, lines)
        where = "command line: " if _holds(overrides, place) else f"line {line}: " if line else ""
        problems.append((line, where + describe(problem)))
    problems.sort(key=lambda entry: entry[0])
    if len(problems) == 1:
        return UserError(f"{name}, {problems[0][1]}" if problems[0][0] else f"{name}: {problems[0][1]}")
    told = [words for _, words in problems[:MAX_PROBLEMS]]
    if len(problems) > MAX_PROBLEMS:
        told.append(f"and {len(problems) - MAX_PROBLEMS} more")
    return UserError(f"{name}: {len(problems)} problems", hint="\n  ".join(told))


def _holds(overrides: Any, place: Place) -> bool:
    for part in place:
        if not isinstance(overrides, dict) or part not in overrides:
            return isinstance(overrides, (list, tuple))
        overrides = overrides[part]
    return bool(place)


def _line(place: Place, lines: Mapping[Place, int]) -> int:
    """The line of ``place``, or of the nearest section that holds it; 0 where none is known."""
    while place and place not in lines:
        place = place[:-1]
    return lines.get(place, 0) if place else 0
