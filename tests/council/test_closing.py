"""`council.closing`: the last lines, whatever there is of a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from transcripts import debate, sealed, write

from council.closing import close
from council.course import Verdict
from council.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

DONE = Verdict(0, "FINISHED", "done")
BAD = Verdict(1, "FAULT", "broken")


def test_after_a_debate_the_status_and_the_record_are_told(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    write(space.transcript, sealed(debate()))
    closing = close(space, DONE)
    status = dict(closing.status)
    assert status["State"] == ("finished: the operator closed it",)
    assert status["Rounds"] == ("2 complete",)
    assert "Topic" not in status
    assert dict(closing.places) == {
        "Record": str(space.transcript),
        "Read it": f"consilium transcript {space.transcript}",
    }


def test_after_a_failure_the_logs_are_told_too(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    write(space.transcript, sealed(debate()))
    assert dict(close(space, BAD).places)["Logs"] == str(space.logs)


def test_where_no_record_was_begun_there_are_only_logs(tmp_path: Path) -> None:
    closing = close(Workspace(tmp_path), BAD)
    assert closing.status == ()
    assert dict(closing.places) == {"Logs": str(tmp_path / "logs")}


def test_a_damaged_record_is_still_named(tmp_path: Path) -> None:
    space = Workspace(tmp_path)
    write(space.transcript, sealed(debate())[1:])
    closing = close(space, BAD)
    assert closing.status == ()
    assert dict(closing.places)["Record"] == str(space.transcript)
