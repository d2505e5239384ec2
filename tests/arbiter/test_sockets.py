"""`arbiter.edge.sockets`: the folder, the three sockets, who may reach them, and what is in their place."""

# ruff: noqa: ASYNC221, ASYNC240 - nothing else waits for the disk here

from __future__ import annotations

import grp
import os
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from anyio.abc import SocketAttribute

from arbiter.edge import sockets
from arbiter.edge.sockets import PATH_BYTES, open_sockets
from consilium.errors import UserError
from consilium.sockets import NAMES, socket_path

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.anyio

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may give a file to any group")
A_GROUP = "daemon"
"""A group that every system has, and no test's user is in."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
async def test_folder_and_sockets_have_their_modes_whatever_the_umask(folder: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        async with open_sockets(folder) as listeners:
            assert mode(folder) == 0o770
            assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES.values())
            assert {mode(path) for path in folder.iterdir()} == {0o660}
            assert listeners.keys() == NAMES.keys()
            for name, (listener,) in listeners.items():
                assert listener.extra(SocketAttribute.local_address) == str(socket_path(folder, name))
    finally:
        os.umask(before)
    assert list(folder.iterdir()) == [], "a folder that was made stays, and is empty"


async def test_a_folder_that_is_there_is_used_as_it_is(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    async with open_sockets(folder):
        assert mode(folder) == 0o700


@needs_root
async def test_folder_and_sockets_belong_to_the_group_where_there_is_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets, "GROUP", A_GROUP)
    gid = grp.getgrnam(A_GROUP).gr_gid
    async with open_sockets(folder):
        assert {path.stat().st_gid for path in (folder, *folder.iterdir())} == {gid}
    assert caplog.text == ""


async def test_a_group_that_the_user_is_not_in_is_not_used_and_that_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets, "GROUP", A_GROUP)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setattr(os, "getegid", lambda: 424242)
    monkeypatch.setattr(os, "getgroups", list)
    assert sockets.usable_group(folder) is None
    assert f"this user is not in group {A_GROUP}: the sockets in {folder} are for group 424242" in caplog.text


async def test_a_member_of_the_group_uses_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gid = grp.getgrnam(A_GROUP).gr_gid
    monkeypatch.setattr(sockets, "GROUP", A_GROUP)
    monkeypatch.setattr(os, "geteuid", lambda: 4242)
    monkeypatch.setattr(os, "getgroups", lambda: [gid])
    assert sockets.usable_group(folder) == gid


async def test_without_the_group_the_sockets_are_for_ones_own_and_that_is_said(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets, "GROUP", "no-such-group")
    async with open_sockets(folder):
        assert {path.stat().st_gid for path in folder.iterdir()} == {os.getegid()}
    own = grp.getgrgid(os.getegid()).gr_name
    assert f"there is no group no-such-group: the sockets in {folder} are for group {own}" in caplog.text


async def test_the_socket_of_an_arbiter_that_died_is_replaced(folder: Path) -> None:
    folder.mkdir(mode=0o770)
    code = f"import socket; socket.socket(socket.AF_UNIX).bind({str(folder / NAMES['data'])!r})"
    subprocess.run([sys.executable, "-c", code], check=True)
    async with open_sockets(folder):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(folder / NAMES["data"]))


async def test_one_arbiter_at_a_time_listens_in_a_folder(folder: Path) -> None:
    async with open_sockets(folder):
        with pytest.raises(UserError, match="another Arbiter listens in") as refused:
            async with open_sockets(folder):
                pass
        assert "--socket-dir" in refused.value.hint
        assert len(list(folder.iterdir())) == 3, "the first one's are left alone"
    async with open_sockets(folder):
        pass


@pytest.mark.parametrize("crowded", [False, True])
async def test_a_socket_on_which_somebody_listens_is_left_alone(folder: Path, crowded: bool) -> None:
    folder.mkdir(mode=0o770)
    path = folder / NAMES["admin"]
    with socket.socket(socket.AF_UNIX) as alive, socket.socket(socket.AF_UNIX) as waiting:
        alive.bind(str(path))
        alive.listen(0)
        if crowded:
            waiting.connect(str(path))
        with pytest.raises(UserError, match="another Arbiter listens in"):
            async with open_sockets(folder):
                pass
        assert [each.name for each in folder.iterdir()] == [path.name]


def a_file(folder: Path) -> Any:
    folder.mkdir(mode=0o770)
    (folder / NAMES["control"]).write_text("kept")


def a_link(folder: Path) -> Any:
    folder.mkdir(mode=0o770)
    (folder / NAMES["control"]).symlink_to("/dev/null")


def a_datagram_socket(folder: Path) -> Any:
    folder.mkdir(mode=0o770)
    other = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    other.bind(str(folder / NAMES["control"]))
    return other


def an_open_folder(folder: Path) -> None:
    folder.mkdir()
    folder.chmod(0o755)


REFUSED: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    # what is there, what is said, and the way out
    "a file in a socket's place": (a_file, "is there and is no socket", "move it away"),
    "a link in a socket's place": (a_link, "is there and is no socket", "move it away"),
    "a socket of another kind": (a_datagram_socket, "protocol wrong type for socket", "--socket-dir"),
    "a file in the folder's place": (
        lambda folder: folder.write_text(""),
        "cannot be used for sockets: not a directory",
        "sudo install -d -m 0770",
    ),
    "a folder that is open to others": (
        an_open_folder,
        "is open to other users (mode 0755)",
        "chmod 0770",
    ),
}


@pytest.mark.parametrize(("prepare", "told", "way"), REFUSED.values(), ids=REFUSED)
async def test_what_is_in_the_way_is_left_alone_and_told(
    folder: Path, prepare: Callable[[Path], Any], told: str, way: str
) -> None:
    kept = prepare(folder)
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(UserError) as refused:
        async with open_sockets(folder):
            pass
    assert told in refused.value.message
    assert way in refused.value.hint
    assert sorted(folder.parent.rglob("*")) == before
    if isinstance(kept, socket.socket):
        kept.close()


async def test_a_folder_that_cannot_be_made_is_told_with_what_to_run(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        async with open_sockets(tmp_path / "not" / "there"):
            pass
    assert "cannot be used for sockets: no such file or directory" in refused.value.message
    assert f"sudo install -d -m 0770 -o $(id -un) -g consilium {tmp_path}/not/there" in refused.value.hint


async def test_a_path_that_is_too_long_is_told_before_anything_is_made(tmp_path: Path) -> None:
    folder = tmp_path / ("x" * PATH_BYTES)
    with pytest.raises(UserError, match="too long for a socket's path: at most 107 bytes"):
        async with open_sockets(folder):
            pass


async def test_sockets_that_somebody_removed_are_no_trouble_at_the_end(folder: Path) -> None:
    async with open_sockets(folder):
        for path in folder.iterdir():
            path.unlink()
    with anyio.fail_after(20):
        async with open_sockets(folder):
            pass


def test_a_group_without_a_name_is_told_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    assert sockets._group_name(424242) == "424242"
