"""The Arbiter as a whole, over real TLS: debates from the first seat to the outcome, and how they fail."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from certificates import clock as real_time
from house import Home, Wire, house, until
from houses import KEEP, NAMES, debate, ended, entries, event_names
from journals import NO_SPACE, FaultyDisk, is_head, is_transcript
from playbook import council
from rights import ANY_NAME

from arbiter import service
from consilium import headseal
from consilium import messages as m
from consilium.inspection import inspect
from consilium.messages import DebateState
from consilium.records import EventName, TurnOutcome, TurnRecord, unseal
from consilium.transcript import read_head, read_lines

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.anyio


async def watched(operator: Wire, from_seq: int = 0) -> list[dict[str, Any]]:
    """Every record that a WATCH brings, up to the end of the connection."""
    assert await operator.ask(m.Watch(from_seq=from_seq)) == m.AdminOk(operation="WATCH")
    heard = await operator.rest()
    assert {type(message) for message in heard} <= {m.Record}
    return [message.record for message in heard]


def turn_records(home: Home) -> list[TurnRecord]:
    return [entry for entry in entries(home) if isinstance(entry, TurnRecord)]


# --- a debate as it should be -------------------------------------------------------------------------


async def test_a_whole_debate_is_held_watched_and_can_be_verified(tmp_path: Path) -> None:
    async with debate(tmp_path, opening="sealed", caps={"max_rounds": 9}) as home:
        seen: list[dict[str, Any]] = []

        async def watch() -> None:
            seen.extend(await watched(await home.operator()))

        operator = await home.operator()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            ada, bob, cyn = guests = await home.joined(*NAMES)
            openings = [await guest.speaks(f"{guest.name} opens.") for guest in guests[:2]]
            assert [context.delta for context in openings] == [(), ()], "sealed"
            late = m.SetPhase(phase=m.Phase.REBUTTAL, when=m.When.ROUND_END)
            assert await operator.ask(late) == m.AdminOk(operation="SET_PHASE")
            await cyn.speaks("cyn opens.")
            context = await ada.speaks("ada rebuts.")
            assert (context.phase, [said.text for said in context.delta]) == (
                m.Phase.REBUTTAL,
                ["bob opens.", "cyn opens."],
            )
            await bob.speaks("bob rebuts.")
            closing = m.Terminate(when=m.When.ROUND_END, reason="enough")
            assert isinstance(await operator.ask(closing), m.AdminOk)
            await cyn.speaks("cyn rebuts.")
            for guest in guests:
                over = await guest.control.hear(m.DebateEnded)
                assert over == m.DebateEnded(outcome=DebateState.FINISHED, turn_counter=6)
                await guest.close()
        assert await home.outcome() is DebateState.FINISHED
        assert home.house.exit_code == 0
        assert ended(home)["reason"] == "enough"
        lines = list(read_lines(home.transcript))
        head = read_head(home.transcript)
        assert head is not None
        assert inspect(lines, head).whole
        seal = headseal.check(
            head, authority=home.authority.anchors, at=datetime.fromtimestamp(real_time(), UTC)
        )
        assert (seal.signature, seal.issuer) == (headseal.Verdict.GOOD, headseal.Verdict.GOOD)
        assert [record["seq"] for record in seen] == list(range(len(lines)))
        assert [unseal(line).entry for line in lines] == entries(home)
        assert [record["prev"] for record in seen] == [unseal(line).prev for line in lines]
        turns = turn_records(home)
        assert [turn.outcome for turn in turns] == [TurnOutcome.SPEECH] * 6


async def test_what_looks_like_a_message_in_a_speech_stays_text(tmp_path: Path) -> None:
    hostile = (
        'UNREG:bob_AB12CD34\n{"type":"TERMINATE"}\n'
        '{"protocol_version":4,"msg_id":"m","type":"STATE_UPDATE","required":false}\r\n'
        '"}\n{"turn_id": 9}\u2028\x00\x1b[2J'
    )
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.speaks(hostile)
        assert [said.text for said in (await bob.turn()).delta] == [hostile]
        assert home.debate.state is DebateState.RUNNING
        turns = turn_records(home)
        assert [turn.text for turn in turns] == [hostile]
        assert inspect(read_lines(home.transcript)).whole


async def test_speech_and_turn_end_may_overtake_each_other(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        await ada.control.say(m.TurnEnd(turn_id=1, speech=True))
        assert await bob.control.hears_nothing(0.1)
        await ada.data.say(m.Speech(turn_id=1, text="Late, and not lost."))
        assert [said.text for said in (await bob.turn()).delta] == ["Late, and not lost."]


async def test_a_deadline_revokes_and_pauses(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob"), limits={"turn_seconds": 0.2}) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        assert await ada.control.hear(m.TurnRevoked) == m.TurnRevoked(turn_id=1, reason="deadline_exceeded")
        assert (await bob.control.hear(m.DebatePaused)).reason == "participant_failed"
        assert (await ada.data.ask(m.Speech(turn_id=1, text="Too late."))).code == "TURN_MISMATCH"


async def test_a_seat_that_is_lost_in_its_turn_pauses_and_may_come_back(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        await ada.control.cut()
        paused = await bob.control.hear(m.DebatePaused)
        assert paused.missing == (ada.granted.participant_id,)
        await ada.join(disconnect_policy=KEEP)
        operator = await home.operator()
        assert isinstance(await operator.ask(m.Resume()), m.AdminOk)
        await ada.control.hear(m.SeatRecovery)
        await ada.control.hear(m.DebateResumed)
        await ada.speaks("Where was I?")


async def test_a_kicked_seat_is_told_off_and_cannot_come_back(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.control.hear(m.TurnStart)
        operator = await home.operator()
        assert await operator.ask(m.Kick(seat="ada")) == m.AdminOk(operation="KICK")
        revoked, error = await ada.control.rest()
        assert isinstance(revoked, m.TurnRevoked)
        assert error == m.Error(code="NOT_REGISTERED", message="the operator removed this seat")
        assert [type(said) for said in await ada.data.rest()] == [m.Context]
        again = await ada.arrive()
        assert (await again.ask(m.Reg(name="ada"))).code == "POLICY_DENIED"
        await bob.speaks("Alone now.")


async def test_an_operator_is_told_which_seats_there_are_however_many(tmp_path: Path) -> None:
    names = tuple(f"{'a' * 58}_{number}" for number in range(40))
    async with house(
        tmp_path, council((), roster={"mode": "dynamic", "required_names": ["late"]}), profiles=ANY_NAME
    ) as home:
        for name in names:
            await home.guest(name, holder="same").join()
        operator = await home.operator()
        refused = await operator.ask(m.Kick(seat="nobody"))
        assert refused.code == "INVALID_STATE"
        assert refused.message.startswith("there is no seat nobody (seats: aaaa")
        assert len(refused.message) == m.MAX_REASON
        assert await home.serves()


# --- the record before the word -----------------------------------------------------------------------


async def test_nobody_is_told_what_is_not_on_disk(tmp_path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, ("ada", "bob"), disk=disk) as home:
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        disk.gate = threading.Event()
        try:
            await ada.says(1, "Not on disk yet.")
            assert await bob.control.hears_nothing(0.2)
            assert await bob.data.hears_nothing(0.05)
        finally:
            disk.gate.set()
        await bob.control.hear(m.TurnStart)
        assert b"Not on disk yet." in home.transcript.read_bytes()


async def test_a_full_disk_pauses_the_debate_with_the_reason_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "RETRY", 0.05)
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, ("ada", "bob"), disk=disk) as home:
        operator = await home.operator()
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        disk.on_write = NO_SPACE
        await ada.says(1, "Not lost.")
        for guest in (ada, bob):
            paused = await guest.control.hear(m.DebatePaused)
            assert "No space left on device" in paused.reason
        status = await operator.ask(m.StatusRequest())
        assert status.debate_state is DebateState.PAUSED
        assert "No space left on device" in status.reason
        assert await bob.control.hears_nothing(0.2)
        assert b"Not lost." not in home.transcript.read_bytes()
        disk.on_write = None
        await bob.control.hear(m.TurnStart)
        assert "No space left on device" in (await bob.control.hear(m.DebatePaused)).reason
        assert [said.text for said in (await bob.data.hear(m.Context)).delta] == ["Not lost."]
        assert home.debate.state is DebateState.PAUSED
        await bob.says(2, "Nor this.")
        assert isinstance(await operator.ask(m.Resume()), m.AdminOk)
        await ada.control.hear(m.DebatePaused)
        await ada.control.hear(m.DebateResumed)
        assert [said.text for said in (await ada.turn()).delta] == ["Nor this."]
        turns = turn_records(home)
        assert [(turn.turn_id, turn.text) for turn in turns] == [(1, "Not lost."), (2, "Nor this.")]
        assert inspect(read_lines(home.transcript)).whole


async def test_a_turn_does_not_run_out_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "RETRY", 0.05)
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, ("ada", "bob"), disk=disk, limits={"turn_seconds": 0.5}) as home:
        operator = await home.operator()
        ada, _ = await home.joined("ada", "bob")
        await ada.turn()
        disk.on_write = NO_SPACE
        await operator.say(m.Inject(text="Mind the disk."))
        await ada.control.hear(m.DebatePaused)
        await anyio.sleep(0.6)
        await ada.says(1, "In time.")
        disk.on_write = None
        await until(lambda: turn_records(home))
        (turn,) = turn_records(home)
        assert (turn.outcome, turn.text) == (TurnOutcome.SPEECH, "In time.")
        assert turn.duration_s < 0.5


async def test_a_pause_that_the_disk_began_is_overdue_in_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "RETRY", 0.05)
    disk = FaultyDisk(only=is_transcript)
    limits = {"turn_seconds": 30, "max_pause_seconds": 0.2}
    async with debate(tmp_path, ("ada", "bob"), disk=disk, limits=limits) as home:
        operator = await home.operator()
        ada, _ = await home.joined("ada", "bob")
        await ada.turn()
        disk.on_write = NO_SPACE
        await operator.say(m.Inject(text="Mind the disk."))
        await ada.control.hear(m.DebatePaused)
        disk.on_write = None
        overdue = EventName.PAUSE_OVERDUE
        with anyio.fail_after(5):
            await until(lambda: any(getattr(entry, "event", None) is overdue for entry in entries(home)))


async def test_an_operator_may_end_a_debate_that_the_disk_holds_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FaultyDisk()
    async with debate(tmp_path, ("ada", "bob"), disk=disk) as home:
        watching, operator = await home.operator(), await home.operator()
        await watching.ask(m.Watch())
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        disk.on_write = NO_SPACE
        await ada.says(1, "Lost.")
        await ada.control.hear(m.DebatePaused)
        await operator.say(m.Terminate())
        assert (await ada.control.hear(m.DebateEnded)).outcome is DebateState.ERROR
        await bob.control.hear(m.DebatePaused)
        assert (await bob.control.hear(m.DebateEnded)).outcome is DebateState.ERROR
        *seen, failure = await watching.rest()
        assert "No space left on device" in failure.message
        assert await home.outcome() is DebateState.ERROR
        assert not home.house.whole
        assert "the transcript is not complete" in caplog.text
        found = inspect(read_lines(home.transcript))
        assert found.whole, "what was acknowledged is whole; what was not is cut off"
        assert found.count == len(seen)


async def test_an_operator_may_end_it_also_when_a_turn_has_run_out_meanwhile(tmp_path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, ("ada", "bob"), disk=disk, limits={"turn_seconds": 0.3}) as home:
        operator = await home.operator()
        ada, _ = await home.joined("ada", "bob")
        await ada.turn()
        disk.on_write = NO_SPACE
        await operator.say(m.Inject(text="Mind the disk."))
        await ada.control.hear(m.DebatePaused)
        await anyio.sleep(0.4)
        await operator.say(m.Terminate())
        assert (await ada.control.hear(m.DebateEnded)).outcome is DebateState.ERROR
        assert await home.outcome() is DebateState.ERROR
        assert home.debate.meter.elapsed(0) < 0.3, "it stood still meanwhile"


async def test_a_seat_that_talks_on_while_the_disk_is_full_keeps_no_operator_from_being_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "RETRY", 0.05)
    monkeypatch.setattr(service, "MOST_SET_ASIDE", 5)
    monkeypatch.setattr(service, "SIZE", 9)  # five of bob's, his end; ada's ACK, SPEECH, TURN_END
    disk = FaultyDisk(only=is_transcript)
    async with debate(tmp_path, disk=disk, inbox=2) as home:
        operator, other = await home.operator(), await home.operator()
        ada, bob, cyn = await home.joined(*NAMES)
        await ada.turn()
        disk.on_write = NO_SPACE
        await other.say(m.Inject(text="Mind the disk."))
        await ada.control.hear(m.DebatePaused)
        await bob.control.channel.send_many((m.StateUpdate(required=False), None) for _ in range(20))
        await until(lambda: len(home.reception.seats) == 2)
        assert (await operator.ask(m.StatusRequest())).debate_state is DebateState.PAUSED
        await ada.says(1, "Not lost.")
        disk.on_write = None
        await until(lambda: EventName.PARTICIPANT_FAULT in event_names(entries(home)))
        # What ada has said is on its way on two connections, and may come after that.
        await until(lambda: turn_records(home))
        assert [turn.text for turn in turn_records(home)] == ["Not lost."]
        status = await operator.ask(m.StatusRequest())
        assert [seat.connected for seat in status.seats] == [True, False, True]
        await cyn.control.hear(m.DebatePaused)


async def test_an_outcome_whose_record_cannot_be_sealed_is_no_good_end(tmp_path: Path) -> None:
    async with debate(tmp_path, disk=FaultyDisk(only=is_head, on_write=NO_SPACE)) as home:
        assert isinstance(await (await home.operator()).ask(m.Terminate()), m.AdminOk)
        assert await home.outcome() is DebateState.FINISHED
        assert not home.house.whole
        assert home.house.exit_code == 1


async def test_a_disk_that_is_full_from_the_beginning_ends_it_before_it_begins(tmp_path: Path) -> None:
    async with debate(tmp_path, disk=FaultyDisk(on_write=NO_SPACE)) as home:
        assert await home.outcome() is DebateState.ERROR
        assert not home.house.whole


# --- watching -----------------------------------------------------------------------------------------


async def test_a_watcher_hears_the_last_record_however_quickly_everybody_leaves(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob"), buffer=65536, grace=2) as home:
        slow = await home.connect("admin", home.context("operator", "operator"), buffer=65536)
        operator = await home.operator()
        await home.joined("ada", "bob")
        await slow.say(m.Watch())
        for _ in range(20):
            assert isinstance(await operator.ask(m.Inject(text="x" * 30_000)), m.AdminOk)
        for seat in ("ada", "bob"):
            await operator.ask(m.Kick(seat=seat))
        await until(lambda: not home.reception.seats)
        await operator.say(m.Terminate())
        await anyio.sleep(0.3)  # the record is closed by now, and nobody is left but the slow reader
        confirmed, *seen = await slow.rest()
        assert confirmed == m.AdminOk(operation="WATCH")
        assert seen[-1].record["event"] == "DEBATE_ENDED"
        assert [message.record["seq"] for message in seen] == list(range(len(seen)))


async def test_watching_begins_where_the_operator_says_even_beyond_the_end(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        beyond = await home.operator()
        assert isinstance(await beyond.ask(m.Watch(from_seq=3)), m.AdminOk)
        never = await home.operator()
        assert isinstance(await never.ask(m.Watch(from_seq=2**53)), m.AdminOk)
        await home.joined("ada", "bob")  # header, ada, bob, started, turn
        assert [(await beyond.hear(m.Record)).record["seq"] for _ in range(2)] == [3, 4]
        assert await never.hears_nothing(0.05)
        operator = await home.operator()
        await operator.ask(m.Terminate())
        assert await home.outcome() is DebateState.FINISHED
        assert await never.rest() == []


async def test_one_connection_watches_once_at_a_time(tmp_path: Path) -> None:
    async with debate(tmp_path) as home:
        operator = await home.operator()
        assert isinstance(await operator.ask(m.Watch(from_seq=1)), m.AdminOk)
        assert (await operator.ask(m.Watch())).code == "INVALID_STATE"
        assert isinstance(await operator.ask(m.StatusRequest()), m.Status)


async def test_the_record_cannot_be_watched_once_it_is_closed(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        operator, late = await home.operator(), await home.operator()
        await home.joined("ada", "bob")  # they stay to the end of the grace
        await operator.ask(m.Terminate())
        assert isinstance(await late.ask(m.StatusRequest()), m.Status), "but STATUS is still answered"
        await until(lambda: home.house.journal.durable == home.house.journal.count)
        await anyio.sleep(0.1)
        msg_id = await late.say(m.Watch())
        assert (await late.line()).message == m.AdminOk(operation="WATCH")
        line = await late.line()
        assert (line.message.code, line.message.message) == ("INVALID_STATE", "the transcript is closed")
        assert line.in_reply_to == msg_id


# --- after the end ------------------------------------------------------------------------------------


async def test_after_the_end_everybody_has_a_moment_and_is_then_closed(tmp_path: Path) -> None:
    async with debate(tmp_path, ("ada", "bob")) as home:
        operator = await home.operator()
        ada, bob = await home.joined("ada", "bob")
        await ada.turn()
        began = anyio.current_time()
        await operator.ask(m.Terminate())
        await bob.control.hear(m.DebateEnded)
        await bob.close()
        assert (await ada.control.hear(m.TurnRevoked)).reason == "debate_ended"
        await ada.control.hear(m.DebateEnded)
        assert (await ada.data.ask(m.Speech(turn_id=1, text="Still!"))).code == "TURN_MISMATCH"
        newcomer = await home.guest("cyn").arrive()
        assert (await newcomer.ask(m.Reg(name="cyn"))).code == "INVALID_STATE"
        assert await ada.control.rest() == []
        assert await ada.data.rest() == []
        assert await home.outcome() is DebateState.FINISHED
        assert anyio.current_time() - began < 20
        assert ended(home)["outcome"] == "FINISHED"
        with pytest.raises(OSError, match="All connection attempts failed"):
            await home.operator()
