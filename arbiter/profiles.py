"""The Arbiter's own list of capability profiles (§5.2, §14.4): a YAML file, strictly read.

    participant:
      role: participant
      names: ["*"]
    operator:
      role: operator

What the file does not list entitles to nothing: it takes the place of `DEFAULT_PROFILES` as a whole.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Any

import orjson
from pydantic import StringConstraints, TypeAdapter, ValidationError

from consilium.certificate import ARBITER
from consilium.errors import UserError
from consilium.problems import describe
from consilium.profile import DEFAULT_PROFILES, CapabilityProfile
from consilium.strict_yaml import read_tree

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails

    from consilium.strict_yaml import Place

MAX_PROBLEMS = 10
"""How many mistakes are told at once."""

Segment = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_-]{1,64}$")]
"""The profile segment of a certificate's URI."""

_FILE: TypeAdapter[dict[str, CapabilityProfile]] = TypeAdapter(dict[Segment, CapabilityProfile])


def load_profiles(path: Path | None) -> Mapping[str, CapabilityProfile]:
    """Read the profiles at ``path``; None is `DEFAULT_PROFILES`. Raises `UserError` naming file and key."""
    if path is None:
        return DEFAULT_PROFILES
    tree, lines = read_tree(path)
    if not isinstance(tree, dict):
        raise UserError(f"{path}: must hold a section for each profile: participant, operator and the like")
    try:
        profiles = _FILE.validate_json(orjson.dumps(tree), strict=True)
    except ValidationError as error:
        raise _refusal(error, path, lines) from None
    if ARBITER in profiles:
        raise UserError(f"{path}: {ARBITER} is what an Arbiter's own certificate is called, and no profile")
    if not any(profile.role == "operator" for profile in profiles.values()):
        raise UserError(f"{path}: no profile has role: operator, so nobody could govern the debate")
    return profiles


def _refusal(error: ValidationError, path: Path, lines: Mapping[Place, int]) -> UserError:
    told = []
    for problem in error.errors(include_url=False):
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
    known = list(CapabilityProfile.model_fields)
    near = difflib.get_close_matches(str(place[-1]), known, n=1)
    way = f"did you mean {near[0]}?" if near else f"the keys are {', '.join(known)}"
    return f"{place[0]}.{place[-1]}: is not a key here; {way}"
