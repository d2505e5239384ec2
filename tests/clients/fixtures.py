"""What every test with a real client asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from leftovers import Leftovers

from clients.kit import CLIENTS, SYSTEM, Seats
from council.conformance.provider.stub import Stub

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from wrapper.adapters.native import NativeAdapter


@pytest.fixture
def stub() -> Iterator[Stub]:
    """A provider of ours."""
    with Stub() as running:
        yield running


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.none_within(5), seen.now()


@pytest.fixture(params=sorted(CLIENTS))
def seats(request: pytest.FixtureRequest, stub: Stub, tmp_path: Path, leftovers: Leftovers) -> Seats:
    """Seats of each client in turn."""
    return Seats(CLIENTS[request.param], stub, tmp_path, leftovers)


@pytest.fixture
async def seat(seats: Seats) -> AsyncIterator[NativeAdapter]:
    """An open seat in the restricted profile."""
    adapter = seats.make()
    await adapter.open(SYSTEM)
    yield adapter
    await adapter.close()
