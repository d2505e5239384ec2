"""What a person's line means."""

from __future__ import annotations

import pytest

from wrapper.human.commands import Command, Meaning, Misspelt, Order, Say, continues, meaning, seconds


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("I doubt it.", Say("I doubt it.")),
        ("  two\n lines \n", Say("two\n lines")),
        ("", Order(Command.SKIP)),
        (" \n ", Order(Command.SKIP)),
        *[(f"/{command}", Order(command)) for command in Command],
        ("/timeout 60", Order(Command.TIMEOUT, "60")),
        ("/status ", Order(Command.STATUS)),
        ("//etc/passwd is a file", Say("/etc/passwd is a file")),
        (" /etc/passwd is a file", Say("/etc/passwd is a file")),
        ("/etc/passwd is a file", Misspelt("/etc/passwd")),
        ("/Quit", Misspelt("/Quit")),
        ("/", Misspelt("/")),
        ("/quit\nand more", Misspelt("/quit")),
        ("/timeout 5\n6", Misspelt("/timeout")),
        ("see /quit", Say("see /quit")),
        ("PASS", Say("PASS")),
    ],
)
def test_a_line_and_its_meaning(line: str, meant: Meaning) -> None:
    assert meaning(line) == meant


@pytest.mark.parametrize(
    ("word", "limit"), [("60", 60.0), ("90s", 90.0), ("2.5", 2.5), ("off", None), ("NONE", None), ("0", None)]
)
def test_a_timeout(word: str, limit: float | None) -> None:
    assert seconds(word) == limit


@pytest.mark.parametrize("word", ["", "soon", "-1", "0.5", "nan", "inf", "1e9"])
def test_no_timeout(word: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        seconds(word)


@pytest.mark.parametrize(
    ("line", "text", "more"),
    [
        ("a", "a", False),
        ("a\\", "a", True),
        ("a\\\\", "a\\", False),
        ("\\\\\\", "\\", True),
        ("a\\ ", "a\\ ", False),
    ],
)
def test_a_backslash_at_the_end_goes_on(line: str, text: str, more: bool) -> None:
    assert continues(line) == (text, more)
