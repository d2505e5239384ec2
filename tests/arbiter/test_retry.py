"""A full disk loses nothing and doubles nothing: what it refused is written once there is space again."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import pytest
import transcripts
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import (
    BROKEN,
    NO_SPACE,
    FaultyDisk,
    again,
    close_failed,
    content,
    inspected,
    is_transcript,
    start,
)

from consilium.errors import TranscriptError
from consilium.transcript import read_head, read_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arbiter.journal import Journal
    from consilium.records import AnyEntry

pytestmark = pytest.mark.anyio

ENTRIES = transcripts.debate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk(only=is_transcript)


def mend(disk: FaultyDisk) -> None:
    disk.short = disk.on_write = disk.on_sync = disk.on_truncate = None


async def is_refused(journal: Journal, entries: Sequence[AnyEntry]) -> None:
    with pytest.raises(TranscriptError, match="could not be written"):
        await journal.append_durably(entries)


async def holds(path: Path, journal: Journal, told: Sequence[AnyEntry]) -> None:
    """The transcript, closed, is whole and tells ``told``: nothing lost, nothing twice."""
    await journal.close()
    assert inspected(path).whole
    assert [stored.entry for stored in read_records(path, read_head(path))[0]] == list(told)


@pytest.mark.parametrize(
    "fault", [{"on_write": NO_SPACE}, {"on_sync": NO_SPACE}, {"on_sync": BROKEN}, {"short": 30}]
)
async def test_what_a_full_disk_refused_is_written_once_there_is_space(
    path: Path, disk: FaultyDisk, fault: dict[str, object]
) -> None:
    journal = start(path, disk)
    lines = await journal.append_durably(ENTRIES[:4])
    for name, value in fault.items():
        setattr(disk, name, value)
    await is_refused(journal, ENTRIES[4:7])
    assert journal.failure
    assert (journal.count, journal.durable) == (7, 4)
    assert content(path) == b"".join(line + b"\n" for line in lines)
    mend(disk)
    await journal.retry()
    assert (journal.count, journal.durable) == (7, 7)
    await journal.append_durably(ENTRIES[7:])
    await holds(path, journal, ENTRIES)


async def test_while_the_disk_refuses_nothing_is_taken_on_top(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[1:2])
    with pytest.raises(TranscriptError, match="No space left on device"):
        journal.append(ENTRIES[2:3])
    with pytest.raises(TranscriptError, match="No space left on device"):
        await journal.commit()
    mend(disk)
    await journal.retry()
    await holds(path, journal, ENTRIES[:2])


async def test_a_retry_that_fails_again_keeps_everything_and_may_be_repeated(
    path: Path, disk: FaultyDisk, caplog: pytest.LogCaptureFixture
) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[1:3])
    for _ in range(3):
        with pytest.raises(TranscriptError, match="No space left on device"):
            await journal.retry()
    disk.on_write, disk.on_sync = None, BROKEN
    with pytest.raises(TranscriptError, match="Input/output error"):
        await journal.retry()
    assert journal.failure == "the transcript could not be written: Input/output error"
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]  # each reason once
    mend(disk)
    await journal.retry()
    await holds(path, journal, ENTRIES[:3])


async def test_a_part_that_could_not_be_cut_off_is_cut_off_before_anything_is_written(
    path: Path, disk: FaultyDisk
) -> None:
    journal = start(path, disk)
    lines = await journal.append_durably(ENTRIES[:4])
    disk.short, disk.on_truncate = 30, BROKEN
    await is_refused(journal, ENTRIES[4:6])
    durable = b"".join(line + b"\n" for line in lines)
    torn = content(path)
    assert len(torn) == len(durable) + 30
    disk.short = None
    with pytest.raises(TranscriptError, match="nor could what was written of it be cut off again"):
        await journal.retry()
    assert content(path) == torn
    mend(disk)
    await journal.retry()
    await holds(path, journal, ENTRIES[:6])


async def test_what_was_appended_behind_a_failing_batch_keeps_its_place(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.gate, disk.on_sync = threading.Event(), NO_SPACE
    journal.append(ENTRIES[1:2])
    while len(disk.writes) < 2:  # noqa: ASYNC110 - another thread's work
        await anyio.sleep(0.001)
    journal.append(ENTRIES[2:4])  # the batch before is on its way, and will fail
    disk.gate.set()
    with pytest.raises(TranscriptError):
        await journal.commit()
    assert journal.durable == 1
    mend(disk)
    await journal.retry()
    await holds(path, journal, ENTRIES[:4])


async def test_a_retry_without_a_failure_is_a_commit(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.retry()
    journal.append(ENTRIES)
    await journal.retry()
    assert journal.durable == len(ENTRIES)
    await holds(path, journal, ENTRIES)


async def test_tasks_that_retry_together_write_everything_once(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[1:])
    mend(disk)
    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(journal.retry)
    await holds(path, journal, ENTRIES)


async def test_a_retry_that_is_cancelled_takes_nothing_back(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[1:])
    mend(disk)
    disk.gate = threading.Event()
    with anyio.move_on_after(0.05) as patience:
        await journal.retry()
    assert patience.cancelled_caught
    disk.gate.set()
    await journal.retry()
    await holds(path, journal, ENTRIES)


async def test_a_watcher_waits_through_a_failure(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    lines = await journal.append_durably(ENTRIES[:4])
    seen: list[bytes] = []

    async def watch() -> None:
        async for lot in journal.follow():
            seen.extend(lot)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        disk.on_sync = NO_SPACE
        await is_refused(journal, ENTRIES[4:6])
        while len(seen) < len(lines):  # noqa: ASYNC110 - another thread's work
            await anyio.sleep(0.001)
        await anyio.wait_all_tasks_blocked()
        assert seen == lines
        mend(disk)
        await journal.retry()
        lines += await journal.append_durably(ENTRIES[6:])
        await journal.close()
    assert seen[:4] == lines[:4]
    assert len(seen) == len(ENTRIES)
    assert b"".join(line + b"\n" for line in seen) == content(path)


async def test_the_head_vouches_for_what_is_on_disk_and_then_for_the_rest(
    path: Path, disk: FaultyDisk
) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:4])
    await journal.seal_head()
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[4:6])
    with pytest.raises(TranscriptError, match="No space left on device"):
        await journal.seal_head()
    head = read_head(path)
    assert head is not None
    assert head.count == 4
    mend(disk)
    await journal.retry()
    await journal.seal_head()
    head = read_head(path)
    assert head is not None
    assert (head.count, head.last) == (6, journal.last)
    await journal.close()


async def test_closing_does_not_try_again_and_says_that_something_is_lost(
    path: Path, disk: FaultyDisk
) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:4])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[4:6])
    mend(disk)
    with pytest.raises(TranscriptError, match="No space left on device"):
        await journal.close()
    with pytest.raises(TranscriptError, match="closed"):
        await journal.retry()
    assert inspected(path).whole
    assert inspected(path).count == 4


async def test_closing_during_a_retry_lets_it_finish(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:1])
    disk.on_write = NO_SPACE
    await is_refused(journal, ENTRIES[1:])
    mend(disk)
    disk.gate = threading.Event()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(journal.retry)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(journal.close)
        await anyio.wait_all_tasks_blocked()
        disk.gate.set()
    assert inspected(path).count == len(ENTRIES)


async def test_what_a_killed_arbiter_could_not_write_is_not_missed(path: Path, disk: FaultyDisk) -> None:
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:4])
    disk.short, disk.on_truncate = 30, NO_SPACE
    await is_refused(journal, ENTRIES[4:6])
    await close_failed(journal)
    after, recovered = again(path)
    assert recovered.dropped is not None
    assert "30 bytes of record 4" in recovered.dropped
    await after.append_durably(ENTRIES[4:])
    await holds(path, after, ENTRIES)


FAULTS = st.sampled_from(["short", "on_write", "on_sync", "on_truncate"])


@given(
    steps=st.lists(st.integers(1, 3) | FAULTS | st.just("mend") | st.just("retry"), max_size=14),
    error=st.sampled_from([NO_SPACE, BROKEN]),
)
@settings(max_examples=100, deadline=None)
def test_whatever_the_disk_does_what_was_appended_is_there_once_and_in_order_in_the_end(
    tmp_path_factory: pytest.TempPathFactory, steps: list[int | str], error: Exception
) -> None:
    path = tmp_path_factory.mktemp("journal") / "debate.jsonl"

    async def run() -> None:
        disk = FaultyDisk(only=is_transcript)
        journal = start(path, disk)
        await journal.append_durably(ENTRIES[:1])
        told: list[AnyEntry] = [ENTRIES[0]]
        acknowledged = 1
        for step in steps:
            match step:
                case "retry" | int():
                    refused = journal.failure is not None and step != "retry"
                    entries = (
                        [] if step == "retry" else [transcripts.turn(len(told)) for _ in range(int(step))]
                    )
                    told += [] if refused else entries
                    try:
                        await (journal.append_durably(entries) if entries else journal.retry())
                        acknowledged = len(told)
                    except TranscriptError:
                        assert journal.failure is not None
                case "mend":
                    mend(disk)
                case fault:
                    setattr(disk, fault, 17 if fault == "short" else error)
            assert journal.count == len(told)
            assert journal.durable == acknowledged
            assert len(content(path).splitlines()) >= acknowledged
        mend(disk)
        await journal.retry()
        await holds(path, journal, told)

    anyio.run(run)
