"""`council.live` and `council.telling`: what a person or a program sees while a debate runs."""

from __future__ import annotations

import itertools
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from transcripts import BUILDER, HOSTILE, HUMAN, SCEPTIC, debate, event, header, joined, turn

from consilium.config import Caps, Council, Participant
from consilium.messages import Meta
from consilium.records import EventName, Stored, TurnOutcome
from council.closing import Closing
from council.course import Verdict
from council.live import SIGN_OF_LIFE_SECONDS, JsonView, TextView
from council.telling import RULE, Teller, short

if TYPE_CHECKING:
    from consilium.records import AnyEntry
    from council.live import View

COUNCIL = Council(
    topic="Rewrite the billing service, or wrap it and replace it piece by piece over the years?",
    caps=Caps(max_rounds=3, max_tokens=1_234_567),
    participants=(
        Participant(name="sceptic", role="sceptic", role_label="The Sceptic"),
        Participant(name="b", preset="claude", model="sonnet", role="pragmatist"),
        Participant(name="c", role_prompt="Doubt."),
        Participant(name="d", preset="codex"),
    ),
)
BACK = "2026-11-30T18:30:00Z"
CLOSING = Closing(
    Verdict(0, "FINISHED", "the debate is finished after 9 turns: done"),
    (("State", ("finished",)), ("Seats", ("a: 3 turns", "b: 3 turns"))),
    (("Record", "/a/very/long/path/" + "x" * 120),),
)


class Screen:
    """What was written, and the view that wrote it."""

    def __init__(self, **options: Any) -> None:
        self.written: list[str] = []
        defaults = {"width": 60, "terminal": False, "colour": False, "now": 100.0}
        self.view = TextView(self.written.append, **(defaults | options))

    @property
    def text(self) -> str:
        return "".join(self.written)

    def last(self) -> str:
        return self.written[-1]


def stored(entry: AnyEntry, seq: int = 0) -> Stored:
    return Stored(seq=seq, prev="sha256:0", ts="2026-11-30T12:00:00.000Z", entry=entry)


def told(*entries: AnyEntry) -> list[str]:
    """The lines that records are told in, without colours."""
    screen = Screen()
    for entry in entries:
        screen.view.record(stored(entry), 101.0)
    return screen.text.splitlines()


# --- the record ----------------------------------------------------------------------------------------


def test_a_speech_is_told_with_its_cost_and_its_text_wrapped() -> None:
    lines = told(turn(1, text="word " * 30))
    assert lines[0] == "sceptic · tokens 900 in, 100 out, 12.5 s"
    assert all(line.startswith("  word") and len(line) < 60 for line in lines[1:])
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        (None, "tokens unknown"),
        ((None, None), "tokens unknown"),
        ((1200, None), "tokens 1,200 in, unknown out"),
        ((0, 0), "tokens 0 in, 0 out"),
    ],
)
def test_unknown_tokens_are_unknown_and_never_zero(
    tokens: tuple[int | None, int | None] | None, shown: str
) -> None:
    assert told(turn(1, tokens=tokens))[0] == f"sceptic · {shown}, 12.5 s"


def test_a_skip_is_no_silence() -> None:
    (line,) = told(turn(1, HUMAN, outcome=TurnOutcome.SKIP, tokens=None))
    assert line == "ana has nothing to add · tokens unknown, 12.5 s"


@pytest.mark.parametrize(("detail", "why"), [("deadline_exceeded", "deadline_exceeded"), (None, "revoked")])
def test_a_turn_without_a_speech_says_why(detail: str | None, why: str) -> None:
    (line,) = told(turn(1, outcome=TurnOutcome.REVOKED, detail=detail))
    assert line == f"sceptic gave no speech: {why} · tokens 900 in, 100 out, 12.5 s"


def test_a_role_is_told_where_it_says_more_than_the_name() -> None:
    lines = told(
        joined(SCEPTIC),
        joined(BUILDER, meta={"role_label": "Constraint keeper"}),
        joined(HUMAN, meta={}),
        event(EventName.TURN_STARTED, SCEPTIC, turn=1, phase="OPENING"),
        event(EventName.TURN_STARTED, BUILDER, turn=2, phase="OPENING"),
        turn(2, BUILDER, meta=Meta(role_label="Constraint keeper"), text="x"),
    )
    assert lines == [
        "  sceptic is seated",
        "  builder is seated",
        "  ana is seated",
        "▸ turn 1, OPENING: sceptic",
        "▸ turn 2, OPENING: builder (Constraint keeper)",
        "builder (Constraint keeper) · tokens 900 in, 100 out, 12.5 s",
        "  x",
    ]


@pytest.mark.parametrize(
    ("entry", "lines"),
    [
        (header(), []),
        (event(EventName.DEBATE_STARTED, phase="OPENING"), ["", f"── OPENING {RULE}"]),
        (event(EventName.PHASE_CHANGED, phase="CLOSING", previous="REBUTTAL"), ["", f"── CLOSING {RULE}"]),
        (event(EventName.ROUND_COMPLETED, round=2), ["  round 2 is complete"]),
        (
            event(EventName.MODERATOR_STEERING, text="Name the cost\nof waiting."),
            ["moderator", "  Name the cost", "  of waiting."],
        ),
        (event(EventName.OPERATOR_COMMAND, operation="SET_PHASE", phase="CLOSING", when="round_end"), []),
        (
            event(EventName.OPERATOR_COMMAND, operation="PAUSE", reason="tea"),
            ["  operator command (operation PAUSE, reason tea)"],
        ),
        (
            event(EventName.USAGE_UNREPORTED, SCEPTIC, cap="max_tokens", limit=900),
            [f"  {SCEPTIC} reports no tokens; estimated towards: max_tokens (limit 900)"],
        ),
        (event(EventName.PARTICIPANT_FAULT, SCEPTIC, reason="stalled"), [f"  {SCEPTIC} failed: stalled"]),
        (
            event(EventName.DEBATE_PAUSED, reason="participant_failed", seats=[]),
            ["  paused: participant_failed"],
        ),
        (
            event(EventName.DEBATE_PAUSED, reason="quota_exhausted", seats=[SCEPTIC], resets_at=BACK),
            [f"  paused: the quota of {SCEPTIC} is used up; it comes back: 2026-11-30 18:30 UTC"],
        ),
        (event(EventName.HUMAN_SKIP, HUMAN), []),
        (event(EventName.PARTICIPANT_UPDATED, SCEPTIC, required=False), []),
        (event(EventName.DEBATE_ENDED, outcome="FINISHED"), []),
        (
            event(EventName.PARTICIPANT_JOINED_COLD, BUILDER, name="builder"),
            [f"  {BUILDER} took a seat in the middle, without the history: builder"],
        ),
    ],
)
def test_an_event_is_told_in_a_line_if_it_is_news(entry: AnyEntry, lines: list[str]) -> None:
    assert told(entry) == lines


def test_nothing_that_a_seat_wrote_commands_the_terminal() -> None:
    seen = told(
        turn(1, text=HOSTILE),
        turn(2, outcome=TurnOutcome.FAILED, detail=HOSTILE, refused=(HOSTILE,)),
        event(EventName.DEBATE_PAUSED, reason="quota_exhausted", seats=[SCEPTIC], resets_at=HOSTILE),
        joined(BUILDER, meta={"role_label": HOSTILE}),
        event(EventName.TURN_STARTED, BUILDER, turn=3, phase="OPENING"),
        event(EventName.PARTICIPANT_LEFT, BUILDER, reason=HOSTILE),
        event(EventName.MODERATOR_STEERING, text=HOSTILE),
    )
    assert seen
    assert not re.search(r"[\x00-\x1f\x7f-\x9f\u200b\u2028\u2029\u202e]", "".join(seen))


@pytest.mark.parametrize("outcome", [TurnOutcome.SPEECH, TurnOutcome.SKIP, TurnOutcome.FAILED])
def test_what_a_client_was_not_allowed_to_do_is_told_after_its_turn(outcome: TurnOutcome) -> None:
    lines = told(turn(1, outcome=outcome, refused=("touch /etc/x", "cat /etc/shadow")))
    assert lines[-2:] == [
        "  was not allowed to do this: touch /etc/x",
        "  was not allowed to do this: cat /etc/shadow",
    ]


def test_a_whole_debate_can_be_told() -> None:
    lines = told(*debate())
    assert f"── REBUTTAL {RULE}" in lines
    assert "  Then wrap it first." in lines


def test_a_seat_keeps_its_colour_and_the_first_five_differ() -> None:
    teller = Teller(80)
    names = ["a", "b", "c", "d", "e"]
    colours = [teller.seat(name)[1] for name in names]
    assert len(set(colours)) == 5
    assert [teller.seat(name)[1] for name in reversed(names)] == colours[::-1]


def test_the_display_suffix_is_left_out() -> None:
    assert short("a_b_AB12CD34") == "a_b"
    assert short("a_b") == "a_b"
    assert short(None) == ""


# --- the screen ----------------------------------------------------------------------------------------


def test_it_begins_with_topic_seats_caps_and_folder() -> None:
    screen = Screen()
    screen.view.begin(COUNCIL, Path("/debates/x"), 100.0)
    assert screen.text.splitlines() == [
        "Topic",
        "  Rewrite the billing service, or wrap it and replace it",
        "  piece by piece over the years?",
        "Seats",
        "  sceptic: role The Sceptic, client llm (embedded model)",
        "  b: role pragmatist, client claude (sonnet)",
        "  c: role in its own words, client llm (embedded model)",
        "  d: role none, client codex",
        "Caps    rounds 3, tokens 1,234,567",
        "Folder  /debates/x",
    ]


def test_a_model_server_of_ones_own_is_named_with_the_seats_that_it_serves() -> None:
    seats = (Participant(name="a", model="qwen3"), Participant(name="b", preset="codex", model="gpt"))
    council = COUNCIL.model_copy(update={"participants": seats})
    screen = Screen(width=100)
    screen.view.begin(council, Path("/debates/x"), 100.0, endpoint="http://127.0.0.1:9/v1")
    assert "  a: role none, client llm (qwen3) at http://127.0.0.1:9/v1\n" in screen.text
    assert "  b: role none, client codex (gpt)\n" in screen.text
    assert "embedded" not in screen.text


def test_it_ends_with_verdict_status_and_places_that_can_be_copied() -> None:
    screen = Screen()
    screen.view.end(CLOSING, 100.0)
    assert screen.text.splitlines() == [
        "",
        "The debate is finished after 9 turns: done.",
        "State     finished",
        "Seats     a: 3 turns",
        "          b: 3 turns",
        f"Record    {CLOSING.places[0][1]}",
    ]


def test_elsewhere_than_on_a_terminal_there_is_no_escape_sequence_at_all() -> None:
    screen = Screen()
    screen.view.begin(COUNCIL, Path("x"), 100.0)
    for entry in debate():
        screen.view.record(stored(entry), 101.0)
        screen.view.tick(109.0)
    screen.view.end(CLOSING, 110.0)
    assert "\x1b" not in screen.text
    assert "\r" not in screen.text


def test_a_terminal_without_colours_gets_only_the_status_line_s_sequence() -> None:
    screen = Screen(terminal=True)
    screen.view.record(stored(turn(1)), 101.0)
    screen.view.tick(101.1)
    assert set(re.findall(r"\x1b\[[0-9]*[A-Za-z]", screen.text)) == {"\x1b[K"}


def test_a_terminal_with_colours_shows_them() -> None:
    screen = Screen(terminal=True, colour=True)
    screen.view.record(stored(turn(1)), 101.0)
    assert "\x1b[36msceptic\x1b[0m" in screen.text


# --- signs of life -------------------------------------------------------------------------------------


def test_the_status_line_is_redrawn_in_its_place_and_says_who_is_thinking() -> None:
    screen = Screen(terminal=True)
    screen.view.record(stored(event(EventName.TURN_STARTED, SCEPTIC, turn=1, phase="OPENING")), 101.0)
    screen.view.tick(107.2)
    first = screen.last()
    assert re.fullmatch(r"\r\x1b\[K\S sceptic is thinking, 6 s", first)
    screen.view.tick(107.4)
    assert screen.last() != first
    screen.view.say("news", 107.5)
    assert screen.last() == "\r\x1b[Knews\n"


def test_the_status_line_never_fills_the_width() -> None:
    screen = Screen(terminal=True, width=24)
    screen.view.doing("something with a very long description, longer than any line", 100.0)
    screen.view.tick(101.0)
    assert len(screen.last().removeprefix("\r\x1b[K")) < 24


def test_plain_output_is_never_silent_for_two_seconds() -> None:
    screen = Screen()
    screen.view.doing("starting the embedded model", 100.0)
    spoke = [100.0]
    for step in range(1, 101):
        now = 100.0 + step * 0.2
        before = len(screen.written)
        screen.view.tick(now)
        if len(screen.written) > before:
            spoke.append(now)
    gaps = [after - before for before, after in itertools.pairwise(spoke)]
    assert max(gaps) <= 2.0
    assert min(gaps) >= SIGN_OF_LIFE_SECONDS
    assert screen.last() == "… starting the embedded model, 20 s\n"


@pytest.mark.parametrize(
    ("entry", "doing"),
    [
        (event(EventName.TURN_STARTED, SCEPTIC, turn=1), "sceptic is thinking"),
        (turn(1), "choosing the next speaker"),
        (event(EventName.DEBATE_STARTED), "choosing the next speaker"),
        (event(EventName.DEBATE_RESUMED), "choosing the next speaker"),
        (event(EventName.DEBATE_PAUSED, reason="x"), "the debate is paused"),
        (event(EventName.DEBATE_ENDED, outcome="FINISHED"), "closing"),
        (event(EventName.ROUND_COMPLETED, round=1), "starting"),
    ],
)
def test_what_is_under_way_follows_the_record(entry: AnyEntry, doing: str) -> None:
    screen = Screen()
    screen.view.record(stored(entry), 100.0)
    screen.view.tick(103.0)
    assert screen.last() == f"… {doing}, 3 s\n"


def test_a_pause_lasts_until_it_is_lifted_whatever_turn_ends_in_it() -> None:
    screen = Screen()
    for entry, doing in (
        (event(EventName.TURN_STARTED, SCEPTIC, turn=1), "sceptic is thinking"),
        (event(EventName.DEBATE_PAUSED, reason="operator"), "the debate is paused"),
        (turn(1), "the debate is paused"),
        (event(EventName.DEBATE_RESUMED), "choosing the next speaker"),
        (turn(2), "choosing the next speaker"),
    ):
        screen.view.record(stored(entry), 100.0)
        screen.view.tick(103.0)
        assert screen.last() == f"… {doing}, 3 s\n"


# --- programs ------------------------------------------------------------------------------------------


def test_programs_get_one_json_object_a_line() -> None:
    written: list[str] = []
    view: View = JsonView(written.append, now=100.0)
    view.begin(COUNCIL, Path("/d"), 100.0, endpoint="http://h/v1")
    view.doing("seating", 100.0)
    view.say("a note", 100.0)
    view.record(stored(turn(1, text=HOSTILE), seq=7), 100.5)
    view.tick(101.0)
    view.tick(103.0)
    view.end(CLOSING, 104.0)
    assert not set("\x1b\x7f\x9b\u202e") & set("".join(written)), "a terminal may be what reads it"
    lines = [json.loads(line) for line in "".join(written).split("\n")[:-1]]
    assert [line["event"] for line in lines] == ["council", "doing", "note", "record", "alive", "end"]
    assert lines[0]["folder"] == "/d"
    assert lines[0]["endpoint"] == "http://h/v1"
    assert lines[0]["council"]["caps"] == {"max_rounds": 3, "max_tokens": 1_234_567}
    assert lines[3]["record"]["seq"] == 7
    assert lines[3]["record"]["text"] == HOSTILE
    assert lines[4] == {"event": "alive", "doing": "choosing the next speaker", "seconds": 2.5}
    assert lines[5]["exit"] == 0
    assert lines[5]["outcome"] == "FINISHED"
    assert lines[5]["status"]["Seats"] == ["a: 3 turns", "b: 3 turns"]
