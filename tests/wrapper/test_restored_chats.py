"""`wrapper.adapters.native` with a client whose chat is put back: the stand-in for Gemini CLI."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, chat_of, fault_of, seat_maker

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
    return seat_maker(leftovers, tmp_path, "gemini", {"model": "gemini-2.5-flash"})


def prompts(folder: Path) -> list[list[str]]:
    """What the stand-in remembers of each file of a chat."""
    files = sorted((folder / "seat" / "home").glob(".gemini/tmp/*/chats/*.jsonl"))
    return [json.loads(file.read_text())["prompts"] for file in files]


def wait_for_prompt(folder: Path, prompt: str) -> None:
    until = time.monotonic() + 30
    while not any(prompt in chat for chat in prompts(folder)):
        assert time.monotonic() < until
        time.sleep(0.02)


async def test_every_turn_goes_on_in_the_chat_itself(make: Make, tmp_path: Path, seat: NativeAdapter) -> None:
    ids = set()
    for number, text in enumerate(("one", "two", "three"), 1):
        assert (await seat.send_turn(text)).text == f"Heard {number} turns, the first being one"
        ids.add(chat_of(tmp_path / "seat")["id"])
    assert len(ids) == 1
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    assert (await again.send_turn("four")).text == "Heard 4 turns, the first being one"
    await again.close()
    assert prompts(tmp_path)[-1] == ["one", "two", "three", "four"]


async def test_what_a_turn_costs_includes_what_the_model_thought(seat: NativeAdapter) -> None:
    usages = [(await seat.send_turn(text)).usage for text in ("one", "two")]
    assert usages == [
        Usage(tokens_in=100 + turn, tokens_out=13, tokens_cached=11, model="gemini-stand-in")
        for turn in (1, 2)
    ]


async def test_a_cost_that_makes_no_sense_is_unknown(seat: NativeAdapter) -> None:
    usage = (await seat.send_turn("<<untold>>")).usage
    assert usage == Usage(tokens_in=9, tokens_out=None, tokens_cached=None, model="m")


FAULTS = {
    "unauthorised": (Fault.CLIENT_ERROR, PromptSent.YES, 'exit code 145: [API Error: {"error":{"code":401'),
    "used_up": (Fault.QUOTA, PromptSent.YES, "Your quota will reset after 2h3m10s."),
    "unreachable": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "fetch failed"),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "exit code 0: Model stream ended without a finish reason."),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "The model returned an empty response"),
    "too_long": (Fault.CLIENT_ERROR, PromptSent.NO, "gemini asked no model, and gave no reason"),
    "lost_output": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "breaks off: there is no result line"),
    "another_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "answered in the chat 00000000-0000-4000-8000"),
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
    assert words in fault.detail
    assert fault.resets_at == ("in 2h3m10s" if act == "used_up" else None)
    assert "Turn.run" not in fault.detail
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_revoked_turn_is_not_in_the_chat_nor_in_a_file_that_it_began(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    for text in ("one", "two"):
        await seat.send_turn(text)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.send_turn, "<<hang>>")
        await anyio.to_thread.run_sync(wait_for_prompt, tmp_path, "<<hang>>")
        tasks.cancel_scope.cancel()
    assert len(prompts(tmp_path)) == 2, "the turn began a file"
    assert (await seat.send_turn("three")).text == "Heard 3 turns, the first being one"
    assert not any("<<hang>>" in chat for chat in prompts(tmp_path))


async def test_a_hanging_client_is_ended_and_its_turn_undone(make: Make, leftovers: Leftovers) -> None:
    adapter = make(bounds=Bounds(overall=3))
    await adapter.open(SYSTEM)
    await adapter.send_turn("one")
    fault = await fault_of(adapter, "<<hang>>")
    assert (fault.fault, fault.prompt_sent) == (Fault.DEADLINE, PromptSent.MAYBE)
    assert leftovers.now() == []
    assert (await adapter.send_turn("two")).text == "Heard 2 turns, the first being one"
    await adapter.close()


async def test_a_chat_that_vanished_was_not_sent_the_prompt_and_is_missed(
    make: Make, seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("one")
    for file in (tmp_path / "seat" / "home").rglob("*.jsonl"):
        file.unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    assert fault.detail.endswith(" is not in the folder of gemini any more")
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    assert again.memory_lost
    await again.close()


async def test_what_was_not_there_for_the_model_is_told(seat: NativeAdapter) -> None:
    (refused,) = (await seat.send_turn("<<not_there>>")).refused
    assert 'Tool \\"run_shell_command\\" not found' in refused


async def test_what_begins_like_a_command_is_text(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("/help")).text == "Heard 1 turns, the first being /help"


async def test_the_profiles_differ_in_settings_in_arguments_and_in_how_a_file_is_named(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    told = {}
    (tmp_path / "project").mkdir()
    (tmp_path / "person" / ".gemini").mkdir(parents=True)
    (tmp_path / "person" / ".gemini" / "settings.json").write_text(
        '{"security": {"auth": {"selectedType": "oauth-personal"}}}'
    )
    person = {
        **leftovers.env,
        "HOME": str(tmp_path / "person"),
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "GEMINI_API_KEY": "kept",
    }
    for profile, cwd in (("restricted", None), ("native", tmp_path / "project")):
        adapter = make(profile, profile=profile, cwd=cwd, environment=person)
        await adapter.open(SYSTEM)
        told[profile] = json.loads((await adapter.send_turn("see @x <<environment>>")).text)
        await adapter.close()
        assert "GEMINI_API_KEY" not in told[profile]["env"]
        assert told[profile]["env"]["GEMINI_CLI_NO_RELAUNCH"] == "true"
    restricted, native = told["restricted"], told["native"]
    home = tmp_path / "restricted" / "home"
    assert restricted["env"]["HOME"] == restricted["env"]["GEMINI_CLI_HOME"] == str(home)
    assert restricted["system"] == SYSTEM
    assert restricted["prompts"] == ["see @x <<environment>>"]
    settings = json.loads((home / ".gemini" / "settings.json").read_text())
    assert settings["tools"] == {"core": []}
    assert settings["security"]["auth"] == {"selectedType": "gemini-api-key"}
    assert native["env"]["HOME"] == str(tmp_path / "person")
    assert "GEMINI_CLI_HOME" not in native["env"]
    assert native["system"] is None
    assert native["prompts"][0].startswith(SYSTEM)
    assert native["prompts"][0].endswith("see \\@x <<environment>>")
    assert "--extensions" not in native["argv"]


async def test_the_login_of_a_restricted_seat_is_a_setting(make: Make, tmp_path: Path) -> None:
    adapter = make(settings={"auth": "oauth-personal"}, passed=(VARIABLE,))
    await adapter.open(SYSTEM)
    settings = json.loads((tmp_path / "seat" / "home" / ".gemini" / "settings.json").read_text())
    assert settings["security"]["auth"] == {"selectedType": "oauth-personal"}
    told = json.loads((await adapter.send_turn("<<environment>>")).text)
    assert told["argv"][:2] == ["-m", "gemini-2.5-pro"]
    await adapter.close()
