"""The store's port: sealed bytes, tags and numbers in, the same out. No text and no key passes here.

Rules that every store keeps (the contract suite in tests/contract proves them):

* Whatever belongs to a person is reached through exactly one owner. A session, a turn key or a fold named under
  another owner is not found.
* `change` is the one way to write under an owner: it locks the owner's row, compares the incarnation, then the
  session's, reads what the scope names, calls the pure `step`, and applies the returned `Change`, all in one
  transaction. What `step` raises undoes everything.
* `seq` and `n` are given out in that transaction and never used twice; a tombstone keeps both.
* `view` reads from one snapshot.
* An acknowledged write is durable.

Owners, incarnations and tags are 16 bytes. Times are whole milliseconds since 1970-01-01 UTC. Errors: `Forgotten`
where an incarnation differs, `StoreBusy` after the stated wait, `StoreError` for the rest, a closed store among it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from nitka.errors import StoreError
from nitka.types import Sealed, Tag

Effort = Literal["log", "short", "whole"]

NOBODY = Tag(bytes(16))
"""Stands where a session would, for what belongs to a person and not to one session."""


class Row(NamedTuple):
    """A stored message; `body` is None when the turn was forgotten and only its numbers remain."""

    seq: int
    n: int
    body: Sealed | None


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session: `head` is the number of the next row; `body` holds what the caller called it."""

    session: Tag
    incarnation: bytes
    head: int
    body: Sealed


@dataclass(frozen=True, slots=True)
class FoldRow:
    """The state of one fold. `cursor` and `version` only grow."""

    session: Tag
    kind: str
    cursor: int
    version: int
    body: Sealed


@dataclass(frozen=True, slots=True)
class Due:
    """One entry of the index of due work."""

    owner: bytes
    session: Tag
    kind: str
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What a `view` shall read: the rows `[first, end)`, where `first=None` means from the summary's cursor and
    `end=None` to the head; of them at most the newest `limit`.
    """

    owner: bytes
    session: Tag = NOBODY
    turn_key: Tag | None = None
    folds: tuple[str, ...] = ()  # kinds of the session
    person_folds: tuple[str, ...] = ()  # kinds of the owner
    first: int | None = 0
    end: int | None = None
    limit: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One snapshot. `known` is the seq of the turn that holds the turn key."""

    incarnation: bytes | None = None
    session: SessionRow | None = None
    known: int | None = None
    pair: tuple[Row, ...] = ()  # the two rows of the known turn
    folds: Mapping[str, FoldRow] = field(default_factory=dict)
    person_folds: Mapping[str, FoldRow] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What a change locks and reads. `rows` is a range `[first, end)` of the session to read under the lock."""

    owner: bytes
    incarnation: bytes
    session: Tag = NOBODY
    session_incarnation: bytes | None = None
    turn_key: Tag | None = None
    folds: tuple[str, ...] = ()
    person_folds: tuple[str, ...] = ()
    rows: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Locked:
    """What stands under the lock while `step` decides. `n` and `head` are the numbers the next row gets."""

    n: int
    head: int
    session: SessionRow | None = None
    known: int | None = None
    folds: Mapping[str, FoldRow] = field(default_factory=dict)
    person_folds: Mapping[str, FoldRow] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `step` wants written. Numbers of `append` must continue `n` and `head` without a gap."""

    append: tuple[Row, ...] = ()
    session_body: Sealed | None = None  # must be given with `append`
    turn_key: Tag | None = None  # now belongs to the first appended row
    forget: tuple[int, int] | None = None  # rows [first, end) become tombstones
    folds: tuple[FoldRow, ...] = ()  # written whole
    drop_folds: tuple[str, ...] = ()  # kinds of the session to remove
    due: tuple[str, ...] = ()  # kinds of work now due for the session
    done: tuple[str, ...] = ()  # kinds no longer due


Step = Callable[[Locked], Change | None]
"""Pure: decides what to write from what is there. None writes nothing."""


def refuse_unsound(scope: Scope, locked: Locked, change: Change) -> None:
    """What no store writes, looked at before anything is written: a gap or a number used twice, rows without a
    session or its body, a turn key without rows, a state of somebody else's session. Raises `StoreError`.
    """
    expected = [(locked.head + at, locked.n + at) for at in range(len(change.append))]
    sound = (
        [(row.seq, row.n) for row in change.append] == expected
        and (not change.append or (scope.session != NOBODY and change.session_body is not None))
        and (change.session_body is None or scope.session != NOBODY)
        and (change.turn_key is None or bool(change.append))
        and all(fold.session in (scope.session, NOBODY) for fold in change.folds)
    )
    if not sound:
        raise StoreError("The change does not continue what is there.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """True counts of rows that an erasure removed."""

    owners: int = 0
    sessions: int = 0
    messages: int = 0
    folds: int = 0


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A user's key, wrapped by the root key `root`."""

    owner: bytes
    incarnation: bytes
    root: bytes
    wrapped: Sealed


@dataclass(frozen=True, slots=True)
class RootRow:
    """A root key the store has been used with: `proof` is a known value sealed by it."""

    root: bytes
    active: bool
    proof: Sealed


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

    async def erase_session(
        self, owner: bytes, incarnation: bytes, session: Tag, session_incarnation: bytes
    ) -> Went: ...

    async def begin_erasure(self, owner: bytes, incarnation: bytes) -> None:
        """Remembers durably that this owner is being forgotten, so that a crash in between is finished by `settle`."""
        ...

    async def erase_owner(self, owner: bytes, incarnation: bytes) -> Went:
        """Removes every row of the owner, if he is still of this incarnation."""
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
        """How many sessions have something due, leased or not."""
        ...

    async def put_back(self, due: Due, *, retry_at: int) -> None:
        """Ends a lease whose work failed."""
        ...

    async def rescan(self, *, kind: str, lag: int) -> int:
        """Rebuilds the due index for a session fold from heads and cursors; returns how many entries were missing."""
        ...

    async def spend(self, day: int, tokens: int) -> int:
        """Adds to the day's count of tokens given to fold models and returns the sum."""
        ...
