"""`council.orphans`: what a killed process leaves behind ends with us."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from council import orphans

KEEPER = """
import os, signal, subprocess, sys
from council import orphans
orphans.adopt()
sleep = "import time; time.sleep(600)"
inner = "import subprocess, sys; p = subprocess.Popen([sys.executable, '-c', sys.argv[1]],"
inner += " start_new_session=True); print(p.pid, flush=True); exec(sys.argv[1])"
wrapper = subprocess.Popen([sys.executable, "-c", inner, sleep], stdout=subprocess.PIPE, text=True)
client = int(wrapper.stdout.readline())
os.kill(wrapper.pid, signal.SIGKILL)
wrapper.wait()
os.kill(client, 0)
orphans.end_all()
try:
    os.kill(client, 0)
except ProcessLookupError:
    print("gone")
"""


def test_a_client_in_a_session_of_its_own_ends_although_its_wrapper_was_killed() -> None:
    told = subprocess.run(
        [sys.executable, "-c", KEEPER], capture_output=True, text=True, check=True, timeout=30
    )
    assert told.stdout == "gone\n"


def test_without_children_there_is_nothing_to_end() -> None:
    code = "from council import orphans; orphans.end_all(); print('done')"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    assert told.stdout == "done\n"


def test_a_process_that_cannot_be_killed_is_waited_for_no_longer_than_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(orphans, "_children", lambda: [2**22 + 1])
    monkeypatch.setattr(orphans, "REAP_SECONDS", 0.1)
    monkeypatch.setattr(os, "waitpid", lambda *_: (0, 0))
    began = time.monotonic()
    orphans.end_all()
    assert 0.1 <= time.monotonic() - began < 20


def test_where_adoption_is_unknown_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    orphans.adopt()


def test_the_parent_of_a_process_is_read_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for pid, stat in (("7", "7 (a) b) c) S 5 7 7"), ("8", "8 (x) S 7 8 8")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "stat").write_text(stat)
    (tmp_path / "9").mkdir()
    (tmp_path / "self").mkdir()
    monkeypatch.setattr(orphans, "PROC", tmp_path)
    assert sorted(orphans._parents()) == [(7, 5), (8, 7)]
