"""`wrapper.adapters.native`: one chat a seat, resumed by its exact id, and every way in which it may fail."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
import yaml
from leftovers import VARIABLE, Leftovers
from standin_seat import SETTINGS, SYSTEM, chat_of, fault_of, history, seat_maker

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent, Usage
from wrapper import sandbox
from wrapper.adapters import keeping
from wrapper.adapters.keeping import CHAT_FILE, KeptChat, kept_chat, write_whole
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.remains import RUN_VARIABLE
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from standin_seat import Make

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.now() == []


@pytest.fixture
def make(leftovers: Leftovers, tmp_path: Path) -> Make:
    return seat_maker(leftovers, tmp_path)


def text_of(path: Path) -> str:
    return path.read_text()


# --- one chat ----------------------------------------------------------------------------------------


async def test_three_turns_are_one_chat_and_each_is_counted_by_itself(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    answers = [await seat.send_turn(f"turn {number}") for number in (1, 2, 3)]
    assert answers[2].text == "Heard 3 turns, the first being turn 1"
    assert [len(turns) for turns in history(tmp_path / "seat").values()] == [3]
    usages = [answer.usage for answer in answers]
    assert usages[0] == Usage(tokens_in=13, tokens_out=8, tokens_cached=0, model="stand-in-1")
    grown = [usage.tokens_in for usage in usages if usage is not None]
    assert grown == [13, 23, 33]
    assert not seat.memory_lost


async def test_the_prompt_and_the_system_prompt_stay_out_of_the_argument_list(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    first, second = [
        json.loads((await seat.send_turn(f"{turn} <<environment>>")).text)["argv"] for turn in ("one", "two")
    ]
    assert "sceptic" not in f"{first} {second}"
    assert "<<" not in f"{first} {second}"
    chats = history(tmp_path / "seat")
    assert {turn["system"] for turns in chats.values() for turn in turns} == {SYSTEM.strip()}
    assert second[-2:] == ["--cid", next(iter(chats))]


async def test_a_prompt_of_a_megabyte_arrives_whole(seat: NativeAdapter, tmp_path: Path) -> None:
    prompt = "ä\n" * 350_000
    await seat.send_turn(prompt)
    ((turn,),) = history(tmp_path / "seat").values()
    assert turn["prompt"] == prompt


async def test_a_wrapper_that_starts_again_goes_on_in_the_same_chat(make: Make, tmp_path: Path) -> None:
    first = make()
    await first.open(SYSTEM)
    await first.send_turn("before")
    await first.close()
    second = make()
    await second.open(SYSTEM)
    assert not second.memory_lost
    assert (await second.send_turn("after")).text == "Heard 2 turns, the first being before"
    await second.close()
    assert len(history(tmp_path / "seat")) == 1


async def test_two_seats_never_see_each_others_chats(make: Make, tmp_path: Path) -> None:
    for name in ("one", "two"):
        adapter = make(name)
        await adapter.open(SYSTEM)
        assert (await adapter.send_turn(name)).text == f"Heard 1 turns, the first being {name}"
        await adapter.close()
    assert history(tmp_path / "one") != history(tmp_path / "two")


async def test_an_adapter_that_is_not_open_takes_no_turn_and_no_restart(make: Make) -> None:
    adapter = make()
    with pytest.raises(RuntimeError, match="not open"):
        await adapter.send_turn("hello")
    with pytest.raises(RuntimeError, match="not open"):
        await adapter.restart(SYSTEM)
    await adapter.close()


async def test_opening_and_closing_twice_is_the_same_as_once(make: Make) -> None:
    adapter = make()
    await adapter.open(SYSTEM)
    await adapter.open(SYSTEM)
    await adapter.send_turn("hello")
    await adapter.close()
    await adapter.close()


# --- what the client gets, and what it does not ------------------------------------------------------


async def test_the_client_gets_the_allowed_variables_its_own_folders_and_nothing_else(
    make: Make, tmp_path: Path
) -> None:
    adapter = make(passed=("OPENAI_API_KEY",))
    await adapter.open(SYSTEM)
    told = json.loads((await adapter.send_turn("<<environment>>")).text)
    await adapter.close()
    home = str(tmp_path / "seat" / "home")
    env = {name: value for name, value in told["env"].items() if name not in ("PWD", "SHLVL", "_")}
    assert env.pop("PATH").startswith(f"{tmp_path}/bin:")
    assert env.pop(RUN_VARIABLE)
    assert env.pop(VARIABLE)
    assert env == {
        "HOME": home,
        "LLM_USER_PATH": home,
        "TMPDIR": f"{home}/tmp",
        "LANG": "C.UTF-8",
        "LLM_LOAD_PLUGINS": "",
        "NO_PROXY": "127.0.0.1,localhost,::1",
        "OPENAI_API_KEY": "real",
        "PYTHONUTF8": "1",
    }
    assert told["cwd"] == str(tmp_path / "seat" / "work")


async def test_a_key_that_is_not_passed_by_name_stays_with_the_wrapper(seat: NativeAdapter) -> None:
    told = json.loads((await seat.send_turn("<<environment>>")).text)
    assert told["env"]["OPENAI_API_KEY"] == "unused"


async def test_a_native_seat_works_in_the_operators_project(make: Make, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    adapter = make(cwd=project)
    await adapter.open(SYSTEM)
    assert json.loads((await adapter.send_turn("<<environment>>")).text)["cwd"] == str(project)
    await adapter.close()


def modes_under(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.rglob("*"))}


async def test_all_that_a_seat_keeps_is_private(seat: NativeAdapter, tmp_path: Path) -> None:
    modes = modes_under(tmp_path / "seat")
    assert all(mode in (0o700, 0o600) for mode in modes.values()), modes
    assert "extra-openai-models.yaml" in modes


async def test_a_setting_in_a_file_of_the_client_can_only_be_a_value(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    written = text_of(tmp_path / "seat" / "home" / "extra-openai-models.yaml")
    assert yaml.safe_load(written) == [
        {
            "model_id": "seat",
            "model_name": "SmolLM2-135M-Instruct",
            "api_base": SETTINGS["api_base"],
            "api_key_name": "endpoint",
        }
    ]


async def test_what_a_client_made_of_its_own_configuration_is_undone_before_the_next_turn(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("first")
    configuration = tmp_path / "seat" / "home" / "extra-openai-models.yaml"
    ours = text_of(configuration)
    configuration.write_text("- model_id: another\n")
    (tmp_path / "seat" / "home" / "system-prompt.txt").unlink()
    assert (await seat.send_turn("second")).text == "Heard 2 turns, the first being first"
    assert text_of(configuration) == ours
    assert text_of(tmp_path / "seat" / "home" / "system-prompt.txt") == SYSTEM


async def test_a_folder_in_the_place_of_the_clients_configuration_is_cleared_away(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("first")
    configuration = tmp_path / "seat" / "home" / "extra-openai-models.yaml"
    configuration.unlink()
    configuration.mkdir()
    assert (await seat.send_turn("second")).text
    assert configuration.is_file()


async def test_a_turn_whose_client_bars_its_own_folder_was_not_sent_the_prompt(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("first")
    home = tmp_path / "seat" / "home"
    home.rename(tmp_path / "away")
    home.write_text("no folder")
    fault = await fault_of(seat, "second")
    assert (fault.fault, fault.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert "cannot be put in order" in fault.detail


def test_a_link_that_the_client_put_in_the_way_is_replaced_and_not_followed(tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.write_text("key")
    link = tmp_path / "link"
    link.symlink_to(ours)
    write_whole(link, b"settings")
    assert (ours.read_text(), link.read_text(), link.is_symlink()) == ("key", "settings", False)


def test_a_file_that_cannot_be_written_leaves_nothing_half_done(tmp_path: Path) -> None:
    (tmp_path / "chat").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "chat", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["chat"]


# --- memory ------------------------------------------------------------------------------------------


async def after_one_turn(make: Make) -> None:
    adapter = make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("long ago")
    await adapter.close()


async def test_a_seat_whose_chat_is_gone_says_so_until_it_has_a_new_one(make: Make, tmp_path: Path) -> None:
    await after_one_turn(make)
    (tmp_path / "seat" / "home" / "logs.db").unlink()
    adapter = make()
    await adapter.open(SYSTEM)
    assert adapter.memory_lost
    await adapter.close()
    adapter = make()
    await adapter.open(SYSTEM)
    assert adapter.memory_lost
    assert (await adapter.send_turn("now")).text == "Heard 1 turns, the first being now"
    await adapter.close()
    adapter = make()
    await adapter.open(SYSTEM)
    assert not adapter.memory_lost
    await adapter.close()


@pytest.mark.parametrize(
    "damage", [b"", b"{", b'{"id": "x"}', b'{"preset":"llm","id":"../x","system_prompt":""}']
)
async def test_a_seat_that_cannot_read_which_chat_it_had_says_that_it_is_lost(
    make: Make, tmp_path: Path, damage: bytes
) -> None:
    await after_one_turn(make)
    (tmp_path / "seat" / CHAT_FILE).write_bytes(damage)
    adapter = make()
    await adapter.open(SYSTEM)
    assert adapter.memory_lost
    await adapter.close()


async def test_a_cold_restart_is_a_new_chat_also_after_the_wrapper_died(make: Make, tmp_path: Path) -> None:
    adapter = make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("long ago")
    await adapter.restart("You are somebody else.")
    assert adapter.memory_lost
    await adapter.close()
    adapter = make()
    await adapter.open("You are somebody else.")
    assert adapter.memory_lost
    assert (await adapter.send_turn("now")).text == "Heard 1 turns, the first being now"
    await adapter.close()
    old, new = history(tmp_path / "seat").values()
    assert [turn["prompt"] for turn in old] == ["long ago"]
    assert [turn["system"] for turn in new] == ["You are somebody else."]
    adapter = make()
    await adapter.open("You are somebody else.")
    assert not adapter.memory_lost
    await adapter.close()


async def test_a_chat_is_not_continued_under_another_system_prompt(make: Make) -> None:
    await after_one_turn(make)
    adapter = make()
    with pytest.raises(AdapterFault, match="another system prompt") as raised:
        await adapter.open("You agree with everybody.")
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    await adapter.open(SYSTEM)
    await adapter.close()


async def test_a_seat_belongs_to_one_wrapper_at_a_time(seat: NativeAdapter, make: Make) -> None:
    other = make()
    with pytest.raises(AdapterFault, match="another wrapper"):
        await other.open(SYSTEM)
    await seat.close()
    await other.open(SYSTEM)
    await other.close()


async def test_a_wrapper_that_was_killed_gives_its_seat_back(
    make: Make, tmp_path: Path, leftovers: Leftovers
) -> None:
    code = (
        "import sys, time; from pathlib import Path; from wrapper.adapters.keeping import lock_folder\n"
        "lock_folder(Path(sys.argv[1])); print('locked', flush=True); time.sleep(60)"
    )
    (tmp_path / "seat").mkdir()
    other = await anyio.open_process(
        [sys.executable, "-c", code, str(tmp_path / "seat")], env=leftovers.env, stderr=subprocess.DEVNULL
    )
    assert other.stdout is not None
    assert await other.stdout.receive() == b"locked\n"
    adapter = make()
    with pytest.raises(AdapterFault, match="another wrapper"):
        await adapter.open(SYSTEM)
    other.kill()
    await other.wait()
    await other.aclose()
    await adapter.open(SYSTEM)
    await adapter.close()


async def test_a_state_folder_that_cannot_be_made_is_named(make: Make, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    adapter = make("file/seat")
    with pytest.raises(AdapterFault, match="file/seat cannot be used"):
        await adapter.open(SYSTEM)
    with pytest.raises(UserError, match="file/seat cannot be used"):
        await adapter.version()


async def test_a_state_that_cannot_be_written_refuses_to_open(make: Make, tmp_path: Path) -> None:
    (tmp_path / "seat" / "chat.json").mkdir(parents=True)
    adapter = make()
    with pytest.raises(AdapterFault, match="cannot be kept"):
        await adapter.open(SYSTEM)


# --- turns that fail ---------------------------------------------------------------------------------

FAULTS = {
    "fail": (Fault.CLIENT_ERROR, PromptSent.YES, r"exit code 1: .*the provider broke$"),
    "quota": (Fault.QUOTA, PromptSent.YES, "exceeded your quota"),
    "crash": (Fault.CLIENT_ERROR, PromptSent.MAYBE, "LookupError: something unforeseen$"),
    "die": (Fault.CLIENT_ERROR, PromptSent.MAYBE, r"signal 9 \(Killed\), and gave no reason"),
    "silent": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "not JSON"),
    "chatter": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "Sure! Here is my answer"),
    "no_text": (Fault.UNREADABLE_ANSWER, PromptSent.YES, "no text at /0/response"),
    "empty": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty answer"),
    "invisible": (Fault.EMPTY_ANSWER, PromptSent.YES, "empty answer"),
    "no_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "in which chat"),
    "option_as_chat": (Fault.SESSION_MISMATCH, PromptSent.YES, "in which chat"),
}


NOTHING_CAME = {"fail", "quota", "crash", "die", "silent"}


@pytest.mark.parametrize("act", FAULTS)
async def test_a_failed_first_turn_says_why_and_keeps_no_chat(
    seat: NativeAdapter, tmp_path: Path, act: str
) -> None:
    kind, sent, words = FAULTS[act]
    fault = await fault_of(seat, f"please <<{act}>>")
    assert (fault.fault, fault.prompt_sent) == (kind, sent)
    assert fault.partial_bytes is not None, "the client ran: what came of it was counted"
    assert (fault.partial_bytes > 0) == (act not in NOTHING_CAME)
    with pytest.raises(AdapterFault, match=words):
        raise fault
    assert "\x1b" not in fault.detail
    assert kept_chat(tmp_path / "seat") is None
    assert (await seat.send_turn("again")).text == "Heard 1 turns, the first being again"


@pytest.mark.parametrize("act", FAULTS)
async def test_a_failed_later_turn_leaves_the_seat_in_its_chat(
    seat: NativeAdapter, tmp_path: Path, act: str
) -> None:
    await seat.send_turn("first")
    kept = chat_of(tmp_path / "seat")
    assert (await fault_of(seat, f"please <<{act}>>")).fault is FAULTS[act][0]
    assert chat_of(tmp_path / "seat") == kept
    assert (await seat.send_turn("again")).text.endswith("the first being first")


async def test_an_answer_from_another_chat_fails_the_turn_and_is_not_adopted(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("first")
    kept = chat_of(tmp_path / "seat")
    fault = await fault_of(seat, "please <<another_chat>>")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.YES)
    assert "01another" in fault.detail
    assert kept["id"] in fault.detail
    assert chat_of(tmp_path / "seat") == kept


async def test_a_chat_that_vanished_between_two_turns_was_not_sent_the_prompt(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    await seat.send_turn("first")
    (tmp_path / "seat" / "home" / "logs.db").write_text("{}")
    fault = await fault_of(seat, "second")
    assert (fault.fault, fault.prompt_sent) == (Fault.SESSION_MISMATCH, PromptSent.NO)
    await seat.restart(SYSTEM)
    assert (await seat.send_turn("second")).text == "Heard 1 turns, the first being second"


async def test_what_the_client_prints_is_cleaned_before_anybody_reads_it(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("please <<dirty>>")).text == "a red word and \ufffd more"


async def test_an_unknown_cost_is_unknown_and_not_nothing(seat: NativeAdapter) -> None:
    assert (await seat.send_turn("please <<no_usage>>")).usage == Usage()


async def test_a_client_that_is_not_installed_was_not_sent_the_prompt(make: Make, tmp_path: Path) -> None:
    preset = load_preset("llm").model_copy(update={"executable": "no-such-client"})
    adapter = make(preset=preset)
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, "hello")
    await adapter.close()
    assert (fault.fault, fault.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert fault.partial_bytes is None


async def test_an_answer_whose_chat_cannot_be_kept_fails_the_turn_and_is_not_the_seats_chat(
    seat: NativeAdapter, tmp_path: Path
) -> None:
    (tmp_path / "seat" / CHAT_FILE).mkdir()
    fault = await fault_of(seat, "first")
    assert (fault.fault, fault.prompt_sent) == (Fault.INTERNAL, PromptSent.YES)
    (tmp_path / "seat" / CHAT_FILE).rmdir()
    assert (await seat.send_turn("second")).text == "Heard 1 turns, the first being second"
    assert chat_of(tmp_path / "seat")["id"] in history(tmp_path / "seat")


async def test_a_restart_that_cannot_be_kept_keeps_the_chat(seat: NativeAdapter, tmp_path: Path) -> None:
    await seat.send_turn("first")
    (tmp_path / "seat" / CHAT_FILE).unlink()
    (tmp_path / "seat" / CHAT_FILE).mkdir()
    with pytest.raises(AdapterFault, match="cannot be kept"):
        await seat.restart(SYSTEM)
    assert not seat.memory_lost
    (tmp_path / "seat" / CHAT_FILE).rmdir()
    assert (await seat.send_turn("second")).text == "Heard 2 turns, the first being first"


# --- turns that do not end ---------------------------------------------------------------------------


def streaming(bounds: Bounds) -> dict[str, Any]:
    """As if the client printed as it goes."""
    preset = load_preset("llm")
    run = preset.run.model_copy(update={"output": "streamed"})
    return {"preset": preset.model_copy(update={"run": run}), "bounds": bounds}


@pytest.mark.parametrize("streams", [True, False])
async def test_a_client_that_prints_as_it_goes_shows_when_it_began(make: Make, streams: bool) -> None:
    adapter = make(**(streaming(Bounds(overall=20)) if streams else {}))
    await adapter.open(SYSTEM)
    usage = (await adapter.send_turn("first")).usage
    await adapter.close()
    assert usage is not None
    if streams:
        assert usage.first_byte_ms is not None
        assert 0 < usage.first_byte_ms < 20_000
    else:
        assert usage.first_byte_ms is None


SLOW = {
    "hang": (Bounds(overall=20, first_byte=0.4), Fault.FIRST_BYTE_TIMEOUT, r"said nothing for 0\.4 s"),
    "hang_in_the_middle": (Bounds(overall=20, stall=0.4), Fault.STALLED, r"then said nothing for 0\.4 s"),
    "ignore_sigterm": (Bounds(overall=0.4), Fault.DEADLINE, r"not done after 0\.4 s"),
    "flood": (Bounds(overall=20, output_bytes=10**6), Fault.ANSWER_TOO_LARGE, "more than 1000000 bytes"),
}


@pytest.mark.parametrize("act", SLOW)
async def test_a_turn_that_breaks_its_bounds_ends_with_its_client(
    make: Make, leftovers: Leftovers, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    monkeypatch.setattr(sandbox, "GRACE_SECONDS", 0.2)
    bounds, kind, words = SLOW[act]
    adapter = make(**streaming(bounds))
    await adapter.open(SYSTEM)
    fault = await fault_of(adapter, f"please <<{act}>>")
    assert leftovers.now() == []
    await adapter.close()
    assert fault.fault is kind
    assert fault.prompt_sent is (PromptSent.YES if kind is Fault.ANSWER_TOO_LARGE else PromptSent.MAYBE)
    assert fault.partial_bytes is not None
    assert (fault.partial_bytes > 0) == (act in {"hang_in_the_middle", "flood"})
    with pytest.raises(AdapterFault, match=words):
        raise fault


async def test_a_client_that_prints_at_the_end_has_the_whole_turn_to_think(make: Make) -> None:
    adapter = make(bounds=Bounds(overall=0.6, first_byte=0.1, stall=0.1))
    await adapter.open(SYSTEM)
    assert (await fault_of(adapter, "please <<hang>>")).fault is Fault.DEADLINE
    await adapter.close()


async def test_a_grandchild_that_holds_the_pipe_does_not_hold_the_answer(
    seat: NativeAdapter, leftovers: Leftovers
) -> None:
    began = time.monotonic()
    assert (await seat.send_turn("please <<orphan>>")).text.startswith("Heard 1 turns")
    assert time.monotonic() - began < 5
    assert leftovers.now() == []


async def test_a_revoked_turn_leaves_no_process_and_no_trace_in_the_chat(
    seat: NativeAdapter, leftovers: Leftovers
) -> None:
    await seat.send_turn("first")
    with anyio.move_on_after(0.4) as scope:
        await seat.send_turn("please <<hang>>")
    assert scope.cancelled_caught
    assert leftovers.now() == []
    assert (await seat.send_turn("third")).text == "Heard 2 turns, the first being first"


async def test_two_turns_at_once_in_one_chat_are_refused(seat: NativeAdapter) -> None:
    async with anyio.create_task_group() as group:
        group.start_soon(seat.send_turn, "please <<hang>>")
        await anyio.sleep(0.1)
        fault = await fault_of(seat, "me too")
        group.cancel_scope.cancel()
    assert (fault.fault, fault.prompt_sent) == (Fault.INTERNAL, PromptSent.NO)


async def test_a_client_whose_processes_cannot_be_ended_fails_the_turn(
    seat: NativeAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run(_command: sandbox.Command, _bounds: Bounds) -> sandbox.Completed:
        return sandbox.Completed(0, b"", b"", None, (4711, 4712), 1.0)

    monkeypatch.setattr(sandbox, "run", run)
    fault = await fault_of(seat, "hello")
    assert (fault.fault, fault.prompt_sent) == (Fault.INTERNAL, PromptSent.MAYBE)
    assert "4711, 4712" in fault.detail


# --- configuration -----------------------------------------------------------------------------------


async def test_a_client_tells_its_version(make: Make) -> None:
    assert await make().version() == "0.36"


@pytest.mark.parametrize(
    ("said", "words"),
    [("0.35.1", r"llm 0\.35\.1 is too old; .* 0\.36"), ("unknown", "says no version: llm, version")],
)
async def test_a_client_that_is_too_old_or_says_nonsense_is_refused_with_the_way_out(
    make: Make, monkeypatch: pytest.MonkeyPatch, said: str, words: str
) -> None:
    environment = {**make()._env, "STANDIN_VERSION": said}
    with pytest.raises(UserError, match=words) as refused:
        await make(environment=environment, passed=("STANDIN_VERSION",)).version()
    assert "make install" in refused.value.hint


async def test_a_client_that_is_not_there_is_refused_with_the_way_out(make: Make) -> None:
    preset = load_preset("llm").model_copy(update={"executable": "no-such-client"})
    with pytest.raises(UserError, match="no-such-client is not installed") as refused:
        await make(preset=preset).version()
    assert "make install" in refused.value.hint


def test_a_seat_without_an_endpoint_is_refused(make: Make) -> None:
    with pytest.raises(UserError, match="CONSILIUM_MODEL_URL"):
        make(settings={})


def test_a_variable_of_ours_cannot_be_passed_on(make: Make) -> None:
    with pytest.raises(UserError, match="CONSILIUM_KEY"):
        make(passed=("CONSILIUM_KEY",))


def test_a_project_that_is_not_there_is_refused(make: Make, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere is not a folder"):
        make(cwd=tmp_path / "nowhere")


def test_a_kept_chat_survives_the_trip_to_the_disk(tmp_path: Path) -> None:
    chat = KeptChat(preset="llm", id="01abc", system_prompt=keeping.fingerprint("x"))
    keeping.keep_chat(tmp_path, chat)
    assert kept_chat(tmp_path) == chat
