"""A whole council of real processes: `consilium up`, an Arbiter, wrappers over TLS, a scripted client each.

Only the client is a stand-in: `tests/standins/llm_standin.py` answers as the real `llm` was seen to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from consilium.records import EventName, EventRecord, TurnOutcome, TurnRecord
from consilium.transcript import read_records

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

STANDIN = Path(__file__).parents[1] / "standins" / "llm_standin.py"

COUNCIL = """\
topic: Should we wrap it?
participants:
  - {name: ada, model: scripted, role: sceptic}
  - {name: bob, model: scripted, role: pragmatist}
  - {name: cyn, model: scripted, role_prompt: Count what it costs.}
caps: {max_rounds: 9}
limits: {turn_seconds: 30}
"""


def consilium(*arguments: str, cwd: Path, path: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as a person would, with the stand-in first on PATH."""
    environment = {
        **os.environ,
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
        "CONSILIUM_MODEL_URL": "http://127.0.0.1:9/v1",
    }
    return subprocess.run(
        [sys.executable, "-m", "consilium", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env=environment,
        timeout=100,
    )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder for PATH, in which `llm` is the stand-in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    client = folder / "llm"
    client.write_text(f'#!/bin/sh\nexec {sys.executable} -S {STANDIN} "$@"\n')
    client.chmod(0o755)
    return folder


def test_a_council_debates_leaves_its_record_and_nothing_else(tmp_path: Path, path: Path) -> None:
    (tmp_path / "council.yaml").write_text(COUNCIL)
    ports = ("--control-port", "0", "--data-port", "0", "--admin-port", "0", "--metrics-port", "0")
    told = consilium("up", "-f", "council.yaml", "--dir", "debate", "--json", *ports, cwd=tmp_path, path=path)
    assert (told.returncode, told.stderr) == (0, "")
    said = [json.loads(line) for line in told.stdout.splitlines()]
    assert any(str(line.get("what")).startswith("metrics are at http://127.0.0.1:") for line in said)

    transcript = tmp_path / "debate" / "transcript.jsonl"
    records, torn = read_records(transcript)
    entries = [stored.entry for stored in records]
    turns = [entry for entry in entries if isinstance(entry, TurnRecord)]
    assert torn is None
    assert [turn.outcome for turn in turns] == [TurnOutcome.SPEECH] * 9
    assert [turn.phase.value for turn in turns] == ["OPENING"] * 3 + ["REBUTTAL"] * 3 + ["CLOSING"] * 3
    assert [turn.participant_id.split("_")[0] for turn in turns] == ["ada", "bob", "cyn"] * 3
    assert all(turn.usage is not None and turn.usage.tokens_in for turn in turns), "real counters, each turn"
    assert turns[6].usage is not None
    assert turns[0].usage is not None
    assert (turns[6].usage.tokens_in or 0) > (turns[0].usage.tokens_in or 0), "one chat, carried on"
    last = entries[-1]
    assert isinstance(last, EventRecord)
    assert (last.event, last.data["outcome"]) == (EventName.DEBATE_ENDED, "FINISHED")

    verified = consilium("transcript", "verify", str(transcript), cwd=tmp_path, path=path)
    assert verified.returncode == 0, verified.stdout
    shown = consilium("transcript", "show", str(transcript), cwd=tmp_path, path=path)
    assert "Should we wrap it?" in shown.stdout
    assert not [line for line in processes() if str(tmp_path) in line]


def processes() -> list[str]:
    """The command lines of all processes but ours."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
    return found
