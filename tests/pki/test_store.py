"""Keys on disk: private from the first byte, whole or not at all, and never overwritten by accident."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from consilium.errors import UserError
from pki import store

if TYPE_CHECKING:
    from pathlib import Path

FILES = {"cert.pem": b"certificate", "key.pem": b"key", "ca.pem": b"anchors"}
OTHERS = {"cert.pem": b"another certificate", "key.pem": b"another key", "ca.pem": b"anchors"}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_modes_hold_under_any_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        store.make_root(tmp_path / "pki")
        store.write_folder(tmp_path / "pki" / "seat", FILES)
    finally:
        os.umask(before)
    folder = tmp_path / "pki" / "seat"
    assert contents(folder) == FILES
    assert (mode(tmp_path / "pki"), mode(folder), mode(folder / "key.pem")) == (0o700, 0o700, 0o600)
    assert mode(folder / "cert.pem") == 0o644 & ~umask


def test_a_key_is_created_private_and_exclusively(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: dict[str, tuple[int, int]] = {}
    real = os.open

    def watch(path: Path, flags: int, mode: int = 0o777) -> int:
        opened[path.name] = (flags, mode)
        return real(path, flags, mode)

    monkeypatch.setattr("pki.store.os.open", watch)
    store.write_folder(tmp_path / "seat", FILES)
    flags, mode = opened["key.pem"]
    assert mode == 0o600
    for flag in (os.O_CREAT, os.O_EXCL, os.O_NOFOLLOW, os.O_CLOEXEC):
        assert flags & flag == flag


def test_nothing_is_left_beside_the_folder(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    store.replace_files(tmp_path / "seat", OTHERS)
    assert [path.name for path in tmp_path.iterdir()] == ["seat"]


def test_an_existing_folder_is_not_overwritten(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    with pytest.raises(UserError, match="is there already, and no key is overwritten") as refusal:
        store.write_folder(tmp_path / "seat", OTHERS, way_out="this way")
    assert refusal.value.hint == "this way"
    assert contents(tmp_path / "seat") == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["seat"]


def test_an_existing_folder_is_replaced_when_asked(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    store.replace_files(tmp_path / "seat", OTHERS)
    assert contents(tmp_path / "seat") == OTHERS
    assert mode(tmp_path / "seat" / "key.pem") == 0o600


Write = Callable[["Path", dict[str, bytes]], None]


@pytest.mark.parametrize("write", [store.write_folder, store.replace_files])
def test_a_link_in_the_place_of_a_folder_is_not_followed(tmp_path: Path, write: Write) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "seat").symlink_to(elsewhere)
    with pytest.raises(UserError):
        write(tmp_path / "seat", FILES)
    assert not list(elsewhere.iterdir())
    assert (tmp_path / "seat").is_symlink()


@pytest.mark.parametrize("write", [store.write_folder, store.replace_files])
def test_a_file_in_the_place_of_a_folder_is_left_alone(tmp_path: Path, write: Write) -> None:
    (tmp_path / "seat").write_text("mine")
    with pytest.raises(UserError):
        write(tmp_path / "seat", FILES)
    assert (tmp_path / "seat").read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["seat"]


def test_files_are_replaced_inside_the_folder_that_somebody_may_have_mounted(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    (tmp_path / "seat" / "notes.txt").write_text("mine")
    before = (tmp_path / "seat").stat().st_ino
    store.replace_files(tmp_path / "seat", OTHERS)
    assert (tmp_path / "seat").stat().st_ino == before
    assert contents(tmp_path / "seat") == OTHERS | {"notes.txt": b"mine"}


@pytest.mark.parametrize(("had", "kept"), [(0o400, 0o400), (0o600, 0o600), (0o644, 0o600)])
def test_a_key_that_is_replaced_keeps_its_mode_and_never_a_wider_one(
    tmp_path: Path, had: int, kept: int
) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    (tmp_path / "seat" / "key.pem").chmod(had)
    store.replace_files(tmp_path / "seat", OTHERS)
    assert mode(tmp_path / "seat" / "key.pem") == kept


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_key_that_is_replaced_stays_its_seats_own(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    os.chown(tmp_path / "seat" / "key.pem", 10001, 10001)
    os.chown(tmp_path / "seat", 10001, 10002)
    (tmp_path / "seat" / "cert.pem").unlink()
    store.replace_files(tmp_path / "seat", OTHERS)
    owners = {path.name: (path.stat().st_uid, path.stat().st_gid) for path in (tmp_path / "seat").iterdir()}
    assert owners == {"key.pem": (10001, 10001), "cert.pem": (10001, 10002), "ca.pem": (0, 0)}


def test_a_file_that_would_not_stay_its_owners_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    monkeypatch.setattr("pki.store.os.geteuid", lambda: 4321)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("pki.store.os.chown", refused)
    with pytest.raises(UserError, match=r"belongs to user \d+, and would be yours afterwards"):
        store.replace_files(tmp_path / "seat", OTHERS)
    assert contents(tmp_path / "seat") == FILES


def test_a_link_among_the_files_is_replaced_and_not_followed(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    (tmp_path / "elsewhere").write_bytes(b"theirs")
    (tmp_path / "seat" / "key.pem").unlink()
    (tmp_path / "seat" / "key.pem").symlink_to(tmp_path / "elsewhere")
    store.replace_files(tmp_path / "seat", OTHERS)
    assert (tmp_path / "elsewhere").read_bytes() == b"theirs"
    assert contents(tmp_path / "seat") == OTHERS
    assert mode(tmp_path / "seat" / "key.pem") == 0o600


def test_a_folder_of_folders_appears_whole_and_private(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "ca", {"root/key.pem": b"key", "root/cert.pem": b"c", "index.json": b"{}"})
    assert mode(tmp_path / "ca" / "root") == 0o700
    assert (mode(tmp_path / "ca" / "root" / "key.pem"), mode(tmp_path / "ca" / "index.json")) == (
        0o600,
        0o600,
    )


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def write(number: int) -> None:
        with store.locked(tmp_path):
            inside.append(number)
            most.append(len(inside))
            time.sleep(0.005)
            inside.remove(number)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(24)))
    assert most == [1] * 24


def test_a_writer_that_does_not_end_is_named_and_not_waited_for_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "LOCK_SECONDS", 0.05)
    with (
        store.locked(tmp_path),
        pytest.raises(UserError, match=r"another .* is writing in") as refusal,
        store.locked(tmp_path),
    ):
        pass
    assert "fuser" in refusal.value.hint
    with store.locked(tmp_path):
        pass


def test_a_writer_that_was_killed_holds_nobody_up(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, sys\nfrom pki import store\n"
        "with store.locked(pathlib.Path(sys.argv[1])): os.kill(os.getpid(), 9)\n"
    )
    assert subprocess.run([sys.executable, "-c", code, tmp_path], check=False).returncode == -9
    with store.locked(tmp_path):
        pass


def test_a_folder_to_lock_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"), store.locked(tmp_path / "ca"):
        pass


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pki.store.os.fsync", full)
    with pytest.raises(UserError, match="seat cannot be used: No space left on device"):
        store.write_folder(tmp_path / "seat", FILES)
    assert not list(tmp_path.iterdir())


def test_a_replacement_that_fails_half_way_is_made_good_by_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    real = type(tmp_path).replace
    moves: list[str] = []

    def second_fails(self: Path, target: Path) -> Path:
        moves.append(self.name)
        if len(moves) == 2:
            raise OSError(5, "Input/output error")
        return real(self, target)

    with monkeypatch.context() as broken:
        broken.setattr("pathlib.Path.replace", second_fails)
        with pytest.raises(UserError, match="Input/output error"):
            store.replace_files(tmp_path / "seat", OTHERS)
    assert sorted(contents(tmp_path / "seat")) == sorted(FILES)
    store.replace_files(tmp_path / "seat", OTHERS)
    assert contents(tmp_path / "seat") == OTHERS


def test_what_an_interrupted_replacement_left_is_not_in_the_way(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    (tmp_path / "seat" / ".key.pem.new").write_bytes(b"half a k")
    store.replace_files(tmp_path / "seat", OTHERS)
    assert contents(tmp_path / "seat") == OTHERS


def test_a_rename_that_fails_for_another_reason_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(self: Path, target: Path) -> Path:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("pathlib.Path.rename", fail)
    with pytest.raises(UserError, match="Input/output error"):
        store.write_folder(tmp_path / "seat", FILES)


def test_a_relative_folder_is_written_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = type(tmp_path)("pki")
    store.make_root(relative)
    store.write_folder(relative / "seat", FILES)
    assert contents(tmp_path / "pki" / "seat") == FILES


def test_the_root_is_made_with_its_parents(tmp_path: Path) -> None:
    store.make_root(tmp_path / "a" / "b")
    assert mode(tmp_path / "a" / "b") == 0o700


def test_a_root_that_exists_is_taken_as_it_is(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    store.make_root(tmp_path)
    assert mode(tmp_path) == 0o755


@pytest.mark.parametrize("open_to", [0o720, 0o702, 0o777])
def test_a_root_that_others_may_write_to_is_refused(tmp_path: Path, open_to: int) -> None:
    tmp_path.chmod(open_to)
    with pytest.raises(UserError, match="others may write to") as refusal:
        store.make_root(tmp_path)
    assert refusal.value.hint == f"chmod go-w {tmp_path}"


def test_a_root_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "pki").symlink_to(tmp_path / "real")
    with pytest.raises(UserError, match="is a symbolic link"):
        store.make_root(tmp_path / "pki")


def test_a_root_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pki").touch()
    with pytest.raises(UserError, match="is not a folder"):
        store.make_root(tmp_path / "pki")


def test_a_root_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="pki cannot be used"):
        store.make_root(tmp_path / "file" / "pki")


def test_a_private_key_is_read(tmp_path: Path) -> None:
    store.write_folder(tmp_path / "seat", FILES)
    assert store.read_key(tmp_path / "seat" / "key.pem") == b"key"


@pytest.mark.parametrize("open_to", [0o640, 0o604, 0o620, 0o601])
def test_a_key_that_others_can_reach_is_not_used(tmp_path: Path, open_to: int) -> None:
    (tmp_path / "key.pem").write_bytes(b"key")
    (tmp_path / "key.pem").chmod(open_to)
    with pytest.raises(UserError, match="open to other users"):
        store.read_key(tmp_path / "key.pem")


def test_a_key_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real.pem").write_bytes(b"key")
    (tmp_path / "real.pem").chmod(0o600)
    (tmp_path / "key.pem").symlink_to(tmp_path / "real.pem")
    with pytest.raises(UserError, match="is a symbolic link"):
        store.read_key(tmp_path / "key.pem")


@pytest.mark.timeout(5)
def test_a_pipe_in_the_place_of_a_key_does_not_hold_us(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "key.pem", 0o600)
    with pytest.raises(UserError, match="is not a file"):
        store.read_key(tmp_path / "key.pem")


def test_a_missing_key_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"key\.pem does not exist"):
        store.read_key(tmp_path / "key.pem")


def test_an_index_is_private_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "index.json").write_bytes(b"{}")
    (tmp_path / "index.json").chmod(0o600)
    assert store.read_index(tmp_path / "index.json") == b"{}"
    monkeypatch.setattr(store, "MAX_INDEX_BYTES", 1)
    with pytest.raises(UserError, match="too large to be an index"):
        store.read_index(tmp_path / "index.json")
    (tmp_path / "index.json").chmod(0o644)
    with pytest.raises(UserError, match="open to other users"):
        store.read_index(tmp_path / "index.json")


def test_certificates_are_read_and_bounded(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(b"x" * store.MAX_PEM_BYTES)
    assert len(store.read_pem(tmp_path / "ca.pem")) == store.MAX_PEM_BYTES
    (tmp_path / "ca.pem").write_bytes(b"x" * (store.MAX_PEM_BYTES + 1))
    with pytest.raises(UserError, match="too large"):
        store.read_pem(tmp_path / "ca.pem")


def test_what_is_no_file_is_not_read_as_certificates(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a file"):
        store.read_pem(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        store.read_pem(tmp_path / "nothing")
