"""STATUS (§5.7): what somebody who was away needs to see."""

from __future__ import annotations

from playbook import Playbook, participant

from arbiter.debate.effects import Channel, Send
from arbiter.debate.events import StatusAsked, TurnFaulted
from consilium.messages import Fault, Meta, PromptSent, Status, Usage


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
    assert play.status().turns_since == {participant("ada"): 2}
    assert not any("one brand" in warning for warning in play.status().warnings)


def test_status_warns_when_all_seats_are_of_one_brand() -> None:
    play = Playbook()
    play.everybody_joins()
    assert any("one brand (test)" in warning for warning in play.status().warnings)


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
