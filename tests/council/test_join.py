"""`consilium join`: from a bundle to a seat, and every refusal in words with the next step."""

from __future__ import annotations

import json
import os
import socket
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pexpect
import pytest
from anyio.from_thread import start_blocking_portal
from arbiter_double import HOST, ArbiterDouble, arbiter_double
from certificates import DAY, SERVER_AUTH
from cryptography import x509
from edge_kit import Council
from hall import STANDIN

from consilium import messages as m
from consilium import tls
from consilium.errors import ErrorCode, UserError
from consilium.tls import server_context
from council.join import main
from council.join_check import names_of
from wrapper.telling import Teller

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    Script = Callable[[ArbiterDouble], Awaitable[object]]


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guest's machine: the client is on PATH, state goes to a folder of the test."""
    client = tmp_path / "bin" / "llm"
    client.parent.mkdir()
    client.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {STANDIN} "$@"\n')
    client.chmod(0o755)
    monkeypatch.setenv("PATH", f"{client.parent}:/usr/bin:/bin")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("CONSILIUM_MODEL_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)


@contextmanager
def somewhere(context: Any, script: Script) -> Iterator[ArbiterDouble]:
    """An Arbiter's double that does what ``script`` says, beside this thread."""
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(arbiter_double(context)) as it:
        done = portal.start_task_soon(script, it)
        yield it
        done.result(20)


async def nothing(_: ArbiterDouble) -> None:
    """Whoever comes finds the door, and nobody behind it."""


def words(council: Council, arbiter: ArbiterDouble | None = None, *more: str) -> list[str]:
    bundle = str(council.alice.cert.parent)
    ports = (1, 1) if arbiter is None else (arbiter.address.control_port, arbiter.address.data_port)
    return [
        *(HOST, "--bundle", bundle, "--name", "guest", "--preset", "llm", "--model", "scripted"),
        *("--control-port", str(ports[0]), "--data-port", str(ports[1])),
        *more,
    ]


def lines(text: str) -> list[str]:
    """What was said, without the time."""
    return [line[9:] if line[:2].isdigit() else line for line in text.splitlines()]


# --- a whole life ------------------------------------------------------------------------------------


async def one_turn(arbiter: ArbiterDouble) -> None:
    seat = await arbiter.seat(speech_bytes=4000)
    assert seat.reg.disconnect_policy is m.DisconnectPolicy.KEEP_ALIVE
    assert not seat.reg.required
    await seat.assign(1)
    await seat.data.hear(m.Speech)
    await seat.finish_after(m.TurnEnd)


def test_a_guest_registers_speaks_and_is_told_how_it_ended(
    council: Council, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with somewhere(council.server, one_turn) as arbiter:
        assert main(words(council, arbiter, "--role", "sceptic")) == 0
    said = lines(capsys.readouterr().out)
    assert said[0].startswith("ok  bundle: seat of council.local, valid for another ")
    assert said[1] == "ok  client: llm 0.36, model scripted"
    assert said[2] == "registered as guest_0A1B2C3D; the debate is WAITING_QUORUM"
    assert said[4:6] == ["seated, and waiting for the others", "turn 1 (OPENING): speaking"]
    assert said[6].startswith("turn 1: spoke ")
    assert said[7:] == ["the debate ended: FINISHED"]
    kept = tmp_path / "state" / "consilium" / f"{HOST}-{arbiter.address.control_port}" / "guest"
    assert (kept / "chat.json").exists()


async def a_turn_for_a_person(arbiter: ArbiterDouble) -> None:
    seat = await arbiter.seat()
    assert (seat.reg.meta.brand, seat.reg.meta.isolation) == ("human", None)
    await seat.control.hear(m.StatusRequest)
    await seat.assign(1)
    assert (await seat.data.hear(m.Speech)).text == "I am here myself."
    await seat.finish_after(m.TurnEnd)


def test_a_guest_may_be_a_person(council: Council, tmp_path: Path) -> None:
    with somewhere(council.server, a_turn_for_a_person) as arbiter:
        place = words(council, arbiter, "--state", str(tmp_path / "mine"))
        argv = ["human" if word == "llm" else word for word in place]
        at = argv.index("--model")
        person = pexpect.spawn(
            sys.executable,
            ["-m", "consilium", "join", *argv[:at], *argv[at + 2 :]],
            env={**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
            dimensions=(40, 100),
            timeout=20,
            encoding="utf-8",
        )
        try:
            person.expect_exact("ok  a person: you, at this terminal")
            person.expect_exact("you are seated as guest_0A1B2C3D")
            person.expect_exact("you> ")
            person.send("I am here myself.\r")
            person.expect_exact("your 4 words are sent")
            person.expect_exact("the debate ended: FINISHED")
            person.expect(pexpect.EOF)
            assert person.wait() == 0
        finally:
            person.close(force=True)


def test_a_chat_that_is_there_is_gone_on_with_unless_a_new_one_is_wanted(
    council: Council, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    state = tmp_path / "mine"
    for more, goes_on in (((), False), ((), True), (("--new-chat",), False)):
        with somewhere(council.server, one_turn) as arbiter:
            assert main(words(council, arbiter, "--state", str(state), *more)) == 0
        assert (f"goes on with the one in {state}" in capsys.readouterr().out) is goes_on
    assert len(list(tmp_path.glob("mine*"))) == 2, "the old chat is put aside, not thrown away"


def test_a_chat_of_another_debate_is_not_brought_along(
    council: Council, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def debate(name: str) -> Script:
        async def hold(arbiter: ArbiterDouble) -> None:
            seat = await arbiter.seat(debate_id=name)
            await seat.assign(1)
            await seat.finish_after(m.TurnEnd)

        return hold

    async def hear_unreg(arbiter: ArbiterDouble) -> None:
        control, _ = await arbiter.register(debate_id="two")
        await control.hear(m.Unreg)

    state = ("--state", str(tmp_path / "mine"))
    for script, more, code in (
        (debate("one"), (), 0),
        (debate("one"), (), 0),
        (hear_unreg, (), 3),
        (debate("two"), ("--new-chat",), 0),
    ):
        with somewhere(council.server, script) as arbiter:
            assert main(words(council, arbiter, *state, *more)) == code
    assert "the chat of this seat is of one. Begin a new chat" in capsys.readouterr().err


def test_a_program_reads_json_lines(council: Council, capsys: pytest.CaptureFixture[str]) -> None:
    with somewhere(council.server, one_turn) as arbiter:
        assert main(words(council, arbiter, "--json")) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["event"] for line in said] == [
        *("found", "found", "registered", "seated", "speaking", "spoke", "ended"),
    ]


def test_a_point_of_view_of_ones_own_is_taken_from_a_file(council: Council, tmp_path: Path) -> None:
    file = tmp_path / "view.md"
    file.write_text("Count what it costs.\n")

    async def refuse(arbiter: ArbiterDouble) -> None:
        control = await arbiter.control()
        reg = await control.hear(m.Reg)
        assert (reg.meta.role_label, bool(reg.meta.role_prompt_hash)) == ("Accountant", True)
        await control.say(m.Error(code=ErrorCode.INVALID_STATE, message="the debate is FINISHED"))

    with somewhere(council.server, refuse) as arbiter:
        more = ("--role-prompt-file", str(file), "--role-label", "Accountant")
        assert main(words(council, arbiter, *more)) == 3


# --- refusals at the Arbiter -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "message", "told"),
    [
        (ErrorCode.POLICY_DENIED, "the roster has no seat named guest", "Choose a name that both of them"),
        (ErrorCode.INVALID_STATE, "the debate is FINISHED", "it is over, or it has started"),
    ],
)
def test_a_refusal_is_said_in_words(
    council: Council, capsys: pytest.CaptureFixture[str], code: ErrorCode, message: str, told: str
) -> None:
    async def refuse(arbiter: ArbiterDouble) -> None:
        await arbiter.refuse(code, message)

    with somewhere(council.server, refuse) as arbiter:
        assert main(words(council, arbiter)) == 3
    said = capsys.readouterr().err
    assert told in said
    assert message in said


def test_a_second_guest_of_the_same_name_is_told_once_and_waits(
    council: Council, capsys: pytest.CaptureFixture[str]
) -> None:
    async def refuse(arbiter: ArbiterDouble) -> None:
        for _ in range(3):
            await arbiter.refuse(ErrorCode.DUPLICATE_DISPLAY_NAME, "guest_0A1B2C3D is already registered")
        await (await arbiter.seat()).finish()

    with somewhere(council.server, refuse) as arbiter:
        assert main(words(council, arbiter)) == 0
    assert capsys.readouterr().err.count("guest already sits in this debate") == 1


def test_an_arbiter_of_another_authority_is_refused_with_what_to_do(
    council: Council, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with somewhere(Council(tmp_path / "other").server, nothing) as arbiter:
        assert main(words(council, arbiter)) == 3
    said = capsys.readouterr().err
    assert "an authority that we do not trust issued it" in said
    assert "the council has a new authority: check the address" in said


def test_an_arbiter_of_another_name_is_said_with_the_names_that_it_has(
    council: Council, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = council.issue("there", usages=(SERVER_AUTH,), names=[x509.DNSName("arbiter.council.test")])
    with somewhere(server_context(elsewhere), nothing) as arbiter:
        assert main(words(council, arbiter)) == 3
        assert main(words(council, arbiter, "--json")) == 3
    out, err = capsys.readouterr()
    assert "--server-name" in err
    assert "It has: arbiter.council.test" in err
    assert "It has: arbiter.council.test" in json.loads(out.splitlines()[-1])["hint"]


def test_nobody_there_is_exit_code_4(council: Council, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(council, None, "--connect-timeout", "0")) == 4
    assert "is the Arbiter running, and open to other machines?" in capsys.readouterr().err


# --- the check ---------------------------------------------------------------------------------------


async def answer(arbiter: ArbiterDouble) -> None:
    control = await arbiter.control()
    line = await control.line()
    assert isinstance(line.message, m.Ping)
    await control.say(m.Pong(ts=line.message.ts), in_reply_to=line.msg_id)
    await arbiter.data()


def test_a_check_takes_no_seat(council: Council, capsys: pytest.CaptureFixture[str]) -> None:
    with somewhere(council.server, answer) as arbiter:
        assert main(words(council, arbiter, "--check")) == 0
    said = lines(capsys.readouterr().out)
    assert [line[:2] for line in said] == ["ok"] * 5
    assert said[2].startswith(f"ok  control: the Arbiter at {HOST}, port ")
    assert said[3].startswith("ok  data: the Arbiter listens at ")


async def refuse_control(arbiter: ArbiterDouble) -> None:
    control = await arbiter.control()
    await control.say(m.Error(code=ErrorCode.POLICY_DENIED, message="a certificate of role operator"))


async def refuse_data(arbiter: ArbiterDouble) -> None:
    control = await arbiter.control()
    await control.say(m.Pong(ts=0))
    await (await arbiter.data()).say(m.Error(code=ErrorCode.RATE_LIMITED, message="too many"))


async def hang_up(arbiter: ArbiterDouble) -> None:
    await (await arbiter.control()).close()


async def say_nonsense(arbiter: ArbiterDouble) -> None:
    await (await arbiter.control()).say(m.DebateResumed(turn_counter=1))


@pytest.mark.parametrize(
    ("script", "told"),
    [
        (refuse_control, "a certificate of role operator"),
        (refuse_data, "came too often"),
        (hang_up, "Something that is no Arbiter"),
        (say_nonsense, "Something that is no Arbiter"),
    ],
)
def test_a_check_says_what_does_not_hold(
    council: Council, capsys: pytest.CaptureFixture[str], script: Script, told: str
) -> None:
    with somewhere(council.server, script) as arbiter:
        assert main(words(council, arbiter, "--check")) == 1
    assert told in capsys.readouterr().out


def test_a_check_of_a_certificate_that_the_arbiter_refuses_says_how_long_ours_holds(
    council: Council, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """By this machine's clock it is good: then the Arbiter's clock, or its list, may be at fault."""
    late = Council(tmp_path / "late")
    late.alice.ca.write_bytes(council.alice.ca.read_bytes())
    with somewhere(council.server, nothing) as arbiter:
        assert main(words(late, arbiter, "--check")) == 1
    said = capsys.readouterr().out
    assert "unknown CA" in said
    assert "Ask whoever runs the council for a bundle of its present authority" in said


@pytest.mark.parametrize(("data", "told"), [(b"HTTP/1.1 400 Bad\r\n\r\n", "something else"), (b"", "")])
def test_what_is_no_tls_is_said(
    council: Council, capsys: pytest.CaptureFixture[str], data: bytes, told: str
) -> None:
    async def serve(stream: Any) -> None:
        async with stream:
            if data:
                await stream.send(data)
                await stream.receive()

    async def listen(send: Any) -> None:
        async with await anyio.create_tcp_listener(local_host=HOST) as listener:
            send(listener.extra(anyio.abc.SocketAttribute.local_port))
            await listener.serve(serve)

    found: list[int] = []
    with start_blocking_portal() as portal:
        task = portal.start_task_soon(listen, found.append)
        while not found:
            pass
        more = ("--check", "--control-port", str(found[0]))
        assert main(words(council, None, *more)) == 1
        task.cancel()
    assert told in capsys.readouterr().out


# --- what is wrong before anybody is asked -----------------------------------------------------------


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        ({"start": -40 * DAY}, r"expired: expired 10 days ago"),
        ({"start": 2 * DAY}, r"not valid yet: not valid for another 4\d hours"),
        ({"usages": (SERVER_AUTH,)}, "takes no seat: the extended key usage is serverAuth"),
    ],
)
def test_a_bundle_that_no_arbiter_would_take_is_said_at_once(
    council: Council, odd: dict[str, Any], told: str, tmp_path: Path
) -> None:
    bundle = Council(tmp_path / "odd").issue("bad", **odd).cert.parent
    with pytest.raises(UserError, match=told) as refused:
        main(words(council, None, "--bundle", str(bundle)))
    assert "new bundle" in refused.value.hint


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        (("https://council.example",), "is not a host"),
        (("council.example:9998",), "is not a host"),
        (("::1", "--name", "Guest!"), "name: must be 1 to 64 of a-z, 0-9 and _"),
        (("h", "--role", "nobody"), "there is no role called 'nobody'"),
        (("h", "--role-prompt-file", "/nowhere"), "cannot be read as text"),
        (("h", "--role-prompt-file", "/dev/null"), "must hold 1 to 20000 characters"),
        (("h", "--preset", "lllm"), "there is no preset called 'lllm'"),
        (("h", "--bundle", "/nowhere"), "cannot be read"),
    ],
)
def test_a_mistake_is_one_sentence(council: Council, argv: tuple[str, ...], told: str) -> None:
    with pytest.raises(UserError, match=told):
        main([argv[0], *words(council)[1:], *argv[1:]])


def test_a_chat_that_cannot_be_put_aside_is_said(
    council: Council, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(UserError, match="cannot be put aside: Permission denied"):
        main(words(council, None, "--state", str(tmp_path), "--new-chat"))


def test_state_is_kept_at_home_where_nothing_else_is_said(
    council: Council, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with socket.create_server((HOST, 0)) as probe:
        port = probe.getsockname()[1]
    more = ("--control-port", str(port), "--connect-timeout", "0")
    assert main(words(council, None, *more)) == 4
    assert (tmp_path / "home" / ".local" / "state" / "consilium" / f"{HOST}-{port}" / "guest").is_dir()


# --- what is said ------------------------------------------------------------------------------------


def test_lines_for_a_person() -> None:
    teller = Teller()

    def told(event: str, **facts: Any) -> list[str]:
        return teller.told({"event": event, **facts})

    who = {"participant_id": "guest_0A1B2C3D", "topic": "Wrap {it}?", "phase": "CLOSING"}
    assert told("registered", **who, debate_state="PAUSED") == [
        "registered as guest_0A1B2C3D; the debate is PAUSED",
        "topic: Wrap {it}?",
    ]
    assert told("seated") == ["seated, and waiting for the operator to resume the debate"]
    assert told("recovered", mode="keep") == ["the operator has it go on with its chat"]
    assert told("recovered", mode="cold") == ["the operator has it begin a new chat"]
    assert told("resumed") == ["the debate goes on"]
    assert told("registered", **who, debate_state="RUNNING")
    assert told("seated") == ["seated, and waiting for its turn"]
    assert told("speaking", turn_id=7, phase="CLOSING") == ["turn 7 (CLOSING): speaking"]
    assert told("spoke", turn_id=7, words=1212) == ["turn 7: spoke 1,212 words"]
    assert told("passed", turn_id=7) == ["turn 7: passed"]
    assert told("paused", reason="a seat cannot go on", missing=["a_1", "b_2"]) == [
        "paused: a seat cannot go on; missing: a_1, b_2"
    ]
    assert told("paused", reason="operator", missing=[], resets_at="") == ["paused: operator"]
    assert told("paused", reason="quota_exhausted", missing=["a_1"], resets_at="3pm") == [
        "paused: quota_exhausted; missing: a_1; the quota comes back: 3pm"
    ]
    assert told("failed", turn_id=7, reason="stalled") == [], "the log says it"


def test_a_certificate_without_names_has_none(council: Council) -> None:
    assert names_of(council.issue("plain", names=[]).leaf()) == []
