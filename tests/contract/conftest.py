"""The stores that keep the contract. A new store is added to `STORES` and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore
from nitka.testing import MemoryStore

STORES: dict[str, Callable[[Path], Store]] = {
    "memory": lambda folder: MemoryStore(),
    "sqlite": lambda folder: SqliteStore(str(folder / "nitka.db")),
}


@pytest.fixture(params=sorted(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Store]:
    """A started store, once for each kind."""
    made = STORES[request.param](tmp_path)
    await made.start()
    yield made
    await made.close()
