"""The transcript as the Arbiter writes it: append, wait until it is on disk, watch (§5.6, §3.3.D).

1. The order of the records is the order of the calls to `Journal.append`, whoever makes them.
2. A message that follows from a record is sent after `Journal.commit`, so that nothing a participant was told
   is missing after a crash.
3. A disk that takes nothing ends nothing: what was appended is kept until `Journal.retry` has written it, in
   its order and once, and nothing is taken on top of it meanwhile.
4. Nothing else is kept in memory: a watcher reads the file, at its own pace, and cannot hold anybody up.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from typing import TYPE_CHECKING, Self

import anyio
from anyio import to_thread

from arbiter.bell import Bell
from arbiter.disk import Disk, RealDisk, create, reopen, unlock
from arbiter.head import HeadFile, Signer
from arbiter.recovery import Recovered, Tail, recover
from arbiter.writer import Stats, Writer
from consilium.errors import TranscriptError
from consilium.records import AnyEntry, HeaderRecord, digest, seal, timestamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from pathlib import Path

CHUNK_BYTES = 256 * 1024
"""How much of the file a watcher reads at a time, unless a single record is longer."""


class Journal:
    """One transcript being written. For any number of tasks, all of one event loop."""

    def __init__(
        self,
        descriptor: int,
        head: HeadFile,
        clock: Callable[[], float],
        disk: Disk,
        tail: Tail,
        *,
        sync: bool,
    ) -> None:
        self.count = tail.count
        """How many records were appended, on disk or on the way."""
        self.last = tail.last
        """The hash of the last of them."""
        self._descriptor = descriptor
        self._clock = clock
        self._debate_id = tail.debate_id
        self._ends = tail.ends
        self._closed = False  # to new records
        self._ended = False  # and the last of them is written
        self._bell = Bell()
        self._head = head
        self._writer = Writer(descriptor, disk, head, self._bell, tail, sync=sync)

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        signer: Signer,
        clock: Callable[[], float],
        sync: bool = True,
        disk: Disk | None = None,
    ) -> Self:
        """Create the transcript at ``path``, which must not exist. Blocks for as long as the disk takes.

        ``clock`` gives seconds since the epoch. Without ``sync`` the disk is not waited for: a crash of the
        machine may lose what was acknowledged. Raises `UserError` when the file cannot be created.
        """
        disk = disk or RealDisk()
        head = HeadFile(path, signer, disk, sync=sync)
        return cls(create(path, sync=sync), head, clock, disk, Tail(), sync=sync)

    @classmethod
    def reopen(
        cls,
        path: Path,
        *,
        signer: Signer,
        clock: Callable[[], float],
        sync: bool = True,
        disk: Disk | None = None,
    ) -> tuple[Self, Recovered]:
        """Go on in the transcript at ``path``, which a journal wrote; also return what it tells. Blocks.

        ``signer`` has the key of its head. Raises `UserError` when the file is not as `create` and perhaps a
        kill leave it, and while another journal writes it.
        """
        disk = disk or RealDisk()
        descriptor = reopen(path)
        try:
            tail, recovered = recover(path, descriptor, signer, disk, sync=sync)
            head = HeadFile(path, signer, disk, sync=sync)
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, head, clock, disk, tail, sync=sync), recovered

    @property
    def stats(self) -> Stats:
        """What was written so far, for tests and measurements."""
        return self._writer.stats

    @property
    def durable(self) -> int:
        """How many records are on disk."""
        return self._writer.durable

    @property
    def size(self) -> int:
        """How many bytes they take."""
        return self._ends[self._writer.durable]

    @property
    def failure(self) -> str | None:
        """Why what was appended is not on disk, while the disk refuses it: then `retry` tries again."""
        return self._writer.failure

    def append(self, entries: Sequence[AnyEntry]) -> list[bytes]:
        """Give ``entries`` their places, and have them written: all of them, or on an error none.

        Returns their lines, without newlines; they are not on disk yet. The first record of all must be a
        header. Raises `TranscriptError` while the disk refuses what was appended before (`failure`), when the
        transcript is closed, and when an entry cannot be written.
        """
        if self._writer.failure or self._closed:
            raise TranscriptError(self._writer.failure or "the transcript is closed")
        if self.count == 0 and entries:
            if not isinstance(entries[0], HeaderRecord):
                raise TranscriptError("a transcript begins with its header")
            self._debate_id = entries[0].debate_id
        ts = timestamp(self._clock())
        lines: list[bytes] = []
        last = self.last
        for seq, entry in enumerate(entries, self.count):
            line = seal(entry, seq=seq, prev=last, ts=ts)
            last = digest(line)
            lines.append(line)
        for line in lines:
            self._ends.append(self._ends[-1] + len(line) + 1)
        self.count += len(lines)
        self.last = last
        self._writer.put(lines, last, self._debate_id)
        return lines

    async def commit(self) -> None:
        """Return when everything appended so far is on disk. Raises `TranscriptError` when the disk failed.

        Neither that nor cancelling this takes anything back: what was appended is written sooner or later, or
        `close` says that it is lost.
        """
        wanted = self.count
        while True:
            failure = self._writer.failure  # read first: what came before it is on disk
            if self._writer.durable >= wanted:
                return
            if failure:
                raise TranscriptError(failure)
            await self._bell.wait()

    async def retry(self) -> None:
        """Have what the disk refused written now. Returns and raises like `commit`; may be called again."""
        if self._closed:
            raise TranscriptError("the transcript is closed")
        ticket = self._writer.ask_for_retry()
        while self._writer.retried < ticket:
            await self._bell.wait()
        await self.commit()

    async def append_durably(self, entries: Sequence[AnyEntry]) -> list[bytes]:
        """`append`, then `commit`."""
        lines = self.append(entries)
        await self.commit()
        return lines

    async def sign_with(self, signer: Signer) -> None:
        """Sign the head with other credentials, at once and from now on.

        Whoever takes up a transcript must have the key of its head. A closed journal keeps its last head.
        Raises `TranscriptError` as `seal_head`.
        """
        if not self._closed:
            self._head.sign_with(signer)
            await self.seal_head()

    async def seal_head(self) -> None:
        """Return when the head vouches for everything appended so far, to last: at a pause, and at the end.

        Raises `TranscriptError` when the records or the head could not be written.
        """
        await self.commit()
        ticket = self._writer.ask_for_head()
        while self._writer.answered < ticket:
            await self._bell.wait()
        if self._writer.head_failure:
            raise TranscriptError(self._writer.head_failure)

    async def follow(self, from_seq: int = 0) -> AsyncIterator[list[bytes]]:
        """The records from ``from_seq`` on as lots of lines, each new one once it is on disk.

        Waits while the disk refuses. Ends when the transcript is closed, and raises `TranscriptError` then if
        something that was appended is lost.
        """
        if self._closed:
            raise TranscriptError("the transcript is closed")
        descriptor = os.dup(self._descriptor)  # the journal may close before the watcher has read to the end
        seq = from_seq
        try:
            while True:
                while seq < self._writer.durable:
                    lines = await self._read(descriptor, seq)
                    yield lines
                    seq += len(lines)
                if self._ended:
                    break
                await self._bell.wait()
            if failure := self._writer.failure:
                raise TranscriptError(failure)
        finally:
            os.close(descriptor)

    async def close(self) -> None:
        """Write what waits, seal the head, and let go of the file. A second call does nothing.

        What the disk has refused is not tried again. Raises `TranscriptError` when something that was
        appended is not on disk, or the head is not.
        """
        if self._closed:
            return
        self._closed = True
        with anyio.CancelScope(shield=True):
            await to_thread.run_sync(self._writer.stop)
        self._ended = True
        self._bell.close()
        unlock(self._descriptor)
        os.close(self._descriptor)
        if problem := self._writer.failure or self._writer.head_failure:
            raise TranscriptError(problem)

    async def _read(self, descriptor: int, seq: int) -> list[bytes]:
        """Read the records from ``seq`` on, as many as fit a chunk, but at least one."""
        start = self._ends[seq]
        stop = bisect_right(self._ends, start + CHUNK_BYTES, seq + 2, self._writer.durable + 1) - 1
        length = self._ends[stop] - start
        data = await to_thread.run_sync(os.pread, descriptor, length, start)
        if len(data) != length:
            raise TranscriptError("the transcript was cut while it was being read")
        return data[:-1].split(b"\n")
