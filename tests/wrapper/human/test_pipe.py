"""A person's lines from a pipe or a file."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING

import anyio
import anyio.lowlevel
import pytest

from consilium.errors import AdapterFault
from wrapper.human.front import Ended, Entered, Input, Mood
from wrapper.human.pipe import Pipe

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.anyio

END = Ended("the input has ended", final=True)


async def lines_of(written: bytes) -> tuple[list[Input], str]:
    read, write = os.pipe()
    shown = io.StringIO()
    front = Pipe(read, shown)
    inputs: list[Input] = []

    async def take(entered: Input) -> None:
        inputs.append(entered)

    try:
        front.open()
        front.invite(Mood.TURN)
        front.begin("/timeout ")
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(front.serve, take)
            for place in range(0, len(written), 7):
                os.write(write, written[place : place + 7])
                await anyio.lowlevel.checkpoint()
            os.close(write)
    finally:
        os.close(read)
        front.close()
    assert front.touched > 0 or not written
    return inputs, shown.getvalue()


@pytest.mark.parametrize(
    ("written", "inputs"),
    [
        ("one\n\ntwo é\n", [Entered("one"), Entered(""), Entered("two é")]),
        ("one\\\ntwo\\\\\n", [Entered("one\ntwo\\")]),
        ("a\x1b[2J\tb\r\n", [Entered("a[2J    b\n")]),
        ("", []),
    ],
)
async def test_each_line_is_one_input(written: str, inputs: list[Input]) -> None:
    assert await lines_of(written.encode()) == ([*inputs, END], "")


async def test_a_line_that_broke_off_was_not_sent() -> None:
    assert await lines_of(b"one\nhalf a th") == ([Entered("one"), END], "not sent: half a th\n")


async def test_a_file_is_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "lines").write_text("one\ntwo\n")
    inputs: list[Input] = []

    async def take(entered: Input) -> None:
        inputs.append(entered)

    with (tmp_path / "lines").open("rb") as file:
        front = Pipe(file.fileno(), io.StringIO())
        front.open()
        await front.serve(take)
    assert inputs == [Entered("one"), Entered("two"), END]


def test_where_nobody_can_type_nobody_sits(tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    folder = os.open(tmp_path, os.O_RDONLY)
    for source in (nothing, folder, 9999):
        with pytest.raises(AdapterFault, match="nobody can type here"):
            Pipe(source, io.StringIO()).open()
    os.close(nothing)
    os.close(folder)
