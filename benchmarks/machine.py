"""What the machine says: its load, its disks, and what a process has used of it. Linux only."""

from __future__ import annotations

import os
import platform
import resource
import ssl
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_FILESYSTEMS = frozenset({"tmpfs", "ramfs"})
"""Where a sync does nothing, so that no figure about syncs may be taken there."""


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0))


@contextmanager
def one_core() -> Iterator[None]:
    """Keep this process, and those that it starts meanwhile, to one processor.

    Two processes that wait for one another are put on one processor by the scheduler, or on two, now this way
    and now that; and what they take differs by a third between the two. Here it is always one.
    """
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def load() -> float:
    """Tasks that ran or waited for a processor or a disk, averaged over the last minute."""
    return os.getloadavg()[0]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process, its ended threads included, in seconds to the nanosecond.

    This is the kernel's clock for another process (clock_getcpuclockid(3)), not the 10 ms ticks of times(2).
    """
    return time.clock_gettime((~pid << 3) | 2)


def rss_kib(pid: int) -> int:
    """Resident memory of a process, counted page by page."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1])
    raise RuntimeError(f"the kernel does not say how much memory process {pid} has")


def descriptors(pid: int) -> int:
    """How many files, sockets included, a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def filesystem(folder: Path) -> str:
    """The type of the file system that ``folder`` is on."""
    return filesystem_of(folder.resolve(), Path("/proc/self/mountinfo").read_text("utf-8"))


def filesystem_of(folder: Path, mountinfo: str) -> str:
    """The same, with the kernel's table as an argument: the deepest mount point above wins, then the last."""
    found, depth = "unknown", -1
    for line in mountinfo.splitlines():
        mount, _, rest = line.partition(" - ")
        point = Path(mount.split(" ")[4].replace("\\040", " "))
        if folder.is_relative_to(point) and len(point.parts) >= depth:
            found, depth = rest.split(" ")[0], len(point.parts)
    return found


def raise_descriptor_limit() -> int:
    """Allow this process and its children as many open files as the system lets them have; say how many."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def described(folder: Path) -> dict[str, object]:
    """What a reader of the figures has to know of where they were taken."""
    return {
        "cores": cores(),
        "load": round(load(), 2),
        "python": platform.python_version(),
        "openssl": ssl.OPENSSL_VERSION,
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "filesystem": filesystem(folder),
    }
