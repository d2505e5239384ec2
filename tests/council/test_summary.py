"""The status tells where a debate got to, claims nothing more than the records, and keeps unknown unknown."""

from __future__ import annotations

import pytest
import transcripts
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue
from transcripts import BUILDER, HUMAN, SCEPTIC, event, turn

from consilium.messages import DebateState, Meta, Phase, Usage
from consilium.records import AnyEntry, EventName, Stored, TurnOutcome, unseal
from council.summary import SeatSummary, Summary, summarise


def summary(*entries: AnyEntry, header: bool = True) -> Summary:
    """Of the entries, one second apart."""
    before: list[AnyEntry] = [transcripts.header()] if header else []
    return summarise(unseal(line) for line in transcripts.sealed([*before, *entries]))


def seat(summary: Summary, participant_id: str) -> SeatSummary:
    (found,) = [seat for seat in summary.seats if seat.participant_id == participant_id]
    return found


STARTED = event(EventName.DEBATE_STARTED, phase="OPENING")


def test_a_finished_debate_is_told_whole() -> None:
    told = summarise(unseal(line) for line in transcripts.sealed(transcripts.debate()))
    assert told.debate_id == transcripts.DEBATE
    assert told.topic == "Should the billing service be rewritten?"
    assert (told.state, told.reason, told.cap) == (DebateState.FINISHED, "the operator closed it", None)
    assert told.phases == ("OPENING", "REBUTTAL")
    assert told.rounds == 2
    assert told.turns == {TurnOutcome.SPEECH: 3, TurnOutcome.SKIP: 1, TurnOutcome.FAILED: 1}
    assert (told.tokens_total, told.tokens_unknown_turns) == (2280, 2)
    assert (told.elapsed_s, told.paused_s) == (13.0, 1.0)
    assert told.caps == {"max_rounds": 3, "max_tokens": 9000}
    assert told.speaking is None
    assert [seat.participant_id for seat in told.seats] == [SCEPTIC, BUILDER, HUMAN]


def test_seats_are_told_in_the_order_of_the_council_and_strangers_after_them() -> None:
    plan: list[JsonValue] = [{"name": "ana"}, "not a seat", {"name": []}, {"name": "sceptic"}]
    came = [transcripts.joined(seat) for seat in (BUILDER, SCEPTIC, HUMAN)]
    planned = summary(transcripts.header(roster={"participants": plan}), *came, header=False)
    assert [seat.participant_id for seat in planned.seats] == [HUMAN, SCEPTIC, BUILDER]
    rosters: list[JsonValue] = [None, {}, {"participants": None}, {"participants": []}]
    for roster in rosters:
        told = summary(transcripts.header(roster=roster), *came, header=False)
        assert [seat.participant_id for seat in told.seats] == [BUILDER, SCEPTIC, HUMAN]


def test_a_seat_is_told_with_what_it_said_of_itself_and_what_it_did() -> None:
    told = summarise(unseal(line) for line in transcripts.sealed(transcripts.debate()))
    builder = seat(told, BUILDER)
    assert (builder.brand, builder.model, builder.role_label) == ("qwen", "coder", "builder")
    assert (builder.pseudonym, builder.required) == ("Speaker B", True)
    assert (builder.turns, builder.speeches, builder.turns_since) == (2, 1, 3)
    assert (builder.tokens, builder.tokens_unknown_turns) == (None, 2)
    assert seat(told, SCEPTIC).turns_since == 0
    assert seat(told, HUMAN).turns_since is None


def test_nothing_recorded_is_nothing_claimed() -> None:
    told = summarise([])
    assert (told.topic, told.debate_id, told.arbiter) == ("", "", "")
    assert (told.state, told.began, told.updated) == (DebateState.WAITING_QUORUM, None, None)
    assert (told.tokens_total, told.tokens_unknown_turns, told.usd_total) == (None, 0, None)
    assert (told.turns, told.caps, told.seats, told.phases) == ({}, {}, (), ())


@pytest.mark.parametrize(
    ("entries", "state", "reason"),
    [
        ([], DebateState.WAITING_QUORUM, None),
        ([STARTED], DebateState.RUNNING, None),
        ([STARTED, event(EventName.DEBATE_PAUSED, reason="operator")], DebateState.PAUSED, "operator"),
        ([STARTED, event(EventName.DEBATE_PAUSED)], DebateState.PAUSED, None),
        (
            [STARTED, event(EventName.DEBATE_PAUSED, reason="x"), event(EventName.DEBATE_RESUMING)],
            DebateState.RESUMING,
            "x",
        ),
        (
            [STARTED, event(EventName.DEBATE_PAUSED, reason="x"), event(EventName.DEBATE_RESUMED)],
            DebateState.RUNNING,
            None,
        ),
        ([STARTED, event(EventName.ARBITER_RESTARTED)], DebateState.PAUSED, "the Arbiter was restarted"),
        ([event(EventName.ARBITER_RESTARTED)], DebateState.WAITING_QUORUM, None),
        (
            [STARTED, event(EventName.DEBATE_PAUSED, reason="x"), event(EventName.ARBITER_RESTARTED)],
            DebateState.PAUSED,
            "x",
        ),
        ([event(EventName.DEBATE_ENDED, outcome="ERROR", reason="a bug")], DebateState.ERROR, "a bug"),
        ([event(EventName.DEBATE_ENDED, outcome="RUNNING")], DebateState.FINISHED, None),
        ([event(EventName.DEBATE_ENDED)], DebateState.FINISHED, None),
    ],
)
def test_the_state_follows_the_events(
    entries: list[AnyEntry], state: DebateState, reason: str | None
) -> None:
    told = summary(*entries)
    assert (told.state, told.reason) == (state, reason)


def test_a_debate_that_a_cap_stopped_names_the_cap() -> None:
    told = summary(STARTED, event(EventName.DEBATE_ENDED, outcome="STOPPED_BY_CAP", cap="max_tokens"))
    assert (told.state, told.cap) == (DebateState.STOPPED_BY_CAP, "max_tokens")


def test_whoever_has_the_floor_has_it_until_the_turn_ends() -> None:
    open_turn = event(EventName.TURN_STARTED, SCEPTIC, turn=1)
    assert summary(STARTED, open_turn).speaking == SCEPTIC
    assert summary(STARTED, open_turn, turn(1)).speaking is None
    assert summary(STARTED, open_turn, event(EventName.ARBITER_RESTARTED)).speaking is None


def test_pauses_and_the_time_without_an_arbiter_do_not_count_as_run() -> None:
    told = summary(
        STARTED,  # second 1
        turn(1),
        event(EventName.DEBATE_PAUSED, reason="operator"),  # 3
        event(EventName.DEBATE_RESUMING),
        event(EventName.DEBATE_RESUMED),  # 5
        turn(2),  # 6
        event(EventName.ARBITER_RESTARTED),  # 7
        event(EventName.DEBATE_RESUMED),  # 8
        event(EventName.DEBATE_ENDED, outcome="FINISHED"),  # 9
    )
    assert told.elapsed_s == (3 - 1) + (6 - 5) + (9 - 8)
    assert told.paused_s == (5 - 3) + (8 - 6)


def test_time_that_cannot_be_read_or_runs_backwards_is_not_counted() -> None:
    def at(ts: str, seq: int, entry: AnyEntry) -> Stored:
        return Stored(seq=seq, prev="", ts=ts, entry=entry)

    told = summarise(
        [
            at("yesterday", 0, transcripts.header()),
            at("2026-01-01T00:00:10.000Z", 1, STARTED),
            at("2026-01-01T00:00:05.000Z", 2, turn(1)),
            at("2026-01-01T00:00:08.000Z", 3, turn(2)),
        ]
    )
    assert (told.began, told.updated) == ("2026-01-01T00:00:10.000Z", "2026-01-01T00:00:08.000Z")
    assert told.elapsed_s == 3


def test_tokens_that_are_known_in_part_are_counted_as_far_as_they_are_known() -> None:
    told = summary(STARTED, turn(1, tokens=(None, 7)), turn(2, tokens=(None, None)), turn(3, tokens=(3, 0)))
    assert (told.tokens_total, told.tokens_unknown_turns) == (10, 1)


@pytest.mark.parametrize("meta", [Meta(brand="human"), Meta(adapter="human")])
def test_a_persons_turns_leave_no_tokens_unknown(meta: Meta) -> None:
    told = summary(STARTED, turn(1, HUMAN, tokens=None, meta=meta))
    assert (told.tokens_total, told.tokens_unknown_turns) == (None, 0)


def test_a_client_s_pass_and_its_failed_turn_leave_tokens_unknown_and_a_person_s_skip_does_not() -> None:
    told = summary(
        STARTED,
        turn(1, outcome=TurnOutcome.SKIP, tokens=None),
        turn(2, outcome=TurnOutcome.REVOKED, tokens=None),
        turn(3, HUMAN, outcome=TurnOutcome.SKIP, tokens=None, meta=Meta(brand="human")),
    )
    assert told.tokens_unknown_turns == 2


def test_money_is_added_where_it_is_reported() -> None:
    told = summary(STARTED, turn(1, usage=Usage(usd=0.25)), turn(2, usage=Usage(usd=0.5)), turn(3))
    assert told.usd_total == 0.75
    assert seat(told, SCEPTIC).usd == 0.75


def test_phases_are_told_in_order_and_again_when_they_come_again() -> None:
    told = summary(
        STARTED,
        turn(1),
        event(EventName.PHASE_CHANGED, phase="REBUTTAL"),
        turn(2, phase=Phase.REBUTTAL),
        event(EventName.PHASE_CHANGED, phase="OPENING"),
        event(EventName.PHASE_CHANGED),
    )
    assert told.phases == ("OPENING", "REBUTTAL", "OPENING")


def test_the_topic_is_the_latest() -> None:
    assert summary(event(EventName.TOPIC_CHANGED, topic="Another?")).topic == "Another?"
    assert summary(event(EventName.TOPIC_CHANGED)).topic == transcripts.header().topic


def test_a_seat_that_left_and_came_back_is_present() -> None:
    left = event(EventName.PARTICIPANT_LEFT, SCEPTIC, reason="bye")
    told = summary(transcripts.joined(SCEPTIC), left)
    assert seat(told, SCEPTIC).present is False
    told = summary(transcripts.joined(SCEPTIC), left, event(EventName.PARTICIPANT_JOINED_COLD, SCEPTIC))
    assert seat(told, SCEPTIC).present is True
    assert seat(told, SCEPTIC).brand == "claude"


def test_an_update_changes_what_it_names_and_nothing_else() -> None:
    update = event(EventName.PARTICIPANT_UPDATED, SCEPTIC, required=False)
    told = seat(summary(transcripts.joined(SCEPTIC, pseudonym="Speaker A"), update), SCEPTIC)
    assert (told.required, told.pseudonym, told.brand) == (False, "Speaker A", "claude")


def test_a_fault_is_told_until_the_seat_speaks_or_the_operator_resumes() -> None:
    fault = event(EventName.PARTICIPANT_FAULT, SCEPTIC, reason="stalled")
    assert seat(summary(STARTED, fault), SCEPTIC).fault == "stalled"
    assert seat(summary(STARTED, event(EventName.PARTICIPANT_FAULT, SCEPTIC)), SCEPTIC).fault == "failed"
    assert seat(summary(STARTED, fault, turn(1)), SCEPTIC).fault is None
    assert seat(summary(STARTED, fault, event(EventName.DEBATE_RESUMED)), SCEPTIC).fault is None


@pytest.mark.parametrize("caps", [None, [], "none", {"max_rounds": "three", "max_usd": 0.5}])
def test_caps_that_are_no_numbers_are_not_claimed(
    caps: list[str] | str | dict[str, str | float] | None,
) -> None:
    entries: list[AnyEntry] = [transcripts.header(caps=caps)]  # type: ignore[arg-type] # any JSON, on purpose
    expected = {"max_usd": 0.5} if isinstance(caps, dict) else {}
    assert summary(*entries, header=False).caps == expected


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
KEYS = ["reason", "phase", "meta", "required", "pseudonym", "outcome", "cap", "topic", "round", "name"]


@given(
    st.lists(
        st.builds(
            lambda name, who, data: event(name, who, **data),
            st.sampled_from(EventName),
            st.sampled_from([None, SCEPTIC, BUILDER]),
            st.dictionaries(st.sampled_from(KEYS), JSON, max_size=4),
        ),
        max_size=8,
    )
)
@settings(max_examples=150)
def test_no_data_of_an_event_upsets_the_summary(entries: list[AnyEntry]) -> None:
    told = summary(*entries)
    assert told.state in DebateState
    assert told.elapsed_s + told.paused_s <= len(entries)
