"""Short ways to a store in PostgreSQL and to its tables, for tests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg

from nitka.store.postgres import PostgresStore


@asynccontextmanager
async def opened(url: str, **more: Any) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(url, **{"wait": 5, **more})
    await store.start()
    try:
        yield store
    finally:
        await store.close()


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    return psycopg.connect(url, autocommit=True, prepare_threshold=None)
