"""The two harness profiles, as the request that reaches the provider shows them (§3.3.B, §14.2)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from council.conformance.chats import life, need_seen
from council.conformance.furniture import MARKS, furnish
from council.conformance.verdicts import NotApplicable, need

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.bench import Bench, Room
    from council.conformance.verdicts import Turn

# --- what is played --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Native:
    """A native client in a project, with what its person has set up; ``made``: whether its tool ran."""

    first: Turn
    second: Turn
    tried: Turn | None
    made: bool


async def native(room: Room) -> Native:
    """Two turns, and a third in which the model wants a command to be run that nobody allowed."""
    project, made = room.folder / "project", room.folder / "made-by-a-tool"
    for mark, folder in ((MARKS["user"], room.person), (MARKS["project"], project)):
        furnish(room.bench.tried.files, folder, mark, room.folder / "made")
    async with room.seated(profile="native", cwd=project) as seat:
        first, second = await seat.answer("first"), await seat.answer("second")
        order = tool_order(room, made)
        tried = await seat.ask(order) if order else None
    return Native(first, second, tried, made=made.exists())


@dataclass(frozen=True, slots=True)
class MadeUp:
    """A tool that a restricted client has not, and whether it ran all the same."""

    turn: Turn
    made: bool


async def made_up(room: Room) -> MadeUp:
    """The model wants a tool that it was not offered."""
    made = room.folder / "made-by-a-tool"
    order = tool_order(room, made)
    if order is None:
        raise NotApplicable("the preset names no tool: conformance.tool")
    async with room.seated() as seat:
        return MadeUp(await seat.ask(order), made.exists())


def tool_order(room: Room, made: Path) -> str | None:
    """A prompt at which the model wants the client's own tool to make a file."""
    tool = room.bench.tried.tool
    if tool is None:
        return None
    return f"<<tool {tool.name} {json.dumps({tool.argument: f'touch {made}'})}>>"


# --- what has to hold ------------------------------------------------------------------------------------


async def restricted_has_no_tools(bench: Bench) -> None:
    """A restricted client offers the model no tool."""
    for turn in (await bench.scene(life)).answered:
        need(turn.last.tools == (), f"{turn.shown} offered {', '.join(turn.last.tools)}")


async def restricted_picks_up_nothing(bench: Bench) -> None:
    """A restricted client picks up nothing of what its person or the project has set up, and runs nothing."""
    told = await bench.scene(life)
    if not bench.tried.files:
        raise NotApplicable("the preset names nothing that could be set up: conformance.files")
    for turn in told.answered:
        found = [mark for mark in MARKS.values() if mark in str(turn.requests[-1].body)]
        need(not found, f"{turn.shown} sent {', '.join(found)} along")
    need(not told.made, "a hook or a server of that configuration was run")


async def made_up_tool_is_not_run(bench: Bench) -> None:
    """A tool that a restricted client does not offer is not run when the model asks for it all the same."""
    told = await bench.scene(made_up)
    need(not told.made, "the command was run")
    need(
        told.turn.answered.text.startswith("I have seen 1 user messages"),
        f"it says {told.turn.answered.text}",
    )
    need(told.turn.last.tool_results, "the model was not told that there is no such tool")


async def native_is_the_harness(bench: Bench) -> dict[str, str]:
    """A native client works with its own tools and with what its person and the project have set up."""
    bench.only(profile="native")
    told, tool = await bench.scene(native), bench.tried.tool
    if tool is None and not bench.tried.files:
        raise NotApplicable(
            "the preset names neither a tool nor what could be set up: conformance.tool, .files"
        )
    for turn in (told.first, told.second):
        body = str(turn.requests[-1].body)
        missing = [mark for mark in MARKS.values() if bench.tried.files and mark not in body]
        need(not missing, f"{turn.shown} went without {', '.join(missing)}")
        need(tool is None or turn.last.tools, f"{turn.shown} offered no tool")
    need_seen(told.second, 2)
    return {"tools": str(len(told.second.last.tools))}


async def native_asks_before_it_acts(bench: Bench) -> dict[str, str]:
    """What a native client may not do without being allowed to is not done, and the refusal is told."""
    bench.only(profile="native")
    told = await bench.scene(native)
    if told.tried is None:
        raise NotApplicable("the preset names no tool: conformance.tool")
    need(not told.made, "the command was run, and nobody had allowed it")
    need(told.tried.answered.text.startswith("I have seen 3 user messages"), told.tried.answered.text)
    need(told.tried.last.tool_results, "the model was not told that it was refused")
    refused = told.tried.answered.refused
    if bench.preset.answer.refused is not None:
        named = [one for one in refused if bench.tried.tool and bench.tried.tool.name in one]
        need(len(refused) == len(named) == 1, f"what was refused is told as {refused}")
        need(refused[0].isprintable(), f"it holds what cannot be printed: {refused[0]!r}")
    return {"refused": "; ".join(refused)}
