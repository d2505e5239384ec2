"""Turns as §6 tells them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playbook import Playbook, participant

from arbiter.debate.effects import Append
from arbiter.debate.events import RecordFailed
from consilium.errors import ErrorCode
from consilium.messages import (
    Context,
    DebateEnded,
    DebatePaused,
    DebateState,
    DisconnectPolicy,
    Fault,
    ForceTurnEnd,
    Kick,
    Next,
    PromptSent,
    Resume,
    Terminate,
    TurnRevoked,
    TurnStart,
    Usage,
)
from consilium.records import EventName, TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Callable


def test_6_1_a_normal_turn_is_recorded_and_the_next_seat_is_given_the_floor() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    assert play.speaking == ada
    play.now += 2.5
    play.speaks(ada, "Wrap it.", Usage(tokens_in=10, tokens_out=4))
    (turn,) = play.turns()
    assert (turn.turn_id, turn.outcome, turn.text) == (1, TurnOutcome.SPEECH, "Wrap it.")
    assert turn.participant_id == participant(ada)
    assert turn.tokens == {"in": 10, "out": 4}
    assert turn.duration_s == 2.5
    assert play.was_given_the_floor(bob)


def test_the_turn_says_its_phase_and_its_deadline() -> None:
    play = Playbook(limits={"turn_seconds": 120})
    play.everybody_joins()
    (start,) = play.sent(TurnStart)
    assert (start.turn_id, start.phase, start.deadline_ms) == (1, "OPENING", 120_000)


def test_6_2_a_turn_that_ends_without_a_speech_is_a_skip() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.skips(ada)
    assert play.turns()[0].outcome is TurnOutcome.SKIP
    assert play.was_given_the_floor(bob)
    assert play.heard(bob) == []


def test_a_turn_end_that_overtakes_its_speech_waits_for_it() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.ends(ada, speech=True)
    assert play.speaking == ada
    assert play.turns() == []
    play.says(ada, "Late, but here.")
    assert play.turns()[0].outcome is TurnOutcome.SPEECH
    assert play.was_given_the_floor(bob)


def test_a_speech_is_a_contribution_even_if_its_turn_end_does_not_announce_it() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.says(ada, "Here.")
    play.ends(ada, speech=False)
    assert play.turns()[0].outcome is TurnOutcome.SPEECH


def test_6_4_an_expired_turn_is_revoked_and_the_debate_pauses() -> None:
    play = Playbook(limits={"turn_seconds": 120})
    ada, bob, _ = play.everybody_joins()
    play.acknowledges(ada)
    play.after(119)
    assert play.state() is DebateState.RUNNING
    play.after(1)
    assert play.state() is DebateState.PAUSED
    assert [m.turn_id for m in play.sent(TurnRevoked, ada)] == [1]
    assert play.turns()[0].outcome is TurnOutcome.REVOKED
    assert [m.missing for m in play.sent(DebatePaused, bob)] == [(participant(ada),)]
    assert play.sent(TurnStart) == []


@pytest.mark.parametrize("state", ["PAUSED", "FINISHED"])
def test_6_4_a_revoked_turn_is_a_mismatch_for_ever(state: str) -> None:

    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.after(300)
    if state == "FINISHED":
        play.commands(Terminate())
    assert play.state() == state
    play.says(ada, "But I was nearly done!", turn=1)
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH
    play.ends(ada, speech=True, turn=1)
    assert play.refusal.code is ErrorCode.TURN_MISMATCH
    assert len(play.turns()) == 1
    assert play.turns()[0].text is None


def test_a_speech_that_arrives_after_the_deadline_is_late_even_if_the_alarm_was_not_heard() -> None:
    play = Playbook(limits={"turn_seconds": 10})
    ada, *_ = play.everybody_joins()
    play.now += 10
    play.says(ada, "Just in time?", turn=1)
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH
    assert play.turns()[0].outcome is TurnOutcome.REVOKED
    assert play.state() is DebateState.PAUSED


def test_whether_a_revoked_turn_reached_its_client_is_told_as_far_as_it_is_known() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.says(ada, "Said, but never ended.")
    play.after(300)
    assert play.seat(ada).prompt_sent is PromptSent.YES


@pytest.mark.parametrize("event", ["speech", "end", "ack"])
def test_only_the_seat_whose_turn_it_is_may_speak_in_it(event: str) -> None:
    play = Playbook()
    _, bob, _ = play.everybody_joins()
    {
        "speech": lambda: play.says(bob, "Me!"),
        "end": lambda: play.ends(bob),
        "ack": lambda: play.acknowledges(bob),
    }[event]()
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH
    assert play.speaking == "ada"


def test_a_turn_has_one_speech_and_one_end() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.says(ada, "One.")
    play.says(ada, "Two.")
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH
    play.ends(ada, speech=True)
    assert play.turns()[0].text == "One."


def test_a_second_turn_end_while_the_speech_is_awaited_is_refused() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.ends(ada, speech=True)
    play.ends(ada, speech=True)
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TURN_MISMATCH


def test_a_speech_over_the_limit_is_refused_in_bytes_not_characters() -> None:
    play = Playbook(limits={"speech_bytes": 256})
    ada, *_ = play.everybody_joins()
    play.says(ada, "\N{OLD ITALIC LETTER A}" * 65)
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.TOO_LARGE
    play.says(ada, "\N{OLD ITALIC LETTER A}" * 64)
    assert play.refusal is None


def test_a_client_fault_pauses_at_once_and_is_not_a_skip() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada, PromptSent.NO)
    assert play.state() is DebateState.PAUSED
    assert play.turns()[0].outcome is TurnOutcome.FAILED
    (fault,) = play.events(EventName.PARTICIPANT_FAULT)
    assert fault.data == {
        "reason": "client_error: exit 1",
        "prompt_sent": "no",
        "partial_bytes": None,
        "resets_at": None,
    }
    assert play.turns()[0].fault is Fault.CLIENT_ERROR
    assert play.sent(Context) == []


@pytest.mark.parametrize("back", ["2026-11-30T18:30:00Z", "3pm (Europe/Rome)", None])
@pytest.mark.parametrize("blind", [False, True])
def test_a_quota_that_is_used_up_is_a_pause_of_its_own_kind(back: str | None, blind: bool) -> None:
    play = Playbook(identity_visible=not blind)
    ada, bob, _ = play.everybody_joins()
    play.fails(ada, PromptSent.YES, fault=Fault.QUOTA, resets_at=back)
    assert play.state() is DebateState.PAUSED
    assert play.turns()[0].fault is Fault.QUOTA
    (paused,) = play.events(EventName.DEBATE_PAUSED)
    who = participant(ada)
    assert paused.data == {"reason": "quota_exhausted", "seats": [who], "resets_at": back}
    whole = DebatePaused(reason="quota_exhausted", missing=(who,), resets_at=back)
    assert play.sent(DebatePaused, ada) == [whole]
    # Decision 9: the words are those of one seat's client, and would tell which.
    assert play.sent(DebatePaused, bob) == [DebatePaused(reason="quota_exhausted") if blind else whole]
    status = play.status()
    assert status.reason == "quota_exhausted"
    assert [seat.resets_at for seat in status.seats] == [back, None, None]
    play.commands(Resume())
    assert play.was_given_the_floor(ada), "the operator has waited, so the turn is given again"
    assert play.status().seats[0].resets_at is None


def test_another_fault_says_nothing_of_a_quota() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.fails(ada, fault=Fault.STALLED)
    (paused,) = play.events(EventName.DEBATE_PAUSED)
    assert (paused.data["reason"], paused.data["resets_at"]) == ("participant_failed", None)


REFUSED = ("Bash: touch /etc/x", "Read: /etc/shadow")


def test_what_a_client_was_not_allowed_to_do_is_on_the_record_however_its_turn_ended() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.says(ada, "I could not look.")
    play.ends(ada, speech=True, refused=REFUSED)
    play.ends(bob, refused=REFUSED[:1])
    play.fails(cyn, refused=REFUSED[1:])
    assert [(turn.outcome, turn.refused) for turn in play.turns()] == [
        (TurnOutcome.SPEECH, REFUSED),
        (TurnOutcome.SKIP, REFUSED[:1]),
        (TurnOutcome.FAILED, REFUSED[1:]),
    ]


def test_a_turn_that_was_refused_nothing_says_so() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.speaks(ada, "Well.")
    assert (play.turns()[0].refused, play.turns()[0].fault) == ((), None)


def test_an_open_turn_may_finish_while_the_debate_is_paused_by_another_seat() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.is_lost(bob)
    assert play.state() is DebateState.PAUSED
    play.speaks(ada, "I was in the middle of it.")
    assert play.turns()[0].outcome is TurnOutcome.SPEECH
    assert play.state() is DebateState.PAUSED
    assert play.turn == 0


def test_a_record_that_cannot_be_written_ends_the_debate_without_claiming_anything() -> None:

    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.happens(RecordFailed("no space left on device"))
    assert play.state() is DebateState.ERROR
    assert [m.outcome for m in play.sent(DebateEnded, ada)] == [DebateState.ERROR]
    assert not [e for e in play.latest if isinstance(e, Append)]
    assert play.status().reason == "no space left on device"
    play.happens(RecordFailed("again"))
    assert play.latest == []


def test_a_name_that_reads_like_anothers_participant_id_confuses_nobody() -> None:
    play = Playbook(("ada",), roster={"mode": "dynamic", "required_names": ["ada"]})
    ada = play.joins("ada", participant_id="ada_12345678")
    play.joins("ada_12345678", "twin")
    play.speaks(ada, "A1")
    assert [turn.participant_id for turn in play.turns()] == ["ada_12345678"]
    assert play.was_given_the_floor("twin")
    play.commands(Kick(seat="ada_12345678"))
    assert play.closed == [ada], "a participant id comes before a name"


@pytest.mark.parametrize(
    ("spoken", "ended", "outcome", "text"),
    [
        (True, False, TurnOutcome.SPEECH, "A1"),
        (False, False, TurnOutcome.SKIP, None),
    ],
)
def test_a_seat_that_leaves_in_its_turn_leaves_what_it_said(
    spoken: bool, ended: bool, outcome: TurnOutcome, text: str | None
) -> None:
    play = Playbook(("ada", "bob"), roster={"mode": "dynamic", "required_names": ["ada"]})
    ada, _ = play.joins("ada"), play.joins("bob")
    play.updates(ada, required=False)
    if spoken:
        play.says(ada, "A1")
    if ended:
        play.ends(ada, speech=True)
    play.leaves(ada)
    (turn,) = play.turns()
    assert (turn.outcome, turn.text) == (outcome, text)
    assert play.was_given_the_floor("bob")


def announced_and_left(names: tuple[str, ...] = ("ada", "bob"), **changes: Any) -> Playbook:
    """Ada's TURN_END and UNREG are here, and her SPEECH is still on its way on the other connection."""
    play = Playbook(names, roster={"mode": "dynamic", "required_names": ["ada"]}, **changes)
    for name in names:
        play.joins(name, disconnect_policy=DisconnectPolicy.DROP)
    play.updates("ada", required=False)
    play.ends("ada", speech=True)
    play.leaves("ada")
    assert (play.latest, play.turn, play.turns()) == ([], 1, [])
    return play


def test_a_departure_that_overtakes_an_announced_speech_waits_for_it() -> None:
    play = announced_and_left()
    play.says("ada", "My last words.")
    (turn,) = play.turns()
    assert (turn.outcome, turn.text) == (TurnOutcome.SPEECH, "My last words.")
    assert play.latest_events() == [EventName.PARTICIPANT_LEFT, EventName.TURN_STARTED]
    assert play.closed == ["ada"]
    assert [seat.name for seat in play.debate.roster] == ["bob"]
    assert play.heard("bob") == [(participant("ada"), "My last words.")]


LOSSES: dict[str, Callable[[Playbook], object]] = {
    "its connection ends": lambda play: play.is_lost("ada"),
    "its deadline passes": lambda play: play.after(10),
}


@pytest.mark.parametrize("loss", LOSSES)
def test_an_announced_speech_that_never_comes_is_lost_and_the_debate_goes_on(loss: str) -> None:
    play = announced_and_left(limits={"turn_seconds": 10})
    LOSSES[loss](play)
    (turn,) = play.turns()
    assert (turn.outcome, turn.detail) == (TurnOutcome.LOST, "the seat left")
    assert play.events(EventName.PARTICIPANT_FAULT) == []
    assert play.was_given_the_floor("bob")
    assert [seat.name for seat in play.debate.roster] == ["bob"]


@pytest.mark.parametrize(
    ("command", "outcome"),
    [
        (ForceTurnEnd(), TurnOutcome.FORCED),
        (Kick(seat="ada"), TurnOutcome.FORCED),
        (Terminate(), TurnOutcome.FORCED),
    ],
)
def test_the_operator_need_not_wait_for_who_has_left(command: Any, outcome: TurnOutcome) -> None:
    play = announced_and_left()
    play.commands(command)
    (turn,) = play.turns()
    assert turn.outcome is outcome
    assert play.turn in (0, 2)
    play.says("ada", "Too late.", turn=1)
    assert play.refusal is not None
    play.is_lost("ada")
    assert play.latest == []
    assert len(play.events(EventName.PARTICIPANT_LEFT)) == (command.type != "TERMINATE")


def test_who_has_left_is_heard_for_its_announced_speech_alone() -> None:
    play = announced_and_left()
    for attempt in (
        lambda: play.leaves("ada"),
        lambda: play.fails("ada"),
        lambda: play.acknowledges("ada"),
        lambda: play.updates("ada", required=True),
        lambda: play.registers("ada"),
    ):
        attempt()
        assert play.refusal is not None
        assert play.refusal.code is ErrorCode.NOT_REGISTERED
    play.commands(Next(seat="ada"))
    assert play.refusal is not None, "it is in no rotation any more"


def test_a_required_seat_whose_last_words_have_come_pauses_when_it_goes() -> None:
    play = Playbook(("ada", "bob"))
    ada, _ = play.everybody_joins()
    play.ends(ada, speech=True)
    play.leaves(ada)
    assert play.state() is DebateState.RUNNING
    play.says(ada, "My last words.")
    assert (play.state(), play.debate.reason) == (DebateState.PAUSED, "missing_required_participant")
    assert play.turns()[0].text == "My last words."
    play.joins("ada", "ada-again")
    assert play.seat("ada").in_rotation
