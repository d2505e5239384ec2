"""When a heartbeat counts as missed, seen from a seat."""

from __future__ import annotations

import pytest

from benchmarks.hosts.beats import Beats


def heard(*pings: float, end: float) -> Beats:
    beats = Beats(1.0, 0.0)
    for at in pings:
        beats.ping(at)
    beats.end(end)
    return beats


def test_a_steady_heart_misses_nothing() -> None:
    beats = heard(1.0, 2.0, 3.1, end=3.5)
    assert (beats.count, beats.missed) == (3, 0)
    assert beats.worst_gap == pytest.approx(1.1)


def test_a_late_beat_is_no_missed_one() -> None:
    assert heard(1.0, 2.9, end=3.0).missed == 0


@pytest.mark.parametrize(("gap", "missed"), [(2.0, 1), (2.9, 1), (3.0, 2), (10.0, 9)])
def test_every_whole_interval_without_a_beat_is_one_missed(gap: float, missed: int) -> None:
    assert heard(1.0, 1.0 + gap, end=1.0 + gap).missed == missed


def test_what_never_came_is_counted_at_the_end() -> None:
    assert heard(1.0, end=4.0).missed == 2


def test_a_pong_that_takes_longer_than_an_interval_is_missed() -> None:
    beats = Beats(1.0, 0.0)
    beats.pong(0.5, 1.5)
    beats.pong(2.0, 3.1)
    assert beats.missed == 1
    assert beats.worst_pong == pytest.approx(1.1)
