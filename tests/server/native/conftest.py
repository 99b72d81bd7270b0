from collections.abc import AsyncIterator

import pytest

from tests.server.native.house import House, housed


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """A server, and a key that may do everything for one tenant."""
    async with housed() as running:
        yield running
