"""`consilium roles`: the points of view that a seat can take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from consilium.errors import UserError
from council.roles import main, parser
from wrapper.roles import list_roles

if TYPE_CHECKING:
    from pathlib import Path


def test_every_role_is_listed_with_what_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines] == [[role.name, role.summary] for role in list_roles()]
    assert len({line.index(role.summary) for line, role in zip(lines, list_roles(), strict=True)}) == 1


def test_a_role_is_shown_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sceptic"]) == 0
    told = capsys.readouterr().out
    assert told.startswith("Sceptic: ")
    assert "You test what the debate rests on." in told
    assert told.endswith("sceptic.md)\n")


def test_programs_get_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert main(["sceptic", "--json"]) == 0
    one = json.loads(capsys.readouterr().out)
    assert one in listed
    assert set(one) == {"name", "label", "summary", "prompt", "path"}


def test_a_role_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(UserError, match="did you mean sceptic"):
        main(["sceptik"])


def test_the_roles_beside_a_council_file_are_included(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "roles").mkdir()
    (tmp_path / "roles" / "mine.md").write_text("---\nlabel: Mine\nsummary: My own.\n---\nSay so.\n")
    assert main(["-f", str(tmp_path / "council.yaml")]) == 0
    assert "mine               My own.\n" in capsys.readouterr().out


def test_the_help_says_how_a_council_names_a_role() -> None:
    assert "role: NAME" in parser().format_help()
