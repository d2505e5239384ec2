"""A bell rung in any thread wakes every task that waits, however they come and go."""

from __future__ import annotations

import threading

import anyio
import pytest
from anyio import to_thread

from arbiter.bell import Bell

pytestmark = pytest.mark.anyio


async def test_one_ring_of_a_thread_wakes_all_who_wait() -> None:
    bell = Bell()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await bell.wait()
        woken.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(wait, number)
        await anyio.wait_all_tasks_blocked()
        assert woken == []
        await to_thread.run_sync(bell.ring)
    assert sorted(woken) == [0, 1, 2, 3, 4]
    bell.close()


async def test_a_ring_that_nobody_heard_wakes_the_next_one() -> None:
    bell = Bell()
    bell.ring()
    bell.ring()
    with anyio.fail_after(5):
        await bell.wait()
    with anyio.move_on_after(0.05) as patience:
        await bell.wait()
    assert patience.cancelled_caught
    bell.close()


async def test_when_the_task_that_listens_is_cancelled_another_takes_over() -> None:
    bell = Bell()
    woken = anyio.Event()

    async def wait() -> None:
        with anyio.CancelScope() as first:
            scopes.append(first)
            await bell.wait()
            woken.set()

    async def wait_again() -> None:
        await bell.wait()  # woken by the other's end, without a ring
        await bell.wait()
        woken.set()

    scopes: list[anyio.CancelScope] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(wait_again)
        await anyio.wait_all_tasks_blocked()
        scopes[0].cancel()
        await anyio.wait_all_tasks_blocked()
        assert not woken.is_set()
        bell.ring()
        with anyio.fail_after(5):
            await woken.wait()
    bell.close()


async def test_closing_wakes_those_who_wait_and_those_who_come_later() -> None:
    bell = Bell()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bell.wait)
        tasks.start_soon(bell.wait)
        await anyio.wait_all_tasks_blocked()
        bell.close()
    bell.close()
    with anyio.fail_after(5):
        await bell.wait()


async def test_closing_right_after_a_ring_touches_no_descriptor_of_somebody_else() -> None:
    bell = Bell()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(bell.wait)
        await anyio.wait_all_tasks_blocked()
        bell.ring()
        await anyio.lowlevel.checkpoint()  # the ring is noticed; the task has not run yet
        bell.close()


async def test_no_ring_is_lost_between_looking_and_waiting() -> None:
    bell = Bell()
    counted = 0
    rounds = 500

    def work() -> None:
        nonlocal counted
        for _ in range(rounds):
            counted += 1
            bell.ring()

    thread = threading.Thread(target=work)
    with anyio.fail_after(20):
        thread.start()
        while counted < rounds:
            await bell.wait()
    thread.join()
    bell.close()
