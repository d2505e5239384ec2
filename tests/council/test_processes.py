"""`council.processes`: whatever happens, no process is left behind."""

from __future__ import annotations

import contextlib
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from consilium.errors import UserError
from council import processes as processes_module
from council.processes import Ended, News, Processes, Said, processes

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = pytest.mark.anyio

OBEDIENT = 'import sys; print(\'{"event": "up", "n": 1}\', flush=True); sys.stdin.read()'
"""Says that it is up, and ends when its lifeline is cut."""

STUBBORN = (
    "import signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    'print(\'{"event": "up"}\', flush=True)\n'
    "time.sleep(600)\n"
)
"""Hears neither the end of its lifeline nor SIGTERM."""


@pytest.fixture
def news() -> AsyncNews:
    return AsyncNews()


class AsyncNews:
    """The inbox of one test."""

    def __init__(self) -> None:
        self.send, self.receive = anyio.create_memory_object_stream[News](100)

    def all(self) -> list[News]:
        told = []
        with contextlib.suppress(anyio.WouldBlock, anyio.EndOfStream):
            while True:
                told.append(self.receive.receive_nowait())
        return told


@contextlib.asynccontextmanager
async def held(logs: Path, news: AsyncNews) -> AsyncIterator[Processes]:
    with news.send, news.receive:
        async with processes(logs, news.send) as running:
            yield running


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def until_dead(pid: int, seconds: float = 10.0) -> bool:
    end = time.monotonic() + seconds
    while is_alive(pid):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


async def test_a_process_tells_what_it_says_and_then_that_it_ended(tmp_path: Path, news: AsyncNews) -> None:
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python('print(\'{"event": "hello"}\')'), stage=0)
        assert await child.says("hello") == {"event": "hello"}
        await running.until_gone(10)
        with anyio.fail_after(10):
            assert await news.receive.receive() == Said("worker", "hello", {"event": "hello"})
            assert await news.receive.receive() == Ended("worker", 0)


async def test_leaving_the_body_ends_an_obedient_process_in_good_order(
    tmp_path: Path, news: AsyncNews
) -> None:
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(OBEDIENT), stage=0)
        await child.says("up")
    assert child.process.returncode == 0


async def test_a_stubborn_process_is_killed_within_the_bounds(tmp_path: Path, news: AsyncNews) -> None:
    began = time.monotonic()
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(STUBBORN), stage=0)
        await child.says("up")
        began = time.monotonic()
    assert child.process.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 8


async def test_a_hurry_grants_no_grace(
    tmp_path: Path, news: AsyncNews, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes_module, "GRACE_SECONDS", 40.0)
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(STUBBORN), stage=0)
        await child.says("up")
        running.hurry()
        began = time.monotonic()
    assert child.process.returncode == -signal.SIGKILL
    assert time.monotonic() - began < 20


async def test_a_failure_in_the_body_ends_the_processes_and_stays_itself(
    tmp_path: Path, news: AsyncNews
) -> None:
    started = []

    async def fail() -> None:
        async with held(tmp_path, news) as running:
            started.append(await running.start_command("worker", python(OBEDIENT), stage=0))
            await started[0].says("up")
            raise UserError("no")

    with pytest.raises(UserError, match="no"):
        await fail()
    assert started[0].process.returncode == 0


async def test_cancellation_from_outside_still_ends_in_good_order(tmp_path: Path, news: AsyncNews) -> None:
    with anyio.CancelScope() as scope:
        async with held(tmp_path, news) as running:
            child = await running.start_command("worker", python(OBEDIENT), stage=0)
            await child.says("up")
            scope.cancel()
            await anyio.sleep_forever()
    assert child.process.returncode == 0


async def test_stages_end_from_the_highest_to_the_lowest(tmp_path: Path, news: AsyncNews) -> None:
    ends = tmp_path / "ends"
    code = OBEDIENT + f"; open({str(ends)!r}, 'a').write(sys.argv[1])"
    async with held(tmp_path, news) as running:
        for name, stage in (("a", 0), ("c", 2), ("b", 1)):
            child = await running.start_command(name, [*python(code), name], stage=stage)
            await child.says("up")
    assert ends.read_text() == "cba"


async def test_what_a_process_started_ends_with_it(tmp_path: Path, news: AsyncNews) -> None:
    code = (
        "import subprocess, sys\n"
        "p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        'print(\'{"event": "child", "pid": %d}\' % p.pid, flush=True)\n'
    )
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(code), stage=0)
        grandchild = (await child.says("child"))["pid"]
        assert await news.receive.receive() == Said("worker", "child", {"event": "child", "pid": grandchild})
        assert await news.receive.receive() == Ended("worker", 0)
        assert until_dead(grandchild)


async def test_waiting_for_a_word_that_never_comes_quotes_the_log(tmp_path: Path, news: AsyncNews) -> None:
    code = "import sys; print('what went wrong\\n\\n', file=sys.stderr); sys.exit(3)"
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(code), stage=0)
        with pytest.raises(UserError) as caught:
            await child.says("up")
    assert caught.value.message == "worker ended with exit code 3: what went wrong"
    assert caught.value.hint == f"its log is {tmp_path / 'worker.log'}"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("", ""),
        ("one\ntwo\n", "two"),
        ("consilium: no such file\n  make one\n", "no such file; make one"),
        ("  alone", "alone"),
        ("x" * 10_000 + "\nlast\n", "last"),
        ("caf\xe9", "caf\ufffd"),
    ],
)
async def test_the_last_words_are_those_of_the_log(
    tmp_path: Path, news: AsyncNews, log: str, words: str
) -> None:
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(OBEDIENT), stage=0)
        child.log.write_bytes(log.encode("latin-1"))
        assert running.last_words("worker") == words
        child.log.unlink()
        assert running.last_words("worker") == ""
        assert running.last_words("nobody") == ""


async def test_a_process_that_dies_without_a_word_is_said_to_give_no_reason(
    tmp_path: Path, news: AsyncNews
) -> None:
    async with held(tmp_path, news) as running:
        child = await running.start_command(
            "worker", python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), stage=0
        )
        with pytest.raises(UserError, match="worker was killed by SIGKILL: it gave no reason"):
            await child.says("up")


async def test_what_is_no_news_is_passed_over(tmp_path: Path, news: AsyncNews) -> None:
    code = (
        "print('plain words'); print('[1]'); print('{\"event\": 3}'); print('x' * 300_000);"
        ' print(); print(\'{"event": "real"}\')'
    )
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(code), stage=0)
        await child.says("real")
        await running.until_gone(10)
        told = news.all()
    assert [item.event for item in told if isinstance(item, Said)] == ["real"]


async def test_news_that_nobody_reads_any_more_hold_nothing_up(tmp_path: Path) -> None:
    send, receive = anyio.create_memory_object_stream[News](0)
    with send:
        async with processes(tmp_path, send) as running:
            child = await running.start_command("worker", python(OBEDIENT), stage=0)
            receive.close()
            await child.says("up")
    assert child.process.returncode == 0


async def test_a_log_is_its_owners_alone(tmp_path: Path, news: AsyncNews) -> None:
    async with held(tmp_path, news) as running:
        child = await running.start_command("worker", python(OBEDIENT), stage=0)
        assert stat.S_IMODE(child.log.stat().st_mode) == 0o600


async def test_a_log_that_cannot_be_written_is_a_sentence(tmp_path: Path, news: AsyncNews) -> None:
    with pytest.raises(UserError, match=r"nowhere/worker\.log cannot be written: No such file or directory"):
        async with held(tmp_path / "nowhere", news) as running:
            await running.start_command("worker", python(OBEDIENT), stage=0)


async def test_a_command_that_cannot_be_started_is_a_sentence(tmp_path: Path, news: AsyncNews) -> None:
    with pytest.raises(UserError, match="worker cannot be started: No such file or directory"):
        async with held(tmp_path, news) as running:
            await running.start_command("worker", [str(tmp_path / "nothing")], stage=0)


async def test_our_own_modules_are_started_whatever_the_folder_holds(
    tmp_path: Path, news: AsyncNews, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "consilium.py").write_text("raise SystemExit('hostile')")
    monkeypatch.chdir(tmp_path)
    async with held(tmp_path, news) as running:
        child = await running.start("worker", "consilium", "--version", stage=0)
        await running.until_gone(20)
    assert child.process.returncode == 0
    assert child.last_words() == ""


def test_a_process_ends_when_we_are_killed_without_warning(tmp_path: Path) -> None:
    code = f"""
import anyio, sys
from pathlib import Path
from council.processes import processes
async def main():
    send, receive = anyio.create_memory_object_stream(10)
    async with processes(Path({str(tmp_path)!r}), send) as running:
        child = await running.start_command("worker", [sys.executable, "-c", {OBEDIENT!r}], stage=0)
        await child.says("up")
        print(child.process.pid, flush=True)
        await anyio.sleep_forever()
anyio.run(main)
"""
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder.stdout:
        pid = int(holder.stdout.readline())
        assert is_alive(pid)
        os.kill(holder.pid, signal.SIGKILL)
        holder.wait()
    assert until_dead(pid)
