"""`consilium completion`: the scripts are written from the parsers, and bash makes of them what it should."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import types
from typing import TYPE_CHECKING

import pytest

from consilium import cli, completion

if TYPE_CHECKING:
    from pathlib import Path


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="consilium fake")
    made.add_argument("--colour", choices=["always", "never"])
    made.add_argument("-f", "--file", metavar="FILE")
    made.add_argument("--secret", help=argparse.SUPPRESS)
    below = made.add_subparsers()
    below.add_parser("first").add_argument("kind", choices=["red", "green"])
    below.add_parser("second").add_argument("--depth", type=int)
    return made


@pytest.fixture(autouse=True)
def _fake_command(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("faked")
    module.parser = parser  # type: ignore[attr-defined]  # that is what a module of ours has
    monkeypatch.setitem(sys.modules, "faked", module)
    monkeypatch.setattr(
        completion,
        "COMMANDS",
        {"fake": ("faked:main", ""), "absent": ("no_such_module:main", ""), "up": cli.COMMANDS["up"]},
    )


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert completion.main([shell]) == 0
    return capsys.readouterr().out


def complete(script: str, line: str, folder: Path) -> set[str]:
    """What bash offers for ``line``; the last word is the one being typed."""
    words = line.split(" ")
    quoted = " ".join(f"'{word}'" for word in words)
    program = f"{script}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _consilium\n"
    program += 'printf "%s\\n" "${COMPREPLY[@]}"'
    told = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, cwd=folder)
    assert told.stderr == ""
    return set(told.stdout.split())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("consilium ", {"fake", "absent", "up", "help", "--help", "--version"}),
        ("consilium f", {"fake"}),
        ("consilium help f", {"fake"}),
        ("consilium fake ", {"--help", "--colour", "--file", "first", "second"}),
        ("consilium fake --c", {"--colour"}),
        ("consilium fake --colour ", {"always", "never"}),
        ("consilium fake --colour n", {"never"}),
        ("consilium fake --file ", set()),
        ("consilium fake -f ", set()),
        ("consilium fake first ", {"--help", "red", "green"}),
        ("consilium fake --colour never first r", {"red"}),
        ("consilium fake second --d", {"--depth"}),
        ("consilium absent ", set()),
    ],
)
def test_bash_offers_what_may_follow(
    line: str, offered: set[str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert complete(script("bash", capsys), line, tmp_path) == offered


def test_bash_offers_every_option_of_up(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    offered = complete(script("bash", capsys), "consilium up --", tmp_path)
    assert {"--topic", "--seats", "--max-rounds", "--dir", "--json"} <= offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_are_told_the_same_words(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = script(shell, capsys)
    for word in ("fake", "first", "always never", "red green", "colour"):
        assert word in told
    assert "secret" not in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_is_one_that_its_shell_can_read(
    shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(script(shell, capsys), encoding="utf-8")
    subprocess.run([shell, "-n", str(path)], check=True)


def test_an_unknown_shell_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        completion.main(["tcsh"])
    assert stop.value.code == 2
    assert "invalid choice: 'tcsh'" in capsys.readouterr().err
