"""Who speaks next (§7.4, decision 11)."""

from __future__ import annotations

import pytest
from playbook import Playbook, participant

from arbiter.debate.policy import POLICIES, named_in
from consilium.config import TurnPolicy
from consilium.messages import DebateState, Next


def order(play: Playbook, turns: int, texts: dict[str, str] | None = None) -> list[str]:
    """Let whoever is next speak, ``turns`` times; return who did."""
    spoke = []
    for _ in range(turns):
        speaker = play.speaking
        assert speaker is not None
        spoke.append(speaker)
        play.speaks(speaker, (texts or {}).get(speaker, "Hm."))
    return spoke


def test_every_policy_of_the_configuration_exists() -> None:
    assert set(POLICIES) == set(TurnPolicy)


def test_round_robin_goes_round() -> None:
    play = Playbook()
    play.everybody_joins()
    assert order(play, 5) == ["ada", "bob", "cyn", "ada", "bob"]


def test_least_recently_spoken_prefers_whoever_was_silent_longest() -> None:
    play = Playbook(turn_policy="least_recently_spoken")
    play.everybody_joins()
    assert order(play, 2) == ["ada", "bob"]
    play.commands(Next(seat="ada"))
    assert order(play, 4) == ["cyn", "ada", "bob", "cyn"]


def test_whoever_is_named_last_answers() -> None:
    play = Playbook(turn_policy="most_recently_contradicted")
    play.everybody_joins()
    assert order(play, 3, {"ada": "bob is right, but cyn is not.", "cyn": "No, ada!"}) == [
        "ada",
        "cyn",
        "ada",
    ]


def test_whoever_has_just_spoken_does_not_answer_for_having_been_named() -> None:
    play = Playbook(turn_policy="most_recently_contradicted")
    play.everybody_joins()
    assert order(play, 3, {"ada": "I ask bob."}) == ["ada", "bob", "cyn"]


def test_when_nobody_is_named_it_goes_round() -> None:
    play = Playbook(turn_policy="most_recently_contradicted")
    play.everybody_joins()
    assert order(play, 3, {"ada": "adamant bobsled"}) == ["ada", "bob", "cyn"]


def test_manual_waits_for_the_operator() -> None:
    play = Playbook(turn_policy="manual")
    play.everybody_joins()
    assert (play.state(), play.turn) == (DebateState.RUNNING, 0)
    play.commands(Next(seat="cyn"))
    assert play.was_given_the_floor("cyn")
    play.speaks("cyn", "C1")
    assert play.turn == 0


def test_a_round_is_over_when_somebody_is_to_speak_twice() -> None:
    play = Playbook(turn_policy="manual", caps={"max_rounds": 3})
    play.everybody_joins()
    for _ in range(3):
        play.commands(Next(seat="ada"))
        play.speaks("ada", "A")
    assert play.debate.meter.rounds == 2
    play.commands(Next(seat="ada"))
    assert play.state() is DebateState.STOPPED_BY_CAP


def test_next_is_heard_once_under_any_policy() -> None:
    play = Playbook()
    play.everybody_joins()
    play.commands(Next(seat=participant("cyn")))
    assert order(play, 4) == ["ada", "cyn", "ada", "bob"]


def test_a_call_for_a_seat_that_has_gone_is_forgotten_by_the_rotation() -> None:
    play = Playbook(roster={"mode": "dynamic", "required_names": ["ada"]})
    play.joins("ada")
    play.joins("bob")
    play.commands(Next(seat="bob"))
    play.leaves("bob")
    assert order(play, 2) == ["ada", "ada"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", []),
        ("bob and cyn, and bob again", ["cyn", "bob"]),
        ("I, ada, think", []),
        ("Speaker B is wrong", ["bob"]),
        ("cyn_AB12CD34 said so", ["cyn"]),
        ("bobs, _bob, bob_", []),
        ("(bob)", ["bob"]),
    ],
)
def test_naming_is_by_whole_words(text: str, named: list[str]) -> None:
    play = Playbook()
    play.everybody_joins()
    seats = list(play.debate.roster)
    assert named_in(text, play.seat("ada"), seats) == [participant(name) for name in named]
