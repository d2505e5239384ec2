"""What the scripted seats say."""

from __future__ import annotations

from arbiter.debate.repetition import Repetition
from benchmarks.seats import SAID, SPEECH_CHARS
from benchmarks.texts import discourse, english


def test_the_english_has_the_length_asked_for_in_bytes_whatever_character_is_cut() -> None:
    for size in range(60, 120):
        assert size - 2 <= len(english(size).encode()) <= size


def test_the_english_is_written_with_the_characters_that_models_write() -> None:
    assert set("“”’—–…") <= set(english(2000))  # noqa: RUF001 - they are what is looked for


def test_the_discourse_is_the_same_in_every_run() -> None:
    assert discourse(5000) == discourse(5000)
    assert len(discourse(5000)) == 5000


def test_no_seat_of_a_measured_debate_repeats_itself() -> None:
    said = Repetition()
    for turn in range(200):
        said.add(turn, SAID[turn * SPEECH_CHARS :][:SPEECH_CHARS])
        said.read()
        assert said.latest is not None
        assert said.latest.share < 0.05
