"""`consilium up`, with the real Arbiter and seats without clients (`seat_double`): every way it can end."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from consilium.config import Council
from consilium.inspection import inspect
from consilium.messages import AdminOk, DebateState, Phase, SetPhase, Terminate
from consilium.ports import Ports
from consilium.records import EventName, EventRecord, TurnRecord
from consilium.settings import check_council
from consilium.transcript import read_head, read_lines, read_records
from council import driver as driver_module
from council import orphans, startup, up
from council.course import FAULT, Verdict
from council.driver import INTERRUPTED, Driver
from council.prepare import prepare
from council.startup import Job
from council.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from consilium.records import AnyEntry, Stored
    from council.closing import Closing

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

DOUBLE = Path(__file__).parents[1] / "seat_double.py"
EXAMPLE = Path(__file__).parents[2] / "council.yaml"
ANY_PORTS = ("--control-port", "0", "--data-port", "0", "--admin-port", "0")


@pytest.fixture
def doubles(tmp_path: Path) -> Path:
    """A folder of modules that stand in the place of ours."""
    folder = tmp_path / "doubles"
    folder.mkdir()
    shutil.copy(DOUBLE, folder / "wrapper.py")
    return folder


@pytest.fixture(autouse=True)
def _a_server_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of these councils need no model: their seats are doubles."""
    monkeypatch.setenv(startup.MODEL_URL, "http://127.0.0.1:9/v1")


@pytest.fixture
def _doubled(doubles: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes that `up` starts find them; this process has the real ones already."""
    monkeypatch.setenv("PYTHONPATH", str(doubles), prepend=os.pathsep)


def council(*names: str, **changes: Any) -> Council:
    seats = [{"name": name, "preset": "llm"} for name in names]
    tree = {"topic": "Shall we?", "caps": {"max_rounds": 9}, "participants": seats}
    return check_council(tree | changes, {}, name="test")


def alive(mark: str) -> list[str]:
    """The command lines of the processes that name ``mark``, other than our own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                if mark in line:
                    found.append(line)
    return found


def until(condition: Callable[[], bool], seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


# --- in this process: what the driver decides ----------------------------------------------------------


@dataclass
class Seen:
    """A view that keeps what it is told, and calls back at each record and step."""

    on: Callable[[str], None] = lambda _: None
    steps: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    entries: list[AnyEntry] = field(default_factory=list)
    ticks: int = 0

    def begin(
        self, council: Council, folder: Path | None, now: float, *, endpoint: str | None = None
    ) -> None: ...

    def doing(self, what: str, now: float) -> None:
        self.steps.append(what)
        self.on(what)

    def say(self, sentence: str, now: float) -> None:
        self.notes.append(sentence)

    def record(self, record: Stored, now: float) -> None:
        self.entries.append(record.entry)
        if isinstance(record.entry, EventRecord):
            self.on(record.entry.event.value)

    def tick(self, now: float) -> None:
        self.ticks += 1

    def end(self, closing: Closing, now: float) -> None: ...

    def events(self, name: EventName) -> list[EventRecord]:
        return [entry for entry in self.entries if isinstance(entry, EventRecord) and entry.event is name]

    def turns(self) -> list[TurnRecord]:
        return [entry for entry in self.entries if isinstance(entry, TurnRecord)]


class Held:
    """One debate that is held in this process."""

    def __init__(self, folder: Path, held: Council, ports: Mapping[str, int] | None = None) -> None:
        self.space = Workspace.create(folder / "debate", held, [])
        numbers = {"control_port": 0, "data_port": 0, "admin_port": 0} | dict(ports or {})
        self.seen = Seen()
        self.driver = Driver(Job(held, Ports(**numbers), self.space, "http://127.0.0.1:9/v1"), self.seen)

    async def run(self) -> Verdict:
        with anyio.fail_after(50):
            verdict = await self.driver.run()
        assert alive(str(self.space.folder)) == [], "a process was left behind"
        return verdict

    def record(self) -> list[AnyEntry]:
        """The record on disk, which must be whole."""
        assert inspect(read_lines(self.space.transcript), read_head(self.space.transcript)).whole
        records, torn = read_records(self.space.transcript)
        assert torn is None
        return [stored.entry for stored in records]

    def outcome(self) -> object:
        """What the record says at its end."""
        last = self.record()[-1]
        assert isinstance(last, EventRecord)
        assert last.event is EventName.DEBATE_ENDED
        return last.data["outcome"]

    def pid(self, name: str) -> int:
        assert self.driver._running is not None
        (child,) = (child for child in self.driver._running._children if child.name == name)
        return child.process.pid

    def kill(self, name: str) -> None:
        os.kill(self.pid(name), signal.SIGKILL)

    def fill_the_disk(self) -> None:
        """Let the Arbiter's files grow no more."""
        size = self.space.transcript.stat().st_size
        resource.prlimit(self.pid("arbiter"), resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.usefixtures("_doubled")
class TestDriver:
    async def test_a_debate_goes_through_its_phases_and_is_finished(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "two", "skipper", rebuttal_rounds=2))
        verdict = await held.run()
        assert (verdict.code, verdict.outcome) == (0, "FINISHED")
        assert held.outcome() == DebateState.FINISHED
        phases = [turn.phase for turn in held.seen.turns()]
        assert list(dict.fromkeys(phases)) == ["OPENING", "REBUTTAL", "CLOSING"]
        assert len(phases) % 3 == 0, "a stray turn"
        assert held.seen.steps == [
            "making certificates for this debate",
            "starting the Arbiter",
            "seating one, two, skipper",
            "closing",
        ]
        assert held.record() == held.seen.entries

    async def test_a_cap_stops_it(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "two", caps={"max_rounds": 1}))
        verdict = await held.run()
        assert (verdict.code, verdict.outcome) == (0, "STOPPED_BY_CAP")
        assert verdict.sentence == "The debate was stopped by a cap after 2 turns: max_rounds."

    async def test_every_process_has_its_own_certificate_and_the_operator_is_no_seat(
        self, tmp_path: Path
    ) -> None:
        held = Held(tmp_path, council("one", "two", caps={"max_rounds": 1}))
        assert (await held.run()).code == 0
        names = sorted(path.name for path in held.space.certs.iterdir())
        assert names == ["ca", "one", "the-arbiter", "the-operator", "two"]

    async def test_where_nobody_is_required_the_debate_is_started_by_order(self, tmp_path: Path) -> None:
        roster = {"participants": [{"name": name, "required": False} for name in ("optional", "optional_2")]}
        held = Held(tmp_path, council("optional", "optional_2", roster=roster))
        assert (await held.run()).outcome == "FINISHED"

    @pytest.mark.slow
    async def test_where_an_operator_chooses_who_speaks_it_says_so_with_the_command(
        self, tmp_path: Path
    ) -> None:
        """Before, it waited without a word, for ever."""
        held = Held(tmp_path, council("one", "two", turn_policy="manual", rebuttal_rounds=0))
        speakers = iter(("two", "one", "one", "two"))
        typed: list[subprocess.Popen[bytes]] = []

        def choose(what: str) -> None:
            if what.startswith("waiting for you to say who speaks: "):
                words = shlex.split(what.partition(": ")[2].removesuffix("SEAT"))
                assert words.pop(0) == "consilium"
                typed.append(
                    subprocess.Popen([sys.executable, "-m", "consilium", *words, next(speakers, "one")])
                )

        held.seen.on = choose
        with anyio.fail_after(50):
            verdict = await held.driver.run()
        for command in typed:
            command.wait(20)
        assert verdict.outcome == "FINISHED", verdict
        assert [turn.participant_id[:3] for turn in held.seen.turns()][:2] == ["two", "one"]

    async def test_a_fault_is_told_closed_and_1(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "faulty"))
        assert await held.run() == Verdict(
            1,
            FAULT,
            "the seat faulty cannot go on: stalled: nothing for 120 s, "
            "and its client may have been given the turn",
            "the debate stood paused in OPENING, at turn 2",
        )
        assert held.outcome() == DebateState.FINISHED

    async def test_a_killed_wrapper_is_one_sentence(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "crasher"))
        verdict = await held.run()
        assert (verdict.code, verdict.cause) == (1, "the seat crasher was killed by SIGKILL")
        assert held.outcome() == DebateState.FINISHED

    async def test_a_required_seat_that_leaves_ends_it(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "leaver"))
        verdict = await held.run()
        assert (verdict.code, verdict.cause) == (1, "a seat that the debate needs has left")

    async def test_a_killed_arbiter_is_one_sentence_and_the_record_can_be_read(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "slow"))
        held.seen.on = lambda what: held.kill("arbiter") if what == "TURN_STARTED" else None
        verdict = await held.run()
        assert verdict.code == 1
        assert "the Arbiter was killed by SIGKILL" in verdict.cause
        records, _ = read_records(held.space.transcript)
        assert records

    async def test_a_full_disk_is_one_sentence_and_closed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(driver_module, "LOOK_SECONDS", 0.3)
        held = Held(tmp_path, council("one", "two", rebuttal_rounds=7))
        held.seen.on = lambda what: held.fill_the_disk() if what == "TURN_STARTED" else None
        verdict = await held.run()
        assert (verdict.code, verdict.outcome) == (1, FAULT)
        assert verdict.cause.startswith("the transcript could not be written: ")
        # The doubles answer at once: how far they are by then is for the machine to say.
        assert re.fullmatch(r"the debate stood paused in (OPENING|REBUTTAL), at turn \d+", verdict.stood)
        assert held.record()

    async def test_an_arbiter_that_is_killed_before_anybody_connected_is_one_sentence(
        self, tmp_path: Path
    ) -> None:
        held = Held(tmp_path, council("absent"))
        held.seen.on = lambda what: held.kill("arbiter") if what.startswith("seating") else None
        verdict = await held.run()
        assert (verdict.code, verdict.cause) == (1, "the Arbiter was killed by SIGKILL")

    async def test_an_interruption_that_comes_too_late_changes_nothing(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", caps={"max_rounds": 1}))
        held.seen.on = lambda what: held.driver.interrupt(130) if what == "DEBATE_ENDED" else None
        assert (await held.run()).code == 0

    async def test_a_seat_that_is_refused_ends_it_before_it_began(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "refused"))
        verdict = await held.run()
        assert verdict.cause == "the seat refused ended with exit code 3 (the Arbiter does not want me)"
        assert verdict.stood == "the debate stood before its first turn"

    async def test_seats_that_never_join_are_waited_for_no_longer_than_the_bound(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(driver_module, "SEATING_SECONDS", 3.0)
        held = Held(tmp_path, council("one", "absent"))
        verdict = await held.run()
        assert (verdict.code, verdict.cause) == (1, "the debate did not start: absent did not join")

    async def test_an_arbiter_that_cannot_start_says_why(self, tmp_path: Path) -> None:
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as taken:
            port = taken.extra(anyio.abc.SocketAttribute.local_port)
            held = Held(tmp_path, council("one"), {"control_port": port})
            verdict = await held.run()
        assert verdict.code == 1
        assert verdict.cause.startswith("arbiter ended with exit code 2: ")
        assert verdict.stood == f"its log is {held.space.logs / 'arbiter.log'}"
        assert not held.space.transcript.exists()

    async def test_a_process_that_is_never_ready_is_waited_for_no_longer_than_the_bound(
        self, tmp_path: Path, doubles: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (doubles / "arbiter.py").write_text("import sys; sys.stdin.read()")
        monkeypatch.setattr(startup, "ARBITER_SECONDS", 0.5)
        held = Held(tmp_path, council("one"))
        assert (await held.run()).cause == "arbiter was not ready within 0.5 s"

    @pytest.mark.parametrize(
        "step", ["making certificates for this debate", "starting the Arbiter", "seating one"]
    )
    async def test_an_interruption_during_start_up_leaves_nothing_behind(
        self, tmp_path: Path, step: str
    ) -> None:
        held = Held(tmp_path, council("one"))
        held.seen.on = lambda what: held.driver.interrupt(130) if what == step else None
        began = time.monotonic()
        verdict = await held.run()
        assert (verdict.code, verdict.outcome) == (130, INTERRUPTED)
        assert time.monotonic() - began < 20

    async def test_an_interruption_before_there_is_a_debate_waits_for_nobody_to_end_it(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(driver_module, "CLOSE_SECONDS", 60.0)
        held = Held(tmp_path, council("one"))
        held.seen.on = lambda what: held.driver.interrupt(130) if what == "seating one" else None
        began = time.monotonic()
        assert (await held.run()).code == 130
        assert time.monotonic() - began < 20

    async def test_an_interruption_closes_the_debate_through_the_operator_s_channel(
        self, tmp_path: Path
    ) -> None:
        held = Held(tmp_path, council("one", "slow"))
        held.seen.on = lambda what: held.driver.interrupt(130) if what == "TURN_STARTED" else None
        verdict = await held.run()
        assert verdict.code == 130
        assert verdict.sentence.startswith("Interrupted. The debate stood in OPENING, at turn ")
        assert held.outcome() == DebateState.FINISHED
        last = held.record()[-1]
        assert isinstance(last, EventRecord)
        assert last.data["reason"] == "interrupted"

    async def test_a_second_interruption_hurries(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(driver_module, "CLOSE_SECONDS", 60.0)
        held = Held(tmp_path, council("slow", "slow_2"))

        def react(what: str) -> None:
            if what in ("TURN_STARTED", "closing"):
                held.driver.interrupt(130)

        held.seen.on = react
        began = time.monotonic()
        assert (await held.run()).code == 130
        assert time.monotonic() - began < 20

    async def test_a_signal_interrupts(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one", "slow"))
        held.seen.on = lambda what: os.kill(os.getpid(), signal.SIGTERM) if what == "TURN_STARTED" else None
        assert (await held.run()).code == 128 + signal.SIGTERM

    async def test_while_a_seat_thinks_there_are_ticks(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one"))
        await held.run()
        assert held.seen.ticks >= 3

    async def test_a_view_that_is_behind_gets_no_ticks(self, tmp_path: Path) -> None:
        held = Held(tmp_path, council("one"))
        held.driver._busy = lambda: True
        await held.run()
        assert held.seen.ticks == 0

    async def test_an_order_that_is_refused_is_told_and_ends_nothing(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        held = Held(tmp_path, council("one", caps={"max_rounds": 1}))
        monkeypatch.setattr(driver_module, "course", lambda _: [SetPhase(phase=Phase.OPENING)])
        assert (await held.run()).outcome == "STOPPED_BY_CAP"
        assert "The Arbiter refused SET_PHASE: the phase is OPENING already." in held.seen.notes


async def test_an_order_that_is_never_answered_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("council.giving.ORDER_SECONDS", 0.05)
    held = Held(tmp_path, council("one"))

    class Deaf:
        async def request(self, _: object) -> AdminOk:
            await anyio.sleep_forever()
            raise AssertionError("slept for ever, and woke")

    await held.driver._order(Deaf(), Terminate())  # type: ignore[arg-type]  # all that an order needs
    assert held.seen.notes == ["The Arbiter did not answer TERMINATE within 0.05 s."]


# --- as a command: what a person sees ------------------------------------------------------------------

RUN = """
import os, sys
import council.up
from consilium import cli
theirs = [sys.argv[1], os.environ.get("PYTHONPATH")]
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, theirs))  # only now: we have our own modules already
sys.exit(cli.main(["up", *sys.argv[2:]]))
"""


@pytest.fixture
def command(tmp_path: Path, doubles: Path) -> Callable[..., list[str]]:
    """The command line of an `up` whose seats are doubles."""

    def build(*names: str, options: tuple[str, ...] = ()) -> list[str]:
        seats = ", ".join(f"{{name: {name}, preset: llm, model: m}}" for name in names)
        file = tmp_path / "c.yaml"
        file.write_text(f"topic: Shall we?\ncaps: {{max_rounds: 9}}\nparticipants: [{seats}]\n")
        place = ("-f", str(file), "--dir", str(tmp_path / "debate"))
        return [sys.executable, "-c", RUN, str(doubles), *place, *ANY_PORTS, *options]

    return build


@contextlib.contextmanager
def started(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def read_until(process: subprocess.Popen[str], words: str) -> list[tuple[float, str]]:
    """The lines up to the one that holds ``words``, with the time at which each came."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append((time.monotonic(), line))
        if words in line:
            return lines
    raise AssertionError(f"{words!r} never came:\n{''.join(line for _, line in lines)}")


def test_a_person_sees_the_debate_and_where_its_record_is(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    told = subprocess.run(command("one", "skipper"), capture_output=True, text=True, check=False, timeout=50)
    assert (told.returncode, told.stderr) == (0, "")
    assert "── REBUTTAL ─" in told.stdout
    assert "one (Double) · tokens 100 in, 10 out" in told.stdout
    assert "skipper (Double) has nothing to add" in told.stdout
    assert "The debate is finished after 6 turns: the planned rounds are complete.\n" in told.stdout
    assert f"Record    {tmp_path}/debate/transcript.jsonl\n" in told.stdout
    assert "\x1b" not in told.stdout
    read = [sys.executable, "-m", *told.stdout.splitlines()[-1].removeprefix("Read it").split()]
    shown = subprocess.run(read, capture_output=True, text=True, check=True, timeout=30)
    assert "Shall we?" in shown.stdout


def test_a_program_reads_json_lines(command: Callable[..., list[str]]) -> None:
    told = subprocess.run(
        command("one", options=("--json",)), capture_output=True, text=True, check=False, timeout=50
    )
    lines = [json.loads(line) for line in told.stdout.splitlines()]
    assert lines[0]["event"] == "council"
    assert lines[-1]["event"] == "end"
    assert (lines[-1]["exit"], lines[-1]["outcome"]) == (0, "FINISHED")
    records = [line["record"] for line in lines if line["event"] == "record"]
    assert [record["seq"] for record in records] == list(range(len(records)))


@pytest.mark.slow
def test_while_a_seat_thinks_a_line_comes_at_least_every_two_seconds(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    with started(command("slow")) as process:
        lines = read_until(process, "slow is thinking, 7 s")
        process.send_signal(signal.SIGINT)
        told, errors = process.communicate(timeout=30)
    times = [when for when, _ in lines]
    assert max(after - before for before, after in pairwise(times)) < 2.3
    assert (process.returncode, errors) == (130, "")
    assert "Interrupted. The debate stood in OPENING, at turn 1." in told
    assert alive(str(tmp_path / "debate")) == []


def test_killed_without_warning_it_leaves_no_process_behind(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    with started(command("one", "slow")) as process:
        read_until(process, "slow is thinking")
        assert len(alive(str(tmp_path / "debate"))) >= 3
        process.kill()
        assert until(lambda: alive(str(tmp_path / "debate")) == [])
    records, _ = read_records(tmp_path / "debate" / "transcript.jsonl")
    assert records


def test_when_its_reader_leaves_it_closes_quietly(command: Callable[..., list[str]], tmp_path: Path) -> None:
    with started(command("one", "slow")) as process:
        read_until(process, "slow is thinking")
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(30) == 141
    assert alive(str(tmp_path / "debate")) == []


def test_where_nothing_more_can_be_written_it_closes_and_is_1(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    with Path("/dev/full").open("w") as full:
        told = subprocess.run(
            command("slow"), stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=50
        )
    assert told.returncode == 1
    assert alive(str(tmp_path / "debate")) == []


def test_without_a_standard_output_it_holds_the_debate_all_the_same(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    shell = " ".join(f"'{word}'" for word in command("one")) + " >&-"
    assert subprocess.run(["bash", "-c", shell], check=False, timeout=50).returncode == 0
    assert read_records(tmp_path / "debate" / "transcript.jsonl")[0]


@pytest.mark.usefixtures("_doubled")
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_command_returns_what_the_debate_came_to(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    options: tuple[str, ...],
) -> None:
    # In this process, whose children are not all the command's.
    monkeypatch.setattr(orphans, "adopt", lambda: None)
    monkeypatch.setattr(orphans, "end_all", lambda: None)
    file = tmp_path / "c.yaml"
    seats = "[{name: one, preset: llm, model: m}]"
    file.write_text(f"topic: Shall we?\ncaps: {{max_rounds: 1}}\nparticipants: {seats}\n")
    assert up.main(["-f", str(file), "--dir", str(tmp_path / "debate"), *ANY_PORTS, *options]) == 0
    assert "the debate was stopped by a cap after 1 turn: max_rounds" in capfd.readouterr().out.lower()


@pytest.mark.slow
def test_nohup_means_what_it_says(command: Callable[..., list[str]]) -> None:
    with started(["nohup", *command("slow")]) as process:
        read_until(process, "slow is thinking")
        process.send_signal(signal.SIGHUP)
        read_until(process, "slow is thinking")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGTERM


def test_a_usage_error_starts_nothing(command: Callable[..., list[str]], tmp_path: Path) -> None:
    told = subprocess.run(
        command("one", options=("--max-rounds", "0")), capture_output=True, text=True, check=False, timeout=30
    )
    assert told.returncode == 2
    assert told.stderr == (
        f"consilium: {tmp_path}/c.yaml: command line: caps.max_rounds: must be more than 0 (given: 0)\n"
    )
    assert not (tmp_path / "debate").exists()


def on_terminal(command: list[str], until_words: str, keys: bytes) -> tuple[str, int]:
    """Run on a terminal of its own; type ``keys`` once ``until_words`` are shown. Screen and exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm", COLUMNS="80")
        os.execv(command[0], command)  # the child of the fork ends here
    seen = b""
    end = time.monotonic() + 40
    while time.monotonic() < end:
        if select.select([terminal], [], [], 1.0)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:
                break
        if keys and until_words.encode() in seen:
            os.write(terminal, keys)
            keys = b""
    os.close(terminal)
    return seen.decode(), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_on_a_terminal_the_status_line_is_redrawn_and_ctrl_c_closes(
    command: Callable[..., list[str]], tmp_path: Path
) -> None:
    seen, code = on_terminal(command("one", "slow"), "slow is thinking, 2 s", b"\x03")
    assert code == 130
    assert re.search(r"\r\x1b\[K\x1b\[2m\S slow is thinking, 1 s\x1b\[0m", seen)
    assert "\x1b[36mone\x1b[0m" in seen
    assert "Interrupted. The debate stood in OPENING" in seen
    assert alive(str(tmp_path / "debate")) == []


def test_on_a_terminal_no_color_is_respected(command: Callable[..., list[str]]) -> None:
    seen, code = on_terminal(command("one", options=("--no-color",)), "", b"")
    assert code == 0
    assert set(re.findall(r"\x1b\[[0-9;?]*[A-Za-z]", seen)) <= {"\x1b[K"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_real_seats_debate_on_the_embedded_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(startup.MODEL_URL)
    options = ("--seats", "2", "--rebuttals", "0", "--dir", str(tmp_path / "debate"))
    told = subprocess.run(
        [sys.executable, "-m", "consilium", "up", *ANY_PORTS, *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )
    assert (told.returncode, told.stderr) == (0, "")
    assert "The debate is finished after 4 turns: the planned rounds are complete." in told.stdout
    records, _ = read_records(tmp_path / "debate" / "transcript.jsonl")
    turns = [stored.entry for stored in records if isinstance(stored.entry, TurnRecord)]
    assert {turn.meta.role_label for turn in turns} == {"Sceptic", "Pragmatist"}
    assert all(turn.text and turn.usage and turn.usage.tokens_out for turn in turns)
    assert alive(str(tmp_path / "debate")) == []


# --- notices -------------------------------------------------------------------------------------------


def notices(tmp_path: Path, *arguments: str, found: tuple[str, ...] = ()) -> str:
    options = up.parser().parse_args([*ANY_PORTS, "--dir", str(tmp_path / "d"), *arguments])
    return "\n".join(up._notices(prepare(options), options, lambda name: name if name in found else None))


def test_the_embedded_model_is_told_for_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(startup.MODEL_URL)
    told = notices(tmp_path)
    assert "embedded model of 135 million parameters" in told
    assert "its arguments are weak" in told
    assert "CONSILIUM_MODEL_URL=http://..." in told


def test_real_clients_are_named_and_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(startup.MODEL_URL)
    told = notices(tmp_path, found=("codex", "agy"))
    assert "Found here, and not used, since they cost money: codex, agy." in told


def test_a_model_server_of_ones_own_takes_the_place_of_the_embedded_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "c.yaml"
    file.write_text("topic: x\ncaps: {max_rounds: 1}\nparticipants: [{name: a, model: m}]\n")
    assert (
        notices(tmp_path, "-f", str(file))
        == "Seats with the client llm speak through http://127.0.0.1:9/v1 (CONSILIUM_MODEL_URL)."
    )


def test_a_council_file_that_is_not_used_is_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(startup.MODEL_URL)
    assert "council.yaml" not in notices(tmp_path)
    (tmp_path / "council.yaml").touch()
    shutil.rmtree(tmp_path / "d")
    told = notices(tmp_path).splitlines()
    assert told[:2] == [
        "Note: council.yaml in this folder is not used. To hold it:",
        "consilium up -f council.yaml",
    ]


def test_a_council_file_that_is_the_built_in_council_written_out_is_not_mentioned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(startup.MODEL_URL)
    shutil.copy(EXAMPLE, "council.yaml")
    assert "council.yaml" not in notices(tmp_path)
    Path("council.yaml").write_text(EXAMPLE.read_text().replace("max_rounds: 12", "max_rounds: 13"))
    shutil.rmtree(tmp_path / "d")
    assert "council.yaml in this folder is not used" in notices(tmp_path)
