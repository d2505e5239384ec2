"""What holds for any sequence of events (architecture page, "The debate core"): see `any_debate`."""

from __future__ import annotations

from typing import get_args

import pytest
from any_debate import AnyDebate
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from arbiter.debate import events

ROUNDS = 5
"""One holds every event nearly always; what five do not hold, no rule makes."""


@pytest.mark.timeout(300)
def test_what_must_always_hold_holds_whatever_comes() -> None:
    AnyDebate.fed.clear()
    everything = {*get_args(events.Event), *get_args(events.Command)} - {events.Operated}
    for _ in range(ROUNDS):
        run_state_machine_as_test(
            AnyDebate, settings=settings(max_examples=100, stateful_step_count=60, deadline=None)
        )
        if everything <= AnyDebate.fed:
            return
    raise AssertionError(f"an event or a command that no sequence held: {everything - AnyDebate.fed}")
