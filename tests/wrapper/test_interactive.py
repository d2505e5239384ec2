"""`wrapper.adapters.interactive`: a client in a terminal; the stand-in redraws, asks, forgets and dies."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from leftovers import Leftovers
from terminal_seat import BOUNDS, STANDIN, SYSTEM, seat_maker

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper.adapters.interactive import PexpectAdapter
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.adapters.presets import load_preset
from wrapper.prompts import END_TOKEN, PASS
from wrapper.sandbox import Bounds
from wrapper.terminal import console

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    Make = Callable[..., PexpectAdapter]

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio

STANDINS = runpy.run_path(str(STANDIN))
ACTS, LONG = STANDINS["ACTS"], STANDINS["LONG"]

NO_RESUME = ('next = ["--system', "restore")


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in draws at once."""
    monkeypatch.setattr(console, "QUIET_SECONDS", 0.2)
    monkeypatch.setattr(console, "UNSURE_SECONDS", 1.5)


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path)


@pytest.fixture
async def seat(make: Make) -> AsyncIterator[PexpectAdapter]:
    adapter = make()
    await adapter.open(SYSTEM)
    yield adapter
    await adapter.close()


async def fault_of(adapter: PexpectAdapter, text: str) -> AdapterFault:
    with pytest.raises(AdapterFault) as raised:
        await adapter.send_turn(text)
    return raised.value


def descriptors() -> int:
    """How many files we have open."""
    return len(list(Path("/proc/self/fd").iterdir()))


async def refusal_of(adapter: PexpectAdapter) -> AdapterFault:
    with pytest.raises(AdapterFault) as raised:
        await adapter.open(SYSTEM)
    return raised.value


def heard(folder: Path) -> list[list[str]]:
    """What the stand-in's chats hold: the prompts of each, without the mark of the turn."""
    chats = sorted((folder / "seat" / "home" / "chats").glob("*.json"))
    return [[prompt.partition("\n")[2] for prompt in json.loads(chat.read_text())] for chat in chats]


# --- one chat ----------------------------------------------------------------------------------------------


async def test_turns_are_taken_in_one_process_and_go_on_after_our_own_restart(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    first = make()
    await first.open(SYSTEM)
    client = leftovers.now()
    for number in (1, 2):
        assert (await first.send_turn(f"turn {number}")).text == f"I have heard {number}; last: turn {number}"
    assert leftovers.now() == client, "the same processes"
    await first.close()
    assert leftovers.none_within(3)
    second = make()
    await second.open(SYSTEM)
    assert not second.memory_lost
    assert (await second.send_turn("turn 3")).text == "I have heard 3; last: turn 3"
    await second.close()
    assert heard(tmp_path) == [["turn 1", "turn 2", "turn 3"]]
    assert json.loads((tmp_path / "seat" / CHAT_FILE).read_text())["preset"] == "tui"


@pytest.mark.parametrize(
    "modes", ["queries", "trust", "swallows", "alternate", "plain", "queries,trust,alternate"]
)
async def test_whatever_the_client_does_with_its_terminal(make: Make, modes: str) -> None:
    adapter = make(modes)
    await adapter.open(SYSTEM)
    assert (await adapter.send_turn(f"> a quoted {END_TOKEN}\none")).text == "I have heard 1; last: one"
    assert (await adapter.send_turn(f"two {END_TOKEN}")).text.startswith("I have heard 2; last: two")
    await adapter.close()


async def test_a_cold_restart_begins_another_chat(seat: PexpectAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    await seat.restart(SYSTEM)
    assert seat.memory_lost
    assert (await seat.send_turn("two")).text == "I have heard 1; last: two"
    assert sorted(heard(tmp_path)) == [["one"], ["two"]]


async def test_a_chat_that_cannot_be_resumed_ends_with_its_process(make: Make) -> None:
    adapter = make(without=NO_RESUME)
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    fault = await fault_of(adapter, "two <<error>>")
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.YES)
    assert (await adapter.send_turn("three")).text == "I have heard 3; last: three", "it told, and goes on"
    assert (await fault_of(adapter, "four <<dies>>")).prompt_sent is PromptSent.MAYBE
    fault = await fault_of(adapter, "five")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    await adapter.restart(SYSTEM)
    assert (await adapter.send_turn("six")).text == "I have heard 1; last: six"
    await adapter.close()
    again = make(without=NO_RESUME)
    await again.open(SYSTEM)
    assert again.memory_lost
    await again.close()


# --- what is read ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "text"),
    [
        ("only", PASS),
        ("twice", f"The word {END_TOKEN} ends an answer.\n\nSo it does."),
        ("wrapped", f"{LONG}\n\nShort.\n\n- an item {LONG}"),
        ("wide", "東京タワー é 👩\u200d🚀 ❤️ ok نص"),
        ("tall", ACTS["tall"].removesuffix(f"\n\n{END_TOKEN}")),
        ("imitate", ACTS["imitate"].removesuffix(f"\n\n{END_TOKEN}")),
    ],
)
async def test_an_answer_is_read_whole(seat: PexpectAdapter, act: str, text: str) -> None:
    answer = await seat.send_turn(f"> {END_TOKEN}\nplease <<{act}>>")
    assert answer.text == text
    assert answer.usage is not None
    assert answer.usage.tokens_out is None
    assert answer.usage.first_byte_ms is not None
    assert (await seat.send_turn("next")).text == "I have heard 2; last: next"


@pytest.mark.parametrize("act", ["at_work", "pause"])
async def test_an_answer_is_not_over_while_the_client_works_or_draws_a_breath(
    seat: PexpectAdapter, act: str
) -> None:
    assert (await seat.send_turn(f"go <<{act}>>")).text == f"I have heard 1; last: go <<{act}>>"


async def test_what_is_typed_is_text_and_nothing_else(seat: PexpectAdapter, tmp_path: Path) -> None:
    hostile = "/help\n!ls\n\x1b[201~\r/quit\r\x03\x03\x04 @/etc/passwd\n#x\nlast"
    assert (await seat.send_turn(hostile)).text == "I have heard 1; last: last"
    assert heard(tmp_path) == [["/help\n!ls\n\n/quit\n @/etc/passwd\n#x\nlast"]]


async def test_a_large_prompt_arrives_whole(make: Make, tmp_path: Path) -> None:
    adapter = make(bounds=Bounds(overall=50))
    await adapter.open(SYSTEM)
    text = "\n".join(f"> line {number} " + "x" * 80 for number in range(4000))
    assert (await adapter.send_turn(f"{text}\nlast")).text == "I have heard 1; last: last"
    assert heard(tmp_path) == [[f"{text}\nlast"]]
    await adapter.close()


async def test_a_question_in_the_middle_is_answered_with_no_and_told(seat: PexpectAdapter) -> None:
    answer = await seat.send_turn("go <<question>>")
    assert answer.text == "I have heard 1; last: go <<question>>"
    assert len(answer.refused) == 1
    assert "touch x Do you want to proceed?" in answer.refused[0]


# --- what goes wrong ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "bounds", "fault", "sent", "words"),
    [
        ("forget", Bounds(overall=20, stall=2), Fault.STALLED, PromptSent.MAYBE, "I never end."),
        (
            "stall",
            Bounds(overall=3),
            Fault.DEADLINE,
            PromptSent.MAYBE,
            "was not done after 3 s: Half an answer",
        ),
        ("silent", Bounds(overall=20, first_byte=2), Fault.FIRST_BYTE_TIMEOUT, PromptSent.MAYBE, "for 2 s"),
        ("silent", Bounds(overall=2), Fault.DEADLINE, PromptSent.MAYBE, "after 2 s"),
        ("dies", BOUNDS, Fault.CLIENT_ERROR, PromptSent.MAYBE, "ended in the middle"),
        ("error", BOUNDS, Fault.CLIENT_ERROR, PromptSent.YES, "API Error: 529 overloaded"),
        ("flood", Bounds(overall=20, output_bytes=300_000), Fault.ANSWER_TOO_LARGE, PromptSent.YES, "300000"),
    ],
)
async def test_a_turn_that_fails_leaves_nothing(
    make: Make, act: str, bounds: Bounds, fault: Fault, *, sent: PromptSent, words: str
) -> None:
    adapter = make(bounds=bounds)
    await adapter.open(SYSTEM)
    raised = await fault_of(adapter, f"fail <<{act}>>")
    assert (raised.fault, raised.prompt_sent) == (fault, sent)
    assert words in raised.detail
    assert "─" not in raised.detail
    await adapter.close()


async def test_a_client_that_takes_no_key_may_have_had_its_prompt(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "PASTE_SECONDS", 1.0)
    adapter = make()
    await adapter.open(SYSTEM)
    raised = await fault_of(adapter, "one <<deaf>>")
    assert (raised.fault, raised.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.MAYBE)
    assert "took nothing of what was typed for 1 s" in raised.detail
    await adapter.close()


async def test_a_turn_that_is_withdrawn_as_it_is_answered_ends_a_chat_that_would_remember_it(
    make: Make, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    adapter = make(without=NO_RESUME)
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    loop, ask = asyncio.get_running_loop(), console.Console.ask
    with anyio.CancelScope() as scope:

        def answered(*given: Any) -> console.Told:
            told = ask(*given)
            loop.call_soon_threadsafe(scope.cancel)
            return told

        monkeypatch.setattr(console.Console, "ask", answered)
        await adapter.send_turn("two")
    assert scope.cancelled_caught
    assert leftovers.now() == []
    fault = await fault_of(adapter, "three")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    await adapter.close()


async def test_a_terminal_that_cannot_be_watched_is_given_back(
    make: Make, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_pid: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", refuse)
    before = descriptors()
    adapter = make()
    with pytest.raises(AdapterFault, match="Too many open files"):
        await adapter.open(SYSTEM)
    assert leftovers.now() == []
    assert descriptors() == before


async def test_a_failed_turn_is_forgotten_and_the_chat_goes_on(make: Make, tmp_path: Path) -> None:
    adapter = make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    for act in ("dies", "error"):
        await fault_of(adapter, f"fail <<{act}>>")
    assert (await adapter.send_turn("two")).text == "I have heard 2; last: two"
    await adapter.close()
    assert heard(tmp_path) == [["one", "two"]]


async def test_a_turn_that_is_withdrawn_leaves_nothing(seat: PexpectAdapter, leftovers: Leftovers) -> None:
    await seat.send_turn("one")
    with anyio.move_on_after(2) as limit:
        await seat.send_turn("never <<silent>>")
    assert limit.cancelled_caught
    assert leftovers.now() == []
    assert (await seat.send_turn("two")).text == "I have heard 2; last: two"


async def test_the_loop_goes_on_while_a_client_is_silent(make: Make) -> None:
    adapter = make(bounds=Bounds(overall=2))
    await adapter.open(SYSTEM)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await anyio.sleep(0.05)
            ticks += 1

    async with anyio.create_task_group() as group:
        group.start_soon(tick)
        await fault_of(adapter, "x <<silent>>")
        group.cancel_scope.cancel()
    assert ticks > 10
    await adapter.close()


async def test_one_turn_at_a_time_and_one_wrapper_at_a_time(seat: PexpectAdapter, make: Make) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(seat.send_turn, "one")
        await anyio.sleep(0.1)
        assert (await fault_of(seat, "two")).fault is Fault.INTERNAL
    assert "another wrapper is using" in (await refusal_of(make())).detail


@pytest.mark.parametrize(
    ("modes", "choices", "words"),
    [
        ("dies", {}, "ended before it asked for a prompt; its screen shows: cannot begin: no login"),
        ("never", {}, "did not ask for a prompt within 2 s; its screen shows: Loading…"),
        ("nopaste", {}, "does not take a marked paste"),
        ("trust", {"profile": "native"}, "Do you trust this folder?"),
    ],
)
async def test_a_client_that_does_not_get_ready(
    make: Make, monkeypatch: pytest.MonkeyPatch, modes: str, choices: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(console, "START_SECONDS", 2.0)
    fault = await refusal_of(make(modes, **choices))
    assert (fault.fault, fault.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert words in fault.detail


async def test_a_client_that_is_not_there(make: Make, leftovers: Leftovers) -> None:
    fault = await refusal_of(make(environment={**leftovers.env, "PATH": "/usr/bin:/bin"}))
    assert "not installed" in fault.detail


async def test_what_the_client_started_goes_with_it(make: Make, leftovers: Leftovers) -> None:
    adapter = make("stubborn")
    await adapter.open(SYSTEM)
    await adapter.send_turn("x <<grandchild>>")
    assert any("sleep 600" in process for process in leftovers.now())
    await adapter.close()
    assert leftovers.now() == []


def test_a_preset_without_a_terminal_cannot_be_used_in_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="its preset has no \\[terminal\\]"):
        PexpectAdapter(load_preset("llm"), {}, tmp_path, environment={}, bounds=BOUNDS)


WRAPPER = """
import sys
from pathlib import Path
import anyio
from leftovers import Leftovers
from terminal_seat import SYSTEM, seat_maker
seen = Leftovers()
import os
seen.env = {name: os.environ[name] for name in ("PATH", "LANG", "TEST_TOKEN")}
async def live():
    seat = seat_maker(seen, Path(sys.argv[1]))()
    await seat.open(SYSTEM)
    print("open", flush=True)
    await seat.send_turn("x <<silent>>")
anyio.run(live)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_does_not_outlive_its_wrapper(
    leftovers: Leftovers, tmp_path: Path, number: signal.Signals
) -> None:
    root = Path(__file__).parents[2]
    env = {**leftovers.env, "PYTHONPATH": os.pathsep.join((str(root), str(root / "tests")))}
    command = [sys.executable, "-c", WRAPPER, str(tmp_path)]
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as wrapper:
        assert wrapper.stdout is not None
        assert wrapper.stdout.readline() == b"open\n"
        time.sleep(0.5)
        wrapper.send_signal(number)
    assert leftovers.none_within(5), leftovers.now()
