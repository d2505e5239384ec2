"""docs/adapters.md says of the presets and of their keys what the code says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from consilium.config import HUMAN
from consilium.messages import Fault
from wrapper.adapters import logins, parts, places, screens, trying
from wrapper.adapters.presets import Preset, load_preset

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
PRESETS = sorted(path.stem for path in (ROOT / "wrapper" / "presets").glob("*.toml") if path.stem != HUMAN)

TABLES: dict[str, type[BaseModel]] = {
    "": Preset,
    "version": parts.Version,
    "settings.NAME": parts.Setting,
    "run": parts.Run,
    "chat": parts.Chat,
    "profiles.restricted": parts.Profile,
    "env": parts.Environment,
    "state": parts.State,
    "state.derived.FILE": parts.Derived,
    "answer": places.AnswerPlaces,
    "faults": parts.KnownFault,
    "network": parts.Network,
    "login": logins.Login,
    "terminal": screens.Terminal,
    "terminal.dialogs": screens.Dialog,
    "conformance": trying.Conformance,
    "conformance.faults.ACT": trying.Told,
}


def rows(name: str) -> list[list[str]]:
    """The rows of the table between two marks, without its head."""
    table = PAGE.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.strip().splitlines()[2:]]


def test_every_preset_is_shown_as_it_is() -> None:
    presets = [load_preset(name) for name in PRESETS]
    assert rows("presets") == [
        [
            f"`{preset.name}`",
            f"`{preset.executable}`",
            preset.version.known_good or "never",
            preset.chat.id,
            preset.chat.turn,
            ", ".join(preset.profiles),
        ]
        for preset in presets
    ]


def test_it_says_who_can_be_used_in_a_terminal() -> None:
    lost, kept = "the chat is lost", "the same chat"
    assert rows("terminals") == [
        [f"`{preset.name}`", ", ".join(terminal.harness), kept if terminal.next else lost]
        for preset in map(load_preset, PRESETS)
        if (terminal := preset.terminal) is not None
    ]


def keys(model: type[BaseModel]) -> set[str]:
    return {field.alias or name for name, field in model.model_fields.items()}


def test_every_key_is_explained_and_no_other() -> None:
    shown: dict[str, set[str]] = {}
    table = ""
    for tables, names, meaning in rows("keys"):
        assert meaning
        table = re.findall(r"`([^`]+)`", tables)[0] if tables else table
        shown.setdefault(table, set()).update(re.findall(r"`([^`]+)`", names))
    inner = {name.split(".", maxsplit=1)[0] for name in TABLES if name}
    expected = {name: keys(model) - (inner if not name else set()) for name, model in TABLES.items()}
    assert shown == expected


def test_every_fault_that_the_page_names_exists() -> None:
    named = set(re.findall(r"\| `([a-z_]+)` \| (?:no|maybe|yes) \|", PAGE))
    assert len(named) > 6
    assert named <= {fault.value for fault in Fault}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:tests|wrapper)/[a-z_/.]+)`", PAGE))))
def test_every_file_that_the_page_names_exists(name: str) -> None:
    assert (ROOT / name).exists()
