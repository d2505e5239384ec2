"""`consilium admin` as an operator meets it, at a real Arbiter: what it does, says and returns."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread
import house as house_module
import pytest
from admin_double import admin_double
from edge_kit import Council
from house import Guest, Home, house, until
from playbook import council

from consilium import cli, passphrase, tls
from consilium import messages as m
from consilium.errors import UserError
from consilium.profile import DEFAULT_PROFILES
from consilium.records import EventName, EventRecord
from council import admin
from council.verbs import parser
from pki.main import main as pki

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.anyio

OPEN_TABLE = {"mode": "dynamic", "wait_for_required_at_start": False}
"""Nothing begins before the operator says so."""


class Said(NamedTuple):
    """What one call of the command returned and wrote."""

    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)
    monkeypatch.delenv(passphrase.VARIABLE, raising=False)
    for name in ("CONSILIUM_HOST", "CONSILIUM_ADMIN_PORT"):
        monkeypatch.delenv(name, raising=False)


class Desk:
    """An operator at the command line of a house."""

    def __init__(self, home: Home, capfd: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self.capfd = capfd
        self.bundle = home.authority.issue("anna", profile="operator").cert.parent
        self.port = home.ports["admin"]

    async def __call__(self, *words: str, bundle: Path | None = None) -> Said:
        """Type ``consilium admin`` with the bundle, the port and ``words``."""
        argv = ["admin", "--bundle", str(bundle or self.bundle), "--port", str(self.port), *words]
        code = await anyio.to_thread.run_sync(cli.main, argv)
        return Said(code, *self.capfd.readouterr())

    async def types(self, line: str) -> Said:
        """Type a whole line, as it was shown."""
        code = await anyio.to_thread.run_sync(cli.main, shlex.split(line)[1:])
        return Said(code, *self.capfd.readouterr())

    def commanded(self) -> list[Any]:
        """The operations on the record."""
        return [
            record.entry.data["operation"]
            for record in self.home.records()
            if isinstance(record.entry, EventRecord) and record.entry.event is EventName.OPERATOR_COMMAND
        ]


@asynccontextmanager
async def table(
    folder: Path, capfd: pytest.CaptureFixture[str], *, start: bool = True, **how: Any
) -> AsyncIterator[tuple[Desk, Guest, Guest]]:
    """A debate of ada and bob, in which ada has the floor; and an operator."""
    async with house(folder, council((), roster=OPEN_TABLE), **how) as home:
        desk = Desk(home, capfd)
        ada, bob = await home.joined("ada", "bob")
        if start:
            assert (await desk("resume")).code == 0
            await ada.turn()
        yield desk, ada, bob


# --- every verb ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "said", "operation"),
    [
        ("inject 'What does it cost?'", "Injected: every seat finds it in its next turn.", "INJECT"),
        ("topic 'Wrap what first?'", "The topic is changed, from the next turn on.", "SET_TOPIC"),
        ("phase REBUTTAL", "The phase is REBUTTAL, from the next turn on.", "SET_PHASE"),
        (
            "phase closing --round-end",
            "The phase becomes CLOSING when the round is complete.",
            "SET_PHASE",
        ),
        ("kick bob", "bob is removed from the debate for good.", "KICK"),
        (
            "force-turn-end",
            "The open turn is taken back, and counts as had in this round.",
            "FORCE_TURN_END",
        ),
        ("next bob", "The next turn is for bob.", "NEXT"),
        ("pause --reason tea", "Paused: no further turn is given; one that is open may finish.", "PAUSE"),
        ("terminate --round-end", "The debate is closed when the round is complete.", "TERMINATE"),
        ("terminate --reason enough", "The debate is closed.", "TERMINATE"),
    ],
)
async def test_a_verb_is_carried_out_recorded_and_told_in_one_line(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str, said: str, operation: str
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        assert await desk(*shlex.split(line)) == Said(0, f"{said}\n", "")
        assert desk.commanded() == ["RESUME", operation]


async def test_a_debate_is_begun_once_and_a_pause_is_not_ended_by_that(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    left = "It has begun already, or begins by itself once everybody is there who is waited for."
    async with table(tmp_path, capfd, start=False) as (desk, ada, _):
        assert await desk("begin") == Said(0, "The debate begins.\n", "")
        await ada.turn()
        await desk("pause")
        assert await desk("begin") == Said(0, f"{left}\n", "")
        told = await desk("begin", "--json")
        assert json.loads(told.out) == {"event": "left", "message": left}
        assert desk.commanded() == ["RESUME", "PAUSE"]


async def test_what_is_injected_is_in_the_next_seat_s_delta(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.write(write, "What does it cost?\nIn the second year, café.\n".encode())
    os.close(write)
    async with table(tmp_path, capfd) as (desk, ada, bob):
        with open(read, encoding="utf-8") as stdin:  # noqa: ASYNC230, PTH123 - a pipe, already filled
            monkeypatch.setattr(sys, "stdin", stdin)
            assert (await desk("inject", "-")).code == 0
        await ada.says(1, "Well.")
        delta = (await bob.turn()).delta
        assert (delta[0].speaker, delta[0].text) == (
            "moderator",
            "What does it cost?\nIn the second year, café.",
        )


async def test_status_is_told_to_a_person_and_to_a_program(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, ada, _):
        told = await desk("status")
        assert told.code == 0
        assert told.out.startswith("State     RUNNING\nPhase     OPENING\nTopic     Should we rewrite")
        assert "Turns     1; ada has the floor\n" in told.out
        assert f"Seat      {ada.granted.participant_id}: speaking, connected\n" in told.out
        document = json.loads((await desk("status", "--json")).out)
        assert document["type"] == "STATUS"
        assert document["speaking"] == ada.granted.participant_id
        assert document["cost"]["tokens_total"] is None
        m.Status.model_validate_json(json.dumps(document), strict=False)


async def test_a_program_is_told_what_was_done(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        said = await desk("--json", "pause")
        assert json.loads(said.out) == {"event": "done", "operation": "PAUSE"}
        assert (said.code, said.err) == (0, "")


async def test_a_debate_is_begun_paused_resumed_and_closed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd, start=False) as (desk, ada, bob):
        offered = (await desk("status")).out
        assert "To go on  resume: begin\n" in offered
        assert await desk("resume") == Said(0, "The debate goes on.\n", "")
        await ada.speaks("First.")
        await bob.turn()
        assert (await desk("pause", "--reason", "tea")).code == 0
        assert (await desk("status")).out.startswith("State     PAUSED: tea\n")
        await bob.says(2, "Second.")
        assert (await desk("resume")).code == 0
        assert (await desk("terminate", "--reason", "enough")).code == 0
        assert await desk.home.outcome() is m.DebateState.FINISHED


# --- a seat in trouble -----------------------------------------------------------------------------------


async def fails(guest: Guest, turn_id: int) -> None:
    await guest.control.say(
        m.TurnFailed(
            turn_id=turn_id,
            fault=m.Fault.STALLED,
            prompt_sent=m.PromptSent.MAYBE,
            detail="nothing for 120 s",
        )
    )


async def test_a_fault_is_told_with_commands_that_work(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, ada, _):
        await fails(ada, 1)
        await ada.control.hear(m.DebatePaused)
        told = (await desk("status")).out
        assert told.startswith("State     PAUSED: a seat cannot go on\n")
        assert "fault: stalled: nothing for 120 s\n" in told
        assert "was the prompt sent: maybe, its client may have been given the turn\n" in told
        commands = [line.strip() for line in told.splitlines() if "consilium admin" in line]
        assert [line.split()[-1] for line in commands] == [
            "ada=keep",
            "ada=cold",
            "ada=skip",
            "ada=remove",
            "terminate",
        ]
        assert await desk.types(commands[1]) == Said(
            0, "The debate goes on once ada has been started anew.\n", ""
        )
        assert (await ada.control.hear(m.SeatRecovery)).mode is m.Recovery.COLD
        assert (await desk("status")).out.startswith("State     RESUMING\n")
        await ada.data.say(m.SystemEvent(event="PARTICIPANT_MEMORY_LOST"))
        await ada.control.hear(m.DebateResumed)
        assert (await ada.turn()).turn_id == 2


async def test_a_resume_of_a_seat_that_is_gone_is_refused_with_the_choices(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, bob):
        await bob.control.cut()
        await until(lambda: desk.home.debate.state is m.DebateState.PAUSED)
        said = await desk("resume")
        seat = bob.granted.participant_id
        sentence, *ways = said.err.splitlines()
        assert (said.code, said.out) == (1, "")
        assert sentence == (
            f"consilium admin: the Arbiter refused resume: {seat} is not connected:"
            " skip it, remove it, or wait for it"
        )
        base = f"consilium admin --bundle {desk.bundle} --port {desk.port} "
        assert [way.strip().split("    (")[0].removeprefix(base) for way in ways] == [
            "resume",
            "resume bob=skip",
            "resume bob=remove",
            "terminate",
        ]
        assert (await desk.types(ways[1].split("    (")[0])).code == 0
        assert desk.home.debate.state is m.DebateState.RUNNING


async def test_lines_are_shown_as_a_person_types_them(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        await desk("pause")
        typed = "docker compose run --rm operator"
        told = (await desk("--operator", typed, "status")).out
        assert f"{typed} resume\n" in told
        assert "consilium admin" not in told
        assert f"to go on: {typed} resume\n" in (await desk("pause", "--operator", typed)).err


@pytest.mark.parametrize("command", ["", "docker 'compose"])
async def test_what_no_person_can_type_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    async with table(tmp_path, capfd, start=False) as (desk, _, _):
        said = await desk("--operator", command, "status")
        assert said.code == 2
        assert "--operator is no command" in said.err


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "sentence", "hint"),
    [
        ("resume", "the Arbiter refused resume: not while the debate is RUNNING", "where it"),
        (
            "kick nobody",
            "the Arbiter refused kick: there is no seat nobody",
            "the seats: ada (speaking), bob",
        ),
        (
            "next nobody",
            "the Arbiter refused next: there is no seat nobody",
            "the seats: ada (speaking), bob",
        ),
        (
            "phase OPENING",
            "the Arbiter refused phase: the phase is OPENING already",
            "where it stands: consi",
        ),
    ],
)
async def test_a_refusal_is_one_sentence_with_a_way_out(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], line: str, sentence: str, hint: str
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        said = await desk(*line.split())
        assert (said.code, said.out) == (1, "")
        first, second = said.err.splitlines()
        assert first.startswith(f"consilium admin: {sentence}")
        assert second.startswith(f"  {hint}")


async def test_a_program_is_told_a_refusal_with_its_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        said = await desk("resume", "--json")
        assert json.loads(said.out) == {
            "event": "refused",
            "message": "the Arbiter refused resume: not while the debate is RUNNING",
            "code": "INVALID_STATE",
            "hint": f"where it stands: consilium admin --bundle {desk.bundle} --port {desk.port} status",
        }
        assert (said.code, said.err) == (1, "")


async def test_a_debate_that_is_over_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with table(tmp_path, capfd, grace=5.0) as (desk, _, _):
        await desk("terminate")
        said = await desk("inject", "one more thing")
        assert said.code == 1
        assert said.err.endswith(
            "\n  the debate is over (FINISHED: closed by the operator); its transcript stays readable\n"
        )


async def test_a_refusal_after_which_nothing_can_be_asked_is_told_alone(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    operator = DEFAULT_PROFILES["operator"].model_copy(update={"may_ask_status": False})
    profiles = DEFAULT_PROFILES | {"operator": operator}
    async with table(tmp_path, capfd, profiles=profiles) as (desk, _, _):
        said = await desk("resume")
        assert said.err == "consilium admin: the Arbiter refused resume: not while the debate is RUNNING\n"


@pytest.mark.parametrize("verb", ["status", "pause"])
async def test_a_participant_s_bundle_is_refused_in_a_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], verb: str
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        said = await desk(verb, bundle=tmp_path / "certs" / "ada")
        assert said == Said(
            1,
            "",
            "consilium admin: the Arbiter refused this connection: a certificate of role participant may not"
            " use this channel\n"
            "  this endpoint takes operators only: consilium pki issue DIR NAME --profile operator\n",
        )
        assert desk.commanded() == ["RESUME"]


@pytest.mark.parametrize("door", ["control", "data"])
async def test_an_operator_s_certificate_takes_no_seat(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], door: str
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        wire = await desk.home.connect(door, desk.home.context("eve", "operator"))
        (refusal,) = await wire.rest()
        assert (refusal.code, refusal.message) == (
            "POLICY_DENIED",
            "a certificate of role operator may not use this channel",
        )
        assert [seat.name for seat in desk.home.debate.roster] == ["ada", "bob"]


async def test_any_other_end_of_the_connection_is_no_matter_of_certificates(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    operator = DEFAULT_PROFILES["operator"].model_copy(update={"max_message_bytes": 1024})
    async with table(tmp_path, capfd, profiles=DEFAULT_PROFILES | {"operator": operator}) as (desk, _, _):
        said = await desk("inject", "x" * 2000)
        assert said.code == 1
        assert said.err.startswith("consilium admin: the Arbiter refused this connection: ")
        assert "operators only" not in said.err


# --- bundles ---------------------------------------------------------------------------------------------


async def test_a_bundle_file_is_as_good_as_a_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("correct horse\n")
    async with table(tmp_path, capfd) as (desk, _, _):
        made = ["bundle", str(tmp_path / "certs"), "anna", "--passphrase-file", str(tmp_path / "secret")]
        assert pki([*made, "--out", str(tmp_path / "a.p12")]) == 0
        assert pki([*made, "--out", str(tmp_path / "a.pem"), "--format", "pem"]) == 0
        capfd.readouterr()
        for name in ("a.p12", "a.pem"):
            given = ["--passphrase-file", str(tmp_path / "secret")]
            said = await desk("pause", *given, bundle=tmp_path / name)
            assert said.code == 0, said
            files = f"--bundle {tmp_path / name} --passphrase-file {tmp_path / 'secret'}"
            resume = f"consilium admin {files} --port {desk.port} resume"
            told = await desk("status", *given, bundle=tmp_path / name)
            assert f"{resume}\n" in told.out
            assert (await desk.types(resume)).code == 0
        monkeypatch.setenv(passphrase.VARIABLE, "correct horse")
        assert (await desk("status", bundle=tmp_path / "a.p12")).code == 0
        monkeypatch.setenv(passphrase.VARIABLE, "wrong")
        said = await desk("status", bundle=tmp_path / "a.p12")
        assert said.code == 2
        assert said.err.startswith(f"consilium: {tmp_path / 'a.p12'} cannot be opened\n")


async def test_host_and_port_come_from_the_environment(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        monkeypatch.setenv("CONSILIUM_ADMIN_PORT", str(desk.port))
        monkeypatch.setenv("CONSILIUM_HOST", "localhost")
        assert (await desk.types(f"consilium admin --bundle {desk.bundle} pause")).code == 0
        told = await desk.types(f"consilium admin --bundle {desk.bundle} status")
        assert f"consilium admin --bundle {desk.bundle} resume\n" in told.out


async def test_an_arbiter_on_unix_sockets_is_reached_by_their_folder(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(house_module, "TRANSPORT", "unix")
    async with house(tmp_path, council((), roster=OPEN_TABLE)) as home:
        desk = Desk(home, capfd)
        line = f"consilium admin --bundle {desk.bundle} --socket-dir {tmp_path / 'run'}"
        assert (await desk.types(f"{line} topic Other")).code == 0
        told = await desk.types(f"{line} status")
        assert "Other" in told.out
        assert "where it stands: " + f"{line} status" in (await desk.types(f"{line} force-turn-end")).err
        wrong = await desk.types(f"{line} --server-name other.example pause")
        assert (wrong.code, "certificate was refused" in wrong.err) == (4, True)
        monkeypatch.setenv("CONSILIUM_LISTEN", "unix")
        monkeypatch.setenv("CONSILIUM_SOCKET_DIR", str(tmp_path / "run"))
        assert (await desk.types(f"consilium admin --bundle {desk.bundle} status")).code == 0
        both = await desk.types(f"{line} --host h status")
        assert (both.code, "both were given" in both.err) == (2, True)


async def test_a_reload_is_asked_for_and_what_cannot_be_used_is_told(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with house(tmp_path, council((), roster=OPEN_TABLE)) as home:
        desk = Desk(home, capfd)
        said = "Certificates and profiles are read again; the record says what changed."
        assert await desk("reload") == Said(0, f"{said}\n", "")
        assert desk.commanded() == ["RELOAD"]
        (tmp_path / "profiles.yaml").write_text("x: 1\n")
        refused = await desk("reload")
        assert refused.code == 1
        assert "the Arbiter refused reload: nothing is reloaded: " in refused.err
        assert "profiles.yaml, line 1: x: must be a section of keys and values (given: 1)" in refused.err


async def test_the_arbiter_is_known_by_the_name_that_is_given(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        assert (await desk("status", "--server-name", "localhost")).code == 0
        said = await desk("status", "--server-name", "elsewhere")
        assert said.code == 4
        assert "the Arbiter's certificate was refused: Hostname mismatch" in said.err


# --- no connection ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_json", [True, False])
async def test_an_arbiter_that_is_not_there_is_4(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], as_json: bool
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        desk.port = 1
        said = await desk("status", *(["--json"] if as_json else []))
        sentence = "no connection to the Arbiter at 127.0.0.1:1: connection refused"
        assert said.code == 4
        if as_json:
            told = {"event": "link_lost", "message": sentence, "hint": admin.ABSENT}
            assert json.loads(said.out) == told
        else:
            assert (said.out, said.err) == ("", f"consilium admin: {sentence}\n  {admin.ABSENT}\n")


@pytest.mark.parametrize(
    ("how", "sentence"),
    [
        ("silent", "the Arbiter did not answer within 0.3 s"),
        ("cut", "the Arbiter died, or the line was cut: the connection ended without a close_notify"),
        ("closed", "the Arbiter closed the connection"),
    ],
)
async def test_an_arbiter_that_does_not_answer_is_4(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    sentence: str,
) -> None:
    monkeypatch.setattr(admin, "REPLY_SECONDS", 0.3)
    own = Council(tmp_path)
    async with admin_double(own.server) as desk, anyio.create_task_group() as tasks:

        async def play() -> None:
            peer = await desk.accept()
            await peer.line()
            if how != "silent":
                await (peer.cut if how == "cut" else peer.close)()

        tasks.start_soon(play)
        argv = ["--bundle", str(tmp_path / "alice"), "--port", str(desk.port), "status"]
        assert await anyio.to_thread.run_sync(admin.main, argv) == 4
        assert capfd.readouterr().err == f"consilium admin: {sentence}\n  {admin.ABSENT}\n"


# --- mistakes --------------------------------------------------------------------------------------------


def test_without_a_bundle_it_says_how_to_give_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["admin", "status"]) == 2
    assert "error: --bundle is needed: your credentials, for example" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--bundle", "nowhere", "status"], "nowhere cannot be read"),
        (["--bundle", "nowhere", "resume", "ada"], "'ada' is not SEAT=CHOICE"),
        (["--bundle", "nowhere", "watch", "--from", "-1"], "a record's number counts from 0"),
        (["--bundle", "nowhere", "--port", "70000", "status"], "admin_port must be a port"),
    ],
)
def test_a_mistake_is_one_sentence_before_anything_is_sent(words: list[str], sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        admin.main(words)
    assert str(refusal.value).startswith(sentence)


def test_standard_input_that_is_not_text_is_a_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    read, write = os.pipe()
    os.write(write, b"caf\xe9\n")
    os.close(write)
    with open(read, encoding="utf-8") as stdin:  # noqa: PTH123 - a pipe
        monkeypatch.setattr(sys, "stdin", stdin)
        with pytest.raises(UserError, match="standard input is not valid UTF-8"):
            admin.main(["--bundle", "nowhere", "inject", "-"])


def test_no_standard_input_is_an_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(UserError, match="the text must have 1 character at least"):
        admin.main(["--bundle", "nowhere", "inject", "-"])


def test_help_opens_nothing() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "consilium", "admin", "--help"], capture_output=True, text=True, check=True
    )
    assert "consilium admin --bundle certs/anna status\n" in told.stdout


# --- watch -----------------------------------------------------------------------------------------------


class Watch:
    """`consilium admin watch` in this process, whose main thread takes its signals."""

    def __init__(self, desk: Desk, *words: str) -> None:
        self.desk = desk
        self.text = ""
        self.code: int | None = None
        argv = ["--bundle", str(desk.bundle), "--port", str(desk.port), "watch", *words]
        self._command = admin.Admin(parser().parse_args(argv))
        self._command._access._context = desk.home.context("watcher", "operator")

    async def run(self) -> None:
        self.code = await self._command._watch()

    async def shows(self, what: str) -> None:
        def shown() -> bool:
            self.text += self.desk.capfd.readouterr().out
            return what in self.text

        await until(shown)


async def watched(desk: Desk, ada: Guest, bob: Guest, what: str, *words: str) -> Watch:
    """Watch from the first turn on, then both speak, and the operator ends it; ``what`` has been shown.

    Nothing is read before the end: pytest loses what is written while it reads.
    """
    watch = Watch(desk, *words)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch.run)
        await anyio.sleep(1)
        await ada.says(1, "Wrap it.")
        await bob.speaks("Rewrite it.")
        await ada.turn()
        operator = await desk.home.operator()
        await operator.say(m.Terminate(reason="enough"))
    await watch.shows(what)
    return watch


async def test_a_watch_tells_the_debate_as_up_does_and_how_it_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, ada, bob):
        watch = await watched(desk, ada, bob, "turn 1")
    lines = watch.text.splitlines()
    assert watch.code == 0
    assert lines[0] == "… connecting to the Arbiter"
    assert lines[1] == "Debate debate-1: Should we rewrite the billing service or wrap it?"
    assert "▸ turn 1, OPENING: ada (role of ada)" in lines
    assert "  Wrap it." in lines
    assert lines[lines.index("  Rewrite it.") - 1].startswith("bob (role of bob) · tokens unknown")
    assert lines[-1] == "The debate is finished after 3 turns: enough."


async def test_a_watch_for_a_program_is_json_lines_from_where_it_asked(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, ada, bob):
        watch = await watched(desk, ada, bob, '"seq":3,', "--json", "--from", "3")
        on_disk = [record.seq for record in desk.home.records()]
    lines = [json.loads(line) for line in watch.text.splitlines()]
    assert watch.code == 0
    assert [line["record"]["seq"] for line in lines if line["event"] == "record"] == on_disk[3:]
    assert (lines[-1]["event"], lines[-1]["outcome"], lines[-1]["exit"]) == ("end", "FINISHED", 0)


async def test_a_watch_with_a_participant_s_bundle_is_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        command = admin.Admin(parser().parse_args(["--bundle", "x", "--port", str(desk.port), "watch"]))
        command._access._context = desk.home.context("ada")
        assert await command._watch() == 1
    told = " ".join(capfd.readouterr().out.split())
    assert "refused this connection: a certificate of role participant may not use this channel." in told
    assert told.endswith("consilium pki issue DIR NAME --profile operator.")


@pytest.mark.e2e
async def test_ctrl_c_ends_a_watch_and_not_the_debate(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    async with table(tmp_path, capfd) as (desk, _, _):
        argv = ["-m", "consilium", "admin", "--bundle", str(desk.bundle), "--port", str(desk.port), "watch"]
        async with await anyio.open_process([sys.executable, *argv]) as process:
            assert process.stdout is not None
            told = b""
            with anyio.fail_after(30):
                while b"turn 1" not in told:
                    told += await process.stdout.receive()
                process.send_signal(signal.SIGINT)
                async for more in process.stdout:
                    told += more
        assert process.returncode == 130
        assert told.decode().endswith("No longer watching; the debate goes on.\n")
        assert desk.home.debate.state is m.DebateState.RUNNING
