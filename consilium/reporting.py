"""The task that reports on a process's health, beside the loop that owns everything."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from consilium.health import EVERY

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from consilium.health import Report

log = logging.getLogger("consilium.health")


async def report_health(path: Path, report: Callable[[], Report]) -> None:
    """Write what ``report`` says to ``path``, every `EVERY` seconds, until cancelled.

    On the same event loop as the rest: a loop that hangs reports nothing, and is found out by that. A place
    that takes no report is said once, and changes nothing else.
    """
    failed = False
    while True:
        try:
            report().write(path)
            failed = False
        except OSError as error:
            if not failed:
                log.warning("health cannot be reported to %s: %s", path, error.strerror)
            failed = True
        await anyio.sleep(EVERY)
