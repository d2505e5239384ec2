"""`consilium seat`: from the command line to the end of a debate, with a stand-in for the program `llm`."""

from __future__ import annotations

import json
import logging
import signal
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from arbiter_double import HOST, ArbiterDouble, Seated, arbiter_double
from edge_kit import Council

import wrapper.main as main_module
from consilium import messages as m
from consilium import tls
from consilium.errors import ErrorCode, UserError
from wrapper.events import End, Outcome
from wrapper.main import main, parser
from wrapper.prompts import role_prompt_hash

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anyio.abc import Process

PATIENCE = 20.0

LLM = """\
#!{python}
import json, os, pathlib, sys, time
log = pathlib.Path(__file__).with_name("calls.jsonl")
home = pathlib.Path(os.environ["LLM_USER_PATH"])
if "--version" in sys.argv:
    print("llm, version 0.36.1")
    sys.exit()
prompt = sys.stdin.read()
call = {{"argv": sys.argv[1:], "prompt": prompt, "pid": os.getpid(), "env": sorted(os.environ)}}
if "--sf" in sys.argv:
    call["system"] = pathlib.Path(sys.argv[sys.argv.index("--sf") + 1]).read_text()
with log.open("a") as file:
    print(json.dumps(call), file=file)
if os.environ.get("STAND_IN") == "hang":
    time.sleep(600)
(home / "logs.db").touch()
turn = sum(1 for _ in log.open())
print(json.dumps([{{
    "conversation_id": "chat-1", "response": f"Speech {{turn}}.",
    "response_json": {{"model": "tiny-1"}}, "input_tokens": 40, "output_tokens": 2,
}}]))
"""

COUNCIL = """\
topic: Wrap it or rewrite it?
caps: {max_rounds: 2}
limits: {speech_bytes: 2000, contribution_chars: 400}
participants:
  - name: sceptic
    role_prompt: Doubt everything.
    role_label: Doubter
    env: [STAND_IN]
"""


class House:
    """A council file, a seat's credentials, a stand-in for `llm`, and an Arbiter's double."""

    def __init__(self, folder: Path, council: Council) -> None:
        self.folder = folder
        self.council = council
        self.file = folder / "council.yaml"
        self.write(COUNCIL)
        self.program = folder / "bin" / "llm"
        self.program.parent.mkdir()
        self.program.write_text(LLM.format(python=sys.executable))
        self.program.chmod(0o755)

    def write(self, council: str) -> None:
        self.file.write_text(council)

    def argv(self, arbiter: ArbiterDouble | None = None, *more: str, name: str = "sceptic") -> list[str]:
        ports = (1, 1) if arbiter is None else (arbiter.address.control_port, arbiter.address.data_port)
        return [
            *("--council", str(self.file), "--name", name),
            *("--certs", str(self.council.alice.cert.parent), "--state", str(self.folder / "state")),
            *("--host", HOST, "--control-port", str(ports[0]), "--data-port", str(ports[1])),
            *("--model-url", "http://127.0.0.1:9/v1", "--connect-timeout", "5"),
            *more,
        ]

    @property
    def calls(self) -> list[dict[str, Any]]:
        log = self.program.with_name("calls.jsonl")
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture
def house(tmp_path: Path, council: Council, monkeypatch: pytest.MonkeyPatch) -> House:
    house = House(tmp_path, council)
    monkeypatch.setenv("PATH", f"{house.program.parent}:/usr/bin:/bin")
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)
    return house


@pytest.fixture
async def arbiter(council: Council) -> AsyncIterator[ArbiterDouble]:
    async with arbiter_double(council.server) as double:
        yield double


@asynccontextmanager
async def living(house: House, arbiter: ArbiterDouble, *more: str) -> AsyncIterator[list[End]]:
    """Run the command in this process; the list holds how it ended, once it has."""
    ends: list[End] = []

    async def live() -> None:
        ends.append(await main_module._live(parser().parse_args(house.argv(arbiter, *more))))

    with anyio.fail_after(PATIENCE):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(live)
            yield ends


async def speech(seat: Seated, turn_id: int) -> m.Speech:
    await seat.assign(turn_id)
    said = await seat.data.hear(m.Speech)
    await seat.control.hear(m.TurnEnd)
    return said


# --- a whole life, in this process -------------------------------------------------------------------


@pytest.mark.anyio
async def test_a_seat_lives_through_a_debate_with_its_client(
    house: House, arbiter: ArbiterDouble, capsys: pytest.CaptureFixture[str]
) -> None:
    async with living(house, arbiter) as ends:
        seat = await arbiter.seat()
        assert await speech(seat, 1) == m.Speech(
            turn_id=1,
            text="Speech 1.",
            usage=m.Usage(tokens_in=40, tokens_out=2, model="tiny-1"),
        )
        assert (await speech(seat, 2)).text == "Speech 2."
        await seat.finish()
    assert seat.reg == m.Reg(
        name="sceptic",
        required=True,
        disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE,
        meta=m.Meta(
            brand="llm",
            model="SmolLM2-135M-Instruct",
            effort=None,
            adapter="native",
            cli_version="0.36.1",
            harness_profile="restricted",
            reports_usage=True,
            role_label="Doubter",
            role_prompt_hash=role_prompt_hash("Doubt everything."),
            isolation="relaxed",
        ),
    )
    assert ends == [End(Outcome.FINISHED, "the debate ended: FINISHED")]
    first, second = house.calls
    assert "Doubt everything." in first["system"]
    assert "You are the first to speak." in first["prompt"]
    assert "--cid" in second["argv"]
    said = [json.loads(line)["event"] for line in capsys.readouterr().out.splitlines()]
    assert said == ["registered", "seated", "speaking", "spoke", "speaking", "spoke", "ended"]


@pytest.mark.anyio
async def test_the_client_is_told_nothing_of_the_wrappers(house: House, arbiter: ArbiterDouble) -> None:
    async with living(house, arbiter):
        seat = await arbiter.seat()
        await speech(seat, 1)
        await seat.finish()
    (call,) = house.calls
    assert not [name for name in call["env"] if name.startswith("CONSILIUM_")]
    assert "a-token-for-one-use" not in json.dumps(call)
    assert str(house.council.alice.key) not in json.dumps(call)


@pytest.mark.anyio
async def test_a_seat_that_is_started_again_resumes_its_chat(house: House, arbiter: ArbiterDouble) -> None:
    for turn_id in (1, 2):
        async with living(house, arbiter):
            seat = await arbiter.seat()
            await speech(seat, turn_id)
            await seat.finish()
    assert house.calls[1]["argv"][-2:] == ["--cid", "chat-1"]


@pytest.mark.anyio
async def test_a_seat_whose_chat_is_gone_says_so(house: House, arbiter: ArbiterDouble) -> None:
    async with living(house, arbiter):
        seat = await arbiter.seat()
        await speech(seat, 1)
        await seat.finish()
    (house.folder / "state" / "home" / "logs.db").unlink()
    async with living(house, arbiter):
        seat = await arbiter.seat()
        assert (await seat.data.hear(m.SystemEvent)).event == "PARTICIPANT_MEMORY_LOST"
        await speech(seat, 2)
        await seat.finish()
    assert "--cid" not in house.calls[1]["argv"]


@pytest.mark.anyio
async def test_a_cold_restart_begins_another_chat(house: House, arbiter: ArbiterDouble) -> None:
    async with living(house, arbiter):
        seat = await arbiter.seat()
        await speech(seat, 1)
        await seat.control.say(m.SeatRecovery(mode=m.Recovery.COLD))
        assert (await seat.data.hear(m.SystemEvent)).event == "PARTICIPANT_MEMORY_LOST"
        await speech(seat, 2)
        await seat.finish()
    assert "--cid" not in house.calls[1]["argv"]


@pytest.mark.anyio
async def test_a_state_folder_may_be_given_by_a_relative_path(
    house: House, arbiter: ArbiterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(house.folder)
    async with living(house, arbiter, "--state", "elsewhere"):
        seat = await arbiter.seat()
        await speech(seat, 1)
        await seat.finish()
    assert (house.folder / "elsewhere" / "home" / "logs.db").exists()


@pytest.mark.anyio
async def test_two_wrappers_do_not_share_a_chat(house: House, arbiter: ArbiterDouble) -> None:
    async with living(house, arbiter):
        seat = await arbiter.seat()
        async with living(house, arbiter) as ends:
            pass
        assert ends[0].outcome is Outcome.CLIENT_FAILED
        assert "another wrapper is using" in ends[0].reason
        await seat.finish()


# --- what the council file says ----------------------------------------------------------------------


async def registration(house: House, arbiter: ArbiterDouble) -> m.Reg:
    async with living(house, arbiter):
        control = await arbiter.control()
        reg = await control.hear(m.Reg)
        await control.say(m.Error(code=ErrorCode.POLICY_DENIED, message="enough"))
    return reg


@pytest.mark.anyio
async def test_a_role_of_the_library_gives_label_and_prompt(house: House, arbiter: ArbiterDouble) -> None:
    roles = house.folder / "roles"
    roles.mkdir()
    (roles / "judge.md").write_text("---\nlabel: Judge\nsummary: Judges.\n---\nWeigh it.\n")
    house.write("topic: T\ncaps: {max_rounds: 1}\nparticipants: [{name: sceptic, role: judge, model: big}]\n")
    meta = (await registration(house, arbiter)).meta
    assert (meta.role_label, meta.role_prompt_hash) == ("Judge", role_prompt_hash("Weigh it."))
    assert meta.model == "big"


def test_at_a_server_of_somebodys_own_the_model_is_named_and_never_guessed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSILIUM_MODEL_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(UserError, match="nothing names the seat's model") as refused:
        main([*house.argv(), "--model-url", ""])
    assert "`model`" in refused.value.hint


@pytest.mark.anyio
async def test_a_seat_without_a_role_claims_none(house: House, arbiter: ArbiterDouble) -> None:
    house.write("topic: T\ncaps: {max_rounds: 1}\nparticipants: [{name: sceptic}]\n")
    meta = (await registration(house, arbiter)).meta
    assert (meta.role_label, meta.role_prompt_hash) == (None, None)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("roster", "required", "policy"),
    [
        ("{participants: [{name: sceptic, required: false, disconnect_policy: drop}]}", False, "drop"),
        ("{mode: dynamic, required_names: [sceptic]}", True, "drop"),
        ("{mode: dynamic}", False, "drop"),
    ],
)
async def test_a_seat_asks_for_what_the_roster_says(
    house: House, arbiter: ArbiterDouble, roster: str, *, required: bool, policy: str
) -> None:
    house.write(f"topic: T\ncaps: {{max_rounds: 1}}\nparticipants: [{{name: sceptic}}]\nroster: {roster}\n")
    reg = await registration(house, arbiter)
    assert (reg.required, reg.disconnect_policy) == (required, policy)


@pytest.mark.anyio
async def test_a_native_harness_works_in_the_project(house: House, arbiter: ArbiterDouble) -> None:
    (house.folder / "project").mkdir()
    house.write(
        "topic: T\ncaps: {max_rounds: 1}\n"
        "participants: [{name: sceptic, harness_profile: native, cwd: project}]\n"
    )
    assert (await registration(house, arbiter)).meta.harness_profile == "native"


def seat_of(line: str) -> str:
    return f"topic: T\ncaps: {{max_rounds: 1}}\nparticipants: [{{name: sceptic, {line}}}]\n"


@pytest.mark.parametrize(
    ("council_file", "words"),
    [
        (seat_of("adapter: pexpect"), "cannot be used in a terminal: its preset has no"),
        (seat_of("cwd: project"), "cwd is for harness_profile: native"),
        (seat_of("harness_profile: native, cwd: nowhere"), "nowhere is not a folder"),
        (seat_of("preset: lllm"), "there is no preset called 'lllm'"),
        (seat_of("effort: high"), "has no setting effort"),
        (seat_of("role: nobody"), "there is no role called 'nobody'"),
        (COUNCIL.replace("sceptic", "other"), "no participant named sceptic"),
        ("topic: T\ncaps: {max_rounds: 1}\n", "no participant named sceptic"),
    ],
)
def test_what_cannot_be_carried_out_is_one_sentence(house: House, council_file: str, words: str) -> None:
    house.write(council_file)
    with pytest.raises(UserError, match=words):
        main(house.argv())


def test_a_preset_beside_the_council_file_is_the_seats(house: House) -> None:
    house.write(seat_of("preset: mine"))
    packaged = Path(main_module.__file__).parent / "presets" / "llm.toml"
    text = packaged.read_text().replace('name = "llm"', 'name = "mine"')
    (house.folder / "presets").mkdir()
    (house.folder / "presets" / "mine.toml").write_text(
        text.replace('executable = "llm"', 'executable = "mine"')
    )
    with pytest.raises(UserError, match="mine is not installed"):
        main(house.argv())


def test_a_seat_that_the_council_does_not_list_has_nothing_to_do_where_that_is_said(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    words = house.argv(name="nobody")
    with pytest.raises(UserError, match="no participant named nobody"):
        main_module.main(words)
    with caplog.at_level("INFO"):
        assert main_module.main([*words, "--if-listed"]) == 0
    assert "there is nothing to do" in caplog.text
    assert house.calls == []


def test_missing_credentials_are_one_sentence(house: House) -> None:
    with pytest.raises(UserError, match=r"cert.pem is missing"):
        main(house.argv(None, "--certs", str(house.folder)))


def test_a_program_that_is_too_old_is_one_sentence(house: House) -> None:
    house.program.write_text("#!/bin/sh\necho 'llm, version 0.1'\n")
    with pytest.raises(UserError, match=r"llm 0\.1 is too old"):
        main(house.argv())


@pytest.mark.parametrize("seconds", ["-1", "nan", "soon", "1e9"])
def test_a_time_that_is_none_is_refused(
    house: House, seconds: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(house.argv(None, "--connect-timeout", seconds))
    assert f"{seconds!r} is not a number of seconds" in capsys.readouterr().err


def test_ports_come_from_the_environment_unless_they_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_HOST", "arbiter")
    monkeypatch.setenv("CONSILIUM_CONTROL_PORT", "7001")
    options = parser().parse_args(["--council=c", "--name=n", "--certs=d", "--state=s", "--data-port=7002"])
    address = main_module._address(options)
    assert (address.host, address.control_port, address.data_port) == ("arbiter", 7001, 7002)


def test_a_folder_of_sockets_takes_the_place_of_host_and_ports(monkeypatch: pytest.MonkeyPatch) -> None:
    least = ["--council=c", "--name=n", "--certs=d", "--state=s"]
    options = parser().parse_args([*least, "--socket-dir=/run/there", "--server-name=arbiter"])
    address = main_module._address(options)
    assert (address.sockets, address.server_name) == (Path("/run/there"), "arbiter")
    monkeypatch.setenv("CONSILIUM_LISTEN", "unix")
    monkeypatch.setenv("CONSILIUM_SOCKET_DIR", "/run/env")
    assert main_module._address(parser().parse_args(least)).sockets == Path("/run/env")
    assert main_module._address(parser().parse_args([*least, "--host=h"])).sockets is None


# --- exit codes --------------------------------------------------------------------------------------


def test_an_arbiter_that_is_not_there_is_exit_code_4(
    house: House, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert main(house.argv(None, "--connect-timeout", "0")) == 4
    ended = json.loads(capsys.readouterr().out)
    assert ended["event"] == "ended"
    assert ended["outcome"] == "LINK_LOST"
    assert "connection refused" in ended["reason"]
    assert caplog.records[-1].levelno == logging.ERROR
    assert "connection refused" in caplog.records[-1].getMessage()


@asynccontextmanager
async def process(house: House, arbiter: ArbiterDouble, *more: str) -> AsyncIterator[Process]:
    """Run the command as a process of its own; end it if the test does not."""
    argv = [sys.executable, "-m", "wrapper", *house.argv(arbiter, *more)]
    with anyio.fail_after(PATIENCE):
        async with await anyio.open_process(argv) as child:
            try:
                yield child
            finally:
                if child.returncode is None:
                    child.kill()


async def output(child: Process) -> tuple[list[dict[str, Any]], str]:
    """The life lines and the log of a process that is about to end."""
    texts = {}

    async def read(name: str, stream: Any) -> None:
        texts[name] = b"".join([chunk async for chunk in stream]).decode()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, "out", child.stdout)
        tasks.start_soon(read, "err", child.stderr)
    await child.wait()
    return [json.loads(line) for line in texts["out"].splitlines()], texts["err"]


async def finish(seat: Seated) -> None:
    await seat.finish()


async def die(seat: Seated) -> None:
    await seat.control.cut()


async def break_the_protocol(seat: Seated) -> None:
    await seat.data.say(m.DataOk())


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("then", "code", "outcome"),
    [(finish, 0, "FINISHED"), (die, 4, "LINK_LOST"), (break_the_protocol, 1, "PROTOCOL_FAULT")],
)
async def test_the_exit_code_says_how_it_ended(
    house: House, arbiter: ArbiterDouble, then: Callable[[Seated], Any], code: int, outcome: str
) -> None:
    async with process(house, arbiter, "--give-up-after", "0") as child:
        seat = await arbiter.seat()
        await then(seat)
        said, log = await output(child)
    assert child.returncode == code
    assert said[1] == {"event": "seated", "participant_id": "sceptic_0A1B2C3D"}
    assert (said[2]["event"], said[2]["outcome"]) == ("ended", outcome)
    assert log.splitlines()[-1].startswith("sceptic: ")
    assert "a-token-for-one-use" not in log
    assert "WARNING: STAND_IN is not set, which env passes on" in log


@pytest.mark.anyio
async def test_of_a_variable_that_is_passed_on_nothing_is_said(
    house: House, arbiter: ArbiterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "speak")
    async with process(house, arbiter) as child:
        await finish(await arbiter.seat())
        _, log = await output(child)
    assert child.returncode == 0
    assert "STAND_IN" not in log


@pytest.mark.anyio
async def test_a_refused_seat_is_exit_code_3_with_the_reason(house: House, arbiter: ArbiterDouble) -> None:
    async with process(house, arbiter) as child:
        await arbiter.refuse(ErrorCode.POLICY_DENIED, "the roster has no seat named sceptic")
        said, log = await output(child)
    assert child.returncode == 3
    assert [line["outcome"] for line in said] == ["REFUSED"]
    assert "sceptic: ERROR: sceptic may not take a seat" in log
    assert "the roster has no seat named sceptic" in log


@pytest.mark.anyio
async def test_a_mistake_is_exit_code_2_without_a_traceback(house: House, arbiter: ArbiterDouble) -> None:
    async with process(house, arbiter, "--name", "nobody") as child:
        said, log = await output(child)
    assert child.returncode == 2
    assert said == []
    assert log == "consilium: the council file has no participant named nobody\n  it has: sceptic\n"


@pytest.mark.anyio
async def test_sigterm_under_a_turn_leaves_in_good_order_and_leaves_no_client(
    house: House, arbiter: ArbiterDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN", "hang")
    async with process(house, arbiter) as child:
        seat = await arbiter.seat()
        await seat.assign(1)
        while not house.calls:  # noqa: ASYNC110 - another process writes it
            await anyio.sleep(0.02)
        child.send_signal(signal.SIGTERM)
        assert (await seat.control.hear(m.Unreg)).reason == "stopped by SIGTERM"
        said, _ = await output(child)
    assert child.returncode == 0
    assert said[-1]["outcome"] == "LEFT"
    assert not (await anyio.Path(f"/proc/{house.calls[0]['pid']}").exists())


@pytest.mark.anyio
async def test_a_seat_on_a_lifeline_leaves_when_its_parent_is_gone(
    house: House, arbiter: ArbiterDouble
) -> None:
    async with process(house, arbiter, "--lifeline") as child:
        seat = await arbiter.seat()
        assert child.stdin is not None
        await child.stdin.aclose()
        await seat.control.hear(m.Unreg)
        said, _ = await output(child)
    assert child.returncode == 0
    assert said[-1]["outcome"] == "LEFT"


@pytest.mark.anyio
async def test_a_seat_whose_output_nobody_reads_lives_on(house: House, arbiter: ArbiterDouble) -> None:
    async with process(house, arbiter) as child:
        assert child.stdout is not None
        await child.stdout.aclose()
        seat = await arbiter.seat()
        assert (await speech(seat, 1)).text == "Speech 1."
        await seat.finish()
        await child.wait()
    assert child.returncode in (0, 141)
