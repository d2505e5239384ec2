"""What each seat hears (§5.5), sealed openings (decision 8) and blind debates (decision 9)."""

from __future__ import annotations

from playbook import Playbook, participant

from arbiter.debate.delta import Contribution, Discourse
from consilium.messages import Context, Inject, Kick, Phase, Resume, SetPhase, SetTopic


def test_a_seat_hears_what_was_said_since_its_own_previous_turn_and_not_its_own_words() -> None:
    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "A1")
    assert play.heard(bob) == [(participant(ada), "A1")]
    play.speaks(bob, "B1")
    assert play.heard(cyn) == [(participant(ada), "A1"), (participant(bob), "B1")]
    play.speaks(cyn, "C1")
    assert play.heard(ada) == [(participant(bob), "B1"), (participant(cyn), "C1")]
    play.speaks(ada, "A2")
    assert play.heard(bob) == [(participant(cyn), "C1"), (participant(ada), "A2")]


def test_the_topic_is_restated_in_every_context() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.commands(SetTopic(topic="Something else?"))
    play.speaks(ada, "A1")
    assert play.sent(Context, bob)[0].topic == "Something else?"


def test_a_failed_turn_does_not_move_the_cursor() -> None:

    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    play.fails(bob)
    play.commands(Resume())
    assert play.was_given_the_floor(bob)
    assert play.heard(bob) == [(participant(ada), "A1")]


def test_what_the_moderator_says_during_a_turn_belongs_to_the_next_context() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.commands(Inject(text="Mind the cost."))
    play.speaks(ada, "A1")
    assert play.heard(bob) == [("moderator", "Mind the cost."), (participant(ada), "A1")]
    play.speaks(bob, "B1")
    play.speaks("cyn", "C1")
    assert ("moderator", "Mind the cost.") in play.heard(ada)


def test_nobody_hears_an_opening_before_everybody_has_opened() -> None:
    play = Playbook(opening="sealed")
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "A1")
    assert play.heard(bob) == []
    play.speaks(bob, "B1")
    assert play.heard(cyn) == []
    play.speaks(cyn, "C1")
    assert play.heard(ada) == [(participant(bob), "B1"), (participant(cyn), "C1")]


def test_a_skip_counts_as_having_opened() -> None:
    play = Playbook(opening="sealed")
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "A1")
    play.skips(bob)
    play.speaks(cyn, "C1")
    assert play.heard(ada) == [(participant(cyn), "C1")]
    play.speaks(ada, "A2")
    assert play.heard(bob) == [(participant(ada), "A1"), (participant(cyn), "C1")]


def test_the_end_of_the_opening_releases_what_was_sealed() -> None:
    play = Playbook(opening="sealed")
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    play.commands(SetPhase(phase=Phase.REBUTTAL))
    play.speaks(bob, "B1, an opening whose phase is over")
    assert [text for _, text in play.heard("cyn")] == ["A1", "B1, an opening whose phase is over"]


def test_a_second_opening_round_is_sealed_again() -> None:
    play = Playbook(opening="sealed")
    ada, bob, _ = play.everybody_joins()
    play.round()
    play.speaks(ada, "A2")
    assert "A2" not in [text for _, text in play.heard(bob)]


def test_an_open_opening_lets_each_seat_read_the_ones_before_it() -> None:
    play = Playbook(opening="open")
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    assert play.heard(bob) == [(participant(ada), "A1")]


def test_roles_are_shown_only_where_the_session_declares_them() -> None:
    for visible in (True, False):
        play = Playbook(role_visible=visible)
        ada, bob, _ = play.everybody_joins()
        play.speaks(ada, "A1")
        (entry,) = play.sent(Context, bob)[0].delta
        assert entry.role_label == ("role of ada" if visible else None)


def test_a_blind_debate_hides_who_speaks_but_not_that_it_is_the_same_one() -> None:
    play = Playbook(identity_visible=False, role_visible=False)
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "A1")
    play.speaks(bob, "B1")
    play.speaks(cyn, "C1")
    assert play.heard(ada) == [("Speaker B", "B1"), ("Speaker C", "C1")]
    play.speaks(ada, "A2")
    assert [speaker for speaker, _ in play.heard(bob)] == ["Speaker C", "Speaker A"]
    assert "ada" not in str(play.ever_sent(Context))
    joined = play.events()[:3]
    assert [event.data["pseudonym"] for event in joined] == ["Speaker A", "Speaker B", "Speaker C"]


def test_a_blind_debate_does_not_name_a_seat_that_has_gone() -> None:

    play = Playbook(identity_visible=False)
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "A1")
    play.commands(Kick(seat=ada))
    play.skips(bob)
    assert play.heard("cyn") == [("Speaker A", "A1")]


def test_a_seat_that_left_is_still_named_in_a_declared_debate() -> None:

    play = Playbook()
    ada, bob, cyn = play.everybody_joins()
    play.speaks(ada, "A1")
    play.commands(Kick(seat=ada))
    play.skips(bob)
    assert play.heard(cyn) == [(participant(ada), "A1")]
    (entry,) = play.ever_sent(Context, cyn)[-1].delta
    assert entry.role_label == "role of ada"


def test_a_newcomer_hears_what_is_said_from_its_entry_on_and_never_the_history() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada", "bob"]})
    ada, bob = play.joins("ada"), play.joins("bob")
    play.speaks(ada, "A1")
    dan = play.joins("dan")
    play.speaks(bob, "B1")
    assert play.was_given_the_floor(dan)
    assert play.heard(dan) == [(participant(bob), "B1")]


def test_positions_move_with_what_is_published_not_with_what_is_sealed() -> None:
    discourse = Discourse()
    discourse.seal(Contribution("a", "sealed"))
    assert (discourse.position, discourse.sealed) == (0, 1)
    discourse.publish(Contribution("b", "said"))
    discourse.release()
    assert (discourse.position, discourse.sealed) == (2, 0)
    assert [said.text for said in discourse.since(0, "x")] == ["said", "sealed"]
