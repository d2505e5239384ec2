"""The seat's driver, between a scripted Arbiter over real TLS and a scripted client."""

from __future__ import annotations

import os
import signal
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream
from arbiter_double import HOST, TOPIC, ArbiterDouble, arbiter_double, context, start
from certificates import SERVER_AUTH
from cryptography import x509
from edge_kit import Council
from scripted_adapter import HANG, ScriptedAdapter

import wrapper.seat as seat_module
from consilium import messages as m
from consilium import tls
from consilium.errors import AdapterFault, ChannelError, ErrorCode, UserError
from consilium.tls import TlsStream, server_context
from wrapper import reconnection
from wrapper.events import End, Outcome
from wrapper.link import Address
from wrapper.seat import Plan, Seat

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

pytestmark = pytest.mark.anyio

WHO = "sceptic_0A1B2C3D"


@pytest.fixture(scope="module")
def council(tmp_path_factory: pytest.TempPathFactory) -> Council:
    return Council(tmp_path_factory.mktemp("council"))


@pytest.fixture
async def arbiter(council: Council) -> AsyncIterator[ArbiterDouble]:
    async with arbiter_double(council.server) as double:
        yield double


@pytest.fixture(autouse=True)
def _brief_farewells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls, "CLOSE_SECONDS", 0.05)


class Life:
    """A seat that is running, what it says of itself, and how it ended."""

    def __init__(self) -> None:
        self.said: list[Mapping[str, Any]] = []
        self.end: End | None = None

    @property
    def outcome(self) -> Outcome:
        assert self.end is not None, "the seat still lives"
        return self.end.outcome

    @property
    def reason(self) -> str:
        assert self.end is not None, "the seat still lives"
        return self.end.reason


@pytest.fixture
def running(arbiter: ArbiterDouble, council: Council) -> Any:
    @asynccontextmanager
    async def run(adapter: ScriptedAdapter, **changes: Any) -> AsyncIterator[Life]:
        fields: dict[str, Any] = {
            "reg": m.Reg(name="sceptic"),
            "system_prompt": "You take part in a debate.",
            "address": arbiter.address,
            "context": council.client,
            "patience": 2.0,
            "give_up_after": 0.0,
            "speech_bytes": 2000,
            "contribution_chars": 500,
            "lifeline": False,
        }
        life = Life()
        seat = Seat(Plan(**(fields | changes)), adapter, life.said.append)

        async def live() -> None:
            life.end = await seat.run()

        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(live)
                yield life

    return run


# --- §6: the flows -----------------------------------------------------------------------------------


async def test_a_normal_turn(arbiter: ArbiterDouble, running: Any) -> None:
    usage = m.Usage(tokens_in=11, tokens_out=3)
    adapter = ScriptedAdapter("Wrap it.\x1b[31m Always.\x1b[0m", usage=usage)
    async with running(adapter) as life:
        seat = await arbiter.seat()
        said = m.DeltaEntry(speaker="pragmatist_AAAAAAAA", role_label="Pragmatist", text="/quit\nRewrite it.")
        await seat.assign(1, said)
        assert await seat.data.hear(m.Speech) == m.Speech(turn_id=1, text="Wrap it. Always.", usage=usage)
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=1, speech=True)
        await seat.finish()
    assert life.outcome is Outcome.FINISHED
    (prompt,) = adapter.prompts
    assert TOPIC in prompt
    assert "pragmatist_AAAAAAAA" in prompt
    assert not any(line.startswith("/") for line in prompt.splitlines())
    assert adapter.system_prompts == ["You take part in a debate."]
    assert adapter.life == ["open", "close"]
    assert life.said[1:3] == [
        {"event": "seated", "participant_id": WHO},
        {"event": "speaking", "turn_id": 1, "phase": "OPENING"},
    ]
    assert [line["event"] for line in life.said] == ["registered", "seated", "speaking", "spoke", "ended"]
    assert life.said[-1] == {"event": "ended", "outcome": "FINISHED", "reason": "the debate ended: FINISHED"}


async def test_each_turn_has_its_own_nonce(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter("one", "two")
    said = m.DeltaEntry(speaker="pragmatist_AAAAAAAA", text="Rewrite it.")
    async with running(adapter):
        seat = await arbiter.seat()
        for turn_id in (1, 2):
            await seat.assign(turn_id, said)
            await seat.control.hear(m.TurnEnd)
        await seat.finish()
    first, second = adapter.prompts
    assert first != second
    assert len(first) == len(second)


async def test_an_explicit_pass_is_a_skip(arbiter: ArbiterDouble, running: Any) -> None:
    usage = m.Usage(tokens_in=60, tokens_out=1)
    async with running(ScriptedAdapter("PASS", usage=usage)):
        seat = await arbiter.seat()
        await seat.assign(1)
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=1, speech=False, usage=usage)
        assert await seat.data.hears_nothing()
        await seat.finish()


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (
            AdapterFault(m.Fault.STALLED, m.PromptSent.YES, "silent for\x1b[2J 120 s"),
            (m.Fault.STALLED, m.PromptSent.YES, "silent for 120 s"),
        ),
        (" \x1b[0m ", (m.Fault.EMPTY_ANSWER, m.PromptSent.YES, "the answer holds no text")),
        (RuntimeError("secret"), (m.Fault.INTERNAL, m.PromptSent.MAYBE, "RuntimeError")),
    ],
)
async def test_a_turn_that_the_client_does_not_produce_is_a_failed_turn(
    arbiter: ArbiterDouble,
    running: Any,
    step: str | Exception,
    expected: tuple[m.Fault, m.PromptSent, str],
) -> None:
    async with running(ScriptedAdapter(step, "better now")):
        seat = await arbiter.seat()
        await seat.assign(1)
        failed = await seat.control.hear(m.TurnFailed)
        assert (failed.fault, failed.prompt_sent, failed.detail) == expected
        await seat.control.say(m.SeatRecovery(mode=m.Recovery.KEEP))
        await seat.assign(2)
        assert (await seat.data.hear(m.Speech)).text == "better now"
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=2, speech=True)
        await seat.finish()


async def test_what_a_client_says_of_refusals_and_of_its_quota_goes_on_clean_and_bounded(
    arbiter: ArbiterDouble, running: Any, caplog: pytest.LogCaptureFixture
) -> None:
    hostile = ("Bash:\x1b[2J rm\u202e -rf\n/", "x" * 5000, *["again"] * 40)
    clean = ("Bash: rm -rf /", "x" * 299 + "…", *["again"] * 18)
    used_up = AdapterFault(
        m.Fault.QUOTA,
        m.PromptSent.YES,
        "used up",
        resets_at="3pm\x1b]0;x\x07\u2066 " + "y" * 500,
        refused=hostile,
    )
    async with running(ScriptedAdapter("I could not look.", "PASS", used_up, refused=hostile)):
        seat = await arbiter.seat()
        await seat.assign(1)
        await seat.data.hear(m.Speech)
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=1, speech=True, refused=clean)
        await seat.assign(2)
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=2, refused=clean)
        await seat.assign(3)
        failed = await seat.control.hear(m.TurnFailed)
        assert failed.refused == clean
        assert failed.resets_at == "3pm " + "y" * 195 + "…"
        await seat.finish()
    assert "the client was not allowed to do this: Bash: rm -rf /" in caplog.text


async def test_a_revoked_turn_is_killed_and_never_heard_of_again(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter(HANG, "the next one", dies_slowly=0.2)
    async with running(adapter):
        seat = await arbiter.seat()
        prompted = adapter.prompted
        await seat.assign(1)
        await prompted.wait()
        await seat.control.say(m.TurnRevoked(turn_id=1, reason="deadline_exceeded"))
        await seat.assign(2)  # acknowledged at once, while the old one is still dying
        assert "killed" not in adapter.life
        assert (await seat.data.hear(m.Speech)).turn_id == 2
        assert await seat.control.hear(m.TurnEnd) == m.TurnEnd(turn_id=2, speech=True)
        await seat.finish()
    assert adapter.life == ["open", "killed", "close"]


async def test_a_client_is_stopped_at_the_deadline_even_if_the_arbiter_says_nothing(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter(HANG)
    async with running(adapter):
        seat = await arbiter.seat()
        await seat.assign(1, deadline_ms=150)
        failed = await seat.control.hear(m.TurnFailed)
        assert (failed.fault, failed.prompt_sent) == (m.Fault.DEADLINE, m.PromptSent.MAYBE)
        await seat.finish()
    assert adapter.life == ["open", "killed", "close"]


async def test_either_order_of_turn_start_and_context_will_do(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter("one", "two")
    async with running(adapter):
        seat = await arbiter.seat()
        await seat.control.say(start(1))
        assert (await seat.control.hear(m.Ack)).turn_id == 1
        await anyio.sleep(0.05)
        assert adapter.prompts == []  # §13.5: nothing is fed before both are here
        await seat.data.say(context(1))
        assert (await seat.data.hear(m.Speech)).text == "one"
        await seat.control.hear(m.TurnEnd)
        await seat.data.say(context(2))
        await anyio.sleep(0.05)
        assert len(adapter.prompts) == 1
        await seat.control.say(start(2))
        assert (await seat.data.hear(m.Speech)).text == "two"
        await seat.finish_after(m.Ack, m.TurnEnd)


async def test_a_cold_restart_is_told_before_the_next_speech(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter("fresh eyes")
    lost = m.SystemEvent(event="PARTICIPANT_MEMORY_LOST", participant_id=WHO)
    async with running(adapter):
        seat = await arbiter.seat()
        await seat.control.say(m.SeatRecovery(mode=m.Recovery.COLD))
        assert await seat.data.hear(m.SystemEvent) == lost
        await seat.assign(1)
        assert (await seat.data.hear(m.Speech)).text == "fresh eyes"
        await seat.finish_after(m.TurnEnd)
    assert adapter.life == ["open", "restart", "close"]
    assert len(set(adapter.system_prompts)) == 1


async def test_a_cold_restart_that_fails_is_the_next_turns_fault(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter()
    async with running(adapter):
        seat = await arbiter.seat()
        adapter.refuses_to_start = AdapterFault(m.Fault.START_FAILED, m.PromptSent.NO, "no such program")
        await seat.control.say(m.SeatRecovery(mode=m.Recovery.COLD))
        await seat.data.hear(m.SystemEvent)
        await seat.assign(1)
        failed = await seat.control.hear(m.TurnFailed)
        assert failed.fault is m.Fault.START_FAILED
        assert failed.detail == "the chat could not be started cold: no such program"
        await seat.finish()


async def test_a_seat_without_its_former_memory_says_so(arbiter: ArbiterDouble, running: Any) -> None:
    async with running(ScriptedAdapter(memory_lost=True)):
        seat = await arbiter.seat()
        assert (await seat.data.hear(m.SystemEvent)).event == "PARTICIPANT_MEMORY_LOST"
        await seat.finish()


# --- hostile orderings -------------------------------------------------------------------------------


async def test_a_second_turn_over_an_open_one_never_runs_beside_it(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter(HANG, "the second", dies_slowly=0.1)
    async with running(adapter):
        seat = await arbiter.seat()
        prompted = adapter.prompted
        await seat.assign(1)
        await prompted.wait()
        await seat.assign(2)
        assert (await seat.data.hear(m.Speech)).turn_id == 2
        await seat.finish_after(m.TurnEnd)


@pytest.mark.parametrize(
    ("on_control", "on_data"),
    [
        ((start(1), start(1)), ()),
        ((start(2), start(1)), ()),
        ((m.TurnRevoked(turn_id=5, reason="?"),), ()),
        ((), (context(1), context(1))),
        ((), (m.DataOk(),)),
    ],
)
async def test_an_arbiter_that_breaks_the_protocol_loses_the_seat(
    arbiter: ArbiterDouble, running: Any, on_control: tuple[m.Message, ...], on_data: tuple[m.Message, ...]
) -> None:
    async with running(ScriptedAdapter()) as life:
        seat = await arbiter.seat()
        if on_control:
            await seat.control.say(*on_control)
        if on_data:
            await seat.data.say(*on_data)
    assert life.outcome is Outcome.PROTOCOL_FAULT


async def test_a_turn_that_starts_before_data_ok_arrives_is_taken(
    arbiter: ArbiterDouble, running: Any
) -> None:
    async with running(ScriptedAdapter("early bird")):
        control, _ = await arbiter.register()
        data = await arbiter.data()
        await data.hear(m.DataHello)
        await control.say(start(1))
        assert (await control.hear(m.Ack)).turn_id == 1
        await data.say(m.DataOk(), context(1))
        assert (await data.hear(m.Speech)).text == "early bird"
        await control.hear(m.TurnEnd)
        await control.say(m.DebateEnded(outcome=m.DebateState.FINISHED, turn_counter=1))


async def test_the_data_connection_waits_for_reg_ok(arbiter: ArbiterDouble, running: Any) -> None:
    async with running(ScriptedAdapter()) as life:
        control = await arbiter.control()
        await control.hear(m.Reg)
        with anyio.move_on_after(0.2) as waited:
            await arbiter.data()
        assert waited.cancelled_caught
        await control.say(m.DebateEnded(outcome=m.DebateState.ERROR, turn_counter=0))
    assert life.outcome is Outcome.PROTOCOL_FAULT


async def test_an_end_that_the_data_connection_announces_first_is_still_the_debates_end(
    arbiter: ArbiterDouble, running: Any
) -> None:
    async with running(ScriptedAdapter()) as life:
        seat = await arbiter.seat()
        await seat.data.close()
        await seat.finish()
    assert life.outcome is Outcome.FINISHED


# --- a link that is lost (§9.6, §17.6) ---------------------------------------------------------------

PATIENT = {"patience": 30.0, "give_up_after": 60.0}


@pytest.fixture
def _quick_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconnection, "RETURNING", reconnection.Pace(0.05, 0.1, 0.5))


@pytest.mark.usefixtures("_quick_returns")
async def test_a_seat_comes_back_with_its_chat_and_takes_its_next_turn(
    arbiter: ArbiterDouble, running: Any, caplog: pytest.LogCaptureFixture
) -> None:
    adapter = ScriptedAdapter("before", "after")
    async with running(adapter, **PATIENT) as life:
        seat = await arbiter.seat()
        await seat.assign(1)
        await seat.control.hear(m.TurnEnd)
        await seat.control.cut()
        seat = await arbiter.seat(debate_state=m.DebateState.PAUSED, session_id="session-2")
        assert seat.reg.name == "sceptic"
        assert await seat.data.hears_nothing()
        assert len(adapter.prompts) == 1, "it waits for the operator's word, and for its turn"
        await seat.control.say(m.SeatRecovery(mode=m.Recovery.KEEP))
        await seat.assign(2)
        assert (await seat.data.hear(m.Speech)).text == "after"
        await seat.finish_after(m.TurnEnd)
    assert life.outcome is Outcome.FINISHED
    assert adapter.life == ["open", "close"], "one chat, from beginning to end"
    events = [line["event"] for line in life.said]
    assert events == [
        *("registered", "seated", "speaking", "spoke", "waiting"),
        *("registered", "seated", "recovered", "speaking", "spoke", "ended"),
    ]
    waiting = life.said[4]
    assert waiting["reason"].startswith("the control connection is lost: ")
    assert 50 <= waiting["next_try_ms"] <= 100
    assert "(the next try is in 0.1 s)" in caplog.text


@pytest.mark.usefixtures("_quick_returns")
async def test_the_client_of_a_lost_turn_is_killed_at_once_and_never_heard_of_again(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter(HANG, "the next one", dies_slowly=0.3)
    async with running(adapter, **PATIENT):
        seat = await arbiter.seat()
        prompted = adapter.prompted
        await seat.assign(1)
        await prompted.wait()
        await seat.control.cut()
        seat = await arbiter.seat(session_id="session-2")
        await seat.assign(2)
        assert (await seat.data.hear(m.Speech)).turn_id == 2
        await seat.finish_after(m.TurnEnd)
    assert adapter.life == ["open", "killed", "close"]


@pytest.mark.usefixtures("_quick_returns")
async def test_a_seat_whose_old_session_lingers_tries_until_it_is_let_in(
    arbiter: ArbiterDouble, running: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(ScriptedAdapter(), **PATIENT):
        seat = await arbiter.seat()
        await seat.data.cut()
        for _ in range(4):
            await arbiter.refuse(ErrorCode.DUPLICATE_DISPLAY_NAME, "sceptic_0A1B2C3D is already registered")
        await (await arbiter.seat()).finish()
    assert caplog.text.count("already sits in this debate") == 1


async def test_a_seat_waits_for_an_arbiter_that_comes_up_later_and_says_so_once(
    council: Council, running: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with arbiter_double(council.server) as gone:
        address = gone.address
    async with running(ScriptedAdapter(), address=address, patience=30.0):
        await anyio.sleep(0.5)
        async with arbiter_double(council.server, (address.control_port, address.data_port)) as double:
            await (await double.seat()).finish()
    assert caplog.text.count("the next try is in") == 1


async def test_a_seat_that_finds_nobody_gives_up_in_its_time(council: Council, running: Any) -> None:
    async with arbiter_double(council.server) as gone:
        address = gone.address
    began = anyio.current_time()
    async with running(ScriptedAdapter(), address=address, patience=0.5) as life:
        pass
    assert anyio.current_time() - began < 5
    assert life.outcome is Outcome.LINK_LOST
    assert "connection refused; given up after 0.5 seconds. Nobody listens on that port" in life.reason


@pytest.mark.usefixtures("_quick_returns")
async def test_a_certificate_that_is_refused_on_the_way_back_ends_the_seat(
    arbiter: ArbiterDouble, council: Council, running: Any, tmp_path: Path
) -> None:
    stranger = Council(tmp_path)
    async with running(ScriptedAdapter(), **PATIENT) as life:
        seat = await arbiter.seat()
        arbiter.present(stranger.server)
        await seat.control.cut()
    assert life.outcome is Outcome.REFUSED
    assert "an authority that we do not trust" in life.reason
    assert "check the address" in life.reason


@pytest.mark.usefixtures("_quick_returns")
async def test_credentials_that_were_renewed_meanwhile_are_taken_up(
    arbiter: ArbiterDouble, council: Council, running: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The council changes its authority while the seat is away: the seat's folder has the new one by then."""
    other = Council(tmp_path)
    renewed: list[Any] = [council.client, UserError("key.pem is missing"), other.client]

    def renew() -> Any:
        now = renewed.pop(0) if len(renewed) > 1 else renewed[0]
        if isinstance(now, UserError):
            raise now
        return now

    async with running(ScriptedAdapter(), renew=renew, **PATIENT):
        await (await arbiter.seat()).control.cut()
        seat = await arbiter.seat()  # what was read before still holds
        arbiter.present(other.server)
        await seat.control.cut()
        await (await arbiter.seat()).finish()
    assert "the credentials cannot be read again: key.pem is missing" in caplog.text


@pytest.mark.parametrize("odd", ["a seat's certificate", "another host's"])
async def test_who_is_no_arbiter_is_asked_once(council: Council, running: Any, odd: str) -> None:
    """security: refused by us, so there is nothing to wait for, and nobody is hammered."""
    names = [x509.DNSName("arbiter.council.test")]
    poses = council.alice if odd.startswith("a ") else council.issue("h", usages=(SERVER_AUTH,), names=names)
    knocks = []

    async def pose(stream: SocketStream) -> None:
        knocks.append(stream)
        with suppress(ChannelError):
            await TlsStream.handshake(stream, server_context(poses), server_side=True)

    async with (
        await anyio.create_tcp_listener(local_host=HOST) as listener,
        anyio.create_task_group() as door,
    ):
        door.start_soon(listener.serve, pose)
        port = listener.extra(SocketAttribute.local_port)
        async with running(ScriptedAdapter(), address=Address(HOST, port, port), **PATIENT) as life:
            pass
        await anyio.sleep(1.0)
        door.cancel_scope.cancel()
    assert life.outcome is Outcome.REFUSED
    assert "the Arbiter's certificate was refused" in life.reason
    assert len(knocks) == 1


# --- how a seat ends ---------------------------------------------------------------------------------


async def test_a_refused_seat_says_why(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter()
    async with running(adapter) as life:
        await arbiter.refuse(ErrorCode.POLICY_DENIED, "the roster has no seat named sceptic")
    assert life.outcome is Outcome.REFUSED
    assert life.reason.startswith("sceptic may not take a seat")
    assert [line["event"] for line in life.said] == ["ended"]
    assert adapter.life == ["open", "close"]


async def test_a_dead_arbiter_ends_the_seat_and_its_client(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter(HANG)
    async with running(adapter) as life:
        seat = await arbiter.seat()
        prompted = adapter.prompted
        await seat.assign(1)
        await prompted.wait()
        await seat.control.cut()
    assert life.outcome is Outcome.LINK_LOST
    assert adapter.life == ["open", "killed", "close"]


async def test_a_silent_arbiter_is_given_up_after_three_intervals(
    arbiter: ArbiterDouble, running: Any
) -> None:
    async with running(ScriptedAdapter()) as life:
        await arbiter.seat(heartbeat_interval_ms=100)
    assert life.outcome is Outcome.LINK_LOST
    assert "silent for 0.3 seconds" in life.reason


async def test_a_busy_client_does_not_silence_the_heartbeat(arbiter: ArbiterDouble, running: Any) -> None:
    adapter = ScriptedAdapter(HANG)
    async with running(adapter):
        seat = await arbiter.seat()
        await seat.assign(1)
        for ts in range(3):
            await seat.control.say(m.Ping(ts=ts))
            assert (await seat.control.line()).message == m.Pong(ts=ts)
        await seat.control.say(m.DebateEnded(outcome=m.DebateState.STOPPED_BY_CAP, turn_counter=1))


async def test_a_client_that_cannot_be_used_never_connects(arbiter: ArbiterDouble, running: Any) -> None:
    broken = AdapterFault(m.Fault.START_FAILED, m.PromptSent.NO, "no such program")
    adapter = ScriptedAdapter(refuses_to_start=broken)
    async with running(adapter) as life:
        pass
    assert life.outcome is Outcome.CLIENT_FAILED
    assert life.reason == "the client cannot be used: no such program"
    assert adapter.life == ["open", "close"]


async def test_a_signal_makes_the_seat_leave_by_unreg_and_kills_its_client(
    arbiter: ArbiterDouble, running: Any
) -> None:
    adapter = ScriptedAdapter(HANG)
    async with running(adapter) as life:
        seat = await arbiter.seat()
        prompted = adapter.prompted
        await seat.assign(1)
        await prompted.wait()
        os.kill(os.getpid(), signal.SIGTERM)
        assert await seat.control.hear(m.Unreg) == m.Unreg(reason="stopped by SIGTERM")
        await seat.control.hears_the_end()
    assert life.outcome is Outcome.LEFT
    assert adapter.life == ["open", "killed", "close"]


async def test_an_orphaned_seat_leaves(
    arbiter: ArbiterDouble, running: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphaned = anyio.Event()
    monkeypatch.setattr(seat_module, "until_orphaned", orphaned.wait)
    async with running(ScriptedAdapter(), lifeline=True) as life:
        seat = await arbiter.seat()
        orphaned.set()
        assert (await seat.control.hear(m.Unreg)).reason == "whoever started the seat is gone"
    assert life.outcome is Outcome.LEFT


async def test_a_client_that_will_not_go_does_not_hold_the_seat(
    arbiter: ArbiterDouble, running: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(seat_module, "CLOSE_SECONDS", 0.1)
    adapter = ScriptedAdapter()
    monkeypatch.setattr(adapter, "close", anyio.sleep_forever)
    async with running(adapter) as life:
        await (await arbiter.seat()).finish()
    assert life.outcome is Outcome.FINISHED
    assert "did not go within 0.1 seconds" in caplog.text


async def test_no_text_of_a_peer_reaches_the_log_as_it_is(
    arbiter: ArbiterDouble, running: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "consilium.seat")
    async with running(ScriptedAdapter()):
        seat = await arbiter.seat()
        await seat.control.say(m.DebatePaused(reason="one\x1b]52;c;AAAA\x07\nFORGED LINE"))
        await seat.finish()
    (line,) = [r.getMessage() for r in caplog.records if "paused" in r.getMessage()]
    assert line == "the debate is paused: one FORGED LINE"
