"""What is counted of what happens."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from arbiter.debate.effects import Channel
from arbiter.edge.listener import HandshakeOutcome
from arbiter.metrics import tally as tally_module
from arbiter.metrics.catalogue import TURN_SECONDS
from arbiter.metrics.tally import MOST_SEATS, OTHER, Spread, Tally
from arbiter.observe import NOBODY, Observer
from consilium.errors import ErrorCode
from consilium.messages import Fault, Meta, Phase, Usage
from consilium.records import TurnOutcome, TurnRecord


def turn(seat: str = "ada_AB12CD34", outcome: TurnOutcome = TurnOutcome.SPEECH, **changes: Any) -> TurnRecord:
    fields: dict[str, Any] = {
        "turn_id": 1,
        "participant_id": seat,
        "phase": Phase.OPENING,
        "outcome": outcome,
        "meta": Meta(),
        "tokens": None,
        "usage": None,
        "duration_s": 2.0,
        "text": None,
    }
    return TurnRecord(**fields | changes)


def test_only_a_speech_is_timed_and_every_turn_is_counted() -> None:
    counted = Tally()
    for outcome in TurnOutcome:
        counted.turn_ended(turn(outcome=outcome))
    assert counted.turns == {("ada_AB12CD34", outcome.value): 1 for outcome in TurnOutcome}
    assert sum(counted.turn_seconds["ada_AB12CD34"].counts) == 1


def test_what_is_not_reported_is_not_counted_as_nothing() -> None:
    counted = Tally()
    counted.turn_ended(turn(usage=Usage(tokens_out=7)))
    counted.turn_ended(turn(usage=Usage()))
    assert counted.tokens == {("ada_AB12CD34", "out"): 7}
    assert not counted.cached
    assert not counted.usd
    assert not counted.first_byte_seconds
    counted.turn_ended(turn(usage=Usage(tokens_in=0, usd=0.0)))
    assert counted.tokens["ada_AB12CD34", "in"] == 0
    assert counted.usd == {"ada_AB12CD34": 0.0}


def test_a_failed_turn_costs_what_it_cost() -> None:
    counted = Tally()
    counted.turn_ended(turn(outcome=TurnOutcome.FAILED, usage=Usage(tokens_in=5, tokens_cached=2, usd=1.5)))
    counted.turn_ended(turn(outcome=TurnOutcome.SKIP, usage=Usage(tokens_in=6, tokens_cached=3, usd=0.5)))
    assert counted.tokens["ada_AB12CD34", "in"] == 11
    assert counted.cached["ada_AB12CD34"] == 5
    assert counted.usd["ada_AB12CD34"] == 2.0


def test_a_turn_that_failed_is_counted_by_what_failed() -> None:
    counted = Tally()
    counted.turn_ended(turn(outcome=TurnOutcome.FAILED, fault=Fault.QUOTA))
    counted.turn_ended(turn(outcome=TurnOutcome.FAILED, fault=Fault.QUOTA))
    counted.turn_ended(turn(outcome=TurnOutcome.REVOKED))
    assert counted.faults == {("ada_AB12CD34", "quota"): 2}


def test_a_label_does_not_grow_with_the_debate() -> None:
    counted = Tally()
    for number in range(MOST_SEATS + 5):
        counted.turn_ended(turn(f"s{number}_AB12CD34"))
    counted.turn_ended(turn("s0_AB12CD34"))
    assert len({seat for seat, _ in counted.turns}) == MOST_SEATS + 1
    assert counted.turns[OTHER, "speech"] == 5
    assert counted.turns["s0_AB12CD34", "speech"] == 2


def test_whoever_comes_under_many_names_fills_no_memory() -> None:
    counted, most = Tally(), tally_module.MOST_REMEMBERED
    for number in range(most + 3):
        counted.heartbeat_returned(f"s{number}", 0.1)
    for number in range(most + 3):
        counted.seat_gone(f"s{number}", float(number))
    counted.seat_gone("s3", 99.0)
    counted.seat_gone("new", 1.0)
    assert len(counted.seen) == most
    assert "s4" not in counted.seen
    assert counted.seen["s3"] == 99.0
    assert not counted.round_trips, "of a connection that is gone"


def test_everything_that_can_happen_is_zero_before_it_does() -> None:
    counted = Tally()
    assert counted.refusals == {code.value: 0 for code in ErrorCode}
    assert counted.handshakes == {outcome.value: 0 for outcome in HandshakeOutcome}
    assert counted.rate_limits == {channel.value: 0 for channel in Channel}


def test_a_copy_does_not_change_with_what_happens_after() -> None:
    counted = Tally()
    counted.turn_ended(turn(usage=Usage(tokens_in=5, first_byte_ms=100)))
    copied = counted.copy()
    for happens in (counted.turn_ended,):
        happens(turn(usage=Usage(tokens_in=5, first_byte_ms=100, tokens_cached=1, usd=1)))
    counted.refused(ErrorCode.TIMEOUT)
    counted.rate_limited(Channel.DATA)
    counted.shook_hands(HandshakeOutcome.FAILED)
    counted.session_opened("operator")
    counted.reloaded(taken=True)
    counted.reloaded(taken=False)
    assert copied.turns["ada_AB12CD34", "speech"] == 1
    assert copied.tokens["ada_AB12CD34", "in"] == 5
    assert sum(copied.first_byte_seconds["ada_AB12CD34"].counts) == 1
    assert sum(copied.turn_seconds["ada_AB12CD34"].counts) == 1
    assert not copied.cached
    assert not copied.usd
    every = (copied.refusals, copied.rate_limits, copied.handshakes, copied.sessions, copied.reloads)
    assert [each.total() for each in every] == [0] * 5
    now = (counted.refusals, counted.rate_limits, counted.handshakes, counted.sessions, counted.reloads)
    assert [each.total() for each in now] == [1, 1, 1, 1, 2]


def test_a_copy_has_everything() -> None:
    counted = Tally()
    counted.turn_ended(turn(usage=Usage(tokens_in=5, tokens_cached=1, usd=1, first_byte_ms=9)))
    counted.turn_ended(turn(outcome=TurnOutcome.FAILED, fault=Fault.STALLED))
    counted.seat_gone("bob", 3.0)
    counted.heartbeat_returned("ada", 0.1)
    counted.refused(ErrorCode.TIMEOUT)
    counted.rate_limited(Channel.DATA)
    counted.shook_hands(HandshakeOutcome.FAILED)
    counted.session_opened("operator")
    counted.reloaded(taken=True)
    ours, theirs = vars(counted), vars(counted.copy())
    assert ours.keys() == theirs.keys()
    spreads = {"turn_seconds", "first_byte_seconds"}
    same = {name for name in ours if name not in spreads and ours[name] == theirs[name]}
    assert {*ours} - same == spreads | {"_seats"}
    for name in spreads:
        assert ours[name].keys() == theirs[name].keys()


@given(st.lists(st.floats(0, 1000)))
def test_a_spread_counts_every_value_below_its_bound(values: list[float]) -> None:
    spread = Spread(TURN_SECONDS)
    for value in values:
        spread.add(value)
    for number, bound in enumerate(TURN_SECONDS):
        assert sum(spread.counts[: number + 1]) == sum(value <= bound for value in values)
    assert sum(spread.counts) == len(values)
    assert spread.total == sum(values)


def test_nobody_hears_of_everything_and_does_nothing() -> None:
    heard = [name for name in vars(Observer) if not name.startswith("_")]
    assert {name for name in heard if name in vars(Tally)} == set(heard), "what is told is counted"
    NOBODY.turn_ended(turn())
    NOBODY.refused(ErrorCode.TIMEOUT)
    NOBODY.rate_limited(Channel.DATA)
    NOBODY.shook_hands(HandshakeOutcome.FAILED)
    NOBODY.session_opened("operator")
    NOBODY.seat_gone("bob", 3.0)
    NOBODY.heartbeat_returned("ada", 0.1)
    NOBODY.reloaded(taken=True)
    assert vars(NOBODY) == {}
