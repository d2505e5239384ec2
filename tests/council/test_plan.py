"""`council.plan`: the operator's commands of a debate that runs its course."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transcripts import event, header, joined, turn

from consilium.config import Caps, Council, Participant, Roster, RosterSeat
from consilium.messages import Phase, Resume, SetPhase, Terminate, When
from consilium.records import EventName
from council.plan import COMPLETED, Plan

if TYPE_CHECKING:
    from consilium.records import AnyEntry
    from council.plan import Order

REBUTTAL = SetPhase(phase=Phase.REBUTTAL, when=When.ROUND_END)
CLOSING = SetPhase(phase=Phase.CLOSING, when=When.ROUND_END)
END = Terminate(when=When.ROUND_END, reason=COMPLETED)

STARTED = event(EventName.DEBATE_STARTED, phase="OPENING")


def council(rebuttals: int = 1, **changes: Any) -> Council:
    seats = tuple(Participant(name=name) for name in ("a", "b"))
    return Council(
        topic="x", caps=Caps(max_rounds=99), participants=seats, rebuttal_rounds=rebuttals, **changes
    )


def completed(number: int) -> AnyEntry:
    return event(EventName.ROUND_COMPLETED, round=number)


def entered(phase: str) -> AnyEntry:
    return event(EventName.PHASE_CHANGED, phase=phase, previous="")


def orders(plan: Plan, *entries: AnyEntry) -> list[Order | None]:
    return [plan.observe(entry) for entry in entries]


def test_each_change_is_ordered_when_the_last_round_of_a_phase_begins() -> None:
    told = orders(
        Plan(council()),
        STARTED,
        completed(1),
        entered("REBUTTAL"),
        completed(2),
        entered("CLOSING"),
        completed(3),
        event(EventName.DEBATE_ENDED, outcome="FINISHED"),
    )
    assert told == [REBUTTAL, None, CLOSING, None, END, None, None]


def test_rebuttal_lasts_as_many_rounds_as_the_council_says() -> None:
    plan = Plan(council(rebuttals=3))
    assert orders(plan, STARTED, completed(1)) == [REBUTTAL, None]
    assert orders(plan, entered("REBUTTAL"), completed(2), completed(3)) == [None, None, CLOSING]


def test_without_rebuttals_the_closing_follows_the_opening() -> None:
    assert orders(Plan(council(rebuttals=0)), STARTED) == [CLOSING]


def test_an_order_is_given_once_however_long_its_round_takes() -> None:
    plan = Plan(council())
    assert orders(plan, STARTED, turn(1), turn(2), completed(1), completed(2)) == [
        REBUTTAL,
        None,
        None,
        None,
        None,
    ]


def test_what_says_nothing_of_the_course_orders_nothing() -> None:
    told = orders(Plan(council()), header(), joined("a_AB12CD34"), turn(1), event(EventName.CAP_REACHED))
    assert told == [None] * 4


def test_a_phase_set_by_hand_is_where_the_plan_goes_on() -> None:
    plan = Plan(council(rebuttals=2))
    assert orders(plan, STARTED, entered("CLOSING")) == [REBUTTAL, END]


def test_a_rebuttal_set_by_hand_where_none_was_planned_lasts_one_round() -> None:
    assert orders(Plan(council(rebuttals=0)), STARTED, entered("REBUTTAL")) == [CLOSING, CLOSING]


def test_after_the_end_nothing_is_ordered() -> None:
    plan = Plan(council())
    orders(plan, STARTED, event(EventName.DEBATE_ENDED, outcome="FINISHED"))
    assert plan.observe(completed(1)) is None


def test_a_round_before_the_start_is_no_round() -> None:
    assert Plan(council()).observe(completed(1)) is None


def test_where_nobody_is_waited_for_the_start_is_ordered_once_all_have_joined() -> None:
    optional = tuple(RosterSeat(name=name, required=False) for name in ("a", "b"))
    plan = Plan(council(roster=Roster(participants=optional)))
    assert orders(plan, joined("a_AB12CD34"), joined("b_AB12CD34"), STARTED) == [None, Resume(), REBUTTAL]


def test_a_seat_that_comes_back_before_the_start_is_not_another_one() -> None:
    optional = tuple(RosterSeat(name=name, required=False) for name in ("a", "b"))
    plan = Plan(council(roster=Roster(participants=optional)))
    again = event(EventName.PARTICIPANT_JOINED, returned=True)
    assert orders(plan, joined("a_AB12CD34"), again, joined("b_AB12CD34")) == [None, None, Resume()]


def test_where_somebody_is_waited_for_the_start_is_the_arbiter_s() -> None:
    plan = Plan(council())
    assert orders(plan, joined("a_AB12CD34"), joined("b_AB12CD34")) == [None, None]


@pytest.mark.parametrize("rebuttals", range(5))
def test_a_whole_debate_has_no_stray_turn(rebuttals: int) -> None:
    """An Arbiter that obeys at the end of each round: the phases have the lengths that were asked for."""
    plan = Plan(council(rebuttals))
    waiting = plan.observe(STARTED)
    phases = [Phase.OPENING]
    ended = False
    while not ended:
        assert len(phases) < 20
        taken, waiting = waiting, None
        waiting = plan.observe(completed(len(phases))) or waiting
        match taken:
            case Terminate():
                ended = True
            case SetPhase(phase=phase):
                phases.append(phase)
                waiting = plan.observe(entered(phase)) or waiting
            case _:
                phases.append(phases[-1])
    assert phases == [Phase.OPENING, *[Phase.REBUTTAL] * rebuttals, Phase.CLOSING]


@given(st.lists(st.sampled_from([STARTED, completed(1), *map(entered, Phase), turn(1)]), max_size=12))
def test_never_two_orders_for_one_phase(entries: list[AnyEntry]) -> None:
    plan = Plan(council())
    for_this_phase = 0
    for entry in entries:
        if entry == STARTED or getattr(entry, "event", None) is EventName.PHASE_CHANGED:
            for_this_phase = 0
        for_this_phase += plan.observe(entry) is not None
        assert for_this_phase <= 1
