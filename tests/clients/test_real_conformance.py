"""What `consilium conformance` says of the presets that come along: every check, for every client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients.kit import Client
from consilium.messages import PromptSent
from council.conformance.bench import Bench, Room
from council.conformance.checks import CHECKS, Check, Outcome, Result, perform
from council.conformance.provider.script import seen

if TYPE_CHECKING:
    from collections.abc import Callable

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(400)]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
async def test_every_preset_passes(bench: Bench, client: Client, check: Check) -> None:
    result = await perform(bench, check)
    applies = check.name not in client.not_applicable
    assert (result.outcome is not Outcome.NOT_APPLICABLE) == applies, result.why
    assert result.outcome is not Outcome.FAILED, result.why
    if applies and check.name in MORE:
        MORE[check.name](client, bench, result)


def version(client: Client, bench: Bench, result: Result) -> None:
    assert result.saw["version"] == bench.preset.version.known_good


def faults(client: Client, bench: Bench, result: Result) -> None:
    assert result.saw.keys() == client.words.keys()
    assert not [act for act, words in client.words.items() if words not in result.saw[act]], result.saw


def key(client: Client, bench: Bench, result: Result) -> None:
    assert client.no_key in result.saw["no-key"]


def commands(client: Client, bench: Bench, result: Result) -> None:
    assert set(result.saw.values()) == ({client.leaves_out} if client.leaves_out else set())


def tools(client: Client, bench: Bench, result: Result) -> None:
    assert int(result.saw["tools"]) > 5


def controls(client: Client, bench: Bench, result: Result) -> None:
    assert client.splits_sequences or result.saw["controls"] == "ared  desrever\n\nend"


PRICE = {"in": 5e-6, "out": 25e-6, "written": 6.25e-6, "read": 0.5e-6}
"""What a token of the model that claude is tried with costs by the client's own list, in dollars."""


def dollars(client: Client, bench: Bench, result: Result) -> None:
    if client.preset == "claude":
        fixed = 7 * PRICE["written"] + 11 * PRICE["read"] + 13 * PRICE["out"]
        expected = [fresh * PRICE["in"] + fixed for fresh in (101, 102, 103)]
        assert [float(one) for one in result.saw["usd"].split()] == pytest.approx(expected, abs=1e-9)
    else:
        assert result.saw == {}


MORE: dict[str, Callable[[Client, Bench, Result], None]] = {
    "version-is-known": version,
    "failures-are-told": faults,
    "missing-key-is-said": key,
    "native-is-the-harness": tools,
    "commands-are-text": commands,
    "controls-are-taken-out": controls,
    "usage-is-the-turns-own": dollars,
}
"""What is expected of a single client beyond the check."""


async def test_a_provider_that_recovers_is_answered_after_all(client: Client, room: Room) -> None:
    room.provider.will("529", "answer")
    async with room.seated() as seat:
        if not client.tries_again:
            assert (await seat.fail("hello")).failed.prompt_sent is PromptSent.YES
            assert len(room.provider.turns) == 1
        assert (await seat.answer("hello")).answered.text == seen(1, "hello")
    assert [turn.prompts for turn in room.provider.turns] == [room.provider.turns[0].prompts] * 2
