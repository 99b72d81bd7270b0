"""Fresh databases for tests: on a private server, or on the one that `NITKA_TEST_POSTGRES` names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from tests.contract.cluster import FAST, binaries, new_cluster

WHY = "no PostgreSQL server is installed (none found by pg_config), and NITKA_TEST_POSTGRES names none"


TABLES = """
select oid::regclass::text from pg_class
where relnamespace::regnamespace::text in ('nitka', 'nitka_keys') and relkind in ('r', 'p') and not relispartition
"""


class Databases:
    """Makes databases on one server and removes them in the end. `shared` is one for tests that need no new schema."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._numbers = count()
        self._made: list[str] = []
        self._shared = ""
        self._broom: psycopg.Connection[Any] | None = None

    def shared(self) -> str:
        """The URL of a database that holds no rows. One connection empties it each time: what PostgreSQL learns of a
        hundred partitions it learns for one connection.
        """
        if self._broom is None:
            self._shared = self.new()
            self._broom = psycopg.connect(self._shared, autocommit=True)
        with self._broom.transaction():
            for (table,) in self._broom.execute(TABLES).fetchall():
                self._broom.execute(f"delete from {table}")
        return self._shared

    def new(self) -> str:
        """The URL of a new database."""
        name = f"nitka_test_{os.getpid()}_{next(self._numbers)}"
        self._execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
        self._made.append(name)
        return make_conninfo(self._url, dbname=name)

    def close(self) -> None:
        """Lets go of the server; what was made stays."""
        if self._broom is not None:
            self._broom.close()

    def drop(self) -> None:
        """Removes what was made."""
        for name in self._made:
            self._execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(statement)


@contextmanager
def server() -> Iterator[Databases]:
    """Skips the test, with the reason, where there is no server."""
    named = os.environ.get("NITKA_TEST_POSTGRES")
    if named:
        databases = Databases(named)
        yield databases
        databases.close()
        databases.drop()
        return
    found = binaries()
    if found is None:
        pytest.skip(WHY)
    with new_cluster(found) as cluster:
        cluster.init()
        cluster.start(**FAST)
        databases = Databases(cluster.url())
        yield databases
        databases.close()
