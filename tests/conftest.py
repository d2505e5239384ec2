"""What every test may ask for, and what holds for all."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from collections.abc import Iterator

# How long an example takes to be made says how busy the machine is, and nothing about ours.
settings.register_profile("consilium", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("consilium")


@pytest.fixture
def anyio_backend() -> str:
    """Run the async tests on asyncio, as the product does."""
    return "asyncio"


@pytest.fixture(scope="session", autouse=True)
def _no_waiting_for_the_platter() -> Iterator[None]:
    """Have this process ask no disk to be safe from a power failure: no test has one.

    To wait for that, some fifty times a test, was a good part of a run. What is killed loses nothing that it
    has written; whether, and in which order, syncs are asked for is tested with disks that note it. Processes
    that a test starts sync as ever.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in ("fsync", "fdatasync"):
            patch.setattr(os, name, _checked)
        yield


def _checked(descriptor: int) -> None:
    """Fail as a sync of what is not open would."""
    os.fstat(descriptor)
