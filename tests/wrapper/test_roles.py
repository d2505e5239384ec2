"""Role files: how they are read, found, listed and refused (§13.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from consilium.errors import UserError
from wrapper.roles import find_role, list_roles, packaged_roles, read_role

if TYPE_CHECKING:
    from pathlib import Path

    from wrapper.roles import Role

FIVE = {"sceptic", "pragmatist", "devils-advocate", "historian", "constraint-keeper"}
SEVEN = {"security", "performance", "maintainability", "simplicity", "scalability", "dx", "compliance"}

GOOD = "---\nlabel: Tester\nsummary: Tries it.\n---\nTry it, and say what happened.\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, text: str | bytes = GOOD, name: str = "tester") -> Path:
    path = folder / f"{name}.md"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- the format --------------------------------------------------------------------------------------


def test_a_role_file_is_read(folder: Path) -> None:
    role = read_role(write(folder))
    assert (role.name, role.label, role.summary) == ("tester", "Tester", "Tries it.")
    assert role.prompt == "Try it, and say what happened."
    assert role.path == folder / "tester.md"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(GOOD.replace("\n", "\r\n"), id="CRLF"),
        pytest.param("\ufeff" + GOOD, id="BOM"),
        pytest.param(GOOD.replace("---\n", "---  \n"), id="spaces after a fence"),
        pytest.param(GOOD.replace("label: Tester", " label :  Tester  "), id="spaces around a field"),
        pytest.param(
            "---\nsummary: Tries it.\nlabel: Tester\n---\n\nTry it, and say what happened.\n\n",
            id="other order",
        ),
        pytest.param(GOOD.replace("Try it", "Try\u200b it"), id="something invisible in the prompt"),
        pytest.param(GOOD.replace("Tester", "\u202eTester"), id="something invisible in a field"),
    ],
)
def test_what_an_editor_does_to_a_file_does_not_matter(folder: Path, text: str) -> None:
    role = read_role(write(folder, text))
    assert (role.label, role.summary, role.prompt) == (
        "Tester",
        "Tries it.",
        "Try it, and say what happened.",
    )


def test_a_fence_in_the_prompt_and_a_colon_in_a_field_are_text(folder: Path) -> None:
    role = read_role(write(folder, GOOD.replace("Tries it.", "First: try.") + "---\nThen rest.\n"))
    assert role.summary == "First: try."
    assert role.prompt.endswith("---\nThen rest.")


REFUSED = {
    "empty file": ("", 1, "expected ---"),
    "no front matter": ("Try it.\n", 1, "expected ---"),
    "never closed": ("---\nlabel: Tester\n", 2, "before the second ---"),
    "nothing but a fence": ("---", 1, "before the second ---"),
    "unknown field": (GOOD.replace("label", "title"), 2, "expected label: or summary:"),
    "not a field": (GOOD.replace("label:", "label"), 2, "expected label: or summary:"),
    "blank line": (GOOD.replace("label", "\nlabel"), 2, "expected label: or summary:"),
    "twice": (GOOD.replace("summary", "label"), 3, "label stands here a second time"),
    "empty field": (GOOD.replace("Tries it.", ""), 3, "summary is empty"),
    "quoted": (GOOD.replace("Tester", '"Tester"'), 2, 'label begins with "'),
    "folded": (GOOD.replace("Tries it.", ">"), 3, "summary begins with >"),
    "long label": (GOOD.replace("Tester", "T" * 81), 2, "longer than 80"),
    "long summary": (GOOD.replace("Tries it.", "T" * 201), 3, "longer than 200"),
    "no label": (GOOD.replace("label: Tester\n", ""), 3, "label is missing"),
    "no summary": (GOOD.replace("summary: Tries it.\n", ""), 3, "summary is missing"),
    "no prompt": ("---\nlabel: T\nsummary: T\n---\n \n", 5, "no prompt"),
    "invisible prompt": ("---\nlabel: T\nsummary: T\n---\n\u200b\n", 5, "no prompt"),
    "long prompt": (GOOD + "x" * 20_001, 5, "longer than 20000"),
}


@pytest.mark.parametrize(("text", "line", "words"), REFUSED.values(), ids=REFUSED)
def test_a_mistake_is_named_with_its_file_and_line(folder: Path, text: str, line: int, words: str) -> None:
    path = write(folder, text)
    with pytest.raises(UserError) as refusal:
        read_role(path)
    assert refusal.value.message.startswith(f"{path}:{line}: ")
    assert words in refusal.value.message
    assert "label:" in refusal.value.hint


def test_what_is_not_utf8_is_named_with_its_line(folder: Path) -> None:
    path = write(folder, GOOD.encode() + b"\xff")
    with pytest.raises(UserError, match=rf"{re.escape(str(path))}:6: this is not UTF-8"):
        read_role(path)


def test_a_file_that_cannot_be_read_is_named(folder: Path) -> None:
    with pytest.raises(UserError, match=r"gone\.md cannot be read: No such file"):
        read_role(folder / "gone.md")


def test_a_file_whose_name_is_no_roles_name_is_refused(folder: Path) -> None:
    with pytest.raises(UserError, match=r"My Role\.md") as refusal:
        read_role(write(folder, name="My Role"))
    assert "lower-case" in refusal.value.hint


# --- finding and listing -----------------------------------------------------------------------------


def test_the_folder_given_comes_first_then_the_council_files_then_the_packaged(tmp_path: Path) -> None:
    given, beside = tmp_path / "given", tmp_path / "roles"
    given.mkdir()
    beside.mkdir()
    council_file = tmp_path / "council.yaml"
    assert find_role("sceptic", given, council_file=council_file).path.parent == packaged_roles()
    write(beside, name="sceptic")
    assert find_role("sceptic", given, council_file=council_file).path.parent == beside
    write(given, name="sceptic")
    assert find_role("sceptic", given, council_file=council_file).path.parent == given
    assert find_role("sceptic").path.parent == packaged_roles()


def test_a_council_file_needs_no_roles_beside_it(tmp_path: Path) -> None:
    assert find_role("historian", council_file=tmp_path / "council.yaml").label == "Historian"


def test_a_folder_that_was_given_must_be_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a folder of roles"):
        find_role("sceptic", tmp_path / "nowhere")


def test_an_unknown_role_is_refused_with_the_known_and_the_nearest(folder: Path) -> None:
    write(folder)
    write(folder, name="Not A Role")
    with pytest.raises(UserError, match="no role called 'skeptic'") as refusal:
        find_role("skeptic", folder)
    assert "did you mean sceptic?" in refusal.value.hint
    assert "tester" in refusal.value.hint
    assert "README" not in refusal.value.hint
    assert "Not A Role" not in refusal.value.hint


def test_what_resembles_no_role_gets_no_guess() -> None:
    with pytest.raises(UserError, match="no role called 'xyzzy'") as refusal:
        find_role("xyzzy")
    assert refusal.value.hint.startswith("known: compliance, constraint-keeper")


@pytest.mark.parametrize(
    "name", ["../sceptic", "/etc/passwd", "", "README", "sceptic\n", "sceptic.md", "\x1b[2Jx"]
)
def test_a_name_that_is_none_is_never_made_a_path(tmp_path: Path, name: str) -> None:
    inside = tmp_path / "roles"
    inside.mkdir()
    write(tmp_path, name="sceptic")
    with pytest.raises(UserError, match="no role called") as refusal:
        find_role(name, inside)
    assert "\x1b" not in refusal.value.message


def test_the_list_holds_each_role_once_as_find_would_find_it(folder: Path) -> None:
    write(folder)
    write(folder, name="sceptic")
    write(folder, "how to", name="README")
    listed = list_roles(folder)
    names = [role.name for role in listed]
    assert names == sorted(FIVE | SEVEN | {"tester"})
    assert all(role == find_role(role.name, folder) for role in listed)


def test_the_list_names_a_file_that_could_never_be_found(folder: Path) -> None:
    write(folder, name="My Role")
    with pytest.raises(UserError, match=r"My Role\.md"):
        list_roles(folder)


# --- the roles that come with it ---------------------------------------------------------------------


@pytest.mark.parametrize("role", list_roles(), ids=lambda role: role.name)
def test_a_packaged_role_is_a_job_that_can_fail_in_plain_short_prose(role: Role) -> None:
    assert 60 <= len(role.prompt.split()) <= 120
    assert "Hand back" in role.prompt
    assert "You have failed if" in role.prompt
    assert not [line for line in role.prompt.split("\n") if line.startswith(tuple("/!@#$-*"))]
    assert role.summary.endswith(".")


def test_the_packaged_roles_are_the_debates_five_and_the_reviews_eight() -> None:
    assert {role.name for role in list_roles()} == FIVE | SEVEN


def test_the_guide_lists_the_packaged_roles() -> None:
    guide = (packaged_roles() / "README.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `([a-z-]+)` \|", guide, flags=re.MULTILINE)) == FIVE | SEVEN


def test_the_example_in_the_guide_is_a_role(folder: Path) -> None:
    guide = (packaged_roles() / "README.md").read_text(encoding="utf-8")
    example = guide.split("```")[1].strip()
    assert read_role(write(folder, example)).label == "My role"


def test_the_packaged_folder_is_found_in_a_wheel_and_in_a_checkout(tmp_path: Path) -> None:
    module = tmp_path / "wrapper" / "roles.py"
    with pytest.raises(UserError, match="holds no roles"):
        packaged_roles(module)
    (tmp_path / "roles").mkdir()
    assert packaged_roles(module) == tmp_path / "roles"
    (tmp_path / "wrapper" / "roles").mkdir(parents=True)
    assert packaged_roles(module) == tmp_path / "wrapper" / "roles"
