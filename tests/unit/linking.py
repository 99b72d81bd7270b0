"""What the tests of linked handles and adopted visitors share: a place where nitkas live and die, a store between whose
calls something else happens, and all that one person can read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from nitka import Handle, Limits, Nitka
from nitka.door import as_user
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import Person

SMALL = Limits(window=4, budget=100_000, backlog=40, wait_seconds=5)


class Place:
    """A medium that outlives its nitkas: memory, or a folder with a SQLite file."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = folder / "links.db" if folder else None
        self.ring = memory_ring()
        self.clock = FixedClock()
        self._memory = MemoryStore()

    def store(self) -> Store:
        return SqliteStore(str(self.path), wait=5) if self.path else self._memory

    def open(self, store: Any = None, **more: Any) -> Nitka:
        usual = {"model": FakeModel(lambda asked: f"re {asked[-1]['content']}"), "fold_model": "offline"}
        usual |= {"keys": self.ring, "limits": SMALL, "clock": self.clock}
        return Nitka.open(store or self.store(), **{**usual, **more})


class Between:
    """A store before whose call number `at` (from 0, counted since `arm`) something else happens, once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._at = -1
        self._act: Callable[[], Awaitable[None]] | None = None
        self._over = asyncio.Event()
        self._calls = 0
        self.keys = _Keys(store.keys, self)

    def __getattr__(self, name: str) -> Any:
        return self.wrap(getattr(self._store, name), name)

    def wrap(self, method: Any, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            number, self._calls = self._calls, self._calls + 1
            if number == self._at and self._act is not None:
                act, self._act = self._act, None
                try:
                    await act()
                finally:
                    self._over.set()
            return await method(*args, **kwargs)

        return method if name in ("start", "close") or not callable(method) else call

    def arm(self, at: int, act: Callable[[], Awaitable[None]]) -> None:
        self._at, self._act, self._calls = at, act, 0

    async def disarm(self) -> int:
        """Waits for what was begun, perhaps by a call of the background's, which makes now more calls and now fewer;
        what was not begun is done now, after all. Returns how many calls there were.
        """
        calls = self._calls
        if self._act is None:
            await self._over.wait()
        else:
            act, self._act = self._act, None
            await act()
        return calls


async def each_moment(meet: Callable[[int], Awaitable[int]]) -> None:
    """Lets two things meet at each call in turn; `meet` returns how many calls there were."""
    at, calls = 0, 1
    while at < calls:
        calls = await meet(at)
        at += 1


class _Keys:
    def __init__(self, keys: Any, store: Between) -> None:
        self._keys = keys
        self._wrap = store.wrap

    def __getattr__(self, name: str) -> Any:
        return self._wrap(getattr(self._keys, name), name)


async def told(nitka: Nitka, who: str | Person) -> dict[str, list[tuple[str, str]]]:
    """What was said, session by session: questions and answers."""
    found = {}
    for info in await nitka.sessions(who):
        rows = await nitka.history(who, info.id, limit=1_000_000)
        assert len(rows) == info.messages
        assert [row.role for row in rows] == ["user", "assistant"] * (len(rows) // 2)
        found[info.id] = [(a.text, b.text) for a, b in zip(rows[::2], rows[1::2], strict=True)]
    return found


async def listed(records: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
    return [record async for record in records]


VISITOR = Handle("web", "cookie-1")
LONG_AGO = datetime(2020, 2, 3, 4, 5, tzinfo=UTC)


async def visit(nitka: Nitka, who: Any = VISITOR) -> None:
    """Two sessions side by side, one of which the user has too; a turn cut off, one forgotten; facts by hand."""
    await nitka.record(who, "s", text="v0", answer="a0", at=LONG_AGO, zone="Europe/Riga", channel="web")
    await nitka.say(who, "t", text="v1", channel="web")
    await nitka.say(who, "s", text="v2", key="k")
    with contextlib.suppress(ZeroDivisionError):
        async with nitka.turn(who, "t", text="v3") as turn:
            turn.piece("a piece")
            _ = 1 / 0
    await nitka.say(who, "t", text="v4 which is forgotten")
    await nitka.forget(who, session="t", turn=4)
    await nitka.set_fact(who, "home.city", "Riga")
    await nitka.set_fact(who, "food.likes", "plums")


MOVED = {
    "s": [("u0", "re u0"), ("v0", "a0"), ("v2", "re v2")],
    "t": [("v1", "re v1"), ("v3", "a piece")],
}


async def check_moved(nitka: Nitka, who: Any = VISITOR) -> None:
    """The user has it all, once; the visitor is gone from the store, his key too."""
    assert await told(nitka, "anna") == MOVED
    assert await told(nitka, who) == {}
    assert {fact.value for fact in await nitka.facts("anna") if fact.by_hand} == {"Riga", "plums"}
    store = nitka._vault.store
    assert len(await store.owners()) == 1
    assert await store.keys.user_key(await nitka._vault.owner_id(as_user(who))) is None
