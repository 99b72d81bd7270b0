"""The store for more than one machine: PostgreSQL 13 or later, through psycopg 3.

One turn is one transaction, which takes the owner's row first, so turns of one person queue there and nobody else does.
No connection is held while a model thinks. Content is partitioned by owner; see `sql/postgres/data`.
"""

from __future__ import annotations

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
from nitka.store.postgres_directory import PostgresDirectory
from nitka.store.postgres_keys import PostgresKeys
from nitka.store.postgres_migrate import migrate
from nitka.store.postgres_pool import Database, Statement, Transaction
from nitka.store.postgres_rows import (
    D,
    Q,
    at_once,
    drops_of_person,
    erasure_of_owner,
    erasure_of_session,
    lock,
    view,
    writes,
    writes_of_person,
)
from nitka.store.postgres_transfer import PostgresSide
from nitka.store.sql import migrations
from nitka.store.transfer import Side
from nitka.types import Tag
from nitka.world import random_bytes

LOST_KEYS = "The wrapped keys that belong to this database are missing; restore them."


class PostgresStore(PostgresDirectory):
    """A store in the database at `url`; the wrapped keys lie at `keys_url`, by default in the same database.

    At most `size` connections are open for the data, and as many for the keys; a caller waits `wait` seconds for one,
    and as long for a lock. `database_clock=False` counts leases by the caller's clock, for tests that set it.
    """

    def __init__(
        self, url: str, *, keys_url: str = "", wait: float = 10.0, size: int = 10, database_clock: bool = True
    ) -> None:
        self._data = Database(url, wait=wait, size=size)
        self._database_clock = database_clock
        self.keys_apart = bool(keys_url) and keys_url != url
        self.keys = PostgresKeys(keys_url or url, wait=wait, size=size)

    def sides(self) -> tuple[Side, Side]:
        """Data and keys, to be moved to another store."""
        return PostgresSide(self._data.conninfo, "nitka"), PostgresSide(self.keys.conninfo, "nitka_keys")

    async def start(self) -> None:
        try:
            steps = migrations("postgres", "data")
            await self._data.open(lambda connection: migrate(connection, "nitka", steps))
            await self._same_store()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await self._data.close()
        await self.keys.close()

    async def _same_store(self) -> None:
        """Data and keys carry the same random id: keys of another store would open nothing, and new ones would hide
        that the old are lost.
        """

        async def identify(transaction: Transaction) -> tuple[bytes, bool]:
            await transaction.run((D["set_store_id"], (random_bytes(16),)))
            row, used = await transaction.one(D["store_id"]), await transaction.one(D["any_owner"])
            assert row is not None
            return row[0], used is not None

        store, used = await self._data.write(identify)
        await self.keys.open()
        theirs = await self.keys.belong_to(store, adopt=not used)
        if theirs is None:
            raise KeyMissing(LOST_KEYS)
        if theirs != store:
            raise StoreError("The wrapped keys belong to another database.")

    async def view(self, look: Look) -> View:
        return await self._data.read(lambda transaction: view(transaction, look), at_once=at_once(look))

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        return [SessionRow(*row) for row in await self._read(Q["sessions"], owner, after or b"", limit)]

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        async def work(transaction: Transaction) -> SessionRow | None:
            _, held = await transaction.run((Q["add_owner"], (owner, incarnation)), (Q["hold_owner"], (owner,)))
            if await held.fetchone() != (incarnation,):
                raise Forgotten("The user.")
            if session is None:
                return None
            new = (owner, session.session, session.incarnation, session.head, session.body)
            _, found = await transaction.run((Q["add_session"], new), (Q["session"], (owner, session.session)))
            row = await found.fetchone()
            return SessionRow(*row) if row else None

        return await self._data.write(work)

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        async def work(transaction: Transaction) -> tuple[Locked, Change | None]:
            locked = await lock(transaction, scope)
            change = step(locked)
            if change is None:
                await transaction.drop()
                return locked, None
            refuse_unsound(scope, locked, change)
            await transaction.end(*writes(scope, locked, change))
            return locked, change

        return await self._data.write(work)

    async def erase_session(self, scope: Scope, step: Step) -> Went | None:
        async def work(transaction: Transaction) -> Went | None:
            change = step(await lock(transaction, scope, erase=True))
            if change is None:
                await transaction.drop()
                return None
            refuse_unsound_erasure(scope, change)
            drops = drops_of_person(scope.owner, change)
            rest = [*drops, *writes_of_person(scope.owner, change)]
            gone, counts = await _counted(transaction, erasure_of_session(scope.owner, scope.session), rest)
            return replace(gone, pieces=sum(counts[: len(drops)]))

        return await self._data.write(work)

    async def erase_owner(self, owner: bytes, incarnation: bytes, *, still: tuple[Look, View] | None = None) -> Went:
        async def work(transaction: Transaction) -> Went:
            row = await transaction.one(Q["lock_owner_to_erase"], owner)
            if row is None or row[0] != incarnation:
                return Went()
            if still is not None and await view(transaction, still[0], last=False) != still[1]:
                return Went()
            return (await _counted(transaction, erasure_of_owner(owner), []))[0]

        return await self._data.write(work)

    async def scrub(self, effort: Effort = "short") -> bool:
        """True: nothing more can be done from here. A removed row's bytes stay in PostgreSQL's files until vacuum has
        given the page's room to another row, and in its log and standbys until those are recycled.
        """
        await self._read(D["any_owner"])
        return True


async def _counted(
    transaction: Transaction, erasure: dict[str, Statement], rest: list[Statement]
) -> tuple[Went, list[int]]:
    """Ends the transaction with an erasure; what went, and the counts of the statements after it."""
    cursors = await transaction.end(*erasure.values(), *rest)
    count = {name: cursor.rowcount for name, cursor in zip(erasure, cursors, strict=False)}
    living = await cursors[list(erasure).index("messages")].fetchone()
    went = {name: count.get(name, 0) for name in ("owners", "sessions", "folds", "pieces", "handles")}
    return Went(messages=int(living[0]) if living else 0, **went), [c.rowcount for c in cursors[len(erasure) :]]
