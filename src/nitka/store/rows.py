"""The values that cross the store's port: rows as they lie, what a view reads, what a change reads and writes.

Owners, incarnations and tags are 16 bytes. Times are whole milliseconds since 1970-01-01 UTC. Whatever is of type
`Sealed` was sealed before it came here and says nothing to the store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

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


class PersonRow(NamedTuple):
    """A row with the session it belongs to, for whoever reads a person's rows by `n`."""

    session: Tag
    row: Row


class Piece(NamedTuple):
    """One part of the state of a person's fold: a fact, a segment of the recall index. `id` is unique in its kind:
    a keyed hash, or a number as sixteen bytes.
    """

    kind: str
    id: Tag
    body: Sealed


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
    `end=None` to the head; of them at most the newest `limit`. Of a person, whatever the session: all pieces of some
    kinds, the oldest rows `from_n=(n, limit)` on, and the rows whose numbers are `ns`.
    """

    owner: bytes
    session: Tag = NOBODY
    turn_key: Tag | None = None
    folds: tuple[str, ...] = ()  # kinds of the session
    person_folds: tuple[str, ...] = ()  # kinds of the owner
    first: int | None = 0
    end: int | None = None
    limit: int = 0
    numbers: bool = False  # the n of every living row of `[first, end)`, however many
    pieces: tuple[str, ...] = ()
    from_n: tuple[int, int] | None = None
    ns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """One snapshot. `known` is the seq of the turn that holds the turn key, `n` the number of the owner's next row.

    Kinds of folds and pieces that are not there are not in the mappings; pieces come in the order of their ids.
    `numbers` are in order. `person_rows` are those that `from_n` and `ns` ask for, in the order of their n, each once,
    tombstones among them; a row whose session was erased is not there any more. `person_sessions` are the sessions
    they belong to.
    """

    incarnation: bytes | None = None
    n: int = 0
    session: SessionRow | None = None
    known: int | None = None
    pair: tuple[Row, ...] = ()  # the two rows of the known turn
    folds: Mapping[str, FoldRow] = field(default_factory=dict)
    person_folds: Mapping[str, FoldRow] = field(default_factory=dict)
    rows: tuple[Row, ...] = ()
    numbers: tuple[int, ...] = ()
    pieces: Mapping[str, tuple[Piece, ...]] = field(default_factory=dict)
    person_rows: tuple[PersonRow, ...] = ()
    person_sessions: Mapping[Tag, SessionRow] = field(default_factory=dict)


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


class OutboxRow(NamedTuple):
    """Something to be delivered elsewhere; gone when it was, with its owner, or after a day. Times in milliseconds."""

    owner: bytes
    id: Tag
    made: int
    body: Sealed
    attempts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What `step` wants written. Numbers of `append` must continue `n` and `head` without a gap. What is dropped goes
    before what is put, and what is done before what is due. A row of the outbox that is there already stays.
    """

    append: tuple[Row, ...] = ()
    session_body: Sealed | None = None  # must be given with `append`
    turn_key: Tag | None = None  # now belongs to the first appended row
    forget: tuple[int, int] | None = None  # rows [first, end) become tombstones
    folds: tuple[FoldRow, ...] = ()  # written whole
    drop_folds: tuple[str, ...] = ()  # kinds of the session to remove
    due: tuple[str, ...] = ()  # kinds of work now due for the session
    done: tuple[str, ...] = ()  # kinds no longer due
    put_pieces: tuple[Piece, ...] = ()  # written whole
    drop_pieces: tuple[tuple[str, Tag], ...] = ()  # kind and id
    person_due: tuple[str, ...] = ()  # kinds of work now due for the owner, under NOBODY
    person_done: tuple[str, ...] = ()
    outbox: tuple[OutboxRow, ...] = ()


Step = Callable[[Locked], Change | None]
"""Pure: decides what to write from what is there. None writes nothing."""


def refuse_unsound(scope: Scope, locked: Locked, change: Change) -> None:
    """What no store writes, looked at before anything is written: a gap or a number used twice, rows without their
    session's body, a turn key without rows, anything of a session where the scope names none, a state of somebody
    else's session, an outbox of somebody else. Raises `StoreError`.
    """
    expected = [(locked.head + at, locked.n + at) for at in range(len(change.append))]
    sound = (
        [(row.seq, row.n) for row in change.append] == expected
        and (scope.session != NOBODY or not _touches_session(change))
        and (not change.append or change.session_body is not None)
        and (change.turn_key is None or bool(change.append))
        and all(fold.session in (scope.session, NOBODY) for fold in change.folds)
        and all(row.owner == scope.owner for row in change.outbox)
    )
    if not sound:
        raise StoreError("The change does not continue what is there.")


def refuse_unsound_erasure(scope: Scope, change: Change) -> None:
    """What no store writes while it erases a session: anything of that session, or of nobody's. Raises `StoreError`."""
    sound = (
        scope.session != NOBODY
        and not _touches_session(change)
        and not change.due
        and all(fold.session == NOBODY for fold in change.folds)
        and all(row.owner == scope.owner for row in change.outbox)
    )
    if not sound:
        raise StoreError("The change writes to a session that is being erased.")


def _touches_session(change: Change) -> bool:
    """Whether it writes rows, or removes states, of the scope's session."""
    return bool(
        change.append
        or change.forget is not None
        or change.session_body is not None
        or change.turn_key is not None
        or change.drop_folds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Went:
    """True counts of rows that an erasure removed; of a session's, what its step dropped of the owner included."""

    owners: int = 0
    sessions: int = 0
    messages: int = 0
    folds: int = 0
    pieces: int = 0
    handles: int = 0


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A user's key, wrapped by the root key `root`."""

    owner: bytes
    incarnation: bytes
    root: bytes
    wrapped: Sealed


class HandleRow(NamedTuple):
    """A name by which a channel knows a user: the tag of (tenant, channel, handle), and whose it is. `body` holds the
    name itself, sealed with the owner's key.
    """

    handle: Tag
    owner: bytes
    body: Sealed


class ApiKeyRow(NamedTuple):
    """A key of the server: the hash of its secret; sealed, its tenant and what it may do. `made` in milliseconds."""

    hash: bytes
    made: int
    body: Sealed


@dataclass(frozen=True, slots=True)
class RootRow:
    """A root key the store has been used with: `proof` is a known value sealed by it."""

    root: bytes
    active: bool
    proof: Sealed
