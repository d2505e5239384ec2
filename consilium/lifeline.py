"""The lifeline of a child process: standard input, whose other end only the parent holds.

A parent that ends in any way, `kill -9` included, closes it; so no council process outlives the command
that started it.
"""

from __future__ import annotations

import os

import anyio
import anyio.lowlevel

STDIN = 0


async def until_orphaned(fd: int = STDIN) -> None:
    """Return when ``fd`` reaches its end. What can be read from it before that means nothing.

    A file or the null device ends at once: whoever wants to live gives a pipe, and keeps the other end.
    """
    while await _more(fd):
        pass


async def _more(fd: int) -> bool:
    try:
        await anyio.wait_readable(fd)
    except PermissionError:
        # Nothing to wait for: a plain file, which is always readable. Reading it does not block.
        await anyio.lowlevel.checkpoint()
    try:
        return bool(os.read(fd, 4096))
    except OSError:  # the terminal it was is gone
        return False
