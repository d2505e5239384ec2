"""Registration, quorum and names (§5.2, §7.1, §7.2)."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import Playbook, participant

from arbiter.debate.roster import _letters
from consilium.errors import ErrorCode
from consilium.messages import (
    DataOk,
    DebateState,
    DisconnectPolicy,
    Kick,
    Meta,
    RegOk,
    Resume,
    StateOk,
    TurnStart,
)
from consilium.records import EventName


def test_the_debate_waits_for_every_required_seat_and_then_starts() -> None:
    play = Playbook()
    play.joins("ada")
    play.joins("bob")
    assert play.state() is DebateState.WAITING_QUORUM
    assert "waiting for: cyn" in play.status().warnings
    play.joins("cyn")
    assert play.state() is DebateState.RUNNING
    assert play.speaking == "ada"


def test_a_seat_is_in_the_rotation_only_once_its_data_channel_is_bound() -> None:
    play = Playbook(("ada",))
    play.registers("ada")
    assert play.state() is DebateState.WAITING_QUORUM
    assert play.events() == []
    play.binds("ada")
    assert [type(m) for m in play.sent(DataOk, "ada")] == [DataOk]
    assert play.state() is DebateState.RUNNING


def test_reg_ok_tells_the_newcomer_what_it_needs_and_what_was_applied() -> None:
    play = Playbook(limits={"heartbeat_seconds": 15})
    play.registers("ada", required=False, data_token="secret-once")
    (ok,) = play.sent(RegOk, "ada")
    assert ok.participant_id == participant("ada")
    assert ok.topic == play.debate.topic
    assert (ok.debate_state, ok.phase, ok.turn_counter) == ("WAITING_QUORUM", "OPENING", 0)
    assert ok.data_token == "secret-once"
    assert ok.heartbeat_interval_ms == 15_000
    assert ok.required is True, "the plan requires it, whatever the seat asked for"


def test_seats_speak_in_the_order_of_the_plan_not_of_their_arrival() -> None:
    play = Playbook()
    for name in ("cyn", "ada", "bob"):
        play.joins(name)
    order = []
    for _ in range(4):
        speaker = play.speaking
        assert speaker is not None
        order.append(speaker)
        play.speaks(speaker, "Yes.")
    assert order == ["ada", "bob", "cyn", "ada"]


def test_a_static_roster_admits_only_its_own_names() -> None:
    play = Playbook()
    play.registers("dan")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.POLICY_DENIED


def test_the_first_of_two_with_one_display_name_keeps_the_seat() -> None:
    play = Playbook()
    play.joins("ada")
    play.registers("ada", "impostor")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.DUPLICATE_DISPLAY_NAME
    assert play.seat("ada").session == "ada"


def test_one_name_under_two_certificates_is_two_seats() -> None:
    play = Playbook(("ada", "bob"))
    play.joins("ada")
    play.joins("ada", "ada-2", participant_id="ada_99AA00BB")
    play.joins("bob")
    order = []
    for _ in range(3):
        speaker = play.speaking
        assert speaker is not None
        order.append(speaker)
        play.speaks(speaker, "Yes.")
    assert sorted(order) == ["ada", "ada-2", "bob"]

    play.commands(Kick(seat="ada"))
    assert play.refusal is not None
    assert "several seats are named ada" in play.refusal.message


def test_a_session_registers_once() -> None:
    play = Playbook()
    play.registers("ada")
    play.registers("bob", "ada")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.INVALID_STATE
    play.binds("ada")
    play.binds("ada")
    assert play.refusal.code is ErrorCode.INVALID_STATE


def test_what_is_not_registered_is_told_so() -> None:
    play = Playbook()
    play.binds("stranger")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.NOT_REGISTERED
    play.reports("stranger", "HUMAN_SKIP")
    assert play.refusal.code is ErrorCode.NOT_REGISTERED


def test_a_registration_that_never_binds_leaves_no_trace() -> None:
    play = Playbook()
    play.registers("ada")
    play.reports("ada", "HUMAN_SKIP")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.INVALID_STATE
    play.is_lost("ada")
    assert list(play.debate.roster) == []
    play.joins("ada", "ada-2")
    assert play.refusal is None


def test_losing_a_required_seat_before_the_start_goes_back_to_waiting() -> None:
    play = Playbook(roster={"mode": "dynamic"})
    play.joins("ada")
    assert play.state() is DebateState.READY
    play.is_lost("ada")
    assert play.state() is DebateState.WAITING_QUORUM
    assert play.latest_events() == [EventName.PARTICIPANT_LEFT]


def test_a_seat_that_leaves_before_the_start_may_come_back() -> None:
    play = Playbook(("ada", "bob"))
    play.joins("ada")
    play.leaves("ada")
    play.joins("ada", "ada-2")
    play.joins("bob")
    assert play.state() is DebateState.RUNNING


def test_a_debate_that_waits_for_nobody_starts_on_the_operators_word() -> None:
    play = Playbook(roster={"mode": "dynamic"})
    play.joins("ada")
    play.joins("bob")
    assert play.state() is DebateState.READY
    assert play.ever_sent(TurnStart) == []
    play.commands(Resume(seats={"ada": "keep"}))  # type: ignore[dict-item]  # as it comes from the wire
    assert play.refusal is not None
    play.commands(Resume())
    assert play.state() is DebateState.RUNNING
    assert play.was_given_the_floor("ada")


def test_7_2_a_newcomer_to_a_running_debate_joins_cold() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"]})
    play.joins("ada")
    play.joins("dan", meta=Meta(role_label="historian"))
    (event,) = play.events(EventName.PARTICIPANT_JOINED_COLD)
    assert event.participant_id == participant("dan")


def test_a_debate_without_cold_entry_admits_nobody_after_its_start() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"], "cold_entry": False})
    play.joins("ada")
    play.registers("dan")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.INVALID_STATE


def test_there_are_only_so_many_seats() -> None:
    play = Playbook(("ada",), roster={"mode": "dynamic"}, limits={"max_seats": 2})
    play.joins("ada")
    play.joins("bob")
    play.registers("cyn")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.AT_CAPACITY
    assert "all 2 seats are taken" in play.refusal.message


def test_a_seat_changes_its_own_state_in_both_directions() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.updates(ada, required=False, disconnect_policy=DisconnectPolicy.DROP)
    (ok,) = play.sent(StateOk, ada)
    assert (ok.required, ok.disconnect_policy, ok.capped_by_profile) == (False, "drop", False)
    play.updates(ada, required=True, over_policy=True)
    (ok,) = play.sent(StateOk, ada)
    assert (ok.required, ok.disconnect_policy, ok.capped_by_profile) == (True, "drop", True)
    play.updates(ada, disconnect_policy=DisconnectPolicy.KEEP_ALIVE)
    (ok,) = play.sent(StateOk, ada)
    assert (ok.required, ok.disconnect_policy) == (True, "keep_alive")
    assert len(play.events(EventName.PARTICIPANT_UPDATED)) == 3


def test_a_change_before_the_seat_is_bound_is_applied_and_not_yet_recorded() -> None:
    play = Playbook()
    play.registers("ada")
    play.updates("ada", required=False)
    assert play.events() == []
    assert play.seat("ada").required is False


def test_a_seat_that_unregisters_before_binding_leaves_no_record() -> None:
    play = Playbook()
    play.registers("ada", required=False)
    play.leaves("ada")
    assert play.events() == []


@pytest.mark.parametrize(
    ("number", "letters"),
    [(0, "A"), (25, "Z"), (26, "AA"), (51, "AZ"), (52, "BA"), (701, "ZZ"), (702, "AAA")],
)
def test_there_is_a_pseudonym_for_any_number_of_speakers(number: int, letters: str) -> None:
    assert _letters(number) == letters


@pytest.mark.parametrize(
    ("name", "wish", "required", "capped"),
    [
        ("ada", {"over_required": True}, True, False),  # §9.4: the roster requires it
        ("ada", {"over_required": True, "over_policy": True}, True, True),
        ("bob", {"over_required": True}, False, True),  # nobody planned that
        ("bob", {"required": True}, True, False),  # its profile allows it
        ("ada", {"over_policy": True}, False, True),
    ],
)
def test_9_4_who_stepped_back_comes_back_up_to_what_the_roster_planned(
    name: str, wish: dict[str, Any], required: bool, capped: bool
) -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"]})
    for joiner in ("ada", "bob"):
        play.joins(joiner)
        play.updates(joiner, required=False)
    play.updates(name, **wish)
    (ok,) = play.sent(StateOk, name)
    assert (ok.required, ok.capped_by_profile) == (required, capped)
    assert play.seat(name).required is required


def test_who_leaves_a_blind_debate_and_returns_is_the_same_speaker() -> None:
    play = Playbook(
        ("ada", "bob"), roster={"mode": "dynamic", "required_names": ["ada"]}, identity_visible=False
    )
    play.joins("ada")
    play.joins("bob", disconnect_policy=DisconnectPolicy.DROP)
    play.leaves("bob")
    assert [seat.name for seat in play.debate.roster] == ["ada"]
    play.joins("cyn")
    play.joins("bob", "bob-again")
    assert {seat.name: seat.pseudonym for seat in play.debate.roster} == {
        "ada": "Speaker A",
        "bob": "Speaker B",
        "cyn": "Speaker C",
    }
