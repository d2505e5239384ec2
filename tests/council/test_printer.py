"""`council.printer`: whoever reads slowly, or leaves, is no matter to the debate."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import anyio
import pytest

from council.printer import Printer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.anyio


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for end in (read, write):
        try:
            os.close(end)
        except OSError:
            continue


async def test_what_is_written_arrives_in_order(pipe: tuple[int, int]) -> None:
    read, write = pipe
    printer = Printer(write, "utf-8")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(printer.run)
        for word in ("one ", "two ", "three"):
            printer.write(word)
            await anyio.lowlevel.checkpoint()
        await printer.drain()
        tasks.cancel_scope.cancel()
    assert os.read(read, 100) == b"one two three"
    assert not printer.behind


async def test_a_character_that_the_encoding_lacks_becomes_a_question_mark(pipe: tuple[int, int]) -> None:
    read, write = pipe
    printer = Printer(write, "ascii")
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(printer.run)
        printer.write("caf\xe9 …")
        await printer.drain()
        tasks.cancel_scope.cancel()
    assert os.read(read, 100) == b"caf? ?"


async def test_a_reader_who_does_not_read_holds_nobody_up(pipe: tuple[int, int]) -> None:
    read, write = pipe
    printer = Printer(write, "utf-8")
    text = "x" * 1_000_000
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(printer.run)
        printer.write(text)
        await anyio.sleep(0.05)
        printer.write("more")
        assert printer.behind
        with anyio.move_on_after(0.05) as scope:
            await printer.drain()
        assert scope.cancelled_caught
        arrived = b""
        while len(arrived) < len(text) + 4:
            arrived += await anyio.to_thread.run_sync(os.read, read, 65536)
        with anyio.fail_after(5):
            await printer.drain()
        tasks.cancel_scope.cancel()
    assert arrived == text.encode() + b"more"


async def test_a_reader_who_has_left_ends_the_printing_and_holds_nobody_up(pipe: tuple[int, int]) -> None:
    read, write = pipe
    printer = Printer(write, "utf-8")
    os.close(read)
    printer.write("to nobody")
    with anyio.fail_after(5):
        assert isinstance(await printer.run(), BrokenPipeError)
        printer.write("nobody")
        await printer.drain()
    assert not printer.behind
