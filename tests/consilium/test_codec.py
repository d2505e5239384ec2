from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_strategies import CODECS, UNIONS, ids, json_values, messages_of, model

from consilium import codec, messages
from consilium.codec import (
    MAX_ARBITER_MEMBERS,
    MAX_DEPTH,
    MAX_ID,
    MAX_MEMBERS,
    Codec,
    Line,
    encode,
    parse_object,
)
from consilium.errors import ErrorCode, PeerError
from consilium.framing import MAX_ARBITER_LINE_BYTES, LineFramer
from consilium.messages import MAX_SPEECH_BYTES, PROTOCOL_VERSION

CONTROL = CODECS["control from seat"]
DATA = CODECS["data from seat"]
ADMIN = CODECS["admin from operator"]

HEAD = b'{"protocol_version":4,"msg_id":"c-1",'


def line_of(**fields: Any) -> bytes:
    """A line with a good envelope; None takes a field away."""
    whole = {"protocol_version": PROTOCOL_VERSION, "msg_id": "c-1"} | fields
    return orjson.dumps({key: value for key, value in whole.items() if value is not None})


def refusal(line: bytes, reader: Codec[messages.Message] = CONTROL) -> PeerError:
    with pytest.raises(PeerError) as caught:
        reader.decode(line)
    return caught.value


def judged(reader: Codec[messages.Message], line: bytes) -> Line[messages.Message] | PeerError:
    """What reading ``line`` comes to. Any other exception goes through, and fails the test."""
    try:
        return reader.decode(line)
    except PeerError as error:
        return error


# --- whatever is written is read --------------------------------------------------------------------


@pytest.mark.parametrize("channel", UNIONS)
@given(data=st.data(), msg_id=ids, in_reply_to=st.none() | ids)
@settings(max_examples=100)
def test_every_message_that_is_encoded_decodes_equal(
    channel: str, data: st.DataObject, msg_id: str, in_reply_to: str | None
) -> None:
    message = data.draw(messages_of(UNIONS[channel]))
    line = encode(message, msg_id, in_reply_to)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    read = CODECS[channel].decode(line[:-1])
    assert (read.msg_id, read.in_reply_to, read.message) == (msg_id, in_reply_to, message)
    assert encode(read.message, msg_id, in_reply_to) == line


def test_a_line_without_in_reply_to_does_not_mention_it() -> None:
    assert encode(messages.Ping(ts=1), "c-1") == HEAD + b'"type":"PING","ts":1}\n'
    assert encode(messages.Ping(ts=1), "c-1", "a-1") == HEAD + b'"in_reply_to":"a-1","type":"PING","ts":1}\n'


def test_a_trailing_carriage_return_is_white_space() -> None:
    assert CONTROL.decode(line_of(type="PING", ts=1) + b"\r").message == messages.Ping(ts=1)


# --- whatever arrives ends as messages or as one refusal --------------------------------------------

_texts = st.binary(max_size=80) | st.text(max_size=40).map(str.encode)


@given(st.data())
@settings(max_examples=100)
def test_bytes_that_are_no_message_are_malformed_and_nothing_else(data: st.DataObject) -> None:
    stream = data.draw(_texts)
    reader = data.draw(st.sampled_from(list(CODECS.values())))
    for line in stream.split(b"\n"):
        result = judged(reader, line)
        assert isinstance(result, PeerError)
        assert result.code is ErrorCode.MALFORMED


@given(st.sampled_from(list(UNIONS)), st.data())
@settings(max_examples=100)
def test_a_damaged_line_yields_a_message_or_a_peer_error(channel: str, data: st.DataObject) -> None:
    line = bytearray(encode(data.draw(messages_of(UNIONS[channel])), "c-1")[:-1])
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(line)))
        length = data.draw(st.integers(0, 4))
        line[start : start + length] = data.draw(st.binary(max_size=4))
    result = judged(CODECS[channel], bytes(line))
    if isinstance(result, Line):
        again = encode(result.message, result.msg_id, result.in_reply_to)
        assert CODECS[channel].decode(again[:-1]) == result
    else:
        assert result.message.isprintable()


@given(
    st.dictionaries(st.text(max_size=5), json_values, max_size=5), st.sampled_from(sorted(codec.ALL_TYPES))
)
@settings(max_examples=100)
def test_any_object_yields_a_message_or_a_peer_error(fields: dict[str, Any], kind: str) -> None:
    envelope = {"protocol_version": PROTOCOL_VERSION, "msg_id": "c-1", "type": kind}
    for reader in CODECS.values():
        result = judged(reader, orjson.dumps(fields | envelope))
        correlates = result.in_reply_to if isinstance(result, PeerError) else result.msg_id
        assert correlates == "c-1"


# --- JSON is strict ----------------------------------------------------------------------------------

NOT_ONE_OBJECT = {
    "an empty line": b"",
    "white space": b"  ",
    "NaN": b'{"a":NaN}',
    "Infinity": b'{"a":Infinity}',
    "minus Infinity": b'{"a":-Infinity}',
    "a number beyond every float": b'{"a":1e999}',
    "an integer of 5,000 digits": b'{"a":' + b"7" * 5000 + b"}",
    "an array": b"[{}]",
    "a string": b'"a"',
    "a number": b"4",
    "null": b"null",
    "two documents": b"{}{}",
    "two documents with a space": b"{} {}",
    "trailing junk": b"{}x",
    "a trailing comma": b'{"a":1,}',
    "a comment": b'{"a":1}//',
    "single quotes": b"{'a':1}",
    "a bare key": b"{a:1}",
    "a leading zero": b'{"a":01}',
    "a leading plus": b'{"a":+1}',
    "an unfinished object": b'{"a":1',
    "a byte order mark": b"\xef\xbb\xbf{}",
    "UTF-16": '{"a":1}'.encode("utf-16-le"),
    "bytes that are not UTF-8": b'{"a":"\xff"}',
    "an overlong encoding": b'{"a":"\xc0\xaf"}',
    "a surrogate in UTF-8": b'{"a":"\xed\xa0\x80"}',
    "a lone high surrogate": rb'{"a":"\ud800"}',
    "a lone low surrogate": rb'{"a":"\udc00"}',
    "surrogates the wrong way round": rb'{"a":"\udc00\ud800"}',
    "a raw control character": b'{"a":"\x01"}',
    "nesting beyond the parser": b'{"a":' + b"[" * 5000 + b"]" * 5000 + b"}",
}

DUPLICATES = {
    "twice the same": b'{"a":1,"a":1}',
    "two types": HEAD + b'"type":"PING","type":"ACK","ts":1,"turn_id":1}',
    "nested": b'{"a":{"b":1,"b":2}}',
    "in an array": b'{"a":[{"b":1,"b":2}]}',
    "written once with an escape": rb'{"a":1,"\u0061":2}',
    "hidden behind an escaped colon in a value": rb'{"a":"\u003a","b":1,"b":2}',
    "hidden behind an escaped colon in a key": rb'{"\u003a":1,"b":1,"b":2}',
    "hidden behind an escaped colon, upper case": rb'{"a":"\u003A","b":1,"b":2}',
    "with colons in the values": b'{"a":"::","b":":","b":":"}',
    "a colon as the key": b'{":":1,":":2}',
    "the first one deeper than any recursion": rb'{"c":"\u003a","b":'
    + b"[" * 1000
    + b"]" * 1000
    + b',"b":1}',
    "the empty key": b'{"":1,"":2}',
}

NO_DUPLICATES = {
    "white space": b'{ "a" : 1 , "b" : { "a" : 1 } }',
    "an escaped colon": rb'{"a":"\u003a","b":1}',
    "an escaped colon, upper case": rb'{"a":"\u003A","b":1}',
    "an escaped backslash before what looks like a colon": rb'{"a":"\\u003a","b":1}',
    "an escaped backslash and an escaped colon": rb'{"a":"\\\u003a","b":1}',
    "an escape that is not a colon": rb'{"a":"\u003b\u0041","b":1}',
    "colons in keys and values": b'{ "a:b":"c:d", "e":["f:g",{"h:":":"}] }',
    "equal keys in different objects": b'{ "a":{"x":1},"b":{"x":1} }',
    "numbers, words and null": b'{ "a":[1,2.50,true,false,null] }',
}


@pytest.mark.parametrize("line", NOT_ONE_OBJECT.values(), ids=NOT_ONE_OBJECT.keys())
def test_what_is_not_one_json_object_is_malformed(line: bytes) -> None:
    error = refusal(line)
    assert (error.code, error.message, error.in_reply_to) == (
        ErrorCode.MALFORMED,
        "not one JSON object",
        None,
    )


@pytest.mark.parametrize("line", DUPLICATES.values(), ids=DUPLICATES.keys())
def test_a_duplicate_key_is_malformed(line: bytes) -> None:
    error = refusal(line)
    assert (error.code, error.message) == (ErrorCode.MALFORMED, "duplicate key")


@pytest.mark.parametrize("line", NO_DUPLICATES.values(), ids=NO_DUPLICATES.keys())
def test_what_only_looks_like_a_duplicate_is_read(line: bytes) -> None:
    assert parse_object(line) == orjson.loads(line)


@given(
    st.dictionaries(st.text(':\\"a', max_size=4), json_values | st.text(':\\u03aA"'), max_size=4), st.data()
)
@settings(max_examples=100)
def test_one_more_equal_key_is_always_noticed(value: dict[str, Any], data: st.DataObject) -> None:
    """The object is written in every way JSON allows: compact, spaced, with escapes."""
    value = {"first": 1, **value}
    text = data.draw(st.sampled_from([orjson.dumps(value), orjson.dumps(value, option=orjson.OPT_INDENT_2)]))
    if data.draw(st.booleans()):
        text = text.replace(b'"first"', rb'"\u0066irst"')
    assert parse_object(text) == value
    twice = orjson.dumps(data.draw(st.sampled_from(sorted(value))))
    with pytest.raises(PeerError, match="duplicate key"):
        parse_object(text[: text.rindex(b"}")] + b"," + twice + b":0}")


def nested(levels: int, opening: bytes, closing: bytes) -> bytes:
    """An object whose innermost value lies so many levels deep, the object included."""
    return b'{"a":' + opening * (levels - 1) + b"0" + closing * (levels - 1) + b"}"


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")], ids=["arrays", "objects"])
def test_sixteen_levels_are_read_and_seventeen_are_not(opening: bytes, closing: bytes) -> None:
    assert MAX_DEPTH == 16
    assert parse_object(nested(16, opening, closing))
    with pytest.raises(PeerError, match="nested deeper than 16") as caught:
        parse_object(nested(17, opening, closing))
    assert caught.value.code is ErrorCode.MALFORMED


@pytest.mark.parametrize("line", [b"{%s}", b'{"m":{%s}}'], ids=["in the object", "further in"])
def test_ten_thousand_keys_are_refused(line: bytes) -> None:
    keys = b",".join(b'"k%d":1' % number for number in range(10_000))
    assert refusal(line % keys).message == f"more than {MAX_MEMBERS} members"


def test_members_are_counted_over_the_whole_line() -> None:
    fits = b'{"a":[' + b",".join([b"1"] * (MAX_MEMBERS - 3)) + b'],"b":[1]}'
    assert parse_object(fits)
    with pytest.raises(PeerError, match="members"):
        parse_object(fits.replace(b"[1]}", b"[1,1]}"))


@pytest.mark.parametrize("channel", CODECS)
def test_only_a_line_from_the_arbiter_may_have_more_members(channel: str) -> None:
    from_arbiter = channel.endswith(("to seat", "to operator"))
    limit = MAX_ARBITER_MEMBERS if from_arbiter else MAX_MEMBERS
    fits = line_of(type="PING", ts=1, padding=[0] * (limit - 5))
    if "PING" in CODECS[channel].types:
        assert CODECS[channel].decode(fits).message == messages.Ping(ts=1)
    error = refusal(fits.replace(b"[0,", b"[0,0,"), CODECS[channel])
    assert error.message == f"more than {limit} members"


# --- the envelope ------------------------------------------------------------------------------------


@pytest.mark.parametrize("msg_id", [None, "", 7, True, ["c-1"], "x" * (MAX_ID + 1)])
def test_a_line_without_a_good_msg_id_is_malformed_and_answered_to_nobody(msg_id: Any) -> None:
    error = refusal(line_of(type="PING", ts=1, msg_id=msg_id))
    assert (error.code, error.in_reply_to) == (ErrorCode.MALFORMED, None)
    assert error.message == "msg_id must be a string of 1 to 64 characters"


@pytest.mark.parametrize("msg_id", ["x", "𝄞" * MAX_ID])
def test_a_msg_id_has_one_to_64_characters(msg_id: str) -> None:
    assert CONTROL.decode(line_of(type="PING", ts=1, msg_id=msg_id)).msg_id == msg_id


@pytest.mark.parametrize("version", [None, 3, 5, "4", 4.0, True, [4]])
def test_another_version_is_refused_before_the_type_is_looked_at(version: Any) -> None:
    error = refusal(line_of(type="NO_SUCH_TYPE", protocol_version=version))
    assert (error.code, error.in_reply_to) == (ErrorCode.PROTOCOL_VERSION_UNSUPPORTED, "c-1")
    assert error.message == "this end speaks protocol_version 4"


@pytest.mark.parametrize("in_reply_to", [7, "", ["a-1"], "x" * (MAX_ID + 1)])
def test_in_reply_to_must_be_a_msg_id(in_reply_to: Any) -> None:
    error = refusal(line_of(type="PING", ts=1, in_reply_to=in_reply_to))
    assert (error.code, error.message) == (ErrorCode.MALFORMED, "in_reply_to must be a msg_id")
    assert error.in_reply_to == "c-1"


def test_in_reply_to_may_be_null() -> None:
    assert CONTROL.decode(HEAD + b'"type":"PING","ts":1,"in_reply_to":null}').in_reply_to is None


# --- the type ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [None, 7, ["PING"], "ping", "PING ", "", "NO_SUCH_TYPE"])
def test_an_unknown_type_is_malformed(kind: Any) -> None:
    error = refusal(line_of(type=kind, ts=1))
    assert (error.code, error.message) == (ErrorCode.MALFORMED, "unknown message type")
    assert error.in_reply_to == "c-1"


@pytest.mark.parametrize("channel", CODECS)
def test_a_type_of_another_channel_or_direction_is_denied(channel: str) -> None:
    reader = CODECS[channel]
    strange = codec.ALL_TYPES - reader.types
    assert strange
    for kind in strange:
        error = refusal(line_of(type=kind), reader)
        assert (error.code, error.in_reply_to) == (ErrorCode.POLICY_DENIED, "c-1")
        assert error.message == f"{kind} may not be sent on this channel"


def test_every_type_that_exists_belongs_to_some_channel() -> None:
    assert frozenset().union(*(reader.types for reader in CODECS.values())) == codec.ALL_TYPES


# --- the fields --------------------------------------------------------------------------------------


def test_a_wrong_field_is_named_together_with_its_rule() -> None:
    error = refusal(line_of(type="REG", name="a", meta={"brand": 7}))
    assert (error.code, error.in_reply_to) == (ErrorCode.MALFORMED, "c-1")
    assert error.message == "REG: meta.brand: Input should be a valid string"


def test_a_missing_field_is_named() -> None:
    assert refusal(line_of(type="ACK")).message == "ACK: turn_id: Field required"


def test_a_place_in_a_list_is_named() -> None:
    delta = [{"from": "a", "text": ""}, {"from": "a"}]
    line = line_of(type="CONTEXT", turn_id=1, phase="OPENING", topic="t", delta=delta)
    assert refusal(line, CODECS["data to seat"]).message == "CONTEXT: delta.1.text: Field required"


@pytest.mark.parametrize("seats", [{"\x1b[31mred\n": "keep"}, {"ok": "\x1b[31mred"}, {"a" * 400: "keep"}])
def test_a_refusal_repeats_nothing_that_the_peer_wrote(seats: dict[str, str]) -> None:
    error = refusal(line_of(type="RESUME", seats=seats), ADMIN)
    assert error.message.startswith("RESUME: seats: ")
    assert error.message.isprintable()
    assert "red" not in str(error)
    assert "aaaa" not in str(error)


def test_a_field_has_only_its_own_name_on_the_wire() -> None:
    delta = [{"speaker": "a", "text": ""}]
    line = line_of(type="CONTEXT", turn_id=1, phase="OPENING", topic="t", delta=delta)
    assert refusal(line, CODECS["data to seat"]).message == "CONTEXT: delta.0.from: Field required"


def test_unknown_fields_are_ignored_and_go_nowhere() -> None:
    line = line_of(type="REG", name="a", admin=True, meta={"brand": "x", "secret": {"a": [1]}})
    assert CONTROL.decode(line).message == messages.Reg(name="a", meta=messages.Meta(brand="x"))


@pytest.mark.parametrize(
    ("size", "fits"),
    [(MAX_SPEECH_BYTES - 1, True), (MAX_SPEECH_BYTES, True), (MAX_SPEECH_BYTES + 1, False)],
    ids=["one below", "exactly", "one above"],
)
@pytest.mark.parametrize("letter", ["a", "è", "字", "𝄞"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"])
@pytest.mark.parametrize("kind", ["SPEECH", "INJECT"])
def test_a_text_is_measured_in_bytes(kind: str, letter: str, size: int, *, fits: bool) -> None:
    count, rest = divmod(size, len(letter.encode()))
    line = line_of(type=kind, turn_id=1, text=letter * count + "." * rest)
    reader = DATA if kind == "SPEECH" else ADMIN
    if fits:
        assert reader.decode(line).msg_id == "c-1"
    else:
        error = refusal(line, reader)
        assert (error.code, error.in_reply_to) == (ErrorCode.TOO_LARGE, "c-1")
        assert error.message == f"{kind}: text: Text should have at most {MAX_SPEECH_BYTES} bytes"


# --- the largest lines fit ---------------------------------------------------------------------------


def test_the_largest_speech_fits_in_a_line_however_it_is_escaped() -> None:
    label = "\0" * 200
    usage = messages.Usage(
        tokens_in=2**53, tokens_out=2**53, tokens_cached=2**53, usd=messages.MAX_USD, model=label
    )
    line = encode(messages.Speech(turn_id=2**53, text="\0" * MAX_SPEECH_BYTES, usage=usage), "\0" * MAX_ID)
    assert len(line) > 6 * MAX_SPEECH_BYTES
    assert LineFramer().feed(line) == [line[:-1]]


def test_a_round_of_64_largest_speeches_fits_in_a_context() -> None:
    said = messages.DeltaEntry(speaker="\0" * 200, role_label="\0" * 200, text="\0" * MAX_SPEECH_BYTES)
    context = messages.Context(turn_id=1, phase=messages.Phase.OPENING, topic="\0" * 8000, delta=(said,) * 64)
    reader = CODECS["data to seat"]
    line = encode(context, "a-1")
    assert len(line) > 24 * 1024 * 1024
    (framed,) = LineFramer(MAX_ARBITER_LINE_BYTES).feed(line)
    assert reader.decode(framed).message == context


def test_the_status_of_4096_seats_fits_in_a_line() -> None:
    one = messages.SeatStatus(
        participant_id="a" * 64 + "_00000000",
        connected=True,
        state="x" * 200,
        required=True,
        disconnect_policy=messages.DisconnectPolicy.KEEP_ALIVE,
        role_label="x" * 200,
        brand="x" * 200,
        model="x" * 200,
        turns=1,
        last_turn=1,
        tokens=1,
        usd=1.0,
        repeats_turn=1,
        isolation="strict",
        fault="x" * 2000,
        prompt_sent=messages.PromptSent.MAYBE,
        partial_bytes=messages.MAX_COUNT,
        resets_at="x" * 200,
        last_active_s=123456789.123,
        choices=("keep", "cold", "skip", "remove", "terminate"),
    )
    cost = messages.Cost(
        tokens_total=1,
        tokens_unknown_turns=0,
        tokens_estimated=0,
        usd_total=1.0,
        rounds=1,
        elapsed_s=1.0,
        caps={"max_tokens": 9},
    )
    everyone = {f"seat_{number}_00000000": 1 for number in range(4096)}
    status = messages.Status(
        debate_state=messages.DebateState.PAUSED,
        reason="x" * 2000,
        phase=messages.Phase.REBUTTAL,
        topic="x" * 8000,
        turn_counter=1,
        turns_since=everyone,
        speaking=None,
        cost=cost,
        repetition=dict.fromkeys(everyone, 0.5),
        topic_overlap=dict.fromkeys(everyone, 0.5),
        brands=2,
        seats=(one,) * 4096,
        warnings=(),
    )
    reader = CODECS["admin to operator"]
    (framed,) = LineFramer(MAX_ARBITER_LINE_BYTES).feed(encode(status, "a-1"))
    assert reader.decode(framed).message == status


@given(model(messages.Reg))
@settings(max_examples=20)
def test_a_message_means_the_same_however_its_json_is_laid_out(message: messages.Reg) -> None:
    spaced = orjson.dumps(
        orjson.loads(encode(message, "c-1")), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS
    )
    assert CONTROL.decode(spaced.replace(b"\n", b" ")).message == message
