"""Killed at any moment and at any byte: what was acknowledged is there, and the next Arbiter goes on."""

from __future__ import annotations

import random  # noqa: TID251 - its seed is the test's own parameter
from typing import TYPE_CHECKING

import anyio
import pytest
import transcripts
from journals import again, content, inspected, start
from mortal import mortals

from consilium.records import EventName, digest
from consilium.transcript import head_path

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from mortal import Life

    from arbiter.recovery import Recovered
    from consilium.records import AnyEntry

LIVES_OF_ONE_TRANSCRIPT = 8


# --- at any moment -----------------------------------------------------------------------------------


def wait_for_the_moment(life: Life, chance: random.Random) -> None:
    """Let it live: not beyond its beginning, or some records long."""
    if chance.random() < 0.3:
        life.listen(chance.uniform(0, 0.02))
        return
    wanted = chance.randint(1, 12)
    while len(life.acknowledged) < wanted:
        life.listen(0.001)
    life.listen(chance.uniform(0, 0.006))


async def take_up(path: Path, acknowledged: Sequence[tuple[int, str]]) -> Recovered:
    """Go on after a kill; check that nothing acknowledged is missing, and that the end is whole."""
    before = content(path)
    whole = before[: before.rfind(b"\n") + 1]
    hashes = [digest(line) for line in whole.splitlines()]
    for count, last in acknowledged:
        assert hashes[count - 1] == last
    journal, recovered = again(path)
    assert content(path) == whole
    assert journal.count == len(hashes)
    assert (recovered.dropped is not None) == (before != whole)
    more: list[AnyEntry] = [] if recovered.header else [transcripts.header()]
    await journal.append_durably([*more, transcripts.turn(10**6)])
    await journal.close()
    assert inspected(path).findings == ()
    return recovered


def kill(folder: Path, seed: int, kills: int) -> int:
    """Kill so many writers; return how many of them left a torn line."""
    chance = random.Random(seed)
    torn = 0
    with mortals() as mortal:
        for number in range(kills):
            path = folder / f"debate-{number // LIVES_OF_ONE_TRANSCRIPT}.jsonl"
            with mortal(path, f"{seed}-{number}") as life:
                wait_for_the_moment(life, chance)
            if not path.exists():
                assert life.acknowledged == []
                continue
            recovered = anyio.run(take_up, path, life.acknowledged)
            torn += recovered.dropped is not None
    return torn


def test_what_was_acknowledged_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    kill(tmp_path, seed=0, kills=16)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 11))
def test_what_was_acknowledged_survives_many_kills(tmp_path: Path, seed: int) -> None:
    kill(tmp_path, seed, kills=40)


# --- at any byte -------------------------------------------------------------------------------------

FIRST: list[AnyEntry] = [transcripts.header(), transcripts.event(EventName.DEBATE_STARTED)]
LAST: list[AnyEntry] = [
    transcripts.event(EventName.MODERATOR_STEERING, text="é\n😀"),
    transcripts.event(EventName.ROUND_COMPLETED, round=1),
    transcripts.event(EventName.DEBATE_PAUSED),
]


def put(path: Path, data: bytes) -> None:
    path.write_bytes(data)


async def written(path: Path) -> tuple[bytes, bytes, bytes]:
    """Write FIRST and LAST: the bytes of each, and the head that stood between them."""
    journal = start(path)
    await journal.append_durably(FIRST)
    await journal.seal_head()
    first, head = content(path), content(head_path(path))
    await journal.append_durably(LAST)
    await journal.close()
    return first, content(path)[len(first) :], head


async def goes_on(path: Path, data: bytes) -> None:
    """The next Arbiter finds the whole lines of ``data``, and writes what is missing of the rest."""
    put(path, data)
    entries = [*FIRST, *LAST]
    whole = data[: data.rfind(b"\n") + 1]
    journal, recovered = again(path, sync=False)
    assert content(path) == whole
    assert journal.count == whole.count(b"\n")
    assert (recovered.dropped is not None) == (data != whole)
    told = [recovered.header, *(entry for _, entry in recovered.told)] if recovered.header else []
    assert told == entries[: journal.count]
    await journal.append_durably(entries[journal.count :])
    await journal.close()
    assert inspected(path).findings == ()


@pytest.mark.parametrize("filled", [False, True], ids=["cut", "filled with NUL"])
def test_a_write_may_be_cut_at_any_byte(tmp_path: Path, filled: bool) -> None:
    path = tmp_path / "debate.jsonl"

    async def run() -> None:
        first, last, head = await written(path)
        for length in range(len(last) + 1):
            put(head_path(path), head)
            rest = b"\0" * (len(last) - length) if filled else b""
            await goes_on(path, first + last[:length] + rest)

    anyio.run(run)


@pytest.mark.parametrize("filled", [False, True], ids=["cut", "filled with NUL"])
def test_the_very_first_write_may_be_cut_at_any_byte(tmp_path: Path, filled: bool) -> None:
    path = tmp_path / "debate.jsonl"

    async def run() -> None:
        first, _, _ = await written(path)
        for length in range(len(first) + 1):
            head_path(path).unlink()
            rest = b"\0" * (len(first) - length) if filled else b""
            await goes_on(path, first[:length] + rest)

    anyio.run(run)
