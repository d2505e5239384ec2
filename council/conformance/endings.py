"""Turns that are ended from outside: nothing is left of them, neither in the chat nor among the processes."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from council.conformance.bench import SECRETS
from council.conformance.chats import life, need_seen
from council.conformance.failures import failures
from council.conformance.verdicts import NotApplicable, need, need_fault
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from council.conformance.bench import Bench, Room, Seated
    from council.conformance.verdicts import Turn

DEADLINE_FROM, DEADLINE_TIMES = 2.0, 3.0
"""A turn that hangs is given that many seconds, and that many times as long as one that does not."""

GONE_SECONDS = 10.0

# --- what is played --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ended:
    """Turns that were ended: revoked, out of time, cut off with their wrapper; and what came after each."""

    beside: AdapterFault | None
    """What a second turn is told while the first is running."""
    elsewhere: AdapterFault | None
    """What a second wrapper is told."""
    environments: tuple[bytes, ...]
    left_by_revoked: tuple[str, ...]
    after_revoked: Turn
    died: Turn
    """One whose client was killed in the middle."""
    hung: tuple[Turn, Turn]
    after_hung: Turn
    seconds: float
    """What a turn that hangs was given."""
    left_by_killed: tuple[str, ...]
    lost: bool
    after_killed: Turn


async def ended(room: Room) -> Ended:
    """Everything that ends a turn from outside, in one chat."""
    async with room.seated() as seat:
        first = await seat.answer("first")
        beside, elsewhere, environments = await _revoke(room, seat)
        left_by_revoked = room.traces.running()
        after_revoked = await seat.ask("second")
        died = await _die(room, seat)
    seconds = DEADLINE_FROM + DEADLINE_TIMES * max(first.seconds, after_revoked.seconds)
    async with room.seated(bounds=Bounds(overall=seconds)) as seat:
        hung = (await seat.ask("<<hang>>"), await seat.ask("<<hang_midway>>"))
    async with room.seated() as seat:
        after_hung = await seat.ask("third")
    left_by_killed = await _kill(room)
    async with room.seated() as seat:
        lost, after_killed = seat.adapter.memory_lost, await seat.ask("fourth")
    return Ended(
        beside,
        elsewhere,
        environments,
        left_by_revoked,
        after_revoked,
        died,
        hung,
        after_hung,
        seconds,
        left_by_killed,
        lost,
        after_killed,
    )


async def _die(room: Room, seat: Seated) -> Turn:
    """Kill the client in the middle of an answer."""
    before = len(room.provider.turns)
    told: list[Turn] = []

    async def take() -> None:
        told.append(await seat.ask("die <<hang_midway>>"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        await room.heard(before + 1)
        room.traces.kill()
    return told[0]


async def _revoke(
    room: Room, seat: Seated
) -> tuple[AdapterFault | None, AdapterFault | None, tuple[bytes, ...]]:
    """Look around while a turn hangs, and revoke it."""
    before = len(room.provider.turns)
    elsewhere = None
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.ask, "wait <<hang>>")
        await room.heard(before + 1)
        environments = room.traces.environments()
        beside = (await seat.ask("at the same time")).fault
        try:
            async with room.seated():
                pass
        except AdapterFault as fault:
            elsewhere = fault
        tasks.cancel_scope.cancel()
    return beside, elsewhere, environments


async def _kill(room: Room) -> tuple[str, ...]:
    """Kill a wrapper in the middle of a turn; what still runs some seconds later."""
    told = {
        **room.means(),
        "adapter": room.bench.adapter,
        "preset": room.preset.model_dump_json(by_alias=True),
        "folder": str(room.folder / "seat"),
        "system": room.bench.system,
        "prompts": ["fourth <<hang>>"],
    }
    before = len(room.provider.turns)
    wrapper = await anyio.open_process(
        [sys.executable, "-P", "-m", "council.conformance.life"],
        stdout=None,
        stderr=None,
        env={**room.bench.environment, "PYTHONPATH": ":".join(path for path in sys.path if path)},
    )
    try:
        assert wrapper.stdin is not None
        await wrapper.stdin.send(json.dumps(told).encode())
        await wrapper.stdin.aclose()
        await room.heard(before + 1)
    finally:
        wrapper.kill()
        await wrapper.wait()
        await wrapper.aclose()
    gone = await anyio.to_thread.run_sync(room.traces.none_within, GONE_SECONDS)
    return () if gone else room.traces.running()


# --- what has to hold ------------------------------------------------------------------------------------


async def revoked_turn_leaves_no_trace(bench: Bench) -> None:
    """A turn that is revoked leaves no trace in the chat, and no process."""
    told = await bench.scene(ended)
    need(not told.left_by_revoked, f"it left running: {told.left_by_revoked}")
    need_seen(told.after_revoked, 2)


async def killed_client_may_have_had_the_prompt(bench: Bench) -> None:
    """A client that somebody kills in the middle may have had the prompt; it leaves no trace, no process."""
    told = await bench.scene(ended)
    fault = need_fault(told.died, Fault.CLIENT_ERROR, PromptSent.MAYBE)
    need("signal 9" in fault.detail, f"it is told as: {fault.detail}")
    need(not told.died.left, f"it left running: {told.died.left}")
    stayed = [prompt for prompt in told.after_hung.last.prompts if "<<" in prompt]
    need(not stayed, f"{told.after_hung.shown} was sent together with {stayed}")


async def hanging_turn_ends_in_time(bench: Bench) -> None:
    """A provider that hangs, at first or in the middle, is given up in time; it may have had the prompt."""
    told = await bench.scene(ended)
    for turn in told.hung:
        need(turn.heard, f"{turn.shown} did not reach the provider in {told.seconds:.1f} s")
        need_fault(turn, Fault.DEADLINE, PromptSent.MAYBE)
        need(not turn.left, f"{turn.shown} left running: {turn.left}")
    need_seen(told.after_hung, 3)


async def killed_wrapper_finds_its_chat(bench: Bench) -> None:
    """A wrapper killed in a turn takes its client along, and the next life finds the chat as it was."""
    told = await bench.scene(ended)
    need(not told.left_by_killed, f"these outlived their wrapper: {told.left_by_killed}")
    need(not told.lost, "the next life of the wrapper had lost its memory")
    need_seen(told.after_killed, 4)


async def one_turn_at_a_time(bench: Bench) -> None:
    """While a turn runs there is no second one in the chat, neither here nor by another wrapper."""
    told = await bench.scene(ended)
    beside, elsewhere = told.beside, told.elsewhere
    need(beside and beside.prompt_sent is PromptSent.NO, f"a turn at the same time was told {beside}")
    need(
        elsewhere and (elsewhere.fault, elsewhere.prompt_sent) == (Fault.START_FAILED, PromptSent.NO),
        f"a second wrapper was told {elsewhere}",
    )


async def wrapper_is_kept_from_the_client(bench: Bench) -> None:
    """Nothing of the wrapper's variables reaches the client or its provider, but what the seat passes on."""
    told = await bench.scene(ended)
    need(told.environments, "no process was found while a turn was running")
    secrets = tuple(SECRETS.values())
    given = [
        name for name, value in SECRETS.items() if any(value.encode() in env for env in told.environments)
    ]
    need(not given, f"the client was given {', '.join(given)}")
    own = any(name.startswith(b"CONSILIUM_") for env in told.environments for name in env.split(b"\0"))
    need(not own, "the client was given a variable CONSILIUM_...")
    for turn in (await bench.scene(life)).answered:
        sent = f"{turn.requests[-1].headers} {turn.requests[-1].body}"
        need(
            not any(value in sent for value in secrets), f"{turn.shown} sent a variable of the wrapper along"
        )


async def no_process_is_left(bench: Bench) -> None:
    """No process is left after a turn, whether it was answered or failed."""
    answered, failed = await bench.scene(life), await bench.scene(failures)
    if bench.adapter != "native":
        raise NotApplicable("in a terminal the client stays between its turns")
    for turn in (*answered.answered, answered.failed, *failed.at_first, *failed.later):
        need(not turn.left, f"{turn.shown} left running: {turn.left}")
