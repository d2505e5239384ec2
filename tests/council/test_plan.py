"""`council.plan`: the operator's commands of a debate that runs its course."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import Playbook
from transcripts import event, header, joined, turn

from consilium.config import Caps, Council, Participant, Roster, RosterSeat
from consilium.messages import DebateState, Phase, Resume
from consilium.records import EventName
from council.plan import COMPLETED, Starter, course


def council(rebuttals: int = 1, **changes: Any) -> Council:
    seats = tuple(Participant(name=name) for name in ("a", "b"))
    return Council(
        topic="x", caps=Caps(max_rounds=99), participants=seats, rebuttal_rounds=rebuttals, **changes
    )


def nobody_awaited() -> Council:
    optional = tuple(RosterSeat(name=name, required=False) for name in ("a", "b"))
    return council(roster=Roster(participants=optional))


@pytest.mark.parametrize("rebuttals", range(5))
def test_a_whole_debate_has_no_stray_turn(rebuttals: int) -> None:
    play = Playbook(("a", "b"), rebuttal_rounds=rebuttals)
    for order in course(council(rebuttals)):
        play.commands(order)
        assert play.refusal is None
    play.everybody_joins()
    while play.state() is DebateState.RUNNING:
        assert len(play.turns()) < 20
        play.round()
    wanted = [Phase.OPENING, *[Phase.REBUTTAL] * rebuttals, Phase.CLOSING]
    assert [turned.phase for turned in play.turns()] == [phase for phase in wanted for _ in "ab"]
    assert (play.state(), play.debate.reason) == (DebateState.FINISHED, COMPLETED)


def test_where_nobody_is_waited_for_the_start_is_ordered_once_all_have_joined() -> None:
    starter = Starter(nobody_awaited())
    told = [starter.observe(entry) for entry in (joined("a_AB12CD34"), joined("b_AB12CD34"))]
    assert told == [None, Resume()]


def test_a_seat_that_comes_back_before_the_start_is_not_another_one() -> None:
    starter = Starter(nobody_awaited())
    again = event(EventName.PARTICIPANT_JOINED, returned=True)
    told = [starter.observe(entry) for entry in (joined("a_AB12CD34"), again, joined("b_AB12CD34"))]
    assert told == [None, None, Resume()]


def test_where_somebody_is_waited_for_the_start_is_the_arbiter_s() -> None:
    starter = Starter(council())
    assert [starter.observe(joined(f"{name}_AB12CD34")) for name in "ab"] == [None, None]


def test_what_says_nothing_of_the_start_orders_nothing() -> None:
    starter = Starter(nobody_awaited())
    assert [starter.observe(entry) for entry in (header(), turn(1), event(EventName.CAP_REACHED))] == [
        None
    ] * 3
