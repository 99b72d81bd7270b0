"""A store that lives in memory: the same port, the same rules, nothing on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from nitka.errors import Forgotten, StoreError
from nitka.store.port import (
    NOBODY,
    Change,
    Effort,
    FoldRow,
    Locked,
    Look,
    PersonRow,
    Piece,
    Row,
    Scope,
    SessionRow,
    Step,
    View,
    Went,
    refuse_unsound,
    refuse_unsound_erasure,
)
from nitka.testing.memory_directory import MemoryDirectory, Owner, Session
from nitka.testing.memory_keys import MemoryKeys
from nitka.types import Tag


class MemoryStore(MemoryDirectory):
    """Everything in dictionaries; each call is one step of the event loop and so one transaction."""

    keys_apart = True

    def __init__(self) -> None:
        super().__init__()
        self.keys = MemoryKeys()

    async def start(self) -> None:
        self._open = self.keys.open = True

    async def close(self) -> None:
        self._open = self.keys.open = False

    async def view(self, look: Look) -> View:
        await self._turn()
        return self._view(look)

    def _view(self, look: Look) -> View:
        owner = self._owners.get(look.owner)
        if owner is None:
            return View()
        person_rows = _person_rows(owner, look)
        found = View(
            incarnation=owner.incarnation,
            n=owner.n,
            person_folds=_chosen(owner.folds, look.person_folds),
            pieces=_pieces(owner, look.pieces),
            person_rows=person_rows,
            person_sessions={row.session: owner.sessions[row.session].row for row in person_rows},
        )
        session = owner.sessions.get(look.session)
        return found if session is None else _with_session(found, session, look)

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        await self._turn()
        found = self._owners.get(owner)
        tags = sorted(tag for tag in (found.sessions if found else ()) if tag > (after or b""))
        return [found.sessions[tag].row for tag in tags[:limit]] if found else []

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        await self._turn()
        if owner in self._owners and self._owners[owner].incarnation != incarnation:
            raise Forgotten("The user.")
        here = self._owners.setdefault(owner, Owner(incarnation))
        return here.sessions.setdefault(session.session, Session(session)).row if session else None

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        await self._turn()
        owner, session = self._find(scope)
        locked = _locked(scope, owner, session)
        change = step(locked)
        if change is not None:
            refuse_unsound(scope, locked, change)
            if session is not None and change.turn_key in session.keys:
                raise StoreError("The turn key is taken.")
            self._apply(scope, owner, session, change)
        return locked, change

    async def erase_session(self, scope: Scope, step: Step) -> Went | None:
        await self._turn()
        owner, session = self._find(scope)
        change = step(_locked(scope, owner, session))
        if change is None:
            return None
        refuse_unsound_erasure(scope, change)
        assert session is not None
        del owner.sessions[scope.session]
        self._drop_due(scope.owner, scope.session)
        pieces = len(owner.pieces)
        _drop_of_person(owner, change)
        went = Went(
            sessions=1,
            messages=session.living,
            folds=len(session.folds),
            pieces=pieces - len(owner.pieces),
        )
        self._put(scope, owner, None, change)
        return went

    def _find(self, scope: Scope) -> tuple[Owner, Session | None]:
        owner = self._owners.get(scope.owner)
        if owner is None or owner.incarnation != scope.incarnation:
            raise Forgotten("The user.")
        if scope.session == NOBODY:
            return owner, None
        session = owner.sessions.get(scope.session)
        if session is None or session.row.incarnation != scope.session_incarnation:
            raise Forgotten("The session.")
        return owner, session

    def _apply(self, scope: Scope, owner: Owner, session: Session | None, change: Change) -> None:
        if session is not None:
            _apply_rows(owner, session, change)
            for kind in change.drop_folds:
                session.folds.pop(kind, None)
        _drop_of_person(owner, change)
        self._put(scope, owner, session, change)
        for kind in change.done:
            self._due.pop((scope.owner, scope.session, kind), None)
        for kind in change.due:
            self._add_due(scope.owner, scope.session, kind)

    def _put(self, scope: Scope, owner: Owner, session: Session | None, change: Change) -> None:
        for fold in change.folds:
            folds = session.folds if session is not None and fold.session == scope.session else owner.folds
            folds[fold.kind] = fold
        owner.pieces |= {(piece.kind, piece.id): piece for piece in change.put_pieces}
        for kind in change.person_done:
            self._due.pop((scope.owner, NOBODY, kind), None)
        for kind in change.person_due:
            self._add_due(scope.owner, NOBODY, kind)
        for row in change.outbox:
            self._add_outbox(row)

    async def erase_owner(self, owner: bytes, incarnation: bytes, *, still: tuple[Look, View] | None = None) -> Went:
        await self._turn()
        here = self._owners.get(owner)
        if here is None or here.incarnation != incarnation or (still is not None and self._view(still[0]) != still[1]):
            return Went()
        return self._erase_owner(owner)

    def _erase_owner(self, owner: bytes) -> Went:
        self._drop_due(owner)
        self._outbox = {key: parcel for key, parcel in self._outbox.items() if key[0] != owner}
        kept = {tag: row for tag, row in self._handles.items() if row.owner != owner}
        handles, self._handles = len(self._handles) - len(kept), kept
        gone = self._owners.pop(owner)
        sessions = gone.sessions.values()
        return Went(
            owners=1,
            sessions=len(sessions),
            messages=sum(session.living for session in sessions),
            folds=len(gone.folds) + sum(len(session.folds) for session in sessions),
            pieces=len(gone.pieces),
            handles=handles,
        )

    async def scrub(self, effort: Effort = "short") -> bool:
        await self._turn()
        return True


def _with_session(found: View, session: Session, look: Look) -> View:
    folds = _chosen(session.folds, look.folds)
    first = look.first
    if first is None:
        first = folds["summary"].cursor if "summary" in folds else 0
    end = session.row.head if look.end is None else min(look.end, session.row.head)
    known = session.keys.get(look.turn_key) if look.turn_key else None
    every = _rows(session, first, end, None) if look.numbers else ()
    return replace(
        found,
        session=session.row,
        known=known,
        pair=_rows(session, known, known + 2, None) if known is not None else (),
        folds=folds,
        rows=_rows(session, first, end, look.limit) if look.limit else (),
        numbers=tuple(row.n for row in every if row.body is not None),
    )


def _locked(scope: Scope, owner: Owner, session: Session | None) -> Locked:
    return Locked(
        n=owner.n,
        head=session.row.head if session else 0,
        session=session.row if session else None,
        known=session.keys.get(scope.turn_key) if session and scope.turn_key else None,
        folds=_chosen(session.folds, scope.folds) if session else {},
        person_folds=_chosen(owner.folds, scope.person_folds),
        rows=_rows(session, *scope.rows, None) if session and scope.rows else (),
    )


def _apply_rows(owner: Owner, session: Session, change: Change) -> None:
    first, end = change.forget or (0, 0)
    for seq in range(first, min(end, session.row.head)):
        session.rows[seq] = session.rows[seq]._replace(body=None)
    for row in change.append:
        session.rows[row.seq] = row
        session.row = replace(session.row, head=row.seq + 1)
        owner.n = row.n + 1
    if change.session_body is not None:
        session.row = replace(session.row, body=change.session_body)
    if change.turn_key is not None:
        session.keys[change.turn_key] = change.append[0].seq


def _drop_of_person(owner: Owner, change: Change) -> None:
    for where in change.drop_pieces:
        owner.pieces.pop(where, None)


def _chosen(folds: Mapping[str, FoldRow], kinds: tuple[str, ...]) -> dict[str, FoldRow]:
    return {kind: row for kind, row in folds.items() if kind in kinds}


def _pieces(owner: Owner, kinds: tuple[str, ...]) -> dict[str, tuple[Piece, ...]]:
    found = {kind: tuple(sorted(piece for piece in owner.pieces.values() if piece.kind == kind)) for kind in kinds}
    return {kind: pieces for kind, pieces in found.items() if pieces}


def _person_rows(owner: Owner, look: Look) -> tuple[PersonRow, ...]:
    if look.from_n is None and not look.ns:
        return ()
    n, limit = look.from_n or (1 << 62, 0)
    named = set(look.ns)
    here = [
        (row.n, tag, row)
        for tag, session in owner.sessions.items()
        for row in session.rows.values()
        if row.n >= n or row.n in named
    ]
    here.sort(key=lambda found: found[0])
    oldest = {number for number, _, _ in [found for found in here if found[0] >= n][:limit]}
    return tuple(PersonRow(tag, row) for number, tag, row in here if number in oldest or number in named)


def _rows(session: Session, first: int, end: int, limit: int | None) -> tuple[Row, ...]:
    found: list[Row] = []
    living = 0
    for seq in range(min(end, session.row.head) - 1, first - 1, -1):
        if living == limit:
            break
        found.append(session.rows[seq])
        living += session.rows[seq].body is not None
    return tuple(reversed(found))
