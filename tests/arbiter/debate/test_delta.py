"""What each seat hears (§5.5), sealed openings (decision 8) and blind debates (decision 9)."""

from __future__ import annotations

import pytest
from playbook import Playbook, participant

from arbiter.debate import delta
from arbiter.debate.delta import Contribution, Discourse
from consilium.codec import Codec, encode
from consilium.framing import MAX_ARBITER_LINE_BYTES
from consilium.messages import (
    MAX_COUNT,
    MAX_SPEECH_BYTES,
    Context,
    DataToSeat,
    DeltaEntry,
    Inject,
    Kick,
    Phase,
    Resume,
    SetPhase,
    SetTopic,
)


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
    assert [said.text for said in discourse.portion(0, "x").told] == ["said", "sealed"]


def said_by(speaker: str, *texts: str) -> Discourse:
    discourse = Discourse()
    for text in texts:
        discourse.publish(Contribution(speaker, text))
    return discourse


@pytest.mark.parametrize(
    ("budget", "entries", "told"),
    [
        (1000, 10, ["aaaa", "bbbb", "cccc"]),
        (12, 10, ["aaaa", "bbbb", "cccc"]),
        (11, 10, ["aaaa", "bbbb"]),
        (1, 10, ["aaaa"]),  # more than the budget, and still told: or it never would be
        (1000, 2, ["aaaa", "bbbb"]),
    ],
)
def test_a_delta_is_bounded_oldest_first_and_the_rest_is_counted(
    monkeypatch: pytest.MonkeyPatch, budget: int, entries: int, told: list[str]
) -> None:
    monkeypatch.setattr(delta, "MAX_DELTA_BYTES", budget)
    monkeypatch.setattr(delta, "MAX_DELTA_ENTRIES", entries)
    portion = said_by("a", "aaaa", "bbbb", "cccc").portion(0, "x")
    assert [said.text for said in portion.told] == told
    assert (portion.heard, portion.waiting) == (len(told), 3 - len(told))
    assert said_by("x", "aaaa", "bbbb").portion(0, "x") == delta.Portion((), 2, 0), "its own words"


def test_a_seat_that_was_long_away_hears_everything_in_as_many_turns_as_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(delta, "MAX_DELTA_BYTES", 5)
    play = Playbook(("ada", "bob"), caps={"max_rounds": 1000})
    ada, bob = play.everybody_joins()
    play.speaks(ada, "A1")
    for text in ("M1", "M2", "M3"):
        play.commands(Inject(text=text))
    play.skips(bob)
    play.skips(ada)
    heard = []
    while True:
        (context,) = play.sent(Context, bob)
        heard += [entry.text for entry in context.delta]
        if not context.waiting:
            break
        play.fails(bob)
        play.commands(Resume())
        (again,) = play.sent(Context, bob)
        assert again.delta == context.delta, "what a lost turn was told is told again"
        play.skips(bob)
        play.skips(ada)
    assert heard == ["M1", "M2", "M3"]


@pytest.mark.parametrize(
    ("text", "many"), [("\0" * MAX_SPEECH_BYTES, 100), ("\0" * 1024, 2 * delta.MAX_DELTA_ENTRIES)]
)
def test_the_largest_delta_fits_in_a_line(text: str, many: int) -> None:
    """The worst of everything: each byte of text is written as six, and so is all that stands beside it."""
    discourse = Discourse()
    for _ in range(many):
        discourse.publish(Contribution("a" * 200, text, role_label="\0" * 200))
    portion = discourse.portion(0, "x")
    assert portion.waiting
    assert sum(len(said.text) for said in portion.told) == delta.MAX_DELTA_BYTES
    context = Context(
        turn_id=MAX_COUNT,
        phase=Phase.OPENING,
        topic="\0" * 8000,
        delta=tuple(
            DeltaEntry(speaker=said.speaker, role_label=said.role_label, text=said.text)
            for said in portion.told
        ),
        waiting=portion.waiting,
    )
    line = encode(context, "a-1", None)
    assert len(line) < MAX_ARBITER_LINE_BYTES
    assert Codec(DataToSeat).decode(line.rstrip(b"\n")).message == context
