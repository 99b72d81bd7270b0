"""Moves a whole store into another that is empty: from SQLite to PostgreSQL, back, or to one of its own kind.

* What is sealed stays as it is: the copy opens with the same root keys, and has the same store id.
* The source is read in one snapshot of the data and one of the keys, taken in this order: a key is durable before the
  first row it seals, so no row of the copy lacks its key. What is written to the source meanwhile is not in the copy:
  stop the programs that use it.
* The target must hold nothing. Keys are written first, then the data, each in one transaction. Whatever ends it in
  between leaves a target that is empty, or one that no program opens: keys that belong to another store. Empty it and
  begin again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from nitka.errors import StoreError

CHUNK = 1000  # rows read at once

DATA: Mapping[str, tuple[str, ...]] = {
    "owners": ("owner", "incarnation", "n"),
    "sessions": ("owner", "session", "incarnation", "head", "body"),
    "messages": ("owner", "session", "seq", "n", "body"),
    "turn_keys": ("owner", "session", "key", "seq"),
    "folds": ("owner", "session", "kind", "cursor", "version", "body"),
    "pieces": ("owner", "kind", "id", "body"),
    "due": ("owner", "session", "kind", "attempts", "leased_until", "retry_at"),
    "erasures": ("owner", "incarnation"),
    "spent": ("day", "tokens"),
    "handles": ("handle", "owner", "body"),
    "api_keys": ("hash", "made", "body"),
    "outbox": ("owner", "id", "made", "body", "attempts", "leased_until", "retry_at"),
}
KEYS: Mapping[str, tuple[str, ...]] = {
    "roots": ("root", "active", "proof"),
    "tag_keys": ("owner", "incarnation", "root", "wrapped"),
    "user_keys": ("owner", "incarnation", "root", "wrapped"),
}
META: Mapping[str, tuple[str, ...]] = {"meta": ("store",)}

Rows = Sequence[tuple[Any, ...]]
Progress = Callable[[int], None]
"""Is told how many rows are written."""


class Reading(Protocol):
    """One snapshot of one half of a store."""

    def rows(self, table: str, columns: Sequence[str]) -> Iterator[Rows]:
        """All rows, at most `CHUNK` at once."""
        ...


class Writing(Protocol):
    """One transaction on one half of a store. It commits at the end of its context."""

    def is_empty(self, table: str) -> bool: ...

    def clear(self, table: str) -> None: ...

    def put(self, table: str, columns: Sequence[str], chunks: Iterator[Rows]) -> None: ...


class Side(Protocol):
    """One half of a store, the data or the wrapped keys. What goes wrong is a `StoreError`."""

    def reading(self) -> AbstractContextManager[Reading]: ...

    def writing(self) -> AbstractContextManager[Writing]: ...


@runtime_checkable
class Movable(Protocol):
    """A store that can be moved."""

    async def start(self) -> None: ...

    async def close(self) -> None: ...

    def sides(self) -> tuple[Side, Side]:
        """The data and the keys."""
        ...


async def move(source: Movable, target: Movable, *, progress: Progress | None = None) -> int:
    """Copies everything, and gives how many rows that were. Both are opened and closed first, and so migrated. Raises
    `StoreError`.
    """
    for store in (source, target):
        await store.start()
        await store.close()
    return await asyncio.to_thread(_move, source, target, progress)


def _move(source: Movable, target: Movable, progress: Progress | None) -> int:
    (data, keys), (new_data, new_keys) = source.sides(), target.sides()
    with data.reading() as data_rows, keys.reading() as key_rows:
        with new_data.writing() as check:
            _refuse_unless_empty(check, DATA)
        with new_keys.writing() as writing:
            _refuse_unless_empty(writing, KEYS)
            count = _fill(writing, key_rows, KEYS, 0, progress)
        with new_data.writing() as writing:
            _refuse_unless_empty(writing, DATA)
            return _fill(writing, data_rows, DATA, count, progress)


def _refuse_unless_empty(writing: Writing, tables: Mapping[str, tuple[str, ...]]) -> None:
    if not all(writing.is_empty(table) for table in tables):
        raise StoreError("The target holds rows already; a store is copied into an empty one.")


def _fill(
    writing: Writing, reading: Reading, tables: Mapping[str, tuple[str, ...]], count: int, progress: Progress | None
) -> int:
    """Writes all tables and the store's id; gives the count of all rows so far, the id not among them."""

    def counted(chunks: Iterator[Rows]) -> Iterator[Rows]:
        nonlocal count
        for chunk in chunks:
            yield chunk
            count += len(chunk)
            if progress is not None:
                progress(count)

    for table, columns in tables.items():
        writing.put(table, columns, counted(reading.rows(table, columns)))
    for table, columns in META.items():
        writing.clear(table)
        writing.put(table, columns, reading.rows(table, columns))
    return count
