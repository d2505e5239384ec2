"""What tests of a client's seat ask for; a plug-in: ``pytest_plugins = ("seat_fixtures",)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from leftovers import Leftovers
from standin_seat import SYSTEM

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from standin_seat import Make

    from wrapper.adapters.native import NativeAdapter


@pytest.fixture
def leftovers() -> Iterator[Leftovers]:
    """Fail the test that leaves a process."""
    seen = Leftovers()
    yield seen
    assert seen.none_within(5), seen.now()


@pytest.fixture
async def seat(make: Make) -> AsyncIterator[NativeAdapter]:
    """An open seat, of the kind that the module's own ``make`` makes."""
    adapter = make()
    await adapter.open(SYSTEM)
    yield adapter
    await adapter.close()
