"""What counts as a flat memory."""

from __future__ import annotations

import pytest

from benchmarks.flat import Memory, slope


def read(*kib: int, turns: int = 0) -> Memory:
    """A reading every minute, ``turns`` turns apart."""
    return Memory([(60.0 * place, turns * place, size) for place, size in enumerate(kib)])


def test_a_memory_that_grew_while_everything_was_used_once_is_flat_after_that() -> None:
    assert read(10, 500, *[900] * 8).a_minute == 0


def test_growth_is_told_by_the_minute_and_by_the_turn() -> None:
    grown = read(*range(1000, 2000, 100), turns=20)
    assert grown.a_minute == pytest.approx(100)
    assert grown.a_turn == pytest.approx(5)


def test_one_odd_reading_is_not_a_leak() -> None:
    assert abs(read(*[900] * 5, 964, *[900] * 5).a_minute) < 10


def test_a_debate_without_a_turn_grows_by_none() -> None:
    assert read(*[900] * 10).a_turn == 0


def test_too_few_readings_have_no_slope() -> None:
    with pytest.raises(ValueError, match="two readings"):
        _ = read(900).a_minute


def test_the_slope_is_that_of_the_line_of_least_squares() -> None:
    assert slope([(0, 0), (1, 2), (2, 1)]) == pytest.approx(0.5)
