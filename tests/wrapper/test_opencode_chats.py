"""`wrapper.adapters.native` with a client that tells a turn in many lines: the stand-in for opencode."""

from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
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

if TYPE_CHECKING:
    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio

PRESETS = Path(__file__).parents[2] / "wrapper" / "presets"


@pytest.fixture(params=["opencode", "deepseek.coder"])
def make(request: pytest.FixtureRequest, leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path, request.param, {"model": "m-1"})


def sessions(folder: Path) -> dict[str, list[str]]:
    """What the stand-in remembers: the prompts of every session, by id."""
    file = folder / "seat" / "home" / ".local" / "share" / "opencode" / "opencode.db"
    told: dict[str, list[str]] = json.loads(file.read_text())
    return told


def wait_for_prompt(folder: Path, prompt: str) -> None:
    until = time.monotonic() + 30
    while not any(prompt in prompts for prompts in sessions(folder).values()):
        assert time.monotonic() < until
        time.sleep(0.02)


async def test_every_turn_is_taken_in_a_fork_that_becomes_the_chat(
    make: Make, tmp_path: Path, seat: NativeAdapter
) -> None:
    ids = []
    for number, text in enumerate(("one", "two", "three"), 1):
        assert (await seat.send_turn(text)).text == f"Heard {number} turns, the first being one"
        ids.append(chat_of(tmp_path / "seat")["id"])
    assert len(set(ids)) == 3
    assert sessions(tmp_path)[ids[-1]] == ["one", "two", "three"]
    await seat.close()
    again = make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    assert (await again.send_turn("four")).text == "Heard 4 turns, the first being one"
    await again.close()


async def test_what_is_told_in_pieces_is_one_answer_and_one_cost(seat: NativeAdapter) -> None:
    plain = await seat.send_turn("one")
    assert plain.usage == Usage(tokens_in=112, tokens_out=13, tokens_cached=11)
    told = await seat.send_turn("<<denied>>")
    assert told.text == "Let me see.\nI was not allowed to."
    assert told.usage == Usage(tokens_in=226, tokens_out=26, tokens_cached=22)


async def test_what_the_client_was_refused_is_told_in_clean_lines(seat: NativeAdapter) -> None:
    (refused,) = (await seat.send_turn("<<denied>>")).refused
    assert refused.isprintable()
    assert '"tool": "bash"' in refused
    assert "rm -r" in refused


FAULTS = {
    "unauthorised": (
        Fault.CLIENT_ERROR,
        PromptSent.YES,
        r"exit code 1: the provider answered 401: no such key$",
    ),
    "no_money": (Fault.QUOTA, PromptSent.YES, r"the provider answered 402: Insufficient Balance$"),
    "failing": (Fault.CLIENT_ERROR, PromptSent.YES, r"gave up after 3 of its tries: Overloaded$"),
    "used_up": (
        Fault.QUOTA,
        PromptSent.YES,
        r"gave up after 1 of its tries: Rate limit reached; again at 2026",
    ),
    "unreachable": (Fault.CLIENT_ERROR, PromptSent.NO, r"Unable to connect\. Is it there\?$"),
    "no_key": (Fault.CLIENT_ERROR, PromptSent.NO, r"there is no key for https://api.example.org/v1$"),
    "elsewhere": (Fault.SESSION_MISMATCH, PromptSent.NO, r"begun in another folder: /somewhere$"),
    "cut": (Fault.CLIENT_ERROR, PromptSent.MAYBE, r"exit code 1: the answer broke off$"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty answer"),
    "silent": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "not lines of JSON"),
    "without_plugin": (Fault.CLIENT_ERROR, PromptSent.MAYBE, r"exit code 1: Unexpected server error\.$"),
    "die": (Fault.CLIENT_ERROR, PromptSent.MAYBE, r"signal 9 \(Killed\), and gave no reason$"),
    "same_session": (Fault.SESSION_MISMATCH, PromptSent.YES, "itself, not in a copy of it"),
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
    assert fault.detail.isprintable()
    assert "hidden" not in fault.detail, "headers are nobody's business"
    assert "http://x" not in fault.detail
    assert fault.resets_at == ("2026-11-30T15:34:02Z" if act == "used_up" else None)
    with pytest.raises(AdapterFault, match=words):
        raise fault
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept
    if act != "same_session":
        assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_revoked_turn_is_not_in_the_chat(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(seat.send_turn, "<<hang>>")
        await anyio.to_thread.run_sync(wait_for_prompt, tmp_path, "<<hang>>")
        tasks.cancel_scope.cancel()
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_session_that_is_gone_was_not_sent_the_prompt(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    next((tmp_path / "seat" / "home").rglob("opencode.db")).write_text("{}")
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    assert fault.detail.endswith("Error: Session not found")


async def test_the_profiles_differ_in_what_the_client_may_do_and_in_whose_home_it_is(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    told = {}
    (tmp_path / "project").mkdir()
    person = {
        **leftovers.env,
        "HOME": str(tmp_path / "person"),
        "PATH": f"{tmp_path}/bin:/usr/bin:/bin",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
        "OPENCODE_PERMISSION": '{"*":"allow"}',
    }
    for profile, cwd in (("restricted", None), ("native", tmp_path / "project")):
        adapter = make(profile, profile=profile, cwd=cwd, environment=person)
        await adapter.open(SYSTEM)
        told[profile] = json.loads((await adapter.send_turn("<<environment>>")).text)
        await adapter.close()
        assert told[profile]["config"]["system"] == SYSTEM
        assert "OPENCODE_PERMISSION" not in told[profile]["env"]
        assert "--auto" not in told[profile]["argv"]
    restricted, native = told["restricted"], told["native"]
    assert restricted["env"]["HOME"] == str(tmp_path / "restricted" / "home")
    assert "XDG_CONFIG_HOME" not in restricted["env"]
    assert restricted["env"]["OPENCODE_DISABLE_PROJECT_CONFIG"] == "true"
    assert restricted["env"]["npm_config_offline"] == "true"
    # Its configuration's own folder is the only one in which it looks for no plug-in.
    folder = str(tmp_path / "restricted" / "home" / ".config" / "opencode")
    assert restricted["argv"][restricted["argv"].index("--dir") + 1] == folder
    assert restricted["env"]["SEAT_FOLDER"] == folder
    assert "--dir" not in native["argv"]
    assert "SEAT_FOLDER" not in native["env"]
    assert native["env"]["HOME"] == str(tmp_path / "person")
    assert native["env"]["XDG_CONFIG_HOME"] == str(tmp_path / "config")
    assert "OPENCODE_DISABLE_PROJECT_CONFIG" not in native["env"]
    assert native["cwd"] == str(tmp_path / "project")
    asked = native["config"]["permission"]
    assert asked["*"] == "ask"
    assert {tool for tool, rule in asked.items() if rule == "allow"} == {
        "glob",
        "grep",
        "list",
        "skill",
        "todowrite",
    }
    assert asked["question"] == "deny", "nobody would answer it"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_base", 'http://x/","apiKey":"'),
        ("api_base", "http://{env:HOME}/"),
        ("model", "{file:/etc/passwd}"),
    ],
)
def test_a_setting_stays_a_value_in_the_clients_configuration(key: str, value: str) -> None:
    for name in ("opencode", "deepseek.coder"):
        with pytest.raises(UserError, match=f"the setting {key} of the client {name} cannot be"):
            load_preset(name).complete({"model": "m-1", key: value})


def test_deepseek_differs_in_the_provider_alone() -> None:
    ours, theirs = (
        tomllib.loads((PRESETS / f"{name}.toml").read_text()) for name in ("opencode", "deepseek.coder")
    )
    for key in ("executable", "behind", "install", "version", "chat", "profiles", "env", "answer", "faults"):
        assert ours[key] == theirs[key], key
    assert ours["state"]["files"]["seat.mjs"] == theirs["state"]["files"]["seat.mjs"]


async def test_the_version_is_read(make: Make, leftovers: Leftovers) -> None:
    assert await make(passed=(VARIABLE,)).version() == "1.18.33"


async def test_a_program_that_npm_left_unlinked_is_found_behind_its_script(
    make: Make, tmp_path: Path
) -> None:
    modules = tmp_path / "lib" / "node_modules"
    script = modules / "opencode-ai" / "bin" / "opencode.exe"
    program = modules / "opencode-linux-x64-baseline" / "bin" / "opencode"
    for folder in (script.parent, program.parent):
        folder.mkdir(parents=True)
    (tmp_path / "bin" / "opencode").rename(program)
    script.write_text('#!/bin/sh\necho "Error: opencode-ai\'s postinstall script was not run." >&2\nexit 1\n')
    script.chmod(0o700)
    (tmp_path / "bin" / "opencode").symlink_to(script)
    assert await make().version() == "1.18.33"
