"""What the store in PostgreSQL keeps beside the content: due work, unfinished erasures, handles, keys of the server,
the outbox, the day's spending.

Leases are counted by the database's clock, so that machines whose clocks differ do not take each other's work. A caller
says times by its own clock; each lease notes by how much the two differ, and what is put back afterwards is shifted by
as much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from nitka.errors import Forgotten
from nitka.store.port import NOBODY, ApiKeyRow, Due, HandleRow, OutboxRow
from nitka.store.postgres_pool import Cursor, Database, Transaction
from nitka.store.postgres_rows import D, Q
from nitka.types import Tag


class PostgresDirectory:
    """The part of `PostgresStore` whose queries name no owner, or only to find him."""

    _data: Database
    _database_clock: bool
    _ahead = 0  # milliseconds by which the database's clock is ahead of the caller's

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._write(D["add_erasure"], owner, incarnation)

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        return [(owner, incarnation) for owner, incarnation in await self._read(D["erasures"])]

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._write(D["end_erasure"], owner, incarnation)

    async def lease(
        self, *, now: int, until: int, limit: int, only: tuple[bytes, Tag | None] | None = None, early: bool = False
    ) -> Sequence[Due]:
        owner, session = only or (None, None)
        query = D["lease" if owner is None else "lease_of_owner"]

        async def work(transaction: Transaction) -> list[Due]:
            ahead = await self._clock(transaction, now)
            wanted = {"now": now + ahead, "until": until + ahead, "early": early, "limit": limit}
            (taken,) = await transaction.end((query, wanted | {"owner": owner, "session": session}))
            return [Due(*row) for row in await taken.fetchall()]

        return await self._data.write(work)

    async def _clock(self, transaction: Transaction, now: int) -> int:
        """By how much the database's clock is ahead of the caller's now."""
        if self._database_clock:
            row = await transaction.one(D["clock"])
            assert row is not None
            self._ahead = int(row[0]) - now
        return self._ahead

    async def due_sessions(self) -> int:
        return int((await self._read(D["due_sessions"]))[0][0])

    async def put_back(self, due: Due, *, retry_at: int) -> None:
        await self._write(D["put_back"], retry_at + self._ahead, due.owner, due.session, due.kind)

    async def rescan(self, *, kind: str, lag: int, person: bool = False) -> int:
        async def work(transaction: Transaction) -> int:
            wanted = {"kind": kind, "lag": lag, "nobody": NOBODY}
            return (await transaction.end((D["rescan_person" if person else "rescan"], wanted)))[0].rowcount

        return await self._data.write(work)

    async def owners(self, *, after: bytes = b"", limit: int = 1000) -> Sequence[bytes]:
        return [owner for (owner,) in await self._read(D["owners"], after, limit)]

    async def handle(self, handle: Tag) -> HandleRow | None:
        rows = await self._read(D["handle"], handle)
        return HandleRow(*rows[0]) if rows else None

    async def handles(self, owner: bytes) -> Sequence[HandleRow]:
        return [HandleRow(*row) for row in await self._read(D["handles"], owner)]

    async def add_handle(self, row: HandleRow, incarnation: bytes) -> HandleRow:
        async def work(transaction: Transaction) -> HandleRow:
            if await transaction.one(Q["hold_owner"], row.owner) != (incarnation,):
                raise Forgotten("The user.")
            standing = None
            while standing is None:  # somebody may remove it between the two
                _, found = await transaction.run((D["add_handle"], row), (D["handle"], (row.handle,)))
                standing = await found.fetchone()
            return HandleRow(*standing)

        return await self._data.write(work)

    async def remove_handle(self, owner: bytes, handle: Tag) -> bool:
        return (await self._write(D["remove_handle"], owner, handle)).rowcount == 1

    async def api_key(self, hash: bytes) -> ApiKeyRow | None:
        rows = await self._read(D["api_key"], hash)
        return ApiKeyRow(*rows[0]) if rows else None

    async def api_keys(self) -> Sequence[ApiKeyRow]:
        return [ApiKeyRow(*row) for row in await self._read(D["api_keys"])]

    async def add_api_key(self, row: ApiKeyRow) -> None:
        await self._write(D["add_api_key"], *row)

    async def remove_api_key(self, hash: bytes) -> bool:
        return (await self._write(D["remove_api_key"], hash)).rowcount == 1

    async def take_outbox(self, *, now: int, until: int, limit: int, oldest: int) -> Sequence[OutboxRow]:
        async def work(transaction: Transaction) -> list[OutboxRow]:
            ahead = await self._clock(transaction, now)
            wanted = {"now": now + ahead, "until": until + ahead, "limit": limit}
            _, taken = await transaction.end((D["expire_outbox"], (oldest,)), (D["lease_outbox"], wanted))
            rows = [OutboxRow(*row) for row in await taken.fetchall()]
            return sorted(rows, key=lambda row: (row.made, row.owner, row.id))

        return await self._data.write(work)

    async def put_back_outbox(self, owner: bytes, id: Tag, *, retry_at: int) -> None:
        await self._write(D["put_back_outbox"], retry_at + self._ahead, owner, id)

    async def remove_outbox(self, owner: bytes, id: Tag) -> bool:
        return (await self._write(D["remove_outbox"], owner, id)).rowcount == 1

    async def spend(self, day: int, tokens: int) -> int:
        async def work(transaction: Transaction) -> int:
            _, sum_ = await transaction.end((D["forget_spending"], (day - 7,)), (D["spend"], (day, tokens)))
            row = await sum_.fetchone()
            assert row is not None
            return int(row[0])

        return await self._data.write(work)

    async def _read(self, query: LiteralString, *params: Any) -> list[tuple[Any, ...]]:
        async def work(transaction: Transaction) -> list[tuple[Any, ...]]:
            return await (await transaction.end((query, params)))[0].fetchall()

        return await self._data.read(work)

    async def _write(self, query: LiteralString, *params: Any) -> Cursor:
        async def work(transaction: Transaction) -> Cursor:
            return (await transaction.end((query, params)))[0]

        return await self._data.write(work)
