"""One exact chat, over turns, failures and lives of the wrapper, with the real clients."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from leftovers import Leftovers

from clients.kit import SYSTEM
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from pathlib import Path

    from clients.kit import Seats
    from consilium.messages import Usage
    from council.conformance.provider.stub import Stub
    from wrapper.adapters.base import Answer
    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(300)]

PRICE = {"in": 5e-6, "out": 25e-6, "written": 6.25e-6, "read": 0.5e-6}
"""What a token of the model in these tests costs by the client's own list, in dollars."""


def answer(number: int, last: str) -> str:
    return f"I have seen {number} user messages; last: {last}"


def usage_of(said: Answer) -> Usage:
    assert said.usage is not None
    return said.usage


async def test_three_turns_over_two_wrappers_are_one_chat(
    seats: Seats, stub: Stub, leftovers: Leftovers
) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    told = [await adapter.send_turn(question) for question in ("first question", "second question")]
    await adapter.close()
    again = seats.make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    told.append(await again.send_turn("third question"))
    await again.close()

    questions = ("first question", "second question", "third question")
    assert [one.text for one in told] == [answer(place, text) for place, text in enumerate(questions, 1)]
    heard = [(role, text.strip()) for role, text in stub.turns[-1].said]
    assert heard == [
        ("user", "first question"),
        ("assistant", told[0].text),
        ("user", "second question"),
        ("assistant", told[1].text),
        ("user", "third question"),
    ]
    assert all(SYSTEM in turn.system for turn in stub.turns)
    assert len(stub.turns) == 3, "nothing but the turns was asked of the model"
    assert len(stub.requests) == 3, "nothing else was asked of the provider"
    assert leftovers.now() == []


async def test_what_a_turn_costs_is_that_turns_alone(seats: Seats) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    usages = [usage_of(await adapter.send_turn(text)) for text in ("one", "two")]
    with pytest.raises(AdapterFault):
        await adapter.send_turn("<<400>>")
    await adapter.close()
    adapter = seats.make()
    await adapter.open(SYSTEM)
    usages.append(usage_of(await adapter.send_turn("three")))
    await adapter.close()

    cached = 18 if seats.client.cached_apart else 11
    assert [usage.tokens_in for usage in usages] == [101 + cached, 102 + cached, 103 + cached]
    assert [usage.tokens_out for usage in usages] == [13, 13, 13]
    assert [usage.tokens_cached for usage in usages] == [11, 11, 11]
    if seats.client.reports_usd:
        fixed = 7 * PRICE["written"] + 11 * PRICE["read"] + 13 * PRICE["out"]
        expected = [fresh * PRICE["in"] + fixed for fresh in (101, 102, 103)]
        assert [usage.usd for usage in usages] == pytest.approx(expected, abs=1e-9)
    else:
        assert [usage.usd for usage in usages] == [None, None, None]


FAILURES = ["400", "500", "cut", "empty"]


@pytest.mark.parametrize("act", FAILURES)
async def test_a_failed_turn_leaves_no_trace_in_the_chat(seat: NativeAdapter, stub: Stub, act: str) -> None:
    with pytest.raises(AdapterFault):
        await seat.send_turn(f"begin with <<{act}>>")
    assert (await seat.send_turn("first")).text == answer(1, "first")
    with pytest.raises(AdapterFault):
        await seat.send_turn(f"go on with <<{act}>>")
    assert (await seat.send_turn("second")).text == answer(2, "second")
    assert not any("<<" in prompt for prompt in stub.turns[-1].prompts)


async def test_a_revoked_turn_leaves_no_trace_and_no_process(
    seat: NativeAdapter, stub: Stub, leftovers: Leftovers
) -> None:
    await seat.send_turn("first")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.send_turn, "wait <<hang>>")
        await anyio.to_thread.run_sync(stub.wait_for_turns, 2)
        tasks.cancel_scope.cancel()
    assert leftovers.now() == []
    assert (await seat.send_turn("second")).text == answer(2, "second")


WRAPPER = """\
import json, sys
from pathlib import Path
import anyio
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds
preset, settings, folder, environment, passed, system = json.load(sys.stdin)
adapter = NativeAdapter(
    load_preset(preset), settings, Path(folder),
    environment=environment, bounds=Bounds(overall=100), passed=passed,
)
async def live():
    await adapter.open(system)
    await adapter.send_turn("first")
    await adapter.send_turn("second <<hang>>")
anyio.run(live)
"""


async def test_a_wrapper_killed_in_a_turn_finds_the_chat_as_it_was(
    seats: Seats, stub: Stub, tmp_path: Path, leftovers: Leftovers
) -> None:
    told = [*seats.plan(), SYSTEM]
    wrapper = await anyio.open_process([sys.executable, "-c", WRAPPER], stderr=None)
    assert wrapper.stdin is not None
    await wrapper.stdin.send(json.dumps(told).encode())
    await wrapper.stdin.aclose()
    await anyio.to_thread.run_sync(stub.wait_for_turns, 2)
    wrapper.kill()
    await wrapper.wait()
    await wrapper.aclose()
    assert await anyio.to_thread.run_sync(leftovers.none_within, 10), "the client dies with its wrapper"
    again = seats.make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    assert (await again.send_turn("second")).text == answer(2, "second")
    await again.close()


async def test_a_chat_that_is_gone_is_said_and_never_begun_anew(
    seats: Seats, stub: Stub, tmp_path: Path
) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("first")
    chat = json.loads((tmp_path / "seat" / "chat.json").read_bytes())["id"]
    for path in (tmp_path / "seat" / "home").glob(f"{adapter._call.proof(chat)}*"):
        path.unlink()
    asked = len(stub.requests)
    with pytest.raises(AdapterFault) as raised:
        await adapter.send_turn("second")
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    assert len(stub.requests) == asked
    await adapter.close()
    again = seats.make()
    await again.open(SYSTEM)
    assert again.memory_lost is seats.client.a_file_a_chat
    await again.close()


async def test_two_seats_never_hear_each_other(seats: Seats, stub: Stub) -> None:
    for name in ("one", "two"):
        adapter = seats.make(name)
        await adapter.open(SYSTEM)
        assert (await adapter.send_turn(f"I am {name}")).text == answer(1, f"I am {name}")
        await adapter.close()


async def test_the_client_is_the_version_that_is_known_to_be_good(seats: Seats) -> None:
    adapter = seats.make()
    assert await adapter.version() == adapter._preset.version.known_good


async def test_a_turn_that_hangs_is_ended_in_time(seats: Seats, leftovers: Leftovers) -> None:
    adapter = seats.make(bounds=Bounds(overall=6))
    await adapter.open(SYSTEM)
    for act in ("hang", "hang_midway"):
        with pytest.raises(AdapterFault) as raised:
            await adapter.send_turn(f"<<{act}>>")
        assert (raised.value.fault, raised.value.prompt_sent) == (Fault.DEADLINE, PromptSent.MAYBE)
        assert "was not done after 6 s" in raised.value.detail
        assert leftovers.now() == []
    await adapter.close()
