"""Tries, in a client's place, what a client must not be able to do, and says what came of it (§14.2).

Run as ``python -I -S probe.py`` by the same launcher as any client, with the targets as one JSON object on
standard input; prints one JSON object: attempt -> [outcome, detail]. The standard library alone.

Every attempt is the real thing, as far as it does no harm where it succeeds: a signal is number 0, a rule for
packets goes into a table of its own and out again. What succeeded was allowed; what the system refused, for
want of a right or of a way, was denied; anything else is unclear.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import resource
import socket
import struct
import sys
import uuid
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SECONDS = 4.0
"""How long one packet's fate is waited for."""

REFUSED = frozenset(
    {
        *(errno.EACCES, errno.EPERM, errno.EROFS),
        *(errno.EHOSTUNREACH, errno.ENETUNREACH, errno.EADDRNOTAVAIL),
        *(errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT),
    }
)
"""Answers by which the system says no. A port that refuses a connection was reached."""

MAX_PROCESSES = 200
"""A limit above this is none."""

PTRACE_SEIZE, PTRACE_DETACH = 0x4206, 17
PIDFD_GETFD, IO_URING_SETUP = 438, 425
NETFILTER, MULTIPATH = 12, 262
IPC_PRIVATE, IPC_RMID = 0, 0
MOST_LIKELY = 1000
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000

_libc = ctypes.CDLL(None, use_errno=True)


class Probe:
    """The attempts, a method each; ``targets`` is what to try them on."""

    def __init__(self, targets: dict[str, Any]) -> None:
        self.targets = targets
        self.wrapper = int(targets["wrapper"])
        self.results: dict[str, tuple[str, str]] = {}

    def run(self) -> dict[str, tuple[str, str]]:
        """Try everything that there is a target for."""
        self._inherited()
        self._files()
        self._wrapper()
        self._rights()
        self._network()
        return self.results

    def _try(self, name: str, attempt: Callable[[], object], *, apart: bool = False) -> None:
        self.results[name] = _in_child(attempt) if apart else _outcome(attempt)

    def _inherited(self) -> None:
        self._try("descriptors", self._descriptors)
        self._try("environment", self._environment)
        self._try("capabilities", _capabilities)
        self._try("processes_without_end", _limit)
        self._try("memory", _score)
        self._try("lasting_memory", _keep_memory)

    def _descriptors(self) -> str:
        # Those by which the folder was read are closed by now.
        found = [number for number in map(int, _names("/proc/self/fd")) if number > 2 and _is_open(number)]
        return _something([str(number) for number in found])

    def _environment(self) -> str:
        # As it was given: the interpreter adds to its own.
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
        names = [variable.partition(b"=")[0].decode(errors="replace") for variable in given if variable]
        return _something([name for name in names if name not in self.targets["variables"]])

    def _files(self) -> None:
        targets = self.targets
        if key := targets.get("key"):
            self._try("key", lambda: _read(Path(key)))
            self._try("certs", lambda: _names(Path(key).parent))
        if state := targets.get("state"):
            self._try("state", lambda: _names(state))
        self._try("home", lambda: _write_in(targets["home"]))
        self._try("rootfs", lambda: _first(_write_in, targets["image"]))
        if mounts := targets.get("mounts"):
            self._try("mounts", lambda: _first(_use, mounts))

    def _wrapper(self) -> None:
        process = Path("/proc") / str(self.wrapper)
        for name in ("environ", "maps", "cmdline"):
            self._try(f"proc_{name}", partial(_read, process / name))
        self._try("proc_task", lambda: _read(process / "task" / str(self.wrapper) / "environ"))
        self._try("proc_mem", lambda: _open(process / "mem"))
        self._try("proc_fd", lambda: _names(process / "fd"))
        self._try("proc_root", lambda: _names(process / "root"))
        self._try("processes", lambda: _names("/proc"))
        self._try("ptrace", self._trace, apart=True)
        self._try("vm_read", self._read_memory)
        self._try("fd_steal", self._steal)
        self._try("signal", lambda: os.kill(self.wrapper, 0))

    def _trace(self) -> None:
        _called(_libc.ptrace(PTRACE_SEIZE, self.wrapper, None, None))

    def _read_memory(self) -> None:
        buffer = ctypes.create_string_buffer(8)
        here = struct.pack("QQ", ctypes.addressof(buffer), 8)
        there = struct.pack(
            "QQ", 4096, 8
        )  # nothing is there: whoever may look is told that the address is bad
        try:
            _called(_libc.process_vm_readv(self.wrapper, here, 1, there, 1, 0))
        except OSError as error:
            if error.errno != errno.EFAULT:
                raise

    def _steal(self) -> None:
        descriptor = os.pidfd_open(self.wrapper)
        _called(_libc.syscall(PIDFD_GETFD, descriptor, 0, 0))

    def _rights(self) -> None:
        wrapper, group = self.targets["wrapper_user"]
        self._try("setuid_root", lambda: os.setresuid(0, 0, 0), apart=True)
        self._try("setuid_wrapper", lambda: os.setresuid(wrapper, wrapper, wrapper), apart=True)
        self._try("setgid_wrapper", lambda: os.setresgid(group, group, group), apart=True)
        self._try("unshare_user", lambda: _called(_libc.unshare(CLONE_NEWUSER)), apart=True)
        self._try("unshare_net", lambda: _called(_libc.unshare(CLONE_NEWNET)), apart=True)
        self._try("nft", _add_table, apart=True)
        self._try(
            "raw_socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP).close()
        )
        self._try("packet_socket", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW).close())
        self._try("vsock", lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close())
        self._try(
            "netfilter_socket", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER).close()
        )
        self._try("io_uring", _set_up_a_ring, apart=True)

    def _network(self) -> None:
        for name in (
            "control", "data", "admin", "arbiter_by_port",
            "loopback", "loopback_by_port", "loopback6", "direct", "direct_by_port", "reach",
        ):  # fmt: skip
            if (target := self.targets.get(name)) is not None:
                self._try(name, partial(_connect, *target))
        if control := self.targets.get("control"):
            self._try("multipath", lambda: _connect(control[0], control[1], MULTIPATH))
        self._try("listen", _listen)
        self._try("abstract_socket", lambda: _connect_unix("\0" + self.targets["abstract_socket"]))
        self._try("path_socket", lambda: _connect_unix(self.targets["path_socket"]))
        if resolver := self.targets.get("resolver"):
            self._try("dns", lambda: _ask(resolver))
        self._try("udp_loopback", lambda: _send("127.0.0.1", 9))
        if reach := self.targets.get("reach"):
            self._try("udp", lambda: _send(reach[0], 9))
            self._try("icmp", lambda: _ping(reach[0]))
        if proxy := self.targets.get("proxy"):
            self._try("egress_refused", lambda: _through(proxy, "refused.invalid"))
            if host := self.targets.get("host"):
                self._try("egress_allowed", lambda: _through(proxy, host))


def _outcome(attempt: Callable[[], object]) -> tuple[str, str]:
    try:
        said = attempt()
    except ConnectionRefusedError:
        return "allowed", "the other end answered"
    except OSError as error:
        outcome = "denied" if error.errno in REFUSED else "unclear"
        return outcome, errno.errorcode.get(error.errno or 0, str(error))
    return "allowed", said if isinstance(said, str) else ""


def _in_child(attempt: Callable[[], object]) -> tuple[str, str]:
    """Try what changes the process that tries it."""
    reading, writing = os.pipe()
    try:
        child = os.fork()
    except OSError as error:  # the user's processes are at their limit: nothing is proven
        os.close(reading)
        os.close(writing)
        return "unclear", errno.errorcode.get(error.errno or 0, str(error))
    if child == 0:
        os.write(writing, json.dumps(_outcome(attempt)).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as said:
        text = said.read()
    os.waitpid(child, 0)
    outcome, detail = json.loads(text) if text else ("unclear", "the attempt ended without a word")
    return outcome, detail


def _called(result: int) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _names(folder: str | Path) -> list[str]:
    return [entry.name for entry in Path(folder).iterdir()]


def _open(path: Path) -> None:
    with path.open("rb"):
        pass


def _read(path: Path) -> None:
    with path.open("rb") as file:
        file.read(1)


def _is_open(descriptor: int) -> bool:
    try:
        os.fstat(descriptor)
    except OSError:
        return False
    return True


def _something(found: list[str]) -> str:
    """Nothing found is what being refused looks like here."""
    if not found:
        raise PermissionError(errno.EACCES, "none")
    return ", ".join(sorted(found))[:200]


def _set_up_a_ring() -> None:
    parameters = ctypes.create_string_buffer(120)
    os.close(_called(_libc.syscall(IO_URING_SETUP, 1, parameters)))


def _capabilities() -> str:
    lines = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text("ascii").splitlines())
    held = [name for name in ("CapInh", "CapPrm", "CapEff", "CapAmb") if int(lines[name], 16)]
    return _something(held + ([] if lines["NoNewPrivs"].strip() == "1" else ["new privileges"]))


def _limit() -> str:
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    limits = [limit for limit in (soft, hard) if limit == resource.RLIM_INFINITY or limit > MAX_PROCESSES]
    return _something([f"limit {limit}" for limit in limits])


def _score() -> str:
    score = int(Path("/proc/self/oom_score_adj").read_text("ascii"))
    return _something([] if score == MOST_LIKELY else [f"score {score}"])


def _keep_memory() -> None:
    segment = _called(_libc.shmget(IPC_PRIVATE, 4096, 0o600))
    _called(_libc.shmctl(segment, IPC_RMID, None))


def _first(attempt: Callable[[str], object], paths: list[str]) -> str:
    """The first of ``paths`` on which the attempt succeeds; if none, the last refusal."""
    refusal: OSError = FileNotFoundError(errno.ENOENT, "none of them is there")
    for path in paths:
        try:
            attempt(path)
        except OSError as error:
            refusal = error
        else:
            return path
    raise refusal


def _write_in(folder: str) -> None:
    path = Path(folder) / f".probe-{uuid.uuid4().hex}"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    path.unlink()


def _use(path: str) -> None:
    try:
        _names(path)
    except NotADirectoryError:
        _open(Path(path))
    except OSError:
        _write_in(path)


def _connect(address: str, port: int, protocol: int = 0) -> None:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM, protocol) as connection:
        connection.settimeout(SECONDS)
        connection.connect((address, port))


def _connect_unix(path: str) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(SECONDS)
        connection.connect(path)


def _listen() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(1)


def _send(address: str, port: int, data: bytes = b"?") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        sender.sendto(data, (address, port))


def _ask(resolver: str) -> None:
    question = struct.pack("!6H", 1, 0x0100, 1, 0, 0, 0) + b"\7example\7invalid\0" + struct.pack("!2H", 1, 1)
    _send(resolver, 53, question)


def _ping(address: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP) as sender:
        sender.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1), (address, 0))


def _through(proxy: tuple[str, int], host: str) -> str:
    """Ask the proxy for a connection. It says yes with 200, or with 502 and the like when it tried."""
    with socket.create_connection((proxy[0], proxy[1]), SECONDS) as connection:
        connection.sendall(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n".encode())
        connection.settimeout(4 * SECONDS)
        answer = connection.recv(64).decode("ascii", "replace").split("\r\n")[0]
    code = answer.split()[1] if len(answer.split()) > 1 else ""
    if code in ("403", "405"):
        raise PermissionError(errno.EACCES, answer)
    if code != "200" and not code.startswith("5"):
        raise OSError(errno.EPROTO, f"the proxy answered {answer!r}")
    return answer


# --- netlink: a table of our own into the packet filter, and out again ------------------------------------

_NEW_TABLE, _DELETE_TABLE, _BATCH_BEGIN, _BATCH_END = 0x0A00, 0x0A02, 0x10, 0x11
_REQUEST, _ACKNOWLEDGE, _CREATE = 0x1, 0x4, 0x400
_INET = 1


def _add_table() -> None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETFILTER) as netfilter:
        netfilter.settimeout(SECONDS)
        for kind, flags in ((_NEW_TABLE, _CREATE), (_DELETE_TABLE, 0)):
            netfilter.send(b"".join(_batch(kind, flags)))
            _hear(netfilter.recv(4096))


def _batch(kind: int, flags: int) -> Iterator[bytes]:
    name = b"consilium_probe\0"
    attribute = struct.pack("=HH", 4 + len(name), 1) + name
    yield _message(_BATCH_BEGIN, _REQUEST, struct.pack("!BBH", 0, 0, 10))
    yield _message(kind, _REQUEST | _ACKNOWLEDGE | flags, struct.pack("!BBH", _INET, 0, 0) + attribute)
    yield _message(_BATCH_END, _REQUEST, struct.pack("!BBH", 0, 0, 10))


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, 1, 0) + body


def _hear(answer: bytes) -> None:
    (code,) = struct.unpack_from("=i", answer, 16)
    if code:
        raise OSError(-code, os.strerror(-code))


if __name__ == "__main__":
    sys.stdout.write(json.dumps(Probe(json.load(sys.stdin)).run()))
