"""The embedded store: two SQLite files, one for the log and the folds, one for the wrapped keys."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Sequence
from dataclasses import replace

from nitka.errors import Forgotten, KeyMissing, StoreError
from nitka.store.port import (
    Change,
    Effort,
    Locked,
    Look,
    Scope,
    SessionRow,
    Step,
    View,
    Went,
    refuse_unsound,
    refuse_unsound_erasure,
)
from nitka.store.sql import migrations
from nitka.store.sqlite_directory import D, SqliteDirectory
from nitka.store.sqlite_file import SqliteFile
from nitka.store.sqlite_keys import SqliteKeys
from nitka.store.sqlite_rows import (
    Q,
    apply,
    apply_person,
    erase_owner,
    erase_session,
    lock,
    read_session,
    session_row,
    view,
)
from nitka.store.sqlite_transfer import SqliteSide
from nitka.store.transfer import Side
from nitka.types import Tag
from nitka.world import random_bytes

LOST_KEYS = "The file of wrapped keys that belongs to this database is missing; restore it beside the database."


class SqliteStore(SqliteDirectory):
    """A store in the file `path`; the wrapped keys lie in `keys_path`, by default `path` with ".keys" after it."""

    keys_apart = True

    def __init__(self, path: str, *, keys_path: str | None = None, wait: float = 10.0) -> None:
        self._wait = wait
        self._file = SqliteFile(path, migrations("sqlite", "data"), wait=wait)
        self.keys = SqliteKeys(keys_path or path + ".keys", wait=wait)

    @property
    def paths(self) -> tuple[str, str]:
        """The file of the data and the file of the keys."""
        return self._file.path, self.keys.path

    def sides(self) -> tuple[Side, Side]:
        """Data and keys, to be moved to another store."""
        return SqliteSide(self._file.path, wait=self._wait), SqliteSide(self.keys.path, wait=self._wait)

    async def start(self) -> None:
        await asyncio.to_thread(self._file.open)
        try:
            await self._same_store()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await asyncio.to_thread(self._file.close)
        await asyncio.to_thread(self.keys.close)

    async def _same_store(self) -> None:
        """Both files carry the same random id: keys of another store would open nothing, and new ones would hide
        that the old are lost.
        """

        def identify(db: sqlite3.Connection) -> tuple[bytes, bool]:
            row = db.execute(D["store_id"]).fetchone()
            if row is None:
                row = (random_bytes(16),)
                db.execute(D["set_store_id"], row)
            return row[0], db.execute(D["any_owner"]).fetchone() is not None

        store, used = await self._file.write(identify)
        if used and not os.path.exists(self.keys.path):
            raise KeyMissing(LOST_KEYS)
        await asyncio.to_thread(self.keys.open)
        theirs = await self.keys.belong_to(store, adopt=not used)
        if theirs is None:
            raise KeyMissing(LOST_KEYS)
        if theirs != store:
            raise StoreError("The file of wrapped keys belongs to another database.")

    async def view(self, look: Look) -> View:
        return await self._file.read(lambda db: view(db, look))

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        def work(db: sqlite3.Connection) -> list[SessionRow]:
            return [session_row(row) for row in db.execute(Q["sessions"], (owner, after or b"", limit))]

        return await self._file.read(work)

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        def work(db: sqlite3.Connection) -> SessionRow | None:
            row = db.execute(Q["owner"], (owner,)).fetchone()
            if row is not None and row[0] != incarnation:
                raise Forgotten("The user.")
            if row is None:
                db.execute(Q["add_owner"], (owner, incarnation))
            if session is None:
                return None
            db.execute(Q["add_session"], (owner, session.session, session.incarnation, session.head, session.body))
            return read_session(db, owner, session.session)

        return await self._file.write(work)

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        def work(db: sqlite3.Connection) -> tuple[Locked, Change | None]:
            locked = lock(db, scope)
            change = step(locked)
            if change is not None:
                refuse_unsound(scope, locked, change)
                apply(db, scope, locked, change)
            return locked, change

        return await self._file.write(work)

    async def erase_session(self, scope: Scope, step: Step) -> Went | None:
        def work(db: sqlite3.Connection) -> Went | None:
            change = step(lock(db, scope))
            if change is None:
                return None
            refuse_unsound_erasure(scope, change)
            went, dropped = erase_session(db, scope.owner, scope.session), apply_person(db, scope.owner, change)
            return replace(went, folds=went.folds + dropped.folds, pieces=dropped.pieces)

        return await self._file.write(work)

    async def erase_owner(self, owner: bytes, incarnation: bytes, *, still: tuple[Look, View] | None = None) -> Went:
        def work(db: sqlite3.Connection) -> Went:
            row = db.execute(Q["owner"], (owner,)).fetchone()
            here = row is not None and row[0] == incarnation
            return erase_owner(db, owner) if here and (still is None or view(db, still[0]) == still[1]) else Went()

        return await self._file.write(work)

    async def scrub(self, effort: Effort = "short") -> bool:
        return await self._file.scrub(effort)
