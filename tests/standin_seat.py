"""A native seat whose client is a stand-in: for `llm`, or for another client of which there is one."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from leftovers import VARIABLE, Leftovers

from consilium.errors import AdapterFault
from wrapper.adapters.keeping import CHAT_FILE
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Make = Callable[..., NativeAdapter]

STANDINS = Path(__file__).parent / "standins"
SYSTEM = "You are a sceptic named {model}. $HOME 'quoted' \"twice\"\nSecond line.\n"
SETTINGS = {"api_base": 'http://127.0.0.1:1/v1"\\evil'}
BOUNDS = Bounds(overall=20)


def seat_maker(
    leftovers: Leftovers, folder: Path, preset: str = "llm", settings: Mapping[str, str] = SETTINGS
) -> Make:
    """Make adapters under ``folder``; every call is another life of the wrapper."""
    programs = folder / "bin"
    programs.mkdir(parents=True)
    known = load_preset(preset)
    script = STANDINS / f"{known.executable}_standin.py"
    program = programs / known.executable
    program.write_text(
        f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S {shlex.quote(str(script))} "$@"\n'
    )
    program.chmod(0o700)
    environment = {
        **leftovers.env,
        "PATH": f"{programs}:/usr/bin:/bin",
        "CONSILIUM_KEY": "never",
        "OPENAI_API_KEY": "real",
        "KEY": "never",
    }

    def made(name: str = "seat", *, passed: tuple[str, ...] = (), **choices: Any) -> NativeAdapter:
        usual = {
            "preset": known,
            "settings": settings,
            "bounds": BOUNDS,
            "environment": environment,
        }
        return NativeAdapter(folder=folder / name, passed=(VARIABLE, *passed), **{**usual, **choices})

    return made


async def fault_of(seat: NativeAdapter, text: str) -> AdapterFault:
    """The fault in which a turn ends."""
    with pytest.raises(AdapterFault) as raised:
        await seat.send_turn(text)
    return raised.value


def chat_of(folder: Path) -> dict[str, Any]:
    """What the seat in ``folder`` keeps of its chat."""
    kept: dict[str, Any] = json.loads((folder / CHAT_FILE).read_bytes())
    return kept


def history(folder: Path) -> dict[str, list[dict[str, str]]]:
    """What the stand-in remembers: its chats, each a list of turns."""
    chats: dict[str, list[dict[str, str]]] = json.loads((folder / "home" / "logs.db").read_text())
    return chats
