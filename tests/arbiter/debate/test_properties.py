"""What holds for any sequence of events (architecture page, "The debate core"): see `any_debate`."""

from __future__ import annotations

from typing import get_args

import pytest
from any_debate import AnyDebate
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from arbiter.debate import events

EVERYTHING = {*get_args(events.Event), *get_args(events.Command)} - {events.Operated}

SEARCHES = 4
"""How often it is searched, at most: chance may leave a kind of event out of a hundred sequences."""


@pytest.mark.timeout(600)
def test_what_must_always_hold_holds_whatever_comes() -> None:
    AnyDebate.fed.clear()
    for _ in range(SEARCHES):
        run_state_machine_as_test(
            AnyDebate, settings=settings(max_examples=100, stateful_step_count=60, deadline=None)
        )
        if AnyDebate.fed >= EVERYTHING:
            break
    assert EVERYTHING - AnyDebate.fed == set(), "an event or a command that no sequence held"
