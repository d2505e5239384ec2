"""The command lines that change users: to the wrapper's once and for good, to the client's at each start.

The wrapper keeps two capabilities, SETUID and SETGID, and its client none. The client's bounding set still
names the two: taking them out of it needs a third capability, which the wrapper had better not have, and
without new privileges no program can take anything from that set.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self

MAX_PROCESSES = 60
"""Processes and threads of a seat's client at once. The limit is the user's: what left the session counts."""

PORT = 8888
"""Where everything listens that a client may connect to: the egress proxy, the embedded model."""

BRIDGE = "bridge"
"""The first word on standard error of a bridge that could not start its client."""

_KEPT = "-all,+setuid,+setgid"


CLIENT_USER = "CONSILIUM_CLIENT_USER"
"""The variable that names the client's user: another for each seat of a host, since the kernel counts the
processes of a user over all containers."""

MAX_ID = 2**32 - 2


@dataclass(frozen=True, slots=True)
class User:
    """A user id and the group id that goes with it."""

    uid: int
    gid: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ``UID:GID``, decimal. Raises `ValueError` for anything else, and for root."""
        uid, colon, gid = text.partition(":")
        if not (colon and all(part.isascii() and part.isdigit() for part in (uid, gid))):
            raise ValueError(f"{text} is not UID:GID, such as 10002:10002")
        user = cls(int(uid), int(gid))
        if not (0 < user.uid <= MAX_ID and 0 < user.gid <= MAX_ID):
            raise ValueError(f"a client cannot run as user {text}")
        return user


IMAGE_WRAPPER, IMAGE_CLIENT = User(10001, 10001), User(10002, 10002)
"""Whom the seat images run the wrapper and its client as, where `CLIENT_USER` does not say otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """What the launcher leaves to a client: files below ``read`` and ``write``, TCP to ``ports``.

    Paths are absolute; one that does not exist is left out. ``cwd`` is where the client starts. Without
    ``fenced``, that is all that is done: a kernel without Landlock, and a relaxed seat.
    """

    fenced: bool
    cwd: str
    read: tuple[str, ...]
    write: tuple[str, ...]
    ports: tuple[int, ...] = (PORT,)

    def encoded(self) -> str:
        """The form in which `wrapper.isolation.launcher` takes it."""
        return json.dumps(asdict(self), separators=(",", ":"))


def wrapper_for_good(user: User, *, setpriv: str) -> tuple[str, ...]:
    """Become the wrapper's user, with what it needs to start clients as another, and no way back."""
    return (
        setpriv, "--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups",
        f"--inh-caps={_KEPT}", f"--ambient-caps={_KEPT}", f"--bounding-set={_KEPT}", "--no-new-privs", "--",
    )  # fmt: skip


def same_user(*, setpriv: str) -> tuple[str, ...]:
    """Start a client as whoever we are, without the capabilities that we may hold."""
    return (
        setpriv, "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--pdeathsig", "KILL", "--",
    )  # fmt: skip


def other_user(user: User, *, prlimit: str, setpriv: str) -> tuple[str, ...]:
    """Start a client as ``user``, without capabilities, with a bounded number of processes.

    `setpriv` comes first: of these two, only it can be refused, and it is called by a name that no client
    knows (`wrapper.sandbox`).
    """
    return (*_become(user, setpriv=setpriv), prlimit, f"--nproc={MAX_PROCESSES}:{MAX_PROCESSES}", "--")


EVERYTHING = -1


def kill(user: User, signal: int, target: int, *, setpriv: str, shell: str) -> tuple[str, ...]:
    """Send ``signal`` as ``user``, who alone may, to minus a process group, or to `EVERYTHING` of theirs.

    `kill -1` spares whoever says it, and hits what left the session and the environment behind as well.
    """
    return (*_become(user, setpriv=setpriv), shell, "-c", f"kill -{int(signal)} {int(target)}")


def behind(reach: Reach, *, python: str, launcher: str, name: str) -> tuple[str, ...]:
    """Run what follows behind the launcher's fences, with ``reach``; it complains by that ``name``."""
    return (python, "-I", "-S", launcher, name, reach.encoded(), "--")


def _become(user: User, *, setpriv: str) -> tuple[str, ...]:
    return (
        setpriv, "--reuid", str(user.uid), "--regid", str(user.gid), "--clear-groups",
        "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs", "--pdeathsig", "KILL", "--",
    )  # fmt: skip


READ_ONLY = (
    "/usr", "/bin", "/sbin", "/lib", "/lib64", "/opt",
    "/etc/alternatives", "/etc/ca-certificates", "/etc/group", "/etc/host.conf", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/passwd", "/etc/resolv.conf", "/etc/ssl", "/etc/timezone",
    "/dev/random", "/dev/urandom", "/dev/zero",
    "/proc/self", "/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat",
    "/proc/uptime", "/proc/version",
)  # fmt: skip
"""What a client reads and runs: programs, libraries, trust anchors; of the processes, itself alone."""

WRITABLE = ("/tmp", "/dev/full", "/dev/null")  # noqa: S108 - a client's, and never ours
"""What a client writes beside its own folder. The wrapper keeps and reads nothing there."""


CONTROLLING = "/dev/tty"
"""Whatever terminal the process that opens it was given."""


def reach_of(
    *, home: str, cwd: str, fenced: bool, ours: tuple[str, ...] = (), terminal: str | None = None
) -> Reach:
    """What a client with the folder ``home`` reaches when it works in ``cwd``.

    ``ours`` is where the programs are that we run in its place; ``terminal`` is the one that it was given, by
    its name: no other.

    A ``cwd`` below ``home`` is not listed for itself: the client could put a link there, and the next start
    would open whatever it leads to.
    """
    project = () if f"{cwd}/".startswith(f"{home}/") else (cwd,)
    own_terminal = () if terminal is None else (CONTROLLING, terminal)
    write = (home, *project, *WRITABLE, *own_terminal)
    return Reach(fenced=fenced, cwd=cwd, read=(*READ_ONLY, *ours), write=write)
