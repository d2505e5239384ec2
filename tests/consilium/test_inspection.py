"""Whatever was done to a sealed transcript is found, and named by the record that it was done to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson
import pytest
import transcripts
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.findings import FindingKind, Inspection
from consilium.inspection import inspect
from consilium.records import GENESIS, Head, digest

if TYPE_CHECKING:
    from collections.abc import Callable

LINES = transcripts.sealed(transcripts.debate())
DATA = b"".join(LINES)
HEAD = transcripts.head_of(LINES)
LAST = len(LINES) - 1

OTHER = transcripts.sealed([transcripts.header(opening="open"), *transcripts.debate()[1:]])
"""The same debate with another header: every record fits its neighbours, none fits those of `LINES`."""


def seen(inspection: Inspection) -> list[tuple[str, int | None]]:
    return [(finding.kind.value, finding.seq) for finding in inspection.findings]


def sentence(inspection: Inspection) -> str:
    (finding,) = inspection.findings
    return finding.message


def edit(line: bytes) -> bytes:
    changed = line.replace(b'"kind"', b'"KIND"', 1)
    assert changed != line
    return changed


# --- whole -------------------------------------------------------------------------------------------


def test_a_sealed_transcript_is_whole_with_and_without_its_head() -> None:
    for head in (HEAD, None):
        inspection = inspect(LINES, head)
        assert inspection.whole
        assert inspection.sound
        assert inspection.count == len(LINES)
        assert inspection.last == HEAD.last


def test_a_record_of_a_later_version_is_no_damage() -> None:
    body = orjson.dumps({"seq": len(LINES), "prev": HEAD.last, "kind": "novel", "format": 2})
    assert inspect([*LINES, body + b"\n"]).whole


def test_an_empty_file_is_not_a_whole_transcript() -> None:
    assert seen(inspect([])) == [("missing", 0)]
    assert seen(inspect([], HEAD)) == [("cut", 0)]
    assert inspect([]).last == GENESIS


# --- one record --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seq", range(len(LINES)))
def test_an_edited_record_is_named_when_the_head_vouches_for_the_rest(seq: int) -> None:
    lines = [*LINES]
    lines[seq] = edit(lines[seq])
    inspection = inspect(lines, HEAD)
    assert seen(inspection) == [("edited", seq)]
    assert not inspection.sound
    assert f"record {seq} was edited" in sentence(inspection)
    assert inspection.findings[0].line == seq + 1


@pytest.mark.parametrize("seq", range(len(LINES) - 1))
def test_an_edited_record_shows_without_the_head_and_the_other_reading_is_given(seq: int) -> None:
    lines = [*LINES]
    lines[seq] = edit(lines[seq])
    inspection = inspect(lines)
    assert seen(inspection) == [("edited", seq)]
    assert "came from elsewhere" in sentence(inspection)


def test_an_edit_of_the_last_record_shows_only_in_the_head() -> None:
    lines = [*LINES[:-1], edit(LINES[-1])]
    assert inspect(lines).whole
    assert seen(inspect(lines, HEAD)) == [("edited", LAST)]


@pytest.mark.parametrize("seq", range(len(LINES)))
def test_a_record_whose_prev_was_edited_is_named(seq: int) -> None:
    lines = [*LINES]
    lines[seq] = lines[seq].replace(b'"prev":"sha256:', b'"prev":"sha257:')
    assert seen(inspect(lines, HEAD)) == [("edited", seq)]


@pytest.mark.parametrize("seq", range(len(LINES)))
@pytest.mark.parametrize("claim", [0, 5, 6, 400])
def test_a_record_whose_seq_was_edited_is_one_finding_at_its_place(seq: int, claim: int) -> None:
    if claim == seq:
        return
    lines = [*LINES]
    lines[seq] = lines[seq].replace(b'"seq":%d,' % seq, b'"seq":%d,' % claim)
    inspection = inspect(lines, HEAD)
    assert [finding.seq for finding in inspection.findings] == [seq]
    assert f"holds record {claim} by its own count" in sentence(inspection)


@pytest.mark.parametrize("seq", range(len(LINES) - 1))
def test_a_missing_record_is_named(seq: int) -> None:
    lines = LINES[:seq] + LINES[seq + 1 :]
    inspection = inspect(lines, HEAD)
    assert seen(inspection) == [("missing", seq)]
    assert sentence(inspection) == f"record {seq} is missing"


def test_missing_records_are_named_as_a_range() -> None:
    assert sentence(inspect(LINES[:4] + LINES[8:], HEAD)) == "records 4 to 7 are missing"


@pytest.mark.parametrize("seq", range(len(LINES)))
def test_a_record_that_stands_twice_is_named(seq: int) -> None:
    inspection = inspect([*LINES[: seq + 1], *LINES[seq:]], HEAD)
    assert seen(inspection) == [("duplicate", seq)]
    assert "with other content" not in sentence(inspection)


def test_a_stretch_that_stands_twice_is_one_finding() -> None:
    inspection = inspect(LINES[:9] + LINES[3:9] + LINES[9:], HEAD)
    assert seen(inspection) == [("duplicate", 3)]
    assert "records 3 to 8 (lines 10 to 15)" in sentence(inspection)


def test_a_second_record_of_the_same_number_with_other_content_is_named() -> None:
    inspection = inspect([*LINES[:6], edit(LINES[5]), *LINES[6:]], HEAD)
    assert seen(inspection) == [("duplicate", 5)]
    assert "with other content" in sentence(inspection)


def test_two_neighbours_that_changed_places_are_one_finding() -> None:
    lines = [*LINES]
    lines[5], lines[6] = lines[6], lines[5]
    assert seen(inspect(lines, HEAD)) == [("moved", 5)]


def test_two_distant_records_that_changed_places_are_both_named() -> None:
    lines = [*LINES]
    lines[5], lines[9] = lines[9], lines[5]
    assert seen(inspect(lines, HEAD)) == [("moved", 5), ("moved", 9)]


def test_a_stretch_that_was_moved_is_one_finding() -> None:
    inspection = inspect(LINES[:5] + LINES[10:12] + LINES[5:10] + LINES[12:], HEAD)
    assert seen(inspection) == [("moved", 5)]


# --- splices -----------------------------------------------------------------------------------------


def test_a_foreign_tail_is_a_splice_because_the_head_does_not_know_its_end() -> None:
    inspection = inspect(LINES[:6] + OTHER[6:], HEAD)
    assert seen(inspection) == [("spliced", 6)]
    assert sentence(inspection).startswith(f"records 6 to {LAST} did not follow on record 5")


def test_a_foreign_tail_after_what_the_head_vouches_for_is_a_splice() -> None:
    inspection = inspect(LINES[:6] + OTHER[6:], transcripts.head_of(LINES[:6]))
    assert ("spliced", 6) in seen(inspection)


def test_a_foreign_stretch_inside_leaves_both_readings_of_its_beginning() -> None:
    inspection = inspect(LINES[:6] + OTHER[6:10] + LINES[10:], HEAD)
    assert seen(inspection) == [("spliced", 6), ("edited", 9)]
    assert "record 5 was edited after it was written, or records 6 to 9 came from elsewhere" in str(
        inspection
    )


def test_a_stretch_with_numbers_of_another_place_is_a_splice() -> None:
    inspection = inspect(LINES[:4] + OTHER[9:12] + LINES[7:], HEAD)
    assert ("spliced", 4) in seen(inspection)


def test_a_single_foreign_record_is_told_as_replaced() -> None:
    inspection = inspect([*LINES[:6], OTHER[6], *LINES[7:]], HEAD)
    assert seen(inspection) == [("edited", 6)]
    assert "or replaced" in sentence(inspection)


def test_a_last_record_that_fits_neither_the_chain_nor_the_head_is_named() -> None:
    assert seen(inspect([*LINES[:-1], OTHER[-1]], HEAD)) == [("edited", LAST)]


def test_a_header_that_was_replaced_is_named() -> None:
    assert seen(inspect([OTHER[0], *LINES[1:]], HEAD)) == [("edited", 0)]


def test_of_neighbours_that_were_edited_all_but_the_first_are_named() -> None:
    lines = [*LINES]
    for seq in (5, 6, 7):
        lines[seq] = edit(lines[seq])
    # Record 5 edited, or record 6 replaced by one that follows on another record 5: the same bytes.
    assert seen(inspect(lines, HEAD)) == [("edited", 6), ("edited", 7)]


# --- the ends ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", range(1, len(LINES)))
def test_a_tail_cut_at_a_record_is_shown_by_the_head_alone(kept: int) -> None:
    assert inspect(LINES[:kept]).whole
    inspection = inspect(LINES[:kept], HEAD)
    assert seen(inspection) == [("cut", kept)]
    assert f"of the {len(LINES)} that the head vouches for" in sentence(inspection)


def test_a_torn_last_line_is_what_an_unfinished_debate_shows_too() -> None:
    inspection = inspect([*LINES[:6], LINES[6][:-1]], transcripts.head_of(LINES[:5]))
    assert seen(inspection) == [("trailing", 5), ("torn", 6)]
    assert inspection.sound
    assert not inspection.whole


def test_a_file_that_is_nothing_but_a_torn_line_says_so() -> None:
    assert seen(inspect([LINES[0][:40]])) == [("torn", 0)]


def test_records_after_the_head_are_said_and_so_is_that_a_live_debate_has_them() -> None:
    inspection = inspect(LINES, transcripts.head_of(LINES[:7]))
    assert seen(inspection) == [("trailing", 7)]
    assert "still being written" in sentence(inspection)
    assert inspection.findings[0].line == 8


def test_a_head_for_no_record_vouches_for_none() -> None:
    assert seen(inspect(LINES, Head(debate_id=transcripts.DEBATE, count=0, last=GENESIS))) == [
        ("trailing", 0)
    ]


def test_added_records_with_a_gap_are_said_twice() -> None:
    body = orjson.dumps({"seq": 99, "prev": HEAD.last})
    assert seen(inspect([*LINES, body + b"\n"], HEAD)) == [("missing", LAST + 1), ("trailing", LAST + 1)]


def test_the_head_of_another_debate_is_said_and_does_not_judge_the_file() -> None:
    head = Head(debate_id="d-other", count=3, last=GENESIS)
    inspection = inspect(LINES, head)
    assert seen(inspection) == [("wrong_head", None)]
    assert "d-other" in sentence(inspection)


def test_an_edit_of_the_debate_id_does_not_disown_the_head() -> None:
    lines = [LINES[0].replace(b"d-2f91", b"d-2f92"), *LINES[1:]]
    assert seen(inspect(lines, HEAD)) == [("edited", 0)]


def test_a_file_written_anew_does_not_fit_its_old_head() -> None:
    assert seen(inspect(OTHER, HEAD)) == [("edited", LAST)]
    assert seen(inspect(OTHER, transcripts.head_of(LINES[:9]))) == [("spliced", 8)]
    assert seen(inspect(OTHER, HEAD.model_copy(update={"count": len(OTHER)}))) == [("edited", LAST)]


def test_an_early_head_and_an_edit_far_from_it_are_told_apart() -> None:
    lines = [*LINES]
    lines[12] = edit(lines[12])
    head = transcripts.head_of(LINES[:4]).model_copy(update={"last": GENESIS})
    assert seen(inspect(lines, head)) == [("spliced", 3), ("edited", 12)]


def test_a_head_whose_record_is_missing_says_nothing_of_the_rest() -> None:
    assert seen(inspect(LINES[:6] + LINES[7:], transcripts.head_of(LINES[:7]))) == [("missing", 6)]


# --- lines that are no records -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "kind", "what"),
    [
        (b"\0" * 40 + b"\n", "nul", "holds a run of 40 NUL bytes"),
        (b"{]\n", "unreadable", "is not JSON"),
        (b"\n", "unreadable", "is not JSON"),
        (b"[1]\n", "unreadable", "is JSON but not a record"),
        (b'{"seq": true, "prev": ""}\n', "unreadable", "is JSON but not a record"),
        (b'{"seq": -1, "prev": ""}\n', "unreadable", "is JSON but not a record"),
        (b'{"seq": 6}\n', "unreadable", "is JSON but not a record"),
    ],
)
@pytest.mark.parametrize("seq", [0, 6, LAST])
def test_a_line_in_place_of_a_record_is_one_finding(line: bytes, kind: str, what: str, seq: int) -> None:
    inspection = inspect([*LINES[:seq], line, *LINES[seq + 1 :]], HEAD)
    assert seen(inspection) == [(kind, seq)]
    assert sentence(inspection) == f"line {seq + 1}, where record {seq} should be, {what}"


def test_a_line_between_two_records_is_said_to_stand_before_the_second() -> None:
    inspection = inspect([*LINES[:6], b"{]\n", *LINES[6:]], HEAD)
    assert sentence(inspection) == "line 7, before record 6, is not JSON"


def test_unreadable_lines_together_are_one_finding() -> None:
    inspection = inspect([*LINES[:6], b"{]\n", b"\0\n", *LINES[9:]], HEAD)
    assert seen(inspection) == [("nul", 6)]
    assert sentence(inspection).startswith("lines 7 to 8, where records 6 to 8 should be,")


def test_nul_bytes_at_the_end_of_the_file_are_named() -> None:
    inspection = inspect([*LINES, b"\0" * 100])
    assert seen(inspection) == [("nul", len(LINES))]
    assert "100 NUL bytes" in sentence(inspection)


def test_a_cut_tail_after_an_unreadable_line_is_both() -> None:
    inspection = inspect([*LINES[:6], b"{]\n"], HEAD)
    assert seen(inspection) == [("unreadable", 6), ("cut", 6)]
    assert f"records 7 to {LAST}" in inspection.findings[1].message


# --- any mutation ------------------------------------------------------------------------------------

POSITIONS = st.integers(0, len(DATA) - 1)
PLACES = st.integers(0, LAST)


def check(data: bytes) -> None:
    if data == DATA:
        return
    inspection = inspect(transcripts.split(data), HEAD)
    assert not inspection.whole
    for finding in inspection.findings:
        assert finding.message
        assert finding.line >= 1


@given(position=POSITIONS, value=st.integers(0, 255))
@settings(max_examples=300)
def test_any_byte_that_is_changed_is_found(position: int, value: int) -> None:
    check(DATA[:position] + bytes([value]) + DATA[position + 1 :])


@given(position=POSITIONS, value=st.binary(min_size=1, max_size=30))
def test_anything_put_in_is_found(position: int, value: bytes) -> None:
    check(DATA[:position] + value + DATA[position:])


@given(position=POSITIONS, length=st.integers(1, 3000))
def test_any_run_of_nul_bytes_is_found(position: int, length: int) -> None:
    data = DATA[:position] + b"\0" * length + DATA[position + length :]
    check(data[: len(DATA)])


@pytest.mark.parametrize("kept", [0, 1, *range(len(DATA) - 700, len(DATA))])
def test_a_tail_cut_at_any_byte_is_found(kept: int) -> None:
    inspection = inspect(transcripts.split(DATA[:kept]), HEAD)
    assert {FindingKind.CUT} <= {finding.kind for finding in inspection.findings}


@given(first=PLACES, second=PLACES, how=st.sampled_from(["drop", "repeat", "swap", "foreign"]))
@settings(max_examples=200)
def test_any_line_dropped_repeated_swapped_or_replaced_is_found(first: int, second: int, how: str) -> None:
    lines = [*LINES]
    changes: dict[str, Callable[[], None]] = {
        "drop": lambda: lines.__delitem__(first),
        "repeat": lambda: lines.insert(second, lines[first]),
        "swap": lambda: lines.__setitem__(slice(None), swapped(first, second)),
        "foreign": lambda: lines.__setitem__(first, OTHER[first]),
    }
    changes[how]()
    check(b"".join(lines))


def swapped(first: int, second: int) -> list[bytes]:
    lines = [*LINES]
    lines[first], lines[second] = lines[second], lines[first]
    return lines


@given(lines=st.lists(st.sampled_from([*LINES, *OTHER, b"\n", b"{}\n", b"\0\n"]), max_size=12))
@settings(max_examples=200)
def test_of_any_heap_of_lines_only_an_unbroken_beginning_is_whole(lines: list[bytes]) -> None:
    beginning = lines in (LINES[: len(lines)], OTHER[: len(lines)])
    assert inspect(lines).whole is (beginning and bool(lines))
    assert inspect(lines, HEAD).whole is (lines == LINES)
    assert inspect(lines, transcripts.head_of(OTHER[:3])).whole is (lines == OTHER[:3])


def test_a_record_that_claims_a_place_far_away_is_handled_like_any_other() -> None:
    body = orjson.dumps({"seq": 2**62, "prev": digest(b"")})
    inspection = inspect([*LINES, body + b"\n"])
    assert sentence(inspection) == f"records {len(LINES)} to {2**62 - 1} are missing"
