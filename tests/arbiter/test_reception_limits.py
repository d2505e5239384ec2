"""What one peer may take of the others' time and memory, and how it ends when it takes more."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from certificates import DAY
from certificates import clock as real_time
from house import Clock, Guest, Home, house, until
from houses import OPEN_TABLE, left, open_house, profile, refusals
from playbook import council

from arbiter import reception as reception_module
from arbiter import session as session_module
from arbiter.edge.limits import Doors
from consilium import messages as m
from consilium.errors import ChannelError
from consilium.messages import MAX_SPEECH_BYTES
from consilium.profile import DEFAULT_PROFILES
from consilium.tls import client_context

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio

# --- limits -------------------------------------------------------------------------------------------


def text_of(size: int) -> str:
    """``size`` bytes of UTF-8, as many as possible in characters of four."""
    return "\U0001f3db" * (size // 4) + "x" * (size % 4)


async def ready(home: Home) -> Guest:
    """Ada has the floor."""
    ada, _ = await home.joined("ada", "bob")
    assert isinstance(await (await home.operator()).ask(m.Resume()), m.AdminOk)
    await ada.turn()
    return ada


async def test_a_speech_may_have_the_councils_bytes_and_not_one_more(tmp_path: Path) -> None:
    async with open_house(tmp_path, limits={"speech_bytes": 1024}) as home:
        ada = await ready(home)
        assert (await ada.data.ask(m.Speech(turn_id=1, text=text_of(1025)))).code == "TOO_LARGE"
        await ada.says(1, text_of(1024))
        bob_heard = await home.connect("admin", home.context("operator", "operator"))
        assert (await bob_heard.ask(m.StatusRequest())).turn_counter == 2


@pytest.mark.parametrize(("size", "taken"), [(-1, True), (0, True), (1, False)])
async def test_a_speech_may_have_the_protocols_bytes_and_not_one_more(
    tmp_path: Path, size: int, taken: bool
) -> None:
    text = text_of(MAX_SPEECH_BYTES + size)
    async with open_house(tmp_path, limits={"speech_bytes": MAX_SPEECH_BYTES}) as home:
        ada, bob = await home.joined("ada", "bob")
        await (await home.operator()).ask(m.Resume())
        await ada.turn()
        # Written by hand, with every character escaped: the longest that such a text can be on the wire.
        escaped = "".join(f"\\u{unit:04x}" for unit in _utf16(text))
        line = f'{{"protocol_version":4,"msg_id":"m","type":"SPEECH","turn_id":1,"text":"{escaped}"}}\n'
        await ada.data.say_bytes(line.encode())
        if taken:
            await ada.control.say(m.TurnEnd(turn_id=1, speech=True))
            assert [entry.text for entry in (await bob.turn()).delta] == [text]
        else:
            assert await refusals(ada.data) == ["TOO_LARGE"]


def _utf16(text: str) -> list[int]:
    data = text.encode("utf-16-be")
    return [int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)]


async def test_a_profile_may_set_a_lower_limit_for_a_line(tmp_path: Path) -> None:
    async with open_house(tmp_path, profiles=profile(max_message_bytes=1024)) as home:
        wire = await home.connect("control", home.context("x"))
        await wire.say_bytes(b"x" * 1025)
        assert await refusals(wire) == ["TOO_LARGE"]


async def test_a_line_without_an_end_costs_no_memory_and_is_cut(tmp_path: Path) -> None:
    async with open_house(tmp_path) as home:
        wire = await home.connect("control", home.context("x"))
        chunk = b"x" * 65536
        sent = 0

        async def flood() -> None:
            nonlocal sent
            while True:
                await wire.say_bytes(chunk)
                sent += len(chunk)

        tracemalloc.start()
        try:
            with pytest.raises(ChannelError), anyio.fail_after(10):
                await flood()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert sent < 32 * 1024 * 1024, "what the kernel holds, and no more"
        assert peak < 4 * 1024 * 1024


async def test_a_flood_of_pings_is_limited_then_cut(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with open_house(tmp_path) as home:
        ada, bob = await home.joined("ada", "bob")
        burst = DEFAULT_PROFILES["participant"].burst
        await ada.control.channel.send_many((m.Ping(ts=n), None) for n in range(10 * burst))
        heard: list[Any] = []

        async def hear() -> None:
            while True:
                heard.append((await ada.control.channel.receive()).message)

        with pytest.raises(ChannelError):
            await hear()
        assert burst - 1 <= [type(message) for message in heard].count(m.Pong) <= burst + 10
        assert [message.code for message in heard if isinstance(message, m.Error)] == ["RATE_LIMITED"]
        assert await left(home) == ["the peer broke the protocol: RATE_LIMITED: too many messages"]
        assert "RATE_LIMITED" in caplog.text
        assert isinstance(await bob.control.ask(m.StatusRequest()), m.Status)


async def test_a_profile_may_keep_status_to_itself(tmp_path: Path) -> None:
    async with house(
        tmp_path, council((), roster=OPEN_TABLE), profiles=profile(may_ask_status=False)
    ) as home:
        (ada,) = await home.joined("ada")
        assert (await ada.control.ask(m.StatusRequest())).code == "POLICY_DENIED"
        assert isinstance(await ada.control.ask(m.StateUpdate()), m.StateOk)


# --- readers that do not read, clocks that run out ----------------------------------------------------

PATIENT = Doors()
BIG = {"topic": "x" * 8000}
"""A topic that makes every STATUS large."""


async def test_a_seat_that_lets_its_queue_fill_up_is_cut_and_the_debate_pauses_with_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "MAX_QUEUED", 4)
    monkeypatch.setattr(session_module, "PARTING", 0.1)
    await cut_for_not_reading(tmp_path, asked=40, reason="slow_reader")


async def test_a_seat_that_does_not_take_one_write_is_cut_and_the_debate_pauses_with_that_reason(
    tmp_path: Path,
) -> None:
    hasty = Doors(write_seconds=0.3)
    await cut_for_not_reading(tmp_path, asked=30, reason="the peer did not read for 0.3 s", doors=hasty)


async def cut_for_not_reading(tmp_path: Path, *, asked: int, reason: str, doors: Doors = PATIENT) -> None:
    async with house(tmp_path, council(("ada", "bob"), **BIG), buffer=4096, doors=doors) as home:
        bob = home.guest("bob")
        bob.control = await home.connect("control", bob.context, buffer=4096)
        granted = await bob.control.ask(m.Reg(name="bob"))
        bob.granted = granted
        await bob.bind()
        (ada,) = await home.joined("ada")
        await ada.turn()
        await bob.control.channel.send_many((m.StatusRequest(), None) for _ in range(asked))
        assert isinstance(await ada.control.ask(m.StateUpdate()), m.StateOk), "nobody waits for bob"
        paused = await ada.control.hear(m.DebatePaused)
        assert paused == m.DebatePaused(reason="participant_failed", missing=(granted.participant_id,))
        status = await ada.control.ask(m.StatusRequest())
        assert {seat.participant_id: seat.fault for seat in status.seats}[granted.participant_id] == reason
        await ada.says(1, "Said all the same.")
        assert await home.serves()


async def test_a_seat_that_is_silent_for_three_intervals_is_lost(tmp_path: Path) -> None:
    async with house(tmp_path, council(("ada", "bob"), limits={"heartbeat_seconds": 0.3})) as home:
        ada, bob = await home.joined("ada", "bob")
        began = anyio.current_time()
        await ada.control.hear(m.TurnStart)
        paused = await ada.control.hear(m.DebatePaused)
        # Three intervals from when bob was last heard, which is a little before `began`.
        assert 0.45 < anyio.current_time() - began < 15
        assert paused.missing == (bob.granted.participant_id,)
        status = await ada.control.ask(m.StatusRequest())
        assert [seat.fault for seat in status.seats] == [None, "heartbeat_missed"]
        assert await ada.control.hears_nothing(1.2), "who answers stays, with the floor still hers"
        assert len(home.reception.seats) == 1


async def test_any_line_is_a_sign_of_life(tmp_path: Path) -> None:
    async with house(tmp_path, council((), roster=OPEN_TABLE, limits={"heartbeat_seconds": 0.1})) as home:
        (ada,) = await home.joined("ada")
        for turn in range(8):
            await anyio.sleep(0.1)
            await ada.data.say(m.Speech(turn_id=turn, text="still here"))
        assert len(home.reception.seats) == 1


async def test_an_operator_that_is_gone_is_forgotten_and_one_that_answers_stays(tmp_path: Path) -> None:
    async with house(tmp_path, council((), roster=OPEN_TABLE, limits={"heartbeat_seconds": 0.3})) as home:
        gone, here = await home.operator(), await home.operator()
        assert await here.hears_nothing(1.5)
        assert len(home.reception.operators) == 1
        assert isinstance(await here.ask(m.StatusRequest()), m.Status)
        gone.mute = True
        assert await gone.rest() == []


async def test_a_session_ends_with_its_certificate(tmp_path: Path) -> None:
    wall_clock = Clock(real_time())
    limits = {"heartbeat_seconds": 0.5}  # how often is looked; three of them on a busy machine are no silence
    async with house(tmp_path, council(("ada", "bob"), limits=limits), wall_clock=wall_clock) as home:
        home.holders["bob"] = client_context(home.authority.issue("bob", profile="participant", days=1))
        late = client_context(home.authority.issue("late", profile="operator", days=1))
        operator = await home.connect("admin", late)
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        wall_clock.now += 1.1 * DAY
        told = [m.Error(code="CERTIFICATE_EXPIRED", message="the certificate of this session has expired")]
        assert await operator.rest() == told
        assert (await ada.control.hear(m.DebatePaused)).missing == (bob.granted.participant_id,)
        assert [said for said in await bob.control.rest() if isinstance(said, m.Error)] == told
        assert await bob.data.rest() == []
        status = await ada.control.ask(m.StatusRequest())
        assert status.seats[1].fault == "certificate_expired"


async def test_an_operator_that_does_not_read_is_cut_off_and_holds_up_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reception_module, "WATCH_TIMEOUT", 0.2)
    monkeypatch.setattr(session_module, "MAX_QUEUED", 4)
    monkeypatch.setattr(session_module, "PARTING", 0.1)
    async with house(tmp_path, council((), roster=OPEN_TABLE, **BIG), buffer=4096) as home:
        context = home.context("operator", "operator")
        watching = await home.connect("admin", context, buffer=4096)
        asking = await home.connect("admin", context, buffer=4096)
        await watching.say(m.Watch())
        await asking.channel.send_many((m.StatusRequest(), None) for _ in range(60))
        busy = await home.operator()
        for _ in range(8):
            assert isinstance(await busy.ask(m.Inject(text="x" * 8000)), m.AdminOk)
        await until(lambda: len(home.reception.operators) == 1)
        assert await home.serves()
