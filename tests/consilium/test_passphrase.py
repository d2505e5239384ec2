"""`consilium.passphrase`: where a passphrase comes from, and that it is never shown."""

from __future__ import annotations

import getpass
import os
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from consilium import passphrase
from consilium.errors import UserError


@pytest.fixture
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that there is a terminal."""
    real = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *rest: real("/dev/null" if path == "/dev/tty" else path, *rest)
    )


@pytest.fixture
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> int:
        raise OSError(6, "No such device or address")

    monkeypatch.setattr(os, "open", refuse)


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"secret\n", b"secret"),
        (b"secret\r\n", b"secret"),
        (b"secret", b"secret"),
        (b" two words \nsecond line\n", b" two words "),
        (b"\n", b""),
        (b"", b""),
        (b"\xff\xfe\n", b"\xff\xfe"),
        (b"x" * 4096 + b"\r\n", b"x" * 4096),
    ],
)
def test_a_file_gives_its_first_line(tmp_path: Path, content: bytes, secret: bytes) -> None:
    (tmp_path / "file").write_bytes(content)
    assert passphrase.source(tmp_path / "file", {}, prompt="x")() == secret


def test_a_file_that_cannot_hold_a_passphrase_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 4097)
    with pytest.raises(UserError, match="too long to be a passphrase"):
        passphrase.read(tmp_path / "file")


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="nowhere cannot be read: No such file"):
        passphrase.read(tmp_path / "nowhere")


def test_the_file_wins_over_the_environment_and_that_over_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(passphrase, "ask", str.encode)
    (tmp_path / "file").write_bytes(b"from the file\n")
    environ = {passphrase.VARIABLE: "from the environment"}
    assert passphrase.source(tmp_path / "file", environ, prompt="asked")() == b"from the file"
    assert passphrase.source(None, environ, prompt="asked")() == b"from the environment"
    assert passphrase.source(None, {passphrase.VARIABLE: ""}, prompt="asked")() == b""
    assert passphrase.source(None, {}, prompt="asked")() == b"asked"


def test_nothing_is_read_before_it_is_wanted(tmp_path: Path) -> None:
    passphrase.source(tmp_path / "nowhere", {}, prompt="x")


@pytest.mark.usefixtures("_no_terminal")
def test_without_a_terminal_the_other_ways_are_told() -> None:
    with pytest.raises(UserError, match="no terminal to ask at") as refusal:
        passphrase.ask("Passphrase")
    assert refusal.value.hint == ("give it with --passphrase-file FILE, or in CONSILIUM_BUNDLE_PASSPHRASE")


@pytest.mark.usefixtures("_terminal")
def test_a_person_is_asked_with_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getpass", lambda prompt: f"<{prompt}> ä")
    assert passphrase.ask("Passphrase of a.p12") == "<Passphrase of a.p12: > ä".encode()


@pytest.mark.usefixtures("_terminal")
def test_a_person_who_gives_none_is_told_the_other_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(_prompt: str) -> str:
        raise EOFError

    monkeypatch.setattr(getpass, "getpass", leave)
    with pytest.raises(UserError, match="no passphrase was given"):
        passphrase.ask("Passphrase")


def test_at_a_real_terminal_what_is_typed_is_not_shown_and_standard_input_is_left_alone() -> None:
    code = (
        "import sys; from consilium.passphrase import ask; s = ask('Pass'); print(len(s), sys.stdin.read())"
    )
    shell = f'echo text | {sys.executable} -c "{code}"'
    child = pexpect.spawn("sh", ["-c", shell], encoding="utf-8", timeout=20)
    child.expect("Pass: ")
    child.sendline("geheim")
    child.expect(pexpect.EOF)
    assert child.before.split() == ["6", "text"]
    child.close()
