"""Half of a store in PostgreSQL as `transfer` reads and writes it: one schema."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg
from psycopg import IsolationLevel, sql

from nitka.errors import StoreError
from nitka.store.postgres_pool import explain
from nitka.store.transfer import CHUNK, Reading, Rows, Writing

Connection = psycopg.Connection[tuple[Any, ...]]


class PostgresSide:
    """Rows come through a cursor of the server, and go in by COPY."""

    def __init__(self, conninfo: str, schema: str) -> None:
        self._conninfo = conninfo
        self._schema = schema

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self._connected() as db:
            db.isolation_level = IsolationLevel.REPEATABLE_READ
            db.read_only = True
            db.execute("select 1 from pg_class limit 1")  # the snapshot begins here
            yield _Reading(db, self._schema)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        with self._connected() as db:
            yield _Writing(db, self._schema)

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        try:
            with psycopg.connect(self._conninfo) as db:
                yield db
        except psycopg.DataError as error:
            raise StoreError("The source holds a value that the target cannot keep.") from error
        except psycopg.Error as error:
            raise explain(error) from error


class _Reading:
    def __init__(self, db: Connection, schema: str) -> None:
        self._db = db
        self._schema = schema

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Rows]:
        with self._db.cursor(name="moving") as cursor:
            cursor.execute(_with_names("select {columns} from {table}", self._schema, table, columns), binary=True)
            while chunk := cursor.fetchmany(CHUNK):
                yield chunk


class _Writing:
    def __init__(self, db: Connection, schema: str) -> None:
        self._db = db
        self._schema = schema

    def is_empty(self, table: str) -> bool:
        found = self._db.execute(_with_names("select 1 from {table} limit 1", self._schema, table))
        return found.fetchone() is None

    def clear(self, table: str) -> None:
        self._db.execute(_with_names("delete from {table}", self._schema, table))

    def put(self, table: str, columns: Sequence[str], chunks: Iterator[Rows]) -> None:
        query = _with_names("copy {table} ({columns}) from stdin", self._schema, table, columns)
        with self._db.cursor() as cursor, cursor.copy(query) as copying:
            for chunk in chunks:
                for row in chunk:
                    copying.write_row(row)


def _with_names(query: LiteralString, schema: str, table: str, columns: Sequence[str] = ()) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    return sql.SQL(query).format(table=sql.Identifier(schema, table), columns=names)
