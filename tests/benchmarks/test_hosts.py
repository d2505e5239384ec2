"""What the measured processes are made of, as far as it decides something."""

from __future__ import annotations

import itertools
import threading
from pathlib import Path

import anyio
import orjson
import pytest

from benchmarks.hosts.arbiter import CountingDisk, council
from benchmarks.hosts.fleeting import Fleeting
from benchmarks.hosts.model import Model, names
from consilium.messages import Phase
from consilium.records import GENESIS, EventName, EventRecord, digest


def test_a_sync_on_the_event_loops_thread_is_told_from_one_beside_it(tmp_path: Path) -> None:
    disk = CountingDisk()
    with (tmp_path / "record").open("wb") as record:
        thread = threading.Thread(target=disk.fdatasync, args=(record.fileno(),))
        thread.start()
        thread.join()
        assert (disk.syncs, disk.syncs_on_loop) == (1, 0)
        disk.fdatasync(record.fileno())
    assert (disk.syncs, disk.syncs_on_loop) == (2, 1)


def test_the_record_without_sync_is_sealed_as_the_journals_is(tmp_path: Path) -> None:
    path = tmp_path / "record"
    record = Fleeting(path, lambda: 1_900_000_000.0)
    entry = EventRecord(event=EventName.DEBATE_STARTED)

    async def append() -> list[bytes]:
        return [*await record.append_durably([entry, entry]), *await record.append_durably([entry])]

    lines = anyio.run(append)
    assert path.read_bytes() == b"".join(line + b"\n" for line in lines)
    fields = [orjson.loads(line) for line in lines]
    assert [each["seq"] for each in fields] == [0, 1, 2]
    assert [each["prev"] for each in fields] == [GENESIS, digest(lines[0]), digest(lines[1])]


def test_an_idle_debate_waits_for_somebody_and_any_seat_may_wait_with_it() -> None:
    rules = council(1000, idle=True)
    assert rules.roster.mode == "dynamic"
    assert rules.roster.awaited.isdisjoint(names(1000))
    assert rules.limits.max_seats >= 1000


def test_a_measured_debate_begins_when_its_seats_are_there() -> None:
    assert council(3, idle=False).roster.awaited == frozenset(names(3))


def test_the_references_context_holds_the_two_speeches_before(tmp_path: Path) -> None:
    model = Model.recorded_in(tmp_path)
    for number, name in zip(range(3), itertools.cycle(names(3)), strict=False):
        start, context = map(orjson.loads, model.start())
        assert start["turn_id"] == context["turn_id"] == number + 1
        assert start["phase"] == Phase.OPENING
        said = [b'{"type":"ACK"}', orjson.dumps({"text": f"speech {number}"}), b'{"type":"TURN_END"}']
        model.end(name, said)
    assert [each["text"] for each in orjson.loads(model.start()[1])["delta"]] == ["speech 1", "speech 2"]
    (record,) = tmp_path.iterdir()
    assert len(record.read_bytes().splitlines()) == 3


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_a_turns_messages_reach_the_reference_in_any_order(tmp_path: Path, order: tuple[int, ...]) -> None:
    model = Model.recorded_in(tmp_path)
    said = [b'{"type":"ACK"}', b'{"text":"so be it"}', b'{"type":"TURN_END"}']
    model.start()
    model.end("seat", [said[place] for place in order])
    assert orjson.loads(model.start()[1])["delta"] == [{"from": "seat", "text": "so be it"}]
