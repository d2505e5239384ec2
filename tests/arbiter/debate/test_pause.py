"""Failure pauses, and only the operator resumes (§7.3, §9.5, §9.6)."""

from __future__ import annotations

import pytest
from playbook import Playbook, frozen, participant

from arbiter.debate.events import RecordDelayed
from consilium.errors import ErrorCode
from consilium.messages import (
    DebatePaused,
    DebateResumed,
    DebateState,
    DisconnectPolicy,
    ForceTurnEnd,
    Next,
    Pause,
    PromptSent,
    Recovery,
    Resume,
    SeatRecovery,
    TurnRevoked,
    TurnStart,
)
from consilium.records import EventName, TurnOutcome


@pytest.mark.parametrize("required", [True, False])
@pytest.mark.parametrize("policy", list(DisconnectPolicy))
def test_9_5_a_lost_connection_pauses_whatever_the_policy(required: bool, policy: DisconnectPolicy) -> None:
    play = Playbook()
    _, bob, _ = play.everybody_joins()
    play.updates(bob, required=required, disconnect_policy=policy)
    play.is_lost(bob)
    assert play.state() is DebateState.PAUSED
    assert play.sent(TurnStart) == []


def test_9_5_the_speakers_turn_is_lost_with_its_connection() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.is_lost(ada)
    assert play.turns()[0].outcome is TurnOutcome.LOST
    assert play.seat("ada").prompt_sent is PromptSent.MAYBE


def test_9_6_reconnection_alone_never_resumes() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.is_lost(ada)
    again = play.joins(ada, "ada-again")
    assert play.state() is DebateState.PAUSED
    assert play.ever_sent(TurnStart, again) == []
    play.commands(Resume())
    assert play.state() is DebateState.RUNNING
    assert [m.mode for m in play.sent(SeatRecovery, again)] == [Recovery.KEEP]
    assert play.was_given_the_floor(again)
    assert [m.turn_counter for m in play.sent(DebateResumed, bob)] == [1]


def test_a_seat_that_has_not_come_back_cannot_be_kept() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.is_lost(ada)
    for command in (Resume(), Resume(seats={"ada": Recovery.COLD})):
        play.commands(command)
        assert play.refusal is not None
        assert play.refusal.code is ErrorCode.INVALID_STATE
        assert participant("ada") in play.refusal.message
    assert play.state() is DebateState.PAUSED


def test_a_seat_that_was_lost_outside_its_turn_is_kept_without_being_given_the_next_one() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.is_lost(cyn)
    play.joins(cyn, "cyn-again")
    play.commands(Resume())
    assert [m.mode for m in play.sent(SeatRecovery)] == [Recovery.KEEP]
    play.speaks(ada, "A1")
    assert play.was_given_the_floor(bob)


def test_a_lost_seat_may_be_skipped_and_finds_its_place_when_it_returns() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.is_lost(ada)
    play.commands(Resume(seats={"ada": Recovery.SKIP}))
    assert play.state() is DebateState.RUNNING
    assert play.was_given_the_floor(bob)
    play.speaks(bob, "B1")
    again = play.joins("ada", "ada-again")
    assert play.state() is DebateState.RUNNING
    play.speaks(cyn, "C1")
    assert play.was_given_the_floor(again)


def test_a_faulty_seat_may_be_removed_for_good() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.fails(ada)
    play.commands(Resume(seats={participant("ada"): Recovery.REMOVE}))
    assert play.closed == [ada]
    assert play.was_given_the_floor(bob)
    play.is_lost(ada)
    assert play.state() is DebateState.RUNNING
    play.registers("ada", "ada-again")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.POLICY_DENIED


def test_a_skipped_seat_keeps_its_chat_and_speaks_again_in_its_next_turn() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.fails(ada)
    play.commands(Resume(seats={"ada": Recovery.SKIP}))
    assert play.was_given_the_floor(bob)
    assert play.sent(SeatRecovery) == []
    play.speaks(bob, "B1")
    play.speaks(cyn, "C1")
    assert play.events(EventName.ROUND_COMPLETED)
    assert play.was_given_the_floor(ada)


def test_a_cold_restart_waits_until_the_wrapper_says_that_the_memory_is_gone() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    play.commands(Resume(seats={"ada": Recovery.COLD}))
    assert play.state() is DebateState.RESUMING
    assert [m.mode for m in play.sent(SeatRecovery, ada)] == [Recovery.COLD]
    assert play.sent(TurnStart) == []
    play.reports(ada, "PARTICIPANT_MEMORY_LOST")
    assert play.state() is DebateState.RUNNING
    assert play.was_given_the_floor(ada)
    assert play.events(EventName.PARTICIPANT_MEMORY_LOST)


def test_a_seat_lost_while_it_restarts_cold_pauses_again() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    play.commands(Resume(seats={"ada": Recovery.COLD}))
    play.is_lost(ada)
    assert play.state() is DebateState.PAUSED
    assert play.debate.reviving == set()


def test_an_operator_may_pause_a_resumption() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    play.commands(Resume(seats={"ada": Recovery.COLD}))
    play.commands(Pause(reason="wait"))
    assert (play.state(), play.debate.reason) == (DebateState.PAUSED, "wait")


def test_the_operators_pause_lets_the_open_turn_finish_and_assigns_no_other() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.commands(Pause())
    assert [m.reason for m in play.sent(DebatePaused, ada)] == ["operator"]
    play.speaks(ada, "A1")
    assert play.turn == 0
    play.commands(Resume())
    assert play.speaking == "bob"


def test_an_operators_resume_does_not_disturb_the_turn_that_is_still_open() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(Pause())
    play.commands(Resume())
    assert (play.state(), play.turn) == (DebateState.RUNNING, 1)
    assert play.sent(TurnStart) == []


def test_nothing_can_be_recovered_that_is_not_faulty() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    before = frozen(play.debate)
    play.commands(Resume(seats={"bob": Recovery.COLD}))
    assert play.refusal is not None
    assert "nothing is wrong with bob_AB12CD34" in play.refusal.message
    play.commands(Resume(seats={"nobody": Recovery.KEEP}))
    assert play.refusal is not None
    assert frozen(play.debate) == before


def test_a_deadline_in_a_paused_debate_still_revokes() -> None:
    play = Playbook(limits={"turn_seconds": 10})
    ada, bob, _ = play.everybody_joins()
    play.is_lost(bob)
    play.after(10)
    assert [m.turn_id for m in play.sent(TurnRevoked, ada)] == [1]
    assert [seat.name for seat in play.debate.roster.troubled()] == ["ada", "bob"]


def test_8_1_a_voluntary_departure_under_drop_lets_the_debate_go_on() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"]})
    play.joins("ada")
    bob = play.joins("bob", disconnect_policy=DisconnectPolicy.DROP)
    play.leaves(bob)
    assert play.closed == [bob]
    assert play.state() is DebateState.RUNNING
    assert [seat.name for seat in play.debate.roster] == ["ada"]


def test_8_2_a_voluntary_departure_under_keep_alive_keeps_the_seat() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"]})
    ada, bob = play.joins("ada"), play.joins("bob")
    play.speaks(ada, "A1")
    play.leaves(bob)
    assert play.turns()[1].outcome is TurnOutcome.SKIP
    assert play.speaking == ada
    play.speaks(ada, "A2")
    play.joins("bob", "bob-again")
    play.speaks(ada, "A3")
    assert [text for _, text in play.heard("bob-again")] == ["A2", "A3"]


def test_8_1_a_required_seat_that_leaves_pauses_until_the_operator_decides() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.leaves(ada)
    assert play.state() is DebateState.PAUSED
    assert play.debate.reason == "missing_required_participant"
    assert play.ever_sent(DebatePaused)[-1].missing == (participant("ada"),)
    play.commands(Resume(seats={"ada": Recovery.REMOVE}))
    assert play.speaking == "bob"


def test_a_faulty_seat_that_then_leaves_by_choice_is_absent_not_faulty() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.updates(ada, required=False)
    play.fails(ada)
    play.leaves(ada)
    assert play.debate.roster.troubled() == []
    play.commands(Resume())
    assert play.speaking == "bob"


def test_9_3_a_human_who_steps_away_no_longer_holds_the_debate() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.updates(ada, required=False, disconnect_policy=DisconnectPolicy.DROP)
    play.skips(ada)
    play.leaves(ada)
    assert play.state() is DebateState.RUNNING
    assert play.speaking == bob


def test_when_nobody_is_left_to_speak_the_debate_pauses() -> None:
    play = Playbook(("ada",), roster={"mode": "dynamic", "required_names": ["ada"]})
    ada = play.joins("ada")
    play.updates(ada, required=False)
    play.leaves(ada)
    assert (play.state(), play.debate.reason) == (DebateState.PAUSED, "nobody_to_speak")


def test_a_record_that_was_delayed_pauses_a_debate_that_runs_and_no_other() -> None:
    play = Playbook()
    play.joins("ada")
    assert play.happens(RecordDelayed("disk full")) == []
    for name in ("bob", "cyn"):
        play.joins(name)
    play.happens(RecordDelayed("disk full"))
    assert (play.state(), play.debate.reason, play.speaking) == (DebateState.PAUSED, "disk full", "ada")
    assert play.happens(RecordDelayed("again")) == []
    play.skips("ada")
    play.commands(Resume())
    assert play.speaking == "bob"


def test_a_pause_that_lasts_too_long_is_said_once_and_changes_nothing() -> None:
    play = Playbook(limits={"max_pause_seconds": 60, "turn_seconds": 500})
    _, bob, _ = play.everybody_joins()
    play.is_lost(bob)
    assert play.debate.next_deadline() == play.now + 60
    play.after(60)
    assert play.latest_events() == [EventName.PAUSE_OVERDUE]
    assert play.state() is DebateState.PAUSED
    play.after(600)
    assert EventName.PAUSE_OVERDUE not in play.latest_events()


def test_a_pause_that_ended_is_not_overdue() -> None:
    play = Playbook(limits={"max_pause_seconds": 60, "turn_seconds": 500})
    play.everybody_joins()
    play.commands(Pause())
    play.commands(Resume())
    play.after(60)
    assert play.events(EventName.PAUSE_OVERDUE) == []


def test_a_seat_that_was_skipped_before_its_turn_has_none_in_this_round() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.is_lost(bob)
    again = play.joins(bob, "bob-again")
    play.commands(Resume(seats={"bob": Recovery.SKIP}))
    play.speaks(ada, "A1")
    assert play.was_given_the_floor(cyn)
    assert play.events(EventName.ROUND_COMPLETED) == []
    play.speaks(cyn, "C1")
    assert len(play.events(EventName.ROUND_COMPLETED)) == 1
    play.speaks(ada, "A2")
    assert play.was_given_the_floor(again)


@pytest.mark.parametrize("policy", ["round_robin", "least_recently_spoken", "most_recently_contradicted"])
def test_whoever_lost_a_turn_to_the_operator_is_not_chosen_again_in_the_same_round(policy: str) -> None:
    play = Playbook(turn_policy=policy)
    ada, bob, cyn = play.everybody_joins()
    play.commands(ForceTurnEnd())
    assert play.was_given_the_floor(bob)
    play.speaks(bob, "Well.")
    assert play.was_given_the_floor(cyn)
    play.speaks(cyn, "Well.")
    assert len(play.events(EventName.ROUND_COMPLETED)) == 1
    assert play.was_given_the_floor(ada)


def test_the_operator_may_call_a_seat_that_was_skipped() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    play.commands(Next(seat="bob"))
    play.commands(Resume(seats={"ada": Recovery.SKIP}))
    play.commands(Next(seat="ada"))
    play.speaks("bob", "B1")
    assert play.was_given_the_floor(ada)


def test_a_newcomer_that_leaves_before_it_is_bound_does_not_pause_the_debate() -> None:
    play = Playbook(("ada",), roster={"mode": "dynamic", "required_names": ["ada"]})
    play.joins("ada")
    play.registers("dan", required=True)
    play.leaves("dan")
    assert play.state() is DebateState.RUNNING


def test_a_seat_that_is_lost_after_its_speech_had_its_prompt() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.says(ada, "A1")
    play.is_lost(ada)
    assert play.seat("ada").prompt_sent is PromptSent.YES
