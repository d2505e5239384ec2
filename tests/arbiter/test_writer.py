"""A disk that fails costs nothing that was acknowledged, and everybody who waits is told why."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import anyio
import pytest
import transcripts
from hypothesis import given, settings
from hypothesis import strategies as st
from journals import BROKEN, NO_SPACE, FaultyDisk, close_failed, content, inspected, is_transcript, start

from consilium.errors import TranscriptError
from consilium.transcript import read_head, read_records

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

ENTRIES = transcripts.debate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ({"short": 30}, "the disk took 30 of"),
        ({"short": 0}, "the disk took 0 of"),
        ({"on_write": NO_SPACE}, "No space left on device"),
        ({"on_write": BROKEN}, "Input/output error"),
        ({"on_sync": BROKEN}, "Input/output error"),
        ({"on_sync": NO_SPACE}, "No space left on device"),
        ({"on_write": RuntimeError("a bug")}, "a bug"),
        ({"on_write": RuntimeError()}, r"RuntimeError\(\)"),
    ],
)
async def test_a_failure_reaches_everybody_who_waits_and_loses_nothing_acknowledged(
    path: Path, fault: dict[str, object], reason: str
) -> None:
    disk = FaultyDisk(only=is_transcript)
    journal = start(path, disk)
    acknowledged = await journal.append_durably(ENTRIES[:4])
    for name, value in fault.items():
        setattr(disk, name, value)
    failures: list[str] = []

    async def speak(number: int) -> None:
        with pytest.raises(TranscriptError, match=reason) as caught:
            await journal.append_durably([transcripts.turn(number)])
        failures.append(str(caught.value))

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(speak, number)
    assert len(failures) == 5
    assert all(text.startswith("the transcript could not be written: ") for text in failures)
    with pytest.raises(TranscriptError, match=reason):
        journal.append([transcripts.turn(9)])
    with pytest.raises(TranscriptError, match=reason):
        await journal.seal_head()
    await close_failed(journal)
    assert content(path) == b"".join(line + b"\n" for line in acknowledged)
    assert inspected(path).whole


async def test_after_a_failure_the_disk_is_not_tried_again(path: Path) -> None:
    disk = FaultyDisk(on_write=NO_SPACE, only=is_transcript)
    journal = start(path, disk)
    with pytest.raises(TranscriptError):
        await journal.append_durably(ENTRIES[:1])
    disk.on_write = None
    tried = len(disk.writes)
    with pytest.raises(TranscriptError):
        await journal.append_durably(ENTRIES[:1])
    await close_failed(journal)
    assert len(disk.writes) == tried


async def test_what_was_enqueued_behind_a_failing_batch_fails_with_it(path: Path) -> None:
    disk = FaultyDisk(gate=threading.Event(), on_sync=BROKEN, only=is_transcript)
    journal = start(path, disk)

    async def append(entry: int) -> None:
        with pytest.raises(TranscriptError, match="Input/output error"):
            await journal.append_durably(ENTRIES[entry : entry + 1])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(append, 0)
        await anyio.sleep(0.05)  # the first batch is on its way
        tasks.start_soon(append, 1)
        await anyio.wait_all_tasks_blocked()
        assert disk.gate is not None
        disk.gate.set()
    await close_failed(journal)
    assert content(path) == b""


async def test_a_partial_write_that_cannot_be_cut_off_is_said(path: Path) -> None:
    disk = FaultyDisk(only=is_transcript)
    journal = start(path, disk)
    await journal.append_durably(ENTRIES[:4])
    disk.short, disk.on_truncate = 30, BROKEN
    with pytest.raises(TranscriptError, match="nor could what was written of it be cut off again"):
        await journal.append_durably(ENTRIES[4:])
    await close_failed(journal)
    stored, torn = read_records(path, read_head(path))
    assert len(stored) == 4
    assert torn is not None
    assert len(torn) == 30


@given(
    batches=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    fault=st.sampled_from(["short", "on_write", "on_sync"]),
    when=st.integers(0, 5),
)
@settings(max_examples=40, deadline=None)
def test_wherever_the_disk_fails_the_file_holds_what_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory, batches: list[int], fault: str, when: int
) -> None:
    path = tmp_path_factory.mktemp("journal") / "debate.jsonl"

    async def run() -> int:
        disk = FaultyDisk(only=is_transcript)
        journal = start(path, disk)
        acknowledged = len(await journal.append_durably(ENTRIES[:1]))
        for number, size in enumerate(batches):
            if number == when:
                setattr(disk, fault, 17 if fault == "short" else NO_SPACE)
            try:
                acknowledged += len(await journal.append_durably(ENTRIES[1 : 1 + size]))
            except TranscriptError:
                break
        try:
            await journal.close()
        except TranscriptError:
            assert when < len(batches)
        return acknowledged

    acknowledged = anyio.run(run)
    inspection = inspected(path)
    assert inspection.whole
    assert inspection.count == acknowledged
