"""A transcript is taken up where its Arbiter left it, or refused with what is wrong: never quietly mended."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

import anyio
import pytest
import seals
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

from arbiter import recovery, writer
from consilium import records
from consilium.errors import TranscriptError, UserError
from consilium.records import AnyEntry, digest, seal, timestamp
from consilium.transcript import head_path, read_head, read_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from arbiter.recovery import Recovered

pytestmark = pytest.mark.anyio

ENTRIES = transcripts.debate()
LINES = transcripts.sealed(ENTRIES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


def left(path: Path, data: bytes, vouched: Sequence[bytes] = ()) -> Path:
    """``data`` as an Arbiter has left it, with a head that knows the lines ``vouched``."""
    path.write_bytes(data)
    path.chmod(0o600)
    head_path(path).unlink(missing_ok=True)
    if vouched:
        head = seals.arbiter().signer.sign(transcripts.head_of(vouched))
        head_path(path).write_text(head.model_dump_json())
    return path


def refused(path: Path) -> UserError:
    """Why no debate can go on in it; nothing was changed, and nothing is held."""
    before = content(path)
    errors = []
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            again(path)
        errors.append(caught.value)
    first, second = errors
    assert content(path) == before
    assert first.message == second.message
    assert first.message.startswith(f"no debate can go on in {path}: ")
    assert first.hint == f"consilium transcript verify {path}"
    return first


def entries(recovered: Recovered) -> list[AnyEntry]:
    first = [] if recovered.header is None else [recovered.header]
    return [*first, *(entry for _, entry in recovered.told)]


async def goes_on(path: Path, told: Sequence[AnyEntry], *, dropped: str | None = None) -> None:
    """The file holds ``told``, says that ``dropped`` was dropped, and takes more: whole at the end."""
    journal, recovered = again(path)
    assert entries(recovered) == list(told)
    if dropped is None:
        assert recovered.dropped is None
    else:
        assert recovered.dropped is not None
        assert dropped in recovered.dropped
    assert journal.count == journal.durable == len(told)
    more = [*([] if told else ENTRIES[:1]), transcripts.turn(77)]
    await journal.append_durably(more)
    await journal.close()
    assert inspected(path).whole
    assert [stored.entry for stored in read_records(path, read_head(path))[0]] == [*told, *more]


# --- going on ----------------------------------------------------------------------------------------


async def test_a_journal_goes_on_where_the_one_before_it_ended(path: Path) -> None:
    first = start(path)
    await first.append_durably(ENTRIES[:7])
    await first.close()
    second, recovered = again(path)
    assert (second.count, second.durable, second.last) == (7, 7, first.last)
    assert recovered.header == ENTRIES[0]
    assert [entry for _, entry in recovered.told] == ENTRIES[1:7]
    assert (recovered.dropped, recovered.doubt) == (None, None)
    await second.append_durably(ENTRIES[7:])
    await second.close()
    assert [stored.entry for stored in read_records(path, read_head(path))[0]] == ENTRIES
    assert inspected(path).whole


async def test_the_times_are_those_of_the_records(path: Path) -> None:
    left(path, b"".join(LINES), LINES)
    journal, recovered = again(path)
    assert [seconds for seconds, _ in recovered.told] == [transcripts.START + n for n in range(1, len(LINES))]
    assert recovered.until == transcripts.START + len(LINES) - 1
    await journal.close()


async def test_a_clock_that_was_set_back_sets_no_time_back(path: Path) -> None:
    times = [5.0, 9.0, 2.0, 7.0, 11.0]
    lines: list[bytes] = []
    for seq, (entry, seconds) in enumerate(zip(ENTRIES, times, strict=False)):
        prev = digest(lines[-1][:-1]) if lines else records.GENESIS
        lines.append(seal(entry, seq=seq, prev=prev, ts=timestamp(seconds)) + b"\n")
    journal, recovered = again(left(path, b"".join(lines), lines))
    assert [seconds for seconds, _ in recovered.told] == [9.0, 9.0, 9.0, 11.0]
    assert recovered.until == 11.0
    await journal.close()


@pytest.mark.parametrize("from_seq", [0, 5, len(ENTRIES) - 1, len(ENTRIES)])
async def test_a_watcher_of_the_next_journal_sees_also_what_was_there(path: Path, from_seq: int) -> None:
    journal, _ = again(left(path, b"".join(LINES), LINES))
    (line,) = await journal.append_durably([transcripts.turn(9)])
    seen: list[bytes] = []

    async def watch() -> None:
        async for lot in journal.follow(from_seq):
            seen.extend(lot)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watch)
        await anyio.wait_all_tasks_blocked()
        await journal.close()
    assert seen == [*(line[:-1] for line in LINES), line][from_seq:]


@pytest.mark.parametrize("vouched", [1, 4, len(LINES) - 1])
async def test_a_head_that_lags_behind_is_in_order_and_catches_up(
    path: Path, vouched: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HEAD_INTERVAL_S", 0.0)
    left(path, b"".join(LINES), LINES[:vouched])
    journal, recovered = again(path)
    assert recovered.doubt is None
    with anyio.fail_after(10):
        while journal.stats.heads == 0:  # noqa: ASYNC110 - another thread's work
            await anyio.sleep(0.01)
    head = read_head(path)
    assert head is not None
    assert (head.count, head.debate_id) == (len(LINES), transcripts.DEBATE)
    await journal.close()


async def test_without_a_head_it_is_said_what_cannot_be_known(path: Path) -> None:
    journal, recovered = again(left(path, b"".join(LINES[:3])))
    assert recovered.doubt is not None
    assert recovered.doubt.startswith(f"{path} has no head beside it")
    await journal.close()
    assert inspected(path).whole


async def test_two_arbiters_cannot_write_one_transcript(path: Path) -> None:
    first = start(path)
    await first.append_durably(ENTRIES[:1])
    with pytest.raises(UserError, match="another Arbiter is writing"):
        again(path)
    watcher = first.follow()
    await anext(watcher)  # and holds a descriptor of its own
    await first.close()
    second, _ = again(path)
    with pytest.raises(UserError, match="another Arbiter is writing"):
        again(path)
    await second.close()


async def test_a_journal_without_sync_is_taken_up_without_sync(path: Path) -> None:
    left(path, b"".join(LINES), LINES)
    journal, _ = again(path, FaultyDisk(on_sync=BROKEN), sync=False)
    await journal.append_durably(ENTRIES[1:2])
    await journal.close()
    assert inspected(path).whole


# --- what a kill leaves ------------------------------------------------------------------------------


async def test_a_file_without_a_record_is_as_new(path: Path) -> None:
    await goes_on(left(path, b""), [])


@pytest.mark.parametrize("length", [1, 9, 100, len(LINES[0]) - 1])
async def test_a_torn_header_is_dropped(path: Path, length: int) -> None:
    await goes_on(left(path, LINES[0][:length]), [], dropped=f"{length} bytes of record 0")


@pytest.mark.parametrize(
    "torn",
    [
        LINES[5][:1],
        LINES[5][:60],
        LINES[5][:-1],
        b"\0" * 4096,
        LINES[5][:60] + b"\0" * 99,
        b"\0" * 60 + LINES[5][60:-1],
        LINES[5][:20] + b"\0" * 20 + LINES[5][40:-1],
    ],
)
async def test_a_torn_last_line_is_dropped_with_the_nul_bytes_of_a_power_failure(
    path: Path, torn: bytes
) -> None:
    left(path, b"".join(LINES[:5]) + torn, LINES[:5])
    await goes_on(path, ENTRIES[:5], dropped=f"{len(torn)} bytes of record 5")


async def test_what_was_read_is_on_disk_before_it_is_told(path: Path) -> None:
    """The Arbiter before may have been killed between its write and its sync."""
    left(path, b"".join(LINES[:5]), LINES[:2])
    with pytest.raises(UserError, match="cannot be made fit to go on in: Input/output error"):
        again(path, FaultyDisk(on_sync=BROKEN, only=is_transcript))
    await goes_on(path, ENTRIES[:5])


@pytest.mark.parametrize(
    ("disk", "dropped"),
    [
        (FaultyDisk(only=is_transcript, on_truncate=BROKEN), "40 bytes"),
        (FaultyDisk(only=is_transcript, on_sync=NO_SPACE), None),
    ],
)
async def test_a_disk_that_refuses_to_drop_loses_nothing(
    path: Path, disk: FaultyDisk, dropped: str | None
) -> None:
    left(path, b"".join(LINES[:5]) + LINES[5][:40], LINES[:5])
    with pytest.raises(UserError, match="cannot be made fit to go on in") as caught:
        again(path, disk)
    assert caught.value.hint.startswith("nothing is lost")
    await goes_on(path, ENTRIES[:5], dropped=dropped)


def test_a_folder_that_cannot_be_synced_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(folder: Path) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(recovery, "sync_folder", fail)
    with pytest.raises(UserError, match="Input/output error"):
        again(left(path, b"".join(LINES), LINES))


# --- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"notes", "what follows its last newline is not the beginning of record 0"),
        (b"notes\n", "line 1, where record 0 should be, is not JSON"),
        (b"\n", "line 1, where record 0 should be, is not JSON"),
        (b"{}\n{}\n", "lines 1 to 2, where records 0 to 1 should be, is JSON but not a record"),
        (b"".join(LINES[:3]) + b"seen, Ana", "not the beginning of record 3"),
        (b"".join(LINES[:3]) + LINES[4][:-1], "not the beginning of record 3"),
        (b"".join(LINES[:3]) + b"seen, Ana\n", "line 4, where record 3 should be, is not JSON"),
        (b"".join(LINES[:3]) + b"\0\0\0\n", "line 4, where record 3 should be, holds a run of 3 NUL bytes"),
        (b"".join([*LINES[:3], b"\0" * 40, LINES[4]]), "line 4, where record 3 should be, holds a run"),
        (b"".join([*LINES[:3], *LINES[4:6]]), "record 3 is missing"),
        (b"".join([*LINES[:3], LINES[2], *LINES[3:6]]), "record 2 (line 4) stands in the file twice"),
        (b"".join(LINES[1:3]), "record 0 is missing"),
    ],
)
def test_damage_is_refused_with_the_record_it_concerns(path: Path, data: bytes, message: str) -> None:
    assert message in refused(left(path, data)).message


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"".join(LINES[:4]), "the tail is cut: record 4 of the 5 that the head vouches for"),
        (b"".join(LINES[:5])[:-1], "the tail is cut: record 4 of the 5 that the head vouches for"),
        (b"".join(LINES[:2]) + b"\0" * 3000, "the tail is cut: records 2 to 4"),
        (LINES[0][:20], "the tail is cut: records 0 to 4"),
        (b"", "the tail is cut: records 0 to 4"),
    ],
)
def test_a_head_that_vouches_for_more_than_there_is_is_refused(path: Path, data: bytes, message: str) -> None:
    assert message in refused(left(path, data, LINES[:5])).message


def test_the_head_of_another_debate_is_refused(path: Path) -> None:
    others = transcripts.sealed([transcripts.header(caps={}), *ENTRIES[1:5]])
    assert "the head gives another hash for" in refused(left(path, b"".join(LINES), others)).message


def test_a_head_of_another_arbiter_is_refused(path: Path) -> None:
    left(path, b"".join(LINES), LINES)
    head = seals.holder(seals.council(), seals.arbiter_leaf()).signer.sign(transcripts.head_of(LINES))
    head_path(path).write_text(head.model_dump_json())
    with pytest.raises(UserError, match="was made with another key"):
        again(path)


def test_no_byte_can_be_changed_unseen(path: Path) -> None:
    lines = transcripts.sealed([*ENTRIES[:2], ENTRIES[4], ENTRIES[8]])
    whole = b"".join(lines)
    left(path, whole, lines)
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        path.write_bytes(changed)
        with pytest.raises(UserError):
            again(path)
        assert content(path) == changed


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_whatever_else_happens_to_a_file_it_is_refused_or_only_its_torn_end_is_dropped(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("mutated") / "debate.jsonl"
    whole = b"".join(LINES)
    first = data.draw(st.integers(0, len(whole)))
    last = data.draw(st.integers(first, min(len(whole), first + 600)))
    changed = whole[:first] + data.draw(st.binary(max_size=40)) + whole[last:]
    vouched = data.draw(st.integers(0, len(LINES)))
    left(path, changed, LINES[:vouched])

    async def run() -> None:
        try:
            journal, recovered = again(path, sync=False)
        except UserError:
            assert content(path) == changed
            return
        assert journal.count >= vouched
        kept = content(path)
        assert changed.startswith(kept)
        assert kept.startswith(b"".join(LINES[:vouched]))
        assert (recovered.dropped is None) == (kept == changed)
        await journal.close()

    anyio.run(run)


def resealed(fields: bytes, ts: str = "2026-10-01T00:00:00Z") -> list[bytes]:
    """A chain in order, whose second record is a line of ours with ``fields`` for its entry."""
    prev = digest(LINES[0][:-1])
    return [LINES[0], b'{"seq":1,"prev":"%s","ts":"%s",%s}\n' % (prev.encode(), ts.encode(), fields)]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (resealed(b'"kind":"later"'), "record 1 cannot be read: not a record"),
        (
            resealed(b'"kind":"event","event":"DEBATE_STARTED"', "soon"),
            "record 1 cannot be read: its time is",
        ),
        (
            resealed(b'"kind":"event","event":"DEBATE_STARTED"', "2026-10-01T00:00:00"),
            "record 1 cannot be read: its time has no zone",
        ),
        (transcripts.sealed(ENTRIES[1:4]), "record 0 is not a header"),
    ],
)
def test_a_record_that_means_nothing_to_us_is_refused_although_the_chain_holds(
    path: Path, lines: list[bytes], message: str
) -> None:
    assert message in refused(left(path, b"".join(lines), lines)).message


def test_a_line_longer_than_any_record_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = max(len(line) for line in LINES) - 1
    left(path, b"".join(LINES), LINES)
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", longest)
    journal, recovered = again(path)
    assert entries(recovered) == ENTRIES
    anyio.run(journal.close)
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", longest - 1)
    assert "is longer than any record" in refused(path).message


def test_a_file_that_cannot_be_read_is_said(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left(path, b"".join(LINES), LINES)

    def fail(descriptor: int) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "dup", fail)
    assert "Input/output error" in refused(path).message


# --- a disk that failed before -----------------------------------------------------------------------


@given(
    batches=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    fault=st.sampled_from(["short", "on_write", "on_sync"]),
    error=st.sampled_from([NO_SPACE, BROKEN]),
    stuck=st.booleans(),
    when=st.integers(0, 5),
)
@settings(max_examples=60, deadline=None)
def test_after_any_failure_of_the_disk_the_next_journal_finds_what_was_acknowledged(
    tmp_path_factory: pytest.TempPathFactory,
    batches: list[int],
    *,
    fault: str,
    error: Exception,
    stuck: bool,
    when: int,
) -> None:
    path = tmp_path_factory.mktemp("journal") / "debate.jsonl"

    async def run() -> None:
        disk = FaultyDisk(only=is_transcript)
        journal = start(path, disk)
        acknowledged = await journal.append_durably(ENTRIES[:1])
        appended = list(ENTRIES[:1])
        for number, size in enumerate(batches):
            if number == when:
                setattr(disk, fault, 17 if fault == "short" else error)
                disk.on_truncate = error if stuck else None
            appended += ENTRIES[1 : 1 + size]
            try:
                acknowledged += await journal.append_durably(ENTRIES[1 : 1 + size])
            except TranscriptError:
                await close_failed(journal)
                break
        else:
            await journal.close()
        found, recovered = again(path)
        told = entries(recovered)
        assert len(told) >= len(acknowledged)
        assert told == appended[: len(told)]
        if not stuck:
            assert len(told) == len(acknowledged)
            assert recovered.dropped is None
        await found.append_durably([transcripts.turn(99)])
        await found.close()
        assert inspected(path).whole

    anyio.run(run)
