"""`wrapper.adapters.native` with a client that would remember failed turns: the stand-in for Claude Code."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, chat_of, fault_of, seat_maker

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent, Usage
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from pathlib import Path

    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path, "claude", {"model": "claude-stand-in"})


def transcripts(folder: Path) -> dict[str, list[str]]:
    """What the stand-in remembers: the prompts of every chat, by id."""
    files = (folder / "seat" / "home" / "projects").glob("*/*.jsonl")
    return {path.stem: json.loads(path.read_text())["prompts"] for path in files}


def wait_for_prompt(folder: Path, prompt: str) -> None:
    until = time.monotonic() + 30
    while not any(prompt in prompts for prompts in transcripts(folder).values()):
        assert time.monotonic() < until
        time.sleep(0.02)


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


async def test_a_turn_costs_what_it_added_to_the_chats_cost(make: Make, seat: NativeAdapter) -> None:
    usages = [(await seat.send_turn("one")).usage]
    await fault_of(seat, "<<unauthorised>>")
    usages.append((await seat.send_turn("two")).usage)
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    usages.append((await again.send_turn("three")).usage)
    await again.close()
    expected = [
        Usage(tokens_in=118 + turn, tokens_out=13, tokens_cached=11, usd=0.001, model="claude-stand-in")
        for turn in (1, 2, 3)
    ]
    assert usages == expected


async def test_a_cost_that_was_not_told_is_unknown_and_told_with_the_next(seat: NativeAdapter) -> None:
    await seat.send_turn("one")
    untold = (await seat.send_turn("<<no_cost>>")).usage
    assert untold is not None
    assert (untold.usd, untold.tokens_in) == (None, 120)
    later = (await seat.send_turn("three")).usage
    assert later is not None
    assert later.usd == 0.001


FAULTS = {
    "unauthorised": (
        Fault.CLIENT_ERROR,
        PromptSent.YES,
        r"exit code 1: Failed to authenticate.*no such key$",
    ),
    "used_up": (Fault.QUOTA, PromptSent.YES, r"Claude AI usage limit reached\|1796052842$"),
    "hit_the_limit": (Fault.QUOTA, PromptSent.YES, r"hit your session limit · resets 3pm \(Europe/Rome\)$"),
    "not_logged_in": (Fault.CLIENT_ERROR, PromptSent.NO, "Please run /login$"),
    "failed_with_exit_0": (Fault.CLIENT_ERROR, PromptSent.YES, "exit code 0: API Error: 500 broken$"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty answer"),
    "breaks_off": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "breaks off: there is no result line"),
    "no_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "does not say in which chat"),
    "another_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "answered in the chat 00000000-0000-4000-8000"),
    "die": (Fault.CLIENT_ERROR, PromptSent.MAYBE, r"signal 9 \(Killed\), and gave no reason$"),
}


RESETS = {"used_up": "2026-11-30T15:34:02Z", "hit_the_limit": "3pm (Europe/Rome)"}


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
    assert fault.resets_at == RESETS.get(act)
    with pytest.raises(AdapterFault, match=words):
        raise fault
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_cost_that_shrank_is_one_that_nobody_can_read(seat: NativeAdapter) -> None:
    await seat.send_turn("one")
    usage = (await seat.send_turn("<<counts_anew>>")).usage
    assert usage is not None
    assert (usage.usd, usage.tokens_in) == (None, 120)


async def test_a_hanging_client_is_ended_and_shows_none_of_its_lines(
    make: Make, leftovers: Leftovers
) -> None:
    adapter = make(bounds=Bounds(overall=3))
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "<<hang>>")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.DEADLINE, PromptSent.MAYBE)
    assert fault.detail == "claude was not done after 3 s, and gave no reason"
    assert leftovers.now() == []


async def test_a_revoked_turn_is_not_in_the_chat(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.send_turn, "<<hang>>")
        await anyio.to_thread.run_sync(wait_for_prompt, tmp_path, "<<hang>>")
        tasks.cancel_scope.cancel()
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_what_begins_like_a_command_is_text(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("/help")).text == "Heard 1 turns, the first being /help"


async def test_what_a_client_took_for_a_command_is_no_answer(make: Make) -> None:
    preset = load_preset("claude")
    bare = preset.model_copy(update={"run": preset.run.model_copy(update={"lead": ""})})
    adapter = make(preset=bare)
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "/help")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO)
    assert fault.detail == "claude asked no model: /help isn't available in this environment."


async def test_a_chat_that_vanished_was_not_sent_the_prompt(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    chat = chat_of(tmp_path / "seat")["id"]
    next((tmp_path / "seat" / "home").rglob(f"{chat}.jsonl")).unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    assert fault.detail == f"the chat {chat} is not in the folder of claude any more"


async def test_what_the_client_was_refused_is_told_in_clean_lines(seat: NativeAdapter) -> None:
    (refused,) = (await seat.send_turn("<<denied>>")).refused
    assert refused.isprintable()
    assert '"tool_name": "Bash"' in refused
    assert "rm -r" in refused


async def test_text_is_cleaned_and_a_line_separator_inside_it_ends_no_line(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("<<dirty>>")).text == "a red word,\nnext\nline"


async def test_the_profiles_differ_in_arguments_and_in_whose_home_it_is(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    told = {}
    (tmp_path / "project").mkdir()
    person = {
        **leftovers.env,
        "HOME": str(tmp_path / "person"),
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "ANTHROPIC_API_KEY": "kept",
    }
    for profile, cwd in (("restricted", None), ("native", tmp_path / "project")):
        adapter = make(profile, profile=profile, cwd=cwd, environment=person)
        await adapter.open(SYSTEM)
        told[profile] = json.loads((await adapter.send_turn("<<environment>>")).text)
        await adapter.close()
        assert told[profile]["system"] == SYSTEM
        assert "ANTHROPIC_API_KEY" not in told[profile]["env"]
        assert told[profile]["env"]["CLAUDE_CODE_DISABLE_ATTACHMENTS"] == "1"
    restricted, native = told["restricted"], told["native"]
    assert restricted["env"]["HOME"] == restricted["env"]["CLAUDE_CONFIG_DIR"]
    assert restricted["env"]["HOME"] == str(tmp_path / "restricted" / "home")
    assert "XDG_CONFIG_HOME" not in restricted["env"]
    assert "--safe-mode" in restricted["argv"]
    assert native["env"]["HOME"] == str(tmp_path / "person")
    assert native["env"]["XDG_CONFIG_HOME"] == str(tmp_path / "config")
    assert "CLAUDE_CONFIG_DIR" not in native["env"]
    assert native["cwd"] == str(tmp_path / "project")
    assert not {"--tools", "--safe-mode", "--dangerously-skip-permissions"} & set(native["argv"])


async def test_a_native_chat_is_resumed_by_its_exact_id_wherever_its_person_keeps_it(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    person = {**leftovers.env, "HOME": str(tmp_path), "PATH": f"{tmp_path}/bin:/usr/bin:/bin"}
    (tmp_path / "project").mkdir()
    for text, answer in (("one", "Heard 1 turns"), ("two", "Heard 2 turns")):
        adapter = make(profile="native", cwd=tmp_path / "project", environment=person)
        await adapter.open(SYSTEM)
        assert (await adapter.send_turn(text)).text == f"{answer}, the first being one"
        await adapter.close()


@pytest.mark.parametrize(
    ("version", "words"), [("2.1.197", "too old; it has to be 2.1.332"), ("two", "no version")]
)
async def test_a_version_that_is_called_in_another_way_is_refused(
    make: Make, leftovers: Leftovers, tmp_path: Path, version: str, words: str
) -> None:
    env = {**leftovers.env, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "STANDIN_VERSION": version}
    with pytest.raises(UserError, match=words):
        await make(environment=env, passed=("STANDIN_VERSION", VARIABLE)).version()


async def test_a_setting_that_is_not_given_adds_no_argument(make: Make) -> None:
    told = []
    for name, settings in (("none", {}), ("both", {"model": "opus", "effort": "high"})):
        adapter = make(name, settings=settings)
        await adapter.open(SYSTEM)
        told.append(json.loads((await adapter.send_turn("<<environment>>")).text)["argv"])
        await adapter.close()
    assert "--model" not in told[0]
    assert told[1][told[1].index("--model") + 1] == "opus"
    assert told[1][told[1].index("--effort") + 1] == "high"
