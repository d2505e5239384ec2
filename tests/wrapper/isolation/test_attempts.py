"""`wrapper.isolation.attempts`: what shall come of each attempt, and what is made of what came of it."""

from __future__ import annotations

import ast
from pathlib import Path

from wrapper.isolation import probe
from wrapper.isolation.attempts import ATTEMPTS, Outcome, holes, judge

AS_IT_SHALL_BE = {
    row.name: (Outcome.ALLOWED if row.allowed else Outcome.DENIED, "as told") for row in ATTEMPTS
}


def test_all_as_it_shall_be_is_no_surprise() -> None:
    verdicts = judge(AS_IT_SHALL_BE, scopes=True)
    assert [verdict for verdict in verdicts if verdict.surprise] == []
    assert holes(verdicts) == ()
    assert {verdict.attempt for verdict in verdicts} == set(ATTEMPTS)


def test_each_row_can_surprise_and_names_its_layer() -> None:
    for row in ATTEMPTS:
        other = Outcome.DENIED if row.allowed else Outcome.ALLOWED
        verdicts = judge({**AS_IT_SHALL_BE, row.name: (other, "why")}, scopes=True)
        assert [verdict.attempt for verdict in verdicts if verdict.surprise] == [row]
        (hole,) = holes(verdicts)
        assert hole.startswith(str(row.layer))
        assert row.what in hole


def test_what_is_unclear_surprises_whatever_was_expected() -> None:
    for row in ATTEMPTS:
        verdicts = judge({**AS_IT_SHALL_BE, row.name: (Outcome.UNCLEAR, "ETIMEDOUT")}, scopes=True)
        (hole,) = holes(verdicts)
        assert "unclear (ETIMEDOUT)" in hole


def test_what_was_not_tried_is_told_and_no_surprise() -> None:
    verdicts = judge({}, scopes=True)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.NOT_TRIED}
    assert not any(verdict.surprise for verdict in verdicts)


def test_a_kernel_that_knows_no_scopes_is_not_expected_to_hold_back_abstract_sockets() -> None:
    allowed = {**AS_IT_SHALL_BE, "abstract_socket": (Outcome.ALLOWED, "")}
    assert holes(judge(allowed, scopes=False)) == ()
    assert len(holes(judge(allowed, scopes=True))) == 1


def test_the_probe_tries_every_attempt_of_the_table_and_no_other() -> None:
    """The names that the probe gives its results are the table's."""
    tree = ast.parse(Path(probe.__file__).read_text())
    words = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    words |= {f"proc_{name}" for name in ("environ", "maps", "cmdline") if name in words}
    assert {row.name for row in ATTEMPTS} <= words
