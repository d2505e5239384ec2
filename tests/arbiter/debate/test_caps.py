"""The cost cap (§5.7, decision 10): checked before a turn and after it, and named when it stops."""

from __future__ import annotations

import pytest
from playbook import Playbook, participant

from arbiter.debate.caps import Meter, tokens_of
from consilium.config import Caps
from consilium.messages import (
    MAX_COUNT,
    MAX_USD,
    DebateEnded,
    DebateState,
    Meta,
    Pause,
    Phase,
    Resume,
    SetPhase,
    Terminate,
    TurnStart,
    Usage,
    When,
)
from consilium.records import EventName, TurnOutcome


def test_after_max_rounds_the_debate_is_stopped_by_cap_not_finished() -> None:
    play = Playbook(caps={"max_rounds": 2})
    ada, *_ = play.everybody_joins()
    play.round()
    assert play.state() is DebateState.RUNNING
    play.round()
    assert play.state() is DebateState.STOPPED_BY_CAP
    (ended,) = play.sent(DebateEnded, ada)
    assert (ended.outcome, ended.cap, ended.turn_counter) == ("STOPPED_BY_CAP", "max_rounds", 6)
    (reached,) = play.events(EventName.CAP_REACHED)
    assert reached.data == {"cap": "max_rounds", "used": 2, "limit": 2}
    assert play.sent(TurnStart) == []


def test_a_round_that_both_reaches_its_cap_and_was_to_be_the_last_is_finished() -> None:
    play = Playbook(caps={"max_rounds": 1})
    play.everybody_joins()
    play.commands(Terminate(when=When.ROUND_END))
    play.round()
    assert play.state() is DebateState.FINISHED


def test_tokens_are_counted_in_and_out_and_the_turn_that_reaches_the_cap_is_kept() -> None:
    play = Playbook(caps={"max_tokens": 100})
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1", Usage(tokens_in=50, tokens_out=49))
    assert play.was_given_the_floor(bob)
    play.speaks(bob, "B1", Usage(tokens_out=1))
    assert play.state() is DebateState.STOPPED_BY_CAP
    assert play.turns()[-1].text == "B1"
    assert play.status().cost.tokens_total == 100


def test_unknown_usage_is_unknown_and_said() -> None:
    play = Playbook(caps={"max_tokens": 100})
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "Eight by", None)
    play.speaks(bob, "B1", Usage(model="m"))
    status = play.status()
    assert status.cost.tokens_total is None
    assert status.cost.tokens_unknown_turns == 2
    assert status.cost.tokens_estimated == 3, "a token is four bytes, rounded up for each turn"
    assert any("2 turns reported no tokens" in warning for warning in status.warnings)
    assert play.seat(ada).tokens is None


def test_money_stops_where_clients_report_it() -> None:
    play = Playbook(caps={"max_usd": 0.5})
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1", Usage(usd=0.3))
    play.speaks(bob, "B1", Usage(usd=0.2))
    assert play.state() is DebateState.STOPPED_BY_CAP
    assert play.seat(ada).usd == 0.3
    assert play.status().cost.usd_total == 0.5


def test_an_open_turn_may_finish_after_the_time_is_up_and_nothing_follows_it() -> None:
    play = Playbook(caps={"max_seconds": 60}, limits={"turn_seconds": 120})
    ada, *_ = play.everybody_joins()
    play.after(90)
    assert play.state() is DebateState.RUNNING
    play.speaks(ada, "A1")
    assert play.state() is DebateState.STOPPED_BY_CAP
    assert play.turns()[0].outcome is TurnOutcome.SPEECH


def test_time_spent_paused_does_not_count() -> None:
    play = Playbook(caps={"max_seconds": 60}, limits={"turn_seconds": 120})
    ada, *_ = play.everybody_joins()
    play.now += 30
    play.commands(Pause())
    play.speaks(ada, "A1")
    play.after(1000)
    play.commands(Resume())
    assert play.state() is DebateState.RUNNING
    assert play.status().cost.elapsed_s == 30
    play.now += 30
    play.speaks("bob", "B1")
    assert play.state() is DebateState.STOPPED_BY_CAP


def test_with_nobody_speaking_the_alarm_is_set_to_the_time_cap() -> None:
    play = Playbook(caps={"max_seconds": 60}, turn_policy="manual")
    play.everybody_joins()
    assert play.debate.next_deadline() == play.now + 60
    play.after(60)
    assert play.state() is DebateState.STOPPED_BY_CAP
    assert play.debate.next_deadline() is None


def test_a_cap_reached_during_a_pause_stops_only_after_the_operator_resumes() -> None:
    play = Playbook(caps={"max_tokens": 10})
    ada, *_ = play.everybody_joins()
    play.commands(Pause())
    play.speaks(ada, "A1", Usage(tokens_out=10))
    assert play.state() is DebateState.PAUSED
    play.commands(Resume())
    assert play.state() is DebateState.STOPPED_BY_CAP
    assert play.sent(TurnStart) == []


def test_a_failed_turn_may_have_cost_something_and_counts_as_unknown() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada)
    assert play.status().cost.tokens_unknown_turns == 1


@pytest.mark.parametrize(
    ("meta", "unknown"),
    [
        (Meta(brand="human"), 0),
        (Meta(brand="anna", adapter="human"), 0),
        (Meta(brand="llm", adapter="native"), 1),
        (Meta(), 1),
    ],
)
def test_a_person_s_turn_costs_nothing_and_a_client_s_pass_costs_what_nobody_knows(
    meta: Meta, unknown: int
) -> None:
    play = Playbook(("ada",), caps={"max_tokens": 900})
    ada = play.joins("ada", meta=meta)
    play.skips(ada)
    status = play.status()
    assert (status.cost.tokens_unknown_turns, status.cost.tokens_estimated) == (unknown, 0)
    assert bool(status.warnings) == bool(unknown)
    play.speaks(ada, "Eight of them: two tokens.")
    cost = play.status().cost
    assert (cost.tokens_unknown_turns, cost.tokens_estimated) == (2 * unknown, 7 * unknown)
    play.ends(ada, usage=Usage(tokens_in=3))
    assert play.status().cost.tokens_total == 3, "whoever says that it took some is believed"


@pytest.mark.parametrize(
    ("caps", "reports", "warned"),
    [
        ({"max_tokens": 900}, False, True),
        ({"max_tokens": 900}, True, False),
        ({"max_tokens": 900}, None, False),
        ({"max_rounds": 9}, False, False),
    ],
)
def test_a_cap_on_tokens_with_a_client_that_reports_none_warns_from_the_start(
    caps: dict[str, int], reports: bool | None, warned: bool
) -> None:
    play = Playbook(("ada", "bob"), caps=caps)
    play.joins("ada", meta=Meta(reports_usage=reports))
    assert bool(play.events(EventName.USAGE_UNREPORTED)) == warned
    waiting = [warning for warning in play.status().warnings if "waiting" not in warning]
    assert bool(waiting) == warned
    if warned:
        (event,) = play.events(EventName.USAGE_UNREPORTED)
        assert (event.participant_id, event.data) == (
            participant("ada"),
            {"cap": "max_tokens", "limit": 900},
        )
        play.joins("bob", meta=Meta(reports_usage=False))
        (both,) = play.status().warnings
        assert both.startswith(f"the clients of {participant('ada')}, {participant('bob')} will report no")


def test_phases_do_not_reset_the_rounds() -> None:
    play = Playbook(caps={"max_rounds": 2})
    play.everybody_joins()
    play.commands(SetPhase(phase=Phase.CLOSING, when=When.ROUND_END))
    play.round()
    assert play.debate.phase is Phase.CLOSING
    play.round()
    assert play.state() is DebateState.STOPPED_BY_CAP


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        (None, None),
        (Usage(), None),
        (Usage(tokens_in=0), 0),
        (Usage(tokens_out=3), 3),
        (Usage(tokens_in=2, tokens_out=3, tokens_cached=100), 5),
    ],
)
def test_tokens_of_a_turn(usage: Usage | None, tokens: int | None) -> None:
    assert tokens_of(usage) == tokens


def test_the_clock_of_a_meter_runs_only_between_run_and_hold() -> None:
    meter = Meter(Caps(max_seconds=10))
    assert meter.reached(1e9) is None
    meter.hold(5)
    meter.run(100)
    meter.hold(104)
    assert meter.elapsed(1000) == 4
    meter.run(200)
    assert meter.time_is_up_at() == 206
    assert meter.reached(205.9) is None
    reached = meter.reached(206)
    assert reached is not None
    assert (reached.cap, reached.used) == ("max_seconds", 10)


def test_no_usage_makes_the_sum_unspeakable() -> None:
    play = Playbook(caps={"max_rounds": 100})
    ada, bob, _ = play.everybody_joins()
    most = Usage(tokens_in=MAX_COUNT, tokens_out=MAX_COUNT, usd=MAX_USD)
    for session in (ada, bob, "cyn", ada):
        play.speaks(session, "Expensive.", most)
    status = play.status()
    assert (status.cost.tokens_total, status.cost.usd_total) == (MAX_COUNT, MAX_USD)
    assert (status.seats[0].tokens, status.seats[0].usd) == (MAX_COUNT, MAX_USD)


def test_a_client_that_reports_nothing_cannot_pass_the_cap_on_tokens_by() -> None:
    play = Playbook(caps={"max_tokens": 100})
    ada, *_ = play.everybody_joins()
    play.speaks(ada, "x" * 400, None)
    assert play.state() is DebateState.STOPPED_BY_CAP


def test_a_client_that_passes_is_counted_as_far_as_it_says_what_it_took() -> None:
    """Else a council whose clients all pass would spend for ever under max_tokens."""
    play = Playbook(("ada", "bob"), caps={"max_tokens": 100})
    ada, bob = play.joins("ada"), play.joins("bob", meta=Meta(brand="human"))
    play.ends(ada, usage=Usage(tokens_in=60, tokens_out=1))
    assert (play.turns()[0].outcome, play.turns()[0].tokens) == (TurnOutcome.SKIP, {"in": 60, "out": 1})
    assert play.seat("ada").tokens == play.status().cost.tokens_total == 61
    play.skips(bob)
    assert play.status().cost.tokens_unknown_turns == 0, "a person who skips costs nothing"
    play.ends(ada, usage=Usage(tokens_in=60, tokens_out=1))
    assert play.state() is DebateState.STOPPED_BY_CAP


@pytest.mark.parametrize("first", ["speech", "end"])
def test_what_a_speech_says_of_its_cost_counts_and_is_not_counted_twice(first: str) -> None:
    play = Playbook(("ada",))
    ada, turn = play.joins("ada"), play.turn
    said, ended = Usage(tokens_in=5, tokens_out=5), Usage(tokens_in=7, tokens_out=7)
    if first == "end":
        play.ends(ada, speech=True, usage=ended, turn=turn)
    play.says(ada, "A1", said, turn)
    if first == "speech":
        play.ends(ada, speech=True, usage=ended, turn=turn)
    assert play.status().cost.tokens_total == 10
