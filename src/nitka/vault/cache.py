"""What was opened lately of people's states, so that the next turn need not open it again.

Bounded by bytes and by time. A value is given back only for the version that stands now in the store, in the same
incarnation; what was sealed and never written is never found.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple


class _Entry(NamedTuple):
    incarnation: bytes
    version: int
    value: Any
    size: int
    until: float


class Cache:
    """Values by owner and kind, the least lately used given up first. For one event loop."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._size = 0
        self._entries: OrderedDict[tuple[bytes, str], _Entry] = OrderedDict()

    def get(self, owner: bytes, incarnation: bytes, kind: str, version: int) -> Any:
        """The value of that very version, or None."""
        entry = self._entries.get((owner, kind))
        if (
            entry is None
            or (entry.incarnation, entry.version) != (incarnation, version)
            or entry.until <= self._clock()
        ):
            return None
        self._entries.move_to_end((owner, kind))
        return entry.value

    def put(self, owner: bytes, incarnation: bytes, kind: str, version: int, value: Any, *, size: int) -> None:
        """Keeps a value of about `size` bytes; one that is larger than all the room is not kept."""
        self._remove((owner, kind))
        if size > self._limit:
            return
        self._entries[owner, kind] = _Entry(incarnation, version, value, size, self._clock() + self._seconds)
        self._size += size
        while self._size > self._limit:
            self._remove(next(iter(self._entries)))

    def drop(self, owner: bytes) -> None:
        """Forgets all of an owner."""
        for key in [key for key in self._entries if key[0] == owner]:
            self._remove(key)

    def expire(self) -> None:
        """Forgets what nobody asked for in time. Called now and then."""
        now = self._clock()
        for key in [key for key, entry in self._entries.items() if entry.until <= now]:
            self._remove(key)

    def _remove(self, key: tuple[bytes, str]) -> None:
        entry = self._entries.pop(key, None)
        self._size -= entry.size if entry else 0
