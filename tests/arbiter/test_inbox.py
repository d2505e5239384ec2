"""The owner's queue: bounded, in order, and nobody who waits is forgotten."""

from __future__ import annotations

import anyio
import pytest

from arbiter.debate.events import AlarmRang, Event, SessionLost
from arbiter.inbox import Inbox

pytestmark = pytest.mark.anyio


def lost(number: int) -> Event:
    return SessionLost(f"s-{number}", "gone")


async def test_events_come_out_in_the_order_in_which_they_were_posted() -> None:
    inbox = Inbox()
    for number in range(5):
        await inbox.post(lost(number))
    assert [await inbox.receive() for _ in range(5)] == [lost(number) for number in range(5)]


async def test_a_reader_waits_for_the_next_event() -> None:
    inbox = Inbox()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(inbox.post, AlarmRang())
        with anyio.fail_after(20):
            assert await inbox.receive() == AlarmRang()


async def test_everybody_who_waits_for_room_gets_it() -> None:
    inbox = Inbox(1)
    received = []
    async with anyio.create_task_group() as tasks:
        for number in range(6):
            tasks.start_soon(inbox.post, lost(number))
        await anyio.wait_all_tasks_blocked()
        with anyio.fail_after(20):
            for _ in range(6):
                received.append(await inbox.receive())
                await anyio.wait_all_tasks_blocked()
    assert sorted(str(event) for event in received) == [str(lost(number)) for number in range(6)]


async def test_whoever_waits_or_comes_after_the_end_is_turned_away() -> None:
    inbox = Inbox(1)
    turned_away = []

    async def post(number: int) -> None:
        try:
            await inbox.post(lost(number))
        except anyio.BrokenResourceError:
            turned_away.append(number)

    with inbox:
        async with anyio.create_task_group() as tasks:
            for number in range(3):
                tasks.start_soon(post, number)
            await anyio.wait_all_tasks_blocked()
            inbox.close()
    await post(3)
    assert turned_away == [1, 2, 3]
