"""`consilium.strict_yaml`: a plain tree out, or one sentence that says where it is not one."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.errors import UserError
from consilium.strict_yaml import MAX_BYTES, dump_tree, parse_tree, read_tree

if TYPE_CHECKING:
    from pathlib import Path

TREES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**17), 10**17)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
    | st.sampled_from(
        ["no", "on", "010", "1:30", "1e6", "1_0", "~", "null", "0x1f", "2026-01-01", "<<", "="]
    ),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text("ab: #-no", max_size=4), below, max_size=3)
    ),
    max_leaves=8,
)


def parsed(text: str) -> Any:
    return parse_tree(text, name="f")[0]


def refusal(text: str) -> str:
    with pytest.raises(UserError) as caught:
        parse_tree(text, name="f")
    return str(caught.value)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("true", True),
        ("False", False),
        ("no", "no"),
        ("on", "on"),
        ("12", 12),
        ("-3", -3),
        ("60_000", 60_000),
        ("010", "010"),
        ("1:30", "1:30"),
        ("0x1F", "0x1F"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("~", None),
        ("null", None),
        ("", None),
        ("'12'", "12"),
        ("9" * 30, "9" * 30),
    ],
)
def test_a_plain_scalar_is_what_it_looks_like(written: str, read: Any) -> None:
    value = parsed(f"key: {written}")["key"]
    assert (value, type(value)) == (read, type(read))


def test_each_key_path_has_its_line() -> None:
    _, lines = parse_tree("a: 1\nb:\n  - x\n  - c: 2\n", name="f")
    assert lines[("a",)] == 1
    assert lines[("b", 0)] == 3
    assert lines[("b", 1, "c")] == 4


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: 1\nb: 2\na: 3", "f, line 3: a: given twice"),
        ("x:\n  - a: 1\n    a: 2", "f, line 3: x.0.a: given twice"),
        ("a: &x 1\nb: *x", "f, line 2: aliases (*name) are not accepted: write the value out"),
        ("a: !!python/object/apply:os.system [ls]", "f, line 1: tags (!name) are not accepted"),
        ("a: !!int '3'", "f, line 1: tags (!name) are not accepted"),
        ("[" * 20, "f, line 1: nested deeper than 16"),
        ("? [a]\n: 1", "f, line 1: a key must be text; put it in quotes"),
        ("1: a", "f, line 1: a key must be text; put it in quotes"),
        ("true: a", "f, line 1: a key must be text; put it in quotes"),
        ("a: 1.0e999", "f, line 1: a number out of range"),
        (
            'a: 1\nb: "\\ud83d\\ude00"',
            "f, line 2: half a character (\\uD800 to \\uDFFF): write all of it, or \\U and eight digits",
        ),
        (
            "a: b: c",
            (
                "f, line 1: not readable as YAML: mapping values are not allowed here\n"
                "  a value that holds ': ' needs quotes"
            ),
        ),
        (
            "a: 1\n---\nb: 2",
            (
                "f, line 2: not readable as YAML: expected a single document in the stream, "
                "but found another document"
            ),
        ),
        (
            "a: 'x",
            "f, line 1: not readable as YAML: while scanning a quoted scalar, found unexpected end of stream",
        ),
        (
            "a: \x00",
            "f: not readable as YAML: unacceptable character #x0000: special characters are not allowed",
        ),
    ],
)
def test_what_is_no_plain_tree_is_refused_with_its_line(text: str, told: str) -> None:
    assert refusal(text) == told


def test_a_merge_key_is_a_key_like_any_other() -> None:
    assert parsed("<<: {a: 1}") == {"<<": {"a": 1}}


def test_an_empty_file_is_nothing() -> None:
    assert parsed("# only a comment") is None


@given(TREES)
@settings(max_examples=150, deadline=None)
def test_what_is_written_reads_back(tree: Any) -> None:
    assert parsed(dump_tree({"tree": tree})) == {"tree": tree}


@given(st.text("abc:#-[]{}'\"\n ,&*!|>%@?~0.", max_size=60))
@settings(max_examples=150, deadline=None)
def test_any_text_is_read_or_refused(text: str) -> None:
    # Nothing but a refusal may escape: not an error of the YAML library, not a recursion, not a bad number.
    with contextlib.suppress(UserError):
        orjson.dumps(parse_tree(text, name="f")[0])


@pytest.mark.parametrize("text", ["no", "1:30", "010", "on", "2026-01-01"])
def test_what_is_written_is_the_same_text_to_a_reader_of_yaml_1_1(text: str) -> None:
    assert yaml.safe_load(dump_tree({"a": text})) == {"a": text}


@pytest.mark.parametrize("char", ["\x85", "\u2028", "\u2029", "\r", "\n", "\ufeff"])
def test_every_kind_of_line_break_is_the_same_one_when_it_is_read(char: str) -> None:
    for text in (char, f"a{char}b", f"a\n{char}", f"{char} a: b"):
        assert parse_tree(dump_tree({"t": [text]}), name="f")[0] == {"t": [text]}


def test_the_same_value_twice_is_written_twice() -> None:
    shared = ["x"]
    assert "*" not in dump_tree({"a": shared, "b": shared})


@pytest.mark.parametrize(
    "text", ["[" * 250_000, "{a: " * 60_000, "? " * 100_000, "- " * 100_000, "'" * 250_001]
)
def test_a_hostile_file_is_refused_quickly(text: str) -> None:
    began = time.monotonic()
    refusal(text)
    assert time.monotonic() - began < 5


# --- files ---------------------------------------------------------------------------------------------


def refused_file(path: Path) -> str:
    with pytest.raises(UserError) as caught:
        read_tree(path)
    return str(caught.value)


def test_a_file_that_is_not_there_is_told_so(tmp_path: Path) -> None:
    assert refused_file(tmp_path / "x") == f"{tmp_path / 'x'}: cannot be read: No such file or directory"


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert refused_file(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


def test_a_file_without_end_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "x").symlink_to("/dev/zero")
    assert refused_file(tmp_path / "x") == f"{tmp_path / 'x'}: larger than {MAX_BYTES // 1024} KiB"


def test_text_in_another_encoding_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"a: 1\nb: \xe9\n")
    assert refused_file(tmp_path / "x") == f"{tmp_path / 'x'}, line 2: not UTF-8 text"


def test_a_byte_order_mark_and_windows_line_ends_are_no_matter(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    assert read_tree(tmp_path / "x")[0] == {"a": 1, "b": 2}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_told_so(tmp_path: Path) -> None:
    (tmp_path / "x").touch(mode=0)
    assert refused_file(tmp_path / "x") == f"{tmp_path / 'x'}: cannot be read: Permission denied"
