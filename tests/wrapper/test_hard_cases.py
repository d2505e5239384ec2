"""What a client can do at its worst, told as what it is: a gigabyte, a sudden death, text that commands."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import SYSTEM, fault_of, seat_maker

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper.adapters.faults import SEARCHED_CHARS, told
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.adapters.reading import MAX_PIECES, Unreadable, read_answer
from wrapper.sandbox import Bounds, Completed

if TYPE_CHECKING:
    from collections.abc import Mapping

pytest_plugins = ("seat_fixtures",)
pytestmark = pytest.mark.anyio


def program(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\ncat > /dev/null\n{script}\n")
    path.chmod(0o700)


# --- a gigabyte --------------------------------------------------------------------------------------

GIGABYTE = 'yes "nobody could read all of this" | head -c 1073741824'
_PIECES = ("unreadable_answer", "yes", "more than 1,000,000 pieces")
FLOODS = {
    "an answer": (GIGABYTE, "answer_too_large", "yes", "more than 16777216 bytes"),
    "errors": (f"{GIGABYTE} >&2; echo no such key >&2; exit 1", "client_error", "maybe", "no such key"),
    "brackets": ("printf '['; yes '[],' | tr -d '\\n' | head -c 16000000; echo '0]'", *_PIECES),
    "objects": ("printf '['; yes '{\"\":0},' | tr -d '\\n' | head -c 15999998; echo '0]'", *_PIECES),
}


@pytest.mark.parametrize("what", FLOODS)
def test_a_gigabyte_takes_a_bounded_amount_of_memory(what: str, leftovers: Leftovers, tmp_path: Path) -> None:
    script, fault, sent, words = FLOODS[what]
    program(tmp_path / "llm", script)
    command = [sys.executable, str(Path(__file__).parents[1] / "peak_of_a_turn.py"), str(tmp_path)]
    ours = {**leftovers.env, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(command, env=ours, capture_output=True, check=True, timeout=60)
    told = json.loads(done.stdout)
    assert (told["fault"], told["sent"]) == (fault, sent), told
    assert words in told["detail"]
    assert told["more_mb"] < 64, told


def test_of_pieces_there_may_be_many_and_not_any_number() -> None:
    places = load_preset("llm").answer
    line = b'[{"conversation_id":"01abc","response":"a, b","list":[%s0]}]'
    most = MAX_PIECES - (line % b"").count(b",") - 3
    assert read_answer(line % (b"0," * most), places).text == "a, b"
    with pytest.raises(Unreadable, match="1,000,000 pieces"):
        read_answer(line % (b"0," * (most + 1)), places)


async def test_a_seat_goes_on_living_while_a_long_answer_is_read(
    leftovers: Leftovers, tmp_path: Path
) -> None:
    # Runs of marks are what takes longest: each is looked at by itself.
    tower = "e" + "\u0301" * 40
    answer = json.dumps([{"conversation_id": "01abc", "response": tower * 60_000}], ensure_ascii=False)
    (tmp_path / "out").write_text(answer, encoding="utf-8")
    program(tmp_path / "llm", f"cat {tmp_path}/out")
    seat = plain_seat(tmp_path, leftovers)
    await seat.open(SYSTEM)
    beats = [time.monotonic()]

    async def beat() -> None:
        while True:
            await anyio.sleep(0.01)
            beats.append(time.monotonic())

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(beat)
        began = time.monotonic()
        await seat.send_turn("Well?")
        took = time.monotonic() - began
        tasks.cancel_scope.cancel()
    assert took > 0.5, "the answer was not long enough to be felt"
    assert max(later - sooner for sooner, later in itertools.pairwise(beats)) < took / 2
    await seat.close()


# --- a death in the middle ---------------------------------------------------------------------------


async def test_a_client_that_somebody_kills_in_the_middle_may_have_had_the_prompt(
    leftovers: Leftovers, tmp_path: Path
) -> None:
    seat = seat_maker(leftovers, tmp_path)()
    await seat.open(SYSTEM)
    await seat.send_turn("one")
    raised: list[AdapterFault] = []

    async def turn() -> None:
        raised.append(await fault_of(seat, "go on <<hang_in_the_middle>>"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(turn)
        client = 0
        with anyio.fail_after(20):
            while not client:
                await anyio.sleep(0.02)
                client = next((int(line.split()[0]) for line in leftovers.now() if "standin" in line), 0)
        os.kill(client, signal.SIGKILL)
    (fault,) = raised
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.MAYBE)
    assert "signal 9 (Killed)" in fault.detail
    assert leftovers.now() == []
    assert (await seat.send_turn("two")).text == "Heard 2 turns, the first being one"
    await seat.close()


async def test_a_grandchild_in_a_session_of_its_own_holds_neither_the_turn_nor_its_pipes(
    leftovers: Leftovers, tmp_path: Path
) -> None:
    """It holds all three pipes open, ignores what asks it to end, and its client is long gone."""
    answer = '[{"conversation_id":"01abc","response":"Well."}]'
    program(tmp_path / "llm", f"setsid sh -c 'trap \"\" TERM HUP; sleep 600' &\nprintf '%s' '{answer}'")
    seat = plain_seat(tmp_path, leftovers)
    await seat.open(SYSTEM)
    began = time.monotonic()
    assert (await seat.send_turn("Well?")).text == "Well."
    assert time.monotonic() - began < 15
    assert leftovers.now() == []
    await seat.close()


def plain_seat(folder: Path, leftovers: Leftovers, preset: Any = None) -> NativeAdapter:
    return NativeAdapter(
        preset or load_preset("llm"),
        {"api_base": "http://127.0.0.1:1/v1"} if preset is None else {},
        folder / "seat",
        environment={**leftovers.env, "PATH": f"{folder}:/usr/bin:/bin"},
        bounds=Bounds(overall=20),
        passed=(VARIABLE,),
    )


# --- text that commands a terminal, or hides from a reader --------------------------------------------

COMMANDS = [
    *("\x1b[2J", "\x1b]0;title\x07", "\x1b]52;c;cm0K\x1b\\", "\x9b31m", "\x1bPq\x1b\\", "\x1b"),
    *map(chr, (*range(9), *range(11, 32), *range(0x7F, 0xA0))),
    *"\u00ad\u034f\u061c\u115f\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2060\u2066\u2069\ufeff\ufff9",
    *"\u3164\uffa0\ufe00\U000e0041\U000e0100\U0001d173\ud800",
]
HOSTILE = "a" + "b".join(COMMANDS) + "c"

UUID = "00000000-0000-4000-8000-000000000000"
DENIED = [{"tool_name": HOSTILE, "tool_input": {HOSTILE: HOSTILE}}]


def harmless(text: str) -> bool:
    return text.isprintable() and not set(text) & set("\u034f\u115f\u3164\uffa0\ufe00\U000e0100")


class Says:
    """A client of the dialect of `claude` that says what a test wants it to."""

    def __init__(self, folder: Path, leftovers: Leftovers, preset: Mapping[str, Any] | None = None) -> None:
        self._folder = folder
        known = load_preset("claude")
        self.seat = plain_seat(folder, leftovers, known.model_copy(update=dict(preset or {})))

    def will_say(self, stderr: str = "", code: int = 0, **result: Any) -> None:
        """Print a result line with these fields, and ``{id}`` where the id shall be that of the turn."""
        model = result.pop("model", "m")
        usual = {"type": "result", "session_id": "{id}", "result": "Well.", "num_turns": 1, "is_error": False}
        lines = [{"type": "assistant", "message": {"model": model}}, usual | result]
        printed = "\n".join(json.dumps(line) for line in lines)
        # Raw where JSON allows it, as clients do.
        (self._folder / "out").write_bytes(printed.encode("utf-8", "surrogatepass"))
        (self._folder / "err").write_bytes(stderr.encode("utf-8", "surrogatepass"))
        find = 'while [ "$1" != --session-id ]; do shift; done'
        fill = f'sed "s/{{id}}/$2/" {self._folder}/out; cat {self._folder}/err >&2; exit {code}'
        program(self._folder / "claude", f"{find}\n{fill}")


@pytest.fixture
async def says(tmp_path: Path, leftovers: Leftovers) -> Any:
    client = Says(tmp_path, leftovers)
    await client.seat.open(SYSTEM)
    yield client
    await client.seat.close()


async def test_an_answer_its_model_and_its_refusals_are_clean(says: Says) -> None:
    says.will_say(result=HOSTILE, model=HOSTILE, permission_denials=DENIED)
    answer = await says.seat.send_turn("Well?")
    assert all(harmless(line) for line in answer.text.split("\n"))
    assert answer.text.startswith("ab")
    assert answer.text.endswith("\ufffdc"), "half a surrogate pair is no character"
    assert answer.usage is not None
    assert answer.usage.model is not None
    assert harmless(answer.usage.model)
    (refused,) = answer.refused
    assert harmless(refused)


FAULTS: dict[str, dict[str, Any]] = {
    "words": {"is_error": True, "result": HOSTILE, "permission_denials": DENIED},
    "errors": {"code": 1, "stderr": HOSTILE, "result": "", "permission_denials": DENIED},
    "id": {"session_id": HOSTILE},
    "another id": {"session_id": UUID},
    "an empty answer": {"result": "", "permission_denials": DENIED},
    "a text that is none": {"result": [HOSTILE]},
    "a time": {"is_error": True, "result": f"You've hit your limit, resets {HOSTILE}"},
    "a time that is no number": {"is_error": True, "result": "usage limit reached|" + "9" * 300},
    "no model asked": {"num_turns": 0, "result": f"Unknown command: {HOSTILE}"},
}


@pytest.mark.parametrize("what", FAULTS)
async def test_whatever_a_fault_tells_of_a_client_is_clean(says: Says, what: str) -> None:
    says.will_say(**FAULTS[what])
    fault = await fault_of(says.seat, "Well?")
    assert harmless(fault.detail), fault.detail
    assert len(fault.detail) <= 900
    assert harmless(fault.resets_at or "")
    assert (fault.resets_at is not None) == what.startswith("a time")
    assert all(harmless(line) for line in fault.refused)
    assert len(fault.refused) == ("permission_denials" in FAULTS[what])


async def test_an_id_is_shown_clean_even_where_a_preset_takes_any(
    tmp_path: Path, leftovers: Leftovers
) -> None:
    chat = load_preset("claude").chat.model_copy(update={"pattern": "(?s).*"})
    client = Says(tmp_path, leftovers, {"chat": chat})
    await client.seat.open(SYSTEM)
    client.will_say(session_id=HOSTILE)
    fault = await fault_of(client.seat, "Well?")
    assert fault.fault is Fault.SESSION_MISMATCH
    assert harmless(fault.detail)
    await client.seat.close()


async def test_output_that_is_none_is_shown_clean(says: Says, tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(HOSTILE.encode("utf-8", "surrogatepass"))
    program(tmp_path / "claude", f"cat {tmp_path}/out")
    fault = await fault_of(says.seat, "Well?")
    assert fault.fault is Fault.UNREADABLE_ANSWER
    assert harmless(fault.detail)


async def test_a_client_that_says_it_was_not_started_may_have_the_prompt(says: Says, tmp_path: Path) -> None:
    (tmp_path / "err").write_bytes(b"setpriv: " + HOSTILE.encode("utf-8", "surrogatepass"))
    program(tmp_path / "claude", f"cat {tmp_path}/err >&2; exit 127")
    fault = await fault_of(says.seat, "Well?")
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.MAYBE)
    assert harmless(fault.detail)


async def test_a_reason_not_to_run_is_shown_clean(says: Says, tmp_path: Path) -> None:
    (tmp_path / "claude").write_bytes(b"#!/no/\x1b[31m/such\xe2\x80\xaeone\n")
    (tmp_path / "claude").chmod(0o700)
    fault = await fault_of(says.seat, "Well?")
    assert (fault.fault, fault.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert harmless(fault.detail)


SECRET = "sk-never-to-be-told-0123456789"


@pytest.mark.parametrize(
    "script",
    [
        'echo "Incorrect API key provided: $LLM_TOKEN" >&2; exit 1',
        'printf "%s %0580d" "$LLM_TOKEN" 0 >&2; exit 1',  # cut where the key is
        'echo "$LLM_TOKEN"',
        'printf "x%.0s" $(seq 1990); echo "$LLM_TOKEN"',
        """printf '[{"conversation_id":"01abc","response":"%s"}]' "it is $LLM_TOKEN" """,
    ],
)
async def test_the_key_that_a_client_was_given_is_not_told(
    leftovers: Leftovers, tmp_path: Path, script: str
) -> None:
    program(tmp_path / "llm", script)
    seat = NativeAdapter(
        load_preset("llm"),
        {"api_base": "http://127.0.0.1:1/v1"},
        tmp_path / "seat",
        environment={**leftovers.env, "PATH": f"{tmp_path}:/usr/bin:/bin", "LLM_TOKEN": SECRET},
        bounds=Bounds(overall=20),
        passed=(VARIABLE, "LLM_TOKEN"),
    )
    await seat.open(SYSTEM)
    try:
        told = (await seat.send_turn("Well?")).text
    except AdapterFault as fault:
        told = f"{fault.detail} {fault}"
    await seat.close()
    assert not any(SECRET[at : at + 8] in told for at in range(len(SECRET) - 7)), told
    with pytest.raises(UserError) as raised:
        await seat.version()
    assert SECRET not in raised.value.message


@pytest.mark.parametrize("said", [HOSTILE, "2" * 300, "\u0663.\u0661", "1.\u202e0"])
async def test_a_version_is_a_number_or_none(tmp_path: Path, leftovers: Leftovers, said: str) -> None:
    version = load_preset("claude").version.model_copy(update={"pattern": r"(?s)(\S.*)"})
    client = Says(tmp_path, leftovers, {"version": version})
    (tmp_path / "out").write_bytes(said.encode("utf-8", "surrogatepass"))
    program(tmp_path / "claude", f"cat {tmp_path}/out")
    with pytest.raises(UserError, match="says no version") as raised:
        await client.seat.version()
    assert harmless(raised.value.message)


async def test_a_refusal_of_any_depth_is_a_line(says: Says) -> None:
    deep: Any = "x"
    for _ in range(400):
        deep = [{"x": deep}]
    says.will_say(permission_denials=[deep])
    (refused,) = (await says.seat.send_turn("Well?")).refused
    assert len(refused) <= 300
    assert harmless(refused)


def test_words_that_are_made_to_be_searched_for_ever_are_not(tmp_path: Path) -> None:
    done = Completed(1, b"", b"", None, (), 1.0)
    for name in ("claude", "codex", "glm-code"):
        for piece in ("hit your limit ", "hit your ", "usage limit try ", "usage limit reached|"):
            began = time.process_time()
            told(done, load_preset(name), "it ended", piece * (16 * 1024 * 1024 // len(piece)))
            assert time.process_time() - began < 5, (name, piece, SEARCHED_CHARS)
