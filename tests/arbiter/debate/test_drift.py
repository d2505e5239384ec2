"""The drift gauge: a share of words, and nothing more."""

from __future__ import annotations

import pytest
from playbook import Playbook, participant

from arbiter.debate import drift
from arbiter.debate.drift import topic_overlap
from consilium.messages import SetTopic

TOPIC = "Should we rewrite the billing service or wrap it?"


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("", 0.0),
        ("Something else entirely.", 0.0),
        ("REWRITE the Billing, I say.", 0.4),
        ("We should wrap the billing service; a rewrite is a bet.", 1.0),
        ("it or we the", 0.0),
    ],
)
def test_the_share_of_the_topics_words(text: str, share: float) -> None:
    assert topic_overlap(TOPIC, text) == share


def test_a_topic_without_a_long_word_has_no_gauge() -> None:
    assert topic_overlap("Is it so?", "It is.") is None


def test_status_shows_the_gauge_of_each_seats_latest_turn() -> None:
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "Wrap the billing service.")
    play.speaks(bob, "Bread.")
    assert play.status().topic_overlap == {participant(ada): 0.6, participant(bob): 0.0}


def test_a_speech_is_read_once_however_often_somebody_asks_and_again_for_another_topic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []

    def reading(topic: str, text: str) -> float | None:
        read.append(text)
        return topic_overlap(topic, text)

    monkeypatch.setattr(drift, "topic_overlap", reading)
    play = Playbook()
    ada, bob, _ = play.everybody_joins()
    play.speaks(ada, "Wrap the billing service.")
    for _ in range(3):
        assert play.status().topic_overlap == {participant(ada): 0.6}
    play.speaks(bob, "Bread.")
    assert [play.status().topic_overlap[participant(bob)] for _ in range(3)] == [0.0] * 3
    assert read == ["Wrap the billing service.", "Bread."]
    play.commands(SetTopic(topic="Bread or cake?"))
    for _ in range(2):
        assert play.status().topic_overlap == {participant(ada): 0.0, participant(bob): 0.5}
    assert len(read) == 4
    play.commands(SetTopic(topic="Is it so?"))
    for _ in range(2):
        assert play.status().topic_overlap == {}, "there is nothing to go by, and that is known, too"
    assert len(read) == 6
