"""`consilium conformance` as a person runs it."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from consilium import cli
from council.conformance.checks import CHECKS

STANDINS = Path(__file__).parents[2] / "standins"
PRESET = str(STANDINS / "tried.toml")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "tried"
    program.parent.mkdir()
    words = (sys.executable, "-I", "-S", str(STANDINS / "tried_standin.py"))
    program.write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setenv("TRIED_KEY", "a real key, which is nobody's business")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)


ONLY = ("--only", "version-is-known", "--only", "seats-do-not-hear-each-other")


@pytest.mark.usefixtures("installed")
def test_a_preset_of_ones_own_is_tried_and_a_table_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["conformance", PRESET, *ONLY]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("passed  version-is-known\n        The client is of a version")
    assert "passed  seats-do-not-hear-each-other" in out
    assert "\ntried: 2 passed in" in out
    assert "1/2 version-is-known passed (" in err
    assert not list(tmp_path.glob("conformance-*")), "nothing is left of it"


@pytest.mark.usefixtures("installed")
def test_the_folders_can_be_kept_and_a_folder_of_presets_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["conformance", "tried", "--presets", str(STANDINS), "--only", "seats-do-not-hear-each-other"]
    assert cli.main([*words, "--keep", "--json"]) == 0
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert (told["preset"], told["adapter"], told["conforms"]) == ("tried", "native", True)
    (kept,) = tmp_path.glob("conformance-*")
    assert str(kept) in err
    chats = [path.read_text() for path in kept.rglob("chats/*.json")]
    assert sum("I am one" in chat for chat in chats) == 2
    assert "nobody's business" not in "".join(path.read_text() for path in kept.rglob("*.json"))


@pytest.mark.usefixtures("installed")
def test_a_check_that_fails_is_the_exit_code_and_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "tried.toml"
    text = Path(PRESET).read_text()
    other.write_text(text.replace('api_base = "{url}"', 'api_base = "{url}", flaw = "one-memory"'))
    assert cli.main(["conformance", str(other), *ONLY]) == 1
    out, err = capsys.readouterr()
    assert "FAILED  seats-do-not-hear-each-other" in out
    assert "        -> 'I am two' was answered by 'I have seen 2" in out
    assert "tried: 1 passed, 1 failed in" in out
    assert "2/2 seats-do-not-hear-each-other FAILED (" in err


def test_the_checks_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["conformance", "--list"]) == 0
    assert "three-turns-are-one-chat\n        Three turns, over two" in capsys.readouterr().out
    assert cli.main(["conformance", "--list", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in told] == [check.name for check in CHECKS]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "which preset?"),
        (["nosuch"], "there is no preset called 'nosuch'"),
        (["nosuch", "--presets", "nowhere"], "nowhere is not a folder"),
        (["claude", "--only", "nosuch"], "there is no check called 'nosuch'"),
        ([PRESET], "tried is not installed\n  it is part of the tests"),
        (["./nosuch.toml"], "nosuch.toml cannot be read"),
    ],
)
def test_what_cannot_be_tried_is_said(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert cli.main(["conformance", *words]) == 2
    assert said in capsys.readouterr().err


def test_an_exception_that_no_check_looks_at_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "tried.toml"
    more = '\n[conformance.faults.nowhre]\nfault = "client_error"\nprompt_sent = "maybe"\n'
    other.write_text(Path(PRESET).read_text() + more)
    assert cli.main(["conformance", str(other)]) == 2
    said = capsys.readouterr().err
    assert "conformance.faults.nowhre: no check looks at that\n  there is 400, 401, " in said


def test_a_preset_that_does_not_say_how_it_is_tried_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "tried.toml"
    other.write_text(Path(PRESET).read_text().partition("[conformance]")[0])
    assert cli.main(["conformance", str(other)]) == 2
    assert "a table [conformance]" in capsys.readouterr().err
