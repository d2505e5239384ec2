"""`consilium seat` with a person: the real process at a real pseudo-terminal, before an Arbiter's double."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread
import pexpect
import pytest
from arbiter_double import HOST, TOPIC, ArbiterDouble, Seated, arbiter_double
from edge_kit import Council
from statuses import seat, status

from consilium import messages as m
from consilium.cli import main

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

PATIENCE = 20
WHO = "me_0A1B2C3D"
COUNCIL = """\
topic: Wrap it or rewrite it?
caps: {max_rounds: 2}
limits: {speech_bytes: 2000, turn_seconds: 300}
participants:
  - {name: me, preset: human, role_prompt: Doubt everything., role_label: Doubter%s}
"""


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture
async def arbiter(council: Council) -> AsyncIterator[ArbiterDouble]:
    async with arbiter_double(council.server) as double:
        yield double


def words(
    folder: Path, council: Council, arbiter: ArbiterDouble | None, *more: str, says: str = ""
) -> list[str]:
    (folder / "council.yaml").write_text(COUNCIL % says)
    ports = (1, 1) if arbiter is None else (arbiter.address.control_port, arbiter.address.data_port)
    return [
        *("seat", "--council", str(folder / "council.yaml"), "--name", "me"),
        *("--certs", str(council.alice.cert.parent), "--state", str(folder / "state"), "--host", HOST),
        *("--control-port", str(ports[0]), "--data-port", str(ports[1]), "--connect-timeout", "10", *more),
    ]


class Person:
    """Who sits at a seat's terminal."""

    def __init__(self, argv: list[str]) -> None:
        self.process = pexpect.spawn(
            sys.executable,
            ["-m", "consilium", *argv],
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
            dimensions=(40, 100),
            timeout=PATIENCE,
            encoding="utf-8",
        )
        self.before = termios.tcgetattr(self.process.child_fd)

    async def sees(self, text: str) -> None:
        await anyio.to_thread.run_sync(self.process.expect_exact, text)

    def type(self, text: str) -> None:
        self.process.send(text)

    async def ends(self) -> int:
        """Wait until the seat is gone; return its exit code. The terminal is as it was found."""
        await anyio.to_thread.run_sync(self.process.expect, pexpect.EOF)
        code: int = await anyio.to_thread.run_sync(self.process.wait)
        return code


@contextmanager
def sitting(argv: list[str]) -> Iterator[Person]:
    person = Person(argv)
    try:
        yield person
    finally:
        person.process.close(force=True)


@asynccontextmanager
async def seated(
    folder: Path, council: Council, arbiter: ArbiterDouble, *more: str, says: str = ""
) -> AsyncIterator[tuple[Person, Seated]]:
    """A person whose seat is in the rotation, and who has been told who sits there."""
    with sitting(words(folder, council, arbiter, *more, says=says)) as person:
        table = await arbiter.seat()
        await table.control.hear(m.StatusRequest)
        await table.control.say(status(seat(WHO, brand="human"), seat()))
        await person.sees(f"At the table: you, {seat().participant_id}")
        yield person, table


def held(person: Person) -> bool:
    """Whether the line editor has the terminal."""
    return not termios.tcgetattr(person.process.child_fd)[3] & termios.ICANON


SAID = m.DeltaEntry(speaker="ada_0A1B2C3D", role_label="Sceptic", text="I \x1b]0;x\x07doubt\x1b[2J it.")


async def test_a_person_takes_a_turn_skips_one_steps_away_comes_back_and_leaves(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    async with seated(tmp_path, council, arbiter) as (person, table):
        meta = table.reg.meta
        assert (meta.brand, meta.adapter, meta.role_label) == ("human", "human", "Doubter")
        assert (meta.model, meta.harness_profile, meta.isolation, meta.reports_usage) == (None,) * 4
        await table.assign(1, SAID)
        await table.control.hear(m.StatusRequest)
        await person.sees("the Arbiter waits 1 min 0 s")
        await person.sees(f"Topic    {TOPIC}")
        await person.sees("ada_0A1B2C3D (Sceptic)\r\n    I doubt it.")
        await person.sees("you> ")
        person.type("/sta\x7f\x7f\x7f\x7fI doubt \x17doubt it too.\\\rReally.\r")
        assert await table.data.hear(m.Speech) == m.Speech(turn_id=1, text="I doubt it too.\nReally.")
        assert await table.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=1, speech=True)
        await table.assign(2)
        await table.control.hear(m.StatusRequest)
        person.type("\r")
        skip = m.SystemEvent(event="HUMAN_SKIP", participant_id=WHO)
        assert await table.data.hear(m.SystemEvent) == skip
        assert await table.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=2)
        person.type("\x01")
        stepped_back = m.StateUpdate(required=False, disconnect_policy=m.DisconnectPolicy.DROP)
        assert await table.control.hear(m.StateUpdate) == stepped_back
        await table.assign(3, SAID)
        assert await table.data.hear(m.SystemEvent) == skip
        assert await table.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=3)
        person.type("\x02")
        assert (await table.control.hear(m.StateUpdate)).required is True
        await table.control.hear(m.StatusRequest)
        here = {WHO: 63}
        await table.control.say(status(seat(WHO, brand="human"), seat(), turns_since=here))
        await person.sees("187; 63 since you last spoke")
        person.type("\x13")
        await table.control.hear(m.StatusRequest)
        person.type("\x11")
        assert await table.control.hear(m.Unreg) == m.Unreg(reason="user_quit")
        await table.control.hears_the_end()
        assert await person.ends() == 0


async def test_other_keys_and_a_timeout_from_the_council_file_and_the_command_line(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    own = ", timeout_s: 600, keys: {away: ctrl+g, quit: alt+q}"
    more = ("--timeout", "0.5", "--key", "status=F2")
    async with seated(tmp_path, council, arbiter, *more, says=own) as (person, table):
        person.type("\x1bOQ")
        await table.control.hear(m.StatusRequest)
        person.type("not sent")
        await table.assign(1)
        await table.control.hear(m.StatusRequest)
        await table.data.hear(m.SystemEvent)
        assert await table.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=1)
        await person.sees("nothing for 0.5 s: skipped")
        person.type("\x07")
        await table.control.hear(m.StateUpdate)
        person.type("\x1bq\x1bq")
        await table.control.hear(m.Unreg)
        await table.control.hears_the_end()
        assert await person.ends() == 0


async def test_a_turn_that_is_taken_back_leaves_the_text_for_the_next(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    async with seated(tmp_path, council, arbiter) as (person, table):
        await table.assign(1)
        await table.control.hear(m.StatusRequest)
        person.type("half a th")
        await person.sees("half a th")
        await table.control.say(m.TurnRevoked(turn_id=1, reason="deadline_exceeded"))
        await person.sees(
            "turn 1 is over: it was revoked: deadline_exceeded; your text was not sent, and is kept"
        )
        person.type("ought\r")
        await person.sees("it is not your turn: nothing was sent")
        assert await table.data.hears_nothing()
        await table.assign(2)
        await person.sees("what you had typed is still there")
        person.type("\r")
        assert (await table.data.hear(m.Speech)).text == "half a thought"
        await table.finish_after(m.StatusRequest, m.TurnEnd)
        await person.sees("the debate ended: FINISHED")
        assert await person.ends() == 0


async def test_ctrl_d_in_a_turn_is_a_failure_and_no_skip(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    async with seated(tmp_path, council, arbiter) as (person, table):
        await table.assign(1)
        await table.control.hear(m.StatusRequest)
        await person.sees("you> ")
        person.type("\x04")
        failed = await table.control.hear(m.TurnFailed)
        assert (failed.fault, failed.prompt_sent) == (m.Fault.CLIENT_ERROR, m.PromptSent.YES)
        assert (
            failed.detail
            == "no more can be entered at this seat: the person pressed Ctrl+D: the input has ended"
        )
        assert await table.data.hears_nothing()
        await table.control.say(m.SeatRecovery(mode=m.Recovery.KEEP))
        await table.assign(2)
        person.type("Back again.\r")
        assert (await table.data.hear(m.Speech)).text == "Back again."
        await table.finish_after(m.StatusRequest, m.TurnEnd)
        assert await person.ends() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
async def test_the_terminal_is_given_back_however_it_ends(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble, number: signal.Signals
) -> None:
    says_goodbye = number in (signal.SIGTERM, signal.SIGINT)
    async with seated(tmp_path, council, arbiter) as (person, table):
        assert held(person)
        await table.assign(1)
        await table.control.hear(m.StatusRequest)
        person.type("unsent")
        await person.sees("unsent")
        person.process.kill(number)
        if says_goodbye:
            await table.control.hear(m.Unreg)
            await table.control.hears_the_end()
        await person.sees("\x1b[?2004l")
        await anyio.to_thread.run_sync(person.process.expect, pexpect.EOF)
        with anyio.fail_after(PATIENCE):
            while person.process.isalive():  # noqa: ASYNC110 - pexpect has no other way
                await anyio.sleep(0.02)
        assert person.process.exitstatus == (0 if says_goodbye else None)
        assert person.process.signalstatus == (None if says_goodbye else number)
        now = termios.tcgetattr(person.process.child_fd)
        assert [*now[:4], now[6]] == [*person.before[:4], person.before[6]]


async def test_ctrl_c_leaves_and_a_suspended_seat_does_not_exist(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    async with seated(tmp_path, council, arbiter) as (person, table):
        person.type("\x1a\x1c")
        person.type("\x13")
        await table.control.hear(m.StatusRequest)
        person.type("\x03")
        await table.control.hear(m.Unreg)
        await table.control.hears_the_end()
        assert await person.ends() == 0


# --- without a terminal ------------------------------------------------------------------------------


async def test_lines_from_a_pipe_are_turns_and_their_end_is_a_failure(
    tmp_path: Path, council: Council, arbiter: ArbiterDouble
) -> None:
    argv = [sys.executable, "-m", "consilium", *words(tmp_path, council, arbiter, "--give-up-after", "0")]
    async with await anyio.open_process(argv, stderr=subprocess.STDOUT) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        await process.stdin.send(b"First.\n\n//etc is a folder\\\nSecond line\n/away")
        table = await arbiter.seat()
        await table.control.hear(m.StatusRequest)
        await table.assign(1, SAID)
        assert (await table.data.hear(m.Speech)).text == "First."
        await table.control.hear(m.TurnEnd)
        await table.assign(2)
        assert (await table.data.hear(m.SystemEvent)).event == "HUMAN_SKIP"
        assert not (await table.control.hear(m.TurnEnd)).speech
        await table.assign(3)
        assert (await table.data.hear(m.Speech)).text == "/etc is a folder\nSecond line"
        await table.control.hear(m.TurnEnd)
        await process.stdin.aclose()
        await table.assign(4)
        failed = await table.control.hear(m.TurnFailed)
        assert failed.detail == "no more can be entered at this seat: the input has ended"
        await table.finish()
        said = b"".join([chunk async for chunk in process.stdout]).decode()
        assert await process.wait() == 0
    assert "not sent: /away" in said
    assert "    I doubt it." in said
    events = [json.loads(line)["event"] for line in said.splitlines() if line.startswith("{")]
    assert events == [
        *("registered", "seated", "speaking", "spoke", "speaking", "passed", "speaking", "spoke"),
        *("speaking", "failed", "ended"),
    ]


def test_where_nobody_can_type_the_seat_fails_before_it_is_taken(tmp_path: Path, council: Council) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "consilium", *words(tmp_path, council, None)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 1
    assert "nobody can type here: standard input is neither a terminal nor a pipe" in done.stderr


def dumb(folder: Path, council: Council, term: str, stdout: int | None) -> str:
    """What a seat says at a terminal that will not do."""
    person, line = os.openpty()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "consilium", *words(folder, council, None)],
            stdin=line,
            stdout=line if stdout is None else stdout,
            stderr=subprocess.PIPE,
            check=False,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, "TERM": term},
        )
        assert done.returncode == 2
        return str(done.stderr)
    finally:
        os.close(person)
        os.close(line)


def test_a_terminal_that_will_not_do_is_refused_with_the_way_out(tmp_path: Path, council: Council) -> None:
    assert "this terminal cannot move its cursor" in dumb(tmp_path, council, "dumb", None)
    assert "nothing can be shown to the person" in dumb(tmp_path, council, "xterm", subprocess.DEVNULL)


@pytest.mark.parametrize(
    "mistake",
    [
        (", model: opus", (), "model is for a client, and this is a person"),
        (", env: [KEY]", (), "env is for a client, and this is a person"),
        (", timeout_s: -1", (), "timeout_s"),
        (", keys: {away: ctrl+c}", (), "keys.away"),
        (", keys: {dance: ctrl+g}", (), "keys.dance"),
        (", keys: {away: ctrl+b}", (), "ctrl+b cannot be both away and back"),
        ("", ("--key", "away=ctrl+q"), "ctrl+q cannot be both"),
        ("", ("--key", "away"), "keys.away"),
        ("", ("--timeout", "0"), "timeout_s"),
        ("", ("--lifeline",), "who types where --lifeline listens"),
        (", preset: claude, adapter: human", (), "the preset claude is a client's, not a person's"),
        (", adapter: native", (), "the preset human is a person's, not a client's"),
    ],
)
def test_a_mistake_is_refused_with_its_key(
    tmp_path: Path,
    council: Council,
    capsys: pytest.CaptureFixture[str],
    mistake: tuple[str, tuple[str, ...], str],
) -> None:
    says, more, words_of_it = mistake
    argv = words(tmp_path, council, None, *more, says=says)
    if "preset: claude" in says:
        file = tmp_path / "council.yaml"
        file.write_text(file.read_text().replace("preset: human, ", ""))
    assert main(argv) == 2
    assert words_of_it in capsys.readouterr().err
