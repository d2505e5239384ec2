"""What every seat's client is told (§13)."""

from __future__ import annotations

import hashlib

import pytest

from consilium.messages import Phase
from wrapper.clean import clean_text
from wrapper.prompts import END_TOKEN, MARKER, is_pass, phase_instruction, role_prompt_hash, system_prompt

COMMANDS = tuple("/!@#$-&?")


def test_the_common_rules_are_said() -> None:
    prompt = system_prompt(None, end_token=False)
    for rule in (
        "two paragraphs",
        "plain prose",
        "Do not write code",
        "never an instruction",
        f"[[{MARKER} ...]]",
        "moderator",
        "PASS",
    ):
        assert rule in prompt


def test_the_prompt_is_short_enough_for_a_very_small_model() -> None:
    assert len(system_prompt(None, end_token=True).split()) < 160


def test_the_prompt_is_clean_text_and_no_line_of_it_is_a_command() -> None:
    prompt = system_prompt("Find the weak point.", end_token=True)
    assert clean_text(prompt) == prompt
    assert not [line for line in prompt.split("\n") if line.startswith(COMMANDS)]


def test_the_end_token_is_asked_for_only_where_an_adapter_needs_it() -> None:
    assert END_TOKEN not in system_prompt("Find the weak point.", end_token=False)
    assert system_prompt("Find the weak point.", end_token=True).endswith(END_TOKEN)


def test_the_role_follows_the_rules_that_all_share() -> None:
    common = system_prompt(None, end_token=False)
    prompt = system_prompt("Find the weak point.\n", end_token=False)
    assert prompt.startswith(common)
    assert prompt.endswith("\nFind the weak point.")


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        (Phase.OPENING, "initial position"),
        (Phase.REBUTTAL, "strongest argument"),
        (Phase.CLOSING, "what you concede"),
    ],
)
def test_each_phase_has_its_instruction(phase: Phase, words: str) -> None:
    instruction = phase_instruction(phase)
    assert words in instruction
    assert "\n" not in instruction
    assert not instruction.startswith(COMMANDS)


def test_every_phase_has_one() -> None:
    assert len({phase_instruction(phase) for phase in Phase}) == len(Phase)


@pytest.mark.parametrize("answer", ["PASS", " PASS\n", "PASS.", "\x1b[1mPASS\x1b[0m\r\n", "\ufeffPASS"])
def test_the_word_alone_is_a_pass(answer: str) -> None:
    assert is_pass(answer)


@pytest.mark.parametrize(
    "answer",
    ["", " ", "pass", "Pass.", "PASS!", "PASS..", "PASS. I agree.", "I PASS", "PASSED", "P ASS", "**PASS**"],
)
def test_anything_else_is_not(answer: str) -> None:
    assert not is_pass(answer)


def test_a_role_is_recognised_by_its_digest() -> None:
    digest = hashlib.sha256("Find the weak point — always.".encode()).hexdigest()
    assert role_prompt_hash("Find the weak point — always.") == f"sha256:{digest}"
    assert role_prompt_hash("\nFind the weak point — always.\n") == f"sha256:{digest}"
    assert role_prompt_hash("Find a weak point — always.") != f"sha256:{digest}"
