"""What is read and written of one owner in PostgreSQL: which statements are sent, and what their answers mean.

Everything of a view goes to the server in one trip. A second one is made only for the sessions of rows that were asked
for by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from nitka.errors import Forgotten
from nitka.store.port import NOBODY, Change, FoldRow, Locked, Look, PersonRow, Piece, Row, Scope, SessionRow, View
from nitka.store.postgres_pool import Statement, Transaction
from nitka.store.sql import queries
from nitka.types import Tag

Q = queries("postgres", "content.sql")
D = queries("postgres", "directory.sql")
FAR = 1 << 62  # no number of rows gets there

Answers = Mapping[str, Sequence[tuple[Any, ...]]]


async def ask(transaction: Transaction, asked: Mapping[str, Statement], *, last: bool = False) -> Answers:
    """All rows of each statement, under its name; with `last` the transaction ends with them."""
    cursors = await (transaction.end if last else transaction.run)(*asked.values())
    return {name: await cursor.fetchall() for name, cursor in zip(asked, cursors, strict=True)}


def at_once(look: Look) -> bool:
    """Whether one trip suffices."""
    return look.from_n is None and not look.ns


async def view(transaction: Transaction, look: Look, *, last: bool = True) -> View:
    """What the look asks for; with `last`, and if one trip suffices, the transaction ends with it."""
    by_number = not at_once(look)
    found = await ask(transaction, _asked(look), last=last and not by_number)
    if not found["owner"]:
        return View()
    incarnation, n = found["owner"][0]
    seen = View(
        incarnation=incarnation,
        n=n,
        person_folds=_folds(found.get("person_folds", ())),
        pieces={
            kind: tuple(Piece(*row) for row in rows)
            for kind, rows in groupby(found.get("pieces", ()), key=lambda row: row[0])
        },
    )
    if by_number:
        seen = await _with_person_rows(transaction, look, seen, found)
    return _with_session(seen, found) if found.get("session") else seen


def _asked(look: Look) -> dict[str, Statement]:
    asked: dict[str, Statement] = {"owner": (Q["owner"], (look.owner,))}
    if look.person_folds:
        asked["person_folds"] = (Q["folds"], (look.owner, NOBODY, list(look.person_folds)))
    if look.pieces:
        asked["pieces"] = (Q["pieces"], (look.owner, list(look.pieces)))
    if look.from_n is not None:
        asked["from_n"] = (Q["person_rows_from"], (look.owner, *look.from_n))
    if look.ns:
        asked["ns"] = (Q["person_rows"], (look.owner, [n for n in look.ns if 0 <= n < FAR]))
    return asked | (_asked_of_session(look) if look.session != NOBODY else {})


def _asked_of_session(look: Look) -> dict[str, Statement]:
    here = {"owner": look.owner, "session": look.session}
    cursor = "summary" if "summary" in look.folds else ""
    rows = here | {"first": look.first, "end": FAR if look.end is None else look.end, "cursor": cursor}
    asked: dict[str, Statement] = {"session": (Q["session"], (look.owner, look.session))}
    if look.folds:
        asked["folds"] = (Q["folds"], (look.owner, look.session, list(look.folds)))
    if look.turn_key is not None:
        asked["known"] = (Q["turn_key"], (look.owner, look.session, look.turn_key))
        asked["pair"] = (Q["pair"], here | {"key": look.turn_key})
    if look.limit:
        asked["rows"] = (Q["newest_rows"], rows | {"limit": look.limit})
    if look.numbers:
        asked["numbers"] = (Q["numbers"], rows)
    return asked


async def _with_person_rows(transaction: Transaction, look: Look, seen: View, found: Answers) -> View:
    raw = (*found.get("from_n", ()), *found.get("ns", ()))
    rows = {n: PersonRow(session, Row(seq, n, body)) for session, seq, n, body in raw}
    tags = sorted({row.session for row in rows.values()})
    sessions = await ask(transaction, {"sessions": (Q["sessions_of"], (look.owner, tags))}) if tags else {}
    return replace(
        seen,
        person_rows=tuple(rows[n] for n in sorted(rows)),
        person_sessions={row[0]: SessionRow(*row) for row in sessions.get("sessions", ())},
    )


def _with_session(seen: View, found: Answers) -> View:
    known = found.get("known", ())
    return replace(
        seen,
        session=SessionRow(*found["session"][0]),
        known=known[0][0] if known else None,
        pair=tuple(Row(*row) for row in found.get("pair", ())),
        folds=_folds(found.get("folds", ())),
        rows=tuple(Row(*row) for row in found.get("rows", ())),
        numbers=tuple(n for (n,) in found.get("numbers", ())),
    )


def _folds(rows: Sequence[tuple[Any, ...]]) -> Mapping[str, FoldRow]:
    return {row[1]: FoldRow(*row) for row in rows}


async def lock(transaction: Transaction, scope: Scope, *, erase: bool = False) -> Locked:
    """What the scope names, if it still is what it was. Raises `Forgotten`.

    Each statement sees what was committed before it began, so what is read after the owner's row is locked is as it
    stands under the lock.
    """
    here = (scope.owner, scope.session)
    asked: dict[str, Statement] = {"owner": (Q["lock_owner_to_erase" if erase else "lock_owner"], (scope.owner,))}
    if scope.session != NOBODY:
        asked["session"] = (Q["session"], here)
    if scope.turn_key is not None:
        asked["known"] = (Q["turn_key"], (*here, scope.turn_key))
    if scope.folds and scope.session != NOBODY:
        asked["folds"] = (Q["folds"], (*here, list(scope.folds)))
    if scope.person_folds:
        asked["person_folds"] = (Q["folds"], (scope.owner, NOBODY, list(scope.person_folds)))
    if scope.rows is not None:
        asked["rows"] = (Q["rows"], (*here, *scope.rows))
    return _locked(scope, await ask(transaction, asked))


def _locked(scope: Scope, found: Answers) -> Locked:
    if not found["owner"] or found["owner"][0][0] != scope.incarnation:
        raise Forgotten("The user.")
    session = SessionRow(*found["session"][0]) if found.get("session") else None
    if scope.session != NOBODY and (session is None or session.incarnation != scope.session_incarnation):
        raise Forgotten("The session.")
    known = found.get("known", ())
    return Locked(
        n=found["owner"][0][1],
        head=session.head if session else 0,
        session=session,
        known=known[0][0] if known else None,
        folds=_folds(found.get("folds", ())),
        person_folds=_folds(found.get("person_folds", ())),
        rows=tuple(Row(*row) for row in found.get("rows", ())),
    )


def writes(scope: Scope, locked: Locked, change: Change) -> list[Statement]:
    """The statements of a change that was found sound."""
    here = (scope.owner, scope.session)
    return [
        *([(Q["forget_messages"], (*here, *change.forget))] if change.forget is not None else []),
        *_appends(here, locked, change),
        *((Q["drop_fold"], (*here, kind)) for kind in change.drop_folds),
        *drops_of_person(scope.owner, change),
        *writes_of_person(scope.owner, change),
        *((D["done"], (*here, kind)) for kind in change.done),
        *((D["add_due"], (*here, kind)) for kind in change.due),
    ]


def _appends(here: tuple[bytes, Tag], locked: Locked, change: Change) -> list[Statement]:
    statements: list[Statement] = []
    if change.append:
        seqs, ns, bodies = (list(column) for column in zip(*change.append, strict=True))
        statements.append((Q["add_messages"], (*here, seqs, ns, bodies)))
        statements.append((Q["advance_owner"], (change.append[-1].n + 1, here[0])))
    if change.session_body is not None:
        head = change.append[-1].seq + 1 if change.append else locked.head
        statements.append((Q["advance_session"], (head, change.session_body, *here)))
    if change.turn_key is not None:
        statements.append((Q["add_turn_key"], (*here, change.turn_key, change.append[0].seq)))
    return statements


def drops_of_person(owner: bytes, change: Change) -> list[Statement]:
    """What is removed of the owner."""
    return [(Q["drop_piece"], (owner, *where)) for where in change.drop_pieces]


def writes_of_person(owner: bytes, change: Change) -> list[Statement]:
    """What does not hang on the scope's session, and all folds."""
    return [
        *((Q["put_fold"], (owner, f.session, f.kind, f.cursor, f.version, f.body)) for f in change.folds),
        *((Q["put_piece"], (owner, *piece)) for piece in change.put_pieces),
        *((D["done"], (owner, NOBODY, kind)) for kind in change.person_done),
        *((D["add_due"], (owner, NOBODY, kind)) for kind in change.person_due),
        *((D["add_outbox"], tuple(row)) for row in change.outbox),
    ]


def erasure_of_session(owner: bytes, session: Tag) -> dict[str, Statement]:
    here = (owner, session)
    return {
        "messages": (Q["count_live_of_session"], here),
        "rows": (Q["erase_session_messages"], here),
        "turn_keys": (Q["erase_session_turn_keys"], here),
        "folds": (Q["erase_session_folds"], here),
        "due": (D["done_session"], here),
        "sessions": (Q["erase_session"], here),
    }


def erasure_of_owner(owner: bytes) -> dict[str, Statement]:
    return {
        "messages": (Q["count_live"], (owner,)),
        "rows": (Q["erase_messages"], (owner,)),
        "turn_keys": (Q["erase_turn_keys"], (owner,)),
        "folds": (Q["erase_folds"], (owner,)),
        "pieces": (Q["erase_pieces"], (owner,)),
        "sessions": (Q["erase_sessions"], (owner,)),
        "handles": (D["erase_handles"], (owner,)),
        "outbox": (D["erase_outbox"], (owner,)),
        "due": (D["done_owner"], (owner,)),
        "owners": (Q["erase_owner"], (owner,)),
    }
