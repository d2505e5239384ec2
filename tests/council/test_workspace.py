"""`council.workspace`: the folder of one debate."""

from __future__ import annotations

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from consilium.config import Caps, Council, Participant
from consilium.errors import UserError
from consilium.settings import check_council, load_council
from consilium.strict_yaml import parse_tree
from council.workspace import Workspace, default_folder

COUNCIL = Council(
    topic="Shall we: yes, or no?\n\nno\t— “really”",
    caps=Caps(max_rounds=3),
    participants=(Participant(name="no", role="sceptic"), Participant(name="b", role_prompt="- x: y")),
)


def test_it_holds_what_is_needed_to_hold_the_debate_again(tmp_path: Path) -> None:
    role = tmp_path / "sceptic.md"
    role.write_text("---\n")
    space = Workspace.create(tmp_path / "new" / "x", COUNCIL, [role])
    assert load_council(space.council) == COUNCIL
    assert (space.council.parent / "roles" / "sceptic.md").read_text() == "---\n"
    assert space.logs.is_dir()
    assert space.state("no").is_dir()
    assert space.state("b").is_dir()
    assert not space.transcript.exists()


def test_nobody_else_may_look_into_it(tmp_path: Path) -> None:
    space = Workspace.create(tmp_path / "x", COUNCIL, [])
    assert stat.S_IMODE(space.folder.stat().st_mode) == 0o700


def test_its_places_do_not_depend_on_where_we_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    space = Workspace.create(Path("x"), COUNCIL, [])
    assert space.folder == tmp_path / "x"
    assert space.certs == tmp_path / "x" / "certs"


def test_an_empty_folder_is_taken(tmp_path: Path) -> None:
    Workspace.create(tmp_path, COUNCIL, [])
    assert (tmp_path / "council.yaml").exists()


def test_a_folder_with_anything_in_it_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    with pytest.raises(UserError, match="is not empty"):
        Workspace.create(tmp_path, COUNCIL, [])
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("folder", ["/proc/nowhere/x", "/dev/null"])
def test_a_folder_that_cannot_be_used_is_a_sentence(folder: str) -> None:
    with pytest.raises(UserError, match=rf"^{folder} cannot be used: "):
        Workspace.create(Path(folder), COUNCIL, [])


def test_a_full_disk_at_the_start_is_a_sentence(tmp_path: Path) -> None:
    """A file-size limit of zero stands for the full disk: every write fails, as it would there."""
    code = (
        "import resource, sys; from pathlib import Path; from consilium.config import Caps, Council;"
        " from consilium.errors import UserError; from council.workspace import Workspace;"
        " c = Council(topic='x', caps=Caps(max_rounds=1));"
        " resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try: Workspace.create(Path(sys.argv[1]), c, [])\n"
        "except UserError as error: print(error)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "x")], capture_output=True, text=True, check=True
    )
    assert told.stdout == f"{tmp_path / 'x'} cannot be used: File too large\n"


# --- names ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "name"),
    [
        ("Rewrite it, or wrap it?", "T-rewrite-it-or-wrap-it"),
        ("  ../../etc/passwd\n", "T-etc-passwd"),
        ("¿Qué?", "T-qu"),
        ("日本", "T-debate"),
        ("word " * 30, "T-word-word-word-word-word-word-word-word"),
    ],
)
def test_a_folder_is_named_after_time_and_topic(topic: str, name: str, tmp_path: Path) -> None:
    assert default_folder(tmp_path, time="T", topic=topic) == tmp_path / name


def test_a_second_debate_in_the_same_second_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "T-x").mkdir()
    (tmp_path / "T-x-2").mkdir()
    assert default_folder(tmp_path, time="T", topic="x") == tmp_path / "T-x-3"


def test_debates_that_begin_at_once_do_not_get_the_same_folder(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as at_once:
        folders = list(
            at_once.map(lambda _: default_folder(tmp_path / "new", time="T", topic="x"), range(40))
        )
    assert len(set(folders)) == 40


def test_where_no_folder_can_be_made_that_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file/T-x cannot be used: "):
        default_folder(tmp_path / "file", time="T", topic="x")


@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60))
@example("\x85")
@example("a\u2028b \u2029 c\n\x85d")
@settings(max_examples=100, deadline=None)
def test_any_topic_survives_the_way_into_the_file_and_back(topic: str) -> None:
    from council.workspace import _dump  # noqa: PLC0415 - the part without a disk

    council = COUNCIL.model_copy(update={"topic": topic})
    tree, _ = parse_tree(_dump(council), name="f")
    assert check_council(tree, {}, name="f") == council
