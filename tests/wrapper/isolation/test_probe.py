"""`wrapper.isolation.probe`: what counts as refused, and what it says where nothing holds it back."""

from __future__ import annotations

import errno
import os
import socket
import struct
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from wrapper.isolation import probe
from wrapper.isolation.attempts import ATTEMPTS

if TYPE_CHECKING:
    from collections.abc import Iterator


def raising(error: BaseException) -> Any:
    def attempt() -> None:
        raise error

    return attempt


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        (errno.EACCES, "denied"),
        (errno.EPERM, "denied"),
        (errno.EROFS, "denied"),
        (errno.EHOSTUNREACH, "denied"),
        (errno.EAFNOSUPPORT, "denied"),
        (errno.ECONNREFUSED, "allowed"),
        (errno.ETIMEDOUT, "unclear"),
        (errno.ENOENT, "unclear"),
        (errno.EMFILE, "unclear"),
    ],
)
def test_only_a_refusal_counts_as_denied(code: int, outcome: str) -> None:
    said, _detail = probe._outcome(raising(OSError(code, os.strerror(code))))
    assert said == outcome


def test_a_time_that_is_over_is_unclear_and_success_is_allowed() -> None:
    assert probe._outcome(raising(TimeoutError("timed out")))[0] == "unclear"
    assert probe._outcome(lambda: "a word") == ("allowed", "a word")
    assert probe._outcome(lambda: [1]) == ("allowed", "")


def test_what_changes_a_process_changes_another_one() -> None:
    here = os.getpid()
    assert probe._in_child(lambda: str(os.getpid() != here)) == ("allowed", "True")
    assert probe._in_child(raising(PermissionError(errno.EPERM, "no"))) == ("denied", "EPERM")
    assert probe._in_child(lambda: os._exit(3)) == ("unclear", "the attempt ended without a word")


def test_where_no_process_can_be_started_nothing_is_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    open_before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - names, not paths
    monkeypatch.setattr(os, "fork", raising(BlockingIOError(errno.EAGAIN, "no more")))
    assert probe._in_child(lambda: "") == ("unclear", "EAGAIN")
    assert len(os.listdir("/proc/self/fd")) == open_before  # noqa: PTH208 - as above


def test_the_first_path_that_gives_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert probe._first(probe._use, [str(tmp_path / "none"), str(tmp_path / "file")]) == str(
        tmp_path / "file"
    )
    assert probe._first(probe._use, [str(tmp_path)]) == str(tmp_path)
    with pytest.raises(FileNotFoundError):
        probe._first(probe._use, [str(tmp_path / "none")])
    with pytest.raises(FileNotFoundError, match="none of them"):
        probe._first(probe._use, [])


@contextmanager
def proxy(answer: bytes) -> Iterator[tuple[str, int]]:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            connection = listener.accept()[0]
            with connection:
                assert connection.recv(4096).startswith(b"CONNECT host.example:443 HTTP/1.1\r\n")
                connection.sendall(answer)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listener.getsockname()
        thread.join(10)


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "allowed"),
        (b"HTTP/1.1 502 Bad Gateway\r\n\r\n", "allowed"),
        (b"HTTP/1.1 403 Forbidden\r\n\r\n", "denied"),
        (b"HTTP/1.1 405 No\r\n\r\n", "denied"),
        (b"HTTP/1.1 407 Password\r\n\r\n", "unclear"),
        (b"", "unclear"),
    ],
)
def test_what_the_proxy_says_decides(answer: bytes, outcome: str) -> None:
    with proxy(answer) as address:
        assert probe._outcome(lambda: probe._through(address, "host.example"))[0] == outcome


def test_the_kernels_answer_to_a_rule_is_heard() -> None:
    probe._hear(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, 0))
    with pytest.raises(PermissionError):
        probe._hear(struct.pack("=IHHIIi", 20, 2, 0, 1, 0, -errno.EPERM))
    assert [len(part) % 4 for part in probe._batch(probe._NEW_TABLE, probe._CREATE)] == [0, 0, 0]


def test_where_nothing_holds_it_back_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On this machine, as whoever runs the tests; what would change the process is left out."""
    monkeypatch.setattr(probe, "_in_child", lambda _attempt: ("denied", "left out"))
    (tmp_path / "certs").mkdir()
    (tmp_path / "certs" / "key.pem").write_text("key")
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind(b"\0consilium-test-%d" % os.getpid())
        abstract.listen(1)
        unix.bind(str(tmp_path / "s"))
        unix.listen(1)
        door = tcp.getsockname()
        targets = {
            "wrapper": os.getpid(),
            "wrapper_user": (os.getuid(), os.getgid()),
            "variables": ["PATH"],
            "home": str(tmp_path),
            "image": ["/nowhere", str(tmp_path)],
            "mounts": [str(tmp_path)],
            "key": str(tmp_path / "certs" / "key.pem"),
            "state": str(tmp_path),
            "control": door,
            "loopback": door,
            "reach": door,
            "proxy": ("127.0.0.1", 1),
            "host": "host.example",
            "resolver": "127.0.0.1",
            "abstract_socket": f"consilium-test-{os.getpid()}",
            "path_socket": str(tmp_path / "s"),
        }
        results = probe.Probe(targets).run()
    assert set(results) <= {row.name for row in ATTEMPTS}
    expected = {
        *("key", "certs", "state", "home", "rootfs", "mounts", "proc_environ", "proc_task", "proc_maps"),
        *("proc_fd", "proc_root", "proc_cmdline", "processes", "vm_read", "signal", "environment"),
        *("control", "loopback", "reach", "listen", "abstract_socket", "path_socket"),
        *("udp", "udp_loopback", "dns"),
    }
    allowed = {name for name, (outcome, _) in results.items() if outcome == "allowed"}
    assert expected - allowed == set()
    assert {"data", "admin", "direct"} & set(results) == set()  # there was nothing to try them on
