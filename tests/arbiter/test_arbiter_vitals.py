"""`arbiter.vitals`: a loop that hangs, a disk that refuses and lists that are no good make an Arbiter ill."""

from __future__ import annotations

import types
from typing import Any

import pytest

from arbiter.revocation import Standing
from arbiter.vitals import vitals
from consilium import messages as m
from consilium.health import STALE, Opinion, judge

NOW = 1000.0


def opinion(
    *,
    busy_since: float | None = None,
    failure: str | None = None,
    refused: str | None = None,
    standing: Standing = Standing.CURRENT,
    told: tuple[str, ...] = (),
) -> Opinion:
    debate: Any = types.SimpleNamespace(state=m.DebateState.PAUSED, reason="operator")
    journal: Any = types.SimpleNamespace(failure=failure)
    reloader: Any = types.SimpleNamespace(refused=refused, standing=standing, warnings=lambda: told)
    return judge(vitals(debate, journal, reloader, busy_since=busy_since, now=NOW), "arbiter", NOW)


def test_one_that_waits_or_works_is_well_and_says_where_the_debate_stands() -> None:
    for busy_since in (None, NOW - STALE + 1):
        found = opinion(busy_since=busy_since)
        assert found.healthy
        assert found.sentence == "the arbiter is well: the debate is PAUSED (operator)"


def test_one_that_is_busy_with_one_thing_for_too_long_is_ill_unless_it_waits_for_the_disk() -> None:
    hangs = opinion(busy_since=NOW - STALE - 1)
    assert not hangs.healthy
    assert "at work on one thing for 11 s" in hangs.sentence
    full = opinion(busy_since=NOW - STALE - 1, failure="no space left on device")
    assert not full.healthy
    assert full.sentence == "the arbiter is not well: no space left on device"


def test_lists_that_grow_old_are_said_and_make_nobody_ill() -> None:
    found = opinion(standing=Standing.AGEING, told=("the lists are old",))
    assert found.healthy
    assert found.sentence.endswith("; the lists are old")


@pytest.mark.parametrize(("refused", "standing"), [("forged", Standing.CURRENT), (None, Standing.EXPIRED)])
def test_lists_that_were_refused_or_have_ended_make_it_ill(refused: str | None, standing: Standing) -> None:
    found = opinion(refused=refused, standing=standing, told=("the lists are no good",))
    assert not found.healthy
    assert "the lists are no good" in found.sentence
