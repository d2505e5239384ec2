"""`wrapper.adapters.presets`, and the templates and pointers that a preset is made of."""

from __future__ import annotations

import contextlib
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from consilium.config import HUMAN
from consilium.errors import UserError
from consilium.messages import MAX_COUNT, MAX_USD, Fault, PromptSent, Usage
from wrapper.adapters import templates
from wrapper.adapters.chats import usage_of
from wrapper.adapters.places import AnswerPlaces
from wrapper.adapters.presets import Preset, load_preset, read_preset
from wrapper.adapters.reading import Unreadable, read_answer

PACKAGED = Path(__file__).parents[2] / "wrapper" / "presets"

ENDPOINT = {"api_base": "http://127.0.0.1:8080/v1"}


def written(folder: Path, old: str, new: str) -> Path:
    """A copy of the llm preset with one thing changed."""
    text = (PACKAGED / "llm.toml").read_text()
    assert old in text
    path = folder / "llm.toml"
    path.write_text(text.replace(old, new, 1))
    return path


# --- loading -----------------------------------------------------------------------------------------


CLIENTS = [path for path in sorted(PACKAGED.glob("*.toml")) if path.stem != HUMAN]


@pytest.mark.parametrize("path", CLIENTS, ids=lambda path: path.stem)
def test_every_preset_that_comes_along_loads_by_its_name(path: Path) -> None:
    assert load_preset(path.stem).name == path.stem


def test_the_llm_preset_says_what_its_file_says() -> None:
    tree = tomllib.loads((PACKAGED / "llm.toml").read_text())
    preset = load_preset("llm")
    assert list(preset.run.first) == tree["run"]["first"]
    assert list(preset.env.passed) == tree["env"]["pass"]
    assert preset.faults[0].fault is Fault.SESSION_MISMATCH
    assert preset.faults[0].prompt_sent is PromptSent.NO
    assert preset.faults[-1].prompt_sent is PromptSent.YES


@pytest.mark.parametrize(
    ("taken_away", "reports"),
    [((), True), (("tokens_in",), True), (("tokens_out",), True), (("tokens_in", "tokens_out"), False)],
)
def test_a_preset_says_whether_its_client_reports_tokens(taken_away: tuple[str, ...], reports: bool) -> None:
    preset = load_preset("llm")
    answer = preset.answer.model_copy(update=dict.fromkeys(taken_away))
    assert preset.model_copy(update={"answer": answer}).reports_usage is reports


def test_an_unknown_preset_is_refused_with_the_nearest_name_and_all_there_are() -> None:
    with pytest.raises(UserError, match="'lllm'") as refused:
        load_preset("lllm")
    assert "did you mean llm? known: " in refused.value.hint
    with pytest.raises(UserError) as refused:
        load_preset("../../etc/passwd")
    assert refused.value.hint.startswith("known: ")


def test_a_folder_of_ones_own_adds_presets_and_replaces_those_that_come_along(tmp_path: Path) -> None:
    written(tmp_path, 'brand = "llm"', 'brand = "mine"')
    assert load_preset("llm", tmp_path).brand == "mine"
    other = written(tmp_path, 'name = "llm"', 'name = "other"').rename(tmp_path / "other.toml")
    assert load_preset("other", tmp_path) == read_preset(other)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('brand = "llm"', 'brand = "llm"\ncolour = "red"', "colour: there is no such key"),
        ("[run]\n", "[run]\nshell = true\n", r"run\.shell: there is no such key"),
        ('prompt = "stdin"', 'prompt = "argv"', r"run\.prompt: Input should be 'stdin'"),
        ('output = "at_end"', 'output = "sometimes"', r"run\.output: Input should be"),
        ('name = "llm"', 'name = "mll"', "name must be 'llm', like the file"),
        ('name = "llm"', "", "name must be 'llm', like the file"),
        ('executable = "llm"', 'executable = ""', "executable: .* at least 1 character"),
        ('executable = "llm"', "executable = 7", "executable: Input should be a valid string"),
        ('executable = "llm"', "executable = 2026-01-01", r"not JSON serializable: datetime\.date"),
        (
            "{max_tokens}",
            "{max_token}",
            r"run\.first\[6\]: nothing is called \{max_token\} here; there is api_base",
        ),
        ('"--sf", "{system_file}"', '"--cid", "{id}"', r"run\.first\[8\]: nothing is called \{id\} here"),
        (
            'LLM_LOAD_PLUGINS = ""',
            'LLM_LOAD_PLUGINS = "{oops"',
            r"env\.set\.LLM_LOAD_PLUGINS: a single \{ at char",
        ),
        (
            "api_base: {api_base}",
            "api_base: {url}",
            r"state\.files\.extra-openai-models\.yaml: nothing is called",
        ),
        (
            'proof = "logs.db"',
            'proof = "{chat}.db"',
            r"state\.proof: nothing is called \{chat\} here; .*\bid\b",
        ),
        ('"extra-openai-models.yaml"', '"../evil"', r"state\.files\.\.\./evil"),
        ('variables = ["HOME"', 'variables = ["HO ME"', r"state\.variables\.0: .*pattern"),
        (
            "[settings.model]",
            "[settings.home]\nhelp = '?'\n[settings.model]",
            "settings: home has a meaning of its own",
        ),
        (r"""'version (\d+(?:\.\d+)+)'""", r"""'version (\d+'""", r"version\.pattern: missing \)"),
        (r"""'version (\d+(?:\.\d+)+)'""", r"""'version \d+'""", r"version\.pattern: one group"),
        ('minimum = "0.36"', 'minimum = "0.36rc1"', r"version\.minimum"),
        ('"Error code: 429"', '"(429"', r"faults\[2\]\.pattern: missing \)"),
        ('fault = "quota"', 'fault = "money"', r"faults\.2\.fault: Input should be"),
        ('id = "/0/conversation_id"', 'id = "conversation_id"', r"answer\.id: .*pattern"),
        ("[network]", "[network", "llm.toml: .*line"),
    ],
)
def test_a_mistake_in_a_preset_is_named_by_file_and_key(
    tmp_path: Path, old: str, new: str, words: str
) -> None:
    path = written(tmp_path, old, new)
    with pytest.raises(UserError, match=words) as refused:
        read_preset(path)
    assert refused.value.message.startswith(f"{path}: ")


def test_a_preset_that_is_not_text_or_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe9"')
    with pytest.raises(UserError, match=r"latin\.toml: .*utf-8"):
        read_preset(tmp_path / "latin.toml")
    with pytest.raises(UserError, match=r"no\.toml cannot be read: No such file"):
        read_preset(tmp_path / "no.toml")


def test_a_number_that_no_preset_holds_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, 'brand = "llm"', "brand = 36893488147419103232")
    with pytest.raises(UserError, match=r"llm\.toml: "):
        read_preset(path)


# --- settings ----------------------------------------------------------------------------------------


def test_settings_come_from_the_caller_then_from_the_defaults() -> None:
    preset = load_preset("llm")
    assert preset.complete({**ENDPOINT, "max_tokens": "60"}) == {
        **ENDPOINT,
        "model": "SmolLM2-135M-Instruct",
        "max_tokens": "60",
    }


def test_a_preset_says_which_variables_of_the_wrapper_it_understands() -> None:
    preset = load_preset("llm")
    assert preset.settings_from({"CONSILIUM_MODEL_URL": "http://x/v1", "HOME": "/root"}) == {
        "api_base": "http://x/v1"
    }
    assert preset.settings_from({"CONSILIUM_MODEL_URL": ""}) == {}


@pytest.mark.parametrize(
    ("given", "words", "hint"),
    [
        ({}, "needs the setting api_base, or the variable CONSILIUM_MODEL_URL", "where the endpoint is"),
        ({**ENDPOINT, "effort": "high"}, "has no setting effort", "it has: api_base, model, max_tokens"),
        ({**ENDPOINT, "model": "a\nb"}, "must be one line of text", ""),
        ({**ENDPOINT, "model": "a\x1b[31m"}, "must be one line of text", ""),
    ],
)
def test_settings_that_do_not_fit_the_preset_are_refused(
    given: dict[str, str], words: str, hint: str
) -> None:
    with pytest.raises(UserError, match=words) as refused:
        load_preset("llm").complete(given)
    assert hint in refused.value.hint


def test_a_required_setting_without_a_variable_is_asked_for_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, 'variable = "CONSILIUM_MODEL_URL"', "")
    with pytest.raises(UserError, match=r"needs the setting api_base\n  where the endpoint is"):
        read_preset(path).complete({})


# --- templates ---------------------------------------------------------------------------------------


def test_gaps_are_filled_and_doubled_braces_are_braces() -> None:
    assert templates.fill("{{{a}}} {b}{a}", {"a": "1", "b": "{a}"}) == "{1} {a}1"
    assert templates.names("{a} {{b}} {c:.8}") == {"a", "c"}
    assert templates.fill("{a:.3}-{b:.12}", {"a": "12345", "b": "{a}"}) == "123-{a}"


@pytest.mark.parametrize("template", ["{", "}", "{A}", "{a b}", "{a.b}", "{a!r}", "{0}", "{}", "{a}}"])
def test_any_other_brace_is_refused(template: str) -> None:
    with pytest.raises(ValueError, match="write it twice"):
        templates.names(template)


def test_a_gap_without_a_value_is_an_error() -> None:
    with pytest.raises(KeyError):
        templates.fill("{a}", {})


@settings(max_examples=100, deadline=None)
@given(st.text())
def test_a_value_is_never_read_as_a_template(value: str) -> None:
    assert templates.fill("<{a}>", {"a": value}) == f"<{value}>"


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_a_quoted_value_is_the_same_value_in_json_yaml_and_toml(value: str) -> None:
    assert json.loads(templates.fill_quoted("[{a}]", {"a": value})) == [value]
    if value.isprintable() and value.isascii():
        assert yaml.safe_load(templates.fill_quoted("k: {a}\nj: 1\n", {"a": value})) == {"k": value, "j": 1}
        assert tomllib.loads(templates.fill_quoted("k = {a}\n", {"a": value})) == {"k": value}


# --- reading -----------------------------------------------------------------------------------------

PLACES = AnswerPlaces(
    format="json",
    id="/id",
    text="/say/0/t~1x~0",
    model="/model",
    tokens_in="/n/in",
    tokens_out="/n/out",
    tokens_cached="/n/cached",
    usd="/usd",
)


def usage(said: bytes, places: AnswerPlaces) -> Usage:
    return usage_of(read_answer(said, places), (), None)


def output(**fields: Any) -> bytes:
    return json.dumps({"id": "c1", "say": [{"t/x~": "hello"}], **fields}).encode()


def test_an_answer_is_found_where_the_preset_says_it_stands() -> None:
    reading = read_answer(output(model="m 1", n={"in": 3, "out": 0, "cached": MAX_COUNT}, usd=0.25), PLACES)
    assert (reading.id, reading.text) == ("c1", "hello")
    assert usage_of(reading, (), None) == Usage(
        tokens_in=3, tokens_out=0, tokens_cached=MAX_COUNT, usd=0.25, model="m 1"
    )


def test_what_is_not_there_is_unknown_and_nothing_is_looked_for_that_was_not_named() -> None:
    assert usage(output(), PLACES) == Usage()
    few = AnswerPlaces(format="json", id="/id", text="/say/0/t~1x~0")
    assert usage(output(n={"in": 3}), few) == Usage()


@pytest.mark.parametrize("value", [-1, 1.5, "3", True, None, [], {}, MAX_COUNT + 1, 10**400, math.nan])
def test_a_count_that_makes_no_sense_is_unknown(value: Any) -> None:
    assert usage(output(n={"in": value}), PLACES).tokens_in is None


@pytest.mark.parametrize("value", [-0.1, "1", True, None, 2 * MAX_USD, math.inf, math.nan, 10**400])
def test_an_amount_that_makes_no_sense_is_unknown(value: Any) -> None:
    assert usage(output(usd=value), PLACES).usd is None


@pytest.mark.parametrize(("value", "label"), [(7, None), ("", None), ("\x1b[2J", None), ("a\nb", "a b")])
def test_a_model_is_a_short_line_or_unknown(value: Any, label: str | None) -> None:
    assert usage(output(model=value), PLACES).model == label
    longest = usage(output(model="m" * 500), PLACES).model
    assert longest is not None
    assert len(longest) == 200


@pytest.mark.parametrize("chat", [None, 7, ["c1"]])
def test_an_id_that_is_not_text_is_none(chat: Any) -> None:
    assert read_answer(output(id=chat), PLACES).id is None


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "not JSON"),
        (b"Sure! Here it is:", "not JSON"),
        (b'{"id": "c1"', "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"9" * 5000, "not JSON"),
        (b"{}", "no text at /say/0"),
        (b'{"say": [{"t/x~": null}]}', "no text at /say/0"),
        (b'{"say": []}', "no text at /say/0"),
        (b'{"say": "t"}', "no text at /say/0"),
        (b"null", "no text at /say/0"),
    ],
)
def test_an_output_that_is_not_what_was_agreed_is_unreadable(said: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read_answer(said, PLACES)


def test_a_title_sequence_before_the_json_and_controls_inside_it_do_no_harm() -> None:
    said = b'\x1b]0;client\x07\xef\xbb\xbf{"id": "c1", "say": [{"t/x~": "a\tb\x07\x1b[31mc\\u0000"}]}'
    assert read_answer(said.replace(b"\xef\xbb\xbf", b""), PLACES).text == "a\tbc"


@settings(max_examples=100, deadline=None)
@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_no_output_raises_anything_but_unreadable(said: bytes) -> None:
    with contextlib.suppress(Unreadable):
        assert isinstance(read_answer(said, PLACES).text, str)


def test_a_preset_is_a_value_that_nobody_changes() -> None:
    preset: Preset = load_preset("llm")
    with pytest.raises(ValueError, match="frozen"):
        preset.name = "other"  # type: ignore[misc]  # the point of the test
