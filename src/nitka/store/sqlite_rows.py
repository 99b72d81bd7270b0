"""What is read and written of one owner in the embedded store; every function runs inside a transaction.

SQLite keeps any value in any column. A number that we never write is `Damaged` where something is decided by it; where
it is only shown, the body beside it does not open, because the number is bound to it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from nitka.errors import Damaged, Forgotten
from nitka.store.port import (
    NOBODY,
    Change,
    FoldRow,
    Locked,
    Look,
    PersonRow,
    Piece,
    Row,
    Scope,
    SessionRow,
    View,
    Went,
)
from nitka.store.sql import queries
from nitka.store.sqlite_directory import D
from nitka.types import Tag

Q = queries("sqlite", "content.sql")
FAR = 1 << 62  # no number of rows gets there


def session_row(row: Sequence[Any]) -> SessionRow:
    """A session's row. A head that is no number becomes 0, for which its body does not open: that one is damaged, and
    the others are listed.
    """
    session, incarnation, head, body = row
    return SessionRow(session, incarnation, head if _is_number(head) else 0, body)


def read_session(db: sqlite3.Connection, owner: bytes, session: Tag) -> SessionRow | None:
    row = db.execute(Q["session"], (owner, session)).fetchone()
    return session_row(row) if row else None


def _is_number(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < FAR


def _number(value: Any) -> int:
    """A number of rows. Raises `Damaged` for what we never write."""
    if not _is_number(value):
        raise Damaged("(a number of rows)")
    return int(value)


def _head(db: sqlite3.Connection, owner: bytes, session: Tag, key: Tag | None) -> tuple[Any, ...] | None:
    """The owner's incarnation and n, then session, incarnation, head and body of his session, then the seq that the
    turn key holds: one statement for what every turn asks twice. None without the owner.
    """
    found: tuple[Any, ...] | None = db.execute(Q["head"], {"owner": owner, "session": session, "key": key}).fetchone()
    return found


_Folds = Mapping[str, FoldRow]


def _folds(
    db: sqlite3.Connection, owner: bytes, session: Tag, kinds: tuple[str, ...], person_kinds: tuple[str, ...]
) -> tuple[_Folds, _Folds]:
    """The session's folds and the person's, of these kinds."""
    if kinds and person_kinds and session != NOBODY:
        found = db.execute(Q["folds_of_two"], (owner, session, NOBODY))
    elif kinds or person_kinds:
        found = db.execute(Q["folds"], (owner, session if kinds else NOBODY))
    else:
        return {}, {}
    rows = [FoldRow(*row) for row in found]
    return (
        {row.kind: row for row in rows if row.kind in kinds and row.session == session},
        {row.kind: row for row in rows if row.kind in person_kinds and row.session == NOBODY},
    )


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


def view(db: sqlite3.Connection, look: Look) -> View:
    head = _head(db, look.owner, look.session, look.turn_key)
    if head is None:
        return View()
    incarnation, n, *session, known = head
    folds, person_folds = _folds(db, look.owner, look.session, look.folds, look.person_folds)
    found = View(
        incarnation=incarnation,
        n=n if _is_number(n) else 0,
        person_folds=person_folds,
        pieces=_pieces(db, look),
        **(_of_session(db, look, session_row(session), known, folds) if session[0] is not None else {}),
    )
    return found if look.from_n is None and not look.ns else _with_person_rows(db, look, found)


def _of_session(db: sqlite3.Connection, look: Look, session: SessionRow, seq: object, folds: _Folds) -> dict[str, Any]:
    """What a view says of a session. `seq` is what the turn key holds."""
    known = None if seq is None else _number(seq)
    summary = folds.get("summary")
    first = look.first if look.first is not None else summary.cursor if summary else 0
    end = session.head if look.end is None else min(look.end, session.head)
    here = (look.owner, look.session, first, end)
    return {
        "session": session,
        "known": known,
        "pair": _rows(db, (look.owner, look.session, known, known + 2), None) if known is not None else (),
        "folds": folds,
        "rows": _rows(db, here, look.limit) if look.limit else (),
        "numbers": _numbers(db, here) if look.numbers else (),
    }


def _numbers(db: sqlite3.Connection, here: tuple[bytes, Tag, int, int]) -> tuple[int, ...]:
    """What is no number belongs to a row that does not open; whoever forgets must not stumble over it."""
    return tuple(n for (n,) in db.execute(Q["numbers"], here) if _is_number(n))


def _pieces(db: sqlite3.Connection, look: Look) -> Mapping[str, tuple[Piece, ...]]:
    found = {
        kind: tuple(Piece(*row) for row in db.execute(Q["pieces"], (look.owner, kind)).fetchall())
        for kind in look.pieces
    }
    return {kind: pieces for kind, pieces in found.items() if pieces}


def _with_person_rows(db: sqlite3.Connection, look: Look, found: View) -> View:
    raw: list[tuple[Any, ...]] = []
    if look.from_n is not None:
        raw += db.execute(Q["person_rows_from"], (look.owner, *look.from_n)).fetchall()
    if look.ns:
        raw += db.execute(Q["person_rows"], (look.owner, json.dumps(look.ns))).fetchall()
    rows = {_number(n): PersonRow(session, Row(seq, n, body)) for session, seq, n, body in raw}
    tags = {row.session for row in rows.values()}
    sessions = ((tag, read_session(db, look.owner, tag)) for tag in tags)
    return replace(
        found,
        person_rows=tuple(rows[n] for n in sorted(rows)),
        person_sessions={tag: session for tag, session in sessions if session is not None},
    )


def lock(db: sqlite3.Connection, scope: Scope) -> Locked:
    """What the scope names, if it still is what it was. Raises `Forgotten`."""
    head = _head(db, scope.owner, scope.session, scope.turn_key)
    if head is None or head[0] != scope.incarnation:
        raise Forgotten("The user.")
    _, n, *found, known = head
    session = None if found[0] is None else session_row(found)
    if scope.session != NOBODY and (session is None or session.incarnation != scope.session_incarnation):
        raise Forgotten("The session.")
    folds, person_folds = _folds(db, scope.owner, scope.session, scope.folds, scope.person_folds)
    return Locked(
        n=_number(n),
        head=session.head if session else 0,
        session=session,
        known=None if known is None else _number(known),
        folds=folds,
        person_folds=person_folds,
        rows=_rows(db, (scope.owner, scope.session, *scope.rows), None) if scope.rows else (),
    )


def apply(db: sqlite3.Connection, scope: Scope, locked: Locked, change: Change) -> None:
    """Writes a change that was found sound."""
    here: tuple[Any, ...] = (scope.owner, scope.session)
    if change.forget is not None:
        db.execute(Q["forget_messages"], (*here, *change.forget))
    _append(db, here, locked, change)
    for kind in change.drop_folds:
        db.execute(Q["drop_fold"], (*here, kind))
    apply_person(db, scope.owner, change)
    for query, kinds in ((D["done"], change.done), (D["add_due"], change.due)):
        for kind in kinds:
            db.execute(query, (*here, kind))


def _append(db: sqlite3.Connection, here: tuple[Any, ...], locked: Locked, change: Change) -> None:
    if len(change.append) == 2:  # a turn
        db.execute(Q["add_two_messages"], (*here, *change.append[0], *here, *change.append[1]))
    else:
        db.executemany(Q["add_message"], [(*here, *row) for row in change.append])
    if change.append:
        db.execute(Q["advance_owner"], (change.append[-1].n + 1, here[0]))
    if change.session_body is not None:
        head = change.append[-1].seq + 1 if change.append else locked.head
        db.execute(Q["advance_session"], (head, change.session_body, *here))
    if change.turn_key is not None:
        db.execute(Q["add_turn_key"], (*here, change.turn_key, change.append[0].seq))


def apply_person(db: sqlite3.Connection, owner: bytes, change: Change) -> Went:
    """Writes what does not hang on the scope's session, and all folds; returns what was dropped."""
    pieces = sum(db.execute(Q["drop_piece"], (owner, *where)).rowcount for where in change.drop_pieces)
    for fold in change.folds:
        db.execute(Q["put_fold"], (owner, fold.session, fold.kind, fold.cursor, fold.version, fold.body))
    for piece in change.put_pieces:
        db.execute(Q["put_piece"], (owner, *piece))
    for kind in change.person_done:
        db.execute(D["done"], (owner, NOBODY, kind))
    for kind in change.person_due:
        db.execute(D["add_due"], (owner, NOBODY, kind))
    for row in change.outbox:
        db.execute(D["add_outbox"], row)
    return Went(pieces=pieces)


def erase_session(db: sqlite3.Connection, owner: bytes, session: Tag) -> Went:
    here = (owner, session)
    live = db.execute(Q["count_live_of_session"], here).fetchone()[0]
    db.execute(Q["erase_session_messages"], here)
    db.execute(Q["erase_session_turn_keys"], here)
    folds = db.execute(Q["erase_session_folds"], here).rowcount
    db.execute(D["done_session"], here)
    return Went(sessions=db.execute(Q["erase_session"], here).rowcount, messages=live, folds=folds)


def erase_owner(db: sqlite3.Connection, owner: bytes) -> Went:
    live = db.execute(Q["count_live"], (owner,)).fetchone()[0]
    for query in (Q["erase_messages"], Q["erase_turn_keys"], D["done_owner"], D["erase_outbox"]):
        db.execute(query, (owner,))
    return Went(
        folds=db.execute(Q["erase_folds"], (owner,)).rowcount,
        pieces=db.execute(Q["erase_pieces"], (owner,)).rowcount,
        sessions=db.execute(Q["erase_sessions"], (owner,)).rowcount,
        handles=db.execute(D["erase_handles"], (owner,)).rowcount,
        owners=db.execute(Q["erase_owner"], (owner,)).rowcount,
        messages=live,
    )
