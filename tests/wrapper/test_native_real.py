"""`wrapper.adapters.native` with the real `llm` and the real embedded model; and the stand-in beside them."""

from __future__ import annotations

import itertools
import json
import sys
from typing import TYPE_CHECKING

import anyio
import pytest
from leftovers import VARIABLE, Leftovers
from standin_seat import BOUNDS, SYSTEM, chat_of, seat_maker

from consilium.errors import AdapterFault
from consilium.messages import Fault, PromptSent
from wrapper import sandbox
from wrapper.adapters.native import NativeAdapter
from wrapper.adapters.presets import load_preset
from wrapper.sandbox import Bounds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    Said = tuple[int | None, list[str], list[str]]

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.now() == []


@pytest.fixture
async def model_url(leftovers: Leftovers) -> AsyncIterator[str]:
    """The embedded model's server, for as long as the test runs."""
    server = await anyio.open_process(
        [sys.executable, "-P", "-m", "council.model", "--lifeline"], env=leftovers.env, stderr=None
    )
    assert server.stdin is not None
    assert server.stdout is not None
    try:
        with anyio.fail_after(60):
            ready = json.loads(await server.stdout.receive())
        yield ready["url"]
    finally:
        await server.stdin.aclose()
        with anyio.move_on_after(10):
            await server.wait()
        await server.aclose()


async def test_the_real_client_carries_its_chat_over_turns_failures_and_a_new_wrapper(
    model_url: str, leftovers: Leftovers, tmp_path: Path
) -> None:
    def seat(url: str = model_url) -> NativeAdapter:
        return NativeAdapter(
            load_preset("llm"),
            {"api_base": url, "max_tokens": "12"},
            tmp_path / "seat",
            environment=leftovers.env,
            bounds=Bounds(overall=50),
            passed=(VARIABLE,),
        )

    adapter = seat()
    assert (await adapter.version()).startswith("0.")
    await adapter.open(SYSTEM)
    first = await adapter.send_turn("Name one fruit.\n")
    kept = chat_of(tmp_path / "seat")
    with anyio.move_on_after(1.0):
        await adapter.send_turn("This turn is revoked. " * 40)
    await adapter.close()

    unreachable = seat("http://127.0.0.1:1/v1")
    await unreachable.open(SYSTEM)
    with pytest.raises(AdapterFault) as raised:
        await unreachable.send_turn("This one never arrives.")
    await unreachable.close()
    fault = raised.value
    assert (fault.fault, fault.prompt_sent) == (Fault.CLIENT_ERROR, PromptSent.MAYBE)
    assert fault.detail == "llm ended with exit code 1: Error: Connection error."

    adapter = seat()
    await adapter.open(SYSTEM)
    assert not adapter.memory_lost
    second = await adapter.send_turn("Name another.")
    third = await adapter.send_turn("And a third.")
    await adapter.close()

    assert chat_of(tmp_path / "seat")["id"] == kept["id"]
    usages = [answer.usage for answer in (first, second, third)]
    counted = [(usage.tokens_in or 0, usage.tokens_out or 0) for usage in usages if usage is not None]
    # Each turn's input is the whole chat so far: the one before, its answer, and the new prompt. That of the
    # revoked turn would show, had it stayed in the chat.
    for (before_in, before_out), (now_in, _) in itertools.pairwise(counted):
        assert before_in + before_out < now_in < before_in + before_out + 40
    assert {usage.model for usage in usages if usage is not None} == {"SmolLM2-135M-Instruct"}
    assert all(0 < out <= 12 for _, out in counted)


async def test_the_stand_in_speaks_the_dialect_of_the_real_client(
    model_url: str, leftovers: Leftovers, tmp_path: Path
) -> None:
    async def says(adapter: NativeAdapter, *argv: str) -> Said:
        command = sandbox.Command(argv=("llm", *argv), env=adapter._env, cwd=tmp_path, stdin=b"hello")
        done = await sandbox.run(command, BOUNDS)
        fields = sorted(json.loads(done.stdout)[0]) if done.stdout.startswith(b"[") else []
        return done.returncode, fields, done.stderr.decode().splitlines()[-1:]

    make = seat_maker(leftovers, tmp_path)
    dialects: list[list[Said]] = []
    for environment in (None, leftovers.env):
        adapter = make(
            f"seat{len(dialects)}",
            settings={"api_base": model_url, "max_tokens": "3"},
            **({"environment": environment} if environment else {}),
        )
        await adapter.open(SYSTEM)
        common = ("prompt", "-m", "seat", "--json")
        dialects.append(
            [
                await says(adapter, *adapter._call.arguments(None, None)),
                await says(adapter, *common, "--cid", "01nowhere"),
                await says(adapter, *common, "--nonsense"),
            ]
        )
        await adapter.close()
    stand_in, real = dialects
    assert stand_in[0] == real[0]
    assert stand_in[1] == real[1]
    assert [said[0] for said in stand_in] == [said[0] for said in real] == [0, 1, 2]
    assert "No such option" in stand_in[2][2][0]
    assert "No such option" in real[2][2][0]
