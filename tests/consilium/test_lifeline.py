"""`consilium.lifeline`: a process ends with its parent, however that ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import anyio
import pytest

from consilium.lifeline import until_orphaned

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.anyio


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    """Open a pipe; close what the test left open of it."""
    ends = os.pipe()
    try:
        yield ends
    finally:
        for end in ends:
            with suppress(OSError):
                os.close(end)


async def test_it_returns_when_the_other_end_is_closed_and_not_before() -> None:
    with pipe() as (reader, writer):
        with anyio.move_on_after(0.05) as scope:
            await until_orphaned(reader)
        assert scope.cancelled_caught
        os.close(writer)
        with anyio.fail_after(5):
            await until_orphaned(reader)


async def test_what_is_written_on_the_lifeline_means_nothing() -> None:
    with pipe() as (reader, writer):
        os.write(writer, b"quit\n" * 3000)
        with anyio.move_on_after(0.05) as scope:
            await until_orphaned(reader)
        assert scope.cancelled_caught
        os.close(writer)
        with anyio.fail_after(5):
            await until_orphaned(reader)


async def test_waiting_leaves_the_loop_free() -> None:
    with pipe() as (reader, writer):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_orphaned, reader)
            for _ in range(5):
                await anyio.sleep(0.01)
            os.close(writer)


async def test_the_null_device_and_a_plain_file_end_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 10_000)
    for path in (os.devnull, tmp_path / "file"):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            with anyio.fail_after(5):
                await until_orphaned(descriptor)
        finally:
            os.close(descriptor)


@pytest.mark.parametrize("kept", [0, 1])
async def test_a_terminal_whose_other_end_is_gone_is_an_end(kept: int) -> None:
    # One end then reads nothing, the other gets an error.
    ends = os.openpty()
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(until_orphaned, ends[kept])
            await anyio.sleep(0.02)
            os.close(ends[1 - kept])
    finally:
        os.close(ends[kept])


CHILD = "import anyio; from consilium.lifeline import until_orphaned; anyio.run(until_orphaned)"
PARENT = (
    "import subprocess, sys, time;"
    f"child = subprocess.Popen([sys.executable, '-c', {CHILD!r}], stdin=subprocess.PIPE);"
    "print(child.pid, flush=True);"
    "time.sleep(600)"
)


def test_a_parent_that_is_killed_takes_its_child_along() -> None:
    # The child inherits the pipe of standard output, so that its end shows when both are gone.
    with subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        os.kill(child, 0)
        parent.send_signal(signal.SIGKILL)
        assert parent.stdout.read() == b""
        assert parent.wait() == -signal.SIGKILL
