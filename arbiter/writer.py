"""The journal's writer thread: group commit (§5.6).

1. Whatever waits is written by one write and made durable by one fdatasync: a lone record costs one of each,
   sixteen debates together cost little more. The event loop's thread never waits for the disk.
2. What is acknowledged is on disk. What could not be made durable is cut off again, so that the file ends
   with a record, and is kept. A disk that failed once has lost its word: nothing more is written until
   somebody asks, and then first what was kept, in order, behind the last record that is on disk.
3. The head follows the records, at most once in `HEAD_INTERVAL_S` while they flow. That it could not be
   written loses no record: it is tried again, and whoever asks for it is told.
"""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from consilium.records import Head

if TYPE_CHECKING:
    from collections.abc import Sequence

    from arbiter.bell import Bell
    from arbiter.disk import Disk
    from arbiter.head import HeadFile
    from arbiter.recovery import Tail

log = logging.getLogger(__name__)

HEAD_INTERVAL_S = 1.0


@dataclass(slots=True)
class Stats:
    """How many records were made durable, by how many syncs, which took how long in all; how many heads."""

    records: int = 0
    syncs: int = 0
    sync_seconds: float = 0.0
    heads: int = 0


class Writer:
    """Owns the end of one file. Other threads read its public attributes and never set them."""

    def __init__(
        self, descriptor: int, disk: Disk, head: HeadFile, bell: Bell, tail: Tail, *, sync: bool
    ) -> None:
        self.durable = tail.count
        """How many records are on disk."""
        self.failure: str | None = None
        """Why no more are, while that is so."""
        self.head_failure: str | None = None
        """Why the last attempt at a head failed, if it did."""
        self.answered = 0
        """The last ticket of `ask_for_head` that was carried out."""
        self.retried = 0
        """The last ticket of `ask_for_retry` that was carried out."""
        self.stats = Stats()
        self._descriptor = descriptor
        self._disk = disk
        self._head = head
        self._bell = bell
        self._sync = sync
        self._size = tail.size
        self._last = tail.last
        self._head_count = tail.vouched
        self._head_tried = float("-inf")

        # Between the threads, under the condition's lock:
        self._wake = threading.Condition()
        self._waiting: list[bytes] = []  # all that is not on disk, unless it is being written
        self._waiting_last = tail.last
        self._debate_id = tail.debate_id
        self._head_asked = 0
        self._retry_asked = 0
        self._stopping = False

        self._thread = threading.Thread(target=self._run, name="transcript", daemon=True)
        self._thread.start()

    # --- from the event loop's thread ----------------------------------------------------------------

    def put(self, lines: Sequence[bytes], last: str, debate_id: str) -> None:
        """Have ``lines`` written, in the order of the calls; ``last`` is the hash of the last of them."""
        with self._wake:
            self._waiting += lines
            self._waiting_last = last
            self._debate_id = debate_id
            self._wake.notify()

    def ask_for_head(self) -> int:
        """Have the head written now, to last; `answered` reaches the returned ticket when it was tried."""
        with self._wake:
            self._head_asked += 1
            self._wake.notify()
            return self._head_asked

    def ask_for_retry(self) -> int:
        """Have what was kept written; `retried` reaches the returned ticket when it was tried."""
        with self._wake:
            self._retry_asked += 1
            self._wake.notify()
            return self._retry_asked

    def stop(self) -> None:
        """Write what waits, unless the disk has failed; write the head, end. Blocks until that is done."""
        with self._wake:
            self._stopping = True
            self._wake.notify()
        self._thread.join()

    # --- in the writer's own thread ------------------------------------------------------------------

    def _run(self) -> None:
        stopping = False
        while not stopping:
            lines, last, retry, head, stopping = self._take()
            if lines:
                self._commit(lines, last)
            if lines or retry > self.retried:
                self.retried = retry
                self._bell.ring()
            if head > self.answered or stopping:
                self._write_head(lasting=True)
                self.answered = head
                self._bell.ring()
            elif self._until_head() == 0:
                self._write_head(lasting=False)

    def _take(self) -> tuple[list[bytes], str, int, int, bool]:
        """Wait for something to do, and take all of it: also what was kept, once that is asked for."""
        with self._wake:
            self._wake.wait_for(self._has_work, timeout=self._until_head())
            lines: list[bytes] = []
            if self._may_write():
                lines, self._waiting = self._waiting, []
            return lines, self._waiting_last, self._retry_asked, self._head_asked, self._stopping

    def _has_work(self) -> bool:
        asked = self._retry_asked > self.retried or self._head_asked > self.answered
        return asked or self._stopping or bool(self._waiting and self._may_write())

    def _may_write(self) -> bool:
        return self.failure is None or self._retry_asked > self.retried

    def _until_head(self) -> float | None:
        """Seconds until the head is due; None when it is not behind."""
        if self._head_count == self.durable:
            return None
        return max(0.0, self._head_tried + HEAD_INTERVAL_S - time.monotonic())

    def _commit(self, lines: list[bytes], last: str) -> None:
        data = b"\n".join(lines) + b"\n"
        if problem := self._write(data):
            self._keep(lines, f"the transcript could not be written: {problem}{self._cut_back()}")
            return
        self._size += len(data)
        self._last = last
        self.stats.records += len(lines)
        self.durable += len(lines)
        self.failure = None  # last: whoever reads it first and `durable` then is not misled

    def _keep(self, lines: list[bytes], failure: str) -> None:
        """Put ``lines`` back in their place, before those that came meanwhile."""
        if failure != self.failure:
            log.error(failure)
        with self._wake:
            self._waiting[:0] = lines
            self.failure = failure

    def _write(self, data: bytes) -> str | None:
        """Write ``data`` and make it durable. Returns why that failed, if it did."""
        try:
            if self.failure:
                # Perhaps a part of what failed still stands there.
                self._disk.ftruncate(self._descriptor, self._size)
            taken = self._disk.write(self._descriptor, data)
            if taken != len(data):
                # A regular file takes less than it is given only when it has no room for the rest.
                return f"the disk took {taken} of {len(data)} bytes"
            if self._sync:
                began = time.monotonic()
                self._disk.fdatasync(self._descriptor)
                self.stats.sync_seconds += time.monotonic() - began
                self.stats.syncs += 1
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must not wait for ever
            return _reason(error)
        return None

    def _cut_back(self) -> str:
        """Take back what was written of a batch that failed. Returns what to say when that fails too."""
        try:
            self._disk.ftruncate(self._descriptor, self._size)
        except OSError as error:
            return f"; nor could what was written of it be cut off again: {_reason(error)}"
        return ""

    def _write_head(self, *, lasting: bool) -> None:
        if self.durable == 0:
            return
        head = Head(debate_id=self._debate_id, count=self.durable, last=self._last)
        self._head_tried = time.monotonic()
        try:
            self._head.write(head, lasting=lasting)
        except Exception as error:  # noqa: BLE001 - the records are what counts; the thread must go on
            if self.head_failure is None:
                log.warning("the transcript's head could not be written: %s", _reason(error))
            self.head_failure = f"the transcript's head could not be written: {_reason(error)}"
            return
        self._head_count = head.count
        self.head_failure = None
        self.stats.heads += 1


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error) or repr(error)
