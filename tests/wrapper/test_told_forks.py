"""`wrapper.adapters.native` with a client that makes up the ids of its forks: the stand-in for Codex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, chat_of, fault_of, seat_maker

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper.adapters.keeping import CHAT_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path, "codex", {"model": "gpt-x"})


async def tokens_of(seat: NativeAdapter, text: str) -> int | None:
    usage = (await seat.send_turn(text)).usage
    assert usage is not None
    return usage.tokens_in


async def test_a_turn_costs_the_difference_also_after_failures_and_in_a_new_wrapper(
    make: Make, seat: NativeAdapter, tmp_path: Path
) -> None:
    told = [await tokens_of(seat, "one"), await tokens_of(seat, "two")]
    await fault_of(seat, "<<unauthorised>>")
    await seat.close()
    assert chat_of(tmp_path / "seat")["counters"]["tokens_in"] == 203
    again = make()
    await again.open(SYSTEM)
    assert not again.memory_lost
    told.append(await tokens_of(again, "three"))
    await again.close()
    assert told == [101, 102, 103]


FAULTS = {
    "unauthorised": (
        Fault.CLIENT_ERROR,
        PromptSent.YES,
        "exit code 1: unexpected status 401 Unauthorized: no such",
    ),
    "used_up": (Fault.QUOTA, PromptSent.YES, r"hit your usage limit"),
    "no_key": (Fault.CLIENT_ERROR, PromptSent.NO, "Missing environment variable: `CODEX_API_KEY`"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty answer"),
    "same_thread": (Fault.SESSION_MISMATCH, PromptSent.YES, "itself, not in a copy of it"),
    "counts_anew": (Fault.SESSION_MISMATCH, PromptSent.YES, "counts anew"),
}


@pytest.mark.parametrize("act", FAULTS)
async def test_a_failed_turn_says_why_and_the_chat_is_kept(
    seat: NativeAdapter, tmp_path: Path, act: str
) -> None:
    kind, sent, words = FAULTS[act]
    await seat.send_turn("one")
    kept = (tmp_path / "seat" / CHAT_FILE).read_bytes()
    fault = await fault_of(seat, f"go on <<{act}>>")
    assert (fault.fault, fault.prompt_sent) == (kind, sent), fault.detail
    assert fault.resets_at == ("at 3:05 PM" if act == "used_up" else None)
    with pytest.raises(AdapterFault, match=words):
        raise fault
    assert (tmp_path / "seat" / CHAT_FILE).read_bytes() == kept


async def test_a_chat_is_not_continued_with_another_model(make: Make, seat: NativeAdapter) -> None:
    await seat.send_turn("one")
    await seat.close()
    other = make(settings={"model": "gpt-y"})
    with pytest.raises(AdapterFault, match="was held with the model gpt-x") as raised:
        await other.open(SYSTEM)
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    await seat.open(SYSTEM)
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"


async def test_a_notice_of_another_try_is_no_failure(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("<<recovers>>")).text == "After all."


async def test_a_thread_that_is_gone_was_not_sent_the_prompt(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("one")
    for path in (tmp_path / "seat" / "home").rglob("rollout-*"):
        path.unlink()
    fault = await fault_of(seat, "two")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)


async def test_a_file_that_the_client_does_not_print_keeps_the_seat_shut(
    make: Make, leftovers: Leftovers, tmp_path: Path
) -> None:
    env = {**leftovers.env, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "STANDIN_MODELS": "none"}
    adapter = make(environment=env, passed=("STANDIN_MODELS", VARIABLE))
    with pytest.raises(
        AdapterFault, match=r"codex debug models does not print what catalog.json is made of"
    ) as raised:
        await adapter.open(SYSTEM)
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    other = make()
    await other.open(SYSTEM)
    await other.close()


async def test_the_program_behind_a_launcher_is_started_in_its_place(
    make: Make, leftovers: Leftovers, tmp_path: Path
) -> None:
    (tmp_path / "bin" / "codex").rename(tmp_path / "itself")
    launcher = tmp_path / "lib" / "@openai" / "codex" / "bin" / "codex.js"
    behind = tmp_path / "lib" / "@openai" / "codex-any" / "vendor" / "any" / "bin" / "codex"
    for folder in (launcher.parent, behind.parent):
        folder.mkdir(parents=True)
    launcher.write_text("#!/bin/sh\nexit 9\n")
    launcher.chmod(0o700)
    (tmp_path / "bin" / "codex").symlink_to(launcher)
    with pytest.raises(UserError, match="says no version"):
        await make().version()
    behind.symlink_to(tmp_path / "itself")
    assert await make().version() == "0.171.0"


async def test_a_client_that_takes_no_system_prompt_is_told_with_the_first_turn(
    make: Make, leftovers: Leftovers, tmp_path: Path
) -> None:
    (tmp_path / "project").mkdir()
    person = {**leftovers.env, "PATH": f"{tmp_path}/bin:/usr/bin:/bin", "CODEX_HOME": str(tmp_path / "codex")}
    adapter = make(profile="native", cwd=tmp_path / "project", environment=person)
    await adapter.open(SYSTEM)
    first = (await adapter.send_turn("one")).text
    assert first.startswith("Heard 1 turns, the first being You are a sceptic")
    assert first.endswith("\none")
    assert (await adapter.send_turn("two")).text.startswith("Heard 2 turns, the first being You are")
    await adapter.close()
    assert (tmp_path / "codex" / "sessions").is_dir()
