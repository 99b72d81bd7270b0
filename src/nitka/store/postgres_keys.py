"""Wrapped keys in PostgreSQL: in a schema of their own, and, where a URL of their own is given, in another database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from nitka.store.port import Effort, KeyRow, RootRow
from nitka.store.postgres_migrate import migrate
from nitka.store.postgres_pool import Database, Transaction
from nitka.store.sql import migrations, queries
from nitka.types import Tag

K = queries("postgres", "keys.sql")


class PostgresKeys:
    """A pool of its own, since the keys may lie elsewhere."""

    def __init__(self, url: str, *, wait: float, size: int) -> None:
        self._keys = Database(url, wait=wait, size=size)

    @property
    def conninfo(self) -> str:
        """Where they lie; it may hold a password."""
        return self._keys.conninfo

    async def open(self) -> None:
        steps = migrations("postgres", "keys")
        await self._keys.open(lambda connection: migrate(connection, "nitka_keys", steps))

    async def close(self) -> None:
        await self._keys.close()

    async def belong_to(self, store: bytes, *, adopt: bool) -> bytes | None:
        """The id of the store these keys belong to, which is `store` from now on if they have none and `adopt` says
        so.
        """

        async def work(transaction: Transaction) -> bytes | None:
            if adopt:
                await transaction.run((K["set_store_id"], (store,)))
            row = await transaction.one(K["store_id"])
            return row[0] if row else None

        return await self._keys.write(work)

    async def store_id(self) -> bytes:
        rows = await self._read(K["store_id"])
        return bytes(rows[0][0])

    async def roots(self) -> Sequence[RootRow]:
        return [RootRow(*row) for row in await self._read(K["roots"])]

    async def add_root(self, row: RootRow) -> None:
        async def work(transaction: Transaction) -> None:
            others = [(K["deactivate_others"], (row.root,))] if row.active else []
            await transaction.end((K["lock_roots"], ()), (K["add_root"], (row.root, row.active, row.proof)), *others)

        await self._keys.write(work)

    async def retire_root(self, root: bytes) -> bool:
        async def work(transaction: Transaction) -> bool:
            _, used = await transaction.run((K["lock_roots"], ()), (K["in_use"], {"root": root}))
            if await used.fetchone():
                return False
            return (await transaction.end((K["retire_root"], (root,))))[0].rowcount == 1

        return await self._keys.write(work)

    async def tag_key(self, tenant: Tag) -> KeyRow | None:
        return await self._one(K["tag_key"], tenant)

    async def add_tag_key(self, row: KeyRow) -> KeyRow | None:
        return await self._add(K["add_tag_key"], K["tag_key"], row)

    async def user_key(self, owner: bytes) -> KeyRow | None:
        return await self._one(K["user_key"], owner)

    async def add_user_key(self, row: KeyRow) -> KeyRow | None:
        return await self._add(K["add_user_key"], K["user_key"], row)

    async def remove_user_key(self, owner: bytes, incarnation: bytes) -> bool:
        async def work(transaction: Transaction) -> bool:
            return (await transaction.end((K["remove_user_key"], (owner, incarnation))))[0].rowcount == 1

        return await self._keys.write(work)

    async def wrapped_by(self, root: bytes, limit: int) -> Sequence[KeyRow]:
        async def work(transaction: Transaction) -> list[KeyRow]:
            found = await transaction.end(
                (K["tag_keys_of_root"], (root, limit)), (K["user_keys_of_root"], (root, limit))
            )
            return [KeyRow(*row) for cursor in found for row in await cursor.fetchall()][:limit]

        return await self._keys.read(work)

    async def rewrap(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        async def work(transaction: Transaction) -> int:
            where = [(new.root, new.wrapped, old.owner, old.incarnation, old.root) for old, new in rows]
            both = [(K[query], params) for params in where for query in ("rewrap_user_key", "rewrap_tag_key")]
            return sum(cursor.rowcount for cursor in await transaction.end(*both))

        return await self._keys.write(work) if rows else 0

    async def scrub(self, effort: Effort = "short") -> bool:
        """True: nothing more can be done from here; see `PostgresStore.scrub`."""
        await self._read(K["store_id"])
        return True

    async def _read(self, query: LiteralString, *params: Any) -> list[tuple[Any, ...]]:
        async def work(transaction: Transaction) -> list[tuple[Any, ...]]:
            return await (await transaction.end((query, params)))[0].fetchall()

        return await self._keys.read(work)

    async def _one(self, query: LiteralString, owner: bytes) -> KeyRow | None:
        rows = await self._read(query, owner)
        return KeyRow(*rows[0]) if rows else None

    async def _add(self, insert: LiteralString, select: LiteralString, row: KeyRow) -> KeyRow | None:
        async def work(transaction: Transaction) -> KeyRow | None:
            active, found = await transaction.run((K["is_active"], (row.root,)), (select, (row.owner,)))
            standing = await found.fetchone()
            while standing is None:  # somebody may remove it between the two
                if not await active.fetchone():
                    return None
                new = (insert, (row.owner, row.incarnation, row.root, row.wrapped))
                active, _, found = await transaction.run((K["is_active"], (row.root,)), new, (select, (row.owner,)))
                standing = await found.fetchone()
            return KeyRow(*standing)

        return await self._keys.write(work)
