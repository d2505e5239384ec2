"""`consilium.bucket`: counting, with made-up times."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.bucket import TokenBucket


def test_a_bucket_starts_full_and_refills_at_its_rate() -> None:
    bucket = TokenBucket(rate=2, burst=3)
    assert [bucket.take(100.0) for _ in range(4)] == [True, True, True, False]
    assert not bucket.take(100.4)
    assert bucket.take(100.5)
    assert not bucket.take(100.5)


def test_a_bucket_never_holds_more_than_its_burst() -> None:
    bucket = TokenBucket(rate=100, burst=2)
    assert bucket.take(0.0)
    assert [bucket.take(1e9) for _ in range(3)] == [True, True, False]


def test_a_refusal_takes_nothing() -> None:
    bucket = TokenBucket(rate=1, burst=5)
    assert not bucket.take(0.0, cost=6)
    assert bucket.take(0.0, cost=5)


def test_a_clock_that_steps_back_neither_gives_nor_takes() -> None:
    bucket = TokenBucket(rate=1, burst=1)
    assert bucket.take(10.0)
    assert not bucket.take(5.0)
    assert not bucket.take(10.9)
    assert bucket.take(11.0)


@pytest.mark.parametrize(("rate", "burst"), [(0, 1), (-1, 1), (1, 0), (float("nan"), 1)])
def test_a_bucket_that_would_never_give_is_refused(rate: float, burst: float) -> None:
    with pytest.raises(ValueError, match="positive"):
        TokenBucket(rate, burst)


STEPS = st.lists(st.tuples(st.floats(0, 5), st.integers(1, 4)), max_size=60)


@settings(max_examples=100)
@given(rate=st.integers(1, 20), burst=st.integers(1, 20), steps=STEPS)
def test_no_window_of_time_yields_more_than_burst_and_rate_allow(
    rate: int, burst: int, steps: list[tuple[float, int]]
) -> None:
    bucket = TokenBucket(rate, burst)
    now = 0.0
    taken: list[tuple[float, int]] = []
    for wait, cost in steps:
        now += wait
        if bucket.take(now, cost):
            taken.append((now, cost))
    for first, (since, _) in enumerate(taken):
        total = 0
        for until, cost in taken[first:]:
            total += cost
            assert total <= burst + (until - since) * rate + 1e-6
