"""The embedded store: two SQLite files, one for the log and the folds, one for the wrapped keys."""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from nitka.errors import Damaged, Forgotten, KeyMissing, StoreError
from nitka.store.port import (
    NOBODY,
    Change,
    Due,
    Effort,
    FoldRow,
    Locked,
    Look,
    Row,
    Scope,
    SessionRow,
    Step,
    View,
    Went,
    refuse_unsound,
)
from nitka.store.sql import migrations, queries
from nitka.store.sqlite_file import SqliteFile
from nitka.store.sqlite_keys import SqliteKeys
from nitka.types import Tag
from nitka.world import random_bytes

Q = queries("sqlite", "content.sql")
D = queries("sqlite", "directory.sql")
FAR = 1 << 62  # no number of rows gets there
LOST_KEYS = "The file of wrapped keys that belongs to this database is missing; restore it beside the database."


class SqliteStore:
    """A store in the file `path`; the wrapped keys lie in `keys_path`, by default `path` with ".keys" after it."""

    def __init__(self, path: str, *, keys_path: str | None = None, wait: float = 10.0) -> None:
        self._file = SqliteFile(path, migrations("sqlite", "data"), wait=wait)
        self.keys = SqliteKeys(keys_path or path + ".keys", wait=wait)

    @property
    def paths(self) -> tuple[str, str]:
        """The file of the data and the file of the keys."""
        return self._file.path, self.keys.path

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
        return await self._file.read(lambda db: _view(db, look))

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        def work(db: sqlite3.Connection) -> list[SessionRow]:
            return [_session_row(row) for row in db.execute(Q["sessions"], (owner, after or b"", limit))]

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
            return _session(db, owner, session.session)

        return await self._file.write(work)

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        def work(db: sqlite3.Connection) -> tuple[Locked, Change | None]:
            locked = _lock(db, scope)
            change = step(locked)
            if change is not None:
                _apply(db, scope, locked, change)
            return locked, change

        return await self._file.write(work)

    async def erase_session(self, owner: bytes, incarnation: bytes, session: Tag, session_incarnation: bytes) -> Went:
        def work(db: sqlite3.Connection) -> Went:
            _lock(
                db,
                Scope(owner=owner, incarnation=incarnation, session=session, session_incarnation=session_incarnation),
            )
            live = db.execute(Q["count_live_of_session"], (owner, session)).fetchone()[0]
            here = (owner, session)
            db.execute(Q["erase_session_messages"], here)
            db.execute(Q["erase_session_turn_keys"], here)
            folds = db.execute(Q["erase_session_folds"], here).rowcount
            db.execute(D["done_session"], here)
            return Went(sessions=db.execute(Q["erase_session"], here).rowcount, messages=live, folds=folds)

        return await self._file.write(work)

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._file.write(lambda db: db.execute(D["add_erasure"], (owner, incarnation)) and None)

    async def erase_owner(self, owner: bytes, incarnation: bytes) -> Went:
        def work(db: sqlite3.Connection) -> Went:
            row = db.execute(Q["owner"], (owner,)).fetchone()
            return _erase_owner(db, owner) if row is not None and row[0] == incarnation else Went()

        return await self._file.write(work)

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        return await self._file.read(lambda db: db.execute(D["erasures"]).fetchall())

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._file.write(lambda db: db.execute(D["end_erasure"], (owner, incarnation)) and None)

    async def scrub(self, effort: Effort = "short") -> bool:
        return await self._file.scrub(effort)

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

    async def rescan(self, *, kind: str, lag: int) -> int:
        return await self._file.write(lambda db: db.execute(D["rescan"], {"kind": kind, "lag": lag}).rowcount)

    async def spend(self, day: int, tokens: int) -> int:
        def work(db: sqlite3.Connection) -> int:
            db.execute(D["forget_spending"], (day - 7,))
            return int(db.execute(D["spend"], (day, tokens)).fetchone()[0])

        return await self._file.write(work)


def _session(db: sqlite3.Connection, owner: bytes, session: Tag) -> SessionRow | None:
    row = db.execute(Q["session"], (owner, session)).fetchone()
    return _session_row(row) if row else None


def _session_row(row: tuple[Any, ...]) -> SessionRow:
    """A session's row. A head that is no number becomes 0, for which its body does not open: that one is damaged, and
    the others are listed.
    """
    session, incarnation, head, body = row
    return SessionRow(session, incarnation, head if _is_number(head) else 0, body)


def _is_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < FAR


def _number(value: Any) -> int:
    """A number of rows. SQLite keeps any value in any column: raises `Damaged` for what we never write."""
    if not _is_number(value):
        raise Damaged("(a number of rows)")
    return int(value)


def _folds(db: sqlite3.Connection, owner: bytes, session: Tag, kinds: tuple[str, ...]) -> Mapping[str, FoldRow]:
    if not kinds:
        return {}
    rows = (FoldRow(*row) for row in db.execute(Q["folds"], (owner, session)))
    return {row.kind: row for row in rows if row.kind in kinds}


def _rows(db: sqlite3.Connection, where: tuple[bytes, Tag, int, int], limit: int | None) -> tuple[Row, ...]:
    """Rows oldest first: all, or the newest that hold `limit` living ones. Tombstones come along, so that a gap can
    be told from them.
    """
    found: list[Row] = []
    living = 0
    for row in db.execute(Q["rows_newest_first"], where):
        if living == limit:
            break
        found.append(Row(*row))
        living += row[2] is not None
    found.reverse()
    return tuple(found)


def _view(db: sqlite3.Connection, look: Look) -> View:
    owner = db.execute(Q["owner"], (look.owner,)).fetchone()
    if owner is None:
        return View()
    person_folds = _folds(db, look.owner, NOBODY, look.person_folds)
    session = _session(db, look.owner, look.session) if look.session != NOBODY else None
    if session is None:
        return View(incarnation=owner[0], person_folds=person_folds)
    folds = _folds(db, look.owner, look.session, look.folds)
    summary = folds.get("summary")
    first = look.first if look.first is not None else summary.cursor if summary else 0
    end = session.head if look.end is None else min(look.end, session.head)
    known = _known(db, look.owner, look.session, look.turn_key)
    pair = _rows(db, (look.owner, look.session, known, known + 2), None) if known is not None else ()
    rows = _rows(db, (look.owner, look.session, first, end), look.limit) if look.limit else ()
    return View(
        incarnation=owner[0], session=session, known=known, pair=pair, folds=folds, person_folds=person_folds, rows=rows
    )


def _known(db: sqlite3.Connection, owner: bytes, session: Tag, key: Tag | None) -> int | None:
    if key is None:
        return None
    row = db.execute(Q["turn_key"], (owner, session, key)).fetchone()
    return _number(row[0]) if row else None


def _lock(db: sqlite3.Connection, scope: Scope) -> Locked:
    owner = db.execute(Q["owner"], (scope.owner,)).fetchone()
    if owner is None or owner[0] != scope.incarnation:
        raise Forgotten("The user.")
    session = None
    if scope.session != NOBODY:
        session = _session(db, scope.owner, scope.session)
        if session is None or session.incarnation != scope.session_incarnation:
            raise Forgotten("The session.")
    return Locked(
        n=_number(owner[1]),
        head=session.head if session else 0,
        session=session,
        known=_known(db, scope.owner, scope.session, scope.turn_key),
        folds=_folds(db, scope.owner, scope.session, scope.folds),
        person_folds=_folds(db, scope.owner, NOBODY, scope.person_folds),
        rows=_rows(db, (scope.owner, scope.session, *scope.rows), None) if scope.rows else (),
    )


def _apply(db: sqlite3.Connection, scope: Scope, locked: Locked, change: Change) -> None:
    refuse_unsound(scope, locked, change)
    here: tuple[Any, ...] = (scope.owner, scope.session)
    if change.forget is not None:
        db.execute(Q["forget_messages"], (*here, *change.forget))
    _append(db, here, locked, change)
    for fold in change.folds:
        db.execute(Q["put_fold"], (scope.owner, fold.session, fold.kind, fold.cursor, fold.version, fold.body))
    for query, kinds in ((Q["drop_fold"], change.drop_folds), (D["done"], change.done), (D["add_due"], change.due)):
        for kind in kinds:
            db.execute(query, (*here, kind))


def _append(db: sqlite3.Connection, here: tuple[Any, ...], locked: Locked, change: Change) -> None:
    for row in change.append:
        db.execute(Q["add_message"], (*here, row.seq, row.n, row.body))
    if change.append:
        db.execute(Q["advance_owner"], (change.append[-1].n + 1, here[0]))
    if change.session_body is not None:
        head = change.append[-1].seq + 1 if change.append else locked.head
        db.execute(Q["advance_session"], (head, change.session_body, *here))
    if change.turn_key is not None:
        db.execute(Q["add_turn_key"], (*here, change.turn_key, change.append[0].seq))


def _erase_owner(db: sqlite3.Connection, owner: bytes) -> Went:
    live = db.execute(Q["count_live"], (owner,)).fetchone()[0]
    db.execute(Q["erase_messages"], (owner,))
    db.execute(Q["erase_turn_keys"], (owner,))
    folds = db.execute(Q["erase_folds"], (owner,)).rowcount
    sessions = db.execute(Q["erase_sessions"], (owner,)).rowcount
    db.execute(D["done_owner"], (owner,))
    return Went(owners=db.execute(Q["erase_owner"], (owner,)).rowcount, sessions=sessions, messages=live, folds=folds)
