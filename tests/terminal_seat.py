"""Seats whose client is the stand-in in a terminal (`standins/tui_standin.py`)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leftovers import VARIABLE, Leftovers

from wrapper.adapters.interactive import PexpectAdapter
from wrapper.adapters.presets import load_preset
from wrapper.prompts import system_prompt
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable

STANDIN = Path(__file__).parent / "standins" / "tui_standin.py"
SYSTEM = system_prompt("You are a sceptic.", end_token=True)
BOUNDS = Bounds(overall=20, first_byte=10, stall=10)

PRESET = r"""
name = "tui"
brand = "Stand-in"
executable = "tui-standin"
install = "it stands in tests"
network = { hosts = [] }

[version]
argv = ["--version"]
pattern = 'tui-standin (\d+\.\d+)'
minimum = "1.0"
known_good = "1.0"

[run]
first = ["{new_id}"]
next = ["{id}"]
prompt = "stdin"
output = "at_end"

[chat]
id = "chosen"
turn = "same"

[profiles.restricted]
[profiles.native]

[env]
pass = ["PATH", "LANG"]

[state]
variables = ["HOME"]
proof = "chats/{id}.json"

[state.derived."catalog.json"]
argv = ["--catalog"]
each = "/models"

[answer]
format = "json"
id = "/id"
text = "/text"

[[faults]]
pattern = "API Error: 5"
fault = "client_error"
prompt_sent = "yes"

[terminal]
first = ["--system-prompt-file", "{system_file}", "{harness}", "--session-id", "{new_id}"]
next = ["--system-prompt-file", "{system_file}", "{harness}", "--resume", "{id}"]
restore = ["chats/*.json"]
ready = '^─{20,}\n▶.*\n(?:  .*\n)*─{20,}$'
asked = "▶ "
said = "● "
working = "esc to interrupt"
done = '· done '
aside = ["^  ⎿ "]
files = { "settings.json" = '{{"home": {home}}}' }

[terminal.harness]
restricted = ["--restricted"]
native = []

[[terminal.dialogs]]
pattern = "Do you trust this folder"
keys = ["down", "enter"]
profiles = ["restricted"]

[[terminal.questions]]
pattern = "Do you want to proceed"
keys = ["escape"]
"""


def seat_maker(leftovers: Leftovers, folder: Path) -> Callable[..., PexpectAdapter]:
    """Make seats in ``folder``; ``modes`` are the stand-in's, ``without`` keys of the preset to leave out."""
    programs = folder / "programs"
    programs.mkdir()
    program = programs / "tui-standin"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -I -S {STANDIN} "$@"\n')
    program.chmod(0o755)

    def make(modes: str = "", without: tuple[str, ...] = (), **choices: Any) -> PexpectAdapter:
        lines = [line for line in PRESET.splitlines() if not line.startswith(without or ("\0",))]
        presets = folder / "presets"
        presets.mkdir(exist_ok=True)
        (presets / "tui.toml").write_text("\n".join(lines))
        environment = {**leftovers.env, "PATH": f"{programs}:/usr/bin:/bin", "STANDIN": modes}
        usual: dict[str, Any] = {
            "environment": environment,
            "bounds": BOUNDS,
            "passed": (VARIABLE, "STANDIN"),
        }
        return PexpectAdapter(load_preset("tui", presets), {}, folder / "seat", **{**usual, **choices})

    return make
