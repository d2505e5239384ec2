"""`council.yaml`, the example at the root: it loads, it is the built-in council, and it hides no key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from consilium.config import Council
from consilium.problems import SECTIONS
from consilium.settings import check_council, load_council
from consilium.strict_yaml import read_tree
from council import builtin
from wrapper.adapters.presets import load_preset
from wrapper.roles import find_role

EXAMPLE = Path(__file__).parents[2] / "council.yaml"


@pytest.fixture(scope="module")
def council() -> Council:
    return load_council(EXAMPLE)


def test_it_is_the_council_that_is_held_without_a_file(council: Council) -> None:
    seats = builtin.seats_for(builtin.choose_roles(None, None))
    assert council == check_council(builtin.tree(seats), {}, name=builtin.NAME)


def test_it_seats_three_different_points_of_view_on_the_embedded_model(council: Council) -> None:
    assert {seat.preset for seat in council.participants} == {builtin.EMBEDDED_PRESET}
    prompts = {find_role(str(seat.role)).prompt for seat in council.participants}
    assert len(prompts) == len(council.participants) == 3


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file with every `#` before a key deleted, as its heading tells a reader to do."""
    text = EXAMPLE.read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("whole") / "council.yaml"
    path.write_text(re.sub(r"^( *)#(?=\S|  )", r"\1", text, flags=re.MULTILINE), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("section", "key"), [(section, key) for section, model in SECTIONS.items() for key in model.model_fields]
)
def test_it_shows_every_key_of_the_models(whole: Path, section: str, key: str) -> None:
    _, lines = read_tree(whole)
    parents = tuple(part for part in section.removeprefix("under ").split(".") if "top level" not in part)
    shown = {tuple(part for part in place if isinstance(part, str)) for place in lines}
    # A seat has either of two, so one seat cannot show both; together the seats do.
    assert (*parents, key) in shown


def test_with_every_comment_sign_deleted_it_still_loads(whole: Path) -> None:
    council = load_council(whole)
    assert council.participants[-1].role_label == "Accountant"
    assert council.limits.max_pause_seconds == 3600
    assert council.caps.max_usd == 2.5


def test_its_example_of_a_seat_names_a_client_that_there_is_and_a_model_of_one_s_own(whole: Path) -> None:
    example = load_council(whole).participants[-1]
    settings = {"api_base": "http://127.0.0.1:9/v1", "model": str(example.model)}
    assert load_preset(example.preset).complete(settings)["model"] == example.model


def test_what_it_shows_as_default_is_the_default(whole: Path, council: Council) -> None:
    shown = load_council(whole)
    assert shown.limits.model_copy(update={"max_pause_seconds": None}) == council.limits
    for key in ("role_visible", "identity_visible", "rebuttal_rounds", "opening", "turn_policy"):
        assert getattr(shown, key) == getattr(council, key)
    assert shown.roster.participants[0] == council.roster.participants[0]
