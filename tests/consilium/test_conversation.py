"""The heartbeat that both ends of a control connection keep."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilium.conversation import SILENT_INTERVALS, Beat, Heartbeat


def test_nothing_is_due_before_the_interval_is_over() -> None:
    heart = Heartbeat(15.0, now=100.0)
    assert heart.next_at == 115.0
    assert heart.tick(114.9) is Beat.WAIT
    assert heart.next_at == 115.0


def test_a_ping_is_due_at_every_interval_even_when_the_peer_talks() -> None:
    heart = Heartbeat(15.0, now=0.0)
    for now in (15.0, 30.0, 45.0, 60.0, 75.0):
        heart.heard(now - 1)
        assert heart.tick(now) is Beat.PING
        assert heart.next_at == now + 15.0


def test_three_silent_intervals_lose_the_link() -> None:
    heart = Heartbeat(15.0, now=0.0)
    assert [heart.tick(now) for now in (15.0, 30.0, 45.0)] == [Beat.PING, Beat.PING, Beat.LOST]
    assert heart.silent_intervals == SILENT_INTERVALS


def test_any_sign_of_life_begins_the_count_anew() -> None:
    heart = Heartbeat(15.0, now=0.0)
    heart.tick(15.0)
    heart.tick(30.0)
    heart.heard(44.9)
    assert heart.silent_intervals == 0
    assert [heart.tick(now) for now in (45.0, 60.0, 75.0, 90.0)] == [
        Beat.PING,
        Beat.PING,
        Beat.PING,
        Beat.LOST,
    ]


def test_an_end_that_overslept_does_not_blame_the_other() -> None:
    heart = Heartbeat(15.0, now=0.0)
    assert heart.tick(1000.0) is Beat.PING
    assert heart.next_at == 1015.0
    heart.heard(1000.1)
    assert heart.tick(1015.0) is Beat.PING
    assert heart.silent_intervals == 0


@pytest.mark.parametrize("interval", [0.0, -1.0, math.nan])
def test_an_interval_of_nothing_is_refused(interval: float) -> None:
    with pytest.raises(ValueError, match="above zero"):
        Heartbeat(interval, now=0.0)


@given(
    interval=st.floats(0.1, 100),
    steps=st.lists(st.tuples(st.floats(0.001, 500), st.booleans()), max_size=60),
)
def test_a_link_is_lost_only_after_three_whole_intervals_of_silence(
    interval: float, steps: list[tuple[float, bool]]
) -> None:
    heart = Heartbeat(interval, now=0.0)
    now = last_heard = 0.0
    pinged_at = -math.inf
    for wait, speaks in steps:
        now += wait
        beat = heart.tick(now)
        if beat is Beat.LOST:
            assert now - last_heard >= SILENT_INTERVALS * interval * (1 - 1e-9)
            return
        if beat is Beat.PING:
            assert now - pinged_at >= interval * (1 - 1e-9)
            pinged_at = now
        if speaks:
            heart.heard(now)
            last_heard = now


def test_the_last_sign_of_life_is_known() -> None:
    heart = Heartbeat(15.0, now=100.0)
    assert heart.heard_at == 100.0
    heart.heard(107.5)
    heart.tick(115.0)
    assert heart.heard_at == 107.5
