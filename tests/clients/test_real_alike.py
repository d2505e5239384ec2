"""Presets of a client that has another preset already: the same program before another provider."""

from __future__ import annotations

import pytest

from clients.kit import ALIKE, Client, each
from council.conformance.bench import SYSTEM, Bench, Room
from council.conformance.checks import CHECKS, Check, Outcome, perform
from council.conformance.failures import TOLD
from council.conformance.provider.script import KEY
from council.conformance.verdicts import need_fault

pytest_plugins = ("clients.fixtures",)
pytestmark = [pytest.mark.anyio, pytest.mark.clients, pytest.mark.timeout(400)]

WHAT_DIFFERS = (
    "three-turns-are-one-chat",
    "id-is-kept-after-success-only",
    "system-prompt-is-sent",
    "nothing-else-is-asked",
    "usage-is-the-turns-own",
    "restricted-has-no-tools",
    "missing-key-is-said",
)


@pytest.fixture(scope="module", params=each(ALIKE))
def client(request: pytest.FixtureRequest) -> Client:
    """Each of them in turn."""
    return ALIKE[request.param]


@pytest.fixture(scope="module")
def bench(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench of each."""
    return client.bench(tmp_path_factory.mktemp(client.preset))


@pytest.mark.parametrize(
    "check", [check for check in CHECKS if check.name in WHAT_DIFFERS], ids=lambda check: check.name
)
async def test_what_its_preset_says_otherwise_is_so(bench: Bench, check: Check) -> None:
    result = await perform(bench, check)
    assert result.outcome is Outcome.PASSED, result.why


@pytest.mark.parametrize("client", ["deepseek.coder"], indirect=True)
async def test_deepseek_is_asked_for_its_model_with_its_key(room: Room, client: Client) -> None:
    async with room.seated() as seat:
        await seat.answer("first")
        for act in ("401", "quota"):
            fault = need_fault(await seat.fail(f"<<{act}>>"), *TOLD[act])
            assert client.words[act] in fault.detail
    (request, *_), (turn, *_) = room.provider.requests, room.provider.turns
    assert request.path == "/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert turn.model == "deepseek-chat"
    assert SYSTEM in turn.system
