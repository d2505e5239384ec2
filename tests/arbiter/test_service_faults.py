"""An owner that is held up, and an owner with a bug: nobody is forgotten, and everybody is told."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from house import Guest, Home, until
from houses import NAMES, debate, ended, entries, event_names, left, open_house
from journals import NO_SPACE, FaultyDisk, is_transcript

from arbiter import translate
from consilium import messages as m
from consilium.inspection import inspect
from consilium.messages import DebateState
from consilium.records import EventName
from consilium.transcript import read_head, read_lines

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio

# --- an owner that is held up -------------------------------------------------------------------------


async def flooded(home: Home, disk: FaultyDisk, ada: Guest) -> None:
    """The disk stands still, and ada asks until nothing more fits into the inbox."""
    disk.gate = threading.Event()
    await ada.says(1, "Held up.")
    await ada.control.channel.send_many((m.StatusRequest(), None) for _ in range(20))
    await anyio.sleep(0.2)


async def test_a_loss_is_heard_of_however_long_the_owner_was_held_up(tmp_path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, disk=disk, inbox=1) as home:
        ada, bob, cyn = await home.joined(*NAMES)
        await ada.turn()
        await flooded(home, disk, ada)
        await cyn.control.cut()
        await bob.data.cut()
        await until(lambda: len(home.reception.seats) == 1)
        assert disk.gate is not None
        disk.gate.set()
        await until(lambda: event_names(entries(home)).count(EventName.PARTICIPANT_FAULT) == 2)
        status = await (await home.operator()).ask(m.StatusRequest())
        assert status.debate_state is DebateState.PAUSED
        assert [seat.connected for seat in status.seats] == [True, False, False]


async def test_stopping_does_not_hang_on_a_full_inbox(tmp_path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, disk=disk, inbox=1) as home:
        ada, _, cyn = await home.joined(*NAMES)
        await ada.turn()
        await flooded(home, disk, ada)
        await cyn.control.cut()
        await anyio.sleep(0.05)
        assert disk.gate is not None
        threading.Timer(0.3, disk.gate.set).start()
        began = anyio.current_time()
    assert anyio.current_time() - began < 20
    assert inspect(read_lines(home.transcript), read_head(home.transcript)).whole


# --- bugs ---------------------------------------------------------------------------------------------


def has_a_bug(*_: Any) -> Any:
    raise AssertionError("this cannot be")


async def test_a_bug_in_the_debate_ends_it_as_an_error_that_everybody_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        operator = await home.operator()
        assert isinstance(await operator.ask(m.Watch(from_seq=6)), m.AdminOk)
        ada, bob = await home.joined("ada", "bob")
        await ada.speaks("Fine so far.")
        context = await bob.turn()
        monkeypatch.setattr(home.debate, "handle", has_a_bug)
        await bob.says(context.turn_id, "This is the one.")
        for guest in (ada, bob):
            assert await guest.control.hear(m.DebateEnded) == m.DebateEnded(
                outcome=DebateState.ERROR, turn_counter=2
            )
            await guest.control.say(m.StatusRequest())
        for guest in (ada, bob):
            assert await guest.control.rest() == [], "nothing more is believed of it"
        assert await home.outcome() is DebateState.ERROR
        assert ended(home) == {"outcome": "ERROR", "cap": None, "reason": "internal_error", "turn_counter": 2}
        records = await operator.rest()
        assert records[-1].record["data"]["outcome"] == "ERROR"
        assert home.house.whole
        assert inspect(read_lines(home.transcript), read_head(home.transcript)).whole
        assert "AssertionError: this cannot be" in caplog.text


async def test_a_bug_on_a_full_disk_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk()
    async with debate(tmp_path, ("ada", "bob"), disk=disk) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        monkeypatch.setattr(home.debate, "handle", has_a_bug)
        disk.on_write = NO_SPACE
        await ada.control.say(m.StatusRequest())
        for guest in (ada, bob):
            assert (await guest.control.hear(m.DebateEnded)).outcome is DebateState.ERROR
        assert await home.outcome() is DebateState.ERROR
        assert "nor can the record say so: the transcript could not be written" in caplog.text


async def test_a_bug_in_what_is_sent_is_a_bug_of_the_debate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, _ = await home.joined("ada", "bob")
        monkeypatch.setattr(home.reception, "deliver", has_a_bug)
        monkeypatch.setattr(home.reception, "broadcast", lambda _: None)
        await ada.control.hear(m.TurnStart)
        await ada.control.say(m.StatusRequest())
        assert await home.outcome() is DebateState.ERROR


async def test_a_bug_in_the_alarm_is_a_bug_of_the_debate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Before, it ended the service without a word: nobody was told, and the record had no end."""
    async with debate(tmp_path, ("ada", "bob"), limits={"turn_seconds": 1}) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.control.hear(m.TurnStart)
        monkeypatch.setattr(home.debate, "next_deadline", has_a_bug)
        for guest in (ada, bob):
            assert (await guest.control.hear(m.DebateEnded)).outcome is DebateState.ERROR
        assert await home.outcome() is DebateState.ERROR
        assert ended(home)["reason"] == "internal_error"
        assert caplog.text.count("AssertionError: this cannot be") == 1


async def test_a_bug_after_the_end_does_not_change_the_outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        operator = await home.operator()
        ada, _ = await home.joined("ada", "bob")
        await operator.ask(m.Terminate())
        monkeypatch.setattr(home.debate, "handle", has_a_bug)
        await operator.say(m.StatusRequest())
        await until(lambda: "AssertionError" in caplog.text)
        await operator.say(m.StatusRequest())
        assert await home.outcome() is DebateState.FINISHED
        assert ended(home)["outcome"] == "FINISHED"
        assert [type(said) for said in await ada.control.rest()] == [
            m.TurnStart,
            m.TurnRevoked,
            m.DebateEnded,
        ]
        assert caplog.text.count("AssertionError: this cannot be") == 1


async def test_a_bug_in_the_writer_of_one_connection_is_that_connections(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        (session,) = [s for s in home.reception.seats.values() if s.name == "bob"]
        outbox = next(iter(session.outboxes.values()))
        monkeypatch.setattr(outbox, "_write", has_a_bug)
        await bob.control.say(m.StatusRequest())
        assert (await ada.control.hear(m.DebatePaused)).missing == (bob.granted.participant_id,)
        await until(home.failures)
        home.reports.clear()
        assert await home.serves()


async def test_a_bug_in_one_connection_ends_that_connection_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError("a bug")

    async with open_house(tmp_path) as home:
        ada, bob = await home.joined("ada", "bob")
        with monkeypatch.context() as patch:
            patch.setattr(translate, "from_data", broken)
            await ada.data.say(m.Speech(turn_id=1, text="x"))
            assert await ada.data.rest() == []
            assert await ada.control.rest() == []
        assert isinstance(await bob.control.ask(m.StatusRequest()), m.Status)
        assert await left(home) == ["data connection: connection_lost"]
        await until(home.failures)
        (traceback,) = home.failures()
        assert "ZeroDivisionError: a bug" in traceback
        home.reports.clear()
