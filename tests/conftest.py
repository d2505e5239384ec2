"""What every test may ask for."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes to be made says how busy the machine is, and nothing about ours.
settings.register_profile("consilium", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("consilium")


@pytest.fixture
def anyio_backend() -> str:
    """Run the async tests on asyncio, as the product does."""
    return "asyncio"
