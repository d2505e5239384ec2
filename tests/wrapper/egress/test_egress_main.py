"""`consilium egress`: whom its options allow, and its process from its first line to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Collection
from pathlib import Path

import anyio
import pytest

from consilium.errors import UserError
from wrapper.egress import main as egress
from wrapper.egress.counting import Counts
from wrapper.egress.proxy import Proxy, dial, resolve

COUNCIL = """\
topic: x
participants:
  - name: ada
    preset: llm
caps: {max_rounds: 1}
"""


def test_what_is_allowed_comes_from_council_presets_and_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Known:
        def __init__(self, name: str, _own: Path | None) -> None:
            self.network = self
            self.hosts = (f"api.{name}.test",)

    monkeypatch.setattr(egress, "load_preset", Known)
    (tmp_path / "council.yaml").write_text(COUNCIL)
    found = egress.allowed(tmp_path / "council.yaml", ["codex"], ["proxy.example.org"])
    assert found == {"api.llm.test", "api.codex.test", "proxy.example.org"}


def test_the_hosts_of_a_preset_beside_the_council_file_are_allowed(tmp_path: Path) -> None:
    text = (Path(egress.__file__).parents[1] / "presets" / "llm.toml").read_text()
    (tmp_path / "presets").mkdir()
    own = text.replace("hosts = []", 'hosts = ["api.example.org"]')
    (tmp_path / "presets" / "llm.toml").write_text(own)
    (tmp_path / "council.yaml").write_text(COUNCIL)
    assert egress.allowed(tmp_path / "council.yaml", [], []) == {"api.example.org"}


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "nobody may be reached"),
        (["--allow", "*.example.org"], "no host's full name"),
        (["--allow", "93.184.216.34"], "no host's full name"),
        (["--preset", "nonesuch"], "no preset called 'nonesuch'"),
        (["--council", "/no/such/file"], "/no/such/file"),
        (["--preset", "llm", "--port", "70000"], "--port 70000"),
        (["--preset", "llm", "--metrics-port", "-1"], "--metrics-port -1"),
        (["--preset", "llm", "--host", "192.0.2.1"], "nothing can listen on 192.0.2.1"),
        (
            ["--preset", "llm", "--metrics-host", "192.0.2.1", "--metrics-port", "0"],
            "metrics cannot be served on 192.0.2.1",
        ),
    ],
)
def test_what_cannot_be_carried_out(argv: list[str], told: str) -> None:
    with pytest.raises(UserError, match=told.replace("*", r"\*")):
        egress.main(argv)


def test_the_variable_allows_no_more_than_the_option(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(egress.ALLOW, "*.example.org")
    with pytest.raises(UserError, match="no host's full name"):
        egress.main([])


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
    return port


def connected(port: int) -> socket.socket:
    end = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=20)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def test_the_process_serves_counts_and_ends_when_it_is_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(egress.ALLOW, "llm.example.org, ,")
    port, metrics = free_port(), free_port()
    found: dict[str, bytes] = {}

    def visit() -> None:
        try:
            with connected(port) as client:
                client.sendall(b"CONNECT other.test:443 HTTP/1.1\r\n\r\n")
                found["answer"] = client.makefile("rb").read()
            with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=20) as page:
                found["metrics"] = page.read()
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    visitor = threading.Thread(target=visit)
    visitor.start()
    words = ["--allow", "api.example.org", "--port", str(port), "--metrics-port", str(metrics)]
    assert egress.main(words) == 0
    visitor.join()
    said = json.loads(capsys.readouterr().out)
    assert said == {
        "event": "listening",
        "hosts": ["api.example.org", "llm.example.org"],
        "metrics": metrics,
        "port": port,
    }
    assert found["answer"].startswith(b"HTTP/1.1 403 Forbidden")
    lines = found["metrics"].decode().splitlines()
    assert 'consilium_egress_requests_total{outcome="host"} 1.0' in lines
    assert 'consilium_egress_requests_total{outcome="allowed"} 0.0' in lines
    assert 'consilium_egress_bytes_total{direction="out"} 0.0' in lines


@pytest.mark.anyio
async def test_names_are_resolved_and_addresses_dialled_by_this_machine() -> None:
    assert set(await resolve("localhost")) <= {"127.0.0.1", "::1"}
    with socket.create_server(("127.0.0.1", 0)) as server:
        stream = await dial("127.0.0.1", server.getsockname()[1])
        await stream.aclose()


@pytest.mark.anyio
async def test_a_council_file_that_changes_changes_the_list_and_a_bad_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Lists(Proxy):
        def __init__(self) -> None:
            super().__init__((), Counts())
            self.given: list[frozenset[str]] = []

        def allow(self, hosts: Collection[str]) -> None:
            self.given.append(frozenset(hosts))

    monkeypatch.setattr(egress, "FOLLOW_SECONDS", 0.01)
    caplog.set_level("INFO")
    council = tmp_path / "council.yaml"
    council.write_text(COUNCIL)
    followed = egress.Followed(council, lambda: egress.allowed(council, [], ["llm.example.org"]))
    lists = Lists()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(egress._follow, lists, followed, followed.look())
        await anyio.sleep(0.05)
        assert lists.given == []
        council.write_text(COUNCIL.replace("preset: llm", "preset: claude"))
        await until(lambda: len(lists.given) == 1)
        council.write_text("topic: [")
        await until(lambda: caplog.text.count("cannot be read; the list stays") == 1)
        council.unlink()
        await until(lambda: caplog.text.count("cannot be read; the list stays") == 2)
        council.write_text(COUNCIL)
        await until(lambda: len(lists.given) == 2)
        tasks.cancel_scope.cancel()
    assert lists.given == [
        frozenset({"api.anthropic.com", "llm.example.org"}),
        frozenset({"llm.example.org"}),
    ]


async def until(done: Callable[[], bool]) -> None:
    with anyio.fail_after(20):
        while not done():  # noqa: ASYNC110 - what is waited for is the product's
            await anyio.sleep(0.01)
