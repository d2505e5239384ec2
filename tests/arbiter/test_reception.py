"""Whoever comes to the three doors: what is refused, how, and that nobody else notices.

What can go wrong stands in tables, a line each. Every hostile act is followed by the same two questions: is
everybody forgotten who is gone, and is a good guest still served?
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from certificates import CLIENT_AUTH, DAY, issue_odd, uris
from house import Guest
from houses import left, open_house, profile, refusals, transport  # noqa: F401 - transport: a fixture
from rights import ANY_NAME

from arbiter import reception as reception_module
from arbiter.debate.effects import Channel as Kind
from arbiter.edge.limits import Doors
from consilium import messages as m
from consilium.errors import ChannelError, ErrorCode
from consilium.framing import MAX_LINE_BYTES
from consilium.messages import MAX_SPEECH_BYTES
from consilium.records import EventName, EventRecord
from consilium.tls import client_context

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio

# --- who may connect where ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("door", "role"), [("admin", "participant"), ("control", "operator"), ("data", "operator")]
)
async def test_a_certificate_of_the_other_role_is_refused_at_connection(
    tmp_path: Path, door: str, role: Any
) -> None:
    async with open_house(tmp_path) as home:
        wire = await home.connect(door, home.context("somebody", role))
        (error,) = await wire.rest()
        assert error == m.Error(
            code="POLICY_DENIED", message=f"a certificate of role {role} may not use this channel"
        )


ODD_HOLDERS: dict[str, tuple[dict[str, Any], str]] = {
    # what is odd about a certificate of the right authority, and what its holder is told
    "no extended key usage": ({"usages": None}, "certificate refused: "),
    "any usage": ({"usages": (CLIENT_AUTH, CLIENT_AUTH)}, "certificate refused: "),
    "over 90 days": ({"seconds": 91 * DAY}, "certificate refused: "),
    "two names": (
        {"names": uris("spiffe://a/participant/x", "spiffe://a/operator/x")},
        "certificate refused: ",
    ),
    "admin in the CN only": ({"cn": "operator"}, "may not use this channel"),
    "a profile that is not here": (
        {"names": uris("spiffe://council.local/auditor/x")},
        "no capability profile is called auditor here",
    ),
}


@pytest.mark.parametrize(("odd", "told"), ODD_HOLDERS.values(), ids=ODD_HOLDERS)
async def test_a_certificate_is_judged_by_its_profile(
    tmp_path: Path, odd: dict[str, Any], told: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with open_house(tmp_path) as home:
        held = issue_odd(home.authority.signer("root"), **odd).write(tmp_path / "odd")
        wire = await home.connect("admin", client_context(held))
        (error,) = await wire.rest()
        assert error.code == ErrorCode.POLICY_DENIED
        assert told in error.message
        assert "admin channel: refused, and closed: POLICY_DENIED" in caplog.text


# --- the first word -----------------------------------------------------------------------------------

ADMIN_VERBS: list[m.Message] = [
    m.Kick(seat="ada"),
    m.Terminate(),
    m.Resume(),
    m.Watch(),
    m.SetTopic(topic="x"),
    m.Inject(text="x"),
]
FIRST_WORDS: list[tuple[str, m.Message, ErrorCode]] = [
    ("control", m.StateUpdate(required=False), ErrorCode.NOT_REGISTERED),
    ("control", m.Unreg(), ErrorCode.NOT_REGISTERED),
    ("control", m.Ack(turn_id=1), ErrorCode.NOT_REGISTERED),
    ("control", m.TurnEnd(turn_id=1), ErrorCode.NOT_REGISTERED),
    (
        "control",
        m.TurnFailed(turn_id=1, fault=m.Fault.QUOTA, prompt_sent=m.PromptSent.NO),
        ErrorCode.NOT_REGISTERED,
    ),
    ("control", m.StatusRequest(), ErrorCode.NOT_REGISTERED),
    ("control", m.DataHello(session_id="x", data_token="x"), ErrorCode.POLICY_DENIED),
    ("control", m.Speech(turn_id=1, text="x"), ErrorCode.POLICY_DENIED),
    ("data", m.Speech(turn_id=1, text="x"), ErrorCode.NOT_REGISTERED),
    ("data", m.SystemEvent(event="HUMAN_SKIP"), ErrorCode.NOT_REGISTERED),
    ("data", m.DataHello(session_id="x", data_token="x"), ErrorCode.TOKEN_REFUSED),
    ("data", m.Reg(name="ada"), ErrorCode.POLICY_DENIED),
    ("data", m.Ping(ts=1), ErrorCode.POLICY_DENIED),
    ("data", m.Unreg(), ErrorCode.POLICY_DENIED),
    ("admin", m.Reg(name="ada"), ErrorCode.POLICY_DENIED),
    ("admin", m.Speech(turn_id=1, text="x"), ErrorCode.POLICY_DENIED),
    *[(door, verb, ErrorCode.POLICY_DENIED) for door in ("control", "data") for verb in ADMIN_VERBS],
]


@pytest.mark.parametrize("door", ["control", "data", "admin"])
async def test_a_first_word_out_of_place_is_answered_and_closed(tmp_path: Path, door: str) -> None:
    async with open_house(tmp_path) as home:
        context = home.context("x", "operator" if door == "admin" else "participant")
        for where, word, code in FIRST_WORDS:
            if where == door:
                wire = await home.connect(door, context)
                msg_id = await wire.say(word)
                line = await wire.line()
                assert (line.message.code, line.in_reply_to) == (code, msg_id), word
                assert await wire.rest() == []


def reg(**fields: str) -> bytes:
    """A REG whose fields are JSON texts; an empty one is left out."""
    whole = {"protocol_version": "4", "msg_id": '"m-1"', "type": '"REG"', "name": '"ada"'} | fields
    return b"{" + ",".join(f'"{key}":{value}' for key, value in whole.items() if value).encode() + b"}"


MALFORMED: dict[str, bytes] = {
    "empty line": b"",
    "white space": b"   ",
    "array": b"[]",
    "string": b'"REG"',
    "null": b"null",
    "two documents": reg() + reg(),
    "trailing junk": reg() + b"x",
    "cut short": reg()[:-1],
    "plain HTTP": b"GET / HTTP/1.1\r",
    "NaN": reg(x="NaN"),
    "Infinity": reg(x="-Infinity"),
    "1e999": reg(x="1e999"),
    "duplicate key": reg()[:-1] + b',"name":"bob"}',
    "duplicate key, escaped": reg()[:-1] + rb',"\u006eame":"bob"}',
    "too deep": reg(x="[" * 17 + "]" * 17),
    "very deep": reg(x="[" * 100_000 + "]" * 100_000),
    "too wide": reg(meta="{" + ",".join(f'"k{n}":1' for n in range(10_000)) + "}"),
    "invalid UTF-8": reg(x='"@"').replace(b"@", b"\xff"),
    "byte order mark": b"\xef\xbb\xbf" + reg(),
    "lone surrogate": reg(x=r'"\ud800"'),
    "no msg_id": reg(msg_id=""),
    "msg_id a number": reg(msg_id="7"),
    "msg_id empty": reg(msg_id='""'),
    "msg_id long": reg(msg_id='"' + "x" * 65 + '"'),
    "in_reply_to a number": reg(in_reply_to="7"),
    "no type": reg(type=""),
    "unknown type": reg(type='"HELLO"'),
    "type a list": reg(type='["REG"]'),
    "no name": reg(name=""),
    "name empty": reg(name='""'),
    "name a path": reg(name='"../x"'),
    "name of 300": reg(name='"' + "a" * 300 + '"'),
    "name with NUL": reg(name=r'"ada\u0000"'),
    "name with newline": reg(name=r'"ada\n"'),
    "name in capitals": reg(name='"Ada"'),
    "name that looks alike": reg(name='"\u0430da"'),
    "required a string": reg(required='"true"'),
    "required a number": reg(required="1"),
    "policy unknown": reg(disconnect_policy='"stay"'),
    "label of 300": reg(meta='{"brand":"' + "x" * 300 + '"}'),
}
VERSIONS = {"none": "", "3": "3", "5": "5", "true": "true", "4.0": "4.0", "words": '"4"', "long": "9" * 5000}


async def test_a_line_that_is_no_message_is_answered_and_closed(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        for what, line in MALFORMED.items():
            wire = await home.connect("control", home.context("x"))
            await wire.say_bytes(line + b"\n")
            assert (what, await refusals(wire)) == (what, ["MALFORMED"])


async def test_only_protocol_version_4_is_spoken(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        for what, version in VERSIONS.items():
            wire = await home.connect("control", home.context("x"))
            await wire.say_bytes(reg(protocol_version=version) + b"\n")
            heard = await refusals(wire)
            # An integer of 5,000 digits is no JSON number of ours to begin with.
            assert heard in (["PROTOCOL_VERSION_UNSUPPORTED"], ["MALFORMED"][: what == "long"]), what


async def test_unknown_fields_are_ignored_and_go_nowhere(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=ANY_NAME) as home:
        wire = await home.connect("control", home.context("x"))
        await wire.say_bytes(reg(xyzzy='"xyzzy"', meta='{"brand":"b","xyzzy":{"xyzzy":[1]}}') + b"\n")
        granted = await wire.hear(m.RegOk)
        data = await home.connect("data", home.context("x"))
        hello = m.DataHello(session_id=granted.session_id, data_token=granted.data_token)
        assert isinstance(await data.ask(hello), m.DataOk)
        assert b"xyzzy" not in home.transcript.read_bytes()


async def test_a_connection_says_whose_it_is_in_time(tmp_path: Path) -> None:
    async with open_house(tmp_path, doors=Doors(first_message_seconds=0.2)) as home:
        silent = [await home.connect(door, home.context("x")) for door in ("control", "data")]
        half = await home.connect("control", home.context("x"))
        await half.say_bytes(reg()[:-1])
        for wire in (*silent, half):
            assert await refusals(wire) == ["TIMEOUT"]
        pinging = await home.connect("control", home.context("x"))

        async def ping() -> None:
            while True:
                await pinging.say(m.Ping(ts=1))
                await anyio.sleep(0.05)

        with pytest.raises(ChannelError), anyio.fail_after(20):
            await ping()


async def test_a_heartbeat_may_come_before_the_registration(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        ada = home.guest("ada")
        wire = await ada.arrive()
        msg_id = await wire.say(m.Ping(ts=7))
        line = await wire.channel.receive()
        assert (line.message, line.in_reply_to) == (m.Pong(ts=7), msg_id)
        assert isinstance(await wire.ask(m.Reg(name="ada")), m.RegOk)


# --- registration -------------------------------------------------------------------------------------


async def test_a_name_that_the_profile_does_not_have_is_refused(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=profile(names=("ada", "good"))) as home:
        for name, code in (("ada", None), ("ada2", "POLICY_DENIED"), ("bob", "POLICY_DENIED")):
            wire = await home.connect("control", home.context("x"))
            reply = await wire.ask(m.Reg(name=name))
            assert getattr(reply, "code", None) == code
            if code:
                assert await wire.rest() == []


async def test_the_first_of_a_display_name_keeps_its_seat(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=ANY_NAME) as home:
        (ada,) = await home.joined("ada")
        again = home.guest("ada")
        wire = await again.arrive()
        reply = await wire.ask(m.Reg(name="ada"))
        assert reply.code == "DUPLICATE_DISPLAY_NAME"
        assert await wire.rest() == []
        other = home.guest("ada", holder="other")
        assert (await other.register()).participant_id != ada.granted.participant_id
        assert isinstance(await ada.control.ask(m.StateUpdate(required=False)), m.StateOk)


async def test_a_refused_registration_ends_its_connection_whatever_else_it_sent(tmp_path: Path) -> None:
    seats = [{"name": name, "required": False} for name in ("ada", "good")]
    static = {"mode": "static", "participants": seats, "wait_for_required_at_start": False}
    async with open_house(tmp_path, rules=static) as home:
        (ada,) = await home.joined("ada")
        wire = await home.connect("control", home.context("stranger"))
        await wire.channel.send_many(
            [(m.Reg(name="stranger"), None), (m.StatusRequest(), None), (m.Unreg(name="ada"), None)]
        )
        heard = await wire.rest()
        assert heard[0].code == "POLICY_DENIED"
        assert "no seat named stranger" in heard[0].message
        assert not [said for said in heard if isinstance(said, m.RegOk)]
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)


async def test_wishes_above_the_ceiling_are_not_granted_and_the_reply_says_so(tmp_path: Path) -> None:
    capped = profile(may_be_required=False, disconnect_ceiling=m.DisconnectPolicy.DROP)
    async with open_house(tmp_path, profiles=capped) as home:
        ada = home.guest("ada")
        granted = await ada.register(required=True, disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE)
        assert (granted.required, granted.disconnect_policy) == (False, m.DisconnectPolicy.DROP)
        up = m.StateUpdate(required=True, disconnect_policy=m.DisconnectPolicy.KEEP_ALIVE)
        assert await ada.control.ask(up) == m.StateOk(
            required=False, disconnect_policy=m.DisconnectPolicy.DROP, capped_by_profile=True
        )


async def test_asking_for_more_does_not_take_away_what_the_roster_gives(tmp_path: Path) -> None:
    planned = {"mode": "dynamic", "required_names": ["ada"]}
    async with open_house(tmp_path, rules=planned, profiles=profile(may_be_required=False)) as home:
        ada = home.guest("ada")
        assert (await ada.register()).required
        for wish in (True, False, True):
            reply = await ada.control.ask(m.StateUpdate(required=wish))
            assert (reply.required, reply.capped_by_profile) == (wish, False), "the roster's word stands"


# --- a session that is at home ------------------------------------------------------------------------

Act = Callable[[Guest], Awaitable[Any]]
STAYS: dict[str, tuple[str, m.Message, ErrorCode]] = {
    # what a seated guest says wrong and may go on after
    "second REG": ("control", m.Reg(name="bob"), ErrorCode.INVALID_STATE),
    "UNREG of another": ("control", m.Unreg(name="bob"), ErrorCode.NOT_OWNER),
    "STATE_UPDATE of another": ("control", m.StateUpdate(name="bob", required=False), ErrorCode.NOT_OWNER),
    "ACK of no turn": ("control", m.Ack(turn_id=1), ErrorCode.TURN_MISMATCH),
    "TURN_END of no turn": ("control", m.TurnEnd(turn_id=1), ErrorCode.TURN_MISMATCH),
    "second DATA_HELLO": ("data", m.DataHello(session_id="x", data_token="x"), ErrorCode.INVALID_STATE),
    "SPEECH of no turn": ("data", m.Speech(turn_id=1, text="x"), ErrorCode.TURN_MISMATCH),
    "event of another": (
        "data",
        m.SystemEvent(event="HUMAN_SKIP", participant_id="bob_AB12CD34"),
        ErrorCode.NOT_OWNER,
    ),
}


async def test_what_is_wrong_but_readable_is_refused_and_the_session_stays(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=profile(messages_per_second=1000, burst=1000)) as home:
        (ada,) = await home.joined("ada")
        before = home.transcript.read_bytes()
        for what, (channel, message, code) in STAYS.items():
            wire = ada.control if channel == "control" else ada.data
            assert (what, (await wire.ask(message)).code) == (what, code)
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
        assert home.transcript.read_bytes() == before, "what was refused is not on the record"


BROKE = "the peer broke the protocol: "
ENDS: dict[str, tuple[str, bytes, str]] = {
    # what ends a seated guest's session, on which channel, and what it and the debate are told
    "admin verb on control": (
        "control",
        b'{"protocol_version":4,"msg_id":"m","type":"TERMINATE"}\n',
        "POLICY_DENIED: TERMINATE may not be sent on this channel",
    ),
    "admin verb on data": (
        "data",
        b'{"protocol_version":4,"msg_id":"m","type":"KICK","seat":"bob"}\n',
        "POLICY_DENIED: KICK may not be sent on this channel",
    ),
    "garbage on control": ("control", b"\x00\xff\n", "MALFORMED: not one JSON object"),
    "garbage on data": ("data", b"{}\n", "MALFORMED: msg_id must be a string of 1 to 64 characters"),
    "a line over the limit": (
        "data",
        b"x" * (MAX_LINE_BYTES + 1),
        f"TOO_LARGE: a line may hold at most {MAX_LINE_BYTES} bytes",
    ),
    "a text over the limit": (
        "data",
        b'{"protocol_version":4,"msg_id":"m","type":"SPEECH","turn_id":1,"text":"'
        + b"x" * (MAX_SPEECH_BYTES + 1)
        + b'"}\n',
        "TOO_LARGE: SPEECH: text: Text should have at most 65536 bytes",
    ),
}


@pytest.mark.parametrize(("channel", "said", "told"), ENDS.values(), ids=ENDS)
async def test_what_cannot_be_read_ends_the_session_with_its_reason(
    tmp_path: Path, channel: str, said: bytes, told: str
) -> None:
    async with open_house(tmp_path) as home:
        ada, bob = await home.joined("ada", "bob")
        guilty, other = (ada.control, ada.data) if channel == "control" else (ada.data, ada.control)
        await guilty.say_bytes(said)
        assert [f"{error.code}: {error.message}" for error in await guilty.rest()] == [told]
        assert await other.rest() == []
        assert await left(home) == [
            BROKE + told if channel == "control" else f"data connection: {BROKE}{told}"
        ]
        assert isinstance(await bob.control.ask(m.StatusRequest()), m.Status)


DEATHS: dict[str, Act] = {
    "control cut": lambda ada: ada.control.cut(),
    "data cut": lambda ada: ada.data.cut(),
    "control closed": lambda ada: ada.control.close(),
    "data closed": lambda ada: ada.data.close(),
}


@pytest.mark.parametrize("die", DEATHS.values(), ids=DEATHS)
async def test_a_session_ends_with_either_of_its_connections(
    tmp_path: Path, die: Act, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception_module, "PARTING", 0.05)
    async with open_house(tmp_path) as home:
        ada, bob = await home.joined("ada", "bob")
        await die(ada)
        assert len(await left(home)) == 1
        assert list(home.reception.seats) == [bob.granted.session_id]
        assert await bob.control.hears_nothing(0.05)
        await ada.join()


async def test_connections_that_die_at_any_moment_leave_nothing_behind(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        early = [await home.connect(door, home.context("x")) for door in ("control", "data")]
        early.append(await home.operator())
        in_mid_line = await home.connect("control", home.context("x"))
        await in_mid_line.say_bytes(reg()[:-1])
        registered = home.guest("ada")
        await registered.register()
        asking = await home.operator()
        await asking.say(m.Watch())
        await asking.say(m.StatusRequest())
        for wire in (*early, in_mid_line, registered.control, asking):
            await wire.cut()


async def test_leaving_is_no_loss_even_when_the_data_connection_goes_first(tmp_path: Path) -> None:
    planned = {"mode": "dynamic", "required_names": ["ada"]}
    async with open_house(tmp_path, rules=planned) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bob.data.close)
            await anyio.sleep(0.1)
            await bob.control.say(m.Unreg(reason="done"))
            assert await bob.control.rest() == []
        assert EventName.PARTICIPANT_FAULT not in {
            stored.entry.event for stored in home.records() if isinstance(stored.entry, EventRecord)
        }
        assert await left(home) == ["done"]
        assert home.debate.state is m.DebateState.RUNNING


@pytest.mark.parametrize("comes", [True, False])
async def test_a_farewell_that_overtakes_the_last_words_does_not_lose_them(
    tmp_path: Path, comes: bool
) -> None:
    planned = {"mode": "dynamic", "required_names": ["ada", "bob"]}
    async with open_house(tmp_path, rules=planned) as home:
        ada, bob = await home.joined("ada", "bob")
        assert isinstance(await bob.control.ask(m.StateUpdate(required=False)), m.StateOk)
        await ada.speaks("First.")
        turn = await bob.turn()
        await bob.control.say(m.TurnEnd(turn_id=turn.turn_id, speech=True))
        await bob.control.say(m.Unreg(reason="done"))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(bob.control.close)
            await anyio.sleep(0.1)
            if comes:
                await bob.data.say(m.Speech(turn_id=turn.turn_id, text="My last words."))
            await bob.data.close()
        heard = [entry.text for entry in (await ada.turn()).delta]
        assert heard == (["My last words."] if comes else [])
        assert await left(home) == ["done"]
        assert home.debate.state is m.DebateState.RUNNING


async def test_what_is_sent_to_nobody_goes_nowhere(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        ada = home.guest("ada")
        await ada.register()
        pong = m.Pong(ts=1)
        home.reception.deliver(ada.granted.session_id, Kind.DATA, pong, None)
        home.reception.deliver("nobody", Kind.CONTROL, pong, None)
        home.reception.deliver("nobody", Kind.ADMIN, pong, None)
        home.reception.end("nobody", "left")
        assert isinstance(await ada.control.ask(m.StatusRequest()), m.Status)
