"""`council.orders` and `council.verbs`: from an operator's words to one message, and out of a refusal."""

from __future__ import annotations

import re
import shlex
from typing import Any

import pytest
from statuses import ADA, BOB, command, faulty, gone, paused, seat, status

from consilium import messages as m
from consilium.errors import ErrorCode, PeerError, UserError
from consilium.messages import MAX_SPEECH_BYTES
from council import orders
from council.verbs import VERBS, parser


def made(line: str, stdin: str = "") -> orders.Order:
    return orders.order(parser().parse_args(shlex.split(line)), lambda: stdin)


@pytest.mark.parametrize(
    ("line", "message", "done"),
    [
        ("status", m.StatusRequest(), ""),
        (
            "inject 'What does it cost?'",
            m.Inject(text="What does it cost?"),
            "every seat finds it in its next",
        ),
        ("topic 'Wrap what first?'", m.SetTopic(topic="Wrap what first?"), "changed, from the next turn on"),
        ("phase REBUTTAL", m.SetPhase(phase=m.Phase.REBUTTAL), "The phase is REBUTTAL, from the next turn"),
        (
            "phase closing --round-end",
            m.SetPhase(phase=m.Phase.CLOSING, when=m.When.ROUND_END),
            "The phase becomes CLOSING when the round is complete",
        ),
        ("kick ada", m.Kick(seat="ada"), "ada is removed from the debate for good"),
        (f"kick {ADA}", m.Kick(seat=ADA), f"{ADA} is removed from the debate for good"),
        ("force-turn-end", m.ForceTurnEnd(), "The open turn is taken back"),
        ("next bob", m.Next(seat="bob"), "The next turn is for bob"),
        ("pause", m.Pause(), "Paused: no further turn is given; one that is open may finish"),
        ("pause --reason tea", m.Pause(reason="tea"), "Paused"),
        ("resume", m.Resume(), "The debate goes on."),
        (
            "resume ada=skip bob=remove",
            m.Resume(seats={"ada": m.Recovery.SKIP, "bob": m.Recovery.REMOVE}),
            "The debate goes on.",
        ),
        (
            "resume ada=cold bob=keep",
            m.Resume(seats={"ada": m.Recovery.COLD, "bob": m.Recovery.KEEP}),
            "The debate goes on once ada has been started anew",
        ),
        ("reload", m.Reload(), "read again; the record says what changed"),
        ("terminate", m.Terminate(), "The debate is closed."),
        (
            "terminate --round-end --reason enough",
            m.Terminate(when=m.When.ROUND_END, reason="enough"),
            "The debate is closed when the round is complete",
        ),
    ],
)
def test_a_verb_is_one_message_and_one_sentence(line: str, message: m.Message, done: str) -> None:
    order = made(line)
    assert order.message == message
    assert done in order.done
    assert "\n" not in order.done


def test_a_text_can_come_from_standard_input_in_as_many_lines_as_it_has() -> None:
    assert made("inject -", "one\n\n  two\n").message == m.Inject(text="one\n\n  two")
    assert made("inject ' -'", "no").message == m.Inject(text=" -")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("inject ''", "the text must have 1 character at least and 65,536 bytes"),
        (f"inject {'x' * (MAX_SPEECH_BYTES + 1)}", "the text must have 1 character at least"),
        ("topic ''", "a topic has 1 to 8,000 characters"),
        (f"topic {'x' * 8001}", "a topic has 1 to 8,000 characters"),
        (f"pause --reason {'x' * 2001}", "a reason has at most 2,000 characters"),
        ("kick Ada", "a seat is named by its name or its id; `status` lists them"),
        ("next ''", "a seat is named by its name or its id; `status` lists them"),
        ("resume Ada=keep", "a seat is named by its name or its id; `status` lists them"),
        ("resume ada", "'ada' is not SEAT=CHOICE\n  the choices are: keep, cold, skip, remove"),
        ("resume ada=", "'ada=' is not SEAT=CHOICE"),
        ("resume ada=replay", "'ada=replay' is not SEAT=CHOICE"),
        ("resume ada=keep ada=skip", "'ada' is given two choices"),
    ],
)
def test_words_that_make_no_message_are_one_sentence(line: str, sentence: str) -> None:
    with pytest.raises(UserError) as refusal:
        made(line)
    assert str(refusal.value).startswith(sentence)


def test_text_that_is_not_utf_8_is_one_sentence() -> None:
    options = parser().parse_args(["inject", "caf\udce9"])
    with pytest.raises(UserError, match="the text is not valid UTF-8"):
        orders.order(options, str)


# --- refusals ------------------------------------------------------------------------------------------


def test_a_refusal_names_the_verb_or_the_connection() -> None:
    refusal = PeerError(ErrorCode.INVALID_STATE, "no turn is open", in_reply_to="op-1")
    assert orders.refused("force-turn-end", refusal) == "the Arbiter refused force-turn-end: no turn is open"
    stranger = PeerError(ErrorCode.POLICY_DENIED, "not here")
    assert orders.refused("status", stranger) == "the Arbiter refused this connection: not here"


def test_only_a_certificate_that_is_not_wanted_is_told_which_is() -> None:
    assert "--profile operator" in orders.entitled(PeerError(ErrorCode.POLICY_DENIED, "not here"))
    assert orders.entitled(PeerError(ErrorCode.RATE_LIMITED, "too many messages")) == ""
    assert orders.entitled(PeerError(ErrorCode.POLICY_DENIED, "no", in_reply_to="op-1")) == ""


RUNNING = status(seat(ADA), gone(BOB))


@pytest.mark.parametrize(
    ("verb", "stands", "hint"),
    [
        ("kick", RUNNING, "the seats: ada (active), bob (faulty, not connected)"),
        ("next", status(), "the seats: none yet"),
        ("pause", paused(), "it is paused; to go on: consilium admin --bundle anna resume"),
        ("pause", RUNNING, "where it stands: consilium admin --bundle anna status"),
        ("force-turn-end", RUNNING, "where it stands: consilium admin --bundle anna status"),
        ("resume", RUNNING, "where it stands: consilium admin --bundle anna status"),
        (
            "resume",
            status(debate_state=m.DebateState.WAITING_QUORUM, warnings=("waiting for: ada",)),
            "waiting for: ada",
        ),
        (
            "inject",
            status(debate_state=m.DebateState.FINISHED, reason="done"),
            "the debate is over (FINISHED: done); its transcript stays readable",
        ),
    ],
)
def test_the_way_out_comes_from_where_the_debate_stands(verb: str, stands: m.Status, hint: str) -> None:
    assert orders.way_out(verb, stands, command) == hint


def test_a_resume_that_is_refused_lists_the_choices_as_commands() -> None:
    lines = orders.way_out("resume", paused(faulty(ADA), gone(BOB)), command).split("\n  ")
    assert [line.split("    (")[0] for line in lines] == [
        "consilium admin --bundle anna resume",
        "consilium admin --bundle anna resume ada=keep bob=skip",
        "consilium admin --bundle anna resume ada=cold bob=skip",
        "consilium admin --bundle anna resume ada=skip bob=skip",
        "consilium admin --bundle anna resume ada=remove bob=skip",
        "consilium admin --bundle anna resume bob=skip",
        "consilium admin --bundle anna resume bob=remove",
        "consilium admin --bundle anna terminate",
    ]


def test_a_seat_that_cannot_come_back_is_not_waited_for() -> None:
    lines = orders.way_out("resume", paused(gone(BOB, fault="certificate_revoked")), command).split("\n  ")
    assert [line.split("    (")[0].split(" anna ")[1] for line in lines] == [
        "resume bob=skip",
        "resume bob=remove",
        "terminate",
    ]


# --- the words -----------------------------------------------------------------------------------------


def test_every_verb_but_watch_has_its_message() -> None:
    assert set(orders._ORDERS) == set(VERBS) - {"watch"}


@pytest.mark.parametrize("verb", [None, *VERBS])
def test_help_shows_examples_that_can_be_typed(verb: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        parser().parse_args([*([verb] if verb else []), "--help"])
    assert stop.value.code == 0
    told = capsys.readouterr().out
    lines = re.findall(r"^  consilium admin (.+)$", told, re.MULTILINE)
    assert lines
    for line in lines:
        options = parser().parse_args(shlex.split(line.split(" < ")[0]))
        assert verb in (None, options.verb)
        if options.verb != "watch":
            assert isinstance(orders.order(options, lambda: "text").message, m.Message)


@pytest.mark.parametrize(
    "words",
    [
        ["--bundle", "b", "--json", "--port", "7", "status"],
        ["status", "--bundle", "b", "--json", "--port", "7"],
        ["--bundle", "a", "--port", "7", "status", "--json", "--bundle", "b"],
    ],
)
def test_what_all_verbs_take_may_stand_before_or_after_the_verb(words: list[str]) -> None:
    options: Any = parser().parse_args(words)
    assert (str(options.bundle), options.json, options.port) == ("b", True, 7)


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["shout"],
        ["inject"],
        ["inject", "a", "b"],
        ["phase"],
        ["phase", "MIDDLE"],
        ["kick"],
        ["--port", "many", "status"],
        ["watch", "--from", "here"],
        ["--bun", "x", "status"],
    ],
)
def test_a_mistake_in_the_words_is_told_with_the_usage(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        parser().parse_args(words)
    assert stop.value.code == 2
    assert "usage: consilium admin" in capsys.readouterr().err
