"""One record is one line, whatever its text; what cannot be read back is not written."""

from __future__ import annotations

import orjson
import pytest
import transcripts
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from consilium import records
from consilium.errors import TranscriptError
from consilium.records import (
    GENESIS,
    MAX_RECORD_BYTES,
    AnyEntry,
    EventName,
    Head,
    TurnRecord,
    digest,
    seal,
    timestamp,
    unseal,
)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.just(transcripts.HOSTILE)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
entries = st.one_of(
    st.builds(lambda text: transcripts.turn(1, text=text), texts),
    st.builds(lambda data: transcripts.event(EventName.CAP_REACHED, **data), st.dictionaries(texts, values)),
)


@given(entry=entries)
@settings(max_examples=150)
def test_any_text_makes_one_line_that_reads_back_as_it_was(entry: AnyEntry) -> None:
    line = seal(entry, seq=3, prev=GENESIS, ts=timestamp(0))
    assert b"\n" not in line
    assert b"\0" not in line
    stored = unseal(line)
    assert stored.entry == entry
    assert (stored.seq, stored.prev, stored.ts) == (3, GENESIS, "1970-01-01T00:00:00.000Z")


@pytest.mark.parametrize(
    "points", [range(0x20), range(0x7F, 0xA0), range(0x2028, 0x202F), range(0x2066, 0x206A)]
)
def test_a_terminal_that_is_shown_a_record_obeys_nothing_in_it(points: range) -> None:
    text = "".join(map(chr, points))
    line = seal(transcripts.turn(1, text=f"a{text}b"), seq=3, prev=GENESIS, ts=timestamp(0))
    assert not set(text) & set(line.decode())
    entry = unseal(line).entry
    assert isinstance(entry, TurnRecord)
    assert entry.text == f"a{text}b"


def test_every_kind_of_entry_of_a_debate_reads_back() -> None:
    entries = transcripts.debate()
    lines = transcripts.sealed(entries)
    assert [unseal(line).entry for line in lines] == entries


def test_each_record_carries_the_hash_of_the_line_before_it() -> None:
    lines = [line.removesuffix(b"\n") for line in transcripts.sealed(transcripts.debate())]
    assert [unseal(line).prev for line in lines] == [GENESIS, *map(digest, lines[:-1])]


@pytest.mark.parametrize("value", ["\ud800", 2**64])
def test_what_json_cannot_hold_is_refused_before_it_is_written(value: str | int) -> None:
    entry = transcripts.event(EventName.CAP_REACHED, used=value)
    with pytest.raises(TranscriptError, match="record 7 cannot be written as JSON"):
        seal(entry, seq=7, prev=GENESIS, ts=timestamp(0))


def test_an_infinite_number_is_no_entry_because_it_would_be_written_as_null() -> None:
    with pytest.raises(ValidationError):
        transcripts.event(EventName.CAP_REACHED, used=float("inf"))


def test_a_record_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = transcripts.turn(1)
    size = len(seal(entry, seq=0, prev=GENESIS, ts=timestamp(0)))
    assert size < MAX_RECORD_BYTES
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", size)
    seal(entry, seq=0, prev=GENESIS, ts=timestamp(0))
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", size - 1)
    with pytest.raises(TranscriptError, match=f"longer than {size - 1} bytes"):
        seal(entry, seq=0, prev=GENESIS, ts=timestamp(0))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b'"text"',
        b"{}",
        b'{"seq": 0, "prev": "", "ts": "", "kind": "novel"}',
        b'{"seq": "0", "prev": "", "ts": "", "kind": "event", "event": "CAP_REACHED"}',
        b'{"seq": 0, "prev": "", "ts": "", "kind": "event", "event": "CAP_REACHED", "smuggled": 1}',
    ],
)
def test_a_line_that_is_no_record_is_refused(line: bytes) -> None:
    with pytest.raises(TranscriptError, match="not a record"):
        unseal(line)


def test_the_signature_of_a_head_covers_everything_but_itself() -> None:
    head = Head(debate_id="d", count=3, last=GENESIS, certificate="PEM", signature="one")
    assert head.signed_bytes() == head.model_copy(update={"signature": "two"}).signed_bytes()
    for field, value in (("debate_id", "e"), ("count", 4), ("last", "x"), ("certificate", "other")):
        assert head.signed_bytes() != head.model_copy(update={field: value}).signed_bytes()
    assert "signature" not in orjson.loads(head.signed_bytes())


def test_a_timestamp_is_utc_to_the_millisecond() -> None:
    assert timestamp(1_790_000_000.1236) == "2026-09-21T14:13:20.123Z"
