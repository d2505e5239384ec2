"""`wrapper.isolation.trial`: the probe is run, and a seat starts or does not."""

from __future__ import annotations

import json
import logging
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from consilium.errors import AdapterFault, UserError
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.isolation import trial
from wrapper.isolation.attempts import ATTEMPTS, Outcome
from wrapper.isolation.confinement import PLAIN, Confinement, OtherUser
from wrapper.isolation.launch import User
from wrapper.isolation.trial import settled, tried

if TYPE_CHECKING:
    from collections.abc import Callable

    Answer = Callable[[dict[str, Any]], bytes]

pytestmark = pytest.mark.anyio

CLIENT = OtherUser(user=User(4242, 4242), home=Path("/srv/client"))
STRICT = Confinement(isolation="strict", client=CLIENT)
RELAXED = Confinement(isolation="relaxed", client=CLIENT, missing=("the moon",))

GOOD = {row.name: ["allowed" if row.allowed else "denied", ""] for row in ATTEMPTS}


class Probed:
    """Stands in for the run of the probe; ``results`` is what it says."""

    def __init__(self) -> None:
        self.results: Any = dict(GOOD)
        self.output: bytes | None = None
        self.fault: AdapterFault | None = None
        self.command: sandbox.Command | None = None
        self.reached: list[bool] = []

    def __call__(self, command: sandbox.Command, _bounds: sandbox.Bounds) -> sandbox.Completed:
        self.command = command
        if self.fault:
            raise self.fault
        told = self.targets
        for name in ("loopback", "loopback_by_port"):
            with socket.create_connection(tuple(told[name]), 5):
                self.reached.append(True)
        for path in ("\0" + told["abstract_socket"], told["path_socket"]):
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(path)
                self.reached.append(True)
        output = json.dumps(self.results).encode() if self.output is None else self.output
        return sandbox.Completed(0, output, b"it broke", None, (), 0.1)

    @property
    def targets(self) -> dict[str, Any]:
        assert self.command is not None
        told: dict[str, Any] = json.loads(self.command.stdin)
        return told


@pytest.fixture
def probed(monkeypatch: pytest.MonkeyPatch) -> Probed:
    probed = Probed()
    monkeypatch.setattr(sandbox, "run_blocking", probed)
    return probed


async def test_a_strict_seat_that_holds_starts_without_a_word(
    probed: Probed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await settled(STRICT, certs=tmp_path, state=tmp_path)
    assert caplog.messages == []
    assert probed.command is not None
    assert probed.command.confinement is STRICT
    assert probed.targets["key"] == str(tmp_path / "key.pem")
    assert probed.targets["wrapper"] == os.getpid()
    assert probed.reached == [True] * 4  # its targets are real: what is refused was refused by a layer
    assert not await anyio.Path(probed.targets["path_socket"]).exists()


async def test_a_strict_seat_with_a_hole_does_not_start_and_names_the_layer(
    probed: Probed, tmp_path: Path
) -> None:
    probed.results |= {"udp": ["allowed", ""], "key": ["allowed", ""]}
    with pytest.raises(UserError, match="isolation: strict, and") as refused:
        await settled(STRICT, certs=tmp_path, state=tmp_path)
    assert "the client's own user does not hold: the client could read the seat's private key" in str(
        refused.value
    )
    assert "the packet fence (nftables) does not hold: the client could send a UDP packet" in str(
        refused.value
    )


async def test_a_relaxed_seat_starts_and_says_all_that_it_goes_without(
    probed: Probed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    probed.results["udp"] = ["allowed", ""]
    with caplog.at_level(logging.WARNING):
        await settled(RELAXED, certs=tmp_path, state=tmp_path)
        await settled(Confinement(missing=("a user",)), certs=tmp_path, state=tmp_path)
        probed.results = dict(GOOD)
        await settled(Confinement(client=CLIENT), certs=tmp_path, state=tmp_path)
    first, second, third = caplog.messages
    assert first.startswith("isolation: relaxed: the moon; the packet fence (nftables) does not hold")
    assert second == "isolation: relaxed: a user"
    assert third == "isolation: relaxed: every layer holds all the same"


async def test_a_probe_that_does_not_finish_is_no_proof(probed: Probed, tmp_path: Path) -> None:
    probed.output = b'{"key": ["denied"'
    with pytest.raises(UserError, match="not tried to the end: it broke"):
        await settled(STRICT, certs=tmp_path, state=tmp_path)
    probed.fault = AdapterFault(Fault.START_FAILED, PromptSent.NO, "no setpriv")
    with pytest.raises(UserError, match="cannot be tried: no setpriv"):
        await settled(STRICT, certs=tmp_path, state=tmp_path)


def test_without_another_user_there_is_nothing_to_try() -> None:
    with pytest.raises(UserError, match="no user of its own here"):
        tried(PLAIN, {})


def test_targets_of_the_caller_win_and_a_guest_is_no_end_of_others(probed: Probed) -> None:
    verdicts = tried(STRICT, {"home": "/elsewhere"}, wrapper=77, alone=False)
    assert {verdict.outcome for verdict in verdicts} == {Outcome.ALLOWED, Outcome.DENIED}
    assert (probed.targets["home"], probed.targets["wrapper"]) == ("/elsewhere", 77)
    assert probed.command is not None
    assert not probed.command.alone


def test_what_is_mounted_here_and_is_not_the_clients_is_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [
        "1 0 0:1 / / rw - overlay overlay rw",
        "2 1 0:2 / /proc rw - proc proc rw",
        "3 1 0:3 / /proc/kcore rw - tmpfs tmpfs rw",
        "4 1 0:4 / /tmp rw shared:1 - tmpfs tmpfs rw",
        "5 1 0:5 / /srv/client rw - ext4 /dev/vda rw",
        "6 1 0:6 / /srv/other rw - ext4 /dev/vda rw",
        "7 1 0:7 / /certs ro - ext4 /dev/vda rw",
        "8 1 0:8 / /sbin/docker-init ro - ext4 /dev/vda rw",
        "9 1 0:9 /ca.pem /etc/ssl/certs/own.pem ro - ext4 /dev/vda rw",
        "10 1 0:10 /key /etc/ssl/private/key.pem ro - ext4 /dev/vda rw",
        "11 1 0:11 /key /run/secrets/KEY ro - ext4 /dev/vda rw",
    ]
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "\n".join(lines))
    assert trial._other_mounts("/srv/client") == [
        "/srv/other",
        "/certs",
        "/etc/ssl/private/key.pem",
        "/run/secrets/KEY",
    ]


def test_without_a_place_for_a_socket_the_way_out_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: object, _address: object) -> None:
        raise PermissionError(13, "Permission denied")

    class Refusing(socket.socket):
        bind = refuse

    monkeypatch.setattr(socket, "socket", Refusing)
    with pytest.raises(UserError, match="/tmp cannot be written") as refused, trial._path_socket():
        pass
    assert "tmpfs" in refused.value.hint
