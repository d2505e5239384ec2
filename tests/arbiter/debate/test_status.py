"""STATUS (§5.7): what somebody who was away needs to see."""

from __future__ import annotations

import pytest
from playbook import Playbook, participant

from arbiter.debate.effects import Channel, Send
from arbiter.debate.events import StatusAsked, TurnFaulted
from consilium.errors import ErrorCode
from consilium.messages import (
    DebatePaused,
    Fault,
    Meta,
    Next,
    Pause,
    PromptSent,
    Recovery,
    Resume,
    Status,
    Usage,
)
from consilium.records import EventName


def test_status_tells_state_phase_topic_and_cost() -> None:
    play = Playbook(caps={"max_tokens": 500, "max_rounds": 9})
    ada, *_ = play.everybody_joins()
    play.now += 12
    play.speaks(ada, "A1", Usage(tokens_in=100, tokens_out=20))
    status = play.status()
    assert (status.debate_state, status.phase, status.turn_counter) == ("RUNNING", "OPENING", 2)
    assert status.speaking == participant("bob")
    assert status.cost.tokens_total == 120
    assert status.cost.caps == {"max_tokens": 500, "max_rounds": 9}
    assert status.cost.elapsed_s == 12


def test_status_counts_the_turns_since_a_human_was_present() -> None:
    play = Playbook(("ada", "bob"))
    play.joins("ada", meta=Meta(brand="human"))
    play.joins("bob", meta=Meta(brand="claude"))
    play.speaks("ada", "A1")
    play.speaks("bob", "B1")
    play.skips("ada")
    play.speaks("bob", "B2")
    assert play.status().turns_since == {participant("ada"): 4}, "who skips may be away"
    assert not any("one brand" in warning for warning in play.status().warnings)
    assert play.status().brands == 1, "a person is of no brand"


def test_status_warns_when_all_seats_are_of_one_brand() -> None:
    play = Playbook()
    play.everybody_joins()
    assert any("one brand (test)" in warning for warning in play.status().warnings)


def test_status_counts_the_brands_of_those_that_say_theirs() -> None:
    play = Playbook(("ada", "bob", "cyn", "dan"))
    assert play.status().brands == 0
    for name, brand in (("ada", "claude"), ("bob", "codex"), ("cyn", "claude"), ("dan", None)):
        play.joins(name, meta=Meta(brand=brand))
    status = play.status()
    assert status.brands == 2
    assert not any("one brand" in warning for warning in status.warnings)


def test_status_lists_what_is_known_of_a_faulty_seat_and_what_may_be_done() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.fails(ada)
    play.is_lost(bob)
    faulty, lost, well = play.status().seats
    assert (faulty.state, faulty.prompt_sent) == ("faulty", "maybe")
    assert faulty.choices == ("keep", "cold", "skip", "remove", "terminate")
    assert (lost.connected, lost.choices) == (False, ("skip", "remove", "terminate"))
    assert (well.state, well.fault, well.choices) == ("active", None, ())


@pytest.mark.parametrize("seen", [None, 0, 812])
def test_status_tells_how_much_of_an_answer_there_was_and_unknown_is_null(seen: int | None) -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.fails(ada, partial_bytes=seen)
    play.is_lost(bob)
    faulty, idle, _ = play.status().seats
    assert (faulty.partial_bytes, idle.partial_bytes) == (seen, None)
    play.commands(Resume(seats={"bob": Recovery.SKIP}))
    assert play.status().seats[0].partial_bytes is None


@pytest.mark.parametrize("how", ["lost", "deadline"])
@pytest.mark.parametrize(("text", "seen"), [(None, None), ("Grüße", 7)])
def test_a_speech_that_is_here_is_what_was_seen_of_a_turn_that_failed(
    how: str, text: str | None, seen: int | None
) -> None:
    play = Playbook(limits={"turn_seconds": 10})
    ada, *_ = play.everybody_joins()
    if text is not None:
        play.says(ada, text)
    play.is_lost(ada) if how == "lost" else play.after(10)
    assert play.status().seats[0].partial_bytes == seen
    (fault,) = play.events(EventName.PARTICIPANT_FAULT)
    assert fault.data["partial_bytes"] == seen


def test_status_tells_when_each_seat_was_last_heard_of() -> None:
    play = Playbook(("ada", "bob"))
    play.joins("ada")
    play.now += 5
    play.joins("bob")
    play.now += 2
    assert [seat.last_active_s for seat in play.status().seats] == [7, 2]
    play.acknowledges("ada")
    play.acknowledges("bob")  # refused: nothing has changed
    play.now += 1.5
    assert [seat.last_active_s for seat in play.status().seats] == [1.5, 3.5]
    play.is_lost("ada")
    play.now += 60
    assert play.status().seats[0].last_active_s == 61.5, "that it was lost is no sign of it"


def test_status_says_that_a_manual_debate_waits_for_its_operator() -> None:
    play = Playbook(turn_policy="manual")
    waits = "turn_policy is manual: the next turn waits for an operator's NEXT"
    assert waits not in play.status().warnings
    ada, *_ = play.everybody_joins()
    assert waits in play.status().warnings
    play.commands(Next(seat=ada))
    assert waits not in play.status().warnings
    play.speaks(ada, "A1")
    assert waits in play.status().warnings
    play.commands(Pause())
    assert waits not in play.status().warnings


def test_status_on_the_control_channel_answers_there() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.happens(StatusAsked(ada, "m-9", Channel.CONTROL))
    (effect,) = play.latest
    assert isinstance(effect, Send)
    assert isinstance(effect.message, Status)
    assert (effect.session, effect.channel, effect.in_reply_to) == (ada, Channel.CONTROL, "m-9")
    speaking = effect.message.seats[0]
    assert speaking.state == "speaking"


def test_status_tells_how_each_seat_keeps_its_client_apart_as_far_as_it_says() -> None:
    play = Playbook()
    play.joins("ada", meta=Meta(isolation="strict"))
    play.joins("bob", meta=Meta(isolation="relaxed"))
    play.joins("cyn", meta=Meta())
    assert [seat.isolation for seat in play.status().seats] == ["strict", "relaxed", None]


def test_the_longest_reasons_still_fit_a_status() -> None:
    names = [f"seat_{n:02d}_" + "x" * 55 for n in range(60)]
    play = Playbook(names)
    for name in names[:-1]:
        play.joins(name)
    play.happens(TurnFaulted("nobody", "m", 1, Fault.STALLED, PromptSent.YES, "d" * 2000))
    assert play.refusal is not None
    (waiting,) = [warning for warning in play.status().warnings if warning.startswith("waiting")]
    assert waiting == f"waiting for: {names[-1]}"
    alone = Playbook(names).status().warnings[0]
    assert (len(alone), alone[-1]) == (2000, "…")


def test_the_longest_detail_of_a_fault_still_fits() -> None:
    play = Playbook()
    ada, *_ = play.everybody_joins()
    play.happens(TurnFaulted(ada, "m", 1, Fault.STALLED, PromptSent.YES, "d" * 2000))
    fault = play.status().seats[0].fault
    assert fault is not None
    assert (fault[:9], fault[-1], len(fault)) == ("stalled: ", "…", 2000)


def asked_by(play: Playbook, session: str) -> Status:
    """STATUS as a seat gets it."""
    play.happens(StatusAsked(session, "m-9", Channel.CONTROL))
    (effect,) = play.latest
    assert isinstance(effect, Send)
    assert isinstance(effect.message, Status)
    return effect.message


def test_in_a_blind_debate_a_seat_is_told_of_itself_alone() -> None:
    play = Playbook(identity_visible=False, caps={"max_tokens": 900})
    play.joins("ada", meta=Meta(brand="claude", role_label="sceptic"))
    play.joins("bob", meta=Meta(brand="claude", role_label="pragmatist"))
    assert asked_by(play, "ada").warnings == ("waiting for: 1 of the planned seats",)
    cyn = play.joins("cyn", meta=Meta(brand="human"))
    play.speaks("ada", "One two three four.")
    for told in (asked_by(play, cyn), *play.sent(Status)):
        assert [seat.participant_id for seat in told.seats] == [participant("cyn")]
        assert (told.speaking, told.repetition, told.brands) == (None, {}, None)
        assert told.turns_since.keys() == {participant("cyn")}
        for secret in ("ada", "bob", "claude", "sceptic", "pragmatist"):
            assert secret not in told.model_dump_json()
    assert asked_by(play, "bob").speaking == participant("bob")
    assert len(play.status().seats) == 3, "the operator sees everything"
    play.fails("bob")
    missing = {name: [paused.missing for paused in play.sent(DebatePaused, name)] for name in play.names}
    assert missing == {"ada": [()], "bob": [(participant("bob"),)], "cyn": [()]}


@pytest.mark.parametrize(("visible", "shown"), [(True, "role of ada"), (False, None)])
def test_a_seat_is_told_the_others_roles_only_where_roles_are_visible(
    visible: bool, shown: str | None
) -> None:
    play = Playbook(role_visible=visible)
    _, bob, _ = play.everybody_joins()
    ada, own, _ = asked_by(play, bob).seats
    assert (ada.role_label, own.role_label) == (shown, "role of bob")
    assert play.status().seats[0].role_label == "role of ada"


def test_who_is_not_seated_is_told_no_status() -> None:
    play = Playbook()
    play.happens(StatusAsked("stranger", "m-9", Channel.CONTROL))
    assert play.refusal is not None
    assert play.refusal.code is ErrorCode.NOT_REGISTERED


@pytest.mark.parametrize(("turns", "said"), [(1, "1 turn reported"), (2, "2 turns reported")])
def test_status_counts_the_turns_without_tokens_in_words(turns: int, said: str) -> None:
    play = Playbook(("ada",), caps={"max_tokens": 900})
    ada = play.joins("ada")
    for _ in range(turns):
        play.speaks(ada, "Well.")
    (warning,) = play.status().warnings
    assert warning.startswith(f"{said} no tokens")
