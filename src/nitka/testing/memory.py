"""A store that lives in memory: the same port, the same rules, nothing on disk."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from nitka.errors import Forgotten, StoreError
from nitka.store.port import (
    NOBODY,
    Change,
    Due,
    Effort,
    FoldRow,
    KeyRow,
    Locked,
    Look,
    RootRow,
    Row,
    Scope,
    SessionRow,
    Step,
    View,
    Went,
    refuse_unsound,
)
from nitka.types import Tag
from nitka.world import random_bytes


@dataclass
class _Session:
    row: SessionRow
    rows: dict[int, Row] = field(default_factory=dict)
    keys: dict[Tag, int] = field(default_factory=dict)
    folds: dict[str, FoldRow] = field(default_factory=dict)

    @property
    def living(self) -> int:
        return sum(row.body is not None for row in self.rows.values())


@dataclass
class _Owner:
    incarnation: bytes
    n: int = 0
    sessions: dict[Tag, _Session] = field(default_factory=dict)
    folds: dict[str, FoldRow] = field(default_factory=dict)

    @property
    def went(self) -> Went:
        sessions = self.sessions.values()
        folds = len(self.folds) + sum(len(session.folds) for session in sessions)
        return Went(owners=1, sessions=len(sessions), messages=sum(s.living for s in sessions), folds=folds)


@dataclass
class _Lease:
    due: Due
    until: int = 0
    retry_at: int = 0


class MemoryStore:
    """Everything in dictionaries; each call is one step of the event loop and so one transaction."""

    def __init__(self) -> None:
        self.keys = MemoryKeys()
        self._owners: dict[bytes, _Owner] = {}
        self._due: dict[tuple[bytes, Tag, str], _Lease] = {}
        self._erasures: dict[tuple[bytes, bytes], None] = {}
        self._spent: dict[int, int] = {}
        self._open = False

    async def start(self) -> None:
        self._open = self.keys.open = True

    async def close(self) -> None:
        self._open = self.keys.open = False

    async def view(self, look: Look) -> View:
        await self._turn()
        owner = self._owners.get(look.owner)
        if owner is None:
            return View()
        person_folds = _chosen(owner.folds, look.person_folds)
        session = owner.sessions.get(look.session)
        if session is None:
            return View(incarnation=owner.incarnation, person_folds=person_folds)
        folds = _chosen(session.folds, look.folds)
        first = look.first
        if first is None:
            first = folds["summary"].cursor if "summary" in folds else 0
        end = session.row.head if look.end is None else min(look.end, session.row.head)
        known = session.keys.get(look.turn_key) if look.turn_key else None
        return View(
            incarnation=owner.incarnation,
            session=session.row,
            known=known,
            pair=_rows(session, known, known + 2, None) if known is not None else (),
            folds=folds,
            person_folds=person_folds,
            rows=_rows(session, first, end, look.limit) if look.limit else (),
        )

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        await self._turn()
        found = self._owners.get(owner)
        tags = sorted(tag for tag in (found.sessions if found else ()) if tag > (after or b""))
        return [found.sessions[tag].row for tag in tags[:limit]] if found else []

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        await self._turn()
        if owner in self._owners and self._owners[owner].incarnation != incarnation:
            raise Forgotten("The user.")
        here = self._owners.setdefault(owner, _Owner(incarnation))
        return here.sessions.setdefault(session.session, _Session(session)).row if session else None

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        await self._turn()
        owner, session = self._locked(scope)
        locked = Locked(
            n=owner.n,
            head=session.row.head if session else 0,
            session=session.row if session else None,
            known=session.keys.get(scope.turn_key) if session and scope.turn_key else None,
            folds=_chosen(session.folds, scope.folds) if session else {},
            person_folds=_chosen(owner.folds, scope.person_folds),
            rows=_rows(session, *scope.rows, None) if session and scope.rows else (),
        )
        change = step(locked)
        if change is not None:
            refuse_unsound(scope, locked, change)
            if session is not None and change.turn_key in session.keys:
                raise StoreError("The turn key is taken.")
            self._apply(scope, owner, session, change)
        return locked, change

    def _locked(self, scope: Scope) -> tuple[_Owner, _Session | None]:
        owner = self._owners.get(scope.owner)
        if owner is None or owner.incarnation != scope.incarnation:
            raise Forgotten("The user.")
        if scope.session == NOBODY:
            return owner, None
        session = owner.sessions.get(scope.session)
        if session is None or session.row.incarnation != scope.session_incarnation:
            raise Forgotten("The session.")
        return owner, session

    def _apply(self, scope: Scope, owner: _Owner, session: _Session | None, change: Change) -> None:
        if session is not None:
            _apply_rows(owner, session, change)
            for kind in change.drop_folds:
                session.folds.pop(kind, None)
        for fold in change.folds:
            folds = session.folds if session is not None and fold.session == scope.session else owner.folds
            folds[fold.kind] = fold
        for kind in change.done:
            self._due.pop((scope.owner, scope.session, kind), None)
        for kind in change.due:
            self._due.setdefault((scope.owner, scope.session, kind), _Lease(Due(scope.owner, scope.session, kind)))

    async def erase_session(self, owner: bytes, incarnation: bytes, session: Tag, session_incarnation: bytes) -> Went:
        await self._turn()
        scope = Scope(owner=owner, incarnation=incarnation, session=session, session_incarnation=session_incarnation)
        here, gone = self._locked(scope)
        assert gone is not None
        del here.sessions[session]
        for key in [key for key in self._due if key[:2] == (owner, session)]:
            del self._due[key]
        return Went(sessions=1, messages=gone.living, folds=len(gone.folds))

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._turn()
        self._erasures[owner, incarnation] = None

    async def erase_owner(self, owner: bytes, incarnation: bytes) -> Went:
        await self._turn()
        here = self._owners.get(owner)
        return self._erase_owner(owner) if here is not None and here.incarnation == incarnation else Went()

    def _erase_owner(self, owner: bytes) -> Went:
        for key in [key for key in self._due if key[0] == owner]:
            del self._due[key]
        return self._owners.pop(owner).went

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        await self._turn()
        return list(self._erasures)

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._turn()
        self._erasures.pop((owner, incarnation), None)

    async def scrub(self, effort: Effort = "short") -> bool:
        await self._turn()
        return True

    async def lease(
        self, *, now: int, until: int, limit: int, only: tuple[bytes, Tag | None] | None = None, early: bool = False
    ) -> Sequence[Due]:
        await self._turn()
        owner, session = only or (None, None)
        free = [
            lease
            for lease in self._due.values()
            if lease.until <= now
            and (early or lease.retry_at <= now)
            and owner in (None, lease.due.owner)
            and session in (None, lease.due.session)
        ][:limit]
        taken = [lease.due for lease in free]
        for lease in free:
            lease.until = until
            lease.due = replace(lease.due, attempts=lease.due.attempts + 1)
        return taken

    async def due_sessions(self) -> int:
        await self._turn()
        return len({key[:2] for key in self._due})

    async def put_back(self, due: Due, *, retry_at: int) -> None:
        await self._turn()
        lease = self._due.get((due.owner, due.session, due.kind))
        if lease is not None:
            lease.until, lease.retry_at = 0, retry_at

    async def rescan(self, *, kind: str, lag: int) -> int:
        await self._turn()
        before = len(self._due)
        for owner, here in self._owners.items():
            for tag, session in here.sessions.items():
                cursor = session.folds[kind].cursor if kind in session.folds else 0
                if session.row.head - cursor > lag:
                    self._due.setdefault((owner, tag, kind), _Lease(Due(owner, tag, kind)))
        return len(self._due) - before

    async def spend(self, day: int, tokens: int) -> int:
        await self._turn()
        self._spent[day] = self._spent.get(day, 0) + tokens
        return self._spent[day]

    async def _turn(self) -> None:
        """Lets others go first, as a real store would."""
        if not self._open:
            raise StoreError("It is closed.")
        await asyncio.sleep(0)


def _apply_rows(owner: _Owner, session: _Session, change: Change) -> None:
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


def _chosen(folds: Mapping[str, FoldRow], kinds: tuple[str, ...]) -> dict[str, FoldRow]:
    return {kind: row for kind, row in folds.items() if kind in kinds}


def _rows(session: _Session, first: int, end: int, limit: int | None) -> tuple[Row, ...]:
    found: list[Row] = []
    living = 0
    for seq in range(min(end, session.row.head) - 1, first - 1, -1):
        if living == limit:
            break
        found.append(session.rows[seq])
        living += session.rows[seq].body is not None
    return tuple(reversed(found))


class MemoryKeys:
    """Wrapped keys in dictionaries."""

    def __init__(self) -> None:
        self.open = False
        self._id = random_bytes(16)
        self._roots: dict[bytes, RootRow] = {}
        self._tag_keys: dict[bytes, KeyRow] = {}
        self._user_keys: dict[bytes, KeyRow] = {}

    async def store_id(self) -> bytes:
        await self._turn()
        return self._id

    async def roots(self) -> Sequence[RootRow]:
        await self._turn()
        return list(self._roots.values())

    async def add_root(self, row: RootRow) -> None:
        await self._turn()
        kept = self._roots.get(row.root, row)
        if row.active:
            self._roots = {root: replace(other, active=False) for root, other in self._roots.items()}
        self._roots[row.root] = replace(kept, active=row.active)

    async def retire_root(self, root: bytes) -> bool:
        await self._turn()
        used = any(key.root == root for keys in (self._tag_keys, self._user_keys) for key in keys.values())
        if used or root not in self._roots or self._roots[root].active:
            return False
        del self._roots[root]
        return True

    async def tag_key(self, tenant: Tag) -> KeyRow | None:
        await self._turn()
        return self._tag_keys.get(tenant)

    async def add_tag_key(self, row: KeyRow) -> KeyRow | None:
        await self._turn()
        return self._add(self._tag_keys, row)

    async def user_key(self, owner: bytes) -> KeyRow | None:
        await self._turn()
        return self._user_keys.get(owner)

    async def add_user_key(self, row: KeyRow) -> KeyRow | None:
        await self._turn()
        return self._add(self._user_keys, row)

    async def remove_user_key(self, owner: bytes, incarnation: bytes) -> bool:
        await self._turn()
        key = self._user_keys.get(owner)
        if key is None or key.incarnation != incarnation:
            return False
        del self._user_keys[owner]
        return True

    async def wrapped_by(self, root: bytes, limit: int) -> Sequence[KeyRow]:
        await self._turn()
        keys = [*self._tag_keys.values(), *self._user_keys.values()]
        return [key for key in keys if key.root == root][:limit]

    async def rewrap(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        await self._turn()
        done = 0
        for old, new in rows:
            for keys in (self._user_keys, self._tag_keys):
                if keys.get(old.owner) == old:
                    keys[old.owner] = new
                    done += 1
        return done

    async def scrub(self, effort: Effort = "short") -> bool:
        await self._turn()
        return True

    async def _turn(self) -> None:
        if not self.open:
            raise StoreError("It is closed.")
        await asyncio.sleep(0)

    def _add(self, keys: dict[bytes, KeyRow], row: KeyRow) -> KeyRow | None:
        if row.owner in keys:
            return keys[row.owner]
        if row.root not in self._roots or not self._roots[row.root].active:
            return None
        keys[row.owner] = row
        return row
