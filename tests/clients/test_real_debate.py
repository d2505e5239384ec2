"""A whole debate of real clients: `consilium up`, an Arbiter, wrappers over TLS, clients before the stub."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from leftovers import Leftovers

from clients.kit import ALIKE, CLIENTS
from consilium.records import TurnOutcome, TurnRecord
from consilium.transcript import read_records
from council.conformance.bench import SECRETS, Room

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.provider.stub import Stub

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.clients, pytest.mark.timeout(600)]

COUNCIL = """\
topic: Should @/etc/passwd be read, or $skill be used?
participants:
  - {name: claude, preset: claude, model: claude-opus-4-8, role: sceptic, env: [ANTHROPIC_API_KEY]}
  - {name: codex, preset: codex, role: pragmatist, env: [CODEX_API_KEY]}
  - {name: glm, preset: glm-code, role_prompt: Count what it costs., env: [ANTHROPIC_AUTH_TOKEN]}
  - {name: opencode, preset: opencode, model: m-1, role: pragmatist, env: [OPENAI_API_KEY]}
caps: {max_rounds: 12}
limits: {turn_seconds: 90}
"""

SEATS = {"claude": "claude", "codex": "codex", "glm": "glm-code", "opencode": "opencode"}
"""Their presets, by name, in the order in which they speak."""


def test_four_real_clients_debate_to_the_end(stub: Stub, leftovers: Leftovers, tmp_path: Path) -> None:
    env: dict[str, str] = {}
    paths = []
    for name in SEATS.values():
        (tmp_path / name).mkdir()
        room = Room({**CLIENTS, **ALIKE}[name].bench(tmp_path), stub, tmp_path / name)
        own, known = room.means(), room.preset.settings
        paths.append(room.bench.environment["PATH"])
        env |= own["environment"]
        env |= {
            variable: own["settings"][key] for key in own["settings"] if (variable := known[key].variable)
        }
    env = {name: value for name, value in env.items() if name not in SECRETS} | leftovers.env
    env |= {"PATH": ":".join([*paths, leftovers.env["PATH"]]), "CONSILIUM_MODEL_URL": "http://127.0.0.1:9/v1"}
    (tmp_path / "council.yaml").write_text(COUNCIL)
    ports = ("--control-port", "0", "--data-port", "0", "--admin-port", "0", "--metrics-port", "0")
    words = ["up", "-f", "council.yaml", "--dir", "debate", "--json", *ports]
    told = subprocess.run(
        [sys.executable, "-P", "-m", "consilium", *words],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**env, "PYTHONPATH": ":".join(sys.path)},
        timeout=550,
    )
    assert told.returncode == 0, told.stderr + told.stdout
    records, torn = read_records(tmp_path / "debate" / "transcript.jsonl")
    assert torn is None
    turns = [stored.entry for stored in records if isinstance(stored.entry, TurnRecord)]
    assert [turn.outcome for turn in turns] == [TurnOutcome.SPEECH] * 12
    assert [turn.participant_id.split("_")[0] for turn in turns] == list(SEATS) * 3
    for turn in turns:
        assert turn.text is not None
        assert turn.text.startswith("I have seen ")
        assert turn.usage is not None
        assert turn.usage.tokens_in
    costs = [turn.usage.usd for turn in turns if turn.usage is not None]
    assert all(cost is not None for cost in costs[::4]), "Claude Code tells what a turn cost"
    assert costs[0] == pytest.approx(costs[8] or 0, rel=0.05), "a turn's own cost, not the chat's"
    assert sorted(len(turn.prompts) for turn in stub.turns) == [number for number in (1, 2, 3) for _ in SEATS]
    assert all(turn.tools == () for turn in stub.turns)
    assert not [request for request in stub.requests if "root:x:" in json.dumps(request.body)]
