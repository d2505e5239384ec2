"""A wrapper's client side, to be measured: a seat's `NativeAdapter`, and beside it the same program by hand.

Both are run in this process, one after the other, with the same arguments, environment, folder and input, so
that what the machine does to one it does to the other.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
import orjson

from benchmarks.hosts.common import announce, leave, question
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds, Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

SYSTEM = "You answer in plain prose."
ANEW = b"5"
"""What is written to ``clear_refs`` to have the kernel's high-water mark begin anew (proc(5))."""


class Observed(NativeAdapter):
    """An adapter that remembers what it ran last, unless that shall take no memory."""

    ran: Command
    remembers = True

    def _command(self, arguments: Sequence[str], stdin: bytes = b"") -> Command:
        command = super()._command(arguments, stdin)
        if self.remembers:
            self.ran = command
        return command


def seat(argv: Sequence[str]) -> Observed:
    """The seat that the command line asks for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", required=True)
    parser.add_argument("--presets", type=Path)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--environment", type=orjson.loads, required=True)
    parser.add_argument("--settings", type=orjson.loads, default={})
    parser.add_argument("--passed", nargs="*", default=[])
    args = parser.parse_args(argv)
    return Observed(
        load_preset(args.preset, args.presets),
        args.settings,
        args.folder,
        environment=args.environment,
        bounds=Bounds(overall=120),
        passed=args.passed,
    )


def plainly(command: Command, known: str | None) -> None:
    """Run the same program by hand, and see that it answered. An id of ours that it has seen is replaced."""
    fresh = str(uuid.uuid4())
    argv = [fresh if word == known else word for word in command.argv]
    done = subprocess.run(
        argv, env=command.env, cwd=command.cwd, input=command.stdin, capture_output=True, check=True
    )
    assert re.search(rb"\w", done.stdout)


def used() -> tuple[float, float]:
    """CPU seconds of this process, and of all that it has waited for."""
    ours, theirs = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ours.ru_utime + ours.ru_stime, theirs.ru_utime + theirs.ru_stime


async def timed(work: Callable[[], Awaitable[Any]]) -> tuple[float, float, float]:
    """Seconds that ``work`` took: by the clock, of every CPU, and of ours without the client's."""
    wall, (ours, theirs) = time.perf_counter(), used()
    await work()
    wall, (ours_then, theirs_then) = time.perf_counter() - wall, used()
    return wall, ours_then - ours + theirs_then - theirs, ours_then - ours


async def turns(adapter: Observed, prompt: str, count: int) -> dict[str, Any]:
    """Take turns in turn with the plain program."""
    subject, plain = [], []
    for _ in range(count):
        subject.append(await timed(lambda: adapter.send_turn(prompt)))
        ran, known = adapter.ran, adapter._id  # noqa: SLF001 - a benchmark may look inside
        plain.append(await timed(lambda: anyio.to_thread.run_sync(plainly, ran, known)))  # noqa: B023 - awaited here
    return {"subject": subject, "plain": plain}


async def peak(adapter: Observed, prompt: str) -> dict[str, Any]:
    """How much memory one turn takes above what the idle process has, in KiB."""
    adapter.remembers = False
    idle = memory()["VmRSS"]
    Path("/proc/self/clear_refs").write_bytes(ANEW)
    answer = await adapter.send_turn(prompt)
    return {"idle": idle, "peak": memory()["VmHWM"], "answered": len(answer.text.encode())}


def memory() -> dict[str, int]:
    """What the kernel says of our memory, in KiB."""
    said = Path("/proc/self/status").read_text("ascii")
    return {name: int(value) for name, value in re.findall(r"^(Vm\w+):\s+(\d+) kB$", said, re.MULTILINE)}


async def main() -> None:
    """Open the seat, then do what is asked until standard input ends."""
    adapter = seat(sys.argv[1:])
    await adapter.open(SYSTEM)
    announce(ports=[])
    while line := await anyio.to_thread.run_sync(question):
        asked = orjson.loads(line)
        prompt = asked["prompt"] * asked.get("times", 1) + asked.get("end", "")
        if "count" in asked:
            announce(**await turns(adapter, prompt, asked["count"]))
        else:
            announce(**await peak(adapter, prompt))
    leave()


if __name__ == "__main__":
    anyio.run(main)
