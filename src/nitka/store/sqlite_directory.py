"""What the embedded store keeps beside the content: due work, unfinished erasures, handles, keys of the server, the
outbox, the day's spending.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from nitka.errors import Forgotten
from nitka.store.port import NOBODY, ApiKeyRow, Due, HandleRow, OutboxRow
from nitka.store.sql import queries
from nitka.store.sqlite_file import SqliteFile
from nitka.types import Tag

D = queries("sqlite", "directory.sql")


class SqliteDirectory:
    """The part of `SqliteStore` whose queries name no owner, or only to find him."""

    _file: SqliteFile

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._file.write(lambda db: db.execute(D["add_erasure"], (owner, incarnation)) and None)

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        return await self._file.read(lambda db: db.execute(D["erasures"]).fetchall())

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._file.write(lambda db: db.execute(D["end_erasure"], (owner, incarnation)) and None)

    async def lease(
        self, *, now: int, until: int, limit: int, only: tuple[bytes, Tag | None] | None = None, early: bool = False
    ) -> Sequence[Due]:
        owner, session = only or (None, None)
        wanted = {"now": now, "early": early, "owner": owner, "session": session, "limit": limit}

        def work(db: sqlite3.Connection) -> list[Due]:
            free = [Due(*row) for row in db.execute(D["free_due"], wanted).fetchall()]
            for due in free:
                db.execute(D["lease"], (until, due.owner, due.session, due.kind))
            return free

        return await self._file.write(work)

    async def due_sessions(self) -> int:
        return await self._file.read(lambda db: int(db.execute(D["due_sessions"]).fetchone()[0]))

    async def put_back(self, due: Due, *, retry_at: int) -> None:
        await self._file.write(
            lambda db: db.execute(D["put_back"], (retry_at, due.owner, due.session, due.kind)) and None
        )

    async def rescan(self, *, kind: str, lag: int, person: bool = False) -> int:
        query = D["rescan_person" if person else "rescan"]
        wanted = {"kind": kind, "lag": lag, "nobody": NOBODY}
        return await self._file.write(lambda db: db.execute(query, wanted).rowcount)

    async def owners(self, *, after: bytes = b"", limit: int = 1000) -> Sequence[bytes]:
        return await self._file.read(lambda db: [owner for (owner,) in db.execute(D["owners"], (after, limit))])

    async def handle(self, handle: Tag) -> HandleRow | None:
        def work(db: sqlite3.Connection) -> HandleRow | None:
            row = db.execute(D["handle"], (handle,)).fetchone()
            return HandleRow(*row) if row else None

        return await self._file.read(work)

    async def handles(self, owner: bytes) -> Sequence[HandleRow]:
        return await self._file.read(lambda db: [HandleRow(*row) for row in db.execute(D["handles"], (owner,))])

    async def add_handle(self, row: HandleRow, incarnation: bytes) -> HandleRow:
        def work(db: sqlite3.Connection) -> HandleRow:
            if db.execute(D["incarnation"], (row.owner,)).fetchone() != (incarnation,):
                raise Forgotten("The user.")
            db.execute(D["add_handle"], row)
            return HandleRow(*db.execute(D["handle"], (row.handle,)).fetchone())

        return await self._file.write(work)

    async def remove_handle(self, owner: bytes, handle: Tag) -> bool:
        return await self._file.write(lambda db: db.execute(D["remove_handle"], (owner, handle)).rowcount == 1)

    async def api_key(self, hash: bytes) -> ApiKeyRow | None:
        def work(db: sqlite3.Connection) -> ApiKeyRow | None:
            row = db.execute(D["api_key"], (hash,)).fetchone()
            return ApiKeyRow(*row) if row else None

        return await self._file.read(work)

    async def api_keys(self) -> Sequence[ApiKeyRow]:
        return await self._file.read(lambda db: [ApiKeyRow(*row) for row in db.execute(D["api_keys"])])

    async def add_api_key(self, row: ApiKeyRow) -> None:
        await self._file.write(lambda db: db.execute(D["add_api_key"], row) and None)

    async def remove_api_key(self, hash: bytes) -> bool:
        return await self._file.write(lambda db: db.execute(D["remove_api_key"], (hash,)).rowcount == 1)

    async def take_outbox(self, *, now: int, until: int, limit: int, oldest: int) -> Sequence[OutboxRow]:
        def work(db: sqlite3.Connection) -> list[OutboxRow]:
            db.execute(D["expire_outbox"], (oldest,))
            found = db.execute(D["free_outbox"], {"now": now, "limit": limit}).fetchall()
            taken = [OutboxRow(*row) for row in found]
            for row in taken:
                db.execute(D["lease_outbox"], (until, row.owner, row.id))
            return taken

        return await self._file.write(work)

    async def put_back_outbox(self, owner: bytes, id: Tag, *, retry_at: int) -> None:
        await self._file.write(lambda db: db.execute(D["put_back_outbox"], (retry_at, owner, id)) and None)

    async def remove_outbox(self, owner: bytes, id: Tag) -> bool:
        return await self._file.write(lambda db: db.execute(D["remove_outbox"], (owner, id)).rowcount == 1)

    async def spend(self, day: int, tokens: int) -> int:
        def work(db: sqlite3.Connection) -> int:
            db.execute(D["forget_spending"], (day - 7,))
            return int(db.execute(D["spend"], (day, tokens)).fetchone()[0])

        return await self._file.write(work)
