"""The one place in which a seat's client is started, and in which it ends (§14.2).

1. No other module of the wrapper starts a process.
2. Nothing is inherited: the environment is given whole, there is no terminal, no descriptor but the three
   standard ones, and a session of its own.
3. Whatever ends a run - an answer, a deadline, a cancellation - no process of it is left. If we are killed
   ourselves, the kernel kills the client (`setpriv --pdeathsig`, since Python code between fork and exec is
   not safe in a process with threads).

A run is blocking code in a thread of its own: the thread that starts the client has to outlive it, or the
kernel would take that thread's end for ours.

What left both the session and the environment behind, and what a killed wrapper's client had started, is the
container's to end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.exchange import Bounds, Exchange
from wrapper.remains import RUN_VARIABLE, alive, send_signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

__all__ = ["Bounds", "Command", "Completed", "run"]

GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL."""

KILL_SECONDS = 3.0
"""From SIGKILL to the confession that something cannot be ended."""

_LAUNCHER = "setpriv"
_CANNOT_RUN = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A client's invocation. ``env`` is its whole environment; ``stdin`` is written and then closed.

    ``argv[0]`` is looked up in the ``PATH`` of ``env``. A prompt belongs into ``stdin``: other users of the
    machine can read ``argv``, and it is short.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    stdin: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        """Refuse to hand a client anything of ours (§3.3.A)."""
        if ours := [name for name in self.env if name.startswith("CONSILIUM_")]:
            raise ValueError(f"a client gets no variable of ours: {', '.join(sorted(ours))}")


@dataclass(frozen=True, slots=True)
class Completed:
    """How a run ended.

    ``stopped`` is why we ended it, or None if the client did. ``returncode`` is negative for a signal.
    ``stderr`` is cut in the middle. ``left_behind`` lists the processes that could not be ended: there are
    none, unless the kernel or another user holds them. ``first_byte`` is when standard output began, after as
    many seconds.
    """

    returncode: int | None
    stdout: bytes
    stderr: bytes
    stopped: Fault | None
    left_behind: tuple[int, ...]
    seconds: float
    first_byte: float | None = None


async def run(command: Command, bounds: Bounds) -> Completed:
    """Run ``command`` to its end and leave nothing of it.

    Raises `AdapterFault` (START_FAILED, prompt not sent) if it cannot be started. A cancellation ends the
    client first, which takes at most `GRACE_SECONDS` + `KILL_SECONDS`.
    """
    with _alarm() as alarm:
        async with anyio.create_task_group() as group:
            bell = await group.start(_ring_when_cancelled, alarm)
            outcome = await anyio.to_thread.run_sync(
                _perform, command, bounds, alarm, limiter=anyio.CapacityLimiter(1)
            )
            bell.cancel()
    # The thread was waited for whatever happened; who was cancelled meanwhile gets no answer.
    await anyio.lowlevel.checkpoint_if_cancelled()
    if isinstance(outcome, AdapterFault):
        raise outcome
    return outcome


@contextmanager
def _alarm() -> Iterator[int]:
    descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


async def _ring_when_cancelled(alarm: int, *, task_status: anyio.abc.TaskStatus[anyio.CancelScope]) -> None:
    with anyio.CancelScope() as scope:
        task_status.started(scope)
        try:
            await anyio.sleep_forever()
        finally:
            os.eventfd_write(alarm, 1)


def _perform(command: Command, bounds: Bounds, alarm: int) -> Completed | AdapterFault:
    """Start, exchange, end. Refusals to start are returned: a task group would wrap what is raised."""
    began = time.monotonic()
    mark = secrets.token_hex(16)
    try:
        process = _start(command, mark)
    except AdapterFault as fault:
        return fault
    exchange = Exchange(process, command.stdin, bounds, alarm)
    try:
        exchange.run()
    finally:
        left_behind = _end(process, mark)
        exchange.close()
    errors = exchange.stderr.value()
    if process.returncode in _CANNOT_RUN and errors.startswith(b"%s: " % _LAUNCHER.encode()):
        reason = errors.decode("utf-8", "replace").strip().removeprefix(f"{_LAUNCHER}: ")
        return _not_started(f"{command.argv[0]} cannot be run: {reason}")
    output = bytes(exchange.stdout[: bounds.output_bytes])
    seconds = time.monotonic() - began
    return Completed(
        process.returncode, output, errors, exchange.stopped, left_behind, seconds, exchange.first_byte
    )


def _start(command: Command, mark: str) -> subprocess.Popen[bytes]:
    name, *rest = command.argv
    client = shutil.which(name, path=command.env.get("PATH", os.defpath))
    launcher = shutil.which(_LAUNCHER)
    if client is None:
        raise _not_started(f"{name} is not installed, or not on the PATH that the client gets")
    if launcher is None:
        raise _not_started(
            f"{_LAUNCHER} (package util-linux) is not installed, and no client runs without it"
        )
    # Without new privileges there is no set-user-ID program to shake off the signal of our death.
    launch = (launcher, "--pdeathsig", "KILL", "--no-new-privs", "--")
    try:
        return subprocess.Popen(  # noqa: S603 - no shell; what runs is the preset's choice
            [*launch, client, *rest],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**command.env, RUN_VARIABLE: mark},
            cwd=command.cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        # A missing folder, too long an argument list, a NUL in an argument: named as what they are.
        raise _not_started(f"{name} cannot be started: {error}") from error


def _not_started(why: str) -> AdapterFault:
    return AdapterFault(Fault.START_FAILED, PromptSent.NO, why)


def _end(process: subprocess.Popen[bytes], mark: str) -> tuple[int, ...]:
    """End every process of the run; return those that would not.

    The client itself is collected last: until then its id cannot become another session's.
    """
    left = alive(process.pid, mark)
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + seconds
        pause = 0.001
        send_signal(left, number)
        while left and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
            left = alive(process.pid, mark)
            if number is signal.SIGKILL:
                send_signal(left, number)  # and what it started meanwhile
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0 if process.pid in left else KILL_SECONDS)
    return left
