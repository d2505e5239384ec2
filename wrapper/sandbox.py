"""The one place in which a seat's client is started, and in which it ends (§14.2).

1. No other module of the wrapper starts a process. A bridge (`wrapper.bridges`) is started here in a client's
   place, and starts that client there: within the same session and confinement, and to die with it.
2. Nothing is inherited: the environment is given whole, there is no terminal but one made for it alone, no
   descriptor but the three standard ones, and a session of its own.
3. Whatever ends a run - an answer, a deadline, a cancellation - no process of it is left. If we are killed
   ourselves, the kernel kills the client (`setpriv --pdeathsig`, since Python code between fork and exec is
   not safe in a process with threads).
4. What a client may do beyond that is its `Confinement`. Where it has a user of its own, only that user can
   signal it: it is ended by a process that runs as that user, and takes along whatever left the session. Not
   even our death may signal it then (the kernel asks whether we might have): the container ends with us, and
   it with the container.
5. That a client could not be started is believed of whoever starts it: by a name that is made up for one run,
   and gone from memory and ``/proc`` once the client is there. A client cannot say it of itself.

A run is blocking code in a thread of its own: the thread that starts the client has to outlive it, or the
kernel would take that thread's end for ours.

What left both the session and the environment behind and has our own user, and what a killed wrapper's client
had started, is the container's to end.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import termios
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import anyio
import anyio.abc
import anyio.lowlevel
import anyio.to_thread

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.clean import clean_line
from wrapper.exchange import Bounds, Exchange
from wrapper.isolation import launch, launcher
from wrapper.isolation.confinement import PLAIN, Confinement
from wrapper.remains import RUN_VARIABLE, alive, alive_of, send_signal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

__all__ = [
    "Bounds",
    "Command",
    "Completed",
    "InTerminal",
    "attended",
    "run",
    "run_blocking",
    "start_in_terminal",
]

T = TypeVar("T")

GRACE_SECONDS = 2.0
"""From SIGTERM to SIGKILL."""

KILL_SECONDS = 3.0
"""From SIGKILL to the confession that something cannot be ended."""

REASON_CHARS = 300
"""What is kept of why a client cannot be run."""

_CANNOT_RUN = (126, 127)

_SHELL = "/bin/sh"

LAUNCHER = "launcher"
"""What the launcher calls itself in a terminal, where a person reads it."""

_OURS = tuple(dict.fromkeys((sys.prefix, sys.base_prefix, str(Path(__file__).parent))))
"""Where the interpreter is, and what it runs in a client's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A client's invocation. ``env`` is its whole environment; ``stdin`` is written and then closed.

    ``argv[0]`` is looked up in the ``PATH`` of ``env``. A prompt belongs into ``stdin``: other users of the
    machine can read ``argv``, and it is short. ``alone``: nothing else of the client's user shall be left
    either; a guest beside a client at work is not alone. ``bridged``: what is started is a bridge.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(repr=False)
    cwd: Path
    stdin: bytes = field(default=b"", repr=False)
    confinement: Confinement = PLAIN
    alone: bool = True
    bridged: bool = False

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
    return await attended(partial(_perform, command, bounds))


async def attended(work: Callable[[int], T | AdapterFault]) -> T:
    """What ``work`` comes to in a thread; a fault that it returns is raised.

    It is given a descriptor that becomes readable when we are cancelled: then it shall end what it does, and
    is waited for.
    """
    with _alarm() as alarm:
        async with anyio.create_task_group() as group:
            bell = await group.start(_ring_when_cancelled, alarm)
            outcome = await anyio.to_thread.run_sync(work, alarm, limiter=anyio.CapacityLimiter(1))
            bell.cancel()
    # The thread was waited for whatever happened; who was cancelled meanwhile gets no answer.
    await anyio.lowlevel.checkpoint_if_cancelled()
    if isinstance(outcome, AdapterFault):
        raise outcome
    return outcome


def run_blocking(command: Command, bounds: Bounds) -> Completed:
    """As `run`, for a thread that has nothing else to do until then; nobody can cancel it."""
    with _alarm() as alarm:
        outcome = _perform(command, bounds, alarm)
    if isinstance(outcome, AdapterFault):
        raise outcome
    return outcome


def run_attended(command: Command) -> int:
    """Run ``command`` on our own terminal, for the person who sits there; return its exit code.

    It has our standard streams and our session, so that it can ask and be interrupted; all else is as for a
    turn. Blocks. Raises `AdapterFault` if it cannot be started.
    """
    mark = secrets.token_hex(16)
    process = _start(command, mark, None, session=False)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's
    try:
        return process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        _end(process, mark, command)


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
    mark, starter = secrets.token_hex(16), secrets.token_hex(16)
    try:
        process = _start(command, mark, subprocess.PIPE, starter=starter)
    except AdapterFault as fault:
        return fault
    exchange = Exchange(process, command.stdin, bounds, alarm)
    unwatched: OSError | None = None
    try:
        exchange.run()
    except OSError as error:  # we have no descriptor left, or the kernel no memory
        unwatched = error
    finally:
        left_behind = _end(process, mark, command)
        exchange.close()
    if unwatched is not None:
        what = f"{command.argv[0]} was started and cannot be watched: {unwatched.strerror or unwatched}"
        return AdapterFault(Fault.INTERNAL, PromptSent.MAYBE, what)
    errors = exchange.stderr.value()
    if process.returncode in _CANNOT_RUN and (why := _why_not(command, errors, starter)):
        return _not_started(why)
    output = bytes(memoryview(exchange.stdout)[: bounds.output_bytes])
    seconds = time.monotonic() - began
    return Completed(
        process.returncode, output, errors, exchange.stopped, left_behind, seconds, exchange.first_byte
    )


def _why_not(command: Command, errors: bytes, starter: str) -> str | None:
    """Why the client was not started, if ``errors`` begin with what ``starter``, or a bridge, says."""
    who, _, said = errors.decode("utf-8", "replace").partition(": ")
    reason = clean_line(said, REASON_CHARS)
    if who == starter:
        return f"{command.argv[0]} cannot be run: {reason}"
    # A bridge has an exit code of its own, whatever its client does; and it names the client.
    return reason if command.bridged and who == launch.BRIDGE else None


@dataclass(frozen=True, slots=True)
class InTerminal:
    """A client that runs in a terminal of its own, of which ``screen`` is our end. For one thread.

    The thread that started it has to outlive it, as everywhere here.
    """

    screen: int
    process: subprocess.Popen[bytes]
    command: Command
    mark: str

    def end(self) -> tuple[int, ...]:
        """End every process of the run, and the terminal; return those that would not. Once only."""
        left_behind = _end(self.process, self.mark, self.command)
        os.close(self.screen)
        return left_behind


def start_in_terminal(command: Command, *, columns: int, rows: int) -> InTerminal:
    """Start ``command`` in a new terminal of that size, as its controlling one. Blocking.

    If we die, the terminal is gone, and the kernel tells the client's session by SIGHUP: that one reaches
    another user's processes too. Raises `AdapterFault` (START_FAILED, prompt not sent).
    """
    mark = secrets.token_hex(16)
    try:
        screen, theirs = os.openpty()
    except OSError as error:
        raise _not_started(f"there is no terminal for {command.argv[0]}: {error}") from error
    try:
        termios.tcsetwinsize(screen, (rows, columns))
        os.set_blocking(screen, False)
        # It makes the session: only who leads one that has no terminal can be given one.
        front = (_tool("setsid"), "--ctty")
        process = _start(command, mark, theirs, front=front, terminal=os.ttyname(theirs))
    except BaseException:
        os.close(screen)
        raise
    finally:
        os.close(theirs)
    return InTerminal(screen, process, command, mark)


def _start(
    command: Command,
    mark: str,
    stream: int | None,
    *,
    front: tuple[str, ...] = (),
    terminal: str | None = None,
    session: bool = True,
    starter: str = "",
) -> subprocess.Popen[bytes]:
    """Start ``command`` with ``stream`` as its three standard ones (None: ours), behind ``front``.

    ``session``: in one of its own. ``starter`` is the name of whoever says that the client cannot be started.
    """
    name, *rest = command.argv
    client = shutil.which(name, path=command.env.get("PATH", os.defpath))
    if client is None:
        raise _not_started(f"{name} is not installed, or not on the PATH that the client gets")
    prefix = (*front, *_prefix(command, terminal, starter))
    try:
        return subprocess.Popen(  # noqa: S603 - no shell; what runs is the preset's choice
            [starter or prefix[0], *prefix[1:], client, *rest],
            executable=prefix[0],
            stdin=stream,
            stdout=stream,
            stderr=stream,
            bufsize=0,
            env={**command.env, RUN_VARIABLE: mark},
            # Another user's folder is not ours to enter: its own process goes there.
            cwd="/" if command.confinement.client else command.cwd,
            start_new_session=session and terminal is None,
        )
    except (OSError, ValueError) as error:
        # A missing folder, too long an argument list, a NUL in an argument: named as what they are.
        raise _not_started(f"{name} cannot be started: {error}") from error


def _prefix(command: Command, terminal: str | None, starter: str) -> tuple[str, ...]:
    """What stands before the client's own command line; ``terminal`` is the name of the one that it gets."""
    client = command.confinement.client
    setpriv = _tool("setpriv")
    # Without new privileges there is no set-user-ID program to shake off the signal of our death.
    if client is None:
        return launch.same_user(setpriv=setpriv)
    reach = launch.reach_of(
        home=str(client.home),
        cwd=str(command.cwd),
        fenced=client.fenced,
        ours=_OURS,
        terminal=terminal,
    )
    return (
        *launch.other_user(client.user, prlimit=_tool("prlimit"), setpriv=setpriv),
        *launch.behind(reach, python=sys.executable, launcher=launcher.__file__, name=starter or LAUNCHER),
    )


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise _not_started(f"{name} (package util-linux) is not installed, and no client runs without it")
    return found


def _not_started(why: str) -> AdapterFault:
    return AdapterFault(Fault.START_FAILED, PromptSent.NO, why)


def _end(process: subprocess.Popen[bytes], mark: str, command: Command) -> tuple[int, ...]:
    """End every process of the run; return those that would not.

    The client itself is collected last: until then its id cannot become another session's.
    """
    left = _left(process, mark, command)
    for number, seconds in ((signal.SIGTERM, GRACE_SECONDS), (signal.SIGKILL, KILL_SECONDS)):
        until = time.monotonic() + seconds
        pause = 0.001
        _signal(left, number, process, command)
        while left and time.monotonic() < until:
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
            left = _left(process, mark, command)
            if number is signal.SIGKILL:
                _signal(left, number, process, command)  # and what it started meanwhile
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0 if process.pid in left else KILL_SECONDS)
    return left


def _left(process: subprocess.Popen[bytes], mark: str, command: Command) -> tuple[int, ...]:
    ours = alive(process.pid, mark)
    client = command.confinement.client
    return tuple({*ours, *alive_of(client.user.uid)}) if client and command.alone else ours


def _signal(
    left: Iterable[int], number: signal.Signals, process: subprocess.Popen[bytes], command: Command
) -> None:
    """Signal what is ``left``: as ourselves, since it may just begin, and as the client's user."""
    send_signal(left, number)
    client = command.confinement.client
    if not left or client is None:
        return
    target = launch.EVERYTHING if command.alone else -process.pid
    kill = launch.kill(client.user, number, target, setpriv=_tool("setpriv"), shell=_SHELL)
    # Whoever looks next whether something is left judges what came of it.
    with suppress(subprocess.TimeoutExpired):
        subprocess.run(  # noqa: S603 - our own words
            kill,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            check=False,
            timeout=KILL_SECONDS,
        )
