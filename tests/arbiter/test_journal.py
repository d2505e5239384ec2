"""What the journal acknowledges is on disk, in order and whole; watchers see it, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

import anyio
import pytest
import transcripts
from journals import BROKEN, FaultyDisk, close_failed, content, inspected, is_transcript, start

from arbiter import journal as journal_module
from arbiter.journal import Journal
from consilium.errors import TranscriptError
from consilium.records import GENESIS, EventName, digest, unseal
from consilium.transcript import read_head, read_records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

ENTRIES = transcripts.debate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


async def test_what_is_appended_durably_is_in_the_file_as_returned(path: Path) -> None:
    journal = start(path)
    lines = await journal.append_durably(ENTRIES)
    assert content(path) == b"".join(line + b"\n" for line in lines)
    assert [unseal(line).entry for line in lines] == ENTRIES
    assert (journal.count, journal.last) == (len(ENTRIES), digest(lines[-1]))
    assert journal.durable == len(ENTRIES)
    await journal.close()


async def test_each_append_has_its_own_time_and_continues_the_chain(path: Path) -> None:
    journal = start(path)
    (first,) = journal.append(ENTRIES[:1])
    (second,) = journal.append(ENTRIES[1:2])
    await journal.commit()
    assert unseal(second).prev == digest(first)
    assert unseal(first).ts < unseal(second).ts
    await journal.close()
    assert inspected(path).whole


async def test_the_order_of_the_records_is_the_order_of_the_calls(path: Path) -> None:
    journal = start(path)
    await journal.append_durably(ENTRIES[:1])

    async def speak(number: int) -> None:
        await journal.append_durably([transcripts.turn(number)])

    async with anyio.create_task_group() as tasks:
        for number in range(40):
            tasks.start_soon(speak, number)
    await journal.close()
    stored, torn = read_records(path, read_head(path))
    assert [getattr(record.entry, "turn_id", None) for record in stored[1:]] == list(range(40))
    assert torn is None


async def test_tasks_that_wait_together_share_one_sync(path: Path) -> None:
    disk = FaultyDisk(gate=threading.Event(), only=is_transcript)
    journal = start(path, disk)
    journal.append(ENTRIES[:1])
    async with anyio.create_task_group() as tasks:
        for number in range(16):
            tasks.start_soon(journal.append_durably, [transcripts.turn(number)])
        await anyio.wait_all_tasks_blocked()
        assert disk.gate is not None
        disk.gate.set()
    assert journal.stats.records == 17
    assert journal.stats.syncs <= 3
    assert journal.stats.sync_seconds > 0
    await journal.close()


async def test_the_loops_own_thread_never_asks_the_disk_for_anything(path: Path) -> None:
    disk = FaultyDisk()
    journal = start(path, disk)
    for number, entry in enumerate(ENTRIES):
        await journal.append_durably([entry])
        if number % 5 == 0:
            await journal.seal_head()
    await journal.close()
    assert disk.threads
    assert threading.get_ident() not in disk.threads


async def test_a_disk_that_stalls_does_not_hold_up_the_loop(path: Path) -> None:
    disk = FaultyDisk(gate=threading.Event(), only=is_transcript)
    journal = start(path, disk)
    done = anyio.Event()

    async def append() -> None:
        await journal.append_durably(ENTRIES[:3])
        done.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(append)
        started = time.monotonic()
        for _ in range(20):
            await anyio.sleep(0.005)
        assert time.monotonic() - started < 20
        assert not done.is_set()
        assert journal.durable == 0
        assert disk.gate is not None
        disk.gate.set()
    assert done.is_set()
    await journal.close()


async def test_without_sync_the_disk_is_not_waited_for(path: Path) -> None:
    disk = FaultyDisk(on_sync=BROKEN)
    journal = start(path, disk, sync=False)
    await journal.append_durably(ENTRIES)
    await journal.seal_head()
    await journal.close()
    assert journal.stats.syncs == 0
    assert inspected(path).whole


async def test_nothing_appended_is_nothing_to_wait_for(path: Path) -> None:
    journal = start(path)
    await journal.commit()
    assert await journal.append_durably([]) == []
    assert journal.last == GENESIS
    await journal.close()


async def test_a_transcript_begins_with_its_header(path: Path) -> None:
    journal = start(path)
    with pytest.raises(TranscriptError, match="begins with its header"):
        journal.append(ENTRIES[1:])
    assert journal.count == 0
    await journal.close()


async def test_an_entry_that_cannot_be_written_takes_its_whole_call_with_it(path: Path) -> None:
    journal = start(path)
    await journal.append_durably(ENTRIES[:1])
    with pytest.raises(TranscriptError, match="cannot be written as JSON"):
        journal.append([ENTRIES[1], transcripts.event(EventName.CAP_REACHED, used=2**70)])
    await journal.append_durably(ENTRIES[1:])
    await journal.close()
    stored, _ = read_records(path)
    assert [record.entry for record in stored] == ENTRIES


async def test_a_waiter_that_is_cancelled_takes_nothing_back(path: Path) -> None:
    disk = FaultyDisk(gate=threading.Event(), only=is_transcript)
    journal = start(path, disk)
    with anyio.move_on_after(0.05) as patience:
        await journal.append_durably(ENTRIES[:2])
    assert patience.cancelled_caught
    assert disk.gate is not None
    disk.gate.set()
    await journal.append_durably(ENTRIES[2:])
    await journal.close()
    assert len(read_records(path)[0]) == len(ENTRIES)


async def test_a_closed_journal_takes_nothing_more(path: Path) -> None:
    journal = start(path)
    await journal.append_durably(ENTRIES[:1])
    await journal.close()
    await journal.close()
    with pytest.raises(TranscriptError, match="closed"):
        journal.append(ENTRIES[1:])
    with pytest.raises(TranscriptError, match="closed"):
        await anext(journal.follow())


async def test_closing_writes_what_nobody_waited_for(path: Path) -> None:
    journal = start(path)
    journal.append(ENTRIES)
    await journal.close()
    assert inspected(path).whole


async def test_closing_under_cancellation_still_writes_everything(path: Path) -> None:
    journal = start(path)
    journal.append(ENTRIES)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await journal.close()
    assert inspected(path).whole


# --- watching ----------------------------------------------------------------------------------------


async def follow(journal: Journal, from_seq: int, seen: list[bytes]) -> None:
    async for lines in journal.follow(from_seq):
        seen.extend(lines)


@pytest.mark.parametrize("from_seq", [0, 3, 18, 19, 30])
async def test_a_watcher_gets_the_records_that_are_there_and_each_new_one(path: Path, from_seq: int) -> None:
    journal = start(path)
    lines = await journal.append_durably(ENTRIES[:8])
    seen: list[bytes] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow, journal, from_seq, seen)
        await anyio.wait_all_tasks_blocked()
        for entry in ENTRIES[8:]:
            lines += await journal.append_durably([entry])
        await journal.close()
    assert seen == lines[from_seq:]


async def test_many_watchers_all_see_every_record_up_to_the_last(path: Path) -> None:
    journal = start(path)
    views: list[list[bytes]] = [[] for _ in range(5)]
    async with anyio.create_task_group() as tasks:
        for view in views:
            tasks.start_soon(follow, journal, 0, view)
        await anyio.wait_all_tasks_blocked()
        lines = journal.append(ENTRIES)
        await journal.close()
    assert all(view == lines for view in views)


async def test_a_watcher_never_sees_a_record_that_is_not_on_disk(path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    journal = start(path, disk)
    lines = await journal.append_durably(ENTRIES[:4])
    disk.on_sync = BROKEN
    journal.append(ENTRIES[4:])
    seen: list[bytes] = []

    async def watch() -> None:
        with pytest.raises(TranscriptError, match="Input/output error"):
            await follow(journal, 0, seen)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        with pytest.raises(TranscriptError):
            await journal.commit()
        await anyio.wait_all_tasks_blocked()
        await close_failed(journal)
    assert seen == lines


async def test_a_watcher_reads_in_bounded_lots_but_always_a_whole_record(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = start(path)
    lines = await journal.append_durably(ENTRIES)
    longest = max(map(len, lines))
    for chunk in (1, longest + 1, 3 * longest, 10**6):
        monkeypatch.setattr(journal_module, "CHUNK_BYTES", chunk)
        lots: list[list[bytes]] = []
        with anyio.move_on_after(0.2):
            async for lot in journal.follow():
                lots.append(lot)  # noqa: PERF401 - cancelled in the middle, on purpose
        assert [line for lot in lots for line in lot] == lines
        for lot in lots:
            assert len(lot) == 1 or sum(len(line) + 1 for line in lot) <= chunk
    await journal.close()


async def test_a_file_that_shrinks_under_a_watcher_is_said(path: Path) -> None:
    journal = start(path)
    await journal.append_durably(ENTRIES)
    with path.open("r+b") as file:
        file.truncate(10)
    with pytest.raises(TranscriptError, match="cut while it was being read"):
        await anext(journal.follow())
    await journal.close()


# --- a killed process --------------------------------------------------------------------------------

CHILD = """
import sys
from pathlib import Path
import anyio, transcripts
from journals import start

async def main():
    journal = start(Path(sys.argv[1]))
    lines = await journal.append_durably([transcripts.header()])
    for number in range(1, 10**6):
        print(journal.count, flush=True)
        await journal.append_durably([transcripts.turn(number)])

anyio.run(main)
"""


def test_what_was_acknowledged_is_there_after_a_kill(path: Path) -> None:
    command = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, env={"PYTHONPATH": os.pathsep.join(sys.path)}
    ) as child:
        assert child.stdout is not None
        acknowledged = 0
        while acknowledged < 50:
            acknowledged = int(child.stdout.readline())
        child.kill()
        rest = child.stdout.read().split()
        acknowledged = int(rest[-1]) if rest else acknowledged
    head = read_head(path)
    stored, torn = read_records(path, head)
    assert len(stored) >= acknowledged
    assert head is not None
    assert head.count <= len(stored)
    assert torn is None or not torn.endswith(b"\n")
