"""`consilium seat login`: the client's own login, at the person's terminal, in the seat's state."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

import anyio
import pexpect
import pytest

from consilium import cli
from consilium.completion import tree
from wrapper.adapters.logins import Login
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.login import Entry, entry
from wrapper.sandbox import Bounds

CLAUDE = """\
#!/bin/sh
case "$*" in
  --version) echo "2.1.332 (Claude Code)" ;;
  "auth status") [ -e "$CLAUDE_CONFIG_DIR/login" ] ;;
  "auth login")
    [ -t 0 ] && [ -t 1 ] || exit 9
    env | grep -q ^OTHERS= && exit 8
    [ "$TERM" = xterm-direct ] || exit 7
    printf 'Paste code: '; read -r code
    [ "$code" = good ] || exit 3
    echo "$code" > "$CLAUDE_CONFIG_DIR/login"
    sleep 617.25 & ;;
esac
"""

COUNCIL = """\
topic: Wrap it?
caps: {max_rounds: 1}
participants:
  - {name: ada, preset: claude}
  - {name: bob, preset: gemini}
  - {name: eva, preset: human}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    (tmp_path / "council.yaml").write_text(COUNCIL)
    return tmp_path


def log_in(folder: Path, code: str) -> tuple[int, str]:
    argv = ["-m", "consilium", "seat", "login", "ada", "--council", "council.yaml", "--state", "state"]
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "OTHERS": "secret", "TERM": "xterm-direct"}
    person = pexpect.spawn(sys.executable, argv, cwd=folder, env=environment, timeout=20, encoding="utf-8")
    try:
        person.expect_exact("Paste code: ")
        person.sendline(code)
        person.expect(pexpect.EOF)
        said = str(person.before)
        return person.wait(), said
    finally:
        person.close(force=True)


def test_the_login_lands_where_the_seat_finds_it(folder: Path) -> None:
    code, said = log_in(folder, "good")
    assert (code, "ada: claude is logged in (says `claude auth status`)" in said) == (0, True), said
    assert (folder / "state" / "home" / "login").read_text() == "good\n"
    sleeping = [line for line in commands() if line == "sleep 617.25"]
    assert sleeping == [], "nothing of it is left"


def commands() -> list[str]:
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with suppress(OSError):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip())
    return found


def test_a_login_that_came_to_nothing_is_said(folder: Path) -> None:
    code, said = log_in(folder, "bad")
    assert code == 1
    assert (
        "ada: claude is not logged in (says `claude auth status`); its login ended with exit code 3" in said
    )


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "bob",
            "gemini has no login of its own\n  set GEMINI_API_KEY, and name it in the participant's `env`",
        ),
        ("eva", "eva is a person, who has no client to log in"),
        ("zoe", "the council file has no participant named zoe\n  it has: ada, bob, eva"),
    ],
)
def test_who_cannot_be_logged_in(
    folder: Path, capsys: pytest.CaptureFixture[str], name: str, words: str
) -> None:
    council = str(folder / "council.yaml")
    assert cli.main(["seat", "login", name, "--council", council, "--state", str(folder / "state")]) == 2
    assert words in capsys.readouterr().err


def test_a_client_that_is_not_there_is_said_with_how_to_get_it(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bin" / "claude").unlink()
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    council = str(folder / "council.yaml")
    assert cli.main(["seat", "login", "ada", "--council", council, "--state", str(folder / "state")]) == 2
    assert "npm install -g @anthropic-ai/claude-code" in capsys.readouterr().err


def test_a_folder_that_cannot_be_looked_at_tells_of_no_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, _pattern: str) -> bool:
        raise OSError("the keeper ended with 1")

    monkeypatch.setattr(NativeAdapter, "keeps", refuse)
    preset = load_preset("gemini")
    bounds = Bounds(overall=5)
    adapter = NativeAdapter(preset, {}, tmp_path, environment={"PATH": "/usr/bin"}, bounds=bounds)
    found = anyio.run(entry, preset, adapter)
    assert found == Entry(None, "its folder cannot be looked at: the keeper ended with 1")


def test_both_forms_of_the_command_are_completed() -> None:
    nodes = tree()
    assert {"login", "--name", "--council"} <= set(nodes["consilium seat"].words)
    assert {"--council", "--state"} <= set(nodes["consilium seat login"].words)


def test_a_preset_cannot_speak_of_a_login_that_nothing_shows() -> None:
    with pytest.raises(ValueError, match="variables, status or files"):
        Login(argv=("login",))
    assert Login(needed=False).variables == ()
