"""What the tests with a real client ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clients.kit import CLIENTS, Client, each
from council.conformance.bench import Bench, Room
from council.conformance.provider.stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest_plugins = ("seat_fixtures",)


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A provider of ours."""
    with Stub() as running:
        yield running


@pytest.fixture(scope="module", params=each(CLIENTS))
def client(request: pytest.FixtureRequest) -> Client:
    """Each client in turn."""
    return CLIENTS[request.param]


@pytest.fixture(scope="module")
def bench(client: Client, tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A bench of each client: what is played there serves all tests of a module."""
    return client.bench(tmp_path_factory.mktemp(client.preset))


@pytest.fixture
def room(bench: Bench, stub: Stub, tmp_path: Path) -> Iterator[Room]:
    """A room for one test, in which nothing may be left."""
    room = Room(bench, stub, tmp_path)
    yield room
    assert room.traces.none_within(5), room.traces.running()
