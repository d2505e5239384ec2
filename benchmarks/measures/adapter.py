"""P18: what a turn costs beside its client, against the same program run plainly in the same process."""

from __future__ import annotations

import os
import shutil
import statistics
from typing import TYPE_CHECKING, Any

import orjson

from benchmarks.process import ROOT, running
from benchmarks.table import Row, Target
from council.conformance.provider.script import KEY
from council.conformance.provider.stub import Stub
from wrapper.adapters.presets import load_preset

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.process import Host
    from benchmarks.setting import Setting

MOST_MS, MOST_MB = Target("<=", 30), Target("<=", 10)

TURNS = 40
"""Pairs of a turn and a plain run in a round, with the client that costs nearly nothing."""

TURNS_OF_REAL_ONES = 4
"""The same with a real client, of which each takes a second."""

LINE = "A dash — and “quotes”, as models write them. "
SPEECH, LARGE = 4_000 // len(LINE.encode()), 1_000_000 // len(LINE.encode())

CLIENTS = ROOT / ".venv" / "clients"

ECHO = """#!/bin/sh
: >"$HOME/$1"
printf '{"id":"%s","text":"' "$1"
cat
printf '"}'
"""


def measure(setting: Setting) -> list[Row]:
    """Fill P18."""
    rows = _tiny(setting)
    with Stub() as stub:
        for name in ("claude", "codex"):
            rows += _real(setting, name, stub)
    return rows


def _tiny(setting: Setting) -> list[Row]:
    folder = setting.folder / "echo"
    folder.mkdir()
    program = folder / "echo-client"
    program.write_text(ECHO)
    program.chmod(0o755)
    words = _words("echo", folder / "seat", {"PATH": f"{folder}:{os.defpath}"})
    hosts = ROOT / "benchmarks" / "hosts"
    with running("adapter", *words, "--presets", hosts) as host:
        return _rows(host, "a client that costs nothing", setting.rounds, setting.some(TURNS))


def _real(setting: Setting, name: str, stub: Stub) -> list[Row]:
    programs = CLIENTS / name / "node_modules" / ".bin"
    preset, tried = load_preset(name), load_preset(name).conformance
    assert tried is not None
    assert tried.key is not None
    if shutil.which(preset.executable, path=str(programs)) is None:
        why = f"{name} is not installed: make .venv/.clients"
        return [
            _row(f"{name}: a turn beside its client, {unit}", target, (), "", why) for unit, target in _UNITS
        ]
    home = setting.folder / f"home-{name}"
    home.mkdir()
    environment = {"PATH": f"{programs}:{os.defpath}", "HOME": str(home), tried.key: KEY}
    environment |= {key: value.format(url=stub.url) for key, value in tried.variables.items()}
    settings = {key: value.format(url=stub.url) for key, value in tried.settings.items()}
    words = _words(name, setting.folder / name, environment)
    words += ["--settings", orjson.dumps(settings).decode(), "--passed", tried.key]
    with running("adapter", *words) as host:
        rounds = 3 if setting.quick else 5
        return _rows(host, name, rounds, setting.some(TURNS_OF_REAL_ONES), end="<<huge 1000000>>")


WALL, CPU, OWN_CPU = 0, 1, 2
"""What is taken of each run. What a real client needs of CPU varies by more than all of ours."""

_UNITS = (("ms", MOST_MS), ("ms of CPU", MOST_MS), ("MB with 1 MB in and out", MOST_MB))


def _words(preset: str, folder: Path, environment: dict[str, str]) -> list[str]:
    return ["--preset", preset, "--folder", str(folder), "--environment", orjson.dumps(environment).decode()]


def _rows(host: Host, who: str, rounds: int, turns: int, *, end: str = "") -> list[Row]:
    host.ask(prompt=LINE, count=2)  # what is loaded once is loaded now
    taken = [host.ask(prompt=LINE, times=SPEECH, count=turns) for _ in range(rounds)]
    large = [host.ask(prompt=LINE, times=LARGE, end=end) for _ in range(3)]
    assert all(one["answered"] > 990_000 for one in large)
    what = f"{who}: a turn beside its client, {{}}"
    memory = [(one["peak"] - one["idle"]) * 1024 / 1e6 for one in large]
    (ms, _), (cpu, _), (mb, _) = _UNITS
    return [
        _row(what.format(ms), MOST_MS, *_beside(taken, WALL), wall=True),
        _row(what.format(cpu), MOST_MS, *_beside(taken, OWN_CPU if end else CPU)),
        _row(what.format(mb), MOST_MB, [max(memory)], f"the most of {_list(memory)} MB"),
    ]


def _beside(taken: list[dict[str, Any]], which: int) -> tuple[list[float], str]:
    """Of each round the median of what a turn takes beyond the plain run, in ms; and both, in words."""
    middles = [
        [statistics.median(pair[which] for pair in one[side]) * 1e3 for one in taken]
        for side in ("subject", "plain")
    ]
    beside = [
        statistics.median(
            ours[which] - plain[which] for ours, plain in zip(one["subject"], one["plain"], strict=True)
        )
        * 1e3
        for one in taken
    ]
    ours, plain = map(statistics.median, middles)
    return beside, f"{ours:.1f} ms to {plain:.1f} ms, x {ours / plain:.2f}"


def _list(figures: list[float]) -> str:
    return ", ".join(f"{figure:.1f}" for figure in figures)


def _row(
    what: str,
    target: Target,
    figures: list[float] | tuple[float, ...],
    basis: str,
    why: str | None = None,
    *,
    wall: bool = False,
) -> Row:
    return Row("P18", what, target, tuple(figures), basis, wall=wall, skipped=why)
