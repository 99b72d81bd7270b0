"""Half of an embedded store as `transfer` reads and writes it: one file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from urllib.parse import quote

from nitka.errors import StoreError
from nitka.store.sqlite_file import PRAGMAS, explain
from nitka.store.transfer import CHUNK, Reading, Rows, Writing


class SqliteSide:
    """Names of tables and columns are those of `transfer`, never a caller's."""

    def __init__(self, path: str, *, wait: float) -> None:
        self._path = path
        self._wait = wait

    @contextmanager
    def reading(self) -> Iterator[Reading]:
        with self._connected("ro") as db:
            db.execute("begin")
            db.execute("select count(*) from sqlite_master").fetchone()  # the snapshot begins here
            yield _Reading(db)

    @contextmanager
    def writing(self) -> Iterator[Writing]:
        with self._connected("rw") as db:
            for pragma in PRAGMAS:
                db.execute(f"pragma {pragma}")
            db.execute("begin immediate")
            yield _Writing(db)
            db.execute("commit")

    @contextmanager
    def _connected(self, mode: str) -> Iterator[sqlite3.Connection]:
        try:
            address = f"file:{quote(self._path)}?mode={mode}"
            with closing(sqlite3.connect(address, uri=True, isolation_level=None, timeout=self._wait)) as db:
                yield db
        except sqlite3.Error as error:
            raise explain(error) from error
        except (OverflowError, UnicodeError) as error:
            raise StoreError("The source holds a value that the target cannot keep.") from error


class _Reading:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Rows]:
        cursor = self._db.execute(f"select {', '.join(columns)} from {table}")
        while chunk := cursor.fetchmany(CHUNK):
            yield chunk


class _Writing:
    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def is_empty(self, table: str) -> bool:
        return self._db.execute(f"select 1 from {table} limit 1").fetchone() is None

    def clear(self, table: str) -> None:
        self._db.execute(f"delete from {table}")

    def put(self, table: str, columns: Sequence[str], chunks: Iterator[Rows]) -> None:
        places = ", ".join("?" * len(columns))
        for chunk in chunks:
            self._db.executemany(f"insert into {table} ({', '.join(columns)}) values ({places})", chunk)
