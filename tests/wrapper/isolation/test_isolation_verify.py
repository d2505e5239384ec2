"""`consilium verify-isolation`: where it runs, what it tries it on, and what it tells."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from consilium.errors import UserError
from wrapper.isolation import verify
from wrapper.isolation.attempts import ATTEMPTS, Outcome, judge
from wrapper.isolation.verify import main

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME = ["--client-user", "4242:4242", "--client-home", "/srv/client"]

GOOD = {row.name: (Outcome.ALLOWED if row.allowed else Outcome.DENIED, "so") for row in ATTEMPTS}


class Tried:
    """Stands in for the trial."""

    def __init__(self) -> None:
        self.results = dict(GOOD)
        self.refusals = 0
        self.targets: dict[str, Any] = {}
        self.wrapper: int | None = None

    def __call__(self, _confined: object, targets: Any, *, wrapper: int | None, alone: bool) -> Any:
        assert not alone
        if self.refusals:
            self.refusals -= 1
            raise UserError("the isolation was not tried to the end")
        self.targets, self.wrapper = dict(targets), wrapper
        return judge(self.results, scopes=True)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Tried:
    tried = Tried()
    monkeypatch.setattr(verify, "tried", tried)
    monkeypatch.setattr(verify, "_live_seat", lambda: None)
    for name in ("CONSILIUM_CLIENT_USER", "CONSILIUM_REACH", "HTTPS_PROXY", "CONSILIUM_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONSILIUM_CONTROL_PORT", "1")  # nobody listens there
    return tried


@pytest.fixture
def became(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What this process would have become."""
    seen: list[list[str]] = []

    def execv(_path: str, argv: list[str]) -> None:
        seen.append(argv)
        raise SystemExit(99)

    monkeypatch.setattr(os, "execv", execv)
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    return seen


def test_all_as_it_shall_be_is_a_table_and_exit_code_0(
    tried: Tried, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(HOME) == 0
    told = capsys.readouterr().out
    assert "no seat runs here" in told
    assert "  read the seat's private key " in told
    assert told.endswith(f"{len(ATTEMPTS)} as they shall be, 0 not (!), 0 not tried (-)\n")


def test_one_surprise_is_marked_and_exit_code_1(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    tried.results["key"] = Outcome.ALLOWED, "oh"
    del tried.results["dns"]
    assert main(HOME) == 1
    told = capsys.readouterr().out
    (surprise,) = [line for line in told.splitlines() if line.startswith("! ")]
    assert surprise.split("private key")[1].strip() == "allowed, shall be denied (oh)"
    assert [line.split()[1] for line in told.splitlines() if line.startswith("- ")] == ["ask"]
    assert f"{len(ATTEMPTS) - 2} as they shall be, 1 not (!), 1 not tried (-)" in told


def test_programs_get_one_json_object(tried: Tried, capsys: pytest.CaptureFixture[str]) -> None:
    tried.results["key"] = Outcome.ALLOWED, "oh"
    assert main([*HOME, "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert (told["ok"], told["seat"]) == (False, None)
    assert len(told["attempts"]) == len(ATTEMPTS)
    assert told["attempts"][0] == {
        "attempt": "key",
        "what": "read the seat's private key",
        "layer": "the client's own user",
        "outcome": "allowed",
        "expected": "denied",
        "surprise": True,
        "detail": "oh",
    }


def test_a_probe_that_a_turns_end_took_along_begins_again(tried: Tried) -> None:
    tried.refusals = 2
    assert main(HOME) == 0
    tried.refusals = 3
    with pytest.raises(UserError, match="not tried to the end"):
        main(HOME)


def test_targets_come_from_the_environment_and_the_options(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONSILIUM_REACH", "127.0.0.3:8888,127.0.0.4:8888")
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.4:8888")
    options = ["--certs", "/c", "--state", "/s", "--direct", "192.0.2.7", "--egress-host", "api.example"]
    assert main([*HOME, *options]) == 0
    resolver = tried.targets.pop("resolver", None)
    assert resolver is None or resolver.count(".") == 3
    assert tried.targets == {
        "key": "/c/key.pem",
        "state": "/s",
        "direct": ("192.0.2.7", 443),
        "direct_by_port": ("192.0.2.7", 8888),
        "reach": ("127.0.0.3", 8888),
        "proxy": ("127.0.0.4", 8888),
        "host": "api.example",
    }


def test_an_arbiter_that_is_reached_is_tried_at_every_door(
    tried: Tried, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setenv("CONSILIUM_CONTROL_PORT", str(port))
        assert main(HOME) == 0
    assert tried.targets["control"] == ("127.0.0.1", port)
    assert tried.targets["data"] == ("127.0.0.1", 9999)
    assert tried.targets["admin"] == ("127.0.0.1", 9997)
    assert tried.targets["arbiter_by_port"] == ("127.0.0.1", 8888)


def test_places_that_are_none_are_refused(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_REACH", "egress")
    with pytest.raises(UserError, match="CONSILIUM_REACH: 'egress' is not a host and a port"):
        main(HOME)


# --- where it runs ------------------------------------------------------------------------------------------


def test_for_a_seat_of_a_composition_it_becomes_docker(became: list[list[str]]) -> None:
    with pytest.raises(SystemExit):
        main(["sceptic", "--json", "--egress-host", "sceptic"])
    assert became == [
        [
            *("/usr/bin/docker", "compose", "exec", "-T", "sceptic"),
            *("consilium", "verify-isolation", "--json", "--egress-host=sceptic", "--direct=203.0.113.1"),
        ]
    ]


def test_without_docker_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(UserError, match="docker is not installed"):
        main(["sceptic"])


def test_root_in_a_seats_container_first_becomes_the_wrapper(
    became: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("CONSILIUM_CLIENT_USER", "10002:10002")
    with pytest.raises(SystemExit):
        main(["--json"])
    ((setpriv, *argv),) = became
    assert setpriv == "/usr/bin/setpriv"
    assert argv[:4] == ["--reuid", "10001", "--regid", "10001"]
    assert argv[-5:] == ["-P", "-m", "consilium", "verify-isolation", "--json"]


def test_root_without_setpriv_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("CONSILIUM_CLIENT_USER", "10002:10002")
    monkeypatch.setattr(shutil, "which", lambda _name: None)
    with pytest.raises(UserError, match="util-linux"):
        main([])


@pytest.fixture
def seat() -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a live seat."""
    words = ["consilium", "seat", "--name", "a", "--certs", "/c", "--state", "/s", "--host", "arbiter"]
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *words]) as process:
        yield process
        process.kill()


def test_a_live_seat_is_found_with_what_its_command_line_says(seat: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 20
    while b"seat" not in Path(f"/proc/{seat.pid}/cmdline").read_bytes():
        assert time.monotonic() < until
        time.sleep(0.02)
    found = verify._live_seat()
    assert found is not None
    if found.pid == seat.pid:  # there may be a real one on this machine
        assert (found.options.certs, found.options.state, found.options.host) == ("/c", "/s", "arbiter")


def test_a_live_seats_words_are_its_targets(tried: Tried, monkeypatch: pytest.MonkeyPatch) -> None:
    options = verify._seat_options(["--certs", "/c", "--state", "/s", "--control-port", "1", "--lifeline"])
    monkeypatch.setattr(verify, "_live_seat", lambda: verify.LiveSeat(77, options))
    assert main(HOME) == 0
    assert (tried.targets["key"], tried.targets["state"], tried.wrapper) == ("/c/key.pem", "/s", 77)
