"""When a seat tries again: bounded, never too fast, spread, and patient only as long as it was told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrapper.reconnection import ARRIVING, GOOD_WHILE, KNOCK_SECONDS, RETURNING, Knock, Pace, Reconnection

PACES = st.sampled_from([ARRIVING, RETURNING])
LIMITS = st.floats(0, 1e6)
SHARES = st.floats(0, 1)


@given(PACES, st.integers(0, 10**6))
def test_a_wait_has_room_for_jitter_and_never_exceeds_the_longest(pace: Pace, tries: int) -> None:
    assert pace.least < pace.first <= pace.most(tries) <= pace.longest


@given(st.floats(0, 100), st.floats(0, 100), SHARES)
def test_a_wait_is_drawn_from_between_its_bounds(least: float, more: float, share: float) -> None:
    knock = Knock(least, least + more, 1.0)
    assert least <= knock.wait(share) <= least + more + 1e-9


@given(LIMITS, LIMITS, st.lists(st.tuples(SHARES, st.floats(0, 20), st.booleans()), max_size=60))
def test_whatever_happens_tries_are_bounded_and_never_too_close(
    patience: float, give_up_after: float, history: list[tuple[float, float, bool]]
) -> None:
    """Each step: the drawn share, how long the try takes, and whether it takes the seat for a moment."""
    policy = Reconnection(patience=patience, give_up_after=give_up_after)
    now = 1000.0
    trouble_since = now
    knock: Knock | None = policy.begin(now)
    assert knock is not None
    assert knock.wait(1.0) == 0.0
    for share, took, sat in history:
        assert 1.0 <= knock.within <= KNOCK_SECONDS
        now += knock.wait(share) + min(took, knock.within)
        if sat:
            policy.sat(now)
            trouble_since = now
        limit = policy.limit
        knock = policy.failed(now)
        if knock is None:
            assert now - trouble_since >= min(limit, policy.limit) - RETURNING.least - 1e-6
            return
        assert ARRIVING.least <= knock.least <= knock.most <= RETURNING.longest
        assert now + knock.most <= trouble_since + policy.limit + 1e-6, "no try begins after the time is up"


@given(st.floats(1, 500), SHARES)
def test_a_seat_that_finds_nobody_gives_up_within_its_time_and_one_try(limit: float, share: float) -> None:
    policy = Reconnection(patience=limit, give_up_after=0)
    now, tries = 0.0, 0
    knock: Knock | None = policy.begin(now)
    while knock is not None:
        now += knock.wait(share)
        assert now <= limit
        knock = policy.failed(now)
        tries += 1
    assert now > limit - ARRIVING.longest
    assert tries <= 12 + limit / ARRIVING.least


def test_the_bound_doubles_up_to_the_longest_wait() -> None:
    policy = Reconnection(patience=0, give_up_after=1e6)
    policy.begin(0.0)
    policy.sat(0.0)
    bounds = [knock.most for _ in range(7) if (knock := policy.failed(0.0))]
    assert bounds == [2, 4, 8, 16, 30, 30, 30]


def test_the_first_loss_of_a_seat_begins_with_short_waits_however_long_it_took_to_arrive() -> None:
    policy = Reconnection(patience=100, give_up_after=100)
    policy.begin(0.0)
    for _ in range(5):
        policy.failed(0.0)
    policy.sat(1.0)
    assert policy.failed(2.0) == Knock(RETURNING.least, RETURNING.first, KNOCK_SECONDS)


@pytest.mark.parametrize(("sat_for", "most"), [(GOOD_WHILE - 1, 4.0), (GOOD_WHILE, 2.0)])
def test_a_good_while_in_the_seat_resets_the_waits(sat_for: float, most: float) -> None:
    policy = Reconnection(patience=0, give_up_after=1e6)
    policy.begin(0.0)
    policy.sat(0.0)
    policy.failed(0.0)
    policy.sat(10.0)
    knock = policy.failed(10.0 + sat_for)
    assert knock is not None
    assert knock.most == most


def test_a_seat_that_was_told_not_to_gives_up_at_once() -> None:
    policy = Reconnection(patience=0, give_up_after=0)
    policy.begin(0.0)
    assert policy.failed(0.0) is None
    policy.sat(1.0)
    assert policy.failed(1.0) is None


@given(st.lists(SHARES, min_size=200, max_size=200, unique=True))
def test_seats_that_lose_their_arbiter_together_come_back_spread(shares: list[float]) -> None:
    """What is drawn is passed on evenly: no two draws that differ fall on the same moment."""
    policy = Reconnection(patience=0, give_up_after=100)
    policy.begin(0.0)
    policy.sat(0.0)
    knock = policy.failed(100.0)
    assert knock is not None
    waits = sorted(knock.wait(share) for share in shares)
    span = RETURNING.first - RETURNING.least
    assert waits == pytest.approx([RETURNING.least + share * span for share in sorted(shares)])
