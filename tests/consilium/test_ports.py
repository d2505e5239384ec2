"""`consilium.ports`: where the Arbiter listens, by the command line, the environment or the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from consilium.errors import UserError
from consilium.ports import Ports


def test_ports_are_those_of_the_specification(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "CONTROL_PORT", "DATA_PORT", "ADMIN_PORT"):
        monkeypatch.delenv(f"CONSILIUM_{name}", raising=False)
    ports = Ports()
    assert (ports.host, ports.control_port, ports.data_port, ports.admin_port) == (
        "127.0.0.1",
        9998,
        9999,
        9997,
    )


def test_the_environment_moves_them_and_an_argument_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_HOST", "arbiter")
    monkeypatch.setenv("CONSILIUM_CONTROL_PORT", "7000")
    monkeypatch.setenv("CONSILIUM_DATA_PORT", "7001")
    monkeypatch.setenv("CONSILIUM_ADMIN_PORT", "")
    ports = Ports(data_port=0)
    assert (ports.host, ports.control_port, ports.data_port, ports.admin_port) == ("arbiter", 7000, 0, 9997)


@pytest.mark.parametrize("value", ["x", "70000", "-1"])
def test_what_is_no_port_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("CONSILIUM_DATA_PORT", value)
    with pytest.raises(UserError) as caught:
        Ports()
    assert str(caught.value) == (
        f"data_port must be a port, 0 to 65535 (given: {value!r})\n"
        "  it comes from the command line or from CONSILIUM_DATA_PORT"
    )


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LISTEN", "HOST", "ADMIN_HOST", "CONTROL_PORT", "DATA_PORT", "ADMIN_PORT", "SOCKET_DIR"):
        monkeypatch.delenv(f"CONSILIUM_{name}", raising=False)


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    ("environment", "given", "sockets"),
    [
        ({}, {}, None),
        ({"SOCKET_DIR": "/e"}, {}, None),
        ({"LISTEN": "unix"}, {}, "/run/consilium"),
        ({"LISTEN": "unix", "SOCKET_DIR": "/e"}, {}, "/e"),
        ({}, {"listen": "unix"}, "/run/consilium"),
        ({}, {"socket_dir": "/c"}, "/c"),
        ({"LISTEN": "tcp", "HOST": "h"}, {"socket_dir": "/c", "host": None}, "/c"),
        ({"LISTEN": "unix", "SOCKET_DIR": "/e"}, {"host": "h"}, None),
        ({"LISTEN": "unix", "SOCKET_DIR": "/e"}, {"admin_port": 0}, None),
        ({"LISTEN": "unix", "SOCKET_DIR": "/e"}, {"listen": "tcp"}, None),
    ],
)
def test_a_place_on_the_command_line_says_which_transport(
    monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
    given: dict[str, Any],
    sockets: str | None,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(f"CONSILIUM_{name}", value)
    found = Ports.of(**given).sockets
    assert found == (None if sockets is None else Path(sockets))


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    "given",
    [
        {"socket_dir": "/c", "host": "h"},
        {"listen": "unix", "control_port": 0},
        {"listen": "tcp", "socket_dir": "/c"},
    ],
)
def test_a_place_of_either_kind_is_a_contradiction(given: dict[str, Any]) -> None:
    with pytest.raises(UserError, match="both were given") as refused:
        Ports.of(**given)
    assert refused.value.hint == "give --socket-dir, or --host and ports"


@pytest.mark.usefixtures("_bare")
def test_what_is_no_transport_is_told_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONSILIUM_LISTEN", "udp")
    with pytest.raises(UserError, match=r"listen must be tcp or unix \(given: 'udp'\)") as refused:
        Ports.of()
    assert "CONSILIUM_LISTEN" in refused.value.hint
