"""`consilium arbiter --metrics-port`: a real process, with metrics and without."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from house import Guest, connect
from playbook import council
from scrapes import HOST, Page, ask

from consilium import messages as m
from consilium.config import Council
from consilium.errors import UserError
from consilium.ports import Ports
from consilium.strict_yaml import dump_tree
from consilium.tls import client_context
from pki.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PORTS = ("--control-port", "0", "--data-port", "0", "--admin-port", "0")


@contextmanager
def arbiter(folder: Path, rules: Council, *more: str, **env: str) -> Iterator[tuple[Any, dict[str, Any]]]:
    """An Arbiter's process in ``folder``, and where it listens."""
    if not (folder / "certs").exists():
        Authority.create(folder / "certs").issue("arbiter", profile="arbiter", dns=["localhost"], ips=[HOST])
        (folder / "council.yaml").write_text(dump_tree(rules.model_dump(mode="json", exclude_none=True)))
    files = ("--council", "council.yaml", "--certs", "certs/arbiter", "--transcript", "debate.jsonl")
    process = subprocess.Popen(
        [sys.executable, "-m", "arbiter", *files, *PORTS, *more],
        cwd=folder,
        env=os.environ | env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


@pytest.mark.e2e
@pytest.mark.anyio
async def test_metrics_are_off_unless_a_port_is_given(tmp_path: Path) -> None:
    with arbiter(tmp_path, council()) as (_, said):
        assert set(said) == {"event", "control", "data", "admin"}
    with arbiter(tmp_path, council(), CONSILIUM_METRICS_PORT="0") as (_, said):
        assert (await ask(said["metrics"])).status == 200
    elsewhere = ("--metrics-port", "0", "--metrics-host", "127.0.0.2")
    with arbiter(tmp_path, council(), *elsewhere) as (_, said), pytest.raises(OSError, match="connect"):
        await ask(said["metrics"])


def test_without_the_port_the_library_is_not_even_imported() -> None:
    program = (
        "import sys, arbiter.main as main\n"
        "from consilium.ports import Ports\n"
        "loaded = lambda: 'prometheus_client' in sys.modules or 'arbiter.metrics' in sys.modules\n"
        "assert main._board(Ports.of()) is None and not loaded()\n"
        "assert main._board(Ports.of(metrics_port=0)) is not None and loaded()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_metrics_port_goes_with_unix_sockets_and_has_bounds() -> None:
    ports = Ports.of(listen="unix", metrics_port=9100)
    assert (ports.sockets is not None, ports.metrics_port, ports.metrics_host) == (True, 9100, "127.0.0.1")
    assert Ports.of().metrics_port is None
    with pytest.raises(UserError, match="metrics_port must be a port"):
        Ports.of(metrics_port=70000)


@pytest.mark.e2e
@pytest.mark.anyio
async def test_an_arbiter_that_was_killed_counts_from_where_the_record_stands(tmp_path: Path) -> None:
    rules = council(("ada",))
    with arbiter(tmp_path, rules, "--metrics-port", "0") as (process, said):
        authority = Authority.open(tmp_path / "certs")

        class There:
            async def connect(self, door: str, context: Any) -> Any:
                return await connect(said[door], door, context)

        there: Any = There()
        ada = Guest(there, "ada", client_context(authority.issue("ada", profile="participant")))
        await ada.join()
        for _ in range(2):
            turn = await ada.turn()
            await ada.says(turn.turn_id, "First.", m.Usage(tokens_in=10, tokens_out=1))
        await ada.turn()
        before = Page((await ask(said["metrics"])).body)
        process.send_signal(signal.SIGKILL)
        await ada.control.cut()
        await ada.data.cut()
        process.wait(20)
    seat = ada.granted.participant_id
    with arbiter(tmp_path, rules, "--metrics-port", "0") as (_, said):
        after = Page(b"")
        with anyio.fail_after(20):  # the lost turn is counted once its record is on disk
            while not after("consilium_seat_turns_total", seat=seat, outcome="lost"):
                after = Page((await ask(said["metrics"])).body)
        for name, labels in (
            ("consilium_seat_turns_total", {"outcome": "speech"}),
            ("consilium_seat_tokens_total", {"kind": "in"}),
            ("consilium_seat_turn_seconds_count", {}),
        ):
            assert after(name, seat=seat, **labels) == before(name, seat=seat, **labels) != 0
        assert after("consilium_seat_turns_total", seat=seat, outcome="lost") == 1
        records = "consilium_transcript_records_total"
        assert (after(records) or 0) > (before(records) or 0)
        assert after.one_of("consilium_debate_state", "state") == "PAUSED"
        assert after("consilium_seat_last_seen_timestamp_seconds", seat=seat) is None
