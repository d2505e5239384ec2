"""The council that sits when nobody wrote one: seats on the embedded model, each with a job of its own.

`council.yaml` at the root of the project is the same council, written out and explained.
"""

from __future__ import annotations

from itertools import cycle, islice
from typing import TYPE_CHECKING, Any

from consilium.errors import UserError
from consilium.settings import check_council

if TYPE_CHECKING:
    from collections.abc import Sequence

    from consilium.config import Council

NAME = "built-in council"
"""What a refusal calls it, where it would name a file."""

TOPIC = "Should children learn to write by hand before they learn to type?"

CAPS = {"max_rounds": 12, "max_tokens": 60_000, "max_seconds": 1800}

EMBEDDED_PRESET = "llm"
"""The client behind the embedded model."""

SEATS = 3
MAX_SEATS = 64

ROLES = (
    "sceptic",
    "pragmatist",
    "devils-advocate",
    "historian",
    "constraint-keeper",
    "simplicity",
    "maintainability",
    "security",
    "scalability",
    "performance",
    "dx",
    "compliance",
)
"""In the order in which seats take them: first the points of view that suit any question."""


def tree(seats: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The council file's content for ``seats``."""
    return {"topic": TOPIC, "participants": list(seats), "caps": dict(CAPS)}


def council() -> Council:
    """The council that is held when nothing is said at all."""
    return check_council(tree(seats_for(choose_roles(None, None))), {}, name=NAME)


def choose_roles(seats: int | None, roles: Sequence[str] | None) -> list[str]:
    """One role a seat. Raises `UserError` where the number of seats and the roles do not go together."""
    if roles is not None:
        if seats not in (None, len(roles)):
            raise UserError(
                f"--seats says {seats}, but --roles names {len(roles)}", hint="give one of the two"
            )
        seats = len(roles)
    count = SEATS if seats is None else seats
    if not 1 <= count <= MAX_SEATS:
        raise UserError(f"a council has 1 to {MAX_SEATS} seats (given: {count})")
    return list(islice(cycle(roles or ROLES), count))


def seats_for(roles: Sequence[str]) -> list[dict[str, Any]]:
    """A seat on the embedded model for each of ``roles``, named after its role."""
    taken: dict[str, int] = {}
    seats = []
    for role in roles:
        name = role.replace("-", "_")
        taken[name] = taken.get(name, 0) + 1
        numbered = name if taken[name] == 1 else f"{name}_{taken[name]}"
        seats.append({"name": numbered, "preset": EMBEDDED_PRESET, "role": role})
    return seats
