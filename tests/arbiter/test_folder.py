"""Which transcript of a folder goes on, and how the next one is called."""

from __future__ import annotations

from pathlib import Path

import journals
import pytest
import transcripts

from arbiter.folder import TAIL_BYTES, transcript_in
from consilium.errors import UserError
from consilium.records import EventName, EventRecord, HeaderRecord, TurnRecord

HEADER = HeaderRecord(debate_id="d1", topic="x", council={}, arbiter="sha256:00")
STARTED = EventRecord(event=EventName.DEBATE_STARTED, data={"phase": "OPENING"})
ENDED = EventRecord(event=EventName.DEBATE_ENDED, data={"outcome": "FINISHED"})
LEFT = EventRecord(event=EventName.PARTICIPANT_LEFT, data={"by": "choice"})
QUOTED = EventRecord(event=EventName.MODERATOR_STEERING, data={"text": '"event":"DEBATE_ENDED"'})


def next_in(folder: Path) -> str:
    return transcript_in(folder, moment="2026-11-30-120000", topic="Wrap it?").name


async def write(path: Path, *entries: HeaderRecord | EventRecord | TurnRecord) -> None:
    journal = journals.start(path, sync=False)
    await journal.append_durably(list(entries))
    await journal.close()


NEW = "2026-11-30-120000-wrap-it.jsonl"


def test_the_first_transcript_of_a_folder_that_is_made_for_it(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "transcripts"
    assert next_in(folder) == NEW
    assert folder.stat().st_mode & 0o077 == 0
    (folder / "notes.txt").write_text("not ours")
    assert next_in(folder) == NEW


@pytest.mark.anyio
@pytest.mark.parametrize("after", [[], [LEFT, LEFT]])
async def test_a_debate_that_has_ended_is_left_alone(tmp_path: Path, after: list[EventRecord]) -> None:
    await write(tmp_path / NEW, HEADER, STARTED, ENDED, *after)
    assert next_in(tmp_path) == "2026-11-30-120000-wrap-it-2.jsonl"


@pytest.mark.anyio
async def test_the_newest_that_has_not_ended_goes_on(tmp_path: Path) -> None:
    for day, entries in ((1, [STARTED]), (2, [STARTED]), (3, [STARTED, ENDED]), (4, [QUOTED])):
        await write(tmp_path / f"2026-11-0{day}-100000-x.jsonl", HEADER, *entries)
    assert next_in(tmp_path) == "2026-11-04-100000-x.jsonl"
    (tmp_path / "2026-11-04-100000-x.jsonl").unlink()
    assert next_in(tmp_path) == "2026-11-02-100000-x.jsonl"


@pytest.mark.anyio
async def test_the_end_is_found_behind_a_long_record(tmp_path: Path) -> None:
    turn = transcripts.turn(1, text="DEBATE_ENDED " * 10_000)
    assert len(turn.model_dump_json()) > TAIL_BYTES // 4
    await write(tmp_path / "2026-11-01-100000-x.jsonl", HEADER, *[turn] * 4, ENDED)
    assert next_in(tmp_path) == NEW


@pytest.mark.anyio
async def test_a_torn_or_strange_file_has_not_ended(tmp_path: Path) -> None:
    path = tmp_path / "2026-11-01-100000-x.jsonl"
    await write(path, HEADER, STARTED, ENDED)
    path.write_bytes(path.read_bytes()[:-1])  # its last record is not whole: it was never acknowledged
    assert next_in(tmp_path) == path.name
    path.write_bytes(b'{"DEBATE_ENDED": 1}\n')
    assert next_in(tmp_path) == path.name
    path.write_bytes(b"")
    assert next_in(tmp_path) == path.name
    path.unlink()
    path.mkdir()
    assert next_in(tmp_path) == path.name


def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot hold transcripts") as refused:
        next_in(tmp_path / "file" / "transcripts")
    assert "--transcripts" in refused.value.hint
    (tmp_path / "2026-11-01-100000-x.jsonl").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match="cannot hold transcripts"):
        next_in(tmp_path)
