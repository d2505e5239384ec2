from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from message_strategies import UNIONS, members, model
from pydantic import TypeAdapter, ValidationError

from consilium import messages
from consilium.codec import wire_type
from consilium.messages import MAX_SPEECH_BYTES, DisconnectPolicy, Fault, Message, Phase, Recovery

if TYPE_CHECKING:
    from enum import Enum

CLASSES = sorted({kind for union in UNIONS.values() for kind in members(union)}, key=wire_type)
PARTS = [messages.Meta, messages.Usage, messages.DeltaEntry, messages.Cost, messages.SeatStatus]

COST = messages.Cost(
    tokens_total=412_000,
    tokens_unknown_turns=0,
    tokens_estimated=0,
    usd_total=None,
    rounds=9,
    elapsed_s=4310,
    caps={"max_tokens": 500_000.0, "max_usd": 2.5},
)


def read(kind: type[Message], **fields: Any) -> Message:
    """Validate as the codec does: names as on the wire, values as a JSON parser makes them."""
    return kind.model_validate(fields, by_alias=True, by_name=False)


# --- one class a message -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", CLASSES, ids=wire_type)
def test_the_wire_type_is_the_class_name_in_capitals(kind: type[Message]) -> None:
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind.__name__).upper()
    assert wire_type(kind) == ("STATUS" if kind is messages.StatusRequest else words)


def test_every_class_is_a_message_of_a_channel_or_a_part_of_one() -> None:
    defined = {
        kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, Message)
    }
    assert defined == {Message, *CLASSES, *PARTS}


@pytest.mark.parametrize("kind", CLASSES, ids=wire_type)
@given(data=st.data())
@settings(max_examples=10)
def test_a_message_cannot_be_changed(kind: type[Message], data: st.DataObject) -> None:
    message = data.draw(model(kind))
    for name in kind.model_fields:
        with pytest.raises(ValidationError, match="frozen"):
            setattr(message, name, None)


OF_EVERY_JSON_TYPE: list[tuple[str, Any]] = [
    ("string", "1"),
    ("integer", 1),
    ("number", 1.0),
    ("boolean", True),
    ("array", [1]),
    ("object", {"\n": 1}),
    ("null", None),
]


def json_types(schema: dict[str, Any], definitions: dict[str, Any]) -> set[str]:
    """The JSON types that a field's schema admits."""
    if "$ref" in schema:
        return json_types(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return set().union(*(json_types(each, definitions) for each in schema["anyOf"]))
    return {schema["type"]} | ({"integer"} if schema["type"] == "number" else set())


@pytest.mark.parametrize("kind", [*CLASSES, *PARTS], ids=lambda kind: kind.__name__)
def test_no_field_takes_a_value_of_another_json_type(kind: type[Message]) -> None:
    """A number is no word, 1 is not true, and neither 1.0 nor true is a whole number."""
    schema = kind.model_json_schema()
    for name, field in schema["properties"].items():
        admitted = json_types(field, schema.get("$defs", {}))
        for json_type, value in OF_EVERY_JSON_TYPE:
            if json_type not in admitted:
                with pytest.raises(ValidationError) as caught:
                    read(kind, **{name: value})
                assert name in {problem["loc"][0] for problem in caught.value.errors()}, (name, value)


@pytest.mark.parametrize("value", [True, 1.0, "1", -1, 2**53 + 1, 2**64, None, [1]])
def test_a_count_is_a_whole_number_from_zero_to_two_to_the_53(value: Any) -> None:
    with pytest.raises(ValidationError):
        read(messages.Ack, turn_id=value)


@pytest.mark.parametrize("value", [0, 2**53])
def test_a_count_reaches_both_ends_of_its_range(value: int) -> None:
    assert read(messages.Ack, turn_id=value) == messages.Ack(turn_id=value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_no_number_is_infinite_or_undefined(value: float) -> None:
    with pytest.raises(ValidationError):
        messages.Usage(usd=value)
    with pytest.raises(ValidationError):
        COST.model_validate(COST.model_dump() | {"elapsed_s": value})
    with pytest.raises(ValidationError):
        COST.model_validate(COST.model_dump() | {"caps": {"max_usd": value}})
    with pytest.raises(ValidationError):
        TypeAdapter(messages.Finite).validate_python(value)


# --- words -------------------------------------------------------------------------------------------

WORDS = [
    kind for kind in vars(messages).values() if isinstance(kind, type) and issubclass(kind, messages.Word)
]
WORDS.remove(messages.Word)


@pytest.mark.parametrize("kind", WORDS)
def test_a_word_is_read_from_its_string_and_from_nothing_else(kind: type[Enum]) -> None:
    reader = TypeAdapter(kind)
    for word in kind:
        assert reader.validate_python(word.value, strict=None) is word
        for wrong in (
            word.value + " ",
            word.value.swapcase(),
            word.value + "\n",
            [word.value],
            0,
            True,
            None,
        ):
            with pytest.raises(ValidationError):
                reader.validate_python(wrong)


def test_recovery_of_a_seat_is_keep_or_cold_and_no_other_choice() -> None:
    assert read(messages.SeatRecovery, mode="cold") == messages.SeatRecovery(mode=Recovery.COLD)
    for mode in (Recovery.SKIP, Recovery.REMOVE):
        with pytest.raises(ValidationError):
            read(messages.SeatRecovery, mode=mode.value)


# --- names: nothing that merely looks alike ----------------------------------------------------------

LOOK_ALIKES = {
    "Cyrillic a": "claude_\u0430",
    "full-width a": "\uff41bc",
    "mathematical a": "\U0001d41abc",
    "dotless i": "\u0131",
    "accent that combines": "e\u0301",
    "upper case": "Abc",
    "the Kelvin sign": "\u212a",
    "full-width digit": "seat\uff11",
    "Arabic digit": "seat\u0661",
    "full-width underscore": "a\uff3fb",
    "hyphen": "a-b",
    "newline after": "abc\n",
    "newline before": "\nabc",
    "two lines": "abc\nabc",
    "carriage return": "abc\r",
    "space": "a b",
    "space after": "abc ",
    "no-break space": "abc\u00a0",
    "zero-width space": "ab\u200bc",
    "soft hyphen": "ab\u00adc",
    "right-to-left mark": "abc\u200f",
    "NUL": "abc\0",
    "NUL alone": "\0",
    "path": "../x",
    "slash": "a/b",
    "dot": "a.b",
    "empty": "",
    "65 characters": "a" * 65,
    "300 characters": "a" * 300,
}


@pytest.mark.parametrize("name", LOOK_ALIKES.values(), ids=LOOK_ALIKES.keys())
def test_a_name_that_merely_looks_like_one_is_refused_wherever_a_name_is_read(name: str) -> None:
    for kind, fields in (
        (messages.Reg, {"name": name}),
        (messages.StateUpdate, {"name": name}),
        (messages.Unreg, {"name": name}),
        (messages.Kick, {"seat": name}),
        (messages.Next, {"seat": name}),
        (messages.Resume, {"seats": {name: "keep"}}),
        (messages.Kick, {"seat": name + "_AB12CD34"}),
        (messages.SystemEvent, {"event": "HUMAN_SKIP", "participant_id": name + "_AB12CD34"}),
    ):
        with pytest.raises(ValidationError):
            read(kind, **fields)


@given(st.text(max_size=70) | st.from_regex(r"[a-z0-9_]{1,66}\n?"))
@example("a" * 64)
@settings(max_examples=100)
def test_a_name_is_1_to_64_of_26_letters_ten_digits_and_the_underscore(name: str) -> None:
    alphabet = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")
    good = 1 <= len(name) <= 64 and frozenset(name) <= alphabet
    try:
        TypeAdapter(messages.Name).validate_python(name)
    except ValidationError:
        assert not good
    else:
        assert good


@pytest.mark.parametrize(
    "suffix", ["_AB12CD3", "_AB12CD345", "_ab12cd34", "_AB12CDG4", "AB12CD34", "_AB12CD34\n", ""]
)
def test_a_participant_id_ends_in_eight_upper_case_hexadecimal_digits(suffix: str) -> None:
    with pytest.raises(ValidationError):
        messages.SystemEvent(event="HUMAN_SKIP", participant_id="seat" + suffix)
    messages.SystemEvent(event="HUMAN_SKIP", participant_id="seat_AB12CD34")


def test_an_operator_names_a_seat_by_name_or_by_participant_id() -> None:
    assert messages.Kick(seat="seat").seat == "seat"
    assert messages.Kick(seat="seat_AB12CD34").seat == "seat_AB12CD34"


# --- texts -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "limit"),
    [
        (lambda text: messages.Meta(brand=text), 200),
        (lambda text: messages.Pause(reason=text), 2000),
        (lambda text: messages.SetTopic(topic=text), 8000),
        (lambda text: messages.DataHello(session_id=text, data_token="t"), 200),
    ],
    ids=["label", "reason", "topic", "token"],
)
def test_short_texts_are_bounded_in_characters(make: Any, limit: int) -> None:
    for size in (limit - 1, limit):
        assert make("𝄞" * size)
    with pytest.raises(ValidationError, match=f"at most {limit} characters"):
        make("x" * (limit + 1))


@pytest.mark.parametrize("letter", ["a", "\0", "è", "字", "𝄞"])
def test_the_text_of_a_contribution_is_bounded_in_bytes(letter: str) -> None:
    def entry(size: int) -> messages.DeltaEntry:
        count, rest = divmod(size, len(letter.encode()))
        return messages.DeltaEntry(speaker="a", text=letter * count + "." * rest)

    for size in (MAX_SPEECH_BYTES - 1, MAX_SPEECH_BYTES):
        assert len(entry(size).text.encode()) == size
    with pytest.raises(ValidationError, match=f"at most {MAX_SPEECH_BYTES} bytes") as caught:
        entry(MAX_SPEECH_BYTES + 1)
    assert caught.value.errors()[0]["type"] == messages.TOO_MANY_BYTES


def test_who_speaks_says_something() -> None:
    for kind in (messages.Speech, messages.Inject):
        with pytest.raises(ValidationError):
            read(kind, turn_id=1, text="")
    with pytest.raises(ValidationError):
        messages.SetTopic(topic="")


def test_a_lone_surrogate_is_refused_before_it_could_fail_to_be_written() -> None:
    for make in (
        lambda text: messages.Speech(turn_id=1, text=text),
        lambda text: messages.Meta(brand=text),
        lambda text: messages.Pause(reason=text),
    ):
        with pytest.raises(ValidationError):
            make("\ud800")


# --- single messages ---------------------------------------------------------------------------------


def test_a_seat_asks_for_nothing_that_it_does_not_name() -> None:
    assert messages.Reg(name="a") == messages.Reg(
        name="a", disconnect_policy=DisconnectPolicy.DROP, required=False, meta=messages.Meta()
    )
    assert messages.TurnEnd(turn_id=1).speech is False
    assert messages.SystemEvent(event="HUMAN_SKIP").visible is False


def test_unknown_cost_is_null_and_never_zero() -> None:
    assert set(messages.Usage().model_dump().values()) == {None}
    assert messages.Speech(turn_id=1, text="a").usage is None


def test_a_hidden_role_is_absent_from_a_delta_and_not_null() -> None:
    hidden = messages.DeltaEntry(speaker="Speaker A", text="t")
    assert hidden.model_dump(by_alias=True) == {"from": "Speaker A", "text": "t"}
    shown = messages.DeltaEntry(speaker="a", role_label="sceptic", text="t")
    assert shown.model_dump(by_alias=True)["role_label"] == "sceptic"


def test_lists_become_tuples() -> None:
    paused = read(messages.DebatePaused, reason="r", missing=["a_AB12CD34"])
    assert paused == messages.DebatePaused(reason="r", missing=("a_AB12CD34",))
    for wrong in ("a_AB12CD34", {"a_AB12CD34": 1}, 1, None):
        with pytest.raises(ValidationError):
            read(messages.DebatePaused, reason="r", missing=wrong)


def test_the_cap_on_tokens_is_also_told_under_the_name_of_the_specification() -> None:
    assert COST.cap == 500_000
    assert COST.model_dump()["cap"] == 500_000
    without = COST.model_copy(update={"caps": {"max_rounds": 3.0}})
    assert without.model_dump()["cap"] is None


def test_faults_are_the_ones_that_adapters_report() -> None:
    failed = read(messages.TurnFailed, turn_id=1, fault="quota", prompt_sent="maybe")
    assert failed == messages.TurnFailed(turn_id=1, fault=Fault.QUOTA, prompt_sent=messages.PromptSent.MAYBE)


# --- the specification's own examples (§5.4, §5.5, §5.7) ---------------------------------------------

EXAMPLES: list[dict[str, Any]] = [
    {
        "type": "REG",
        "name": "key1_human1",
        "disconnect_policy": "keep_alive",
        "required": True,
        "meta": {
            "brand": "human",
            "model": None,
            "effort": None,
            "adapter": "human",
            "role_label": "moderator",
        },
    },
    {
        "type": "REG_OK",
        "session_id": "session-uuid",
        "participant_id": "key1_human1_AB12CD34",
        "debate_state": "WAITING_QUORUM",
        "topic": "Should we rewrite the billing service or wrap it?",
        "phase": "OPENING",
        "turn_counter": 41,
        "required": True,
        "disconnect_policy": "keep_alive",
        "data_token": "single-use-token-bound-to-fingerprint",
        "heartbeat_interval_ms": 15000,
    },
    {"type": "STATE_UPDATE", "required": False, "disconnect_policy": "drop"},
    {"type": "STATE_OK", "required": False, "disconnect_policy": "drop", "capped_by_profile": False},
    {"type": "UNREG", "reason": "user_quit"},
    {"type": "TURN_START", "turn_id": 12, "phase": "REBUTTAL", "deadline_ms": 120000},
    {"type": "ACK", "turn_id": 12},
    {"type": "TURN_END", "turn_id": 12},
    {"type": "TURN_REVOKED", "turn_id": 12, "reason": "deadline_exceeded"},
    {"type": "PING", "ts": 1735689600000},
    {"type": "PONG", "ts": 1735689600000},
    {"type": "ERROR", "code": "NOT_OWNER", "message": "This session may not modify that participant"},
    {"type": "DEBATE_PAUSED", "reason": "missing_required_participant", "missing": ["key1_human1_AB12CD34"]},
    {"type": "DEBATE_RESUMED", "turn_counter": 42},
    {"type": "DEBATE_ENDED", "outcome": "STOPPED_BY_CAP", "cap": "max_tokens", "turn_counter": 187},
    {"type": "DATA_HELLO", "session_id": "session-uuid", "data_token": "token"},
    {
        "type": "CONTEXT",
        "turn_id": 12,
        "phase": "REBUTTAL",
        "topic": "Should we rewrite the billing service or wrap it?",
        "delta": [
            {"from": "claude_sonnet_deep_AB12CD34", "role_label": "sceptic", "text": "Previous turn..."}
        ],
    },
    {"type": "SPEECH", "turn_id": 12, "text": "Turn text"},
    {
        "type": "SYSTEM_EVENT",
        "event": "PARTICIPANT_MEMORY_LOST",
        "participant_id": "qwen_coder_77AA11BB",
        "visible": False,
    },
]


@pytest.mark.parametrize("fields", EXAMPLES, ids=lambda fields: fields["type"])
def test_the_examples_of_the_specification_are_messages(fields: dict[str, Any]) -> None:
    (kind,) = (kind for kind in CLASSES if wire_type(kind) == fields["type"])
    written = orjson.loads(orjson.dumps(read(kind, **fields).model_dump(by_alias=True)))
    for name, value in fields.items():
        if name != "meta":
            assert written[name] == value


def test_status_holds_everything_that_the_specification_shows() -> None:
    status = messages.Status(
        debate_state=messages.DebateState.RUNNING,
        reason=None,
        phase=Phase.REBUTTAL,
        topic="t",
        turn_counter=187,
        turns_since={"key1_human1_AB12CD34": 63},
        speaking=None,
        cost=COST,
        repetition={"qwen_coder_77AA11BB": 0.91, "claude_sonnet_deep_AB12CD34": 0.34},
        topic_overlap={},
        brands=None,
        seats=(),
        warnings=(),
    ).model_dump()
    shown = {"type", "debate_state", "phase", "topic", "turn_counter", "turns_since", "cost", "repetition"}
    assert shown <= status.keys()
    assert {"tokens_total": 412000, "cap": 500000, "elapsed_s": 4310}.items() <= status["cost"].items()
