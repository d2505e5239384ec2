"""The scenarios of the specification by number: turns (§6) and a human at the table (§9)."""

from __future__ import annotations

from playbook import Playbook, participant

from consilium.messages import (
    Context,
    DebateState,
    DisconnectPolicy,
    Inject,
    Meta,
    PromptSent,
    Resume,
    StateOk,
    TurnRevoked,
    TurnStart,
)
from consilium.records import EventName, TurnOutcome

HUMAN = Meta(brand="human", adapter="human", role_label="moderator")


def council_with_a_human() -> Playbook:
    """A human and two clients; the human is awaited."""
    play = Playbook(("ana", "bob", "cyn"), limits={"turn_seconds": 120})
    play.joins("ana", meta=HUMAN)
    play.joins("bob")
    play.joins("cyn")
    return play


def test_6_1_normal_turn() -> None:
    play = council_with_a_human()
    play.acknowledges("ana")
    play.says("ana", "Wrap it.")
    play.ends("ana", speech=True)
    assert [turn.outcome for turn in play.turns()] == [TurnOutcome.SPEECH]
    assert play.was_given_the_floor("bob")


def test_6_2_skipped_turn() -> None:
    play = council_with_a_human()
    play.acknowledges("ana")
    play.ends("ana")
    assert [turn.outcome for turn in play.turns()] == [TurnOutcome.SKIP]


def test_6_3_a_local_timeout_is_a_skip_and_the_arbiter_cannot_tell_it_from_one() -> None:
    play = council_with_a_human()
    play.acknowledges("ana")
    play.after(30)
    play.ends("ana")
    assert [turn.outcome for turn in play.turns()] == [TurnOutcome.SKIP]
    assert play.state() is DebateState.RUNNING


def test_6_4_turn_expired_at_the_arbiter() -> None:
    play = council_with_a_human()
    play.acknowledges("ana")
    play.after(120)
    assert [m.turn_id for m in play.sent(TurnRevoked, "ana")] == [1]
    assert play.state() is DebateState.PAUSED
    assert play.sent(TurnStart) == []


def test_6_5_an_uncertain_answer_is_no_answer() -> None:
    play = council_with_a_human()
    play.skips("ana")
    play.fails("bob", PromptSent.MAYBE)
    assert play.turns()[-1].text is None
    assert play.state() is DebateState.PAUSED


def test_6_6_a_chat_that_cannot_be_resumed_stops_the_turn_and_never_starts_another_silently() -> None:
    play = council_with_a_human()
    play.skips("ana")
    play.fails("bob", PromptSent.NO)
    assert play.state() is DebateState.PAUSED
    assert play.events(EventName.PARTICIPANT_MEMORY_LOST) == []
    play.commands(Resume(seats={"bob": "cold"}))  # type: ignore[dict-item]  # as it comes from the wire
    play.reports("bob", "PARTICIPANT_MEMORY_LOST")
    assert play.was_given_the_floor("bob")


def test_9_1_the_human_speaks() -> None:
    play = council_with_a_human()
    play.speaks("ana", "I think we should wrap it.")
    assert play.heard("bob") == [(participant("ana"), "I think we should wrap it.")]


def test_9_2_the_human_stays_silent_until_a_timeout_of_their_own() -> None:
    play = council_with_a_human()
    play.acknowledges("ana")
    play.ends("ana")
    assert play.heard("bob") == [], "a skip is never shown as a turn"


def test_9_3_the_human_steps_away_and_stays_connected() -> None:
    play = council_with_a_human()
    play.updates("ana", required=False, disconnect_policy=DisconnectPolicy.DROP)
    (ok,) = play.sent(StateOk, "ana")
    assert (ok.required, ok.disconnect_policy) == (False, DisconnectPolicy.DROP)
    for _ in range(2):
        play.skips("ana")
        play.speaks("bob", "B")
        play.speaks("cyn", "C")
    assert play.state() is DebateState.RUNNING


def test_9_4_the_human_returns_and_sees_what_was_missed() -> None:
    play = council_with_a_human()
    play.updates("ana", required=False, disconnect_policy=DisconnectPolicy.DROP)
    for _ in range(5):
        play.skips("ana")
        play.speaks("bob", "The same words as ever.")
        play.speaks("cyn", "C")
    play.updates("ana", required=True, disconnect_policy=DisconnectPolicy.KEEP_ALIVE)
    status = play.status()
    assert status.turns_since == {participant("ana"): 16}, "however often its wrapper skipped meanwhile"
    assert status.seats[0].required
    assert status.repetition == {participant("bob"): 1.0}


def test_9_5_the_human_is_disconnected() -> None:
    play = council_with_a_human()
    play.updates("ana", required=False, disconnect_policy=DisconnectPolicy.DROP)
    play.is_lost("ana")
    assert play.state() is DebateState.PAUSED, "those settings do not authorise going on unobserved"


def test_9_6_the_human_reconnects() -> None:
    play = council_with_a_human()
    play.speaks("ana", "A1")
    play.is_lost("ana")
    play.joins("ana", "ana-again", meta=HUMAN)
    assert play.state() is DebateState.PAUSED
    play.commands(Resume())
    play.speaks("bob", "B1")
    play.speaks("cyn", "C1")
    (context,) = play.sent(Context, "ana-again")
    assert [entry.text for entry in context.delta] == ["B1", "C1"]


def test_9_7_the_moderator_steers() -> None:
    play = council_with_a_human()
    play.commands(Inject(text="Consider the on-call load."))
    assert play.events(EventName.MODERATOR_STEERING)
    play.skips("ana")
    assert play.heard("bob") == [("moderator", "Consider the on-call load.")]
