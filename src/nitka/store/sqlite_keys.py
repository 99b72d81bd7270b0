"""The file of wrapped keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import LiteralString

from nitka.store.port import Effort, KeyRow, RootRow
from nitka.store.sql import migrations, queries
from nitka.store.sqlite_file import SqliteFile
from nitka.types import Tag

K = queries("sqlite", "keys.sql")


class SqliteKeys:
    """Wrapped keys in a SQLite file of their own."""

    def __init__(self, path: str, *, wait: float) -> None:
        self.path = path
        self._file = SqliteFile(path, migrations("sqlite", "keys"), wait=wait)

    def open(self) -> None:
        self._file.open()

    def close(self) -> None:
        self._file.close()

    async def belong_to(self, store: bytes, *, adopt: bool) -> bytes | None:
        """The id of the store these keys belong to, which is `store` from now on if they have none and `adopt` says
        so.
        """

        def work(db: sqlite3.Connection) -> bytes | None:
            row = db.execute(K["store_id"]).fetchone()
            if row is not None:
                return row[0] if isinstance(row[0], bytes) else b""
            if adopt:
                db.execute(K["set_store_id"], (store,))
            return store if adopt else None

        return await self._file.write(work)

    async def store_id(self) -> bytes:
        return await self._file.read(lambda db: bytes(db.execute(K["store_id"]).fetchone()[0]))

    async def roots(self) -> Sequence[RootRow]:
        return await self._file.read(
            lambda db: [RootRow(root, bool(active), proof) for root, active, proof in db.execute(K["roots"])]
        )

    async def add_root(self, row: RootRow) -> None:
        def work(db: sqlite3.Connection) -> None:
            db.execute(K["add_root"], (row.root, row.active, row.proof))
            if row.active:
                db.execute(K["deactivate_others"], (row.root,))

        await self._file.write(work)

    async def retire_root(self, root: bytes) -> bool:
        def work(db: sqlite3.Connection) -> bool:
            if db.execute(K["in_use"], {"root": root}).fetchone():
                return False
            return db.execute(K["retire_root"], (root,)).rowcount == 1

        return await self._file.write(work)

    async def tag_key(self, tenant: Tag) -> KeyRow | None:
        return await self._one(K["tag_key"], tenant)

    async def add_tag_key(self, row: KeyRow) -> KeyRow | None:
        return await self._add(K["add_tag_key"], K["tag_key"], row)

    async def user_key(self, owner: bytes) -> KeyRow | None:
        return await self._one(K["user_key"], owner)

    async def add_user_key(self, row: KeyRow) -> KeyRow | None:
        return await self._add(K["add_user_key"], K["user_key"], row)

    async def remove_user_key(self, owner: bytes, incarnation: bytes) -> bool:
        return await self._file.write(lambda db: db.execute(K["remove_user_key"], (owner, incarnation)).rowcount == 1)

    async def wrapped_by(self, root: bytes, limit: int) -> Sequence[KeyRow]:
        def work(db: sqlite3.Connection) -> list[KeyRow]:
            rows = db.execute(K["tag_keys_of_root"], (root, limit)).fetchall()
            rows += db.execute(K["user_keys_of_root"], (root, limit - len(rows))).fetchall()
            return [KeyRow(*row) for row in rows]

        return await self._file.read(work)

    async def rewrap(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        def work(db: sqlite3.Connection) -> int:
            done = 0
            for old, new in rows:
                where = (new.root, new.wrapped, old.owner, old.incarnation, old.root)
                done += (
                    db.execute(K["rewrap_user_key"], where).rowcount or db.execute(K["rewrap_tag_key"], where).rowcount
                )
            return done

        return await self._file.write(work)

    async def scrub(self, effort: Effort = "short") -> bool:
        return await self._file.scrub(effort)

    async def _one(self, query: LiteralString, owner: bytes) -> KeyRow | None:
        def work(db: sqlite3.Connection) -> KeyRow | None:
            row = db.execute(query, (owner,)).fetchone()
            return KeyRow(*row) if row else None

        return await self._file.read(work)

    async def _add(self, insert: LiteralString, select: LiteralString, row: KeyRow) -> KeyRow | None:
        def work(db: sqlite3.Connection) -> KeyRow | None:
            found = db.execute(select, (row.owner,)).fetchone()
            if found is None:
                if not db.execute(K["is_active"], (row.root,)).fetchone():
                    return None
                db.execute(insert, (row.owner, row.incarnation, row.root, row.wrapped))
                found = db.execute(select, (row.owner,)).fetchone()
            return KeyRow(*found)

        return await self._file.write(work)
