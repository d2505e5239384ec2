"""How a seat is, from what it says of its life."""

from __future__ import annotations

from typing import Any

from consilium.health import judge
from wrapper.vitals import Vitals


def test_a_seat_is_well_while_it_is_at_the_table() -> None:
    said: list[Any] = []
    vitals = Vitals(said.append, lambda: 5.0)

    def opinion() -> tuple[bool, str]:
        judged = judge(vitals.report(), "wrapper", 5.0)
        return judged.healthy, judged.sentence

    assert opinion() == (False, "the wrapper is not well: it has not taken its seat yet")
    vitals({"event": "registered"})
    assert not opinion()[0]
    vitals({"event": "seated", "participant_id": "ada_00000001"})
    assert opinion() == (True, "the wrapper is well: seated as ada_00000001")
    vitals({"event": "waiting", "reason": "connection refused"})
    assert opinion()[0] is False
    assert "tries again: connection refused" in opinion()[1]
    vitals({"event": "seated", "participant_id": "ada_00000001"})
    assert opinion()[0]
    vitals({"event": "ended", "outcome": "FINISHED"})
    assert opinion() == (True, "the wrapper is well: it has ended")
    assert [line["event"] for line in said] == ["registered", "seated", "waiting", "seated", "ended"]


def test_a_seat_that_hangs_is_not_well() -> None:
    vitals = Vitals(lambda _: None, lambda: 50.0)
    vitals({"event": "seated"})
    vitals.busy_since = lambda: 20.0
    assert "hangs" in judge(vitals.report(), "wrapper", 50.0).sentence
