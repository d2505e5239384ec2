"""The operator's commands (§3.3.D, §9.7)."""

from __future__ import annotations

import pytest
from playbook import Playbook, frozen, participant

from consilium.errors import ErrorCode
from consilium.messages import (
    AdminOk,
    DebateEnded,
    DebateState,
    Error,
    ForceTurnEnd,
    Inject,
    Kick,
    Next,
    Pause,
    Phase,
    Resume,
    SetPhase,
    SetTopic,
    Terminate,
    TurnRevoked,
    TurnStart,
    When,
)
from consilium.records import EventName, TurnOutcome

COMMANDS = [
    Inject(text="New element."),
    SetTopic(topic="Other?"),
    SetPhase(phase=Phase.CLOSING),
    SetPhase(phase=Phase.REBUTTAL, when=When.ROUND_END),
    Kick(seat="bob"),
    ForceTurnEnd(),
    Next(seat="cyn"),
    Pause(reason="lunch"),
    Terminate(reason="enough"),
    Terminate(when=When.ROUND_END),
]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: f"{c.type}")
def test_every_operation_is_answered_and_leaves_its_event(command: object) -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(command)  # type: ignore[arg-type]  # every one of the union
    assert play.refusal is None
    assert [m.operation for m in play.sent(AdminOk, "operator")] == [command.type]  # type: ignore[attr-defined]
    assert play.latest_events()[0] is EventName.OPERATOR_COMMAND


def test_9_7_steering_is_recorded_and_reaches_every_seat() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.commands(Inject(text="What does it cost?"))
    (event,) = play.events(EventName.MODERATOR_STEERING)
    assert (event.visible, event.data) == (True, {"text": "What does it cost?"})
    play.speaks(ada, "A1")
    play.speaks(bob, "B1")
    for session in (bob, cyn):
        assert ("moderator", "What does it cost?") in play.heard(session)


def test_a_new_phase_holds_from_the_next_turn_on() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.commands(SetPhase(phase=Phase.REBUTTAL))
    play.speaks(ada, "A1")
    assert play.turns()[0].phase is Phase.OPENING
    assert play.sent(TurnStart, bob)[0].phase is Phase.REBUTTAL
    (event,) = play.events(EventName.PHASE_CHANGED)
    assert event.data == {"phase": "REBUTTAL", "previous": "OPENING"}


def test_a_phase_for_the_end_of_the_round_leaves_no_stray_turn() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(SetPhase(phase=Phase.CLOSING, when=When.ROUND_END))
    play.round()
    assert [turn.phase for turn in play.turns()] == [Phase.OPENING] * 3
    assert play.sent(TurnStart)[0].phase is Phase.CLOSING


def test_the_phase_that_already_is_cannot_be_set() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(SetPhase(phase=Phase.OPENING))
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.INVALID_STATE


def test_a_kicked_seat_loses_its_turn_and_cannot_return() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.commands(Kick(seat=participant(ada)))
    assert play.closed == [ada]
    assert [m.code for m in play.sent(Error, ada)] == [ErrorCode.NOT_REGISTERED]
    assert [m.turn_id for m in play.sent(TurnRevoked, ada)] == [1]
    assert play.turns()[0].outcome is TurnOutcome.FORCED
    assert play.was_given_the_floor(bob)
    play.registers("ada", "ada-2")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.POLICY_DENIED


def test_a_seat_that_is_not_connected_can_be_kicked() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.is_lost(bob)
    play.commands(Kick(seat="bob"))
    assert play.closed == []
    assert play.state() is DebateState.PAUSED, "only RESUME leaves a pause"
    play.commands(Resume())
    play.speaks(ada, "A1")
    assert play.speaking == "cyn"


def test_an_unknown_seat_is_named_with_those_that_exist() -> None:
    play = Playbook(("ada",))
    play.commands(Kick(seat="nobody"))
    assert play.refusal is not None
    assert play.refusal.message == "there is no seat nobody (seats: none)"
    play.joins("ada")
    play.commands(Kick(seat="nobody"))
    assert play.refusal.message == "there is no seat nobody (seats: ada_AB12CD34)"


def test_a_forced_end_revokes_the_turn_and_goes_on_to_the_next_seat() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.says(ada, "Half of what I had to")
    play.commands(ForceTurnEnd())
    assert [m.reason for m in play.sent(TurnRevoked, ada)] == ["ended_by_operator"]
    assert (play.turns()[0].outcome, play.turns()[0].text) == (TurnOutcome.FORCED, None)
    assert play.was_given_the_floor(bob)
    play.round()
    assert len(play.events(EventName.ROUND_COMPLETED)) == 1


def test_without_an_open_turn_there_is_none_to_end() -> None:
    play = Playbook(turn_policy="manual")
    play.everybody_joins()
    play.commands(ForceTurnEnd())
    assert play.refusal is not None
    assert play.refusal.message == "no turn is open"


def test_the_next_turn_goes_only_to_somebody_who_can_take_it() -> None:
    play = Playbook()
    play.everybody_joins()
    play.is_lost("bob")
    play.commands(Next(seat="bob"))
    assert play.refusal is not None
    assert "not in the rotation" in play.refusal.message


def test_terminating_ends_the_open_turn_and_tells_everybody() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.commands(Terminate(reason="enough"))
    assert play.state() is DebateState.FINISHED
    assert play.turns()[0].outcome is TurnOutcome.FORCED
    for session in (ada, bob):
        assert [m.outcome for m in play.sent(DebateEnded, session)] == [DebateState.FINISHED]
    (event,) = play.events(EventName.DEBATE_ENDED)
    assert event.data["reason"] == "enough"


def test_terminating_at_the_end_of_the_round_lets_everybody_finish() -> None:
    play = Playbook()
    play.everybody_joins()
    play.speaks("ada", "A1")
    play.commands(Terminate(when=When.ROUND_END))
    play.speaks("bob", "B1")
    play.speaks("cyn", "C1")
    assert play.state() is DebateState.FINISHED
    assert [turn.outcome for turn in play.turns()] == [TurnOutcome.SPEECH] * 3


def test_there_is_no_round_to_wait_for_before_the_start() -> None:
    play = Playbook()
    play.commands(Terminate(when=When.ROUND_END))
    assert play.refusal is not None
    play.commands(Terminate())
    assert play.state() is DebateState.FINISHED


@pytest.mark.parametrize("command", [*COMMANDS, Resume()], ids=lambda c: f"{c.type}")
def test_after_the_end_nothing_can_be_commanded(command: object) -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(Terminate())
    before = frozen(play.debate)
    play.commands(command)  # type: ignore[arg-type]  # every one of the union
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.INVALID_STATE
    assert frozen(play.debate) == before


def test_a_whole_course_can_be_ordered_before_the_first_seat_is_here() -> None:
    play = Playbook()
    play.commands(SetPhase(phase=Phase.REBUTTAL, when=When.ROUND_END, round=1))
    play.commands(SetPhase(phase=Phase.CLOSING, when=When.ROUND_END, round=3))
    play.commands(Terminate(when=When.ROUND_END, round=4, reason="done"))
    assert play.refusal is None
    play.everybody_joins()
    for _ in range(4):
        play.round()
    assert (play.state(), play.debate.reason) == (DebateState.FINISHED, "done")
    phases = [turn.phase.value for turn in play.turns()]
    assert phases == ["OPENING"] * 3 + ["REBUTTAL"] * 6 + ["CLOSING"] * 3


@pytest.mark.parametrize("kind", [SetPhase(phase=Phase.CLOSING), Terminate()], ids=lambda c: f"{c.type}")
def test_a_round_that_is_over_or_a_round_for_now_makes_no_sense(kind: SetPhase | Terminate) -> None:
    play = Playbook()
    play.everybody_joins()
    play.round()
    for change, words in (
        ({"when": When.ROUND_END, "round": 1}, "round 1 is over: round 2 is under way"),
        ({"round": 2}, "a round goes with when: round_end"),
    ):
        before = frozen(play.debate)
        play.commands(kind.model_copy(update=change))
        assert play.refusal is not None
        assert play.refusal.message == words
        assert frozen(play.debate) == before


def test_a_phase_that_has_come_already_when_its_round_ends_is_not_entered_again() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(SetPhase(phase=Phase.CLOSING, when=When.ROUND_END))
    play.commands(SetPhase(phase=Phase.CLOSING))
    play.round()
    assert len(play.events(EventName.PHASE_CHANGED)) == 1
