"""`wrapper.adapters.belongings`: the client's folder, ours to write or not ours to touch."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.adapters.belongings import Undo, belongings
from wrapper.isolation import keeper
from wrapper.isolation.confinement import PLAIN, Confinement, OtherUser
from wrapper.isolation.launch import User

if TYPE_CHECKING:
    from wrapper.adapters.belongings import Belongings


class Kept:
    """Runs the keeper in this process, as if it were the client's user."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.monkeypatch = monkeypatch
        self.commands: list[sandbox.Command] = []
        self.broken: sandbox.Completed | AdapterFault | None = None

    def __call__(self, command: sandbox.Command, _bounds: sandbox.Bounds) -> sandbox.Completed:
        self.commands.append(command)
        if isinstance(self.broken, AdapterFault):
            raise self.broken
        if self.broken:
            return self.broken
        said = io.StringIO()
        mask = os.umask(0o022)
        with self.monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", said)
            code = keeper.main(Path(command.argv[-1]), json.loads(command.stdin))
        os.umask(mask)
        return sandbox.Completed(code, said.getvalue().encode(), b"", None, (), 0.1)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Kept:
    kept = Kept(monkeypatch)
    monkeypatch.setattr(sandbox, "run_blocking", kept)
    return kept


@pytest.fixture(params=["ours", "theirs"])
def place(request: pytest.FixtureRequest, tmp_path: Path, kept: Kept) -> Belongings:
    """A client's folder, by either way."""
    if request.param == "ours":
        return belongings(tmp_path, PLAIN)
    home = tmp_path / "client"
    home.mkdir()
    return belongings(tmp_path, confinement(home))


def confinement(home: Path) -> Confinement:
    return Confinement(client=OtherUser(user=User(4242, 4242), home=home))


def test_folders_are_made_and_are_nobody_elses(place: Belongings) -> None:
    for _ in range(2):
        place.make_folders()
    assert (place.home / "tmp").is_dir()
    assert stat.S_IMODE((place.home / "tmp").stat().st_mode) == 0o700
    assert place.work.is_dir()


def test_files_are_put_there_whole_and_for_the_client_alone(place: Belongings) -> None:
    place.make_folders()
    place.prepare({"a.txt": "one\r\n\ud83d", "b": ""})
    assert (place.home / "a.txt").read_bytes() == b"one\r\n?"
    assert (place.home / "b").read_bytes() == b""
    assert stat.S_IMODE((place.home / "a.txt").stat().st_mode) == 0o600
    assert sorted(path.name for path in place.home.iterdir() if path.is_file()) == ["a.txt", "b"]


def test_a_file_that_is_as_it_was_is_not_written_again(place: Belongings) -> None:
    place.make_folders()
    place.prepare({"a": "text"})
    before = (place.home / "a").stat()
    place.prepare({"a": "text"})
    assert (place.home / "a").stat().st_ino == before.st_ino
    place.prepare({"a": "texts"})
    place.prepare({"a": "text"})
    assert (place.home / "a").read_text() == "text"


def link(path: Path, other: Path) -> None:
    path.symlink_to(other)


def named_pipe(path: Path, _other: Path) -> None:
    os.mkfifo(path)


def edit(path: Path, _other: Path) -> None:
    path.write_text("tex")


@pytest.mark.parametrize("spoil", [link, named_pipe, edit])
def test_what_the_client_made_of_it_is_replaced_and_never_followed(
    place: Belongings, tmp_path: Path, spoil: Any
) -> None:
    place.make_folders()
    other = tmp_path / "other"
    other.write_text("text")
    place.prepare({"a": "old"})
    (place.home / "a").unlink()
    spoil(place.home / "a", other)
    place.prepare({"a": "text"})
    assert stat.S_ISREG((place.home / "a").lstat().st_mode)
    assert (place.home / "a").read_text() == "text"
    place.prepare({"a": "new"})
    assert other.read_text() == "text"


def test_a_chat_is_there_or_not(place: Belongings) -> None:
    place.make_folders()
    assert not place.holds("chats/*.db")
    (place.home / "chats").mkdir()
    (place.home / "chats" / "1.db").touch()
    assert place.holds("chats/*.db")


def test_what_belongs_to_another_user_is_touched_by_that_user_alone(kept: Kept, tmp_path: Path) -> None:
    home = tmp_path / "client"
    home.mkdir()
    theirs = belongings(tmp_path / "seat", confinement(home))
    theirs.make_folders()
    theirs.prepare({"a": "secret prompt"})
    theirs.holds("x")
    for command in kept.commands:
        assert command.confinement == confinement(home)
        assert "secret" not in " ".join(command.argv)
        assert set(command.env) == {"PATH"}
    assert not (tmp_path / "seat").exists()


def test_what_the_keeper_cannot_do_is_said(kept: Kept, tmp_path: Path) -> None:
    theirs = belongings(tmp_path, confinement(tmp_path / "gone"))
    kept.broken = sandbox.Completed(1, b"", b"No space left\x1b[2J on device\n", None, (), 0.1)
    with pytest.raises(OSError, match=r"^No space left on device$"):
        theirs.prepare({"a": "b"})
    kept.broken = sandbox.Completed(-9, b"", b"", None, (), 0.1)
    with pytest.raises(OSError, match="the keeper ended with -9"):
        theirs.make_folders()
    kept.broken = sandbox.Completed(0, b'{"found": tr', b"", None, (), 0.1)
    with pytest.raises(OSError, match="the keeper ended with 0"):
        theirs.holds("a")
    kept.broken = AdapterFault(Fault.START_FAILED, PromptSent.NO, "setpriv is not installed")
    with pytest.raises(OSError, match="setpriv is not installed"):
        theirs.holds("a")


def test_what_a_client_put_in_the_place_of_ours_is_cleared_away(tmp_path: Path, kept: Kept) -> None:
    home, elsewhere = tmp_path / "client", tmp_path / "elsewhere"
    for folder in (home / "a" / "deep", elsewhere):
        folder.mkdir(parents=True)
    place = belongings(tmp_path, confinement(home))
    (home / "a" / "deep" / "file").touch()
    (home / "tmp").symlink_to(elsewhere / "nowhere")
    (home / "work").write_text("no folder")
    os.mkfifo(home / "b")
    with (home / "c").open("wb") as file:
        file.write(b"three")
        file.truncate(1 << 40)  # nobody could hold it in memory
    (home / "d").symlink_to(elsewhere)
    place.make_folders()
    place.prepare({"a": "one", "b": "two", "c": "three", "d": "four"})
    assert [(home / name).read_text() for name in "abcd"] == ["one", "two", "three", "four"]
    assert (home / "tmp").is_dir()
    assert (home / "work").is_dir()
    assert list(elsewhere.iterdir()) == []


# --- turns that are undone ---------------------------------------------------------------------------

CHAT = ("chats/*.db", "index")


def chat(place: Belongings) -> dict[str, str]:
    """The files that a turn changes, as they are."""
    files = (path for path in place.home.rglob("*") if path.is_file() and ".consilium" not in str(path))
    return {str(path.relative_to(place.home)): path.read_text() for path in files}


@pytest.fixture
def begun(place: Belongings) -> Belongings:
    """A folder with a chat in it, and a turn `t1` that is about to change it."""
    place.make_folders()
    (place.home / "chats").mkdir()
    (place.home / "chats" / "1.db").write_text("one turn")
    (place.home / "other").write_text("other")
    place.prepare({}, Undo(CHAT, None, "t1"))
    return place


def take_turn(place: Belongings) -> dict[str, str]:
    (place.home / "chats" / "1.db").write_text("two turns")
    (place.home / "chats" / "2.db").write_text("new")
    (place.home / "index").write_text("1 2")
    (place.home / "other").write_text("changed")
    return chat(place)


def test_a_turn_that_nobody_claimed_is_undone(begun: Belongings) -> None:
    take_turn(begun)
    begun.prepare({}, Undo(CHAT, None, "t2"))
    assert chat(begun) == {"chats/1.db": "one turn", "other": "changed"}


def test_a_turn_that_succeeded_stays(begun: Belongings) -> None:
    after = take_turn(begun)
    begun.prepare({}, Undo(CHAT, "t1", "t2"))
    assert chat(begun) == after
    (begun.home / "chats" / "1.db").unlink()
    begun.prepare({}, Undo(CHAT, "t1"))
    assert chat(begun) == after, "what the turn after it deleted is there again"


def test_undoing_once_more_changes_nothing(begun: Belongings) -> None:
    take_turn(begun)
    begun.prepare({}, Undo(CHAT, None))
    before = chat(begun)
    begun.prepare({}, Undo(CHAT, None))
    assert chat(begun) == before
    assert not (begun.home / keeper.COPIES).exists()


def test_a_first_turn_that_failed_leaves_no_chat(place: Belongings) -> None:
    place.make_folders()
    place.prepare({"settings/own.json": "{}"}, Undo(CHAT, None, "t1"))
    (place.home / "chats").mkdir()
    take_turn(place)
    place.prepare({}, Undo(CHAT, None, "t2"))
    assert chat(place) == {"settings/own.json": "{}", "other": "changed"}


def test_a_copy_that_was_cut_off_is_none(begun: Belongings, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise OSError("no more")

    after = take_turn(begun)
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "_copy_file", killed)
        with pytest.raises(OSError, match="no more"):
            begun.prepare({}, Undo(CHAT, "t1", "t2"))
    begun.prepare({}, Undo(CHAT, "t1", "t2"))
    assert chat(begun) == after


def test_undoing_that_was_cut_off_is_done_again(begun: Belongings, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: Any, **__: Any) -> None:
        raise OSError("no more")

    take_turn(begun)
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "_copy_file", killed)
        with pytest.raises(OSError, match="no more"):
            begun.prepare({}, Undo(CHAT, None, "t2"))
    begun.prepare({}, Undo(CHAT, None, "t2"))
    assert chat(begun) == {"chats/1.db": "one turn", "other": "changed"}


def test_what_a_link_leads_to_is_neither_copied_nor_taken_away(place: Belongings, tmp_path: Path) -> None:
    place.make_folders()
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "1.db").write_text("somebody's")
    (place.home / "chats").symlink_to(outside)
    (place.home / "index").symlink_to(outside / "1.db")
    place.prepare({}, Undo(CHAT, None, "t1"))
    assert not list((place.home / keeper.COPIES / "t1").iterdir())
    place.prepare({}, Undo(CHAT, None))
    assert (outside / "1.db").read_text() == "somebody's"


def test_a_file_in_a_folder_has_its_folder_made_and_no_link_is_followed(
    place: Belongings, tmp_path: Path
) -> None:
    place.make_folders()
    outside = tmp_path / "outside"
    outside.mkdir()
    (place.home / "deep").symlink_to(outside)
    place.prepare({"deep/er/file": "text"})
    assert (place.home / "deep" / "er" / "file").read_text() == "text"
    assert list(outside.iterdir()) == []


def test_a_file_that_only_seems_to_be_large_is_not_copied(begun: Belongings) -> None:
    take_turn(begun)
    os.truncate(begun.home / "chats" / "2.db", 1 << 40)
    begun.prepare({}, Undo(CHAT, None, "t2"))
    assert chat(begun) == {"chats/1.db": "one turn", "other": "changed"}
    take_turn(begun)
    os.truncate(begun.home / "chats" / "2.db", 1 << 40)
    with pytest.raises(OSError, match=r"more than 256 MiB are to be copied; the largest is .*2\.db"):
        begun.prepare({}, Undo(CHAT, "t2", "t3"))
    assert sum(path.stat().st_blocks for path in begun.home.rglob("*")) < 1024


def test_what_is_planted_among_the_copies_is_not_copied_without_end(begun: Belongings) -> None:
    take_turn(begun)
    (planted := begun.home / keeper.COPIES / "t1" / "chats" / "3.db").touch()
    os.truncate(planted, 1 << 40)
    with pytest.raises(OSError, match="256 MiB"):
        begun.prepare({}, Undo(CHAT, None, "t2"))
    planted.unlink()
    begun.prepare({}, Undo(CHAT, None, "t2"))
    assert chat(begun) == {"chats/1.db": "one turn", "other": "changed"}


def test_files_without_number_are_not_copied(begun: Belongings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "MAX_FILES", 9)
    for number in range(10, 18):
        (begun.home / "chats" / f"{number}.db").touch()
    begun.prepare({}, Undo(CHAT, "t1", "t2"))
    (begun.home / "chats" / "18.db").touch()
    with pytest.raises(OSError, match="more than 9 files"):
        begun.prepare({}, Undo(CHAT, "t2", "t3"))


def test_a_file_that_grows_while_it_is_read_is_copied_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "from").write_bytes(b"0123456789")
    keeper._copy_file(tmp_path / "from", tmp_path / "to", 4)
    assert (tmp_path / "to").read_bytes() == b"0123"


def test_folders_in_folders_without_end_are_an_error_and_no_bug(begun: Belongings) -> None:
    (folder := begun.home / "mine.json").mkdir()
    at = os.open(folder, os.O_RDONLY)
    try:
        for _ in range(2 * sys.getrecursionlimit()):
            os.mkdir("d", dir_fd=at)
            below = os.open("d", os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        with pytest.raises(OSError, match="nested too deep"):
            begun.prepare({"mine.json": "{}"})
    finally:
        os.close(at)
        subprocess.run(["rm", "-rf", folder], check=True)
