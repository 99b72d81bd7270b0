"""The stores that keep the contract. A new store is added to `STORES` and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from nitka.store.port import Store
from nitka.store.postgres import PostgresStore
from nitka.store.sqlite import SqliteStore
from nitka.testing import MemoryStore
from tests.contract.databases import Databases, server

STORES: dict[str, Callable[[pytest.FixtureRequest, Path], Store]] = {
    "memory": lambda request, folder: MemoryStore(),
    "sqlite": lambda request, folder: SqliteStore(str(folder / "nitka.db")),
    "postgres": lambda request, folder: postgres_store(request.getfixturevalue("databases")),
}


def postgres_store(databases: Databases) -> PostgresStore:
    """On a database without rows. The tests say what time it is."""
    return PostgresStore(databases.shared(), wait=5, database_clock=False)


@pytest.fixture(params=sorted(STORES))
async def store(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> AsyncIterator[Store]:
    """A started store, once for each kind."""
    made = STORES[request.param](request, tmp_path)
    await made.start()
    yield made
    await made.close()


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Fresh databases; skips where there is no server."""
    with server() as made:
        yield made
