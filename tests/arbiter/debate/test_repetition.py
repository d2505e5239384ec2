"""The repetition index (§5.7)."""

from __future__ import annotations

from typing import Any

from playbook import Playbook, participant

from arbiter.debate.flow import QUIET_SECONDS
from arbiter.debate.repetition import Repetition, Score
from arbiter.debate.status import SCORED_AT_ONCE


class Said(Repetition):
    """What a seat has said, scored at once."""

    def score(self, turn_id: int, text: str) -> Score | None:
        self.add(turn_id, text)
        self.read()
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
        said.score(turn, "one two three four")
    assert said.latest == Score(1.0, 1)
    assert said._first == {("one", "two", "three"): 1, ("two", "three", "four"): 1}


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


def test_turns_are_scored_in_their_order_and_not_before_one_says_so() -> None:
    said = Repetition()
    for turn in (1, 2, 3):
        said.add(turn, "one two three four")
    scores = []
    for _ in range(3):
        scores.append(said.latest)
        said.read()
    assert [*scores, said.latest] == [None, Score(0.0, None), Score(1.0, 1), Score(1.0, 1)]


class Counted(dict[Any, int]):
    """An index that counts how often it is looked into."""

    looks = 0

    def __contains__(self, key: object) -> bool:
        self.looks += 1
        return super().__contains__(key)

    def setdefault(self, key: Any, default: int = 0) -> int:
        self.looks += 1
        return super().setdefault(key, default)


def looks_of(turns: int) -> tuple[int, int, int]:
    """How often the index is looked into for the next turn, in the quiet after it, and for a STATUS then."""
    play = Playbook(("ada",), caps={"max_rounds": 10_000})
    ada = play.joins("ada")
    play.seat("ada").said._first = counted = Counted()
    looks = []
    for turn in range(turns):
        play.speaks(ada, " ".join(f"w{turn}x{n}" for n in range(50)))
        play.after(QUIET_SECONDS)
    for act in (
        lambda: play.speaks(ada, " ".join(f"v{n}" for n in range(50))),
        lambda: play.after(QUIET_SECONDS),
        play.status,
    ):
        before = counted.looks
        act()
        looks.append(counted.looks - before)
    return looks[0], looks[1], looks[2]


def test_nothing_costs_more_at_a_thousand_own_turns_than_at_ten() -> None:
    """Before, the first STATUS of a debate scored all of it at once, and everybody waited."""
    few, many = looks_of(10), looks_of(1000)
    assert few == many
    for_turn, in_quiet, for_status = many
    assert for_turn == 0, "nobody who speaks waits for a score"
    assert 0 < in_quiet <= 3 * 48, "one turn of 48 3-grams: one look each to find, and one to keep"
    assert for_status == 0


def test_while_turns_follow_one_another_none_is_scored_and_a_status_scores_a_bounded_number() -> None:
    play = Playbook(("ada",), caps={"max_rounds": 10_000})
    ada = play.joins("ada")
    for turn in range(100):
        play.speaks(ada, f"Some words of turn {turn}.")
        play.after(QUIET_SECONDS / 2)
    said = play.seat("ada").said
    assert len(said._unread) == 100
    play.status()
    assert len(said._unread) == 100 - SCORED_AT_ONCE
    for left in range(len(said._unread), 0, -1):
        assert len(said._unread) == left
        play.after(QUIET_SECONDS)
    assert not said._unread
    assert play.status().repetition == {participant("ada"): 0.667}
