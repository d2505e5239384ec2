"""What a person reads, whoever wrote it."""

from __future__ import annotations

import io

import pytest
from statuses import ADA, cost, seat, status

from consilium import messages as m
from consilium.console import Console
from wrapper.adapters.base import Turn
from wrapper.human import pages
from wrapper.prompts import MARKER

ME = "me_AB12CD34"


def page(*delta: m.DeltaEntry, waiting: int = 0, first: bool = False, limit_chars: int = 500) -> list[str]:
    context = m.Context(
        turn_id=12, phase=m.Phase.REBUTTAL, topic="Wrap it?\x1b[2J", delta=delta, waiting=waiting
    )
    written = io.StringIO()
    turn = Turn(context, 0.0, limit_chars=limit_chars, speech_bytes=100, first=first)
    pages.turn(Console(written, width=80), turn, 119.6)
    assert "\x1b" not in written.getvalue()
    return written.getvalue().splitlines()


def test_a_turn_says_what_is_new_and_how_long_it_may_take() -> None:
    said = m.DeltaEntry(speaker=ADA, role_label="Sceptic", text="One.\n/quit\n\x1b]0;t\x07Two\u202e.")
    steered = m.DeltaEntry(speaker="moderator", role_label="boss", text="Keep to the cost.")
    nothing = m.DeltaEntry(speaker="", text="\u200b")
    lines = page(said, steered, nothing)
    assert lines[0].startswith("── turn 12 · REBUTTAL · the Arbiter waits 2 min 0 s ─")
    assert lines[1] == "Topic    Wrap it?"
    assert lines[2].startswith("Phase    Answer the strongest argument")
    rest = lines[lines.index("") :]
    assert rest == [
        *("", f"{ADA} (Sceptic)", "    One.", "    /quit", "    Two."),
        *("", "the moderator", "    Keep to the cost."),
        *("", "(unnamed)", "    (There was no readable text in it.)"),
    ]
    assert MARKER not in "\n".join(lines)


def test_no_line_of_somebody_else_begins_where_ours_begin() -> None:
    imitation = "── turn 13 · CLOSING\nme_00000000 (you)\n    I agree."
    lines = page(m.DeltaEntry(speaker="ada\nthe moderator", text=imitation))
    assert [line for line in lines if "turn 13" in line] == ["    ── turn 13 · CLOSING"]
    assert "ada the moderator" in lines


def test_a_long_contribution_is_cut_and_says_so() -> None:
    lines = page(m.DeltaEntry(speaker=ADA, text="word " * 40), limit_chars=100)
    assert lines[-1] == "    (Cut here: it was longer by 99 characters.)"


@pytest.mark.parametrize(
    ("waiting", "first", "line"),
    [
        (0, True, "(Nobody has spoken yet.)"),
        (0, False, "(Nothing is new to you.)"),
        (1, False, "(There was no room for 1 newer contribution: more with your next turn.)"),
        (3, False, "(There was no room for 3 newer contributions: more with your next turn.)"),
    ],
)
def test_what_is_not_there_is_said(waiting: int, first: bool, line: str) -> None:
    assert page(waiting=waiting, first=first)[-1] == line


def told(report: m.Status, who: str = ME) -> str:
    written = io.StringIO()
    pages.status(Console(written, width=100), report, who)
    return written.getvalue()


def test_where_the_debate_stands() -> None:
    report = status(
        seat(ME, brand="human", model=None, role_label=None),
        seat(),
        seat("eva_AAAAAAAA", brand="human", model=None, connected=False),
        turns_since={ME: 63},
        repetition={ADA: 0.914},
        reason="operator",
        cost=cost(usd_total=1.5, caps={"max_tokens": 500_000.0}),
        warnings=("expect them to \x1b[31magree",),
    )
    said = told(report)
    for words in (
        "State    RUNNING: an operator paused it",
        "Turns    187; 63 since you last spoke",
        "Cost     412,000 tokens of 500,000, $1.50, 1 h 11 min",
        "Seat     you; active; 3 turns",
        f"Seat     {ADA} (claude, sonnet, sceptic); active; 3 turns; repeats itself 0.91",
        "Seat     eva_AAAAAAAA (human, sceptic, not connected); active; 3 turns; a person",
        "Warning  expect them to agree",
    ):
        assert words in said, said


def test_what_is_unknown_is_said_to_be() -> None:
    said = told(status(seat(brand=None, model=None, role_label=None), cost=cost(tokens_total=None)))
    assert "Turns    187\n" in said
    assert "Cost     unknown tokens, 1 h 11 min" in said
    assert f"Seat     {ADA}; active" in said


def test_who_sits_there() -> None:
    written = io.StringIO()
    pages.table(Console(written), status(), ME)
    assert written.getvalue() == "At the table: nobody yet\n"


def test_what_can_be_done_is_listed_with_its_key_where_there_are_keys() -> None:
    with_keys, without = io.StringIO(), io.StringIO()
    keys = {"away": "ctrl+g", "newline": "ctrl+j", "quit": "f2"}
    pages.commands(Console(with_keys, width=100), keys)
    pages.commands(Console(without, width=100), {})
    assert "  /away     Ctrl+G  step away" in with_keys.getvalue()
    assert "A backslash before it, Ctrl+J or Alt+Enter goes on" in with_keys.getvalue()
    assert "  /quit     F2      leave" in with_keys.getvalue()
    assert "  /away             step away" in without.getvalue()
    assert "A backslash before it goes on" in without.getvalue()
    assert "Ctrl+G away" in pages.hint(keys)
    assert "away" not in pages.hint({})
