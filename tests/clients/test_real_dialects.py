"""The stand-ins of the fast tests speak as the real clients do, as far as a preset listens."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import seat_maker

from council.conformance.bench import SYSTEM, Room
from wrapper import sandbox
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.reading import _Output

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(300)]

UNKNOWN = "0a1b2c3d-0000-4000-8000-0a1b2c3d4e5f"
NEW = "0a1b2c3d-1111-4000-8000-0a1b2c3d4e5f"


async def run(adapter: NativeAdapter, argv: tuple[str, ...], prompt: bytes) -> sandbox.Completed:
    return await sandbox.run(adapter._turn_command(argv, prompt), sandbox.Bounds(overall=60))


def dialect(adapter: NativeAdapter, done: sandbox.Completed) -> dict[str, Any]:
    """What a preset makes of an output: the exit code, and of which kind the value at each place is."""
    places = adapter._preset.answer
    found = _Output(done.stdout, places)
    kinds = {place: type(found.at(place)).__name__ for key, place in places.all_places if key != "refused"}
    return {"code": done.returncode, **{place: kind.replace("int", "float") for place, kind in kinds.items()}}


async def test_a_stand_in_answers_and_refuses_as_the_real_client_does(
    room: Room, leftovers: Leftovers, tmp_path: Path
) -> None:
    name = room.preset.name
    make = seat_maker(leftovers, tmp_path / "standin", name, {"model": "m"})
    told = []
    for adapter in (room.seat(), make(passed=(VARIABLE,))):
        assert isinstance(adapter, NativeAdapter)
        await adapter.open(SYSTEM)
        adapter._put_back(None)
        first = await run(adapter, adapter._call.arguments(None, NEW), b"hello")
        lost = await run(adapter, adapter._call.arguments(UNKNOWN, NEW.replace("1111", "2222")), b"hello")
        wrong = await run(adapter, ("exec", "--nonsense"), b"")
        await adapter.close()
        known = next(fault for fault in adapter._preset.faults if fault.fault.value == "session_mismatch")
        words = (lost.stdout + lost.stderr).decode()
        told.append(
            {
                "first": dialect(adapter, first),
                "lost": lost.returncode,
                "known": known.pattern.partition("|")[0] in words,
                "named": UNKNOWN in words,
                "stderr": first.stderr if name == "claude" else b"",
                "wrong": wrong.returncode != 0,
            }
        )
    real, standin = told
    assert standin == real, json.dumps([real["first"], standin["first"]], indent=1)
    assert real["known"]
