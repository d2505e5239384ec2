"""The rules of a preset beyond those that `llm` needs, told on the presets that need them; and JSON Lines."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from consilium.errors import UserError
from wrapper.adapters.invocation import Invocation
from wrapper.adapters.parts import Version
from wrapper.adapters.places import AnswerPlaces, values_at
from wrapper.adapters.presets import load_preset, read_preset
from wrapper.adapters.reading import Complaint, Unreadable, read_answer, read_complaint

PACKAGED = Path(__file__).parents[2] / "wrapper" / "presets"


def refusal(folder: Path, name: str, old: str, new: str) -> str:
    """What is said of the preset ``name`` with one thing changed."""
    text = (PACKAGED / f"{name}.toml").read_text()
    assert old in text
    path = folder / f"{name}.toml"
    path.write_text(text.replace(old, new))
    with pytest.raises(UserError) as refused:
        read_preset(path)
    return refused.value.message


MISTAKES = [
    (
        "claude",
        '"--fork-session", "--session-id", "{new_id}"',
        '"--x"',
        "run.next: {new_id} is missing, which says",
    ),
    (
        "claude",
        '"--session-id", "{new_id}"',
        '"--x"',
        "run.first: {new_id} is missing, which says in which chat",
    ),
    ("claude", '"--resume", "{id}",', "", "run.next: {id} is missing, which says in which chat"),
    (
        "claude",
        '"{harness}", ',
        "",
        "run.first: {harness} is missing, and there are arguments to stand there",
    ),
    ("claude", '"{options}", ', "", "run.first: {options} is missing, and there are arguments"),
    ("claude", '"{harness}", ', '"{harness}", "{model}", ', "run.first[5]: nothing is called {model} here"),
    ("claude", 'id = "chosen"', 'id = "guessed"', "chat.id: Input should be 'chosen' or 'told'"),
    ("claude", 'id = "chosen"', 'id = "told"', "nothing is called {new_id} here"),
    ("claude", 'turn = "fork"', 'turn = "same"', "run.next[10]: nothing is called {new_id} here"),
    ("claude", "[0-9a-f]{8}(", "[0-9a-f]{8}((", "chat.pattern: missing )"),
    ("claude", 'known_good = "2.1.332"', 'known_good = "2.1.331"', "version: known_good: 2.1.331 is below"),
    (
        "claude",
        'end = "result"',
        'end = "end"',
        "answer: end: end is not one of the lines; there is result, said",
    ),
    (
        "claude",
        'id = "result/',
        'id = "results/',
        "answer: id: results/session_id: begin with the name of a line",
    ),
    ("claude", 'words = ["result/', 'words = ["/', "answer: words: /result: begin with the name of a line"),
    (
        "claude",
        'format = "json_lines"',
        'format = "json"',
        "answer: lines, end and each are for the format json_lines",
    ),
    ("claude", 'cumulative = ["usd"]', 'cumulative = ["gold"]', "answer.cumulative.0: Input should be"),
    ("glm-code", 'refused = "', 'cumulative = ["usd"]\nrefused = "', "answer: cumulative: usd has no place"),
    ("claude", "[profiles.native]", "[profiles.wild]", "profiles.wild.[key]: Input should be"),
    (
        "claude",
        '"{system_file}",\n]',
        '"{file}",\n]',
        "profiles.restricted.arguments[10]: nothing is called {file}",
    ),
    (
        "claude",
        '"--model", "{model}"]',
        '"--model", "{effort}"]',
        "settings.model.arguments[1]: nothing is called",
    ),
    (
        "claude",
        'cumulative = ["usd"]',
        'cumulative = ["usd"]\neach = ["usd"]',
        "cumulative: usd is added up al",
    ),
    ("claude", '"said/message/model"', '"said/*#/model"', "said/*#/model: *# is the last step of a place"),
    ("claude", 'turn = "fork"', 'turn = "restore"', "nothing is called {new_id} here"),
    (
        "codex",
        'turn = "fork"',
        'turn = "restore"',
        "state.chat: the files that chat.turn = restore puts back",
    ),
    (
        "codex",
        "[state]",
        '[state]\nchat = ["logs.db"]',
        "state.chat: the files that chat.turn = restore puts",
    ),
    ("codex", "pattern = '[a-z]+'", "pattern = '[a-z+'", "settings.effort.pattern: unterminated"),
    ("codex", 'each = "/models"', 'each = "models"', "state.derived.catalog.json.each: "),
    ("llm", 'id = "/0/conv', 'id = "x/0/conv', "answer: id: x/0/conversation_id: the format json has one"),
    ("llm", "[profiles.restricted]\n[profiles.native]", "[profiles]", "profiles: restricted, native or both"),
    (
        "llm",
        "[settings.model]",
        "[settings.harness]\nhelp='x'\n[settings.model]",
        "settings: harness has a meaning",
    ),
    ("claude", 'id = "result/', 'id = "-result/', "answer.id: String should match pattern"),
    (
        "gemini",
        '"-result/stats',
        '"-results/stats',
        "tokens_out: results/stats/input_tokens: begin with the na",
    ),
    (
        "gemini",
        "{auth}",
        "{login}",
        "profiles.restricted.files..gemini/settings.json: nothing is called {login}",
    ),
    (
        "gemini",
        '".gemini/GEMINI.md"',
        '"../GEMINI.md"',
        "profiles.restricted.files.../GEMINI.md.[key]: String",
    ),
    (
        "qwen-code",
        'behind = ["cli.js"]',
        "",
        "interpreter: it runs what `behind` finds, and there is no such key",
    ),
    (
        "claude",
        'proof = "projects',
        'proof = "/projects',
        "state.proof: '/projects/*/{id}.jsonl' is no pattern",
    ),
    (
        "claude",
        'proof = "projects',
        'proof = "../projects',
        "state.proof: '../projects/*/{id}.jsonl' leads out",
    ),
    ("claude", 'proof = "projects/*', 'proof = "projects/**x', "is no pattern of files seen from a folder"),
    (
        "gemini",
        'chat = [".gemini',
        'chat = ["/.gemini',
        "state.chat.0: '/.gemini/tmp/*/chats/*' is no pattern",
    ),
    (
        "gemini",
        'files = [".gemini',
        'files = ["../.gemini',
        "login.files.0: '../.gemini/oauth_creds.json' leads",
    ),
    (
        "claude",
        'restore = ["projects',
        'restore = ["../projects',
        "terminal.restore.0: '../projects/*/*.jsonl'",
    ),
    ("qwen-code", 'behind = ["cli', 'behind = ["/cli', "behind.0: '/cli.js' is no pattern of files"),
    ("gemini", "{id:.8}", "{id:.0}", "state.proof: a single { at character"),
    (
        "claude",
        'L = "{url}"',
        'L = "{key}"',
        "conformance: variables.ANTHROPIC_BASE_URL: nothing is called {key}",
    ),
    ("claude", '"CLAUDE.md" = "{mark}"', '"a" = "{"', "conformance: files.a: a single { at character 1"),
    (
        "claude",
        '"CLAUDE.md" = "{mark}"',
        '"a/../b" = "x"',
        "conformance.files.a/../b.[key]: String should match",
    ),
    ("codex", "settings = { api_base", "settings = { base", "conformance.settings: there is no setting base"),
    (
        "claude",
        "[conformance.files]",
        '[conformance.faults.cut]\nfault = "client_error"\nprompt_sent = "no"\n[conformance.files]',
        "conformance.faults.cut: prompt_sent: yes or maybe",
    ),
    (
        "kimi",
        '    "--", "acp",\n]\nnext',
        '    "acp",\n]\nnext',
        "run: bridge: -- is missing in first or next",
    ),
    ("kimi", 'bridge = "acp"', 'bridge = "lsp"', "run.bridge: Input should be 'acp'"),
    ("kimi", "longest = 1_048_576", "longest = 0", "run.longest: Input should be greater than 0"),
    (
        "kimi",
        '"{api_type}"',
        '"{api_typ}"',
        "settings.api_base.set.KIMI_MODEL_PROVIDER_TYPE: nothing is called",
    ),
    (
        "kimi",
        'KIMI_MODEL_NAME = "',
        '"KIMI MODEL" = "',
        "settings.api_base.set.KIMI MODEL.[key]: String should",
    ),
    ("kimi", '"agents/agent.md"', '"../agent.md"', "profiles.restricted.system_file: String should match"),
    (
        "kimi",
        '"desk/.git" = ""',
        '"desk/../.git" = ""',
        "profiles.restricted.files.desk/../.git.[key]: String",
    ),
    (
        "kimi",
        '"desk/.git" = ""',
        '"desk/.git" = "{no}"',
        "profiles.restricted.files.desk/.git: nothing is called {no}",
    ),
    ("antigravity", "{prompt}", "{text}", "run.form: nothing is called {text} here; there is prompt"),
    ("antigravity", "{prompt}", '"x"', "run.form: it has to hold {prompt}"),
    ("antigravity", '{{"event"', '{"event"', "run.form: a single { at character 1"),
]


MISTAKES_IN_A_TERMINAL = [
    ('asked = "> "', 'asked = "(> "', "terminal: asked: missing )"),
    ('aside = ["^  !"]', 'aside = ["*"]', "terminal: aside[0]: nothing to repeat"),
    ('pattern = "trust"', 'pattern = "["', "terminal: dialogs[0].pattern: unterminated"),
    ('keys = ["down"]', 'keys = ["delete"]', "terminal.dialogs.0.keys.0: Input should be 'enter', 'escape'"),
    ('first = ["{harness}", "{new_id}"]', 'first = ["{harness}"]', "terminal.first: {new_id} is missing"),
    ('next = ["{harness}", "{id}"]', 'next = ["{harness}"]', "terminal.next: {id} is missing"),
    ('first = ["{harness}", "{new_id}"]', 'first = ["{new_id}"]', "terminal.first: {harness} is missing"),
    ('"{new_id}"]', '"{new_id}", "{who}"]', "terminal.first[2]: nothing is called {who} here"),
    ('harness = { native = ["-n"] }', "harness = {}", "terminal: harness: restricted, native or both"),
    ('next = ["{harness}", "{id}"]', "", "terminal: restore: without `next`"),
    ('set = { X = "1" }', 'set = { X = "{who}" }', "terminal.set.X: nothing is called {who} here"),
]

IN_A_TERMINAL = """
[terminal]
first = ["{harness}", "{new_id}"]
next = ["{harness}", "{id}"]
ready = "^> $"
asked = "> "
said = "- "
aside = ["^  !"]
restore = ["chats/*"]
harness = { native = ["-n"] }
set = { X = "1" }

[[terminal.dialogs]]
pattern = "trust"
keys = ["down"]
"""


def in_a_terminal(folder: Path, table: str, name: str = "glm-code") -> Path:
    """The preset ``name`` with another table for its terminal, in place of the one that it may have."""
    text = (PACKAGED / f"{name}.toml").read_text()
    text = re.sub(r"(?m)^\[terminal\].*?(?=^# --- network)", "", text, flags=re.DOTALL)
    settings = re.sub(r'(?m)^arguments = \["--(model|effort)".*$', 'default = ""', text)
    path = folder / f"{name}.toml"
    path.write_text(settings + table)
    return path


@pytest.mark.parametrize(("old", "new", "words"), MISTAKES_IN_A_TERMINAL)
def test_a_mistake_about_a_terminal_is_named(tmp_path: Path, old: str, new: str, words: str) -> None:
    assert old in IN_A_TERMINAL
    read_preset(in_a_terminal(tmp_path, IN_A_TERMINAL))
    with pytest.raises(UserError) as refused:
        read_preset(in_a_terminal(tmp_path, IN_A_TERMINAL.replace(old, new, 1)))
    assert words in refused.value.message


def test_a_chat_whose_id_only_the_client_knows_ends_with_its_terminal(tmp_path: Path) -> None:
    table = IN_A_TERMINAL.replace('"{new_id}"', '"{options}", "-"').replace('"{id}"', '"{options}", "{id}"')
    with pytest.raises(UserError, match=r"terminal\.next: a screen does not tell the id of a chat"):
        read_preset(in_a_terminal(tmp_path, table, "codex"))


def test_who_has_no_terminal_or_not_that_profile_there_is_refused() -> None:
    with pytest.raises(UserError, match="llm cannot be used in a terminal"):
        load_preset("llm").in_terminal("restricted")
    with pytest.raises(UserError, match="codex has no harness profile restricted in a terminal"):
        load_preset("codex").in_terminal("restricted")
    assert load_preset("claude").in_terminal("native").next


@pytest.mark.parametrize(("name", "old", "new", "words"), MISTAKES)
def test_a_mistake_in_a_preset_is_named(tmp_path: Path, name: str, old: str, new: str, words: str) -> None:
    assert words in refusal(tmp_path, name, old, new)


def test_a_setting_that_does_not_fit_is_refused_with_what_it_is_for() -> None:
    with pytest.raises(UserError, match="effort of the client codex cannot be 'high\"'") as refused:
        load_preset("codex").complete({"effort": 'high"'})
    assert "low, medium, high" in refused.value.hint


def test_a_setting_that_only_adds_arguments_may_be_left_out() -> None:
    assert load_preset("claude").complete({}) == {}
    assert load_preset("claude").complete({"model": "opus"}) == {"model": "opus"}


def test_a_setting_that_only_sets_variables_may_be_left_out() -> None:
    kimi = load_preset("kimi")
    assert kimi.settings["api_base"].may_be_left_out
    given = {"model": "k", "api_base": "https://x/v1", "context": "9"}
    with_it = Invocation(kimi, "restricted", given, Path("/h")).environment({"PATH": "/bin"}, ())
    without = Invocation(kimi, "restricted", {"model": "k"}, Path("/h")).environment({"PATH": "/bin"}, ())
    assert {name: value for name, value in with_it.items() if name not in without} == {
        "KIMI_MODEL_NAME": "k",
        "KIMI_MODEL_BASE_URL": "https://x/v1",
        "KIMI_MODEL_PROVIDER_TYPE": "kimi",
        "KIMI_MODEL_MAX_CONTEXT_SIZE": "9",
    }


def test_files_of_a_profile_stand_beside_those_of_the_client_and_in_no_other() -> None:
    kimi = load_preset("kimi")
    restricted = Invocation(kimi, "restricted", {"model": "k"}, Path("/h")).files("Be brief.")
    assert set(restricted) == {"agents/agent.md", "desk/.git"}
    assert restricted["agents/agent.md"].startswith("---\nname: agent\n")
    assert restricted["agents/agent.md"].endswith("\n---\nBe brief.")
    native = Invocation(kimi, "native", {"model": "k"}, Path("/h")).files("Be brief.")
    assert native == {"system-prompt.txt": "Be brief."}


def test_a_prompt_is_put_into_the_form_that_the_client_reads() -> None:
    call = Invocation(load_preset("antigravity"), "native", {}, Path("/h"))
    text = 'a"}}\n{"event": "user"}\u2028{prompt}'
    read = call.prompt(text, "Be brief.", first=False)
    assert read.endswith(b"\n")
    assert read.count(b"\n") == 1
    assert json.loads(read) == {"event": "user", "message": {"content": text}}


def test_a_client_that_nobody_has_run_is_never_as_it_was_tried() -> None:
    version = load_preset("antigravity").version
    assert version.known_good is None
    assert version.doubt(version.minimum).startswith("was never run with its preset")
    assert version.is_older("1.2.10")


def test_a_profile_that_a_client_has_not_is_refused() -> None:
    preset = load_preset("llm")
    only = preset.model_copy(update={"profiles": {"restricted": preset.profiles["restricted"]}})
    with pytest.raises(UserError, match="llm has no harness profile native\n  it has: restricted"):
        only.profile("native")


@pytest.mark.parametrize("path", sorted(PACKAGED.glob("*.toml")), ids=lambda path: path.stem)
def test_no_profile_lets_a_client_do_what_nobody_allowed(path: Path) -> None:
    text = path.read_text()
    assert not [
        word for word in ("dangerously", "bypass", "yolo", "full-auto", "full-access") if word in text
    ]


@pytest.mark.parametrize(
    ("version", "older", "newer"),
    [("2.1.331", True, False), ("2.1.332", False, False), ("2.1.333", False, True), ("3.0", False, True)],
)
def test_a_version_is_judged_by_its_numbers(version: str, older: bool, newer: bool) -> None:
    known = load_preset("claude").version
    assert (known.is_older(version), bool(known.doubt(version))) == (older, newer)


def test_a_version_counts_as_precisely_as_the_known_one_is_written() -> None:
    known = Version(argv=("-V",), pattern="(.*)", minimum="0.36", known_good="0.36")
    assert not known.doubt("0.36.9")
    assert known.doubt("0.37") == "is newer than 0.36, the last that was tried with it"
    with pytest.raises(ValidationError, match="below the minimum"):
        Version(argv=("-V",), pattern="(.*)", minimum="0.36", known_good="0.35")


# --- JSON Lines ------------------------------------------------------------------------------------------

PLACES = AnswerPlaces(
    format="json_lines",
    lines={
        "begun": {"/type": "begun"},
        "said": {"/type": "item", "/item/kind": "text"},
        "done": {"/type": "done"},
    },
    end="done",
    id="begun/id",
    text="said/item/text",
    failed="done/error",
    words=("done/error/why", "done/error/more/0"),
    calls="done/calls",
    refused="done/refused",
    tokens_in=("done/n/new", "done/n/old"),
)

BEGUN: dict[str, Any] = {"type": "begun", "id": "c1"}
DONE: dict[str, Any] = {"type": "done", "calls": 1}


def item(text: str, kind: str = "text") -> dict[str, Any]:
    return {"type": "item", "item": {"kind": kind, "text": text}}


def lines(*documents: object) -> bytes:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in documents).encode()


def test_the_last_line_of_a_name_counts_and_others_are_passed_over() -> None:
    said = lines(
        BEGUN, {"type": "news"}, item("thinking"), item("secret", "thought"), item("the answer"), 7, DONE
    )
    told = read_answer(b"not JSON\n" + said, PLACES)
    assert (told.id, told.text, told.calls) == ("c1", "the answer", 1)


def test_a_separator_inside_a_text_ends_no_line() -> None:
    assert read_answer(lines(BEGUN, item("one\u2028two\u0085three"), DONE), PLACES).text == "one\ntwo\nthree"


def test_places_of_a_count_are_added_up_or_unknown_together() -> None:
    for told, counters in (
        ({"new": 3, "old": 4}, {"tokens_in": 7}),
        ({"new": 3}, {}),
        ({"new": 3, "old": -1}, {}),
    ):
        assert read_answer(lines(BEGUN, item("x"), {**DONE, "n": told}), PLACES).counters == counters


def test_an_end_without_a_text_is_an_empty_answer() -> None:
    assert read_answer(lines(BEGUN, DONE), PLACES).text == ""


def test_what_was_refused_is_listed_in_bounded_clean_lines() -> None:
    refused = [{"tool": "Bash\x1b[2J", "x": "y" * 1000}, None, "touch"]
    told = read_answer(lines(BEGUN, item("x"), {**DONE, "refused": refused}), PLACES).refused
    assert len(told) == 3
    assert all(len(line) <= 300 and line.isprintable() for line in told)
    assert told[2] == '"touch"'
    many = read_answer(lines(BEGUN, item("x"), {**DONE, "refused": [{}] * 500}), PLACES).refused
    assert many == (*["{}"] * 19, "and 481 more")
    twenty = read_answer(lines(BEGUN, item("x"), {**DONE, "refused": [{}] * 20}), PLACES).refused
    assert twenty == ("{}",) * 20
    alone = read_answer(lines(BEGUN, item("x"), {**DONE, "refused": "rm"}), PLACES).refused
    assert alone == ('"rm"',)


def test_a_refusal_of_any_depth_is_told_in_a_line_or_the_output_is_unreadable() -> None:
    told: set[str] = set()
    for depth in range(500, 1000):
        nested = lines({**DONE, "refused": "x"}).replace(b'"x"', b"[" * depth + b"]" * depth)
        with contextlib.suppress(Unreadable):
            told |= set(read_answer(lines(BEGUN, item("x")) + nested, PLACES).refused)
    assert told
    assert all(len(line) <= 300 for line in told)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"", "not lines of JSON"),
        (b"Sure!\n[]\n7\n", "not lines of JSON"),
        (lines(BEGUN, item("x")), "breaks off: there is no done line"),
        (lines(BEGUN, item("x")) + b'{"type": "do', "breaks off"),
        (lines(BEGUN, item("x"), {"type": ["done"]}), "breaks off"),
    ],
)
def test_an_output_without_its_end_is_unreadable(said: bytes, words: str) -> None:
    with pytest.raises(Unreadable, match=words):
        read_answer(said, PLACES)


def test_without_an_end_line_a_missing_text_is_unreadable() -> None:
    with pytest.raises(Unreadable, match="no text at said/item/text"):
        read_answer(lines(BEGUN), PLACES.model_copy(update={"end": None}))


@pytest.mark.parametrize(
    ("said", "complaint"),
    [
        (b"", Complaint(failed=False, words="")),
        (lines(BEGUN), Complaint(failed=False, words="")),
        (lines({**DONE, "error": None}), Complaint(failed=False, words="")),
        (lines({**DONE, "error": {"why": "no \x1b[31mkey"}}), Complaint(failed=True, words="no key")),
        (lines({**DONE, "error": {"why": " ", "more": ["that"]}}), Complaint(failed=True, words="that")),
        (lines({**DONE, "error": True}), Complaint(failed=True, words="")),
    ],
)
def test_a_complaint_is_found_where_the_preset_says(said: bytes, complaint: Complaint) -> None:
    assert read_complaint(said, PLACES) == complaint


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.recursive(st.none() | st.text() | st.integers(), lambda inner: st.dictionaries(st.text(), inner))
    )
)
def test_no_lines_raise_anything_but_unreadable(documents: list[Any]) -> None:
    with contextlib.suppress(Unreadable):
        read_answer(lines(*documents, BEGUN, DONE), PLACES)
    read_complaint(lines(*documents), PLACES)


# --- places ------------------------------------------------------------------------------------------

DOCUMENT = {"a": {"x": {"n": 1}, "y": {"n": 2}}, "l": [{"n": 3}, {"m": 4}], "none": {}, "null": None, "~/": 5}


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("/a/x/n", [1]),
        ("/l/1/m", [4]),
        ("/~0~1", [5]),
        ("/a/*/n", [1, 2]),
        ("/a/*#", ["x", "y"]),
        ("/l/*/n", [3, None]),
        ("/l/*#", []),
        ("/none/*", []),
        ("/null", None),
        ("/null/*", None),
        ("/gone/*/n", None),
        ("/a/x/n/*", None),
        ("/*/*/n", None),
        ("/l/2", None),
        ("/l/x", None),
    ],
)
def test_what_stands_at_a_place(place: str, values: list[Any] | None) -> None:
    assert values_at(DOCUMENT, place) == values


MANY = AnswerPlaces(
    format="json_lines",
    lines={"said": {"/t": "said"}, "step": {"/t": "step"}, "done": {"/t": "done"}},
    end="done",
    id="done/id",
    text="said/text",
    model="done/models/*#",
    calls="done/models/*/calls",
    tokens_in=("step/in", "step/cached"),
    tokens_out="done/models/*/out",
    usd="step/usd",
    each=("text", "tokens_in", "usd"),
)


def said(text: Any) -> Any:
    return {"t": "said", "text": text}


def done(**models: Any) -> Any:
    return {"t": "done", "id": "c", "models": models}


def test_a_text_in_pieces_is_joined_and_counts_of_several_steps_are_added_up() -> None:
    steps = [
        {"t": "step", "in": 1, "cached": 2, "usd": 0.5},
        {"t": "step", "in": 10, "cached": 20, "usd": 0.25},
    ]
    output = lines(
        said("a "), steps[0], said("b"), steps[1], done(m={"calls": 2, "out": 3}, n={"calls": 1, "out": 4})
    )
    reading = read_answer(output, MANY)
    assert (reading.text, reading.model, reading.calls) == ("a b", "m", 3)
    assert reading.counters == {"tokens_in": 33, "tokens_out": 7, "usd": 0.75}


def test_one_step_that_does_not_tell_makes_the_sum_unknown() -> None:
    output = lines(
        said("a"), {"t": "step", "in": 1, "cached": 2}, {"t": "step", "in": 1}, done(m={"out": None})
    )
    reading = read_answer(output, MANY)
    assert (reading.counters, reading.calls) == ({}, None)


def test_a_place_behind_a_minus_is_taken_away_and_less_than_nothing_is_unknown() -> None:
    places = AnswerPlaces(
        format="json", id="/id", text="/text", tokens_out=("/total", "-/models/*/in"), calls="/models/*#"
    )
    document = {"id": "c", "text": "t", "total": 9, "models": {"m": {"in": 3}, "n": {"in": 4}}}
    reading = read_answer(lines(document), places)
    assert (reading.counters, reading.calls) == ({"tokens_out": 2}, 2)
    for total, counters in ((7, {"tokens_out": 0}), (6, {}), (None, {})):
        assert read_answer(lines({**document, "total": total}), places).counters == counters
    assert read_answer(lines({**document, "models": {}}), places).calls == 0


def test_no_member_is_nothing_counted_and_not_unknown() -> None:
    reading = read_answer(lines(said(7), done()), MANY)
    assert (reading.text, reading.model, reading.calls) == ("", None, 0)
    assert reading.counters == {"tokens_out": 0}
