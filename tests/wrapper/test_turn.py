"""The seat machine, read as dialogue: what happens, and what the seat then does."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from statuses import status

from consilium import messages as m
from consilium.errors import ErrorCode, Objection
from wrapper import events as ev
from wrapper.events import CancelTurn, End, Note, Outcome, RestartChat, RunTurn, SendControl, SendData
from wrapper.reconnection import GOOD_WHILE, RETURNING, Knock, Reconnection
from wrapper.turn import SeatMachine, SeatState

if TYPE_CHECKING:
    from wrapper.events import Effect, SeatEvent

WHO = "sceptic_0A1B2C3D"
REG = m.Reg(name="sceptic", required=True, disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE)
LIMIT = 300


def reg_ok(**changes: Any) -> m.RegOk:
    fields: dict[str, Any] = {
        "session_id": "s-1",
        "participant_id": WHO,
        "debate_state": m.DebateState.WAITING_QUORUM,
        "topic": "Wrap it or rewrite it?",
        "phase": m.Phase.OPENING,
        "turn_counter": 0,
        "required": True,
        "disconnect_policy": m.DisconnectPolicy.KEEP_ALIVE,
        "data_token": "once",
        "heartbeat_interval_ms": 15_000,
    }
    return m.RegOk(**(fields | changes))


def start(turn_id: int, deadline_ms: int = 60_000) -> ev.FromControl:
    return ev.FromControl(m.TurnStart(turn_id=turn_id, phase=m.Phase.OPENING, deadline_ms=deadline_ms))


def context_message(turn_id: int) -> m.Context:
    return m.Context(turn_id=turn_id, phase=m.Phase.OPENING, topic="Wrap it or rewrite it?", delta=())


def context(turn_id: int) -> ev.FromData:
    return ev.FromData(context_message(turn_id))


def revoke(turn_id: int) -> ev.FromControl:
    return ev.FromControl(m.TurnRevoked(turn_id=turn_id, reason="deadline_exceeded"))


def recover(mode: m.Recovery) -> ev.FromControl:
    return ev.FromControl(m.SeatRecovery(mode=cast("Any", mode)))


def ended(outcome: m.DebateState, cap: str | None = None) -> ev.FromControl:
    return ev.FromControl(m.DebateEnded(outcome=cast("Any", outcome), cap=cap, turn_counter=7))


def error(code: str, message: str = "no") -> m.Error:
    return m.Error(code=code, message=message)


def failed(turn_id: int, fault: m.Fault = m.Fault.STALLED, detail: str = "nothing more came") -> ev.Failed:
    return ev.Failed(turn_id, fault, m.PromptSent.YES, detail)


COLD = recover(m.Recovery.COLD)
KEEP = recover(m.Recovery.KEEP)
DATA_OK = ev.FromData(m.DataOk())


class Seat:
    """A machine and a clock. Notes and news are kept apart: they are said, not done.

    It gives up at once, unless it is told for how long to try.
    """

    def __init__(self, patience: float = 0.0, give_up_after: float = 0.0) -> None:
        reconnection = Reconnection(patience=patience, give_up_after=give_up_after)
        self.machine = SeatMachine(REG, speech_bytes=LIMIT, reconnection=reconnection)
        self.now = 0.0
        self.notes: list[Note] = []
        self.news: list[ev.Tell] = []

    def on(self, *happened: SeatEvent, at: float | None = None) -> list[Effect]:
        self.now = self.now if at is None else at
        effects: list[Effect] = []
        for event in happened:
            effects += self.machine.handle(event, self.now)
        self.notes += [effect for effect in effects if isinstance(effect, Note)]
        self.news += [effect for effect in effects if isinstance(effect, ev.Tell)]
        return [effect for effect in effects if not isinstance(effect, Note | ev.Tell)]

    def told(self) -> list[str]:
        """What was told since the last call, by name."""
        names = [tell.news.value for tell in self.news]
        self.news.clear()
        return names


PATH: dict[SeatState, tuple[SeatEvent, ...]] = {
    SeatState.OFFLINE: (),
    SeatState.REGISTERING: (ev.ControlOpened(),),
    SeatState.REGISTERED: (ev.ControlOpened(), ev.FromControl(reg_ok())),
    SeatState.BINDING: (ev.ControlOpened(), ev.FromControl(reg_ok()), ev.DataOpened()),
    SeatState.SEATED: (ev.ControlOpened(), ev.FromControl(reg_ok()), ev.DataOpened(), DATA_OK),
    SeatState.ENDED: (ev.LinkLost("gone"),),
}


def seat_in(state: SeatState, *, memory_lost: bool = False, patience: float = 0.0) -> Seat:
    seat = Seat(patience, patience)
    seat.on(ev.ChatOpened(memory_lost), *PATH[state])
    assert seat.machine.state is state
    seat.notes.clear()
    seat.news.clear()
    return seat


@pytest.fixture
def seat() -> Seat:
    return seat_in(SeatState.SEATED)


def end_of(effects: list[Effect]) -> End:
    assert isinstance(effects[-1], End)
    return effects[-1]


ACK = {n: SendControl(m.Ack(turn_id=n)) for n in range(1, 10)}
STATUS = status()
LOST = SendData(m.SystemEvent(event="PARTICIPANT_MEMORY_LOST", participant_id=WHO))


# --- registration ------------------------------------------------------------------------------------


def test_a_seat_registers_binds_and_sits_down_in_that_order() -> None:
    seat = Seat()
    assert seat.on(ev.ChatOpened(memory_lost=False)) == [ev.OpenControl(Knock(0.0, 0.0, 1.0))]
    assert seat.on(ev.ControlOpened()) == [SendControl(REG)]
    assert seat.on(ev.FromControl(reg_ok())) == [ev.OpenData(heartbeat=15.0)]
    assert seat.on(ev.DataOpened()) == [SendData(m.DataHello(session_id="s-1", data_token="once"))]
    assert seat.on(DATA_OK) == []
    assert seat.machine.state is SeatState.SEATED
    assert seat.told() == ["registered", "seated"]


def test_a_client_that_cannot_be_used_takes_no_seat() -> None:
    assert Seat().on(ev.ChatFailed("no such program")) == [
        End(Outcome.CLIENT_FAILED, "the client cannot be used: no such program")
    ]


def test_less_than_was_asked_for_is_accepted_and_said() -> None:
    seat = seat_in(SeatState.REGISTERING)
    effects = seat.on(ev.FromControl(reg_ok(required=False, disconnect_policy=m.DisconnectPolicy.DROP)))
    assert effects == [ev.OpenData(15.0)]
    assert "granted less than was asked for (required: False, disconnect_policy: drop)" in seat.notes[-1].text


@pytest.mark.parametrize(
    ("asked", "granted", "weight", "said"),
    [
        ((True, "keep_alive"), (True, "keep_alive"), None, ""),
        ((True, "drop"), (False, "drop"), ev.Weight.WARNING, "granted less"),
        ((True, "keep_alive"), (True, "drop"), ev.Weight.WARNING, "granted less"),
        ((False, "drop"), (True, "drop"), ev.Weight.INFO, "gave more"),
        ((False, "drop"), (False, "keep_alive"), ev.Weight.INFO, "gave more"),
        ((True, "drop"), (False, "keep_alive"), ev.Weight.WARNING, "granted less"),
    ],
)
def test_only_less_than_was_asked_for_is_a_warning(
    asked: tuple[bool, str], granted: tuple[bool, str], weight: ev.Weight | None, said: str
) -> None:
    policy = m.DisconnectPolicy
    reg = m.Reg(name="ada", required=asked[0], disconnect_policy=policy(asked[1]))
    once = Reconnection(patience=0, give_up_after=0)
    machine = SeatMachine(reg, speech_bytes=1000, reconnection=once)
    machine.state = SeatState.REGISTERING
    reply = reg_ok(required=granted[0], disconnect_policy=policy(granted[1]))
    _registered, *more = [note for note in machine.handle(ev.FromControl(reply), 0) if isinstance(note, Note)]
    assert [note.weight for note in more] == [weight] * bool(weight)
    assert all(said in note.text for note in more)


@pytest.mark.parametrize("seen", [None, 0, 812])
def test_a_failed_turn_says_how_much_of_an_answer_had_come(seen: int | None) -> None:
    seat = seat_in(SeatState.SEATED)
    seat.on(start(7), context(7))
    effects = seat.on(ev.Failed(7, m.Fault.STALLED, m.PromptSent.MAYBE, "silent", seen))
    (failed,) = [effect.message for effect in effects if isinstance(effect, SendControl)]
    assert isinstance(failed, m.TurnFailed)
    assert failed.partial_bytes == seen


def test_a_quota_that_is_used_up_is_reported_with_when_it_comes_back() -> None:
    seat = seat_in(SeatState.SEATED)
    seat.on(start(7), context(7))
    used_up = ev.Failed(7, m.Fault.QUOTA, m.PromptSent.YES, "exit 1", resets_at="3pm (Europe/Rome)")
    effects = seat.on(used_up)
    (failed,) = [effect.message for effect in effects if isinstance(effect, SendControl)]
    assert isinstance(failed, m.TurnFailed)
    assert failed.resets_at == "3pm (Europe/Rome)"
    assert seat.notes[-1].text == ("turn 7 failed: quota: exit 1 (its quota comes back: 3pm (Europe/Rome))")


REFUSED = ("Bash: touch /etc/x", "Read: /etc/shadow")


@pytest.mark.parametrize(
    "event",
    [
        ev.Answered(7, "I could not look.", None, REFUSED),
        ev.Answered(7, "\n", None, REFUSED),
        ev.Passed(7, None, REFUSED),
        ev.Failed(7, m.Fault.EMPTY_ANSWER, m.PromptSent.YES, "empty", refused=REFUSED),
    ],
)
def test_what_the_client_was_not_allowed_to_do_goes_with_the_end_of_its_turn(event: ev.AdapterEvent) -> None:
    seat = seat_in(SeatState.SEATED)
    seat.on(start(7), context(7))
    (end,) = [effect.message for effect in seat.on(event) if isinstance(effect, SendControl)]
    assert isinstance(end, m.TurnEnd | m.TurnFailed)
    assert end.refused == REFUSED


def test_a_grant_as_asked_is_not_worth_a_warning() -> None:
    seat = seat_in(SeatState.REGISTERING)
    seat.on(ev.FromControl(reg_ok()))
    assert [note.weight for note in seat.notes] == [ev.Weight.INFO]


def test_a_heartbeat_of_nothing_is_a_fault_of_the_arbiter() -> None:
    seat = seat_in(SeatState.REGISTERING)
    end = end_of(seat.on(ev.FromControl(reg_ok(heartbeat_interval_ms=0))))
    assert end.outcome is Outcome.PROTOCOL_FAULT
    assert "heartbeat of 0 ms" in end.reason


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (ErrorCode.POLICY_DENIED, "its certificate does not allow this name"),
        (ErrorCode.DUPLICATE_DISPLAY_NAME, "already sits in this debate"),
        (ErrorCode.AT_CAPACITY, "no room for sceptic now"),
        (ErrorCode.INVALID_STATE, "cold_entry: false"),
        (ErrorCode.PROFILE_CAP, "profile does not allow"),
        (ErrorCode.PROTOCOL_VERSION_UNSUPPORTED, "does not speak version 4"),
        (ErrorCode.RATE_LIMITED, "Wait a minute"),
        (ErrorCode.CERTIFICATE_EXPIRED, "the certificate of sceptic has expired"),
        (ErrorCode.TIMEOUT, "took too long"),
        (ErrorCode.NOT_REGISTERED, "does not know this session of sceptic"),
        ("SOMETHING_NEW", "refuses sceptic"),
    ],
)
def test_a_refused_registration_ends_the_seat_in_words(code: str, words: str) -> None:
    seat = seat_in(SeatState.REGISTERING)
    effects = seat.on(ev.FromControl(error(code, "as the Arbiter puts it")))
    assert end_of(effects).outcome is Outcome.REFUSED
    assert words in end_of(effects).reason
    assert f"({code}: as the Arbiter puts it)" in end_of(effects).reason
    assert len(effects) == 1


def test_a_refused_token_ends_the_seat() -> None:
    end = end_of(seat_in(SeatState.BINDING).on(ev.FromData(error(ErrorCode.TOKEN_REFUSED))))
    assert end.outcome is Outcome.REFUSED
    assert "its token was spent or too old" in end.reason


# --- the turn (§6) -----------------------------------------------------------------------------------


def test_a_turn_is_acknowledged_run_spoken_and_ended(seat: Seat) -> None:
    assert seat.on(start(1, deadline_ms=120_000), at=10.0) == [ACK[1]]
    assert seat.on(context(1), at=11.0) == [RunTurn(context_message(1), deadline=130.0)]
    usage = m.Usage(tokens_in=10, tokens_out=5)
    assert seat.on(ev.Answered(1, "Wrap it.", usage)) == [
        SendData(m.Speech(turn_id=1, text="Wrap it.", usage=usage)),
        SendControl(m.TurnEnd(turn_id=1, speech=True)),
    ]


def test_a_context_that_overtakes_its_turn_start_waits_for_it(seat: Seat) -> None:
    assert seat.on(context(1)) == []
    assert seat.on(start(1), at=5.0) == [ACK[1], RunTurn(context_message(1), deadline=65.0)]


def test_a_turn_start_that_overtakes_data_ok_is_acknowledged_and_waits_for_its_context() -> None:
    seat = seat_in(SeatState.BINDING)
    assert seat.on(start(1)) == [ACK[1]]
    assert seat.on(DATA_OK) == []
    assert seat.on(context(1)) == [RunTurn(context_message(1), deadline=60.0)]


def test_contexts_that_ran_ahead_find_their_own_turns(seat: Seat) -> None:
    seat.on(context(1), context(2))
    assert seat.on(start(1)) == [ACK[1]]  # the control channel still has the revocation of turn 1 to bring
    assert seat.on(revoke(1)) == []
    assert seat.on(start(2)) == [ACK[2], RunTurn(context_message(2), deadline=60.0)]


def test_an_early_context_of_a_turn_that_never_starts_is_forgotten(seat: Seat) -> None:
    seat.on(context(1))
    assert seat.on(start(2)) == [ACK[2]]
    assert seat.on(context(2)) == [RunTurn(context_message(2), deadline=60.0)]


def test_a_pass_is_a_turn_end_and_nothing_else(seat: Seat) -> None:
    seat.on(start(1), context(1))
    usage = m.Usage(tokens_in=60, tokens_out=1)
    assert seat.on(ev.Passed(1, usage)) == [SendControl(m.TurnEnd(turn_id=1, speech=False, usage=usage))]


def test_a_fault_is_reported_and_is_never_a_skip(seat: Seat) -> None:
    seat.on(start(1), context(1))
    assert seat.on(failed(1)) == [
        SendControl(
            m.TurnFailed(
                turn_id=1,
                fault=m.Fault.STALLED,
                prompt_sent=m.PromptSent.YES,
                detail="nothing more came",
            )
        )
    ]


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_an_answer_without_text_is_a_fault(seat: Seat, text: str) -> None:
    seat.on(start(1), context(1))
    (effect,) = seat.on(ev.Answered(1, text))
    assert isinstance(effect, SendControl)
    assert isinstance(effect.message, m.TurnFailed)
    assert effect.message.fault is m.Fault.EMPTY_ANSWER
    assert effect.message.prompt_sent is m.PromptSent.YES


@pytest.mark.parametrize("letter", ["a", "ü", "雪", "🜁"])
def test_a_speech_over_the_limit_is_cut_visibly_and_within_the_limit(seat: Seat, letter: str) -> None:
    seat.on(start(1), context(1))
    effect = seat.on(ev.Answered(1, letter * 5000))[0]
    assert isinstance(effect, SendData)
    assert isinstance(effect.message, m.Speech)
    text = effect.message.text
    assert len(text.encode()) <= LIMIT
    assert text.startswith(letter * 20)
    assert text.rstrip(letter) == text  # it does not end as if it were whole


def test_a_long_detail_is_cut_to_what_the_message_admits(seat: Seat) -> None:
    seat.on(start(1), context(1))
    (effect,) = seat.on(failed(1, detail="雪" * 3000 + "\ud800"))
    assert isinstance(effect, SendControl)
    assert isinstance(effect.message, m.TurnFailed)
    assert effect.message.detail == "雪" * 666


def test_one_turn_follows_another(seat: Seat) -> None:
    for turn_id in (1, 4, 9):
        assert seat.on(start(turn_id), context(turn_id)) == [
            ACK[turn_id],
            RunTurn(context_message(turn_id), deadline=60.0),
        ]
        assert seat.on(ev.Passed(turn_id)) == [SendControl(m.TurnEnd(turn_id=turn_id))]


# --- revocation (§6.4) -------------------------------------------------------------------------------


def test_a_revoked_turn_is_cancelled_and_nothing_is_ever_sent_for_it(seat: Seat) -> None:
    seat.on(start(1), context(1))
    assert seat.on(revoke(1)) == [CancelTurn(1)]
    assert seat.on(ev.Answered(1, "too late")) == []
    assert seat.on(ev.Stopped(1), failed(1), ev.Passed(1), context(1)) == []


def test_a_turn_revoked_before_its_context_came_is_dropped(seat: Seat) -> None:
    seat.on(start(1))
    assert seat.on(revoke(1), context(1)) == []
    assert "over" in seat.notes[-1].text


def test_a_revocation_that_crossed_the_turn_end_changes_nothing(seat: Seat) -> None:
    seat.on(start(1), context(1), ev.Answered(1, "in time"))
    assert seat.on(revoke(1)) == []
    assert seat.on(ev.FromControl(error(ErrorCode.TURN_MISMATCH))) == []
    assert seat.notes[-1].weight is ev.Weight.INFO
    assert seat.machine.state is SeatState.SEATED


def test_the_next_turn_waits_until_the_revoked_one_is_out_of_the_chat(seat: Seat) -> None:
    seat.on(start(1), context(1), revoke(1))
    assert seat.on(start(2), context(2), at=3.0) == [ACK[2]]
    assert seat.on(ev.Stopped(1), at=4.0) == [RunTurn(context_message(2), deadline=63.0)]


def test_a_new_turn_supersedes_an_open_one_and_never_runs_beside_it(seat: Seat) -> None:
    seat.on(start(1), context(1), context(2))
    assert seat.on(start(2)) == [CancelTurn(1), ACK[2]]
    assert seat.on(ev.Answered(1, "too late")) == [RunTurn(context_message(2), deadline=60.0)]
    assert seat.on(ev.Passed(2)) == [SendControl(m.TurnEnd(turn_id=2))]


def test_a_stop_that_nobody_asked_for_is_a_failed_turn(seat: Seat) -> None:
    seat.on(start(1), context(1))
    (effect,) = seat.on(ev.Stopped(1))
    assert isinstance(effect, SendControl)
    assert isinstance(effect.message, m.TurnFailed)
    assert effect.message.fault is m.Fault.INTERNAL
    assert effect.message.prompt_sent is m.PromptSent.MAYBE


@pytest.mark.parametrize(
    ("happened", "words"),
    [
        ((start(3), start(3)), "TURN_START 3 came after turn 3"),
        ((start(3), revoke(3), start(3)), "TURN_START 3 came after turn 3"),
        ((start(3), start(2)), "TURN_START 2 came after turn 3"),
        ((revoke(1),), "TURN_REVOKED 1 came without its TURN_START"),
        ((start(1), context(1), context(1)), "CONTEXT 1 came twice"),
        ((context(1), context(1)), "CONTEXT 1 came after CONTEXT 1"),
        ((context(2), context(1)), "CONTEXT 1 came after CONTEXT 2"),
    ],
)
def test_an_impossible_order_is_a_fault_of_the_arbiter(
    seat: Seat, happened: tuple[SeatEvent, ...], words: str
) -> None:
    end = end_of(seat.on(*happened))
    assert end.outcome is Outcome.PROTOCOL_FAULT
    assert words in end.reason


# --- recovery (§6.6, §7.3) ---------------------------------------------------------------------------


def test_keep_changes_nothing(seat: Seat) -> None:
    assert seat.on(KEEP) == []
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_a_cold_start_is_made_and_then_told(seat: Seat) -> None:
    assert seat.on(COLD) == [RestartChat()]
    assert seat.on(ev.Restarted()) == [LOST]


def test_a_turn_waits_for_the_cold_start_and_the_loss_is_told_before_it(seat: Seat) -> None:
    seat.on(COLD)
    assert seat.on(start(1), context(1)) == [ACK[1]]
    assert seat.on(ev.Restarted()) == [LOST, RunTurn(context_message(1), deadline=60.0)]


def test_a_cold_start_waits_for_the_cancelled_turn(seat: Seat) -> None:
    seat.on(start(1), context(1), revoke(1))
    assert seat.on(COLD) == []
    assert seat.on(ev.Stopped(1)) == [RestartChat()]


def test_a_cold_start_waits_for_an_open_turn_and_precedes_the_next(seat: Seat) -> None:
    seat.on(start(1), context(1), COLD)
    assert seat.on(ev.Passed(1)) == [SendControl(m.TurnEnd(turn_id=1)), RestartChat()]


def test_a_second_cold_start_follows_the_first(seat: Seat) -> None:
    assert seat.on(COLD, COLD) == [RestartChat()]
    assert seat.on(ev.Restarted()) == [LOST, RestartChat()]


def test_a_cold_start_that_fails_fails_the_next_turn_without_a_prompt(seat: Seat) -> None:
    seat.on(COLD)
    assert seat.on(ev.RestartFailed("no such program")) == [LOST]
    ack, report = seat.on(start(1))
    assert ack == ACK[1]
    assert report == SendControl(
        m.TurnFailed(
            turn_id=1,
            fault=m.Fault.START_FAILED,
            prompt_sent=m.PromptSent.NO,
            detail="the chat could not be started cold: no such program",
        )
    )
    assert seat.on(context(1)) == []


def test_a_cold_start_that_fails_fails_the_turn_that_waits_for_it(seat: Seat) -> None:
    seat.on(COLD, start(1), context(1))
    lost, report = seat.on(ev.RestartFailed("no such program"))
    assert lost == LOST
    assert isinstance(report, SendControl)
    assert isinstance(report.message, m.TurnFailed)


def test_a_broken_chat_can_be_started_cold_again(seat: Seat) -> None:
    seat.on(COLD, ev.RestartFailed("no such program"))
    assert seat.on(KEEP) == []
    assert seat.on(COLD) == [RestartChat()]
    assert seat.on(ev.Restarted()) == [LOST]
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_a_restart_that_nobody_asked_for_is_not_told(seat: Seat) -> None:
    assert seat.on(ev.Restarted(), ev.RestartFailed("?")) == []
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_a_seat_that_comes_back_without_its_chat_says_so_once_when_it_sits_down() -> None:
    seat = seat_in(SeatState.BINDING, memory_lost=True)
    assert seat.on(DATA_OK) == [LOST]
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_a_cold_start_before_data_ok_is_told_after_it() -> None:
    seat = seat_in(SeatState.BINDING)
    assert seat.on(COLD) == [RestartChat()]
    assert seat.on(ev.Restarted()) == []
    assert seat.on(DATA_OK) == [LOST]


# --- the debate and the end --------------------------------------------------------------------------


def test_a_pause_is_said_with_who_is_missing(seat: Seat) -> None:
    assert (
        seat.on(ev.FromControl(m.DebatePaused(reason="missing_required_participant", missing=(WHO,)))) == []
    )
    assert seat.notes[-1].text == f"the debate is paused: missing_required_participant (missing: {WHO})"
    assert seat.on(ev.FromControl(m.DebatePaused(reason="operator"))) == []
    assert seat.notes[-1].text == "the debate is paused: operator"
    assert seat.on(ev.FromControl(m.DebateResumed(turn_counter=4))) == []


def test_an_open_turn_survives_a_pause(seat: Seat) -> None:
    seat.on(start(1), context(1), ev.FromControl(m.DebatePaused(reason="operator")))
    assert seat.on(ev.Passed(1)) == [SendControl(m.TurnEnd(turn_id=1))]


@pytest.mark.parametrize(
    ("outcome", "cap", "reason"),
    [
        (m.DebateState.FINISHED, None, "the debate ended: FINISHED"),
        (m.DebateState.STOPPED_BY_CAP, "max_tokens", "the debate ended: STOPPED_BY_CAP by max_tokens"),
        (m.DebateState.ERROR, None, "the debate ended: ERROR"),
    ],
)
def test_the_end_of_the_debate_stops_everything(
    seat: Seat, outcome: m.DebateState, cap: str | None, reason: str
) -> None:
    seat.on(start(1), context(1))
    assert seat.on(ended(outcome, cap)) == [CancelTurn(1), End(Outcome(outcome), reason)]


def test_a_refusal_that_is_not_about_a_turn_is_a_warning(seat: Seat) -> None:
    for event in (
        ev.FromControl(error("RATE_LIMITED", "slower")),
        ev.FromData(error("TOO_LARGE", "shorter")),
    ):
        assert seat.on(event) == []
        assert seat.notes[-1].weight is ev.Weight.WARNING
    assert seat.machine.state is SeatState.SEATED


def test_a_link_that_is_lost_after_a_refusal_names_the_refusal(seat: Seat) -> None:
    seat.on(
        ev.FromControl(error("TURN_MISMATCH", "turn 1 is over")), ev.FromData(error("RATE_LIMITED", "slower"))
    )
    assert end_of(seat.on(ev.LinkLost("gone"))).reason == (
        "gone (the Arbiter refused a message: RATE_LIMITED: slower)"
    )


def test_a_session_that_the_arbiter_no_longer_knows_is_over(seat: Seat) -> None:
    seat.on(start(1), context(1))
    effects = seat.on(ev.FromControl(error(ErrorCode.NOT_REGISTERED)))
    assert effects[0] == CancelTurn(1)
    assert end_of(effects).outcome is Outcome.REFUSED


def test_leaving_says_so_and_stops_the_client_first(seat: Seat) -> None:
    seat.on(start(1), context(1))
    assert seat.on(ev.Leave("user_quit")) == [
        CancelTurn(1),
        SendControl(m.Unreg(reason="user_quit")),
        End(Outcome.LEFT, "left: user_quit"),
    ]


def test_who_never_came_has_nothing_to_leave() -> None:
    assert Seat().on(ev.Leave("user_quit")) == [End(Outcome.LEFT, "left: user_quit")]


@pytest.mark.parametrize("state", [s for s in SeatState if s is not SeatState.ENDED])
@pytest.mark.parametrize(
    ("event", "outcome"),
    [
        (ev.LinkLost("the cable"), Outcome.LINK_LOST),
        (ev.LinkRefused("the cable", Objection.NOT_TLS), Outcome.REFUSED),
        (ev.PeerFaulted("the cable"), Outcome.PROTOCOL_FAULT),
    ],
)
def test_a_lost_link_ends_the_seat_in_every_state(
    state: SeatState, event: SeatEvent, outcome: Outcome
) -> None:
    end = end_of(seat_in(state).on(event))
    assert end.outcome is outcome
    assert "the cable" in end.reason


# --- a link that is gone, and the next one (§9.6, §17.6) -------------------------------------------


def again(seat: Seat) -> list[Effect]:
    """The seat comes back: control, REG_OK, data, DATA_OK; what it does in the end."""
    return seat.on(*PATH[SeatState.SEATED])


def test_a_lost_link_is_tried_again_and_the_seat_registers_under_the_same_name() -> None:
    seat = seat_in(SeatState.SEATED, patience=100.0)
    assert seat.on(ev.LinkLost("the cable")) == [ev.OpenControl(Knock(0.5, 2.0, 10.0), "the cable")]
    assert seat.machine.state is SeatState.OFFLINE
    assert seat.on(ev.ControlOpened()) == [SendControl(REG)]
    assert seat.on(ev.FromControl(reg_ok(session_id="s-2", data_token="twice"))) == [ev.OpenData(15.0)]
    assert seat.on(ev.DataOpened()) == [SendData(m.DataHello(session_id="s-2", data_token="twice"))]
    assert seat.on(DATA_OK) == []
    assert seat.told() == ["registered", "seated"]
    # Ids of the new session count from where its Arbiter counts: that may be another debate's beginning.
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_an_open_turn_is_ended_at_once_and_never_answered_late() -> None:
    seat = seat_in(SeatState.SEATED, patience=100.0)
    seat.on(start(3), context(3))
    cancel, _ = seat.on(ev.LinkLost("the cable"))
    assert cancel == CancelTurn(3)
    assert "turn 3 is given up: the connection is gone" in seat.notes[-1].text
    again(seat)
    assert seat.on(ev.Answered(3, "too late")) == []
    assert seat.on(start(4), context(4)) == [ACK[4], RunTurn(context_message(4), deadline=60.0)]


def test_a_turn_after_the_return_waits_until_the_lost_one_is_out_of_the_chat() -> None:
    seat = seat_in(SeatState.SEATED, patience=100.0)
    seat.on(start(3), context(3), ev.LinkLost("the cable"))
    again(seat)
    assert seat.on(start(3), context(3)) == [ACK[3]]
    assert seat.on(ev.Stopped(3)) == [RunTurn(context_message(3), deadline=60.0)]


def test_a_context_that_came_early_is_forgotten_with_its_session() -> None:
    seat = seat_in(SeatState.SEATED, patience=100.0)
    seat.on(context(7), ev.LinkLost("the cable"))
    again(seat)
    assert seat.on(start(7)) == [ACK[7]]


def test_a_cold_start_goes_on_while_the_link_is_away_and_is_told_after_the_return() -> None:
    seat = seat_in(SeatState.SEATED, patience=100.0)
    assert seat.on(COLD) == [RestartChat()]
    seat.on(ev.LinkLost("the cable"))
    assert seat.on(ev.Restarted()) == []
    assert again(seat)[-1] == LOST


def test_why_it_tries_again_is_said_once_and_again_when_it_is_another_reason() -> None:
    seat = seat_in(SeatState.SEATED, patience=1000.0)
    said = []
    for reason in ("silence", "refused", "refused", "refused", "silence"):
        (effect,) = seat.on(ev.LinkLost(reason), at=seat.now + 1)
        assert isinstance(effect, ev.OpenControl)
        said.append(effect.why)
    assert said == ["silence", "refused", "", "", "silence"]
    again(seat)
    (effect,) = seat.on(ev.LinkLost("silence"))
    assert isinstance(effect, ev.OpenControl)
    assert effect.why == "silence", "a seat that sat has new trouble"


def test_a_seat_gives_up_after_its_time_and_says_so() -> None:
    seat = seat_in(SeatState.SEATED, patience=20.0)
    effects = seat.on(ev.LinkLost("the cable"))
    while not isinstance(effects[-1], End):
        effects = seat.on(ev.LinkLost("the cable"), at=seat.now + 1)
    assert end_of(effects) == End(Outcome.LINK_LOST, "the cable; given up after 20 seconds")
    assert 19 <= seat.now <= 21


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.DUPLICATE_DISPLAY_NAME,
        ErrorCode.AT_CAPACITY,
        ErrorCode.RATE_LIMITED,
        ErrorCode.TIMEOUT,
        ErrorCode.NOT_REGISTERED,
        ErrorCode.TOKEN_REFUSED,
        ErrorCode.CERTIFICATE_EXPIRED,
    ],
)
@pytest.mark.parametrize("state", [SeatState.REGISTERING, SeatState.BINDING])
def test_a_refusal_that_may_pass_is_tried_again(code: ErrorCode, state: SeatState) -> None:
    seat = seat_in(state, patience=30.0)
    refusal = error(code)
    event = ev.FromControl(refusal) if state is SeatState.REGISTERING else ev.FromData(refusal)
    (effect,) = seat.on(event)
    assert isinstance(effect, ev.OpenControl)
    assert effect.why.endswith(f"({code}: no)")
    assert seat.machine.state is SeatState.OFFLINE


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.POLICY_DENIED,
        ErrorCode.INVALID_STATE,
        ErrorCode.PROFILE_CAP,
        ErrorCode.PROTOCOL_VERSION_UNSUPPORTED,
        "SOMETHING_NEW",
    ],
)
def test_a_refusal_that_will_not_change_ends_the_seat_however_patient_it_is(code: str) -> None:
    seat = seat_in(SeatState.REGISTERING, patience=1000.0)
    assert end_of(seat.on(ev.FromControl(error(code)))).outcome is Outcome.REFUSED


@pytest.mark.parametrize("objection", Objection)
def test_what_tls_refuses_ends_the_seat_with_what_to_do(objection: Objection) -> None:
    seat = seat_in(SeatState.SEATED, patience=1000.0)
    seat.on(ev.LinkLost("the cable"))
    end = end_of(seat.on(ev.LinkRefused("the Arbiter refused it", objection)))
    assert (end.outcome, end.objection) == (Outcome.REFUSED, objection)
    assert end.reason.startswith("the Arbiter refused it. ")
    assert len(end.reason) > len("the Arbiter refused it. ") + 20


@pytest.mark.parametrize("kind", [ev.FromControl, ev.FromData])
def test_a_seat_whose_certificate_ends_tries_once_more_with_what_it_has_by_then(kind: Any) -> None:
    seat = seat_in(SeatState.SEATED, patience=30.0)
    seat.on(start(1), context(1))
    cancelled, opening = seat.on(kind(error(ErrorCode.CERTIFICATE_EXPIRED)))
    assert cancelled == CancelTurn(1)
    assert isinstance(opening, ev.OpenControl)
    assert "Ask for a renewed one" in opening.why
    end = end_of(seat.on(ev.LinkRefused("the Arbiter refused it", Objection.OWN_EXPIRED)))
    assert end.outcome is Outcome.REFUSED


def test_a_seat_that_the_operator_removed_does_not_come_back() -> None:
    seat = seat_in(SeatState.SEATED, patience=1000.0)
    assert end_of(seat.on(ev.FromControl(error(ErrorCode.NOT_REGISTERED)))).outcome is Outcome.REFUSED


def test_who_leaves_while_the_link_is_away_just_goes() -> None:
    seat = seat_in(SeatState.SEATED, patience=1000.0)
    seat.on(ev.LinkLost("the cable"))
    assert seat.on(ev.Leave("user_quit")) == [End(Outcome.LEFT, "left: user_quit")]


def test_only_a_seat_that_sat_for_a_good_while_begins_with_short_waits() -> None:
    seat = seat_in(SeatState.SEATED, patience=1e6)
    bounds = []
    for sat_for in (0.0, 1.0, 1.0, GOOD_WHILE):
        (effect,) = seat.on(ev.LinkLost("the cable"), at=seat.now + sat_for)
        assert isinstance(effect, ev.OpenControl)
        bounds.append(effect.knock.most)
        again(seat)
    assert bounds == [RETURNING.first, 2 * RETURNING.first, 4 * RETURNING.first, RETURNING.first]


def test_a_chat_is_not_carried_from_one_debate_into_another() -> None:
    seat = seat_in(SeatState.REGISTERING, patience=1000.0)
    seat.on(ev.FromControl(reg_ok(debate_id="one")), ev.DataOpened(), DATA_OK, ev.LinkLost("the cable"))
    seat.on(ev.ControlOpened(), ev.FromControl(reg_ok(debate_id="one")), ev.LinkLost("again"))
    farewell, end = seat.on(ev.ControlOpened(), ev.FromControl(reg_ok(debate_id="two")))[-2:]
    assert farewell == SendControl(m.Unreg(reason="this seat's chat is of another debate"))
    assert isinstance(end, End)
    assert end.outcome is Outcome.REFUSED
    assert "another debate is held there now, two; the chat of this seat is of one" in end.reason


def test_an_arbiter_that_does_not_name_its_debate_is_believed() -> None:
    once = Reconnection(patience=0, give_up_after=0)
    seat = Seat()
    seat.machine = SeatMachine(REG, speech_bytes=LIMIT, reconnection=once, debate_id="one")
    seat.on(ev.ChatOpened(memory_lost=False), ev.ControlOpened())
    assert seat.on(ev.FromControl(reg_ok())) == [ev.OpenData(15.0)]


@pytest.mark.parametrize(("granted", "longest"), [(100, 100), (None, LIMIT), (10**9, m.MAX_SPEECH_BYTES)])
def test_the_arbiter_says_how_long_a_speech_may_be(granted: int | None, longest: int) -> None:
    seat = seat_in(SeatState.REGISTERING)
    seat.on(ev.FromControl(reg_ok(speech_bytes=granted)), ev.DataOpened(), DATA_OK, start(1), context(1))
    effect = seat.on(ev.Answered(1, "a" * 100_000))[0]
    assert isinstance(effect, SendData)
    assert isinstance(effect.message, m.Speech)
    assert longest - 80 <= len(effect.message.text) <= longest


def test_what_a_seat_does_is_told_for_whoever_follows_it(seat: Seat) -> None:
    seat.on(start(1), context(1), ev.Answered(1, "Wrap it, and soon."))
    assert seat.news[-1] == ev.Tell(ev.News.SPOKE, {"turn_id": 1, "words": 4})
    seat.on(start(2), context(2), ev.Passed(2), start(3), context(3), failed(3))
    seat.on(ev.FromControl(m.DebatePaused(reason="a seat cannot go on", missing=(WHO,))), KEEP)
    seat.on(ev.FromControl(m.DebateResumed(turn_counter=3)))
    assert seat.told() == [
        *("speaking", "spoke", "speaking", "passed", "speaking", "failed"),
        *("paused", "recovered", "resumed"),
    ]


# --- a person ----------------------------------------------------------------------------------------

AWAY = SendControl(m.StateUpdate(required=False, disconnect_policy=m.DisconnectPolicy.DROP))
BACK = SendControl(m.StateUpdate(required=True, disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE))
STEPPED_BACK = REG.model_copy(update={"required": False, "disconnect_policy": m.DisconnectPolicy.DROP})


def test_a_skip_is_in_the_record_as_somebodys_choice(seat: Seat) -> None:
    seat.on(start(1), context(1))
    assert seat.on(ev.Skipped(1)) == [
        SendData(m.SystemEvent(event="HUMAN_SKIP", participant_id=WHO)),
        SendControl(m.TurnEnd(turn_id=1)),
    ]
    assert seat.told() == ["speaking", "passed"]


def test_a_skip_of_a_turn_that_was_taken_back_is_no_skip(seat: Seat) -> None:
    seat.on(start(1), context(1), revoke(1))
    assert seat.on(ev.Skipped(1)) == []


def test_who_steps_away_and_comes_back_says_so_once(seat: Seat) -> None:
    assert seat.on(ev.Away()) == [AWAY]
    assert seat.on(ev.Away()) == []
    assert seat.on(ev.Back()) == [BACK]
    assert seat.on(ev.Back()) == []


@pytest.mark.parametrize("state", [SeatState.OFFLINE, SeatState.REGISTERING])
def test_who_steps_away_before_the_arbiter_is_there_is_away_once_it_is(state: SeatState) -> None:
    seat = seat_in(state, patience=10)
    assert seat.on(ev.Away()) == []
    if state is SeatState.OFFLINE:
        assert seat.on(ev.ControlOpened()) == [SendControl(STEPPED_BACK)]
        assert AWAY not in seat.on(ev.FromControl(reg_ok()))
    else:
        assert AWAY in seat.on(ev.FromControl(reg_ok()))


def test_who_is_away_is_away_after_a_lost_connection_too() -> None:
    seat = seat_in(SeatState.SEATED, patience=100)
    seat.on(ev.Away(), ev.LinkLost("gone"))
    assert seat.on(ev.ControlOpened()) == [SendControl(STEPPED_BACK)]
    granted = reg_ok(required=False, disconnect_policy=m.DisconnectPolicy.DROP)
    assert seat.on(ev.FromControl(granted)) == [ev.OpenData(15.0)]
    assert not [note for note in seat.notes if "less than was asked for" in note.text]
    assert seat.on(ev.Back()) == [BACK]


def test_where_the_debate_stands_is_asked_for_and_shown(seat: Seat) -> None:
    assert seat.on(ev.StatusWanted()) == [SendControl(m.StatusRequest())]
    assert seat.on(ev.FromControl(STATUS)) == [ev.Show(STATUS)]
    unseated = seat_in(SeatState.OFFLINE)
    assert unseated.on(ev.StatusWanted()) == []
    assert [note.text for note in unseated.notes] == [
        "there is no connection to the Arbiter now: it cannot be asked"
    ]


def test_what_the_arbiter_made_of_a_change_is_told(seat: Seat) -> None:
    applied = m.StateOk(required=False, disconnect_policy=m.DisconnectPolicy.DROP, capped_by_profile=True)
    assert seat.on(ev.FromControl(applied)) == []
    assert seat.news[-1].facts == {"required": False, "disconnect_policy": "drop", "capped": True}


def test_a_revocation_that_crosses_the_answer_is_told(seat: Seat) -> None:
    seat.on(start(1), context(1), ev.Answered(1, "text"))
    seat.told()
    assert seat.on(revoke(1)) == []
    assert seat.news[-1].facts["turn_id"] == 1
    assert "crossed" in str(seat.news[-1].facts["reason"])
    assert seat.told() == ["failed"]


# --- every message in every state --------------------------------------------------------------------

SAMPLES: dict[str, SeatEvent] = {
    "control RegOk": ev.FromControl(reg_ok()),
    "control StateOk": ev.FromControl(
        m.StateOk(required=True, disconnect_policy=m.DisconnectPolicy.DROP, capped_by_profile=False)
    ),
    "control Status": ev.FromControl(STATUS),
    "control TurnStart": start(5),
    "control TurnRevoked": revoke(5),
    "control SeatRecovery": COLD,
    "control DebatePaused": ev.FromControl(m.DebatePaused(reason="operator")),
    "control DebateResumed": ev.FromControl(m.DebateResumed(turn_counter=1)),
    "control DebateEnded": ended(m.DebateState.FINISHED),
    "control Ping": ev.FromControl(m.Ping(ts=1)),
    "control Pong": ev.FromControl(m.Pong(ts=1)),
    "control Error": ev.FromControl(error("POLICY_DENIED")),
    "data DataOk": DATA_OK,
    "data Context": context(5),
    "data Error": ev.FromData(error("POLICY_DENIED")),
}
KNOWN = {SeatState.REGISTERED, SeatState.BINDING, SeatState.SEATED}
BOUND = {SeatState.BINDING, SeatState.SEATED}
HEARD = {
    "control RegOk": {SeatState.REGISTERING},
    "control StateOk": KNOWN,
    "control Status": KNOWN,
    "control TurnStart": BOUND,
    "control TurnRevoked": BOUND,
    "control SeatRecovery": BOUND,
    "control DebatePaused": KNOWN,
    "control DebateResumed": KNOWN,
    "control DebateEnded": KNOWN,
    "control Error": KNOWN | {SeatState.REGISTERING},
    "data DataOk": {SeatState.BINDING},
    "data Context": {SeatState.SEATED},
    "data Error": BOUND,
}


@pytest.mark.parametrize("state", [s for s in SeatState if s is not SeatState.ENDED])
@pytest.mark.parametrize("name", SAMPLES)
def test_a_message_that_makes_no_sense_in_the_state_ends_the_seat(state: SeatState, name: str) -> None:
    seat = seat_in(state)
    effects = seat.on(SAMPLES[name])
    kind = name.split()[1]
    nonsense = f"{kind} makes no sense while the seat is {state}"
    told = any(isinstance(effect, End) and nonsense in effect.reason for effect in effects)
    assert told == (state not in HEARD.get(name, set()))
    assert told <= (seat.machine.state is SeatState.ENDED)


@pytest.mark.parametrize("event", [*SAMPLES.values(), ev.Leave("again"), ev.LinkLost("again"), ev.Passed(1)])
def test_nothing_happens_after_the_end(event: SeatEvent) -> None:
    seat = seat_in(SeatState.ENDED)
    assert seat.on(event) == []
    assert seat.notes == []


@pytest.mark.parametrize("event", [ev.ControlOpened(), ev.DataOpened(), ev.Answered(7, "late")])
def test_a_local_event_that_came_too_late_changes_nothing(seat: Seat, event: SeatEvent) -> None:
    assert seat.on(event) == []
    assert seat.on(start(1), context(1)) == [ACK[1], RunTurn(context_message(1), deadline=60.0)]


def test_an_answer_before_the_seat_is_taken_changes_nothing() -> None:
    seat = seat_in(SeatState.BINDING)
    assert seat.on(ev.Answered(1, "who asked?")) == []
    assert "its result is dropped" in seat.notes[-1].text


# --- any event in any state --------------------------------------------------------------------------


class Monitor:
    """Watches a machine from outside, and knows only what may never happen."""

    def __init__(self) -> None:
        reconnection = Reconnection(patience=100.0, give_up_after=100.0)
        self.machine = SeatMachine(REG, speech_bytes=LIMIT, reconnection=reconnection)
        self.assigned: set[int] = set()
        self.forfeit: set[int] = set()
        self.contexts: set[int] = set()
        self.answers: dict[int, int] = {}
        self.open: int | None = None
        self.at_work: int | str | None = None
        self.lost_turns: set[int] = set()
        self.heard: set[type] = set()
        self.end: End | None = None

    def feed(self, event: SeatEvent) -> None:
        self._before(event)
        for effect in self.machine.handle(event, 0.0):
            assert self.end is None, f"{effect} follows the end"
            self._after(effect)

    def _before(self, event: SeatEvent) -> None:
        if isinstance(event, ev.FromControl | ev.FromData):
            self.heard.add(type(event.message))
            self._message(event.message)
        if isinstance(event, ev.Answered | ev.Passed | ev.Failed | ev.Stopped):
            if event.turn_id == self.at_work:
                self.at_work = None
        elif isinstance(event, ev.Restarted | ev.RestartFailed) and self.at_work == "restart":
            self.at_work = None

    def _message(self, message: m.Message) -> None:
        match message:
            case m.TurnStart(turn_id=turn_id):
                if self.open is not None:
                    self.forfeit.add(self.open)
                self.open = turn_id
            case m.TurnRevoked(turn_id=turn_id):
                self.forfeit.add(turn_id)
            case m.Context(turn_id=turn_id):
                self.contexts.add(turn_id)

    def _after(self, effect: Effect) -> None:
        match effect:
            case SendControl(m.Ack(turn_id=turn_id)):
                assert turn_id not in self.assigned, "a turn is acknowledged once"
                self.assigned.add(turn_id)
            case SendControl(m.TurnEnd(turn_id=turn_id) | m.TurnFailed(turn_id=turn_id)):
                self._may_speak_of(turn_id)
                assert turn_id not in self.answers
                self.answers[turn_id] = 1
                self.open = None
            case SendData(m.Speech(turn_id=turn_id, text=text)):
                self._may_speak_of(turn_id)
                assert len(text.encode()) <= LIMIT
            case SendData(m.DataHello()):
                assert m.RegOk in self.heard
            case ev.Tell(news=ev.News.SEATED):
                assert m.DataOk in self.heard
            case ev.OpenControl():
                self._new_session()
            case RunTurn(told):
                assert self.at_work is None, "never two turns in one chat"
                assert told.turn_id in self.assigned & self.contexts
                assert told.turn_id not in self.forfeit
                self.at_work = told.turn_id
            case RestartChat():
                assert self.at_work is None, "no restart under a turn"
                self.at_work = "restart"
            case CancelTurn(turn_id):
                assert turn_id == self.at_work
            case End():
                self.end = effect

    def _new_session(self) -> None:
        """Its turns are forfeit, its ids mean nothing any more, and it has to be let in anew."""
        if self.open is not None:
            self.forfeit.add(self.open)
        self.open = None
        self.lost_turns |= self.assigned
        self.assigned, self.contexts, self.answers = set(), set(), {}
        self.forfeit = {self.at_work} if isinstance(self.at_work, int) else set()
        self.heard = set()

    def _may_speak_of(self, turn_id: int) -> None:
        assert turn_id in self.assigned
        assert turn_id not in self.forfeit, "nothing is sent for a revoked turn"


ids = st.integers(0, 4)
anything: st.SearchStrategy[SeatEvent] = st.one_of(
    st.sampled_from(list(SAMPLES.values())),
    st.sampled_from([ev.ChatOpened(memory_lost=True), ev.ChatFailed("?")]),
    st.sampled_from([*PATH[SeatState.SEATED], COLD, KEEP, ev.Restarted(), ev.RestartFailed("?")]),
    st.builds(start, ids),
    st.builds(context, ids),
    st.builds(revoke, ids),
    st.builds(ev.Answered, ids, st.text()),
    st.builds(ev.Passed, ids),
    st.builds(failed, ids, st.sampled_from(m.Fault), st.text()),
    st.builds(ev.Stopped, ids),
    st.sampled_from(
        [ev.LinkLost("x"), ev.LinkRefused("x", Objection.OWN_REVOKED), ev.PeerFaulted("x"), ev.Leave("x")]
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(list(PATH.values())), st.lists(anything, max_size=30))
def test_whatever_happens_the_seat_neither_raises_nor_breaks_a_rule(
    path: tuple[SeatEvent, ...], happened: list[SeatEvent]
) -> None:
    monitor = Monitor()
    for event in (*path, *happened):
        monitor.feed(event)


class TwoChannels(RuleBasedStateMachine):
    """An Arbiter that keeps to the protocol, over two connections that deliver at their own pace.

    Whatever the interleaving, the seat never takes it for a fault, and answers each of its turns once.
    """

    def __init__(self) -> None:
        super().__init__()
        self.monitor = Monitor()
        self.control: deque[ev.FromControl] = deque()
        self.data: deque[ev.FromData] = deque()
        self.turn = 0
        self.open: int | None = None
        self.revoked: set[int] = set()
        for event in PATH[SeatState.BINDING]:
            self.monitor.feed(event)
        self.data.append(DATA_OK)

    def _settle(self) -> None:
        if self.open in self.monitor.answers:
            self.open = None

    @precondition(lambda self: self.open is None)
    @rule()
    def assign(self) -> None:
        self.turn += 1
        self.open = self.turn
        self.control.append(start(self.turn))
        self.data.append(context(self.turn))

    @precondition(lambda self: self.open is not None)
    @rule(then_cold=st.booleans())
    def revoke(self, *, then_cold: bool) -> None:
        assert self.open is not None
        self.revoked.add(self.open)
        self.control.append(revoke(self.open))
        self.open = None
        self.control.append(COLD if then_cold else KEEP)

    @precondition(lambda self: self.control)
    @rule()
    def deliver_control(self) -> None:
        self.monitor.feed(self.control.popleft())
        self._settle()

    @precondition(lambda self: self.data)
    @rule()
    def deliver_data(self) -> None:
        self.monitor.feed(self.data.popleft())
        self._settle()

    @precondition(lambda self: self.monitor.at_work is not None)
    @rule(how=st.sampled_from(["answer", "empty", "pass", "fail", "stop"]))
    def work(self, how: str) -> None:
        work = self.monitor.at_work
        if isinstance(work, int):
            result: dict[str, SeatEvent] = {
                "answer": ev.Answered(work, "a point"),
                "empty": ev.Answered(work, ""),
                "pass": ev.Passed(work),
                "fail": failed(work),
                "stop": ev.Stopped(work),
            }
            self.monitor.feed(result[how])
        else:
            self.monitor.feed(ev.RestartFailed("?") if how == "fail" else ev.Restarted())
        self._settle()

    @invariant()
    def the_seat_goes_on(self) -> None:
        assert self.monitor.end is None

    def teardown(self) -> None:
        while self.control or self.data or self.monitor.at_work is not None:
            if self.control:
                self.deliver_control()
            if self.data:
                self.deliver_data()
            if self.monitor.at_work is not None:
                self.work("answer")
        self.the_seat_goes_on()
        for turn_id in range(1, self.turn + 1):
            assert turn_id in self.monitor.answers or turn_id in self.revoked


TestTwoChannels = TwoChannels.TestCase
TestTwoChannels.settings = settings(
    max_examples=80, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
