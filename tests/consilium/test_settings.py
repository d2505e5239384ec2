"""`consilium.settings`: a council file is a council, or a refusal that names file, line, key and rule."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from consilium.config import Council, Limits, Participant, TurnPolicy
from consilium.errors import UserError
from consilium.problems import SECTIONS, describe, section_at
from consilium.settings import check_council, load_council

if TYPE_CHECKING:
    from collections.abc import Callable

    Load = Callable[..., Council]

LEAST = "topic: Shall we?\ncaps: {max_rounds: 3}\n"


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Write a text to c.yaml, and load that."""
    monkeypatch.chdir(tmp_path)

    def load(text: str, overrides: dict[str, Any] | None = None) -> Council:
        Path("c.yaml").write_text(text, encoding="utf-8")
        return load_council(Path("c.yaml"), overrides)

    return load


def refusal(load: Load, text: str, overrides: dict[str, Any] | None = None) -> str:
    with pytest.raises(UserError) as caught:
        load(text, overrides)
    return str(caught.value)


def test_the_least_council_is_a_topic_and_a_cap(load: Load) -> None:
    council = load(LEAST)
    assert (council.topic, council.caps.max_rounds) == ("Shall we?", 3)
    assert council.turn_policy is TurnPolicy.ROUND_ROBIN


def test_words_become_what_they_name(load: Load) -> None:
    council = load(LEAST + "turn_policy: manual\nparticipants: [{name: a, env: [KEY]}]\n")
    assert council.turn_policy is TurnPolicy.MANUAL
    assert council.participants == (Participant(name="a", env=("KEY",)),)


def test_a_section_whose_lines_are_all_commented_out_has_its_defaults(load: Load) -> None:
    assert load(LEAST + "limits:\n#  turn_seconds: 5\n").limits == load(LEAST).limits


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("opning: open", "c.yaml, line 3: opning: is not a key here; did you mean opening?"),
        (
            "participants: [{name: a, role_visible: true}]",
            "c.yaml, line 3: participants[0].role_visible: is not a key here; it belongs at the top level",
        ),
        (
            "max_tokens: 3",
            "c.yaml, line 3: max_tokens: is not a key here; it belongs under caps",
        ),
        (
            "limits: {zzz: 1}",
            f"c.yaml, line 3: limits.zzz: is not a key here; the keys are {', '.join(Limits.model_fields)}",
        ),
        ("opening: closed", "c.yaml, line 3: opening: must be 'sealed' or 'open' (given: 'closed')"),
        (
            "turn_policy: robin",
            (
                "c.yaml, line 3: turn_policy: must be 'round_robin', 'least_recently_spoken', "
                "'most_recently_contradicted' or 'manual' (given: 'robin')"
            ),
        ),
        ("role_visible: yes", "c.yaml, line 3: role_visible: must be true or false (given: 'yes')"),
        ("rebuttal_rounds: 1.5", "c.yaml, line 3: rebuttal_rounds: must be a whole number (given: 1.5)"),
        ("rebuttal_rounds: true", "c.yaml, line 3: rebuttal_rounds: must be a whole number (given: true)"),
        ("rebuttal_rounds: -1", "c.yaml, line 3: rebuttal_rounds: must be at least 0 (given: -1)"),
        ("rebuttal_rounds: 2000", "c.yaml, line 3: rebuttal_rounds: must be at most 1000 (given: 2000)"),
        ("limits: {turn_seconds: 0}", "c.yaml, line 3: limits.turn_seconds: must be more than 0 (given: 0)"),
        (
            "limits: {turn_seconds: fast}",
            "c.yaml, line 3: limits.turn_seconds: must be a number (given: 'fast')",
        ),
        ("limits: 3", "c.yaml, line 3: limits: must be a section of keys and values (given: 3)"),
        ("participants: alice", "c.yaml, line 3: participants: must be a list (given: 'alice')"),
        (
            "participants: [alice]",
            "c.yaml, line 3: participants[0]: must be a section of keys and values (given: 'alice')",
        ),
        ("participants: [{}]", "c.yaml, line 3: participants[0].name: is required"),
        (
            "participants: [{name: Alice}]",
            "c.yaml, line 3: participants[0].name: must be 1 to 64 of a-z, 0-9 and _ (given: 'Alice')",
        ),
        (
            "participants: [{name: a, role: 'The Sceptic'}]",
            (
                "c.yaml, line 3: participants[0].role: must be 1 to 64 of a-z, 0-9, and then also _ and - "
                "(given: 'The Sceptic')"
            ),
        ),
        (
            "participants: [{name: a, preset: A!}]",
            (
                "c.yaml, line 3: participants[0].preset: "
                "must be 1 to 64 of a-z, 0-9, and then also . _ and - (given: 'A!')"
            ),
        ),
        (
            "participants:\n- {name: a, role: x, role_prompt: y}",
            (
                "c.yaml, line 4: participants[0]: role names a file and role_prompt says it in place: "
                "give one of them"
            ),
        ),
        ("participants: [{name: a}, {name: a}]", "c.yaml: participants: duplicate name a"),
        (
            "participants: [{name: a, role_label: 7}]",
            "c.yaml, line 3: participants[0].role_label: must be text; in doubt, put it in quotes (given: 7)",
        ),
        (
            f"participants: [{{name: a, role_label: {'x' * 201}}}]",
            (
                "c.yaml, line 3: participants[0].role_label: must be at most 200 characters (given: "
                f"'{'x' * 59}…)"
            ),
        ),
    ],
)
def test_a_mistake_is_told_with_its_line_its_key_and_what_is_accepted(
    load: Load, more: str, told: str
) -> None:
    assert refusal(load, LEAST + more) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "topic: x",
            "c.yaml: caps: at least one cap is mandatory: max_rounds, max_tokens, max_seconds or max_usd",
        ),
        (
            "topic: x\ncaps:\n",
            (
                "c.yaml, line 2: caps: at least one cap is mandatory: max_rounds, max_tokens, max_seconds "
                "or max_usd"
            ),
        ),
        ("topic: ''\ncaps: {max_rounds: 1}", "c.yaml, line 1: topic: must not be empty (given: '')"),
        ("caps: {max_rounds: 1}", "c.yaml: topic: is required"),
        ("", "c.yaml: must hold keys and values: topic, participants, caps and the like"),
        ("- topic", "c.yaml: must hold keys and values: topic, participants, caps and the like"),
        ("topic: x\ntopic: y", "c.yaml, line 2: topic: given twice"),
    ],
)
def test_a_file_that_is_no_council_is_told_why(load: Load, text: str, told: str) -> None:
    assert refusal(load, text) == told


def test_several_mistakes_are_told_at_once_in_the_order_of_their_lines(load: Load) -> None:
    assert refusal(load, "opening: shut\ntopic: 7\ncaps: {max_rounds: 0}\n") == (
        "c.yaml: 3 problems\n"
        "  line 1: opening: must be 'sealed' or 'open' (given: 'shut')\n"
        "  line 2: topic: must be text; in doubt, put it in quotes (given: 7)\n"
        "  line 3: caps.max_rounds: must be more than 0 (given: 0)"
    )


def test_no_more_than_ten_mistakes_are_told_at_once(load: Load) -> None:
    seats = "\n".join(f"- {{name: N{number}}}" for number in range(13))
    told = refusal(load, f"{LEAST}participants:\n{seats}").splitlines()
    assert told[0] == "c.yaml: 13 problems"
    assert len(told) == 12
    assert told[-1] == "  and 3 more"


def test_more_entries_than_are_accepted_are_told(load: Load) -> None:
    names = ", ".join(f"{{name: s{number}}}" for number in range(4097))
    assert refusal(load, f"{LEAST}participants: [{names}]") == (
        "c.yaml, line 3: participants: must have at most 4096 entries"
    )


# --- overrides -----------------------------------------------------------------------------------------


def test_overrides_win_over_the_file_and_merge_into_its_sections(load: Load) -> None:
    council = load(
        "topic: x\ncaps: {max_rounds: 3, max_tokens: 9}\n", {"topic": "y", "caps": {"max_rounds": 5}}
    )
    assert (council.topic, council.caps.max_rounds, council.caps.max_tokens) == ("y", 5, 9)


def test_an_override_may_give_the_cap_that_the_file_lacks(load: Load) -> None:
    assert load("topic: x\n", {"caps": {"max_seconds": 60}}).caps.max_seconds == 60


def test_an_override_of_none_takes_a_key_away(load: Load) -> None:
    assert load(LEAST + "opening: open\n", {"opening": None}).opening == "sealed"


def test_a_list_is_replaced_as_a_whole(load: Load) -> None:
    council = load(LEAST + "participants: [{name: a}, {name: b}]\n", {"participants": [{"name": "c"}]})
    assert [seat.name for seat in council.participants] == ["c"]


def test_a_wrong_override_is_told_to_come_from_the_command_line(load: Load) -> None:
    assert refusal(load, LEAST, {"caps": {"max_rounds": -2}}) == (
        "c.yaml: command line: caps.max_rounds: must be more than 0 (given: -2)"
    )
    assert refusal(load, LEAST, {"participants": [{"name": "X"}]}) == (
        "c.yaml: command line: participants[0].name: must be 1 to 64 of a-z, 0-9 and _ (given: 'X')"
    )


def test_a_tree_without_a_file_is_told_by_its_name() -> None:
    with pytest.raises(UserError, match=r"^built in: topic: is required$"):
        check_council({"caps": {"max_rounds": 1}}, {}, name="built in")


# --- words ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["\udcff", "\ud83d\ude00"])
def test_bytes_of_the_command_line_that_are_no_text_are_told(load: Load, topic: str) -> None:
    assert refusal(load, LEAST, {"topic": topic}) == (
        "c.yaml: a value cannot be used: str is not valid UTF-8: surrogates not allowed"
    )


@pytest.mark.parametrize("number", [-(10**19) + 1, 10**30])
def test_a_number_beyond_all_bounds_is_told(load: Load, number: int) -> None:
    told = "c.yaml: a value cannot be used: Integer exceeds 64-bit range"
    assert refusal(load, LEAST, {"caps": {"max_rounds": number}}) == told


def test_every_section_is_found_at_its_place() -> None:
    for where, model in SECTIONS.items():
        place = tuple(where.removeprefix("under ").split(".")) if "under" in where else ()
        assert section_at(place) is model


def test_a_rule_without_words_of_ours_keeps_pydantic_s() -> None:
    with pytest.raises(ValidationError) as caught:
        Council.model_validate({"topic": "x", "caps": {"max_usd": float("inf")}})
    (problem,) = caught.value.errors()
    assert describe(problem).startswith("caps.max_usd: Input should be a finite number")


def test_loading_a_council_does_not_import_pydantic_settings() -> None:
    code = (
        "import sys; from pathlib import Path; from consilium.settings import load_council;"
        " load_council(Path('council.yaml')); print('pydantic_settings' in sys.modules)"
    )
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root)
    assert told.stdout.split() == ["False"]
