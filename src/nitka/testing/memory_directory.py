"""What the store in memory keeps beside the content: due work, unfinished erasures, handles, keys of the server, the
outbox, the day's spending.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from nitka.errors import Forgotten, StoreError
from nitka.store.port import NOBODY, ApiKeyRow, Due, FoldRow, HandleRow, OutboxRow, Piece, Row, SessionRow
from nitka.types import Tag


@dataclass
class Session:
    row: SessionRow
    rows: dict[int, Row] = field(default_factory=dict)
    keys: dict[Tag, int] = field(default_factory=dict)
    folds: dict[str, FoldRow] = field(default_factory=dict)

    @property
    def living(self) -> int:
        return sum(row.body is not None for row in self.rows.values())


@dataclass
class Owner:
    incarnation: bytes
    n: int = 0
    sessions: dict[Tag, Session] = field(default_factory=dict)
    folds: dict[str, FoldRow] = field(default_factory=dict)
    pieces: dict[tuple[str, Tag], Piece] = field(default_factory=dict)


@dataclass
class _Lease:
    due: Due
    until: int = 0
    retry_at: int = 0


@dataclass
class _Parcel:
    row: OutboxRow
    until: int = 0
    retry_at: int = 0


class MemoryDirectory:
    """The part of `MemoryStore` that is reached without an owner, or only to find him."""

    def __init__(self) -> None:
        self._owners: dict[bytes, Owner] = {}
        self._due: dict[tuple[bytes, Tag, str], _Lease] = {}
        self._erasures: dict[tuple[bytes, bytes], None] = {}
        self._handles: dict[Tag, HandleRow] = {}
        self._api_keys: dict[bytes, ApiKeyRow] = {}
        self._outbox: dict[tuple[bytes, Tag], _Parcel] = {}
        self._spent: dict[int, int] = {}
        self._open = False

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._turn()
        self._erasures[owner, incarnation] = None

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        await self._turn()
        return list(self._erasures)

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None:
        await self._turn()
        self._erasures.pop((owner, incarnation), None)

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

    async def rescan(self, *, kind: str, lag: int, person: bool = False) -> int:
        await self._turn()
        before = len(self._due)
        for owner, here in self._owners.items():
            sessions = ((tag, session.row.head, session.folds) for tag, session in here.sessions.items())
            for tag, end, folds in [(NOBODY, here.n, here.folds)] if person else sessions:
                if end - (folds[kind].cursor if kind in folds else 0) > lag:
                    self._add_due(owner, tag, kind)
        return len(self._due) - before

    def _add_due(self, owner: bytes, session: Tag, kind: str) -> None:
        self._due.setdefault((owner, session, kind), _Lease(Due(owner, session, kind)))

    def _drop_due(self, *of: bytes) -> None:
        """Of an owner, or of an owner and session."""
        for key in [key for key in self._due if key[: len(of)] == of]:
            del self._due[key]

    async def owners(self, *, after: bytes = b"", limit: int = 1000) -> Sequence[bytes]:
        await self._turn()
        return sorted(owner for owner in self._owners if owner > after)[:limit]

    async def handle(self, handle: Tag) -> HandleRow | None:
        await self._turn()
        return self._handles.get(handle)

    async def handles(self, owner: bytes) -> Sequence[HandleRow]:
        await self._turn()
        return sorted(row for row in self._handles.values() if row.owner == owner)

    async def add_handle(self, row: HandleRow, incarnation: bytes) -> HandleRow:
        await self._turn()
        owner = self._owners.get(row.owner)
        if owner is None or owner.incarnation != incarnation:
            raise Forgotten("The user.")
        return self._handles.setdefault(row.handle, row)

    async def remove_handle(self, owner: bytes, handle: Tag) -> bool:
        await self._turn()
        row = self._handles.get(handle)
        if row is None or row.owner != owner:
            return False
        del self._handles[handle]
        return True

    async def api_key(self, hash: bytes) -> ApiKeyRow | None:
        await self._turn()
        return self._api_keys.get(hash)

    async def api_keys(self) -> Sequence[ApiKeyRow]:
        await self._turn()
        return sorted(self._api_keys.values(), key=lambda row: (row.made, row.hash))

    async def add_api_key(self, row: ApiKeyRow) -> None:
        await self._turn()
        self._api_keys.setdefault(row.hash, row)

    async def remove_api_key(self, hash: bytes) -> bool:
        await self._turn()
        return self._api_keys.pop(hash, None) is not None

    async def take_outbox(self, *, now: int, until: int, limit: int, oldest: int) -> Sequence[OutboxRow]:
        await self._turn()
        self._outbox = {key: parcel for key, parcel in self._outbox.items() if parcel.row.made >= oldest}
        free = [parcel for parcel in self._outbox.values() if parcel.until <= now and parcel.retry_at <= now]
        free = sorted(free, key=lambda parcel: (parcel.row.made, parcel.row.owner, parcel.row.id))[:limit]
        taken = [parcel.row for parcel in free]
        for parcel in free:
            parcel.until = until
            parcel.row = parcel.row._replace(attempts=parcel.row.attempts + 1)
        return taken

    async def put_back_outbox(self, owner: bytes, id: Tag, *, retry_at: int) -> None:
        await self._turn()
        parcel = self._outbox.get((owner, id))
        if parcel is not None:
            parcel.until, parcel.retry_at = 0, retry_at

    async def remove_outbox(self, owner: bytes, id: Tag) -> bool:
        await self._turn()
        return self._outbox.pop((owner, id), None) is not None

    def _add_outbox(self, row: OutboxRow) -> None:
        self._outbox.setdefault((row.owner, row.id), _Parcel(row))

    async def spend(self, day: int, tokens: int) -> int:
        await self._turn()
        self._spent[day] = self._spent.get(day, 0) + tokens
        return self._spent[day]

    async def _turn(self) -> None:
        """Lets others go first, as a real store would."""
        if not self._open:
            raise StoreError("It is closed.")
        await asyncio.sleep(0)
