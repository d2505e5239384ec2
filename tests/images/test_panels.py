"""A real Prometheus scrapes a real council: everything that is shown or alerted on is there to be found."""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import docker_engine
import pytest
import yaml
from anyio.abc import SocketAttribute
from expressions import (
    ANY,
    CONSOLES,
    IMAGE,
    PROMETHEUS,
    Expression,
    of_alerts,
    of_consoles,
    of_dashboards,
    of_rules,
)
from house import house
from playbook import council
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from arbiter.edge.listener import bind
from consilium import messages as m
from wrapper.egress.counting import Counts, served

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from house import Guest, Home

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.docker, pytest.mark.timeout(300)]

# Its janitor is an image of its own, which would have to be pulled; the test ends what it starts.
testcontainers_config.ryuk_disabled = True

HOST = "127.0.0.1"
PATIENCE = 90.0


@dataclass
class Server:
    """A Prometheus that runs."""

    port: int

    async def get(self, path: str, **asked: str) -> str:
        """A page of it."""
        url = f"http://{HOST}:{self.port}{path}?{urllib.parse.urlencode(asked)}"

        def fetch() -> str:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return str(answer.read().decode())

        return await anyio.to_thread.run_sync(fetch)

    async def is_ready(self) -> bool:
        """Whether it answers."""
        try:
            return bool(await self.get("/-/ready"))
        except OSError:
            return False

    async def query(self, expression: str) -> list[Any]:
        """What it answers to an expression."""
        answer = json.loads(await self.get("/api/v1/query", query=expression))
        found: list[Any] = answer["data"]["result"]
        return found


@contextlib.asynccontextmanager
async def prometheus(folder: Path, targets: dict[str, str]) -> AsyncIterator[Server]:
    """The real one, with our configuration but for where things are, and how often it looks."""
    docker_engine.need_engine(IMAGE)
    there = folder / "prometheus"
    shutil.copytree(PROMETHEUS, there)
    free = (await bind(HOST, 0, setting="prometheus"))[0]
    port = free.extra(SocketAttribute.local_port)
    await free.aclose()
    config = yaml.safe_load((there / "prometheus.yml").read_text())
    config["global"] |= {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    for job in config["scrape_configs"]:
        job["static_configs"] = [{"targets": [targets.get(job["job_name"], f"{HOST}:{port}")]}]
    (there / "prometheus.yml").write_text(yaml.safe_dump(config))
    for path in (folder, there, *there.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    container = (
        DockerContainer(IMAGE)
        .with_kwargs(network_mode="host")
        .with_volume_mapping(there, "/etc/prometheus", "ro")
        .with_command(
            [
                "--config.file=/etc/prometheus/prometheus.yml",
                "--storage.tsdb.path=/prometheus",
                f"--web.listen-address={HOST}:{port}",
            ]
        )
    )
    await anyio.to_thread.run_sync(container.start)
    server = Server(port)
    try:
        with anyio.fail_after(PATIENCE):
            while not await server.is_ready():
                inside = container.get_wrapped_container()
                await anyio.to_thread.run_sync(inside.reload)
                assert inside.status == "running", inside.logs().decode()
                await anyio.sleep(0.2)
        yield server
    finally:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(container.stop)


@pytest.fixture
def proxy() -> Iterator[int]:
    """What the egress proxy serves: its port."""
    with served(Counts(), HOST, 0) as port:
        yield port


async def has_turns(guest: Guest, usage: m.Usage | None, trouble: anyio.Event) -> None:
    """Speak whenever it is one's turn, after a moment; where there is trouble, fail once and for all."""
    while True:
        try:
            turn = await guest.turn()
        except AssertionError:  # another has failed: what comes in place of a turn is a pause
            assert trouble.is_set()
            return
        await anyio.sleep(0.2)
        if trouble.is_set():
            fault, sent = m.Fault.CLIENT_ERROR, m.PromptSent.YES
            await guest.control.say(m.TurnFailed(turn_id=turn.turn_id, fault=fault, prompt_sent=sent))
            return
        await guest.says(turn.turn_id, f"{turn.turn_id}: we should wrap the billing service.", usage)


async def is_refused(home: Home, times: int) -> None:
    """An operator asks for what cannot be, as often as its profile allows."""
    operator = await home.operator()
    for _ in range(times):
        assert isinstance(await operator.ask(m.Next(seat="nobody")), m.Error)
        await anyio.sleep(0.06)
    await operator.close()


async def until_all_are_found(server: Server, expressions: list[Expression]) -> list[Expression]:
    """Ask until each has been answered with something; return those that never were."""
    missing = expressions
    with anyio.move_on_after(PATIENCE):
        while missing:
            missing = [each for each in missing if not await server.query(each.text)]
            await anyio.sleep(1)
    return missing


async def test_every_panel_console_and_rule_finds_its_figures(tmp_path: Path, proxy: int) -> None:
    rules = council(
        ("ada", "bob", "eve"),
        caps={"max_rounds": 10_000, "max_tokens": 10**9, "max_usd": 10**6, "max_seconds": 500_000},
        limits={"heartbeat_seconds": 1},
    )
    told = m.Usage(tokens_in=500, tokens_out=50, tokens_cached=100, usd=0.01, first_byte_ms=300)
    brands = {"ada": "claude", "bob": "qwen", "eve": "human"}
    trouble = anyio.Event()
    async with house(tmp_path, rules, measured=True) as home:
        targets = {
            "consilium-arbiter": f"{HOST}:{home.ports['metrics']}",
            "consilium-egress": f"{HOST}:{proxy}",
        }
        async with prometheus(tmp_path / "there", targets) as server, anyio.create_task_group() as tasks:
            for name, brand in brands.items():
                guest = home.guest(name)
                await guest.join(meta=m.Meta(brand=brand, isolation="strict"))
                tasks.start_soon(has_turns, guest, told if brand != "human" else None, trouble)
            shipped = [*of_rules(), *of_alerts(), *of_consoles(), *of_dashboards()]
            assert len(shipped) > 100
            marks = ("ALERTS", "consilium_seat_faults_total")
            of_trouble = [each for each in shipped if any(mark in each.text for mark in marks)]
            assert of_trouble
            assert await until_all_are_found(server, [e for e in shipped if e not in of_trouble]) == []
            assert await server.query("ALERTS") == [], "all is well"

            for page in CONSOLES:
                shown = await server.get(f"/consoles/{page.name}", instance=ANY)
                assert "error" not in shown.lower().replace("tag.error", "")
            shown = await server.get("/consoles/liveness.html")
            assert all(guest in shown for guest in brands)
            assert "RUNNING</b>" in shown
            assert "Alerts" not in shown

            trouble.set()
            await is_refused(home, 80)
            assert await until_all_are_found(server, of_trouble) == []
            assert "ConsiliumRefusalsBurst" in await server.get("/consoles/cost.html")
            tasks.cancel_scope.cancel()
