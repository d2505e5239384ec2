"""What goes wrong at the provider is told as what it is, in the client's own words, and leaves no process."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from leftovers import Leftovers

from clients.kit import SYSTEM
from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent

if TYPE_CHECKING:
    from clients.kit import Seats
    from council.conformance.provider.stub import Stub
    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(300)]


async def fault_of(seat: NativeAdapter, text: str) -> AdapterFault:
    with pytest.raises(AdapterFault) as raised:
        await seat.send_turn(text)
    return raised.value


ACTS = ["400", "401", "403", "404", "429", "500", "529", "quota", "cut", "empty"]


@pytest.mark.parametrize("act", ACTS)
async def test_each_fault_of_the_provider_is_told_as_what_it_is(
    seats: Seats, seat: NativeAdapter, leftovers: Leftovers, act: str
) -> None:
    kind, sent, words = seats.client.faults[act]
    fault = await fault_of(seat, f"<<{act}>>")
    assert leftovers.now() == []
    assert (fault.fault, fault.prompt_sent) == (kind, sent), fault.detail
    assert words in fault.detail
    assert fault.detail.isprintable()
    assert len(fault.detail) < 900


async def test_without_a_key_nothing_is_sent_and_the_client_says_so(seats: Seats, stub: Stub) -> None:
    adapter = seats.make(passed=())
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO), fault.detail
    assert seats.client.no_key in fault.detail
    assert stub.requests == []


async def test_a_wrong_key_is_told_in_the_providers_words_and_not_shown(seats: Seats) -> None:
    wrong = dict.fromkeys(seats.client.passed, "sk-wrong-key-0987654321")
    adapter = seats.make(env=wrong)
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == seats.client.faults["401"][:2]
    assert "the stub does not know this key" in fault.detail
    assert "0987654321" not in fault.detail


async def test_a_provider_that_is_not_there_was_sent_nothing(seats: Seats, leftovers: Leftovers) -> None:
    nowhere = {key: value.format(url="http://127.0.0.1:1") for key, value in seats.client.env.items()}
    settings = {key: value.format(url="http://127.0.0.1:1") for key, value in seats.client.settings.items()}
    adapter = seats.make(env=nowhere, settings=settings)
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, seats.client.nowhere), fault.detail
    assert leftovers.now() == []


async def test_a_prompt_beyond_the_clients_limit_is_refused_before_it_is_sent(
    seats: Seats, seat: NativeAdapter, stub: Stub
) -> None:
    if seats.client.limit_bytes is None:
        pytest.skip("this client takes a prompt of any length")
    fault = await fault_of(seat, "word " * (seats.client.limit_bytes // 5))
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO), fault.detail
    assert stub.turns == []
    assert (await seat.send_turn("hello")).text == "I have seen 1 user messages; last: hello"


async def test_an_answer_full_of_control_characters_is_text(seat: NativeAdapter) -> None:
    told = await seat.send_turn("<<controls>>")
    assert all(char.isprintable() or char == "\n" for char in told.text)
    # A client may have taken out what it knows of each piece, and left the rest of a sequence cut in two.
    assert told.text.startswith("ared ")
    assert told.text.endswith(" desrever\n\nend")
    assert not set("\x1b\x07\u202e") & set(told.text)


async def test_a_huge_answer_is_whole_and_one_beyond_all_bounds_is_a_fault(
    seats: Seats, leftovers: Leftovers
) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    assert len((await adapter.send_turn("<<huge 2000000>>")).text) == 2_000_000
    fault = await fault_of(adapter, "<<huge 20000000>>")
    await adapter.close()
    assert fault.fault is Fault.ANSWER_TOO_LARGE
    assert leftovers.now() == []


async def test_a_client_that_somebody_kills_in_the_middle_may_have_had_the_prompt(
    seat: NativeAdapter, stub: Stub, leftovers: Leftovers
) -> None:
    await seat.send_turn("hello")
    raised: list[AdapterFault] = []

    async def turn() -> None:
        raised.append(await fault_of(seat, "wait <<hang_midway>>"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
        await anyio.to_thread.run_sync(stub.wait_for_turns, 2)
        for told in leftovers.now():
            with suppress(ProcessLookupError):
                os.kill(int(told.split()[0]), signal.SIGKILL)
    (fault,) = raised
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.MAYBE), fault.detail
    assert "was ended by signal 9 (Killed)" in fault.detail
    assert leftovers.now() == []
    assert (await seat.send_turn("again")).text == "I have seen 2 user messages; last: again"


async def test_a_provider_that_recovers_is_answered_after_all(
    seats: Seats, seat: NativeAdapter, stub: Stub
) -> None:
    stub.will("529", "answer")
    if not seats.client.tries_again:
        assert (await fault_of(seat, "hello")).prompt_sent is PromptSent.YES
        assert len(stub.turns) == 1
    assert (await seat.send_turn("hello")).text == "I have seen 1 user messages; last: hello"
    assert [turn.prompts for turn in stub.turns] == [stub.turns[0].prompts] * 2
