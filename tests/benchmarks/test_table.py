"""Verdicts, ratios and the table: what a reader of the figures relies on."""

from __future__ import annotations

import pytest

from benchmarks.table import Row, Target, Verdict, judged, p10, percentile, ratios, render, too_busy


def row(*figures: float, number: str = "P1", wall: bool = True, skipped: str | None = None) -> Row:
    return Row(number, "a turn", Target("<=", 1.5), figures, "3 us to 2 us", wall=wall, skipped=skipped)


@pytest.mark.parametrize(
    ("target", "figure", "reached"),
    [
        (Target("<=", 1.5), 1.5, True),
        (Target("<=", 1.5), 1.51, False),
        (Target(">=", 0.6), 0.6, True),
        (Target(">=", 0.6), 0.59, False),
    ],
)
def test_a_target_includes_its_own_value(target: Target, figure: float, reached: bool) -> None:
    assert target.reached_by(figure) is reached


def test_the_measured_value_is_the_median_of_the_rounds_so_that_one_bad_round_decides_nothing() -> None:
    assert row(1.2, 9.0, 1.3).measured == 1.3
    assert row(1.2, 9.0, 1.3).verdict is Verdict.YES


def test_a_median_over_the_target_is_not_reached() -> None:
    assert row(1.2, 1.6, 1.7).verdict is Verdict.NO


def test_without_any_figure_nothing_was_measured_and_nothing_reached() -> None:
    assert row().measured is None
    assert row().verdict is Verdict.SKIPPED


def test_a_ratio_is_made_of_one_round_of_each_side() -> None:
    assert ratios([2.0, 6.0], [1.0, 2.0]) == (2.0, 3.0)


def test_sides_with_different_numbers_of_rounds_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        ratios([2.0, 6.0], [1.0])


def test_p10_is_what_one_in_ten_is_below() -> None:
    assert p10([float(number) for number in range(101)]) == pytest.approx(10)


def test_a_percentile_between_two_figures_is_in_proportion() -> None:
    assert percentile([1.0, 2.0], 0.25) == pytest.approx(1.25)
    assert percentile([7.0], 0.1) == 7.0


def test_a_load_of_two_a_core_is_borne_and_more_is_not() -> None:
    assert too_busy(4.0, 3.0, 2) is None
    assert too_busy(1.0, 4.1, 2) == "load 4.1 on 2 cores"
    assert too_busy(4.1, 1.0, 2) == "load 4.1 on 2 cores"


def test_on_a_busy_machine_wall_times_are_skipped_and_cpu_and_memory_stand() -> None:
    wall, cpu = judged([row(9.0), row(9.0, wall=False)], "load 4.1 on 2 cores")
    assert (wall.verdict, wall.skipped) == (Verdict.SKIPPED, "load 4.1 on 2 cores")
    assert (cpu.verdict, cpu.skipped) == (Verdict.NO, None)


def test_a_reason_to_skip_that_was_there_before_the_load_stands() -> None:
    (only,) = judged([row(skipped="on tmpfs")], "load 4.1 on 2 cores")
    assert only.skipped == "on tmpfs"


def test_a_quiet_machine_leaves_the_rows_as_they_are() -> None:
    rows = [row(1.0), row(9.0, wall=False)]
    assert judged(rows, None) == rows


def test_the_table_shows_target_value_range_verdict_and_basis() -> None:
    heading, line = render([row(1.2, 9.0, 1.3)]).splitlines()
    assert heading.split() == ["what", "target", "measured", "range", "reached", "basis"]
    assert line.split("  ")[0] == "P1"
    for part in ("a turn", "<= 1.5", "1.3", "1.2-9", "yes", "3 us to 2 us"):
        assert part in line


def test_the_columns_of_the_table_stand_below_each_other() -> None:
    heading, *lines = render([row(1.0), row(2.0, number="P15")]).splitlines()
    assert len({line.index("<=") for line in lines} | {heading.index("target")}) == 1


def test_what_was_skipped_is_explained_once_below_the_table() -> None:
    text = render([row(skipped="on tmpfs"), row(skipped="on tmpfs")])
    assert text.splitlines()[-2:] == ["", "P1 skipped: on tmpfs"]
    assert " - " in text


def test_a_row_becomes_json_with_everything_that_is_known_of_it() -> None:
    known = row(1.2, 1.4).as_json()
    assert known["measured"] == pytest.approx(1.3)
    assert (known["target"], known["verdict"], known["figures"]) == ("<= 1.5", "yes", (1.2, 1.4))
