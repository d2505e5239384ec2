"""The data token at a running Arbiter: once, in time, for its certificate and session; nowhere to be read.

`WORTHLESS` lists by kind what makes a token worth nothing. That time is taken from a clock that nobody sets
is tested with a clock that a test moves, in ``tests/arbiter/test_reception_tokens.py``.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from standing import PATIENCE, Peer, Standing, standing

REFUSED = {"code": "TOKEN_REFUSED", "message": "this data token is not valid here"}
RACERS = 100

Token = dict[str, Any]


@pytest.fixture(scope="module")
def arbiter() -> Iterator[Standing]:
    with standing() as made:
        yield made


class Registered:
    """A seat without a data connection, and the token that it was given."""

    def __init__(self, arbiter: Standing, name: str = "ada", credentials: Any = None) -> None:
        self.arbiter = arbiter
        self.credentials = credentials
        self.control = arbiter.peer("control", credentials)
        granted = self.control.ask("REG", name=name)
        assert granted["type"] == "REG_OK", granted
        self.token: Token = {key: granted[key] for key in ("session_id", "data_token")}

    def present(self, credentials: Any = None, **other: str) -> Token:
        """The reply to this token, or to one that is partly another."""
        with self.arbiter.peer("data", credentials or self.credentials) as data:
            told = data.ask("DATA_HELLO", **self.token | other)
            return {key: told[key] for key in ("code", "message")} if told["type"] == "ERROR" else {}

    def leave(self) -> None:
        self.control.say("UNREG")
        self.control.rest()
        self.control.tls.close()

    def vanish(self) -> None:
        self.control.tls.close()


def eventually(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_of_a_hundred_at_once_one_is_taken(arbiter: Standing) -> None:
    ada = Registered(arbiter)
    with ExitStack() as stack, ThreadPoolExecutor(25) as pool:
        peers = list(pool.map(lambda _: stack.enter_context(arbiter.peer("data")), range(RACERS)))
        told = list(pool.map(lambda peer: peer.ask("DATA_HELLO", **ada.token), peers))
    assert sorted(reply["type"] for reply in told) == ["DATA_OK"] + ["ERROR"] * (RACERS - 1)
    assert {reply["code"] for reply in told if reply["type"] == "ERROR"} == {"TOKEN_REFUSED"}
    assert "TOKEN_REFUSED" in arbiter.log(), "a replay is in the log"
    ada.vanish()
    arbiter.serves()


def test_another_certificate_neither_uses_nor_consumes_it(arbiter: Standing) -> None:
    ada, thief = Registered(arbiter), arbiter.pki.issue("thief")
    for _ in range(3):
        assert ada.present(thief) == REFUSED
    assert ada.present() == {}
    ada.vanish()
    arbiter.serves()


def test_an_operator_has_no_use_for_it(arbiter: Standing) -> None:
    ada = Registered(arbiter)
    with arbiter.peer("data", arbiter.operator) as data:
        error, end = data.rest()
    assert isinstance(error, dict)
    assert (error["code"], end) == ("POLICY_DENIED", "closed")
    assert ada.present() == {}
    ada.vanish()
    arbiter.serves()


def unregistered(arbiter: Standing) -> Token:
    ada = Registered(arbiter)
    ada.leave()
    return ada.token


def lost(arbiter: Standing) -> Token:
    ada = Registered(arbiter)
    ada.vanish()
    return ada.token


def used(arbiter: Standing) -> Token:
    ada = Registered(arbiter)
    assert ada.present() == {}
    ada.vanish()
    return ada.token


def replaced(arbiter: Standing) -> Token:
    """The seat came again, and has another token now."""
    ada = Registered(arbiter)
    ada.vanish()

    def comes_again() -> bool:
        with arbiter.peer("control") as peer:
            return bool(peer.ask("REG", name="ada")["type"] == "REG_OK")

    eventually(comes_again)
    return ada.token


def restarted(arbiter: Standing) -> Token:
    """The Arbiter was killed, and goes on in the same transcript, on the same ports."""
    ada = Registered(arbiter)
    arbiter.kill()
    arbiter.start()
    ada.vanish()
    return ada.token


def half(arbiter: Standing) -> Token:
    ada = Registered(arbiter)
    ada.vanish()
    return ada.token | {"data_token": ada.token["data_token"][:20]}


WORTHLESS: dict[str, Callable[[Standing], Token]] = {
    "used": used,
    "of a seat that left": unregistered,
    "of a seat that was lost": lost,
    "of a seat that came again": replaced,
    "of an Arbiter that was restarted": restarted,
    "half of one": half,
    "of nobody": lambda _: {"session_id": "0" * 32, "data_token": "x" * 43},
    "empty": lambda _: {"session_id": "", "data_token": ""},
}


@pytest.mark.parametrize("worthless", WORTHLESS.values(), ids=WORTHLESS)
def test_a_token_that_is_worth_nothing(arbiter: Standing, worthless: Callable[[Standing], Token]) -> None:
    token = worthless(arbiter)

    def refused() -> bool:
        with arbiter.peer("data") as data:
            told = data.ask("DATA_HELLO", **token)
            assert told["type"] == "ERROR", told
            return {key: told[key] for key in REFUSED} == REFUSED

    assert refused()
    arbiter.serves()


def test_a_token_of_a_certificate_that_was_revoked(arbiter: Standing) -> None:
    gone = arbiter.pki.issue("gone")
    ada = Registered(arbiter, credentials=gone)
    arbiter.pki.revoke(gone)
    arbiter.pki.publish()
    assert [said["code"] for said in ada.control.rest() if isinstance(said, dict)] == ["POLICY_DENIED"]
    with arbiter.peer("data", gone) as data:
        assert data.rest() == ["SSLV3_ALERT_CERTIFICATE_REVOKED"]
    with arbiter.peer("data") as data:
        assert data.ask("DATA_HELLO", **ada.token)["code"] == "TOKEN_REFUSED"
    ada.vanish()
    arbiter.serves()


def test_every_refusal_reads_the_same_and_takes_as_long(arbiter: Standing) -> None:
    ada, bob = Registered(arbiter, "ada"), Registered(arbiter, "bob")
    ways: dict[str, Token] = {
        "unknown": {"data_token": "x" * 43},
        "another session": {"session_id": bob.token["session_id"]},
        "no session": {"session_id": "0" * 32},
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(15):
        for way, other in ways.items():
            with arbiter.peer("data") as data:
                began = time.perf_counter()
                told = data.ask("DATA_HELLO", **ada.token | other)
                taken[way].append(time.perf_counter() - began)
                assert {key: told[key] for key in REFUSED} == REFUSED
    medians = [statistics.median(times) for times in taken.values()]
    assert max(medians) - min(medians) < 0.05
    assert ada.present() == {}
    assert bob.present() == {}
    ada.vanish()
    bob.vanish()


def test_it_is_written_down_nowhere(arbiter: Standing) -> None:
    ada = Registered(arbiter)
    token = ada.token["data_token"]
    thief = arbiter.pki.issue("thief2")
    ada.present(thief)
    with arbiter.peer("data") as data:
        data.say_bytes(
            b'{"protocol_version":4,"msg_id":"m","type":"DATA_HELLO","data_token":"%b"\n' % token.encode()
        )
        data.rest()
    with Peer(arbiter.ports["control"], arbiter.context(arbiter.seat)) as peer:
        peer.say("REG", name=token[:20].lower(), data_token=token)
        peer.hear()
    assert ada.present() == {}
    places = [path for path in arbiter.folder.iterdir() if path.is_file()]
    assert {"log", "debate.jsonl"} <= {path.name for path in places}
    process = Path(f"/proc/{arbiter.process.pid}")
    places += [process / "environ", process / "cmdline"]
    assert not [path.name for path in places if token.encode() in path.read_bytes()]
    ada.vanish()
    arbiter.serves()
