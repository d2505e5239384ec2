"""What the machine says of itself: disks, processor time, memory."""

from __future__ import annotations

import mmap
import os
import time
from pathlib import Path

import pytest

from benchmarks import machine

MOUNTS = """\
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/root rw
30 22 0:25 / /tmp rw,nosuid - tmpfs tmpfs rw
31 22 0:26 / /mnt/my\\040disk rw - xfs /dev/other rw
32 22 0:27 / /tmp rw - overlay overlay rw
"""


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/project", "ext4"),
        ("/tmpfiles", "ext4"),
        ("/mnt/my disk/project", "xfs"),
        ("/tmp/deep/below", "overlay"),
    ],
)
def test_a_folder_is_on_the_deepest_mount_above_it_and_of_two_on_the_last(folder: str, kind: str) -> None:
    assert machine.filesystem_of(Path(folder), MOUNTS) == kind


def test_a_table_that_does_not_name_the_folder_leaves_it_unknown() -> None:
    assert machine.filesystem_of(Path("/tmp"), "") == "unknown"


def test_the_memory_file_systems_of_this_machine_are_told_from_its_disks() -> None:
    assert machine.filesystem(Path("/proc")) == "proc"
    assert machine.filesystem(Path("/dev/shm")) in machine.MEMORY_FILESYSTEMS


def test_the_processor_time_of_a_process_is_the_one_that_it_sees_itself() -> None:
    before = time.process_time()
    seen = machine.cpu_seconds(os.getpid())
    assert before <= seen <= time.process_time()


def test_memory_that_is_filled_shows() -> None:
    before = machine.rss_kib(os.getpid())
    # Of the system's own, not of what this process has freed before.
    with mmap.mmap(-1, 32 * 1024 * 1024) as filled:
        filled.write(b"x" * len(filled))
        assert machine.rss_kib(os.getpid()) - before == pytest.approx(len(filled) / 1024, rel=0.1)


def test_an_open_file_counts_until_it_is_closed(tmp_path: Path) -> None:
    before = machine.descriptors(os.getpid())
    with (tmp_path / "file").open("w"):
        assert machine.descriptors(os.getpid()) == before + 1
    assert machine.descriptors(os.getpid()) == before


def test_the_descriptor_limit_becomes_what_the_system_allows() -> None:
    allowed = machine.raise_descriptor_limit()
    assert allowed == os.sysconf("SC_OPEN_MAX")


def test_the_place_of_a_measurement_is_described_with_its_file_system(tmp_path: Path) -> None:
    described = machine.described(tmp_path)
    assert described["filesystem"] == machine.filesystem(tmp_path)
    assert described["cores"] == machine.cores()
