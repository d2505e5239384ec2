"""A transcript is read as far as it is whole, and what is not a transcript is refused in a sentence."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
import transcripts

from consilium import records
from consilium.errors import TranscriptError, UserError
from consilium.transcript import head_path, read_head, read_lines, read_records

if TYPE_CHECKING:
    from pathlib import Path

    from consilium.records import Head

ENTRIES = transcripts.debate()
LINES = transcripts.sealed(ENTRIES)
HEAD = transcripts.head_of(LINES)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


def test_a_whole_file_gives_back_every_entry(path: Path) -> None:
    stored, torn = read_records(transcripts.write(path, LINES), HEAD)
    assert [record.entry for record in stored] == ENTRIES
    assert [record.seq for record in stored] == list(range(len(LINES)))
    assert torn is None


@pytest.mark.parametrize("kept", [1, 40, -1])
def test_a_torn_last_line_is_handed_over_apart(path: Path, kept: int) -> None:
    stored, torn = read_records(transcripts.write(path, [*LINES[:7], LINES[7][:kept]]))
    assert len(stored) == 7
    assert torn == LINES[7][:kept]


def test_nul_bytes_that_a_crash_left_at_the_end_are_a_torn_line_too(path: Path) -> None:
    stored, torn = read_records(transcripts.write(path, [*LINES[:7], b"\0" * 512]))
    assert (len(stored), torn) == (7, b"\0" * 512)


def test_records_after_the_head_are_read(path: Path) -> None:
    stored, _ = read_records(transcripts.write(path, LINES), transcripts.head_of(LINES[:4]))
    assert len(stored) == len(LINES)


def test_an_empty_file_holds_nothing(path: Path) -> None:
    assert read_records(transcripts.write(path, [])) == ([], None)


@pytest.mark.parametrize(
    ("lines", "head", "what"),
    [
        (LINES[:5] + LINES[6:], None, "record 5 is missing"),
        ([*LINES[:5], b"\0\0\n", *LINES[6:]], None, "holds a run of 2 NUL bytes"),
        (LINES[:5], HEAD, "the tail is cut"),
        ([], HEAD, "the tail is cut"),
        ([LINES[0][:-1]], HEAD, "the tail is cut"),
    ],
)
def test_damage_elsewhere_than_in_a_torn_last_line_stops_the_reader(
    path: Path, lines: list[bytes], head: Head | None, what: str
) -> None:
    with pytest.raises(TranscriptError, match=f"debate.jsonl is damaged: .*{what}"):
        read_records(transcripts.write(path, lines), head)


def test_a_record_that_fits_the_chain_but_says_nothing_known_stops_the_reader(path: Path) -> None:
    line = b'{"seq":%d,"prev":"%s","ts":"","kind":"novel"}\n' % (len(LINES), HEAD.last.encode())
    with pytest.raises(TranscriptError, match=f"line {len(LINES) + 1}: not a record"):
        read_records(transcripts.write(path, [*LINES, line]))


def test_a_file_that_does_not_begin_with_a_header_is_refused(path: Path) -> None:
    with pytest.raises(TranscriptError, match="first record is not a header"):
        read_records(transcripts.write(path, transcripts.sealed(ENTRIES[1:])))


def test_a_line_longer_than_any_record_ends_the_reading_before_it_fills_the_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 100)
    transcripts.write(path, [b"x" * 100 + b"\n", b"y" * 101 + b"\n"])
    lines = read_lines(path)
    assert next(lines) == b"x" * 100 + b"\n"
    with pytest.raises(TranscriptError, match="line 2 is longer than any record"):
        next(lines)


def test_the_head_stands_beside_the_file(path: Path) -> None:
    assert head_path(path).name == "debate.jsonl.head"
    assert read_head(path) is None
    head_path(path).write_text(HEAD.model_dump_json())
    assert read_head(path) == HEAD


@pytest.mark.parametrize("content", ["", "{}", "[", '{"debate_id":"d","count":-1,"last":""}'])
def test_a_head_that_cannot_be_read_is_not_taken_for_a_missing_one(path: Path, content: str) -> None:
    head_path(path).write_text(content)
    with pytest.raises(TranscriptError, match=r"debate\.jsonl\.head is not the head"):
        read_head(path)


def test_a_file_that_is_not_there_is_said_with_those_that_are(path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read: No such file") as caught:
        list(read_lines(path))
    assert caught.value.hint == f"{path.parent} holds no .jsonl file"
    (path.parent / "other.jsonl").touch()
    with pytest.raises(UserError) as caught:
        list(read_lines(path))
    assert caught.value.hint == f"transcripts in {path.parent}: other.jsonl"


def test_a_folder_is_not_a_transcript(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="not a regular file"):
        list(read_lines(tmp_path))


def test_a_fifo_is_refused_instead_of_waited_for(path: Path) -> None:
    os.mkfifo(path)
    with pytest.raises(UserError, match="not a regular file"):
        list(read_lines(path))


def test_a_path_through_nowhere_is_refused(path: Path) -> None:
    with pytest.raises(UserError) as caught:
        list(read_lines(path / "deeper" / "debate.jsonl"))
    assert caught.value.hint == "give the path of a transcript, a .jsonl file"
