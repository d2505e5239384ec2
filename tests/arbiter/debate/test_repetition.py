"""The repetition index (§5.7)."""

from __future__ import annotations

from typing import Any

import pytest
from playbook import Playbook, participant

from arbiter.debate.repetition import Repetition, Score


class Said(Repetition):
    """What a seat has said, scored at once."""

    def score(self, turn_id: int, text: str) -> Score | None:
        self.add(turn_id, text)
        return self.latest


def test_what_was_never_said_before_is_no_repetition() -> None:
    said = Said()
    assert said.score(1, "Wrap the service and leave the rest alone.") == Score(0.0, None)
    assert said.score(2, "Every rewrite I have seen was late.") == Score(0.0, None)


def test_the_same_words_again_are_a_whole_repetition_of_that_turn() -> None:
    said = Said()
    said.score(1, "Wrap the service and leave the rest alone.")
    said.score(5, "Every rewrite I have seen was late.")
    assert said.score(9, "wrap the SERVICE, and leave the rest alone!") == Score(1.0, 1)


def test_half_of_the_words_are_half_a_repetition() -> None:
    said = Said()
    said.score(1, "one two three four")
    score = said.score(2, "one two three four five six")
    assert score == Score(0.5, 1)


def test_a_turn_stitched_from_others_is_a_repetition_and_the_largest_piece_names_its_turn() -> None:
    said = Said()
    said.score(1, "one two three four")
    said.score(2, "five six seven eight nine")
    score = said.score(3, "one two three four five six seven eight nine")
    assert score is not None
    assert (round(score.share, 2), score.turn) == (0.71, 2)


def test_of_equal_turns_the_earliest_is_named() -> None:
    said = Said()
    for turn in (1, 2, 3):
        said.score(turn, "one two three")
    assert said.score(4, "one two three") == Score(1.0, 1)


def test_the_turn_that_is_named_is_the_one_that_said_it_first() -> None:
    said = Said()
    said.score(1, "one two three four")
    said.score(2, "one two three four five")
    assert said.score(3, "one two three four five") == Score(1.0, 1)


def test_what_is_said_over_and_over_makes_the_index_no_larger() -> None:
    """Before, each score took as long as all the turns before it together, and the Arbiter stood still."""
    said = Said()
    for turn in range(1, 2001):
        said.add(turn, "one two three four")
    assert said.latest == Score(1.0, 1)
    assert said._first == {("one", "two", "three"): 1, ("two", "three", "four"): 1}
    assert said._unread is None


def test_two_words_cannot_be_scored() -> None:
    said = Said()
    assert said.score(1, "Hm, no.") is None
    said.score(2, "Hm, no, yes.")
    assert said.score(3, "Hm.") == Score(0.0, None), "the score of the latest turn that has one"


def test_status_shows_the_latest_score_of_each_seat() -> None:
    play = Playbook(("ada", "bob"))
    ada, bob = play.everybody_joins()
    assert play.status().repetition == {}
    play.speaks(ada, "It is the cost that decides.")
    play.speaks(bob, "It is the risk that decides.")
    play.speaks(ada, "It is the cost that decides.")
    play.skips(bob)
    play.speaks(ada, "No.")
    status = play.status()
    assert status.repetition == {participant("ada"): 1.0, participant("bob"): 0.0}
    assert [seat.repeats_turn for seat in status.seats] == [1, None]


def test_one_turn_of_a_thousand_is_found() -> None:
    said = Said()
    for turn in range(1000):
        said.score(turn, " ".join(f"w{turn}x{n}" for n in range(250)))
    assert said.score(1000, " ".join(f"w500x{n}" for n in range(250))) == Score(1.0, 500)


def test_turns_are_scored_in_their_order_whenever_one_asks() -> None:
    said = Repetition()
    for turn in (1, 2, 3):
        said.add(turn, "one two three four")
    assert said.latest == Score(1.0, 1)
    assert said.latest == Score(1.0, 1)


class Counted(dict[Any, int]):
    """An index that counts how often it is looked into."""

    looks = 0

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)

    def setdefault(self, key: Any, default: int = 0) -> int:
        self.looks += 1
        return super().setdefault(key, default)


def looks_for_status(turns: int, *, acknowledged: bool) -> tuple[int, int]:
    """How often the index is looked into for the next turn, and for a STATUS, after ``turns`` own turns."""
    play = Playbook(("ada",), caps={"max_rounds": 10_000})
    ada = play.joins("ada")
    play.seat("ada").said._first = counted = Counted()
    for turn in range(turns):
        text = " ".join(f"w{turn}x{n}" for n in range(50))
        if acknowledged:
            play.speaks(ada, text)
        else:
            now = play.turn
            play.says(ada, text)
            play.ends(ada, speech=True, turn=now)
    before = counted.looks
    play.speaks(ada, " ".join(f"v{n}" for n in range(50)))
    for_turn, before = counted.looks - before, counted.looks
    play.status()
    return for_turn, counted.looks - before


@pytest.mark.parametrize("acknowledged", [True, False])
def test_no_turn_and_no_status_costs_more_at_a_thousand_own_turns_than_at_ten(acknowledged: bool) -> None:
    """Before, the first STATUS of a debate scored all of it at once, and everybody waited."""
    few, many = (looks_for_status(turns, acknowledged=acknowledged) for turns in (10, 1000))
    assert few == many
    assert 0 < many[1] <= 3 * 48, "one turn of 48 3-grams: one look each to find, and one to keep"


def test_a_status_scores_one_turn_at_most_however_many_seats_there_are() -> None:
    play = Playbook([f"seat{n}" for n in range(20)])
    for session in play.everybody_joins():
        turn = play.turn
        play.says(session, "Some words of one's own.")
        play.ends(session, speech=True, turn=turn)
    assert sum(seat.said._unread is not None for seat in play.debate.roster) == 1
    assert len(play.status().repetition) == 20
