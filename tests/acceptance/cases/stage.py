"""What the case tests share: a place where nitkas live and die, models and stores under a test's control, and a strict
provider's view of a list of messages.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nitka import Limits, Message, Nitka
from nitka.models.ports import Answer
from nitka.store.port import Change, Locked, Look, Scope, Step, Store, View
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import ChatMessage, Line, Proposal

SMALL = Limits(window=4, summary_tokens=100_000, backlog=40, budget=100_000, wait_seconds=5, recall_wait=30)


class Tally:
    """A summariser that writes one line a message. `gate` holds it back while it is not set, `calls` is what it got."""

    name = "tally"

    def __init__(self) -> None:
        self.calls: list[tuple[Message, ...]] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.waiting = asyncio.Event()

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        self.calls.append(tuple(messages))
        self.waiting.set()
        await self.gate.wait()
        add = [Line(full=f"{m.seq} {m.text}", gist=f"{m.seq} {m.text[:20]}", first=m.seq, last=m.seq) for m in messages]
        return Proposal(add=tuple(add))

    @property
    def given(self) -> list[int]:
        """The numbers of the rows it was given, in order."""
        return [message.seq for call in self.calls for message in call]


class Stage:
    """A medium that outlives its nitkas: memory, or a folder with a SQLite file."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = folder / "cases.db" if folder else None
        self.ring = memory_ring()
        self.clock = FixedClock()
        self.tally = Tally()
        self._memory = MemoryStore()

    def store(self) -> Store:
        return SqliteStore(str(self.path), wait=5) if self.path else self._memory

    def open(self, store: Any = None, **more: Any) -> Nitka:
        usual = {"model": echo(), "fold_model": self.tally, "keys": self.ring, "limits": SMALL, "clock": self.clock}
        return Nitka.open(store or self.store(), **{**usual, **more})

    def everything(self) -> dict[str, list[Any]]:
        """All rows of all tables, whatever tables there are; for memory, what its dictionaries hold."""
        if self.path is None:
            kept = {"": vars(self._memory), "keys.": vars(self._memory.keys)}
            return {
                f"{part}{name}": list(value.items())
                for part, fields in kept.items()
                for name, value in fields.items()
                if isinstance(value, dict)
            }
        return {
            f"{path.name}:{table}": rows for path in self.files("") for table, rows in tables(path) if rows is not None
        }

    def files(self, *more: str) -> list[Path]:
        """The files of data and keys; with suffixes, those that are there."""
        assert self.path is not None
        both = (f"{self.path}{keys}{end}" for keys in ("", ".keys") for end in more)
        return [path for path in map(Path, both) if path.exists()]


def tables(path: Path) -> list[tuple[str, list[Any]]]:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        names = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
        return [(name, db.execute(f"select * from {name}").fetchall()) for name in names]
    finally:
        db.close()


def echo(prefix: str = "answer to ") -> FakeModel:
    return FakeModel(lambda messages: f"{prefix}{messages[-1]['content'][:200]}")


def fact(slot: str, value: str, quote: str, **more: Any) -> dict[str, Any]:
    """One fact as a model states it; the row is put in by whoever answers."""
    usual = {"op": "assert", "about": "user", "statement": value, "fact": None}
    return {**usual, "slot": slot, "value": value, "quote": quote, **more}


def facts_shown(messages: Sequence[ChatMessage]) -> dict[str, Any]:
    """What the extractor is shown: the known `facts`, and the `messages`."""
    shown: dict[str, Any] = json.loads(messages[-1]["content"])
    return shown


def reader(*told: dict[str, Any], **folds: Any) -> FakeModel:
    """A model that reads well: of each row of the user's it states what of `told` has its quote there. `folds` are
    scripts of other folds.
    """

    def answer(messages: Sequence[ChatMessage]) -> str:
        rows = [row for row in facts_shown(messages)["messages"] if row["role"] == "user"]
        return json.dumps({"facts": [{**one, "row": row["row"]} for row in rows for one in told if _is_in(one, row)]})

    return FakeModel(folds={"facts": answer, **folds})


def _is_in(one: Mapping[str, Any], row: Mapping[str, Any]) -> bool:
    return bool(one["quote"] in row["text"])


def greedy() -> FakeModel:
    """A model that takes whatever it sees for a fact of the user's: all rows, the assistant's too, and the prompt."""

    def answer(messages: Sequence[ChatMessage]) -> str:
        seen = [(row["text"], row["row"]) for row in facts_shown(messages)["messages"]]
        seen += [(messages[0]["content"], row) for _, row in seen[:1]]
        return json.dumps({"facts": [{**fact("note", text[:200], text), "row": row} for text, row in seen]})

    return FakeModel(folds={"facts": answer})


async def tell(nitka: Nitka, clock: FixedClock, *texts: str, user: Any = "anna", session: str = "s") -> None:
    """What the user says, a day apart, each read before the next is said."""
    for text in texts:
        await nitka.record(user, session, text=text, answer="ok", at=clock.now)
        await nitka.settle()
        clock.advance(days=1)


async def known(nitka: Nitka, user: Any = "anna", **more: Any) -> dict[tuple[str, str], str]:
    """What holds now: the value of each (about, slot), several joined with a bar."""
    found: dict[tuple[str, str], str] = {}
    for one in await nitka.facts(user, **more):
        before = found.get((one.about, one.slot))
        found[one.about, one.slot] = one.value if before is None else f"{before} | {one.value}"
    return found


async def beside(nitka: Nitka, text: str, *, user: Any = "anna", session: str = "new", **more: Any) -> str:
    """What a turn with this question would send besides the question itself."""
    async with nitka.turn(user, session, text=text, **more) as turn:
        request = turn.request
        turn.discard()
    return said([message for at, message in enumerate(request.messages) if at != request.asked])


class SlowModel:
    """A chat model whose answer comes in words; after `pause` of them it waits until `gate` is set."""

    name = "slow"

    def __init__(self, text: str, *, pause: int = 0) -> None:
        self.words = text.split(" ")
        self.pause = pause
        self.gate = asyncio.Event()
        self.waiting = 0
        self.requests: list[Sequence[ChatMessage]] = []

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        return Answer(text="".join([piece async for piece in self.stream(messages, max_tokens=max_tokens)]))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        self.requests.append(messages)
        for at, word in enumerate(self.words):
            if at == self.pause:
                self.waiting += 1
                await self.gate.wait()
            yield word if at == 0 else f" {word}"

    async def close(self) -> None:
        pass


class Measured:
    """A store that counts what passes through it: rows read, bytes read and written."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.rows_read = self.bytes_read = self.bytes_written = self.calls = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def reset(self) -> None:
        self.rows_read = self.bytes_read = self.bytes_written = self.calls = 0

    async def view(self, look: Look) -> View:
        view = await self._store.view(look)
        self.calls += 1
        persons = [row for _, row in view.person_rows]
        self.rows_read += len(view.rows) + len(view.pair) + len(persons)
        self.bytes_read += sum(len(row.body or b"") for row in (*view.rows, *persons))
        self.bytes_read += sum(len(fold.body) for fold in view.folds.values())
        return view

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        locked, change = await self._store.change(scope, step)
        self.calls += 1
        self.rows_read += len(locked.rows)
        if change is not None:
            bodies = [row.body or b"" for row in change.append]
            bodies += [fold.body for fold in change.folds] + [change.session_body or b""]
            self.bytes_written += sum(map(len, bodies))
        return locked, change


async def lay(nitka: Nitka, user: Any, session: str, turns: int, *, start: int = 0, text: str = "turn {}") -> None:
    """Turns number `start` and on, as they happened elsewhere."""
    for turn in range(start, start + turns):
        await nitka.record(user, session, text=text.format(turn), answer=f"reply {turn}")


def pairs(history: Iterable[Message]) -> list[tuple[str, str]]:
    """The turns of a history, question and answer; checks that it is made of whole turns, numbered in order."""
    rows = list(history)
    assert [row.role for row in rows] == ["user", "assistant"] * (len(rows) // 2)
    assert all(a.seq < b.seq and a.n < b.n for a, b in zip(rows, rows[1:], strict=False))
    assert all(b.seq == a.seq + 1 for a, b in zip(rows[::2], rows[1::2], strict=True))
    return [(a.text, b.text) for a, b in zip(rows[::2], rows[1::2], strict=True)]


async def whole(nitka: Nitka, user: Any, session: str) -> list[tuple[str, str]]:
    return pairs(await nitka.history(user, session, limit=1_000_000))


def said(messages: Iterable[ChatMessage]) -> str:
    """Everything a request says, as one text."""
    return json.dumps([dict(message) for message in messages], ensure_ascii=False)


def asked(messages: Iterable[ChatMessage]) -> list[Any]:
    """What stands in a request with the user's role."""
    return [message["content"] for message in messages if message["role"] == "user"]


def check_valid(messages: Sequence[ChatMessage], *, waiting: int = 0) -> None:
    """What a strict provider asks of a list: known roles, nothing blank, and every call right before its results.

    `waiting` calls at the very end may lack theirs.
    """
    missing: list[str] = []
    for message in messages:
        assert message["role"] in ("system", "user", "assistant", "tool")
        if message["role"] == "tool":
            assert message["tool_call_id"] in missing, "a result stands after its call"
            missing.remove(message["tool_call_id"])
        else:
            assert not missing, "a call has its results before anything else comes"
        missing += [call["id"] for call in message.get("tool_calls") or ()]
        content = message.get("content")
        assert message.get("tool_calls") or (isinstance(content, str) and content.strip()) or isinstance(content, list)
    assert len(missing) == waiting
