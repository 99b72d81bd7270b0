"""The store's port: sealed bytes, tags and numbers in, the same out. No text and no key passes here.

Rules that every store keeps (the contract suite in tests/contract proves them):

* Whatever belongs to a person is reached through exactly one owner. A session, a turn key or a fold named under
  another owner is not found.
* `change` is the one way to write under an owner: it locks the owner's row, compares the incarnation, then the
  session's, reads what the scope names, calls the pure `step`, and applies the returned `Change`, all in one
  transaction. What `step` raises undoes everything.
* `seq` and `n` are given out in that transaction and never used twice; a tombstone keeps both.
* `view` reads from one snapshot, and runs no query that was not asked for.
* An acknowledged write is durable.

Owners, incarnations and tags are 16 bytes. Times are whole milliseconds since 1970-01-01 UTC. Errors: `Forgotten`
where an incarnation differs, `StoreBusy` after the stated wait, `StoreError` for the rest, a closed store among it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nitka.store.rows import (
    NOBODY,
    ApiKeyRow,
    Change,
    Due,
    Effort,
    FoldRow,
    HandleRow,
    KeyRow,
    Locked,
    Look,
    OutboxRow,
    PersonRow,
    Piece,
    RootRow,
    Row,
    Scope,
    SessionRow,
    Step,
    View,
    Went,
    refuse_unsound,
    refuse_unsound_erasure,
)
from nitka.types import Tag

__all__ = [
    "NOBODY",
    "ApiKeyRow",
    "Change",
    "Due",
    "Effort",
    "FoldRow",
    "HandleRow",
    "KeyRow",
    "KeyStore",
    "Locked",
    "Look",
    "OutboxRow",
    "PersonRow",
    "Piece",
    "RootRow",
    "Row",
    "Scope",
    "SessionRow",
    "Step",
    "Store",
    "View",
    "Went",
    "refuse_unsound",
    "refuse_unsound_erasure",
]


class KeyStore(Protocol):
    """Wrapped keys, kept apart from the data. Every method is one transaction."""

    async def store_id(self) -> bytes:
        """The random id of the store, made with it; a copy has the same."""
        ...

    async def roots(self) -> Sequence[RootRow]: ...

    async def add_root(self, row: RootRow) -> None:
        """Records a root; if it is active the others no longer are. An existing proof of the same root is kept."""
        ...

    async def retire_root(self, root: bytes) -> bool:
        """Removes a root that is not active and wraps nothing any more; False when it is still needed."""
        ...

    async def tag_key(self, tenant: Tag) -> KeyRow | None:
        """The wrapped tag key of a tenant; `owner` is the tenant's tag."""
        ...

    async def add_tag_key(self, row: KeyRow) -> KeyRow | None:
        """Inserts unless one is there; returns what stands. None: the row's root is not the active one, nothing was
        written.
        """
        ...

    async def user_key(self, owner: bytes) -> KeyRow | None: ...

    async def add_user_key(self, row: KeyRow) -> KeyRow | None:
        """Inserts unless one is there; returns what stands. None: the row's root is not the active one, nothing was
        written.
        """
        ...

    async def remove_user_key(self, owner: bytes, incarnation: bytes) -> bool: ...

    async def wrapped_by(self, root: bytes, limit: int) -> Sequence[KeyRow]:
        """Up to `limit` keys (users' and tenants') that this root wraps."""
        ...

    async def rewrap(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        """Replaces each old row that still stands unchanged by the new one; returns how many were."""
        ...

    async def scrub(self, effort: Effort = "short") -> bool:
        """Makes removed bytes vanish from every file; False while a reader prevents it, or where `effort` falls short.

        "log": only those that lie where they were written, quick, and enough for small rows that were never moved.
        "short": all, unless the store is too large to do it while others wait. "whole": all, as long as it takes.
        """
        ...


class Store(Protocol):
    """The log, the folds and the index of due work."""

    @property
    def keys(self) -> KeyStore: ...

    @property
    def keys_apart(self) -> bool:
        """Whether the wrapped keys lie in another file or database than the data, so that a copy of the data has
        none.
        """
        ...

    async def start(self) -> None:
        """Opens and migrates. Raises `StoreError`."""
        ...

    async def close(self) -> None: ...

    async def view(self, look: Look) -> View: ...

    async def sessions(self, owner: bytes, *, after: Tag | None = None, limit: int = 1000) -> Sequence[SessionRow]:
        """Sessions in the order of their tags, those after `after`."""
        ...

    async def create(self, owner: bytes, incarnation: bytes, session: SessionRow | None = None) -> SessionRow | None:
        """Makes the owner row and, if given, the session row, unless they are there; returns the session row that
        stands. Raises `Forgotten` where the owner stands in another incarnation.
        """
        ...

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        """The one write under an owner; returns what stood and what was written."""
        ...

    async def erase_session(self, scope: Scope, step: Step) -> Went | None:
        """Removes the session of the scope, with what `step` wants changed of the owner in the same transaction. None,
        and nothing is written, where `step` returns None.
        """
        ...

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        """Remembers durably that this owner is being forgotten, so that a crash in between is finished by `settle`."""
        ...

    async def erase_owner(self, owner: bytes, incarnation: bytes, *, still: tuple[Look, View] | None = None) -> Went:
        """Removes every row of the owner, if he is still of this incarnation, and if the look would `still` give the
        view, where these are given.
        """
        ...

    async def erasures(self) -> Sequence[tuple[bytes, bytes]]:
        """Owners and incarnations whose erasure is not finished."""
        ...

    async def end_erasure(self, owner: bytes, incarnation: bytes) -> None: ...

    async def scrub(self, effort: Effort = "short") -> bool:
        """Makes removed bytes vanish from every file; False while a reader prevents it, or where `effort` falls short.

        "log": only those that lie where they were written, quick, and enough for small rows that were never moved.
        "short": all, unless the store is too large to do it while others wait. "whole": all, as long as it takes.
        """
        ...

    async def lease(
        self, *, now: int, until: int, limit: int, only: tuple[bytes, Tag | None] | None = None, early: bool = False
    ) -> Sequence[Due]:
        """Takes up to `limit` due entries for this caller until the given time, counting the attempt. `early` also
        takes those that wait for a later attempt, `only` those of one owner (and session).
        """
        ...

    async def due_sessions(self) -> int:
        """How many sessions have something due, leased or not; what is due for a person counts as one more."""
        ...

    async def put_back(self, due: Due, *, retry_at: int) -> None:
        """Ends a lease whose work failed."""
        ...

    async def rescan(self, *, kind: str, lag: int, person: bool = False) -> int:
        """Rebuilds the due index for a session fold from heads and cursors, or for a `person` fold from n and cursors;
        returns how many entries were missing.
        """
        ...

    async def owners(self, *, after: bytes = b"", limit: int = 1000) -> Sequence[bytes]:
        """Owners in the order of their ids, those after `after`: for what must be done for everybody now and then."""
        ...

    async def handle(self, handle: Tag) -> HandleRow | None:
        """Whose handle it is."""
        ...

    async def handles(self, owner: bytes) -> Sequence[HandleRow]: ...

    async def add_handle(self, row: HandleRow, incarnation: bytes) -> HandleRow:
        """Links unless it is linked; returns what stands. Raises `Forgotten` where the owner differs from
        `incarnation`.
        """
        ...

    async def remove_handle(self, owner: bytes, handle: Tag) -> bool: ...

    async def api_key(self, hash: bytes) -> ApiKeyRow | None: ...

    async def api_keys(self) -> Sequence[ApiKeyRow]:
        """All of them, oldest first."""
        ...

    async def add_api_key(self, row: ApiKeyRow) -> None: ...

    async def remove_api_key(self, hash: bytes) -> bool: ...

    async def take_outbox(self, *, now: int, until: int, limit: int, oldest: int) -> Sequence[OutboxRow]:
        """Takes up to `limit` rows, oldest first, for this caller until the given time, counting the attempt. Rows made
        before `oldest` are removed first, undelivered.
        """
        ...

    async def put_back_outbox(self, owner: bytes, id: Tag, *, retry_at: int) -> None: ...

    async def remove_outbox(self, owner: bytes, id: Tag) -> bool: ...

    async def spend(self, day: int, tokens: int) -> int:
        """Adds to the day's count of tokens given to fold models and returns the sum."""
        ...
