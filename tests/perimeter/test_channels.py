"""What may be said on control, data and admin, and when: tables of what is said and what is answered.

To add a line is to add a test. ``ends``: the refusal is also the end of the connection. After each row a seat
that was there before is still there, and somebody good is served by the same process.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple, Self

import pytest
from standing import Peer, Standing, line, standing

from consilium.framing import MAX_LINE_BYTES

PROFILES = """\
participant: {role: participant, names: ["*"], may_ask_status: true, messages_per_second: 50, burst: 100}
guest: {role: participant, names: [guest_*], messages_per_second: 50, burst: 100}
operator: {role: operator, may_ask_status: true}
"""

ENDS, STAYS = True, False


@pytest.fixture(scope="module")
def arbiter() -> Iterator[Standing]:
    with standing(profiles=PROFILES) as made:
        yield made


@pytest.fixture(scope="module")
def witness(arbiter: Standing) -> Iterator[Peer]:
    """Somebody with the same certificate who has a seat through all of it."""
    with Seated(arbiter, "witness") as seated:
        yield seated.control


class Seated:
    """A seat with both of its connections."""

    def __init__(self, arbiter: Standing, name: str, *, bind: bool = True) -> None:
        self.stack = ExitStack()
        self.control = self.stack.enter_context(arbiter.peer("control"))
        granted = self.control.ask("REG", name=name)
        assert granted["type"] == "REG_OK", granted
        self.token = {key: granted[key] for key in ("session_id", "data_token")}
        self.granted = granted
        if bind:
            self.data = self.stack.enter_context(arbiter.peer("data"))
            assert self.data.ask("DATA_HELLO", **self.token)["type"] == "DATA_OK"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stack.close()


class Row(NamedTuple):
    """What is said where, and what is answered."""

    door: str
    said: bytes
    code: str
    ends: bool


def reg(name: Any = "x", **fields: Any) -> bytes:
    return line("REG", name=name, **fields)


BAD_NAMES: dict[str, Any] = {
    "a path": "../x",
    "a long path": "/" * 64,
    "300 characters": "a" * 300,
    "65 characters": "a" * 65,
    "none": "",
    "capitals": "ADA",
    "a space": "a b",
    "a hyphen": "a-b",
    "a line end": "ada\n",
    "a NUL": "ada\0",
    "an escape": "\x1b[2Jada",
    "a letter that looks like one": "\u0430da",
    "a mark for direction": "ada\u202e",
    "a wide letter": "\uff41da",
    "a tag": "ada\U000e0041",
    "half a surrogate": "ada\ud800",
    "a number": 7,
    "null": None,
    "a list": ["ada"],
    "an object": {"name": "ada"},
    "true": True,
}

VERBS: dict[str, dict[str, Any]] = {
    "KICK": {"seat": "witness"},
    "FORCE_TURN_END": {},
    "SET_TOPIC": {"topic": "x"},
    "SET_PHASE": {"phase": "CLOSING"},
    "INJECT": {"text": "x"},
    "PAUSE": {},
    "RESUME": {},
    "NEXT": {"seat": "witness"},
    "TERMINATE": {},
    "RELOAD": {},
    "WATCH": {},
}

FIRST: dict[str, Row] = {
    **{f"a name of {kind}": Row("control", reg(name), "MALFORMED", ENDS) for kind, name in BAD_NAMES.items()},
    "STATE_UPDATE before REG": Row("control", line("STATE_UPDATE", required=False), "NOT_REGISTERED", ENDS),
    "UNREG before REG": Row("control", line("UNREG"), "NOT_REGISTERED", ENDS),
    "ACK before REG": Row("control", line("ACK", turn_id=1), "NOT_REGISTERED", ENDS),
    "TURN_END before REG": Row("control", line("TURN_END", turn_id=1), "NOT_REGISTERED", ENDS),
    "STATUS before REG": Row("control", line("STATUS"), "NOT_REGISTERED", ENDS),
    "SPEECH before DATA_HELLO": Row("data", line("SPEECH", turn_id=1, text="x"), "NOT_REGISTERED", ENDS),
    "SYSTEM_EVENT before DATA_HELLO": Row(
        "data", line("SYSTEM_EVENT", event="HUMAN_SKIP"), "NOT_REGISTERED", ENDS
    ),
    "SPEECH on control": Row("control", line("SPEECH", turn_id=1, text="x"), "POLICY_DENIED", ENDS),
    "REG on data": Row("data", reg(), "POLICY_DENIED", ENDS),
    "REG on admin": Row("admin", reg(), "POLICY_DENIED", ENDS),
    "DATA_HELLO on control": Row(
        "control", line("DATA_HELLO", session_id="x", data_token="x"), "POLICY_DENIED", ENDS
    ),
    "DATA_HELLO on admin": Row(
        "admin", line("DATA_HELLO", session_id="x", data_token="x"), "POLICY_DENIED", STAYS
    ),
    "a token that is none": Row(
        "data", line("DATA_HELLO", session_id="x", data_token="x"), "TOKEN_REFUSED", ENDS
    ),
    **{
        f"{verb} on {door}": Row(door, line(verb, **fields), "POLICY_DENIED", ENDS)
        for verb, fields in VERBS.items()
        for door in ("control", "data")
    },
    "a reply on control": Row("control", line("REG_OK"), "POLICY_DENIED", ENDS),
    "another version": Row(
        "control", line("REG", name="x", protocol_version=3), "PROTOCOL_VERSION_UNSUPPORTED", ENDS
    ),
    "a line over the limit": Row("control", b"x" * (MAX_LINE_BYTES + 1), "TOO_LARGE", ENDS),
}

SPOKEN_BY_A_SEAT: dict[str, Row] = {
    "a second REG": Row("control", reg("second"), "INVALID_STATE", STAYS),
    "a second DATA_HELLO": Row(
        "data", line("DATA_HELLO", session_id="x", data_token="x"), "INVALID_STATE", STAYS
    ),
    "UNREG of another": Row("control", line("UNREG", name="witness"), "NOT_OWNER", STAYS),
    "STATE_UPDATE of another": Row(
        "control", line("STATE_UPDATE", name="witness", required=False), "NOT_OWNER", STAYS
    ),
    "SPEECH out of turn": Row("data", line("SPEECH", turn_id=1, text="x"), "TURN_MISMATCH", STAYS),
    "SPEECH of a turn that never is": Row(
        "data", line("SPEECH", turn_id=2**53, text="x"), "TURN_MISMATCH", STAYS
    ),
    "TURN_END out of turn": Row("control", line("TURN_END", turn_id=1), "TURN_MISMATCH", STAYS),
    "an event of another": Row(
        "data",
        line("SYSTEM_EVENT", event="HUMAN_SKIP", participant_id="witness_AB12CD34"),
        "NOT_OWNER",
        STAYS,
    ),
    **{
        f"{verb} on control": Row("control", line(verb, **fields), "POLICY_DENIED", ENDS)
        for verb, fields in VERBS.items()
    },
    **{
        f"{verb} on data": Row("data", line(verb, **fields), "POLICY_DENIED", ENDS)
        for verb, fields in VERBS.items()
    },
    "no JSON": Row("control", b"\x00\xff\n", "MALFORMED", ENDS),
    "an empty line": Row("data", b"\n", "MALFORMED", ENDS),
    "two documents": Row("data", b"{}{}\n", "MALFORMED", ENDS),
    "a list": Row("control", b"[]\n", "MALFORMED", ENDS),
    "not a number": Row("control", line("ACK", turn_id=float("nan")), "MALFORMED", ENDS),
    "a number of 5,000 digits": Row(
        "control", line("ACK").replace(b'"ACK"', b'"ACK","turn_id":' + b"9" * 5000), "MALFORMED", ENDS
    ),
    "a key twice": Row(
        "control", line("ACK", turn_id=1).replace(b'"type"', b'"turn_id":2,"type"'), "MALFORMED", ENDS
    ),
    "depth of 2,000": Row("control", b"[" * 2000 + b"\n", "MALFORMED", ENDS),
    "an object of 10,000 keys": Row(
        "control", line("REG", name="x", meta={f"k{n}": n for n in range(10_000)}), "MALFORMED", ENDS
    ),
    "a line over the limit": Row("data", b"x" * (MAX_LINE_BYTES + 1), "TOO_LARGE", ENDS),
    "a text over the limit": Row(
        "data", line("SPEECH", turn_id=1, text="\U0001f3db" * 16_385), "TOO_LARGE", ENDS
    ),
}


def is_answered(peer: Peer, row: Row) -> None:
    """The refusal comes, once; and after it the end, or not."""
    peer.say_bytes(row.said)
    told = peer.hear()
    assert told is not None, "closed without a word"
    assert (told["type"], told.get("code")) == ("ERROR", row.code), told
    if row.ends:
        assert [said for said in peer.rest() if said != "reset"] in ([], ["closed"])


def still_here(arbiter: Standing, witness: Peer) -> None:
    assert witness.ask("STATUS")["type"] == "STATUS"
    arbiter.serves()


@pytest.mark.parametrize("row", FIRST.values(), ids=FIRST)
def test_a_first_word(arbiter: Standing, witness: Peer, row: Row) -> None:
    record = arbiter.record()
    with arbiter.peer(row.door) as peer:
        is_answered(peer, row)
    assert "PARTICIPANT_JOINED" not in arbiter.record()[len(record) :]
    still_here(arbiter, witness)


@pytest.mark.parametrize("row", SPOKEN_BY_A_SEAT.values(), ids=SPOKEN_BY_A_SEAT)
def test_a_word_of_a_seat(arbiter: Standing, witness: Peer, row: Row) -> None:
    with Seated(arbiter, "speaker") as seat:
        is_answered(seat.control if row.door == "control" else seat.data, row)
        if row.ends is STAYS:
            assert seat.control.ask("STATUS")["type"] == "STATUS"
    assert '"SPEECH"' not in arbiter.record()
    still_here(arbiter, witness)


@pytest.mark.parametrize(
    ("door", "profile"), [("admin", "participant"), ("control", "operator"), ("data", "operator")]
)
def test_a_certificate_of_the_other_role_is_refused_before_it_speaks(
    arbiter: Standing, witness: Peer, door: str, profile: str
) -> None:
    own = arbiter.seat if profile == "participant" else arbiter.operator
    with arbiter.peer(door, own) as peer:
        error, end = peer.rest()
    assert isinstance(error, dict)
    assert (error["code"], end) == ("POLICY_DENIED", "closed")
    still_here(arbiter, witness)


@pytest.mark.parametrize(
    ("name", "code"), [("guest_1", None), ("ada", "POLICY_DENIED"), ("guest", "POLICY_DENIED")]
)
def test_a_name_is_the_profiles_to_give(
    arbiter: Standing, witness: Peer, name: str, code: str | None
) -> None:
    own = arbiter.pki.issue(f"visitor-{name}", "guest")
    with arbiter.peer("control", own) as peer:
        told = peer.ask("REG", name=name)
        assert told.get("code") == code, told
        if code is None:
            assert peer.ask("STATUS")["code"] == "POLICY_DENIED", "nor may this profile ask for STATUS"
    still_here(arbiter, witness)


def test_the_first_of_a_name_keeps_its_seat(arbiter: Standing, witness: Peer) -> None:
    with arbiter.peer("control") as second:
        is_answered(second, Row("control", reg("witness"), "DUPLICATE_DISPLAY_NAME", ENDS))
    still_here(arbiter, witness)


def test_a_wish_above_the_ceiling_is_cut_and_the_reply_says_so(arbiter: Standing, witness: Peer) -> None:
    with arbiter.peer("control") as peer:
        granted = peer.ask("REG", name="greedy", required=True, disconnect_policy="keep_alive")
        assert (granted["required"], granted["disconnect_policy"]) == (False, "drop")
        told = peer.ask("STATE_UPDATE", required=True, disconnect_policy="keep_alive")
        assert (told["type"], told["required"], told["capped_by_profile"]) == ("STATE_OK", False, True)
    still_here(arbiter, witness)


@pytest.mark.parametrize("door", ["control", "admin"])
def test_a_flood_is_limited_then_cut(arbiter: Standing, witness: Peer, door: str) -> None:
    with arbiter.peer(door) as peer:
        if door == "control":
            peer.ask("REG", name="flood")
        flood = b"".join(line("PING", ts=number) for number in range(500))
        peer.say_bytes(flood)
        heard = [said for said in peer.rest() if isinstance(said, dict) and said["type"] == "ERROR"]
    assert [said["code"] for said in heard] in (["RATE_LIMITED"], [])
    still_here(arbiter, witness)


def test_what_was_refused_is_told_in_the_log_without_what_was_said(arbiter: Standing, witness: Peer) -> None:
    with arbiter.peer("control") as peer:
        is_answered(peer, Row("control", reg("\x1b]0;owned\x07"), "MALFORMED", ENDS))
    log = arbiter.log()
    assert "owned" not in log
    assert "\x1b" not in log
    assert json.dumps("\u202e") not in log
    still_here(arbiter, witness)
