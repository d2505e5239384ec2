"""`wrapper.terminal.console`: a client at its terminal that does anything but what clients do."""

from __future__ import annotations

import os
import subprocess
import threading
import time
import tty
from typing import TYPE_CHECKING

import pytest

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Command, InTerminal
from wrapper.terminal import console as module
from wrapper.terminal.console import Console

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUESTION = b"\x1b[c"


@pytest.fixture
def ends(tmp_path: Path) -> Iterator[tuple[Console, int]]:
    """A console, and the client's end of its terminal."""
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    os.set_blocking(ours, False)
    process = subprocess.Popen(["sleep", "60"])
    preset = load_preset("claude")
    running = InTerminal(ours, process, Command(argv=("sleep",), env={}, cwd=tmp_path), "")
    console = Console(running, preset, preset.in_terminal("restricted"), "restricted")
    yield console, theirs
    process.kill()
    process.wait()
    os.close(console._pid)
    os.close(ours)
    os.close(theirs)


def asking(theirs: int, until: threading.Event) -> None:
    os.set_blocking(theirs, False)
    while not until.is_set():
        try:
            os.write(theirs, 100 * QUESTION)
        except BlockingIOError:
            time.sleep(0.001)


def test_who_asks_without_end_and_reads_nothing_is_given_up(
    ends: tuple[Console, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    console, theirs = ends
    monkeypatch.setattr(module, "PASTE_SECONDS", 1.0)
    enough = threading.Event()
    client = threading.Thread(target=asking, args=(theirs, enough))
    client.start()
    try:
        with pytest.raises(AdapterFault, match="took nothing of what was typed for 1 s") as raised:
            console._write(b"x" * 20_000, None)
    finally:
        enough.set()
        client.join()
    assert (raised.value.fault, raised.value.prompt_sent) == (Fault.START_FAILED, PromptSent.NO)
    assert len(console._to_write) < 20_000 + 2 * module._MAX_REPLIES


def test_who_reads_a_little_at_a_time_is_given_up_in_the_end(
    ends: tuple[Console, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    console, theirs = ends
    monkeypatch.setattr(module, "WRITE_SECONDS", 1.0)
    enough = threading.Event()

    def sip() -> None:
        while not enough.wait(0.05):
            os.read(theirs, 100)

    client = threading.Thread(target=sip)
    client.start()
    try:
        with pytest.raises(AdapterFault, match="did not take what was typed within 1 s"):
            console._write(b"x" * 200_000, None)
    finally:
        enough.set()
        client.join()


def test_what_is_typed_is_written_though_questions_keep_coming(ends: tuple[Console, int]) -> None:
    console, theirs = ends
    heard = bytearray()
    enough = threading.Event()

    def converse() -> None:
        while not enough.is_set():
            os.write(theirs, QUESTION)
            heard.extend(os.read(theirs, 4096))

    console._to_write += b"?"  # or the client would wait for its first answer
    client = threading.Thread(target=converse, daemon=True)
    client.start()
    console._write(b"typed", None)
    enough.set()
    console._write(b".", None)
    client.join(5)
    assert b"typed" in heard
