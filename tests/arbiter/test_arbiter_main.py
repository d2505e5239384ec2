"""The Arbiter's process: what it prints, what it refuses, how it ends, and what it leaves behind."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute
from certificates import DAY, clock
from house import HOST, Wire, connect

from arbiter import main as main_module
from arbiter.edge.listener import HandshakeOutcome
from arbiter.observe import NOBODY
from consilium import cli
from consilium import messages as m
from consilium.credentials import Credentials
from consilium.health import STALE, Report, judge
from consilium.inspection import inspect
from consilium.ports import Ports
from consilium.records import EventRecord, unseal
from consilium.tls import client_context
from consilium.transcript import head_path, read_head, read_lines
from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

COUNCIL = """\
topic: Wrap it or rewrite it?
participants:
  - name: ada
  - name: bob
caps:
  max_rounds: 3
"""
PORTS = ("--control-port", "0", "--data-port", "0", "--admin-port", "0")


@dataclass
class Place:
    """A folder with everything that an Arbiter needs."""

    folder: Path
    authority: Authority
    record: tuple[str, ...] = ()  # instead of one transcript

    @property
    def transcript(self) -> Path:
        return self.folder / "debate.jsonl"

    def arguments(
        self, *more: str, certs: str = "certs/arbiter", ports: tuple[str, ...] = PORTS
    ) -> list[str]:
        """A command line; what stands in ``more`` wins."""
        given = ["--council", str(self.folder / "council.yaml"), "--certs", str(self.folder / certs)]
        record = self.record or ("--transcript", str(self.transcript))
        return [*given, *record, *ports, *more]

    def context(self, name: str, profile: Any) -> Any:
        own = self.folder / "certs" / name
        return client_context(
            Credentials.load(own) if own.exists() else self.authority.issue(name, profile=profile)
        )

    def is_whole(self) -> bool:
        """Whether the transcript is, and its head vouches for all of it."""
        head = read_head(self.transcript)
        assert head is not None
        return inspect(read_lines(self.transcript), head).whole


@pytest.fixture
def place(tmp_path: Path) -> Place:
    authority = Authority.create(tmp_path / "certs")
    authority.issue("arbiter", profile="arbiter", dns=["localhost"], ips=[HOST])
    (tmp_path / "council.yaml").write_text(COUNCIL)
    return Place(tmp_path, authority)


# --- what is refused, in this process -----------------------------------------------------------------


@dataclass
class Wrong:
    """What is wrong, and what the person is told."""

    told: tuple[str, ...]
    more: tuple[str, ...] = ()
    certs: str = "certs/arbiter"
    prepare: Callable[[Place], Any] = field(default=lambda _: None)


WRONG: dict[str, Wrong] = {
    "no council file": Wrong(("nowhere.yaml",), ("--council", "nowhere.yaml")),
    "a council without a cap": Wrong(
        ("council.yaml", "caps"),
        prepare=lambda place: (place.folder / "council.yaml").write_text("topic: x\n"),
    ),
    "no credentials": Wrong(("cert.pem is missing", "consilium pki issue"), certs="certs/nobody"),
    "a seat's credentials": Wrong(
        ("is not an Arbiter's certificate", "must be exactly serverAuth", "--profile arbiter"),
        certs="certs/ada",
        prepare=lambda place: place.authority.issue("ada", profile="participant"),
    ),
    "a key that others may read": Wrong(
        ("open to other users", "chmod 600"),
        prepare=lambda place: (place.folder / "certs/arbiter/key.pem").chmod(0o644),
    ),
    "a transcript that is there": Wrong(
        ("is not JSON", "consilium transcript verify"),
        prepare=lambda place: os.write(os.open(place.transcript, os.O_CREAT | os.O_WRONLY, 0o600), b"kept\n"),
    ),
    "a transcript that is a link": Wrong(
        ("it is a symbolic link",),
        prepare=lambda place: place.transcript.symlink_to(place.folder / "elsewhere"),
    ),
    "a folder that is not there": Wrong(
        ("folder /nowhere/at/all is not there", "mkdir -p /nowhere/at/all"),
        ("--transcript", "/nowhere/at/all/x.jsonl"),
    ),
    "a folder that is a file": Wrong(
        ("folder council.yaml is not there",), ("--transcript", "council.yaml/x.jsonl")
    ),
    "no profiles": Wrong(("nowhere.yaml: cannot be read",), ("--profiles", "nowhere.yaml")),
    "ports and sockets": Wrong(("both were given", "give --socket-dir"), ("--socket-dir", "run")),
    "no port": Wrong(
        ("control_port must be a port, 0 to 65535 (given: 70000)",), ("--control-port", "70000")
    ),
    "an address that is not ours": Wrong(("cannot listen on 192.0.2.1:0",), ("--host", "192.0.2.1")),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_what_cannot_be_carried_out_is_refused_with_the_way_out(
    place: Place, wrong: Wrong, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.folder)
    wrong.prepare(place)
    before = sorted(place.folder.iterdir())
    assert cli.main(["arbiter", *place.arguments(*wrong.more, certs=wrong.certs)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    for words in wrong.told:
        assert words in said.err
    assert "Traceback" not in said.err
    assert sorted(place.folder.iterdir()) == before, "nothing is left behind"


@pytest.mark.parametrize("door", ["control", "data", "admin"])
def test_a_port_in_use_is_named_with_its_setting(
    place: Place, door: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        assert cli.main(["arbiter", *place.arguments(f"--{door}-port", str(port))]) == 2
    said = capsys.readouterr().err
    assert f"cannot listen on {HOST}:{port}: the port is in use by another program" in said
    assert f"set --{door}-port or CONSILIUM_{door.upper()}_PORT to another" in said
    assert not place.transcript.exists()


def test_a_certificate_that_has_expired_is_refused_before_anybody_calls(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    then = Authority.create(tmp_path / "certs", clock=lambda: clock() - 10 * DAY)
    then.issue("arbiter", profile="arbiter", dns=["localhost"], days=1)
    (tmp_path / "council.yaml").write_text(COUNCIL)
    assert cli.main(["arbiter", *Place(tmp_path, then).arguments()]) == 2
    assert "cert.pem cannot be used: expired 9 days" in capsys.readouterr().err


def test_an_arbiter_in_this_process_stops_on_a_signal_and_seals_its_transcript(
    place: Place, capfd: pytest.CaptureFixture[str]
) -> None:
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        assert main_module.main(place.arguments()) == 1
    finally:
        timer.cancel()
    assert set(json.loads(capfd.readouterr().out)) == {"event", "control", "data", "admin"}
    assert place.is_whole()


def test_an_arbiter_in_this_process_reloads_on_sighup_behind_its_sockets(
    place: Place,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    profiles, run = place.folder / "profiles.yaml", place.folder / "run"
    profiles.write_text("operator:\n  role: operator\n")
    announce, ready = main_module._announce, threading.Event()

    def announces(listeners: Any) -> None:
        announce(listeners)
        ready.set()

    def says(words: str) -> None:
        deadline = time.monotonic() + 20
        while words not in caplog.text and time.monotonic() < deadline:
            time.sleep(0.02)

    def outside() -> None:
        ready.wait(20)
        profiles.write_text("nonsense\n")
        os.kill(os.getpid(), signal.SIGHUP)
        says("nothing is reloaded, and what applied still does: ")
        profiles.write_text("boss:\n  role: operator\n")
        os.kill(os.getpid(), signal.SIGHUP)
        says("reloaded; changed: profile boss, profile operator")
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(main_module, "_announce", announces)
    thread = threading.Thread(target=outside)
    thread.start()
    more = ("--profiles", str(profiles), "--listen", "unix", "--socket-dir", str(run))
    assert main_module.main(place.arguments(*more, ports=())) == 1
    thread.join()
    assert "nothing is reloaded, and what applied still does: " in caplog.text
    assert json.loads(capfd.readouterr().out)["admin"] == str(run / "arbiter_admin.sock")
    told = [unseal(line).entry for line in read_lines(place.transcript)]
    changes = [e.data["changed"] for e in told if isinstance(e, EventRecord) and "changed" in e.data]
    assert changes == [["profile boss", "profile operator"]]
    assert place.is_whole()


def test_a_crowd_of_strangers_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    observe = main_module._Porter(NOBODY)
    observe(HandshakeOutcome.ACCEPTED, "1.2.3.4:5", "")
    for _ in range(200):
        observe(HandshakeOutcome.FAILED, "1.2.3.4:5", "no certificate")
    assert main_module.LOG_BURST <= len(caplog.records) <= main_module.LOG_BURST + 2
    time.sleep(2 / main_module.LOG_RATE)
    observe(HandshakeOutcome.TIMED_OUT, "1.2.3.4:5", "slow")
    *_, more, last = caplog.messages
    assert more.endswith(" more connections were turned away")
    assert int(more.split()[0]) >= 170
    assert last == "timed_out 1.2.3.4:5: slow"
    assert {record.levelno for record in caplog.records} == {logging.WARNING}


# --- the real process ---------------------------------------------------------------------------------


@dataclass
class Running:
    """A process that listens."""

    process: subprocess.Popen[bytes]
    ports: dict[str, Any]

    def ends(self) -> tuple[int, str]:
        """Wait for its end; return its exit code and what it logged. It prints nothing more."""
        out, log = self.process.communicate(timeout=15)
        assert out == b""
        return self.process.returncode, log.decode()


@contextlib.contextmanager
def running(place: Place, *more: str, ports: tuple[str, ...] = PORTS, **how: Any) -> Iterator[Running]:
    """An Arbiter as its user starts it."""
    command = [sys.executable, "-m", "arbiter", *place.arguments(*more, ports=ports)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how
    )
    try:
        assert process.stdout is not None
        first = process.stdout.readline()
        assert first, process.communicate()
        said = json.loads(first)
        assert said.pop("event") == "listening"
        yield Running(process, said)
    finally:
        process.kill()
        process.communicate()


async def talk(place: Place, arbiter: Running, *commands: m.Message) -> list[Any]:
    """What an operator hears, command by command."""
    operator = await connect(arbiter.ports["admin"], "admin", place.context("operator", "operator"))
    try:
        return [await operator.ask(command) for command in commands]
    finally:
        await operator.cut()


@pytest.mark.e2e
def test_an_arbiter_whose_parent_dies_while_it_starts_says_no_more_than_that_it_stopped(place: Place) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "arbiter", *place.arguments("--lifeline")]
    ended = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=writer, stderr=subprocess.PIPE, check=False, timeout=30
    )
    os.close(writer)
    assert ended.returncode != 0
    assert ended.stderr.decode().rstrip().endswith("the transcript ends where it stood")
    assert place.is_whole()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_debate_that_reaches_its_outcome_ends_the_process_well(place: Place) -> None:
    with running(place) as arbiter:
        assert set(arbiter.ports) == {"control", "data", "admin"}
        assert all(0 < port < 65536 for port in arbiter.ports.values())
        status, closed = await talk(place, arbiter, m.StatusRequest(), m.Terminate(reason="enough"))
        assert status.topic == "Wrap it or rewrite it?"
        assert closed == m.AdminOk(operation="TERMINATE")
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
    assert (code, log) == (0, "")
    assert place.is_whole()
    *_, last = [unseal(line).entry for line in read_lines(place.transcript)]
    assert isinstance(last, EventRecord)
    assert last.data["reason"] == "enough"


@pytest.mark.e2e
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_with_a_whole_transcript(place: Place, by: signal.Signals) -> None:
    with running(place) as arbiter:
        arbiter.process.send_signal(by)
        code, log = arbiter.ends()
    assert code == 1
    assert "stopped before the debate had an outcome" in log
    assert "Traceback" not in log
    assert place.is_whole()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_signal_after_the_outcome_hurries_and_changes_nothing(place: Place) -> None:
    with running(place) as arbiter:
        seat = await connect(arbiter.ports["control"], "control", place.context("ada", "participant"))
        assert isinstance(await seat.ask(m.Reg(name="ada")), m.RegOk)
        began = anyio.current_time()
        await talk(place, arbiter, m.Terminate())
        await seat.hear(m.DebateEnded)
        arbiter.process.send_signal(signal.SIGTERM)
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
        assert anyio.current_time() - began < main_module.GRACE - 1
        await seat.cut()
    assert (code, log) == (0, "")
    assert place.is_whole()


@pytest.mark.e2e
def test_it_ends_with_its_lifeline(place: Place) -> None:
    with running(place, "--lifeline") as arbiter:
        with pytest.raises(subprocess.TimeoutExpired):
            arbiter.process.wait(0.2)
        assert arbiter.process.stdin is not None
        arbiter.process.stdin.close()
        arbiter.process.stdin = None
        code, _ = arbiter.ends()
    assert code == 1
    assert place.is_whole()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_it_listens_on_unix_sockets_and_leaves_none_behind(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    run = place.folder / "run"
    with running(place, ports=("--listen", "unix", "--socket-dir", str(run))) as arbiter:
        assert arbiter.ports == {
            "control": f"{run}/arbiter_ctrl.sock",
            "data": f"{run}/arbiter_data.sock",
            "admin": f"{run}/arbiter_admin.sock",
        }
        second = place.arguments("--socket-dir", str(run), ports=())
        assert await anyio.to_thread.run_sync(cli.main, ["arbiter", *second]) == 2
        assert f"another Arbiter listens in {run}" in capsys.readouterr().err
        status, _ = await talk(place, arbiter, m.StatusRequest(), m.Terminate())
        assert isinstance(status, m.Status)
        code, _ = await anyio.to_thread.run_sync(arbiter.ends)
    assert code == 0
    assert list(run.iterdir()) == []
    assert place.is_whole()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_killed_arbiters_sockets_are_replaced(place: Place) -> None:
    ports = ("--listen", "unix", "--socket-dir", str(place.folder / "run"))
    with running(place, ports=ports) as arbiter:
        arbiter.process.kill()
    with running(place, ports=ports) as arbiter:
        status, _ = await talk(place, arbiter, m.StatusRequest(), m.Terminate())
        assert isinstance(status, m.Status)
        await anyio.to_thread.run_sync(arbiter.ends)


@pytest.mark.e2e
@pytest.mark.anyio
async def test_sighup_reloads_what_can_be_used_and_nothing_else(place: Place) -> None:
    profiles = place.folder / "profiles.yaml"
    good = "operator:\n  role: operator\n  may_ask_status: true\n"
    profiles.write_text(good)
    with running(place, "--profiles", str(profiles)) as arbiter:
        seat = await connect(arbiter.ports["control"], "control", place.context("ada", "participant"))
        assert [said.code for said in await seat.rest()] == ["POLICY_DENIED"]
        profiles.write_text("operator: 3\n")
        (refused,) = await talk(place, arbiter, m.Reload())
        assert isinstance(refused, m.Error)
        profiles.write_text(good + 'participant:\n  role: participant\n  names: ["*"]\n')
        arbiter.process.send_signal(signal.SIGHUP)
        granted: Any = None
        with anyio.fail_after(10):
            while not isinstance(granted, m.RegOk):
                seat = await connect(arbiter.ports["control"], "control", place.context("ada", "participant"))
                await seat.say(m.Reg(name="ada"))
                granted = (await seat.line()).message
                await seat.cut()
        await talk(place, arbiter, m.Terminate())
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
    assert code == 0
    assert "nothing is reloaded, and what applied still does: " in log
    assert "line 1: operator: must be a section of keys and values (given: 3)" in log
    assert "reloaded; changed: profile participant" in log
    commands = [
        entry.data
        for entry in (unseal(line).entry for line in read_lines(place.transcript))
        if isinstance(entry, EventRecord) and entry.data.get("operation") == "RELOAD"
    ]
    assert commands == [{"operation": "RELOAD", "by": "signal", "changed": ["profile participant"]}]


@pytest.mark.e2e
@pytest.mark.anyio
async def test_strangers_are_logged_in_a_line_each_and_the_operator_is_served(place: Place) -> None:
    with running(place) as arbiter:
        for port in arbiter.ports.values():
            async with await anyio.connect_tcp(HOST, port) as stranger:
                await stranger.send(b"GET / HTTP/1.1\r\n\r\n")
                with anyio.fail_after(20), contextlib.suppress(anyio.EndOfStream):
                    while await stranger.receive():
                        pass
        status, _ = await talk(place, arbiter, m.StatusRequest(), m.Terminate())
        assert isinstance(status, m.Status)
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
    assert code == 0
    assert [line.split()[2] for line in log.splitlines()] == ["failed"] * 3
    assert head_path(place.transcript).exists()


class Sitting:
    """A seat of a real Arbiter, line by line."""

    def __init__(self, control: Wire, data: Wire) -> None:
        self.control, self.data = control, data


async def sits(place: Place, arbiter: Running, name: str) -> Sitting:
    context = place.context(name, "participant")
    control = await connect(arbiter.ports["control"], "control", context)
    granted = await control.ask(m.Reg(name=name))
    data = await connect(arbiter.ports["data"], "data", context)
    hello = m.DataHello(session_id=granted.session_id, data_token=granted.data_token)
    assert isinstance(await data.ask(hello), m.DataOk)
    return Sitting(control, data)


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_killed_arbiter_goes_on_where_it_was(place: Place) -> None:
    council = place.folder / "council.yaml"
    council.write_text(COUNCIL + "opening: open\n")
    with running(place) as arbiter:
        ada, bob = [await sits(place, arbiter, name) for name in ("ada", "bob")]
        turn = await ada.control.hear(m.TurnStart)
        await ada.data.hear(m.Context)
        await ada.data.say(m.Speech(turn_id=turn.turn_id, text="Before the kill."))
        await ada.control.say(m.TurnEnd(turn_id=turn.turn_id, speech=True))
        assert (await bob.control.hear(m.TurnStart)).turn_id == 2
        arbiter.process.kill()
        for wire in (ada.control, ada.data, bob.control, bob.data):
            await wire.cut()
    with place.transcript.open("ab") as file:
        file.write(b'{"seq":')  # as if it had been killed in a write
    with running(place) as arbiter:
        (status,) = await talk(place, arbiter, m.StatusRequest())
        assert (status.debate_state, status.reason) == (m.DebateState.PAUSED, "arbiter_restarted")
        assert [seat.connected for seat in status.seats] == [False, False]
        ada, bob = [await sits(place, arbiter, name) for name in ("ada", "bob")]
        (resumed,) = await talk(place, arbiter, m.Resume())
        assert resumed == m.AdminOk(operation="RESUME")
        await bob.control.hear(m.SeatRecovery)
        await bob.control.hear(m.DebateResumed)
        assert (await bob.control.hear(m.TurnStart)).turn_id == 3
        assert [said.text for said in (await bob.data.hear(m.Context)).delta] == ["Before the kill."]
        await talk(place, arbiter, m.Terminate())
        for wire in (ada.control, ada.data, bob.control, bob.data):
            await wire.cut()
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
    assert code == 0
    assert "was torn, and is dropped: 7 bytes of record" in log
    assert "goes on after 2 turns: PAUSED" in log
    assert place.is_whole()
    told = [unseal(line).entry for line in read_lines(place.transcript)]
    turns = [(t.turn_id, t.outcome, t.text) for t in told if t.kind == "turn"]
    assert turns == [(1, "speech", "Before the kill."), (2, "lost", None), (3, "forced", None)]


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_debate_that_has_ended_is_not_begun_again(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(place) as arbiter:
        await talk(place, arbiter, m.Terminate(reason="enough"))
        await anyio.to_thread.run_sync(arbiter.ends)
    before = place.transcript.read_bytes()
    assert await anyio.to_thread.run_sync(cli.main, ["arbiter", *place.arguments()]) == 2
    said = capsys.readouterr().err
    assert f"the debate in {place.transcript} has ended: FINISHED, enough" in said
    assert f"consilium transcript show {place.transcript}" in said
    assert place.transcript.read_bytes() == before


@pytest.mark.e2e
@pytest.mark.anyio
async def test_two_arbiters_do_not_write_one_transcript(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(place):
        assert await anyio.to_thread.run_sync(cli.main, ["arbiter", *place.arguments()]) == 2
    assert f"another Arbiter is writing {place.transcript}" in capsys.readouterr().err


@pytest.mark.e2e
@pytest.mark.anyio
async def test_an_arbiter_that_was_stopped_goes_on_by_the_rules_it_began_with(place: Place) -> None:
    with running(place) as arbiter:
        arbiter.process.send_signal(signal.SIGTERM)
        arbiter.ends()
    (place.folder / "council.yaml").write_text(COUNCIL.replace("Wrap", "Burn"))
    with running(place) as arbiter:
        status, _ = await talk(place, arbiter, m.StatusRequest(), m.Terminate())
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
    assert (code, status.topic) == (0, "Wrap it or rewrite it?")
    assert "not by those of the council file" in log
    assert place.is_whole()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_a_disk_that_takes_no_more_holds_it_up_until_an_operator_ends_it(place: Place) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    with running(place, preexec_fn=small_files) as arbiter:
        operator: Wire = await connect(arbiter.ports["admin"], "admin", place.context("operator", "operator"))
        await operator.say(m.Inject(text="x" * 9000))
        status = await operator.ask(m.StatusRequest())
        assert status.debate_state is m.DebateState.PAUSED
        assert "the transcript could not be written: " in status.reason
        await operator.say(m.Terminate())
        code, log = await anyio.to_thread.run_sync(arbiter.ends)
        await operator.cut()
    assert code == 1
    assert "the debate stands still" in log
    assert "the transcript is not complete" in log
    assert inspect(read_lines(place.transcript)).whole


# --- a folder of transcripts, and health ----------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.anyio
async def test_in_a_folder_an_unfinished_debate_goes_on_and_a_finished_one_is_followed_by_another(
    place: Place,
) -> None:
    folder = place.folder / "transcripts"
    place.record = ("--transcripts", str(folder))
    with running(place) as arbiter:
        await talk(place, arbiter, m.StatusRequest())
        arbiter.process.kill()
    (first,) = folder.glob("*.jsonl")
    with running(place) as arbiter:
        await talk(place, arbiter, m.Terminate(reason="enough"))
        code, _ = await anyio.to_thread.run_sync(arbiter.ends)
    assert code == 0
    assert [*folder.glob("*.jsonl")] == [first]
    kept = first.read_bytes()
    with running(place) as arbiter:
        await talk(place, arbiter, m.Terminate())
        await anyio.to_thread.run_sync(arbiter.ends)
    assert len([*folder.glob("*.jsonl")]) == 2
    assert first.read_bytes() == kept
    assert first.name.endswith("-wrap-it-or-rewrite-it.jsonl")


@pytest.mark.e2e
@pytest.mark.anyio
async def test_it_reports_its_health(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    path = place.folder / "health"
    with running(place, "--health-file", str(path)) as arbiter:

        def opinion() -> tuple[bool, str]:
            judged = judge(Report.read(path), "arbiter", time.monotonic())
            return judged.healthy, judged.sentence

        with anyio.fail_after(20):
            while not opinion()[0]:  # noqa: ASYNC110 - it is another process
                await anyio.sleep(0.05)
        assert opinion()[1] == "the arbiter is well: the debate is WAITING_QUORUM"
        arbiter.process.send_signal(signal.SIGSTOP)  # a process that hangs is found out by its silence
        late = Report.read(path)
        assert late is not None
        assert not judge(late, "arbiter", late.at + STALE + 1).healthy
        arbiter.process.send_signal(signal.SIGCONT)
        await talk(place, arbiter, m.Terminate())
        await anyio.to_thread.run_sync(arbiter.ends)


@pytest.mark.anyio
async def test_the_admin_port_may_have_an_address_of_its_own() -> None:
    ports = Ports.of(host=HOST, admin_host="127.0.0.2", control_port=0, data_port=0, admin_port=0)
    async with contextlib.AsyncExitStack() as stack:
        listeners = await main_module._listen(ports, stack)
        found = {name: each[0].extra(SocketAttribute.local_address)[0] for name, each in listeners.items()}
    assert found == {"control": HOST, "data": HOST, "admin": "127.0.0.2"}
