"""When a quota comes back, as a client says it: in the one form that everybody reads, or in its words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilium.errors import AdapterFault
from consilium.messages import Fault
from consilium.pausing import moment, why, why_paused
from wrapper.adapters.faults import RESET_CHARS, told
from wrapper.adapters.parts import KnownFault
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Completed

PRESET = load_preset("claude").model_copy(
    update={"faults": (KnownFault(pattern=r"(?s)used up(?: until (?P<reset>.*))?", fault=Fault.QUOTA),)}
)


def fault(words: str) -> AdapterFault:
    return told(Completed(1, b"", b"", None, (), 1.0), PRESET, "it ended", words)


@pytest.mark.parametrize(
    ("said", "at"),
    [
        ("1796052842", "2026-11-30T15:34:02Z"),
        ("1796052842000", "2026-11-30T15:34:02Z"),
        ("2026-11-30T18:30:00Z", "2026-11-30T18:30:00Z"),
        ("2026-11-30T19:30:00.123+01:00", "2026-11-30T18:30:00Z"),
        ("2026-11-30 18:30:00+00:00", "2026-11-30T18:30:00Z"),
        ("2026-11-30T18:30:00", "2026-11-30T18:30:00"),  # of which zone, nobody says
        ("3pm (Europe/Rome)", "3pm (Europe/Rome)"),
        ("34.074824224s", "in 34.074824224s"),
        ("7h15m3s", "in 7h15m3s"),
        ("in 2 hours\n\x1b[2J", "in 2 hours"),
        ("0001-01-01T00:00:00+23:59", "0001-01-01T00:00:00+23:59"),
        ("9" * 12, "9" * 12),
        ("1" * 5000, "1" * (RESET_CHARS - 1) + "…"),
        ("1" * 500, "1" * (RESET_CHARS - 1) + "…"),
        ("\u0661\u0667", "\u0661\u0667"),
        ("\x1b[2J", None),
        ("", None),
    ],
)
def test_a_time_is_told_in_one_form_and_anything_else_in_the_words_of_the_client(
    said: str, at: str | None
) -> None:
    assert fault(f"used up until {said}").resets_at == at


@pytest.mark.parametrize("where", ["{}" + " x" * 9999, "x " * 9999 + "{}", "{}"])
def test_what_words_mean_is_found_at_either_end_of_them(where: str) -> None:
    assert fault(where.format("used up")).fault is Fault.QUOTA
    assert fault(where.format("given up")).fault is Fault.CLIENT_ERROR


def test_a_quota_of_which_nothing_more_is_said_comes_back_nobody_knows_when() -> None:
    assert fault("used up").resets_at is None
    assert fault("something else").resets_at is None


@given(st.text())
def test_whatever_is_said_is_a_short_line_or_nothing(said: str) -> None:
    at = fault(f"used up until {said}").resets_at
    assert at is None or (0 < len(at) <= RESET_CHARS and "\n" not in at)
    assert moment(at or "")[:1] == (at or "")[:1], "a person is shown it, or the same moment"


def test_a_moment_that_utc_has_no_year_for_is_told_as_it_is() -> None:
    assert moment("0001-01-01T00:00:00+05:00") == "0001-01-01T00:00:00+05:00"
    assert moment("9999-12-31T23:00:00-05:00") == "9999-12-31T23:00:00-05:00"


def test_a_pause_is_told_in_words_with_what_is_known_of_it() -> None:
    assert why("tea") == "tea"
    assert why("operator", {"ada": "3pm"}) == "an operator paused it"
    assert why("quota_exhausted") == "a seat's quota is used up"
    assert why("quota_exhausted", {"ada": "3pm", "bob": None}) == (
        "the quota of ada is used up; it comes back: 3pm; the quota of bob is used up"
    )
    assert why_paused({"reason": "quota_exhausted"}) == "a seat's quota is used up"
    assert why_paused({"reason": "quota_exhausted", "seats": "ada"}) == "a seat's quota is used up"
    assert why_paused({}) == ""
