"""A process says that it is well, and another one believes it, or not."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import anyio
import pytest

from consilium import health, healthcheck
from consilium.errors import UserError
from consilium.health import STALE, Report, judge
from consilium.reporting import report_health

WELL = Report("arbiter", 100.0, "the debate is RUNNING")


@pytest.mark.parametrize(
    ("report", "now", "healthy", "told"),
    [
        (WELL, 100.0, True, "the arbiter is well: the debate is RUNNING"),
        (WELL, 100.0 + STALE, True, "is well"),
        (WELL, 101.0 + STALE, False, "last report is 11 s old"),
        (WELL, 99.0, False, "of another life"),  # the machine was started since
        (None, 100.0, False, "has not reported yet"),
        (Report("wrapper", 100.0, "seated"), 100.0, False, "a report of the wrapper, not of the arbiter"),
        (Report("arbiter", 100.0, "x", busy_since=99.0), 100.0, True, "is well"),
        (
            Report("arbiter", 100.0, "x", busy_since=80.0),
            100.0,
            False,
            "at work on one thing for 20 s",
        ),
        (Report("arbiter", 100.0, "x", problems=("the disk is full",)), 100.0, False, "the disk is full"),
        (Report("arbiter", 100.0, "x", warnings=("it is late",)), 100.0, True, "is well: x; it is late"),
    ],
)
def test_opinions(report: Report | None, now: float, *, healthy: bool, told: str) -> None:
    opinion = judge(report, "arbiter", now)
    assert opinion.healthy is healthy
    assert told in opinion.sentence


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    for report in (WELL, Report("wrapper", 1.5, "é", busy_since=1.0, problems=("a", "b"), warnings=("c",))):
        report.write(tmp_path / "health")
        assert Report.read(tmp_path / "health") == report
    assert [path.name for path in tmp_path.iterdir()] == ["health"]


@pytest.mark.parametrize(
    "content",
    ["", "{", "[]", "null", '{"who": "arbiter"}', '{"who": 1, "at": 2, "state": "x", "pid": 1}', "\xff"],
)
def test_what_is_no_report_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "health"
    path.write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError, match="is no report on health"):
        Report.read(path)


def test_a_place_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        Report.read(tmp_path)


def test_a_report_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "health").mkdir()
    (tmp_path / "health" / "x").touch()
    with pytest.raises(OSError, match="directory"):
        WELL.write(tmp_path / "health")
    assert [path.name for path in tmp_path.iterdir()] == ["health"]


def test_the_command_says_it_in_a_sentence_or_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "health"
    assert healthcheck.main(["arbiter", "--file", str(path)]) == 1
    assert capsys.readouterr().out == "the arbiter has not reported yet\n"
    Report("arbiter", time.monotonic(), "the debate is PAUSED").write(path)
    monkeypatch.setenv(health.VARIABLE, str(path))
    assert healthcheck.main(["arbiter"]) == 0
    assert capsys.readouterr().out == "the arbiter is well: the debate is PAUSED\n"
    assert healthcheck.main(["wrapper", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["healthy"] is False
    assert told["report"]["pid"] == os.getpid()


def test_without_a_place_there_is_no_telling(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(health.VARIABLE, raising=False)
    with pytest.raises(UserError, match="nothing says where"):
        healthcheck.main(["arbiter"])


@pytest.mark.anyio
async def test_reports_are_written_again_and_a_place_that_takes_none_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("consilium.reporting.EVERY", 0.01)
    count = 0
    enough = anyio.Event()

    def report() -> Report:
        nonlocal count
        count += 1
        if count == 3:
            folder.mkdir()
        if count == 6:
            enough.set()
        return Report("arbiter", float(count), "x")

    folder = tmp_path / "later"
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(report_health, folder / "health", report)
        with anyio.fail_after(20):
            await enough.wait()
        tasks.cancel_scope.cancel()
    found = Report.read(folder / "health")
    assert found is not None
    assert found.at >= 5
    assert [record.getMessage() for record in caplog.records] == [
        f"health cannot be reported to {folder / 'health'}: No such file or directory"
    ]
