"""The way out of a connection: bounded, in order, in as few writes as possible, and never waited for."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import anyio
import pytest
from rights import rights

from arbiter import session as session_module
from arbiter.debate.effects import Channel as Kind
from arbiter.session import MAX_QUEUED, Outbox, Session
from consilium.channel import Channel
from consilium.conversation import Heartbeat
from consilium.errors import ChannelBroken, ChannelClosed, ChannelError
from consilium.messages import Message, Ping

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio


class Reader:
    """In a channel's place: keeps what is written, as long as ``gate`` lets it."""

    def __init__(self) -> None:
        self.writes: list[list[int]] = []
        self.replies: list[str | None] = []
        self.gate = anyio.Event()
        self.error: ChannelError | None = None

    async def send_many(self, messages: Iterable[tuple[Message, str | None]]) -> list[str]:
        batch = list(messages)
        self.writes.append([message.ts for message, _ in batch if isinstance(message, Ping)])
        self.replies += [reply for _, reply in batch]
        await self.gate.wait()
        if self.error is not None:
            raise self.error
        return []

    def outbox(self, patience: float = 5.0) -> Outbox:
        return Outbox(cast("Channel[Any]", self), patience)


@asynccontextmanager
async def draining(outbox: Outbox) -> AsyncIterator[list[ChannelError]]:
    """Run `Outbox.drain` beside the block, until it ends by itself; yields how it ended."""
    ends: list[ChannelError] = []

    async def drain() -> None:
        try:
            await outbox.drain()
        except ChannelError as error:
            ends.append(error)

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(drain)
            yield ends


async def settled() -> None:
    await anyio.wait_all_tasks_blocked()


def ping(number: int) -> Ping:
    return Ping(ts=number)


async def test_what_is_queued_together_goes_in_one_write_and_in_order() -> None:
    reader = Reader()
    reader.gate.set()
    outbox = reader.outbox()
    async with draining(outbox):
        for number in range(5):
            assert outbox.put(ping(number), f"m-{number}")
        await settled()
        assert reader.writes == [[0, 1, 2, 3, 4]]
        assert reader.replies == ["m-0", "m-1", "m-2", "m-3", "m-4"]
        outbox.put(ping(5))
        await settled()
        outbox.finish()
    assert reader.writes[1:] == [[5]]


async def test_what_comes_during_a_write_goes_in_the_next_one() -> None:
    reader = Reader()
    outbox = reader.outbox()
    async with draining(outbox):
        outbox.put(ping(0))
        await settled()
        for number in (1, 2, 3):
            outbox.put(ping(number))
        assert reader.writes == [[0]]
        reader.gate.set()
        await settled()
        assert reader.writes == [[0], [1, 2, 3]]
        outbox.finish()


async def test_nobody_waits_to_put_and_a_full_queue_says_so() -> None:
    reader = Reader()
    outbox = reader.outbox()
    async with draining(outbox) as ends:
        outbox.put(ping(0))
        await settled()
        assert [outbox.put(ping(number)) for number in range(MAX_QUEUED)] == [True] * MAX_QUEUED
        assert not outbox.put(ping(0))
        assert not outbox.put(ping(1))
        reader.gate.set()
        await settled()
        assert outbox.put(ping(2)), "room again"
        outbox.finish()
    assert ends == []
    assert [len(write) for write in reader.writes] == [1, MAX_QUEUED, 1]


async def test_a_reader_that_does_not_read_fails_the_write_in_time() -> None:
    outbox = Reader().outbox(patience=0.05)
    async with draining(outbox) as ends:
        outbox.put(ping(0))
    assert [(type(end), str(end)) for end in ends] == [(ChannelBroken, "the peer did not read for 0.05 s")]


async def test_finish_sends_what_is_queued_and_nothing_after_it() -> None:
    reader = Reader()
    outbox = reader.outbox()
    async with draining(outbox) as ends:
        outbox.put(ping(0))
        await settled()
        outbox.put(ping(1))
        outbox.finish()
        assert outbox.put(ping(2)), "dropped, not refused: nobody listens"
        reader.gate.set()
    assert ends == []
    assert reader.writes == [[0], [1]]


async def test_finish_ends_an_idle_writer_at_once() -> None:
    outbox = Reader().outbox()
    async with draining(outbox) as ends:
        await settled()
        outbox.finish()
        outbox.finish()
    assert ends == []


async def test_a_connection_that_ends_is_not_held_up_by_a_reader_that_does_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "PARTING", 0.05)
    outbox = Reader().outbox(patience=60)
    async with draining(outbox) as ends:
        outbox.put(ping(0))
        await settled()
        outbox.put(ping(1))
        outbox.finish()
    assert [type(end) for end in ends] == [ChannelBroken]


async def test_the_last_writes_together_have_no_longer_than_the_parting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_module, "PARTING", 0.05)
    outbox = Reader().outbox(patience=60)
    outbox.put(ping(0))
    outbox.finish()
    async with draining(outbox) as ends:
        pass
    assert [type(end) for end in ends] == [ChannelBroken]


async def test_the_end_of_the_connection_is_passed_on() -> None:
    reader = Reader()
    reader.gate.set()
    reader.error = ChannelClosed("gone")
    outbox = reader.outbox()
    async with draining(outbox) as ends:
        outbox.put(ping(0))
    assert ends == [reader.error]


async def test_cancelling_the_writer_is_no_failure_of_the_reader() -> None:
    outbox = Reader().outbox()
    async with draining(outbox) as ends:
        with anyio.move_on_after(0.05) as scope:
            outbox.put(ping(0))
            await outbox.drain()
        assert scope.cancelled_caught
        outbox.finish()
    assert ends == []


async def test_a_session_ends_once_on_every_way_out_and_the_first_reason_stands() -> None:
    reader = Reader()
    reader.gate.set()
    outboxes = {Kind.CONTROL: reader.outbox(), Kind.DATA: reader.outbox()}
    held = Session(session_id="s", rights=rights(), heartbeat=Heartbeat(1, 0), outboxes=outboxes)
    assert held.reason is None
    async with draining(outboxes[Kind.CONTROL]), draining(outboxes[Kind.DATA]):
        await settled()
        held.end("left")
        held.end("connection_lost")
    assert held.reason == "left"
