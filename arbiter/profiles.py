"""The Arbiter's own capability profiles (§5.2, §14.4), and its doors' limits: a YAML file, strictly read.

    participant:
      role: participant
      names: ["*"]
    operator:
      role: operator
    doors:
      handshakes: 256

What the file does not list entitles to nothing: it takes the place of `DEFAULT_PROFILES` as a whole. A limit
that it does not give is as in `Doors`.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import orjson
from pydantic import StringConstraints, TypeAdapter, ValidationError

from arbiter.edge.limits import Doors
from consilium.certificate import ARBITER
from consilium.errors import UserError
from consilium.problems import describe
from consilium.profile import DEFAULT_PROFILES, CapabilityProfile
from consilium.strict_yaml import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from consilium.strict_yaml import Place

Kind = TypeVar("Kind")

MAX_PROBLEMS = 10
"""How many mistakes are told at once."""

Segment = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")]
"""The profile segment of a certificate's URI."""

DOORS = "doors"
"""The section of the file that is no profile."""

_PROFILES: TypeAdapter[dict[str, CapabilityProfile]] = TypeAdapter(dict[Segment, CapabilityProfile])
_DOORS: TypeAdapter[dict[str, Doors]] = TypeAdapter(dict[str, Doors])


@dataclass(frozen=True, slots=True)
class Entrance:
    """Who may do what, by profile segment, and how much anybody may take at the doors."""

    profiles: Mapping[str, CapabilityProfile] = field(default_factory=lambda: DEFAULT_PROFILES)
    doors: Doors = field(default_factory=Doors)


def load_profiles(path: Path | None) -> Entrance:
    """Read the file at ``path``; None is what is built in. Raises `UserError` naming file and key."""
    if path is None:
        return Entrance()
    tree, lines = read_tree(path)
    if not isinstance(tree, dict):
        raise UserError(f"{path}: must hold a section for each profile: participant, operator and the like")
    doors = {DOORS: tree.pop(DOORS)} if DOORS in tree else {}
    problems: list[ErrorDetails] = []
    profiles = _read(_PROFILES, tree, problems)
    limits = _read(_DOORS, doors, problems)
    if problems:
        raise _refusal(problems, path, lines)
    if ARBITER in profiles:
        raise UserError(f"{path}: {ARBITER} is what an Arbiter's own certificate is called, and no profile")
    if not any(profile.role == "operator" for profile in profiles.values()):
        raise UserError(f"{path}: no profile has role: operator, so nobody could govern the debate")
    return Entrance(profiles, limits.get(DOORS, Doors()))


def _read(
    kind: TypeAdapter[dict[str, Kind]], tree: Mapping[str, Any], problems: list[ErrorDetails]
) -> dict[str, Kind]:
    try:
        return kind.validate_json(orjson.dumps(tree), strict=True)
    except ValidationError as error:
        problems += error.errors(include_url=False)
        return {}


def _refusal(problems: Sequence[ErrorDetails], path: Path, lines: Mapping[Place, int]) -> UserError:
    told = []
    for problem in problems:
        place = problem["loc"]
        line = lines.get(place) or lines.get(place[:1], 0)
        told.append((line, f"line {line}: {_words(problem)}"))
    told.sort()
    if len(told) == 1:
        return UserError(f"{path}, {told[0][1]}")
    shown = [words for _, words in told[:MAX_PROBLEMS]]
    if len(told) > MAX_PROBLEMS:
        shown.append(f"and {len(told) - MAX_PROBLEMS} more")
    return UserError(f"{path}: {len(told)} problems", hint="\n  ".join(shown))


def _words(problem: ErrorDetails) -> str:
    place: tuple[Any, ...] = problem["loc"]
    if place[-1] == "[key]":
        return f"{place[0]}: a profile's name must be 1 to 64 of a-z, 0-9, _ and -"
    if problem["type"] != "extra_forbidden":
        return describe(problem)
    known = list((Doors if place[0] == DOORS else CapabilityProfile).model_fields)
    near = difflib.get_close_matches(str(place[-1]), known, n=1)
    way = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
    return f"{place[0]}.{place[-1]}: is not a key here; {way}"
