"""The transcript's file is created by us and for us, or not at all, with a sentence that says why."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from arbiter.disk import create, reopen, unlock
from consilium.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "debate.jsonl"


def refused(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        create(path, sync=True)
    assert caught.value.hint
    return caught.value


def test_the_file_is_readable_by_its_owner_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        os.close(create(path, sync=True))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_is_written_goes_to_the_end_and_can_be_read_back(path: Path) -> None:
    descriptor = create(path, sync=False)
    os.write(descriptor, b"one")
    os.lseek(descriptor, 0, os.SEEK_SET)
    os.write(descriptor, b"two")
    assert os.pread(descriptor, 10, 0) == b"onetwo"
    os.close(descriptor)


def test_a_transcript_is_never_overwritten(path: Path) -> None:
    path.write_text("old")
    assert refused(path).message.endswith(f"{path} is already a file")
    assert path.read_text() == "old"


def test_a_symbolic_link_is_not_followed(path: Path) -> None:
    path.symlink_to(path.parent / "elsewhere")
    assert refused(path).message.endswith("is already a symbolic link")
    assert not (path.parent / "elsewhere").exists()


def test_a_fifo_a_folder_and_a_socket_are_named(path: Path) -> None:
    os.mkfifo(path)
    assert "is already a FIFO" in refused(path).message
    path.unlink()
    path.mkdir()
    assert "is already a folder" in refused(path).message
    path.rmdir()
    os.mknod(path, stat.S_IFSOCK | 0o600)
    assert "is already a special file" in refused(path).message


def test_the_file_of_another_owner_is_named_as_such(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert f"a file of another owner (user {owner})" in refused(path).message


def test_a_folder_that_is_not_there_comes_with_the_command_that_makes_it(path: Path) -> None:
    missing = path.parent / "debates" / "today" / "debate.jsonl"
    error = refused(missing)
    assert "is not there" in error.message
    assert error.hint == f"mkdir -p {missing.parent}"


@contextmanager
def somebody_without_rights(folder: Path) -> Iterator[None]:
    """As whoever we are, but without root's power over permissions."""
    folder.chmod(0o555)
    euid = os.geteuid()
    if euid == 0:
        for parent in (folder, *folder.parents):
            parent.chmod(parent.stat().st_mode | 0o111)
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(euid)
        folder.chmod(0o755)


def test_a_folder_that_may_not_be_written_to_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    with somebody_without_rights(folder):
        error = refused(folder / "debate.jsonl")
    assert error.message == f"the folder {folder} takes no transcript: Permission denied"


def test_any_other_reason_is_passed_on(path: Path) -> None:
    assert refused(path.with_name("x" * 300)).message.endswith("cannot be created: File name too long")


def test_a_name_that_cannot_be_made_durable_is_taken_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    assert "Input/output error" in refused(path).message
    assert not path.exists()
    os.close(create(path, sync=False))


# --- found again -------------------------------------------------------------------------------------


def not_reopened(path: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        reopen(path)
    assert caught.value.hint
    return caught.value


@pytest.fixture
def old(path: Path) -> Path:
    """A transcript that an Arbiter has left."""
    descriptor = create(path, sync=False)
    os.write(descriptor, b"one")
    os.close(descriptor)
    return path


def test_what_was_created_is_opened_again_to_be_appended_to_and_read_back(old: Path) -> None:
    descriptor = reopen(old)
    os.write(descriptor, b"two")
    assert os.pread(descriptor, 10, 0) == b"onetwo"
    os.close(descriptor)


def test_a_transcript_that_is_not_there_cannot_be_opened(path: Path) -> None:
    assert not_reopened(path).message == f"{path} cannot be opened: No such file or directory"
    assert not path.exists()


def test_nothing_but_a_file_is_opened_again(old: Path) -> None:
    link = old.with_name("link.jsonl")
    link.symlink_to(old)
    assert not_reopened(link).message.endswith("it is a symbolic link")
    assert not_reopened(old.parent).message.endswith("it is a folder")
    os.mkfifo(fifo := old.with_name("fifo"), 0o600)
    assert not_reopened(fifo).message.endswith("it is a FIFO")
    os.mknod(socket := old.with_name("socket"), stat.S_IFSOCK | 0o600)
    assert not_reopened(socket).message.endswith("it is a special file")


def test_the_file_of_another_owner_is_not_opened_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    owner = old.stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    assert not_reopened(old).message.endswith(f"it is a file of another owner (user {owner})")


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o400, 0o700, 0o2600])
def test_a_file_with_other_rights_than_a_transcripts_comes_with_the_command_that_mends_it(
    old: Path, mode: int
) -> None:
    old.chmod(mode)
    error = not_reopened(old)
    assert error.message.endswith(f"its mode is {mode:04o}, not 0600")
    assert error.hint.endswith(f"chmod 600 {old}")


def test_what_takes_the_place_of_a_file_as_it_is_opened_is_looked_at_too(
    old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def swap(path: Path, flags: int) -> int:
        path.unlink()
        os.mkfifo(path, 0o600)
        return real(path, flags)

    monkeypatch.setattr(os, "open", swap)
    assert not_reopened(old).message.endswith("it is a FIFO")


def test_one_descriptor_at_a_time_has_the_file(path: Path) -> None:
    first = create(path, sync=True)
    assert not_reopened(path).message == f"another Arbiter is writing {path}"
    os.close(first)
    second = reopen(path)
    assert not_reopened(path).message == f"another Arbiter is writing {path}"
    os.close(second)


def test_an_unlocked_file_is_free_although_somebody_still_reads_it(path: Path) -> None:
    descriptor = create(path, sync=False)
    reader = os.dup(descriptor)
    unlock(descriptor)
    os.close(descriptor)
    os.close(reopen(path))
    os.close(reader)


def refuse_locks(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int, operation: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)


def test_a_file_system_without_locks_takes_no_transcript(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(errno.ENOLCK, monkeypatch)
    assert refused(path).message == f"{path} cannot be created: No locks available"
    assert not path.exists()


def test_a_file_that_cannot_be_locked_is_not_opened_again(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse_locks(errno.ENOLCK, monkeypatch)
    assert not_reopened(old).message == f"{old} cannot be locked: No locks available"


def test_a_new_file_that_another_arbiter_has_opened_meanwhile_is_left_to_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse_locks(errno.EWOULDBLOCK, monkeypatch)
    assert refused(path).message == f"another Arbiter is writing {path}"
    assert path.exists()
