"""`council.status`: STATUS as an operator reads it, and the commands that it offers."""

from __future__ import annotations

import io
import shlex
from typing import Any

import pytest
from playbook import Playbook
from statuses import ADA, ANA, BOB, command, cost, faulty, gone, paused, seat, status
from transcripts import HOSTILE

from consilium import messages as m
from consilium.console import Console
from council import orders
from council.status import costs, references, tell, ways_on
from council.verbs import parser


def told(of: m.Status, *, colour: bool = False) -> str:
    stream = io.StringIO()
    tell(of, Console(stream, colour=colour, width=100), command)
    return stream.getvalue()


# --- what is told --------------------------------------------------------------------------------------


def test_a_running_debate_is_told_in_a_few_lines() -> None:
    running = status(
        seat(ADA, repeats_turn=4, isolation="strict"),
        seat(BOB, state="speaking", brand=None, model=None, role_label=None, tokens=None, required=True),
        speaking=BOB,
        repetition={ADA: 0.914},
        topic_overlap={ADA: 0.4},
        brands=1,
        cost=cost(caps={"max_rounds": 12.0, "max_tokens": 500_000.0}),
        warnings=("every AI seat is of one brand",),
    )
    assert told(running).splitlines() == [
        "State     RUNNING",
        "Phase     REBUTTAL",
        "Topic     Wrap it or rewrite it?",
        "Turns     187; bob has the floor",
        "Rounds    [###############.....] 9 complete; the cap is 12",
        "Tokens    [################....] 412,000; the cap is 500,000",
        "Elapsed   1 h 11 min, no cap",
        "Brands    1 brand of AI clients",
        "Seat      ada_AB12CD34: active, connected",
        "          sceptic; claude sonnet; 3 turns, the last was turn 7; 12,500 tokens; isolation strict",
        "          repetition 0.91, most of it from turn 4",
        "          uses 40% of the topic's words (mechanical; watch it fall)",
        "Seat      bob_77AA11BB: speaking, connected, required",
        "          no role; model unknown; 3 turns, the last was turn 7; tokens unknown; isolation unknown",
        "Warning   every AI seat is of one brand",
    ]


@pytest.mark.parametrize(
    ("changes", "label", "line"),
    [
        ({"tokens_total": None, "tokens_unknown_turns": 3}, "Tokens", "unknown, no cap"),
        ({"tokens_total": None}, "Tokens", "none reported, no cap"),
        (
            {"tokens_total": None, "tokens_unknown_turns": 1, "caps": {"max_tokens": 100.0}},
            "Tokens",
            "[....................] unknown; the cap is 100",
        ),
        (
            {"tokens_total": 90, "tokens_unknown_turns": 1, "caps": {"max_tokens": 100.0}},
            "Tokens",
            "[##################..] 90, and unknown for 1 turn; the cap is 100",
        ),
        (
            {"tokens_total": 900, "caps": {"max_tokens": 100.0}},
            "Tokens",
            "[####################] 900; the cap is 100",
        ),
        (
            {"tokens_total": 90, "tokens_unknown_turns": 1, "tokens_estimated": 5},
            "Tokens",
            "90, and unknown for 1 turn and about 5 more, estimated, no cap",
        ),
        ({"usd_total": 3.18}, "Cost", "$3.1800, no cap"),
        (
            {"usd_total": 3.18, "caps": {"max_usd": 5.0}},
            "Cost",
            "[############........] $3.1800; the cap is $5.00",
        ),
        ({"caps": {"max_usd": 5.0}}, "Cost", "[....................] unknown; the cap is $5.00"),
        (
            {"elapsed_s": 30.0, "caps": {"max_seconds": 7200.0}},
            "Elapsed",
            "[....................] 30.0 s; the cap is 2 h 0 min",
        ),
        ({"rounds": 0}, "Rounds", "0 complete, no cap"),
    ],
)
def test_what_it_costs_is_told_against_its_cap_and_unknown_is_never_zero(
    changes: dict[str, Any], label: str, line: str
) -> None:
    assert dict(costs(status(cost=cost(**changes))))[label] == line


def test_money_is_not_mentioned_where_there_is_none_and_no_cap_on_it() -> None:
    assert "Cost" not in dict(costs(status()))


@pytest.mark.parametrize(
    ("turns", "since", "line"),
    [
        ("3 turns", 63, "a person, who spoke 63 turns ago"),
        ("1 turn", 1, "a person, who spoke 1 turn ago"),
        ("0 turns", 187, "a person, who has not spoken yet"),
        ("9 turns", 187, "a person, who has not spoken yet"),
    ],
)
def test_a_person_s_absence_is_told(turns: str, since: int, line: str) -> None:
    person = seat(ANA, brand="human", model=None, turns=int(turns[0]), last_turn=None, usd=0.25)
    lines = told(status(person, turns_since={ANA: since})).splitlines()
    assert lines[-1] == f"          {line}"
    assert lines[-2] == f"          sceptic; human; {turns}; 12,500 tokens; $0.2500"


@pytest.mark.parametrize(
    ("sent", "line"),
    [
        (m.PromptSent.NO, "no, its client was not given the turn"),
        (m.PromptSent.MAYBE, "maybe, its client may have been given the turn"),
        (m.PromptSent.YES, "yes, its client was given the turn"),
        (None, "no turn of its was open"),
    ],
)
def test_a_fault_is_told_with_what_is_known(sent: m.PromptSent | None, line: str) -> None:
    lines = told(paused(faulty(prompt_sent=sent))).splitlines()
    assert "          fault: stalled: nothing for 120 s" in lines
    assert f"          was the prompt sent: {line}" in lines


@pytest.mark.parametrize(
    ("sent", "seen", "line"),
    [
        (m.PromptSent.MAYBE, None, "how much of an answer had come: unknown"),
        (m.PromptSent.MAYBE, 0, "how much of an answer had come: 0 bytes"),
        (m.PromptSent.YES, 1, "how much of an answer had come: 1 byte"),
        (m.PromptSent.YES, 18_120, "how much of an answer had come: 18,120 bytes"),
        (m.PromptSent.NO, None, None),
        (None, None, None),
    ],
)
def test_a_fault_is_told_with_what_there_was_of_an_answer(
    sent: m.PromptSent | None, seen: int | None, line: str | None
) -> None:
    lines = told(paused(faulty(prompt_sent=sent, partial_bytes=seen))).splitlines()
    about = [told_line.strip() for told_line in lines if "of an answer" in told_line]
    assert about == ([] if line is None else [line])


def test_a_quota_that_is_used_up_is_told_with_its_end_and_the_way_on() -> None:
    used_up = faulty(fault="quota: exit 1", prompt_sent=m.PromptSent.YES, resets_at="2026-11-30T18:30:00Z")
    seen = told(paused(used_up, reason="quota_exhausted"))
    assert "PAUSED: the quota of ada is used up; it comes back: 2026-11-30 18:30 UTC\n" in seen
    assert "          its quota comes back: 2026-11-30 18:30 UTC\n" in seen
    ways = " ".join(seen.partition("To go on")[2].split())
    assert "ada keep: once its quota is back (2026-11-30 18:30 UTC), go on with it; it is given" in ways
    assert "ada skip: leave out its turn" in ways
    assert "ada remove: take it out" in ways


def test_a_quota_of_which_nobody_knows_when_it_comes_back_claims_nothing() -> None:
    seen = told(paused(faulty(fault="quota: exit 1"), reason="quota_exhausted"))
    assert "PAUSED: a seat's quota is used up\n" in seen
    assert "comes back" not in seen


def test_a_person_leaves_neither_tokens_nor_isolation_unknown() -> None:
    person = seat(ANA, brand="human", model=None, tokens=None)
    assert "          sceptic; human; 3 turns, the last was turn 7\n" in told(status(person))


@pytest.mark.parametrize(
    ("seconds", "line"),
    [(None, "unknown"), (0.0, "0.0 s ago"), (125.0, "2 min 5 s ago")],
)
def test_a_seat_that_needs_somebody_is_told_with_when_it_was_last_heard_of(
    seconds: float | None, line: str
) -> None:
    for troubled in (faulty(last_active_s=seconds), gone(last_active_s=seconds)):
        assert f"          last heard of, heartbeats left out: {line}\n" in told(paused(troubled))
    assert "heard of" not in told(status(seat(last_active_s=seconds)))


def test_a_seat_that_left_and_is_needed_is_no_fault() -> None:
    lines = told(paused(gone(state="absent", fault=None), reason="missing_required_participant"))
    assert "State     PAUSED: a seat that the debate needs has left\n" in lines
    assert "          it left, and the debate needs it\n" in lines
    assert "fault" not in lines


@pytest.mark.parametrize("there", [True, False])
def test_a_seat_that_is_gone_is_said_to_be_able_to_come_back(*, there: bool) -> None:
    lines = told(paused(faulty() if there else gone()))
    assert ("start it again, and it can go on from where it was" in lines) == (not there)


@pytest.mark.parametrize(
    ("state", "reason", "line"),
    [
        (m.DebateState.PAUSED, "operator", "PAUSED: an operator paused it"),
        (m.DebateState.PAUSED, "back in ten minutes", "PAUSED: back in ten minutes"),
        (m.DebateState.PAUSED, "arbiter_restarted", "PAUSED: the Arbiter was restarted"),
        (m.DebateState.FINISHED, "closed by the operator", "FINISHED: closed by the operator"),
        (m.DebateState.STOPPED_BY_CAP, "cap_reached", "STOPPED_BY_CAP: a cap is reached"),
        (m.DebateState.WAITING_QUORUM, None, "WAITING_QUORUM"),
    ],
)
def test_the_state_comes_with_its_reason(state: m.DebateState, reason: str | None, line: str) -> None:
    assert told(status(debate_state=state, reason=reason)).splitlines()[0] == f"State     {line}"


def test_nothing_that_a_seat_or_an_arbiter_says_can_command_the_terminal() -> None:
    worst = faulty(role_label=HOSTILE, model="\x1b]0;x\x07", fault=HOSTILE)
    text = told(paused(worst, topic=HOSTILE, warnings=(HOSTILE,)))
    assert not {char for char in text if char != "\n" and (ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0)}
    assert "\u202e" not in text


def test_colours_show_what_needs_somebody() -> None:
    text = told(paused(faulty()), colour=True)
    assert "\x1b[31mState     PAUSED: a seat cannot go on\x1b[0m" in text
    assert "\x1b[31mfaulty, connected\x1b[0m" in text
    assert "\x1b[1mconsilium admin --bundle anna resume ada=keep\x1b[0m" in text


# --- what is offered -----------------------------------------------------------------------------------


def offered(of: m.Status) -> list[str]:
    return [way.command.removeprefix("consilium admin --bundle anna ") for way in ways_on(of, command)]


def test_a_seat_that_is_here_has_every_choice() -> None:
    assert offered(paused(seat(BOB), faulty(ADA))) == [
        "resume ada=keep",
        "resume ada=cold",
        "resume ada=skip",
        "resume ada=remove",
        "terminate",
    ]


def test_a_seat_that_is_gone_can_be_left_out_or_removed() -> None:
    assert offered(paused(gone(BOB))) == ["resume bob=skip", "resume bob=remove", "terminate"]


def test_each_command_also_decides_on_the_others_that_need_it() -> None:
    assert offered(paused(faulty(ADA), gone(BOB), gone(ANA))) == [
        "resume ada=keep bob=skip ana=skip",
        "resume ada=cold bob=skip ana=skip",
        "resume ada=skip bob=skip ana=skip",
        "resume ada=remove bob=skip ana=skip",
        "resume bob=skip ana=skip",
        "resume bob=remove ana=skip",
        "resume ana=skip bob=skip",
        "resume ana=remove bob=skip",
        "terminate",
    ]


def test_a_name_that_two_have_is_told_with_its_suffix() -> None:
    twins = paused(faulty("ada_AB12CD34"), seat("ada_77AA11BB"), seat(BOB))
    assert set(references(twins).values()) == {"ada_AB12CD34", "ada_77AA11BB", "bob"}
    assert offered(twins)[0] == "resume ada_AB12CD34=keep"


@pytest.mark.parametrize(
    ("state", "reason", "ways"),
    [
        (m.DebateState.READY, None, [("resume", "begin"), ("terminate", "close the debate")]),
        (m.DebateState.PAUSED, "operator", [("resume", "go on"), ("terminate", "close the debate")]),
        (
            m.DebateState.PAUSED,
            "nobody_to_speak",
            [
                ("resume", "go on, once somebody has taken a seat"),
                ("terminate", "close the debate"),
            ],
        ),
        (m.DebateState.RUNNING, None, []),
        (m.DebateState.RESUMING, None, []),
        (m.DebateState.WAITING_QUORUM, None, []),
        (m.DebateState.FINISHED, "done", []),
    ],
)
def test_where_no_seat_is_in_trouble_the_state_says_what_can_be_done(
    state: m.DebateState, reason: str | None, ways: list[tuple[str, str]]
) -> None:
    found = ways_on(status(seat(), debate_state=state, reason=reason), command)
    assert [(way.choice, way.meaning) for way in found] == ways


def test_a_lost_turn_is_said_to_be_given_again_where_it_is() -> None:
    meanings = {way.choice: way.meaning for way in ways_on(paused(faulty()), command)}
    assert meanings["keep"].endswith("; it is given its lost turn again")
    assert meanings["cold"] == (
        "start its client anew, with no memory of the debate; it is given its lost turn again"
    )
    assert meanings["skip"] == "leave out its turn in this round, and go on with its chat"
    calm = {way.choice: way.meaning for way in ways_on(paused(faulty(prompt_sent=None)), command)}
    assert calm["keep"] == "you have checked that its chat survived: go on with it"


def test_a_seat_whose_certificate_was_revoked_is_not_said_to_come_back() -> None:
    meanings = {
        fault: {way.choice: way.meaning for way in ways_on(paused(gone(fault=fault)), command)}["skip"]
        for fault in ("certificate_revoked", "connection_lost")
    }
    assert meanings == {
        "certificate_revoked": "go on without it",
        "connection_lost": "go on without it, until it comes back by itself",
    }


def test_a_choice_of_a_later_arbiter_is_offered_without_a_claim() -> None:
    (way, _) = ways_on(paused(faulty(choices=("replay",))), command)
    assert (way.choice, way.meaning) == ("replay", "see the Arbiter's documentation")


# --- and what comes of it in a real debate ----------------------------------------------------------------


def one_failed(play: Playbook) -> None:
    play.fails("ada")


def one_is_gone(play: Playbook) -> None:
    play.is_lost("ada")


def one_failed_and_one_is_gone(play: Playbook) -> None:
    play.fails("ada")
    play.is_lost("bob")


def two_are_gone_and_one_failed(play: Playbook) -> None:
    play.is_lost("bob")
    play.fails("ada")
    play.is_lost("cyn")


def a_required_one_left(play: Playbook) -> None:
    play.leaves("bob")


def the_operator_paused(play: Playbook) -> None:
    play.commands(m.Pause())


TROUBLES = [
    one_failed,
    one_is_gone,
    one_failed_and_one_is_gone,
    two_are_gone_and_one_failed,
    a_required_one_left,
    the_operator_paused,
]


def in_trouble(trouble: Any) -> Playbook:
    play = Playbook(roster={"participants": [{"name": name} for name in ("ada", "bob", "cyn")]})
    play.everybody_joins()
    trouble(play)
    assert play.state() is m.DebateState.PAUSED
    return play


@pytest.mark.parametrize("trouble", TROUBLES)
def test_every_command_that_is_offered_is_accepted_as_it_stands(trouble: Any) -> None:
    lines = [way.command for way in ways_on(in_trouble(trouble).status(), command)]
    assert len(lines) > 1
    for line in lines:
        play = in_trouble(trouble)
        options = parser().parse_args(shlex.split(line)[2:])
        ordered: Any = orders.order(options, str)
        play.commands(ordered.message)
        assert play.refusal is None, line
        assert play.state() is not m.DebateState.PAUSED or play.debate.reason == "nobody_to_speak"
