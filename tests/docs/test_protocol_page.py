"""docs/protocol.md says what the models say: nothing is missing, nothing is made up, every example works."""

from __future__ import annotations

import re

import orjson
import pytest
from message_strategies import CODECS, UNIONS, members
from protocol_page import (
    CHANNELS,
    MESSAGES,
    PAGE,
    PARTS,
    bounds,
    option_table,
    options,
    sections,
    syntax,
    tables,
)

from consilium import codec, framing, messages
from consilium.codec import encode
from consilium.errors import ErrorCode

TEXT = PAGE.read_text(encoding="utf-8")
CHAPTERS = dict(sections(TEXT, 2))
DESCRIBED = dict(sections(TEXT, 3))
OVERVIEW = {re.sub(r"\[(.+)\]\(.+\)", r"\1", row[0]): row[1:] for row in tables(CHAPTERS["Messages"])[0]}

OF_THE_SPECIFICATION = frozenset(
    {
        *("REG", "REG_OK", "STATE_UPDATE", "STATE_OK", "UNREG", "PING", "PONG", "ERROR"),
        *("TURN_START", "ACK", "TURN_END", "TURN_REVOKED"),
        *("DEBATE_PAUSED", "DEBATE_RESUMED", "DEBATE_ENDED"),
        *("DATA_HELLO", "CONTEXT", "SPEECH", "SYSTEM_EVENT"),
        *(
            "KICK",
            "FORCE_TURN_END",
            "SET_TOPIC",
            "SET_PHASE",
            "INJECT",
            "PAUSE",
            "RESUME",
            "TERMINATE",
            "STATUS",
        ),
    }
)
"""Its messages (§5.4, §5.5, §5.7) and operations (§3.3.D)."""


def block(text: str, language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return str(found)


def test_every_message_and_every_part_is_described_and_nothing_else() -> None:
    assert list(OVERVIEW) == [title for title in DESCRIBED if title not in PARTS]
    assert OVERVIEW.keys() == MESSAGES.keys()
    assert DESCRIBED.keys() == (MESSAGES | PARTS).keys()


@pytest.mark.parametrize("title", [*MESSAGES, *PARTS])
def test_syntax_and_options_are_those_of_the_model(title: str) -> None:
    kind = (MESSAGES | PARTS)[title]
    assert " ".join(block(DESCRIBED[title], "text").split()) == syntax(kind)
    written = option_table(DESCRIBED[title])
    assert [tuple(row[:3]) for row in written] == [
        (f"`{name}`", said, presence) for name, said, presence in options(kind)
    ]
    assert all(len(row) == 4 and row[3] for row in written), "a field without a meaning"


@pytest.mark.parametrize("title", MESSAGES)
def test_channel_and_sender_are_those_of_the_unions(title: str) -> None:
    places = [CHANNELS[name] for name, union in UNIONS.items() if MESSAGES[title] in members(union)]
    channels, senders, meaning, _ = OVERVIEW[title]
    assert channels.split(", ") == list(dict.fromkeys(channel for channel, _ in places))
    assert senders.split(", ") == list(dict.fromkeys(sender for _, sender in places))
    assert DESCRIBED[title].lstrip().removeprefix("*Addition.* ").startswith(meaning.partition(" (")[0])


@pytest.mark.parametrize("title", MESSAGES)
def test_the_example_is_a_line_of_every_channel_that_carries_the_message(title: str) -> None:
    example = block(DESCRIBED[title], "json").replace("\n", "")
    readers = [CODECS[name] for name, union in UNIONS.items() if MESSAGES[title] in members(union)]
    assert readers
    for reader in readers:
        line = reader.decode(example.encode())
        assert type(line.message) is MESSAGES[title]
        assert orjson.loads(encode(line.message, line.msg_id, line.in_reply_to)) == orjson.loads(example)


def test_additions_are_marked_wherever_they_appear_and_explained() -> None:
    explained = "\n".join(row[0] for row in tables(CHAPTERS["Additions to the specification"])[0])
    for title, kind in MESSAGES.items():
        added = codec.wire_type(kind) not in OF_THE_SPECIFICATION
        assert (OVERVIEW[title][3] == "addition") is added, title
        assert DESCRIBED[title].lstrip().startswith("*Addition.*") is added, title
        assert not added or re.search(rf"\b{title}\b", explained), title
        for name, *_, meaning in option_table(DESCRIBED[title]):
            marked = meaning.startswith("*Addition.*")
            assert marked is (name in OVERVIEW[title][3].split(", ")), (title, name)
            assert not marked or re.search(rf"{name} of .*{title}", explained), (title, name)


def test_every_error_code_has_its_situation_and_every_situation_one_code() -> None:
    (rows,) = tables(CHAPTERS["Errors"])
    assert {code for _, code, _ in rows} == {code.value for code in ErrorCode}
    assert len({situation for situation, *_ in rows}) == len(rows)
    assert {after for *_, after in rows} == {"closed", "stays", ""}


def test_the_limits_are_those_of_the_code() -> None:
    _, rows = tables(CHAPTERS["Lines"])
    quoted = {constant.strip("`"): int(value.split()[0]) for _, value, constant in rows}
    assert quoted == {
        "MAX_LINE_BYTES": framing.MAX_LINE_BYTES,
        "MAX_ARBITER_LINE_BYTES": framing.MAX_ARBITER_LINE_BYTES,
        "MAX_SPEECH_BYTES": messages.MAX_SPEECH_BYTES,
        "MAX_DEPTH": codec.MAX_DEPTH,
        "MAX_MEMBERS": codec.MAX_MEMBERS,
        "MAX_ARBITER_MEMBERS": codec.MAX_ARBITER_MEMBERS,
        "MAX_ID": codec.MAX_ID,
    }
    assert f"text over {messages.MAX_SPEECH_BYTES} bytes" in CHAPTERS["Errors"]


def test_the_envelope_is_that_of_the_codec() -> None:
    envelope = {row[0].strip("`"): row[3] for row in tables(CHAPTERS["Lines"])[0]}
    written = orjson.loads(encode(messages.DataOk(), "a-1", "d-1"))
    assert envelope.keys() == written.keys()
    assert envelope["protocol_version"] == f"`{messages.PROTOCOL_VERSION}`"


def test_the_named_types_have_the_bounds_of_the_code() -> None:
    rows, _ = tables(CHAPTERS["Types"])
    assert [(name, *bounds(vars(messages)[name])) for name, *_ in rows] == [tuple(row) for row in rows]


def test_the_words_are_those_of_the_code() -> None:
    _, rows = tables(CHAPTERS["Types"])
    assert {name: words.strip("`").split("`, `") for name, words in rows} == {
        kind.__name__: [word.value for word in kind]
        for kind in vars(messages).values()
        if isinstance(kind, type) and issubclass(kind, messages.Word) and kind is not messages.Word
    }


def test_every_type_that_a_field_names_is_explained() -> None:
    explained = {row[0] for rows in tables(CHAPTERS["Types"]) for row in rows} | PARTS.keys()
    for kind in (MESSAGES | PARTS).values():
        for _, said, _ in options(kind):
            named = set(re.findall(r"\b[A-Z]\w+", re.sub(r'"\w+"|JSON', "", said)))
            assert named <= explained, named - explained


def test_every_link_leads_to_a_heading() -> None:
    headings = re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#(.+?)\)", TEXT)) <= anchors
