"""docs/architecture.md says of the states and the files what the code says."""

from __future__ import annotations

import re
from pathlib import Path

from arbiter.debate.states import TRANSITIONS
from consilium.messages import DebateState

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_shows_the_table_of_states() -> None:
    table = PAGE.split("<!-- states -->")[1].split("<!-- /states -->")[0]
    shown = {}
    for line in table.strip().splitlines()[2:]:
        state, following = (cell.strip() for cell in line.strip("|").split("|"))
        shown[DebateState(state)] = {DebateState(name) for name in following.split(", ") if name}
    assert shown == {state: set(following) for state, following in TRANSITIONS.items()}


def test_every_file_that_the_page_names_exists() -> None:
    named = {name for name in re.findall(r"`((?:[a-z_]+/)+[a-z_.]*)`", PAGE) if "<" not in name}
    assert len(named) > 20
    missing = sorted(name for name in named if not (ROOT / name).exists())
    assert not missing
