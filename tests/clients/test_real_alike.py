"""Presets of a client that has another preset already: the same program before another provider."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from leftovers import Leftovers

from clients.kit import ALIKE, SYSTEM, Seats
from consilium.errors import AdapterFault
from council.conformance.provider.script import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from council.conformance.provider.stub import Stub

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(300)]


@pytest.fixture(params=sorted(ALIKE))
def seats(request: pytest.FixtureRequest, stub: Stub, tmp_path: Path, leftovers: Leftovers) -> Seats:
    """Seats of each of them in turn."""
    return Seats(ALIKE[request.param], stub, tmp_path, leftovers)


async def test_deepseek_is_asked_for_its_model_with_its_key_in_one_chat(seats: Seats, stub: Stub) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    await adapter.send_turn("first")
    with pytest.raises(AdapterFault):
        await adapter.send_turn("<<cut>>")
    await adapter.close()
    again = seats.make()
    await again.open(SYSTEM)
    told = await again.send_turn("second")
    await again.close()

    assert told.text == "I have seen 2 user messages; last: second"
    assert told.usage is not None
    assert (told.usage.tokens_in, told.usage.tokens_out, told.usage.tokens_cached) == (113, 13, 11)
    assert len(stub.requests) == 3
    for request, turn in zip(stub.requests, stub.turns, strict=True):
        assert request.path == "/chat/completions"
        assert request.headers["authorization"] == f"Bearer {KEY}"
        assert turn.model == "deepseek-chat"
        assert turn.tools == ()
        assert SYSTEM in turn.system
    assert [text.strip() for text in stub.turns[-1].prompts] == ["first", "second"]


@pytest.mark.parametrize("act", ["401", "quota"])
async def test_a_fault_of_the_provider_is_told_as_what_it_is(seats: Seats, act: str) -> None:
    adapter = seats.make()
    await adapter.open(SYSTEM)
    with pytest.raises(AdapterFault) as raised:
        await adapter.send_turn(f"<<{act}>>")
    await adapter.close()
    kind, sent, words = seats.client.faults[act]
    assert (raised.value.fault, raised.value.prompt_sent) == (kind, sent), raised.value.detail
    assert words in raised.value.detail


async def test_without_a_key_nothing_is_sent(seats: Seats, stub: Stub) -> None:
    adapter = seats.make(passed=())
    await adapter.open(SYSTEM)
    with pytest.raises(AdapterFault, match="there is no key for http://127"):
        await adapter.send_turn("hello")
    await adapter.close()
    assert stub.requests == []
