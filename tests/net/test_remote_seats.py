"""Seats on another machine: real processes, real TLS, and a cable between them that does what cables do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hall import Hall, Running, until
from lan import Lan, unavailable

from consilium.records import TurnOutcome

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from lan import Host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240)]

MEMORY_LOST = "PARTICIPANT_MEMORY_LOST"


@pytest.fixture(scope="module")
def _privilege() -> None:
    if why := unavailable():
        pytest.skip(why)


@pytest.fixture
def lan(_privilege: None) -> Iterator[Lan]:
    """A network of this test's own."""
    with Lan() as lan:
        yield lan


@pytest.fixture
def home(lan: Lan) -> Host:
    """The guest's machine."""
    return lan.host("guest", "10.77.0.2")


@pytest.fixture
def hall(lan: Lan, tmp_path: Path) -> Iterator[Hall]:
    with Hall(tmp_path, lan.host("hall", "10.77.0.1")) as hall:
        hall.open()
        hall.seat("ada")
        yield hall


def goes_on_by_the_operators_word_alone(hall: Hall, guest: Running, *, seated: int) -> None:
    """The guest has come back by itself; it takes its next turn once the operator resumes, and not before."""
    guest.says("seated", seated)
    spoken = len(guest.heard("spoke"))
    status = hall.pauses()
    assert hall.of(status, "guest")["connected"]
    assert hall.of(status, "guest")["state"] == "faulty"
    assert len(guest.heard("spoke")) == spoken
    hall.admin("resume")
    assert guest.says("recovered", seated - 1)["mode"] == "keep"
    guest.says("spoke", spoken + 1)
    assert MEMORY_LOST not in hall.events("guest")


def chat_of(hall: Hall) -> str:
    """The id of the guest's one chat, as its wrapper keeps it."""
    (kept,) = (hall.folder / "state" / "consilium").glob("*/guest/chat.json")
    return str(json.loads(kept.read_text())["id"])


def test_a_guest_takes_part_over_a_long_and_lossy_line(hall: Hall, home: Host) -> None:
    home.cable.delay, home.cable.loss = 0.08, 0.05
    guest = hall.join(host=home)
    guest.says("spoke", 4)
    assert not guest.heard("waiting")
    turns = hall.turns("guest")
    assert [turn.outcome for turn in turns[:3]] == [TurnOutcome.SPEECH] * 3


def test_a_cut_cable_pauses_and_the_guest_comes_back_by_itself_with_its_chat(hall: Hall, home: Host) -> None:
    guest = hall.join(host=home, client=hall.client(4))
    guest.says("spoke", 2)
    chat = chat_of(hall)
    lost = guest.says("speaking", 3)["turn_id"]
    home.cable.cut = True
    status = hall.pauses()
    seat = hall.of(status, "guest")
    assert (seat["connected"], seat["state"]) == (False, "faulty")
    assert seat["prompt_sent"] == "maybe"
    waiting = guest.says("waiting")
    assert "silent for 1.5 seconds" in waiting["reason"] or "read nothing" in waiting["reason"]
    gone = {"event": "failed", "turn_id": lost, "reason": "the connection is gone"}
    assert guest.heard("failed") == [gone]
    home.cable.cut = False
    goes_on_by_the_operators_word_alone(hall, guest, seated=2)
    assert chat_of(hall) == chat
    outcomes = {turn.turn_id: turn.outcome for turn in hall.turns("guest")}
    assert outcomes[lost] is TurnOutcome.LOST
    assert lost not in [said["turn_id"] for said in guest.heard("spoke")], "it is never answered late"


def test_a_guest_whose_address_changes_comes_back_from_the_new_one(hall: Hall, home: Host, lan: Lan) -> None:
    guest = hall.join(host=home)
    guest.says("spoke", 1)
    lan.move(home, "10.77.0.9")
    guest.says("waiting")
    goes_on_by_the_operators_word_alone(hall, guest, seated=2)


def test_an_arbiter_that_is_killed_and_started_again_finds_everybody_back(hall: Hall, home: Host) -> None:
    guest = hall.join(host=home)
    guest.says("spoke", 2)
    chat = chat_of(hall)
    hall.arbiter.kill()
    guest.says("waiting")
    hall.open()
    guest.says("seated", 2)
    until(lambda: hall.of(hall.pauses(), "ada")["connected"], lambda: "ada has not come back")
    goes_on_by_the_operators_word_alone(hall, guest, seated=2)
    assert chat_of(hall) == chat


def test_a_guest_that_leaves_comes_back_to_its_place_by_the_same_command(hall: Hall, home: Host) -> None:
    guest = hall.join(host=home)
    guest.says("spoke", 1)
    guest.process.terminate()
    assert guest.ends() == 0
    again = hall.join(host=home)
    again.says("seated", 2)  # it writes on in the same file
    hall.pauses()
    hall.admin("resume")
    again.says("spoke", 2)
    assert MEMORY_LOST not in hall.events("guest")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("--control-port=9990", "connection refused"),
        ("--server-name=arbiter.example", "It has: localhost, 10.77.0.1"),
    ],
)
def test_a_check_says_what_is_wrong_and_takes_no_seat(
    hall: Hall, home: Host, setting: str, words: str
) -> None:
    check = hall.join("--check", host=home, client=hall.quick)
    assert check.ends() == 0
    assert all(found["ok"] for found in check.heard("found"))
    wrong = hall.join("--check", setting, host=home, client=hall.quick)
    assert wrong.ends() == 1
    last = wrong.heard("found")[-1]
    assert not last["ok"]
    assert words in last["sentence"] + last["hint"]
    assert "PARTICIPANT_JOINED" not in hall.events("guest")


def test_a_host_that_cannot_be_reached_is_said_with_what_to_do(hall: Hall, home: Host) -> None:
    home.ip("link", "set", home.device, "down")
    guest = hall.join("--connect-timeout", "1", host=home, client=hall.quick)
    assert guest.ends() == 4
    assert "network is unreachable" in guest.heard("ended")[0]["reason"]
    assert "is it on the right network, or VPN?" in guest.heard("ended")[0]["reason"]
