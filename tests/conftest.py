"""What every test may ask for."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run the async tests on asyncio, as the product does."""
    return "asyncio"
