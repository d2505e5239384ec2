"""How the outcome of checks is told, to a person and to a program; and what a turn's outcome is told as."""

from __future__ import annotations

import json

import pytest

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from council.conformance.checks import CHECKS, Check, Outcome, Result, code
from council.conformance.table import document, listed, summary, table
from council.conformance.verdicts import Failed, Turn, need, need_fault, need_text
from wrapper.adapters.base import Answer


async def water_is_wet(bench: object) -> None:
    """Water is wet, and stays so, however often it is looked at."""


async def fire_is_cold(bench: object) -> None:
    """Fire is cold."""


WATER, FIRE = Check(water_is_wet), Check(fire_is_cold)
RESULTS = [
    Result(WATER, Outcome.PASSED, saw={"it": "drips"}, seconds=1.2344),
    Result(FIRE, Outcome.FAILED, "it burnt \x1b[31mme", seconds=2.0),
    Result(FIRE, Outcome.FAILED, "it burnt \x1b[31mme"),
    Result(FIRE, Outcome.NOT_APPLICABLE, "there is none"),
]


def test_every_outcome_has_a_row_with_its_reason_told_once() -> None:
    assert table(RESULTS, 48).splitlines() == [
        "passed  water-is-wet",
        "        Water is wet, and stays so, however",
        "        often it is looked at.",
        "FAILED  fire-is-cold",
        "        Fire is cold.",
        "        -> it burnt \u241b[31mme",
        "FAILED  fire-is-cold",
        "        Fire is cold.",
        "        -> it burnt \u241b[31mme",
        "n/a     fire-is-cold",
        "        Fire is cold.",
        "        -> there is none",
    ]


def test_a_reason_that_was_told_is_not_told_again() -> None:
    told = table([Result(WATER, Outcome.FAILED, "no water"), Result(FIRE, Outcome.FAILED, "no water")], 80)
    assert told.splitlines()[-1] == "        -> as for water-is-wet"


def test_the_last_line_counts() -> None:
    assert summary(RESULTS) == "1 passed, 2 failed, 1 not applicable in 3 s"
    assert summary(RESULTS[:1]) == "1 passed in 1 s"
    assert (code(RESULTS), code(RESULTS[:1]), code([RESULTS[3]])) == (1, 0, 0)


def test_a_program_is_told_everything() -> None:
    told = json.loads(json.dumps(document("claude", "native", RESULTS[:2])))
    assert told["conforms"] is False
    assert (told["preset"], told["adapter"]) == ("claude", "native")
    assert told["checks"][0] == {
        "name": "water-is-wet",
        "says": "Water is wet, and stays so, however often it is looked at.",
        "outcome": "passed",
        "why": "",
        "saw": {"it": "drips"},
        "seconds": 1.234,
    }
    assert document("claude", "native", RESULTS[:1])["conforms"] is True


def test_the_list_says_what_each_check_says() -> None:
    assert listed([FIRE], 80) == "fire-is-cold\n        Fire is cold.\n"


def test_every_check_says_one_sentence_and_has_a_name_of_its_own() -> None:
    for check in CHECKS:
        assert check.says.endswith(".")
        assert "\n" not in check.says
        assert check.says.count(". ") == 0
    assert len({check.name for check in CHECKS}) == len(CHECKS) > 30


def turn(answer: str | None = None, fault: AdapterFault | None = None) -> Turn:
    told = None if answer is None else Answer(answer)
    return Turn("a prompt " + "x" * 80, told, fault, requests=(), left=(), kept=None, seconds=1.0)


def test_a_turn_that_was_not_answered_is_told_by_its_fault() -> None:
    fault = AdapterFault(Fault.QUOTA, PromptSent.YES, "nothing left")
    with pytest.raises(Failed, match=r"'a prompt x+\.\.\.' was answered by quota: nothing left"):
        _ = turn(fault=fault).answered
    with pytest.raises(Failed, match="was answered: 'yes'"):
        _ = turn("yes").failed
    with pytest.raises(Failed, match="was answered by nothing"):
        _ = turn().failed
    with pytest.raises(Failed, match="reached no model"):
        _ = turn("yes").last
    assert turn(fault=fault).failed is fault


def test_what_is_needed_is_named_where_it_is_missing() -> None:
    need(1, "")
    need_text(turn("yes"), "yes")
    with pytest.raises(Failed, match="was answered by 'yes', not by 'no'"):
        need_text(turn("yes"), "no")
    quota = turn(fault=AdapterFault(Fault.QUOTA, PromptSent.YES, "nothing left"))
    assert need_fault(quota, Fault.QUOTA, PromptSent.MAYBE, PromptSent.YES).detail == "nothing left"
    with pytest.raises(
        Failed, match="is told as quota, prompt sent: yes, not as quota, prompt sent: no or maybe"
    ):
        need_fault(quota, Fault.QUOTA, PromptSent.NO, PromptSent.MAYBE)
