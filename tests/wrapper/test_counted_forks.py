"""`wrapper.adapters.native` with a client that forks and counts on: the stand-in for Qwen Code."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from leftovers import Leftovers
from standin_seat import STANDINS, SYSTEM, chat_of, fault_of, seat_maker

from consilium.messages import Fault, PromptSent, Usage
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.adapters.presets import load_preset

if TYPE_CHECKING:
    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path, "qwen-code", {"model": "qwen-x"})


async def test_a_turn_costs_the_difference_also_after_failures_and_in_a_new_wrapper(
    make: Make, seat: NativeAdapter, tmp_path: Path
) -> None:
    usages = [(await seat.send_turn(text)).usage for text in ("one", "two")]
    await fault_of(seat, "<<unauthorised>>")
    await seat.close()
    assert chat_of(tmp_path / "seat")["counters"] == {
        "tokens_in": 203,
        "tokens_out": 26,
        "tokens_cached": 22,
    }
    again = make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    usages.append((await again.send_turn("three")).usage)
    await again.close()
    expected = [
        Usage(tokens_in=100 + turn, tokens_out=13, tokens_cached=11, model="qwen-x") for turn in (1, 2, 3)
    ]
    assert usages == expected


FAULTS = {
    "unauthorised": (Fault.CLIENT_ERROR, PromptSent.YES, "exit code 1: [API Error: 401 no such key]"),
    "guarded": (Fault.QUOTA, PromptSent.YES, "API Error: 429 Too Many Requests"),
    "used_up": (Fault.QUOTA, PromptSent.YES, "Quota exhausted"),
    "unreachable": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "Connection error. (cause: fetch failed)"),
    "too_long": (Fault.CLIENT_ERROR, PromptSent.NO, "Context is too large"),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "without a finish reason"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty response text"),
    "counts_anew": (Fault.SESSION_MISMATCH, PromptSent.YES, "counts anew"),
    "same_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "itself, not in a copy of it"),
}


@pytest.mark.parametrize("act", FAULTS)
async def test_a_failed_turn_says_why_and_leaves_the_chat_as_it_was(
    seat: NativeAdapter, tmp_path: Path, act: str
) -> None:
    kind, sent, words = FAULTS[act]
    await seat.send_turn("one")
    kept = (tmp_path / "seat" / CHAT_FILE).read_bytes()
    fault = await fault_of(seat, f"go on <<{act}>>")
    assert (fault.fault, fault.prompt_sent) == (kind, sent), fault.detail
    assert words in fault.detail
    assert fault.resets_at == ("2026-12-01T08:00:00Z" if act == "used_up" else None)
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept
    if act != "same_chat":  # the stand-in has then written into the chat itself
        assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_what_begins_like_a_command_is_text(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("/stats")).text == "Heard 1 turns, the first being /stats"


@pytest.mark.parametrize("command", ["/stats", "/help"])
async def test_what_a_client_took_for_a_command_is_no_answer(make: Make, command: str) -> None:
    preset = load_preset("qwen-code")
    adapter = make(preset=preset.model_copy(update={"run": preset.run.model_copy(update={"lead": ""})}))
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, command)
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.NO), fault.detail


async def test_a_chat_that_is_gone_was_not_sent_the_prompt(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    for path in (tmp_path / "seat" / "home" / "projects").rglob("*.jsonl"):
        path.unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    assert fault.detail.endswith(" is not in the folder of qwen any more")


async def test_what_the_client_was_refused_is_told(seat: NativeAdapter) -> None:
    (refused,) = (await seat.send_turn("<<denied>>")).refused
    assert "rm -r /" in refused


async def test_the_profiles_differ_in_tools_and_in_whose_home_and_endpoint_it_is(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    told = {}
    (tmp_path / "project").mkdir()
    person = {
        **leftovers.env,
        "HOME": str(tmp_path / "person"),
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "OPENAI_BASE_URL": "http://person",
    }
    settings = {"api_base": "http://seat"}
    for profile, cwd in (("restricted", None), ("native", tmp_path / "project")):
        adapter = make(profile, profile=profile, cwd=cwd, environment=person, settings=settings)
        await adapter.open(SYSTEM)
        told[profile] = json.loads((await adapter.send_turn("see @x <<environment>>")).text)
        await adapter.close()
        module = tmp_path / profile / "home" / "guard.mjs"
        assert told[profile]["env"]["NODE_OPTIONS"] == f'--import="{module}"'
        assert "undici:request:headers" in module.read_text()
    restricted, native = told["restricted"], told["native"]
    assert (
        restricted["env"]["QWEN_HOME"] == restricted["env"]["HOME"] == str(tmp_path / "restricted" / "home")
    )
    assert restricted["env"]["OPENAI_BASE_URL"] == "http://seat"
    assert restricted["system"] == SYSTEM
    assert restricted["prompts"] == ["see @x <<environment>>"]
    assert native["env"]["HOME"] == str(tmp_path / "person")
    assert native["env"]["OPENAI_BASE_URL"] == "http://person"
    assert native["system"] is None
    assert native["prompts"][0].startswith(SYSTEM)
    assert native["prompts"][0].endswith("see \\@x <<environment>>")
    assert "--bare" not in native["argv"]


async def test_what_is_behind_a_launcher_and_no_program_is_run_by_what_the_preset_names(
    make: Make, tmp_path: Path
) -> None:
    launcher, itself = tmp_path / "lib" / "cli-entry.js", tmp_path / "lib" / "cli.js"
    launcher.parent.mkdir()
    launcher.write_text("#!/bin/sh\nexit 9\n")
    launcher.chmod(0o700)
    (tmp_path / "bin" / "qwen").unlink()
    (tmp_path / "bin" / "qwen").symlink_to(launcher)
    node = tmp_path / "bin" / "node"
    python = f'exec {shlex.quote(sys.executable)} -I -S "$@"'
    node.write_text(f'#!/bin/sh\ntest "$1" = --expose-gc || exit 8\nshift\n{python}\n')
    node.chmod(0o700)
    itself.write_text((STANDINS / "qwen_standin.py").read_text())
    itself.chmod(0o600)
    assert await make().version() == "0.24.4"


async def test_what_the_client_loads_is_there_before_it_is_asked_for_its_version(
    make: Make, tmp_path: Path
) -> None:
    await make().version()
    home = tmp_path / "seat" / "home"
    assert (home / "guard.mjs").is_file()
    assert not (home / "system-prompt.txt").exists()
