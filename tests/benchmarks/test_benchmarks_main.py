"""`python -m benchmarks` from the outside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from benchmarks import __main__ as command
from benchmarks import machine
from benchmarks.measures import peers
from benchmarks.process import ROOT
from benchmarks.setting import Setting
from benchmarks.table import Row, Target


def test_every_target_is_measured_by_exactly_one_measurement() -> None:
    known = "P1 P2 P3 P4 P5 P6 P7 P8 P9 P10 P13 P14 P15 P16 P17 P18"
    assert known.split() == command.KNOWN
    assert sum(len(numbers) for numbers in command.MEASURES.values()) == len(command.KNOWN)


def test_a_target_that_nobody_measures_is_refused_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["P1", "P99"])
    assert stop.value.code == 2
    assert "P99: there is P1, P2" in capsys.readouterr().err


def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *rows: Row) -> None:
    def measure(setting: Setting) -> list[Row]:
        assert setting.quick
        return list(rows)

    monkeypatch.setattr(command, "MEASURES", {measure: frozenset({"P1", "P2"})})
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(machine, "load", lambda: 0.0)


def made(number: str, figure: float) -> Row:
    return Row(number, "a turn", Target("<=", 1.5), (figure,), "", wall=True)


def kept(tmp_path: Path) -> Any:
    (only,) = tmp_path.glob("*.json")
    return orjson.loads(only.read_bytes())


def test_only_the_rows_that_were_asked_for_are_shown_and_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(monkeypatch, tmp_path, made("P2", 9.0), made("P1", 1.0))
    assert command.main(["--quick", "P1"]) == 0
    assert "P2" not in capsys.readouterr().out
    assert [row["number"] for row in kept(tmp_path)["rows"]] == ["P1"]


def test_a_target_that_is_named_and_not_reached_shows_in_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(monkeypatch, tmp_path, made("P2", 9.0), made("P1", 1.0))
    assert command.main(["--quick", "P1", "P2"]) == 1
    assert [row["verdict"] for row in kept(tmp_path)["rows"]] == ["yes", "no"]


def test_without_names_the_table_is_a_report_and_fails_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    fake(monkeypatch, tmp_path, made("P2", 9.0), made("P1", 1.0))
    assert command.main(["--quick"]) == 0
    assert [row["verdict"] for row in kept(tmp_path)["rows"]] == ["yes", "no"]


def test_a_busy_machine_fails_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(monkeypatch, tmp_path, made("P1", 9.0))
    monkeypatch.setattr(machine, "load", lambda: 1000.0)
    assert command.main(["--quick", "P1"]) == 0
    assert kept(tmp_path)["rows"][0]["skipped"].startswith("load 1000.0 on ")


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_quick_measurement_against_real_processes_fills_its_rows_and_leaves_only_its_result() -> None:
    before = set((ROOT / "benchmarks" / "results").glob("*"))
    command_line = [sys.executable, "-m", "benchmarks", "--quick", "P1", "P3", "P6"]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, timeout=170, check=False)
    assert done.returncode in (0, 1), done.stderr
    (result,) = set((ROOT / "benchmarks" / "results").glob("*")) - before
    rows = orjson.loads(result.read_bytes())["rows"]
    result.unlink()
    assert [row["number"] for row in rows] == ["P1", "P1", "P3", "P6", "P6", "P6"]
    assert all(row["measured"] is not None or row["skipped"] for row in rows)
    assert done.stdout.rstrip().endswith(str(result))


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_what_attacks_and_fails_is_measured_against_real_processes_too() -> None:
    before = set((ROOT / "benchmarks" / "results").glob("*"))
    command_line = [sys.executable, "-m", "benchmarks", "--quick", "P5", "P16", "P17"]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, timeout=230, check=False)
    assert done.returncode in (0, 1), done.stderr
    (result,) = set((ROOT / "benchmarks" / "results").glob("*")) - before
    rows = orjson.loads(result.read_bytes())["rows"]
    result.unlink()
    assert [row["number"] for row in rows] == ["P5", "P16", "P16", "P17", "P17"]
    assert all(row["measured"] is not None or row["skipped"] for row in rows)


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_a_short_soak_leaves_no_task_behind() -> None:
    command_line = [sys.executable, "-m", "benchmarks", "soak", "--minutes", "0.3"]
    done = subprocess.run(command_line, cwd=ROOT, capture_output=True, text=True, timeout=230, check=False)
    assert done.returncode in (0, 1), done.stderr
    assert "248 seats in 17 debates" in done.stderr
    (left,) = [line for line in done.stdout.splitlines() if "tasks and files left" in line]
    assert " yes " in left


def test_peers_that_are_not_installed_are_skipped_with_the_way_to_have_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(peers, "PEERS", tmp_path / "python")
    assert peers.missing("autogen_core") == "there is no .venv-peers; `make bench-peers` makes it"
    monkeypatch.setattr(peers, "PEERS", Path(sys.executable))
    assert (
        peers.missing("autogen_core") == "autogen_core is not in .venv-peers; `make bench-peers` installs it"
    )
    monkeypatch.setattr(peers, "broker", lambda: None)
    assert peers.missing("sys", "mosquitto") == "there is no mosquitto here; Debian has it as a package"
    monkeypatch.setattr(peers, "broker", lambda: "/usr/sbin/mosquitto")
    assert peers.missing("sys", "mosquitto") is None


def test_a_soak_of_no_time_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        command.main(["soak", "--minutes", "0"])
    assert stop.value.code == 2
    assert "above zero" in capsys.readouterr().err
