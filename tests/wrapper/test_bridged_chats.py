"""`wrapper.adapters.native` with a client that is spoken with over a bridge: the stand-in for Kimi Code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, chat_of, fault_of, seat_maker

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent, Usage
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from pathlib import Path

    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path, "kimi", {"model": "m"})


def transcripts(folder: Path) -> dict[str, list[str]]:
    """What the stand-in remembers: the prompts of every chat, by id."""
    chats = {}
    for path in (folder / "seat" / "home" / "sessions").glob("*/*/agents/main/wire.jsonl"):
        records = [json.loads(line) for line in path.read_text().splitlines()]
        said = [record["input"][0]["text"].strip() for record in records if record["type"] == "turn.prompt"]
        chats[path.parents[2].name] = said
    return chats


async def test_every_turn_is_taken_in_a_copy_that_becomes_the_chat(
    make: Make, tmp_path: Path, seat: NativeAdapter
) -> None:
    ids = []
    for number, text in enumerate(("one", "two", "three"), 1):
        assert (await seat.send_turn(text)).text == f"Heard {number} turns, the first being one"
        ids.append(chat_of(tmp_path / "seat")["id"])
    assert len(set(ids)) == 3
    assert transcripts(tmp_path)[ids[-1]] == ["one", "two", "three"]
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    assert (await again.send_turn("four")).text == "Heard 4 turns, the first being one"
    await again.close()


async def test_the_instructions_stand_where_the_client_looks_for_them(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("one")
    agent = (tmp_path / "seat" / "home" / "agents" / "agent.md").read_text()
    assert agent.startswith("---\nname: agent\n")
    assert agent.endswith(f"\n---\n{SYSTEM}")


async def test_a_turn_costs_what_it_alone_took(make: Make, seat: NativeAdapter) -> None:
    usages = [(await seat.send_turn("one")).usage]
    await fault_of(seat, "<<unauthorised>>")
    usages.append((await seat.send_turn("two")).usage)
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    usages.append((await again.send_turn("three")).usage)
    await again.close()
    assert usages == [
        Usage(tokens_in=111 + turn, tokens_out=13, tokens_cached=11, model="kimi-stand-in")
        for turn in (1, 2, 3)
    ]


async def test_what_the_client_asked_of_the_model_besides_is_counted_and_not_said(
    seat: NativeAdapter,
) -> None:
    told = await seat.send_turn("<<compacts>>")
    assert told.text.startswith("Heard 1 turns")
    assert told.usage is not None
    assert told.usage.tokens_in == 1011 + 61 + 112


async def test_what_needs_a_permission_is_refused_and_told(seat: NativeAdapter) -> None:
    told = await seat.send_turn("<<tool>>")
    assert told.text == "It was not run."
    assert told.refused == ('{"title": "Bash", "text": "Run: rm x"}',)
    assert told.usage is not None
    assert told.usage.tokens_in == 21 + 31


FAULTS = {
    "refused": (Fault.CLIENT_ERROR, PromptSent.YES, "ended with exit code 0: 400 no such thing$"),
    "unauthorised": (
        Fault.CLIENT_ERROR,
        PromptSent.YES,
        "exit code 1: session/prompt: Authentication required: 401 no such key$",
    ),
    "limited": (Fault.QUOTA, PromptSent.YES, "429 slow down$"),
    "broke": (Fault.QUOTA, PromptSent.YES, "insufficient balance"),
    "failed": (Fault.CLIENT_ERROR, PromptSent.YES, "500 broken$"),
    "unreachable": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "Connection error"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "returned an empty response"),
    "cut": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "breaks off: there is no whole line"),
    "writes_nothing_down": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "breaks off"),
    "die": (
        Fault.CLIENT_ERROR,
        PromptSent.MAYBE,
        "exit code 1: session/prompt: the agent ended by signal 9$",
    ),
}


@pytest.mark.parametrize("act", FAULTS)
async def test_a_failed_turn_says_why_and_leaves_the_chat_as_it_was(
    seat: NativeAdapter, tmp_path: Path, act: str
) -> None:
    kind, sent, words = FAULTS[act]
    await fault_of(seat, f"begin <<{act}>>")
    assert not (tmp_path / "seat" / CHAT_FILE).exists()
    await seat.send_turn("one")
    kept = (tmp_path / "seat" / CHAT_FILE).read_bytes()
    fault = await fault_of(seat, f"go on <<{act}>>")
    assert (fault.fault, fault.prompt_sent) == (kind, sent), fault.detail
    assert fault.detail.isprintable()
    with pytest.raises(AdapterFault, match=words):
        raise fault
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_revoked_turn_leaves_no_trace_and_no_process(
    seat: NativeAdapter, tmp_path: Path, leftovers: Leftovers
) -> None:
    def wait_for_prompt() -> None:
        until = time.monotonic() + 20
        while not any("<<hang>>" in prompts for prompts in transcripts(tmp_path).values()):
            assert time.monotonic() < until
            time.sleep(0.02)

    await seat.send_turn("one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.send_turn, "<<hang>>")
        await anyio.to_thread.run_sync(wait_for_prompt)
        tasks.cancel_scope.cancel()
    assert leftovers.now() == []
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_client_that_hangs_is_ended_at_the_deadline(make: Make, leftovers: Leftovers) -> None:
    adapter = make(bounds=Bounds(overall=2))
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "<<hang>>")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.DEADLINE, PromptSent.MAYBE)
    assert leftovers.now() == []


async def test_a_chat_that_is_gone_was_not_sent_the_prompt(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    for path in (tmp_path / "seat" / "home" / "sessions").rglob("wire.jsonl"):
        path.unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO), fault.detail


async def test_a_chat_of_which_the_client_lost_its_record_is_not_begun_anew(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    """The real one goes on with an empty history, under the same id and without a word."""
    await seat.send_turn("one")
    chat = chat_of(tmp_path / "seat")["id"]
    for path in (tmp_path / "seat" / "home" / "sessions").rglob("wire.jsonl"):
        path.unlink()
    fault = await fault_of(seat, "two")
    assert fault.detail == f"the chat {chat} is not in the folder of kimi any more"


async def test_without_a_key_nothing_was_sent(make: Make) -> None:
    adapter = make(settings={"model": "m", "api_base": "http://127.0.0.1:1/v1"}, passed=(VARIABLE,))
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO)
    assert "session/new: Authentication required" in fault.detail


async def test_a_model_that_is_not_there_is_told_with_those_that_are(make: Make) -> None:
    adapter = make(settings={"model": "another-one"})
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO)
    assert "the agent offers no another-one; it has: another, __kimi_env_model__" in fault.detail


async def test_a_command_is_text(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("/goal rule the world")
    assert transcripts(tmp_path)[chat_of(tmp_path / "seat")["id"]] == ["/goal rule the world"]


async def test_a_prompt_that_is_too_long_for_the_client_is_not_sent(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    assert (await seat.send_turn("x" * 1_048_575)).text.startswith("Heard 1 turns")
    fault = await fault_of(seat, "x" * 1_048_576)
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO)
    assert fault.detail == "kimi is given 1048576 bytes at most, and this prompt has 1048577"
    assert len(transcripts(tmp_path)) == 1


async def test_a_client_that_went_away_was_sent_nothing(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    (tmp_path / "bin" / "kimi").unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert fault.detail.startswith("kimi is not installed")


async def test_the_version_is_asked_of_the_client_itself(make: Make) -> None:
    assert await make().version() == "2.1.0"
