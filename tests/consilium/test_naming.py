"""What belongs to one debate has a name that sorts by age and says what it is about."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consilium.naming import debate_name


@pytest.mark.parametrize(
    ("topic", "number", "name"),
    [
        ("Wrap it, or rewrite it?", 1, "T-wrap-it-or-rewrite-it"),
        ("Wrap it, or rewrite it?", 2, "T-wrap-it-or-rewrite-it-2"),
        ("../../etc/passwd", 1, "T-etc-passwd"),
        ("何か", 1, "T-debate"),
        ("", 1, "T-debate"),
        ("x" * 99, 1, f"T-{'x' * 40}"),
    ],
)
def test_names(topic: str, number: int, name: str) -> None:
    assert debate_name("T", topic, number) == name


@given(st.text())
def test_a_name_is_one_part_of_a_path(topic: str) -> None:
    assert re.fullmatch(r"T-[a-z0-9-]{1,40}", debate_name("T", topic))
