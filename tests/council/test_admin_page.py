"""docs/operating.md: every command on it can be typed, and answers what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from consilium.messages import Recovery
from consilium.pausing import REASONS
from council import orders
from council.verbs import VERBS, parser
from pki.main import parser as pki_parser

PAGE = (Path(__file__).parents[2] / "docs" / "operating.md").read_text(encoding="utf-8")
TYPED = re.findall(r"^\$ consilium (admin|pki) (.+)\n(.*)$", PAGE, re.MULTILINE)
SHOWN = re.findall(r"^ +consilium admin ([^(\n]+)", PAGE, re.MULTILINE)


def test_the_page_has_commands() -> None:
    assert len(TYPED) > 8
    assert len(SHOWN) >= 8


@pytest.mark.parametrize(("command", "words", "answer"), TYPED)
def test_what_is_typed_on_the_page_is_understood_and_answered_so(
    command: str, words: str, answer: str
) -> None:
    if command == "pki":
        pki_parser().parse_args(shlex.split(words))
        return
    options = parser().parse_args(shlex.split(words))
    order = orders.order(options, str)
    if order.done and not answer.startswith("consilium admin: the Arbiter refused"):
        assert answer == order.done


@pytest.mark.parametrize("words", SHOWN)
def test_what_the_page_shows_as_a_way_on_is_understood(words: str) -> None:
    orders.order(parser().parse_args(shlex.split(words)), str)


def test_the_page_explains_every_choice_and_names_every_verb() -> None:
    for choice in (*Recovery, "terminate"):
        assert f"| `{choice}` |" in PAGE
    for verb in VERBS:
        assert re.search(rf"\b{verb}\b", PAGE), verb


def test_the_reasons_on_the_page_are_those_that_status_gives() -> None:
    told = re.findall(r"^\| (a seat [^|]+|nobody [^|]+|an operator paused it)", PAGE, re.MULTILINE)
    assert len(told) == 4
    assert {reason.strip().partition(", or")[0] for reason in told} <= set(REASONS.values())
