"""Two kinds of house for tests: one that takes anybody, and one whose debate begins when all have come."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import house as house_module
import pytest
from house import Home, Wire, house, until
from playbook import council
from rights import ANY_NAME

from consilium import messages as m
from consilium.records import EventName, EventRecord

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from consilium.profile import CapabilityProfile
    from consilium.records import AnyEntry


NAMES = ("ada", "bob", "cyn")
KEEP = m.DisconnectPolicy.KEEP_ALIVE

OPEN_TABLE = {"mode": "dynamic", "wait_for_required_at_start": False}
"""Anybody may sit down, and nothing begins before the operator says so."""


@pytest.fixture(autouse=True, params=["tcp", "unix"])
def transport(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """For a module that imports it: every test of it on ports, and again on UNIX sockets."""
    monkeypatch.setattr(house_module, "TRANSPORT", request.param)


@asynccontextmanager
async def open_house(folder: Path, *, rules: Any = OPEN_TABLE, **how: Any) -> AsyncIterator[Home]:
    """A house that takes anybody. In the end everybody is forgotten, and a good guest is still served."""
    limits = how.pop("limits", {})
    async with house(folder, council((), roster=rules, limits=limits), **how) as home:
        yield home
        await home.empties()
        await is_still_served(home)


async def is_still_served(home: Home) -> None:
    good = home.guest("good")
    await good.join()
    assert isinstance(await good.control.ask(m.StatusRequest()), m.Status)
    await good.control.say(m.Unreg())
    assert await good.control.rest() == []
    assert await good.data.rest() == []
    assert await home.serves()


async def refusals(wire: Wire) -> list[str]:
    """The codes of everything that is still said, up to the end of the connection."""
    return [said.code for said in await wire.rest()]


def profile(**changes: Any) -> dict[str, CapabilityProfile]:
    """As built in, but for any name, and a participant's ``changes``."""
    changed = ANY_NAME["participant"].model_copy(update=changes)
    return ANY_NAME | {"participant": changed}


async def left(home: Home) -> list[Any]:
    """Why seats left before the debate began, once the record has it."""

    def reasons() -> list[Any]:
        return [
            stored.entry.data["reason"]
            for stored in home.records()
            if isinstance(stored.entry, EventRecord) and stored.entry.event is EventName.PARTICIPANT_LEFT
        ]

    await until(reasons)
    return reasons()


@asynccontextmanager
async def debate(folder: Path, names: tuple[str, ...] = NAMES, **changes: Any) -> AsyncIterator[Home]:
    """A house whose debate begins when everybody of ``names`` has come."""
    how = {
        key: changes.pop(key)
        for key in ("disk", "inbox", "buffer", "grace", "pki", "doors")
        if key in changes
    }
    async with house(folder, council(names, **changes), **how) as home:
        yield home


def event_names(entries: list[AnyEntry]) -> list[EventName]:
    return [entry.event for entry in entries if isinstance(entry, EventRecord)]


def entries(home: Home) -> list[AnyEntry]:
    return [stored.entry for stored in home.records()]


def ended(home: Home) -> dict[str, Any]:
    """What the record says of the end, which it says once and last."""
    last = entries(home)[-1]
    assert isinstance(last, EventRecord)
    assert event_names(entries(home)).count(EventName.DEBATE_ENDED) == 1
    assert last.event is EventName.DEBATE_ENDED
    return last.data
