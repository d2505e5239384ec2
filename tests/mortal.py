"""Processes that write a transcript until they are killed, quickly one after the other.

    with mortals() as mortal:
        with mortal(path, seed) as life:
            ...                       # life.acknowledged grows
        # here it is dead, by SIGKILL

One process imports everything and forks at each call: that takes a moment, where a start takes a second.
What a life acknowledges is (how many records, the hash of the last), each once it is durable. All of them
sign with `seals.arbiter`, as their test does.
"""

from __future__ import annotations

import os
import random  # noqa: TID251 - its seed is the test's
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import orjson
import seals
import transcripts
from journals import again, start

from consilium.headseal import HeadSigner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from arbiter.journal import Journal

PATIENCE = 20.0
"""Seconds for the next word of a process before the test fails."""

LARGE = 1_500_000
"""The longest text: such a write takes long enough to be torn by a kill."""


# --- in the process that is killed -------------------------------------------------------------------


def say(words: str) -> None:
    os.write(1, words.encode() + b"\n")


def take_up(path: Path, signer: HeadSigner) -> Journal:
    """Go on in the transcript, or begin it."""
    if os.path.lexists(path):
        journal, _ = again(path, signer=signer)
        return journal
    return start(path, signer=signer)


async def live(path: Path, chance: random.Random, signer: HeadSigner) -> None:
    """Write until killed."""
    journal = take_up(path, signer)
    if journal.count == 0:
        await journal.append_durably([transcripts.header()])
    while True:
        say(f"{journal.count} {journal.last}")
        size = LARGE if chance.random() < 0.15 else 2000
        texts = ["x" * chance.randrange(size) for _ in range(chance.randint(1, 4))]
        entries = [transcripts.turn(journal.count + n, text=text) for n, text in enumerate(texts)]
        await journal.append_durably(entries)


def be_born(order: str) -> None:
    """Fork a life; return when it is over."""
    if child := os.fork():
        os.waitpid(child, 0)
        say("dead")
        return
    say(f"born {os.getpid()}")
    try:
        path, seed, key, certificate = orjson.loads(order)
        anyio.run(live, Path(path), random.Random(seed), HeadSigner.of(key.encode(), certificate.encode()))
    except BaseException as error:  # noqa: BLE001 - told to the test
        say(f"failed {error!r}")
    while True:
        signal.pause()  # the test kills this process, and no other that got its number later


# --- in the test -------------------------------------------------------------------------------------


@dataclass
class Life:
    """One process. ``acknowledged`` is what it said so far."""

    words: Callable[[float], str | None]
    acknowledged: list[tuple[int, str]] = field(default_factory=list)

    def listen(self, seconds: float) -> None:
        """Hear what it says for so long."""
        until = time.monotonic() + seconds
        while (word := self.words(max(until - time.monotonic(), 0))) is not None:
            self.hear(word)

    def hear(self, word: str) -> bool:
        """Whether it lives on after ``word``."""
        if word == "dead":
            return False
        count, _, last = word.partition(" ")
        assert count.isdecimal(), word
        self.acknowledged.append((int(count), last))
        return True


@contextmanager
def mortals() -> Iterator[Callable[[Path, str], AbstractContextManager[Life]]]:
    """Make lives; none outlasts the block."""
    command = [sys.executable, __file__]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        start_new_session=True,
    ) as source:
        words = _Words(source)

        @contextmanager
        def mortal(path: Path, seed: str) -> Iterator[Life]:
            own = seals.arbiter()
            order = orjson.dumps([str(path), seed, own.key.decode(), own.certificate.decode()])
            assert source.stdin is not None
            source.stdin.write(order + b"\n")
            source.stdin.flush()
            born, _, number = (words(PATIENCE) or "nobody").partition(" ")
            assert born == "born"
            life = Life(words)
            yield life
            os.kill(int(number), signal.SIGKILL)
            while life.hear(words(PATIENCE) or "nothing"):
                pass

        try:
            yield mortal
        finally:
            os.killpg(source.pid, signal.SIGKILL)


class _Words:
    """The lines that a process says, with patience for each."""

    def __init__(self, source: subprocess.Popen[bytes]) -> None:
        assert source.stdout is not None
        self._descriptor = source.stdout.fileno()
        self._heard = b""

    def __call__(self, seconds: float) -> str | None:
        """The next line; None when none comes in so many ``seconds``."""
        while b"\n" not in self._heard:
            readable, _, _ = select.select([self._descriptor], [], [], seconds)
            if not readable:
                return None
            more = os.read(self._descriptor, 65536)
            assert more, "the process has ended by itself"
            self._heard += more
        line, _, self._heard = self._heard.partition(b"\n")
        return line.decode()


if __name__ == "__main__":
    for line in sys.stdin:
        be_born(line)
