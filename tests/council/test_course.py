"""`council.course`: one cause, one sentence, whatever came first."""

from __future__ import annotations

from signal import SIGKILL

import pytest
from transcripts import BUILDER, SCEPTIC, event, joined, turn

from consilium.messages import DebateState
from consilium.records import EventName, EventRecord
from council.course import Course, Verdict
from council.processes import Ended

STARTED = event(EventName.DEBATE_STARTED, phase="OPENING")
TURN = event(EventName.TURN_STARTED, SCEPTIC, turn=4, phase="REBUTTAL")
RESUMED = event(EventName.DEBATE_RESUMED, turn_counter=5)
ROUND = event(EventName.ROUND_COMPLETED, round=1)
PAUSED = event(EventName.DEBATE_PAUSED, reason="participant_failed", seats=[SCEPTIC])


def fault(
    reason: str = "stalled", prompt_sent: str | None = "maybe", resets_at: str | None = None
) -> EventRecord:
    fault = EventName.PARTICIPANT_FAULT
    return event(fault, SCEPTIC, reason=reason, prompt_sent=prompt_sent, resets_at=resets_at)


def ended(outcome: str, *, reason: str, cap: str | None = None) -> EventRecord:
    return event(EventName.DEBATE_ENDED, outcome=outcome, turn_counter=9, reason=reason, cap=cap)


def running() -> Course:
    course = Course(["sceptic", "builder"])
    for entry in (joined(SCEPTIC), joined(BUILDER), STARTED, TURN, turn(4), ROUND):
        course.observe(entry)
    return course


def test_a_next_speaker_is_due_after_the_start_and_each_turn_and_not_in_a_pause() -> None:
    course = Course(["sceptic"])
    due = []
    for entry in (joined(SCEPTIC), STARTED, TURN, turn(4), ROUND, PAUSED, turn(5), RESUMED, turn(6)):
        course.observe(entry)
        due.append(course.awaits_a_choice(entry))
    assert due == [False, True, False, True, False, False, False, True, True]
    course.observe(ended("FINISHED", cap=None, reason="enough"))
    assert not course.awaits_a_choice(turn(7))


def test_a_finished_debate_is_0() -> None:
    course = running()
    course.observe(ended("FINISHED", cap=None, reason="the planned rounds are complete"))
    assert course.over == Verdict(
        0, "FINISHED", "the debate is finished after 9 turns: the planned rounds are complete"
    )
    assert course.verdict().sentence == (
        "The debate is finished after 9 turns: the planned rounds are complete."
    )


def test_a_debate_that_a_cap_stopped_is_0_and_names_the_cap() -> None:
    course = running()
    course.observe(ended("STOPPED_BY_CAP", cap="max_tokens", reason="cap_reached"))
    assert course.verdict() == Verdict(
        0, "STOPPED_BY_CAP", "the debate was stopped by a cap after 9 turns: max_tokens"
    )


def test_a_pause_that_cannot_be_recorded_is_known_from_the_second_look() -> None:
    course = running()
    course.seen_at(DebateState.PAUSED, "no space")
    course.seen_at(DebateState.RUNNING, None)
    course.seen_at(DebateState.PAUSED, "no space")
    first = course.troubled
    course.seen_at(DebateState.PAUSED, "no space")
    assert (first, course.troubled) == (False, True), "at first its record may be on its way"
    assert course.verdict().sentence == "No space. The debate stood paused in REBUTTAL, at turn 4."


def test_a_look_tells_nothing_new_of_a_pause_that_is_on_the_record() -> None:
    course = running()
    course.observe(event(EventName.OPERATOR_COMMAND, operation="PAUSE"))
    course.observe(event(EventName.DEBATE_PAUSED, reason="tea"))
    for _ in range(3):
        course.seen_at(DebateState.PAUSED, "tea")
    assert not course.troubled, "an operator's own pause is that operator's to end"


def test_a_debate_that_ended_in_error_is_1() -> None:
    course = running()
    course.observe(ended("ERROR", reason="disk full"))
    assert course.verdict().code == 1
    assert course.verdict().cause == "the debate ended in error after 9 turns: disk full"


def test_while_all_is_well_there_is_no_trouble() -> None:
    course = running()
    assert (course.over, course.troubled, course.started, course.missing) == (None, False, True, [])


@pytest.mark.parametrize(
    ("prompt_sent", "told"),
    [
        ("no", ", and its client was not given the turn"),
        ("maybe", ", and its client may have been given the turn"),
        ("yes", ", and its client was given the turn"),
        (None, ""),
    ],
)
def test_a_fault_tells_the_seat_the_reason_and_what_is_known(prompt_sent: str | None, told: str) -> None:
    course = running()
    course.observe(fault(prompt_sent=prompt_sent))
    course.observe(PAUSED)
    assert course.troubled
    assert course.verdict() == Verdict(
        1,
        "FAULT",
        f"the seat sceptic cannot go on: stalled{told}",
        "the debate stood paused in REBUTTAL, at turn 4",
    )


def test_the_end_of_a_process_says_more_than_the_fault_that_it_causes() -> None:
    first, second = running(), running()
    death = Ended("seat-sceptic", -SIGKILL)
    for entry in (fault("data connection lost"), PAUSED):
        first.observe(entry)
    first.process_ended(death, "")
    second.process_ended(death, "")
    for entry in (fault("data connection lost"), PAUSED):
        second.observe(entry)
    assert first.verdict() == second.verdict()
    assert first.verdict().cause == "the seat sceptic was killed by SIGKILL"


@pytest.mark.parametrize(
    ("process", "told"), [("arbiter", "the Arbiter"), ("model", "the model server"), ("seat-a", "the seat a")]
)
def test_a_process_that_fails_is_named_with_its_last_words(process: str, told: str) -> None:
    course = running()
    course.process_ended(Ended(process, 1), "consilium: no space left")
    assert course.troubled
    assert course.verdict().cause == f"{told} ended with exit code 1 (consilium: no space left)"


def test_processes_that_end_alike_are_told_together() -> None:
    course = running()
    for name in ("a", "b"):
        course.process_ended(Ended(f"seat-{name}", 3), "refused")
    assert course.verdict().cause == "the seat a and the seat b ended with exit code 3 (refused)"


@pytest.mark.parametrize(
    ("process", "told"), [("arbiter", "the Arbiter was killed"), ("model", "the model server was killed")]
)
def test_what_follows_from_a_central_process_s_end_is_not_told_as_a_cause(process: str, told: str) -> None:
    course = running()
    course.process_ended(Ended("seat-sceptic", 4), "link lost")
    course.process_ended(Ended(process, -SIGKILL), "")
    course.observe(fault())
    course.connection_lost("cut")
    assert course.verdict().cause == f"{told} by SIGKILL"
    assert course.verdict().stood == "the debate stood in REBUTTAL, at turn 4"


def test_a_seat_that_leaves_of_its_own_accord_is_no_trouble() -> None:
    course = running()
    course.process_ended(Ended("seat-builder", 0), "")
    assert not course.troubled


def test_before_the_start_every_seat_is_needed() -> None:
    course = Course(["sceptic"])
    course.process_ended(Ended("seat-sceptic", 0), "")
    assert course.troubled


def test_the_arbiter_may_not_end_before_the_debate_does() -> None:
    course = running()
    course.process_ended(Ended("arbiter", 0), "")
    assert course.troubled


def test_a_quota_that_is_used_up_is_told_with_when_it_comes_back() -> None:
    course = running()
    course.observe(fault(reason="quota: exit 1", resets_at="2026-11-30T18:30:00Z"))
    cause = course.verdict().cause
    assert cause.startswith("the seat sceptic cannot go on: quota: exit 1, and its client ")
    assert cause.endswith("; its quota comes back: 2026-11-30 18:30 UTC")


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("nobody_to_speak", "nobody is left to speak"),
        ("missing_required_participant", "a seat that the debate needs has left"),
        ("something_new", "something_new"),
    ],
)
def test_a_pause_that_no_operator_asked_for_is_trouble(reason: str, told: str) -> None:
    course = running()
    course.observe(event(EventName.DEBATE_PAUSED, reason=reason, seats=[]))
    assert course.troubled
    assert course.verdict().cause == told


def test_an_operator_s_own_pause_is_no_trouble() -> None:
    course = running()
    course.observe(event(EventName.OPERATOR_COMMAND, operation="PAUSE", reason="tea"))
    course.observe(event(EventName.DEBATE_PAUSED, reason="tea", seats=[]))
    assert not course.troubled
    assert course.stood == "the debate stood paused in REBUTTAL, at turn 4"
    course.observe(event(EventName.DEBATE_RESUMED))
    assert course.stood == "the debate stood in REBUTTAL, at turn 4"


def test_a_lost_connection_is_trouble_and_keeps_an_earlier_cause() -> None:
    course = running()
    course.connection_lost("reset by peer")
    assert course.troubled
    assert course.verdict().cause == "the connection to the Arbiter ended: reset by peer"
    course = running()
    course.observe(fault())
    course.connection_lost("reset by peer")
    assert course.verdict().cause.startswith("the seat sceptic cannot go on")


def test_a_debate_that_does_not_start_names_who_is_missing() -> None:
    course = Course(["sceptic", "builder", "ana"])
    course.observe(joined(SCEPTIC))
    course.observe(event(EventName.PARTICIPANT_JOINED_COLD, "ana_0F0F0F0F"))
    assert course.missing == ["builder"]
    assert course.verdict().sentence == (
        "The debate did not start: builder did not join. The debate stood before its first turn."
    )
