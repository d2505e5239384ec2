"""A whole debate of real processes: two scripted clients, and a person at a pseudo-terminal."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pexpect
import pytest
from hall import PATIENCE, Hall

from consilium.messages import DebateState
from consilium.records import EventRecord, TurnOutcome

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(150)]

COUNCIL = """\
topic: Should we wrap it?
participants:
  - {name: ada, model: scripted, role: sceptic}
  - {name: me, preset: human, role_label: Host}
  - {name: bob, model: scripted}
caps: {max_rounds: 4}
limits: {turn_seconds: 60}
opening: open
"""


def test_a_person_debates_skips_is_away_and_comes_back(tmp_path: Path) -> None:
    with Hall(tmp_path, council=COUNCIL) as hall:
        arbiter = hall.open()
        hall.seat("ada")
        hall.seat("bob")
        words = [
            *("-m", "consilium", "seat", "--council", "council.yaml", "--name", "me"),
            *("--certs", hall.credentials("me"), "--state", "state-me", *hall._place(hall.address)),
        ]
        environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1"}
        person = pexpect.spawn(
            sys.executable,
            words,
            cwd=tmp_path,
            env=environment,
            dimensions=(50, 120),
            timeout=PATIENCE,
            encoding="utf-8",
        )
        try:
            person.expect("you are seated as me_")
            person.expect("turn 2 · OPENING")
            person.expect("ada_[0-9A-F]{8}")
            person.expect("At the table: .*you")
            person.send("I ask /you: why\x1b[200~ not?\nTwo lines.\x1b[201~\r")
            person.expect("turn 2: your 7 words are sent")
            person.expect("turn 5 · ")
            person.expect("bob_[0-9A-F]{8}")
            person.send("\x01")
            person.expect("you are away")
            person.expect("turn 5: skipped")
            person.expect("turn 8: skipped")
            person.send("\x02")
            person.expect("where the debate stands")
            person.expect("since you last spoke")
            person.expect("turn 11 · ")
            person.send("\r")
            person.expect("turn 11: skipped")
            person.expect("the debate ended: STOPPED_BY_CAP by max_rounds")
            person.expect(pexpect.EOF)
            assert person.wait() == 0
        finally:
            person.close(force=True)
        assert arbiter.ends() == 0
        turns = hall.turns("me")
        assert [turn.outcome for turn in turns] == [TurnOutcome.SPEECH, *[TurnOutcome.SKIP] * 3]
        assert turns[0].text == "I ask /you: why not?\nTwo lines."
        assert (turns[0].meta.brand, turns[0].tokens) == ("human", None)
        events = hall.events("me")
        assert events.count("HUMAN_SKIP") >= 2, "the last may have come after the end"
        assert events.count("PARTICIPANT_UPDATED") == 2
        last = hall.record()[-1]
        assert isinstance(last, EventRecord)
        assert last.data["outcome"] == DebateState.STOPPED_BY_CAP
