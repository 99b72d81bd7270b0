"""A store is moved whole into an empty one of any kind, and opens there with the same keys."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nitka import Nitka
from nitka.errors import StoreError
from nitka.store.port import ApiKeyRow, Change, HandleRow, OutboxRow, Piece, Scope
from nitka.store.postgres import PostgresStore
from nitka.store.sql import migrations
from nitka.store.sqlite import SqliteStore
from nitka.store.transfer import CHUNK, DATA, KEYS, META, move
from nitka.testing import FakeModel, memory_ring
from nitka.types import Tag
from nitka.vault.roots import KeyRing
from tests.contract.databases import Databases
from tests.contract.making import LIFE, body, write

pytestmark = pytest.mark.anyio

AnyStore = SqliteStore | PostgresStore
Make = Callable[[str], AnyStore]
KINDS = ("sqlite", "postgres")


@pytest.fixture
def make(tmp_path: Path, request: pytest.FixtureRequest) -> Make:
    """Makes a store of a kind; one of the same name is the same."""
    urls: dict[str, str] = {}

    def store(name: str) -> AnyStore:
        if name.startswith("sqlite"):
            return SqliteStore(str(tmp_path / f"{name}.db"), wait=5)
        databases: Databases = request.getfixturevalue("databases")
        url = urls.setdefault(name, databases.new() if name.startswith("postgres") else "")
        return PostgresStore(url, wait=5, size=4)

    return store


def nitka(store: AnyStore, ring: KeyRing) -> Nitka:
    return Nitka.open(store, model=FakeModel(lambda messages: f"answer to {messages[-1]['content']}"), keys=ring)


async def furnish(store: AnyStore, ring: KeyRing) -> None:
    """Talks of several people, and a row in every table there is."""
    async with nitka(store, ring) as opened:
        for user in ("anna", "boris"):
            for number in range(20):
                await opened.say(user, "s", text=f"{user} says {number} in Kyiv.", key=f"k{number}")
        await opened.forget("boris", session="s", turn=4)
    await store.start()
    owner = (await store.owners())[0]
    everything = Change(
        put_pieces=(Piece("fact", Tag(b"p" * 16), body("x")),),
        outbox=(OutboxRow(owner, Tag(b"o" * 16), 5, body("x")),),
        person_due=("facts",),
    )
    incarnation = (await store.keys.user_key(owner)).incarnation  # type: ignore[union-attr]
    await store.change(Scope(owner=owner, incarnation=incarnation), write(everything))
    await store.add_handle(HandleRow(Tag(b"h" * 16), owner, body("x")), incarnation)
    await store.add_api_key(ApiKeyRow(b"hash", 7, body("x")))
    await store.begin_erasure(b"e" * 16, LIFE)
    await store.spend(99_999_999, 7)
    await store.close()


def contents(store: AnyStore) -> dict[str, list[Any]]:
    """Every row of every table."""
    found: dict[str, list[Any]] = {}
    for side, tables in zip(store.sides(), ({**DATA, **META}, {**KEYS, **META}), strict=True):
        with side.reading() as reading:
            for table, columns in tables.items():
                rows = sorted(tuple(row) for chunk in reading.rows(table, columns) for row in chunk)
                found[f"{table} {len(tables)}"] = rows
    return found


@pytest.mark.parametrize("source", KINDS)
@pytest.mark.parametrize("target", KINDS)
async def test_everything_is_there_and_the_talk_goes_on(make: Make, source: str, target: str) -> None:
    ring = memory_ring()
    old, new = make(f"{source}-old"), make(f"{target}-new")
    await furnish(old, ring)
    before = contents(old)
    assert all(before.values()), "a row in every table"
    seen: list[int] = []
    count = await move(old, new, progress=seen.append)
    assert contents(new) == contents(old) == before
    assert count == sum(map(len, before.values())) - 2 == seen[-1]
    async with nitka(new, ring) as opened:
        history = await opened.history("anna", "s", limit=999)
        assert [message.text for message in history[:2]] == ["anna says 0 in Kyiv.", "answer to anna says 0 in Kyiv."]
        assert (len(history), len(await opened.history("boris", "s", limit=999))) == (40, 38)
        reply = await opened.say("anna", "s", text="anna says 3 in Kyiv.", key="k3")
        assert reply.replayed
        await opened.say("anna", "s", text="And on.")
        assert len(await opened.history("anna", "s", limit=999)) == 42


async def test_back_again_it_is_what_it_was(make: Make) -> None:
    ring = memory_ring()
    first, second, third = make("sqlite-a"), make("postgres-b"), make("sqlite-c")
    await furnish(first, ring)
    await move(first, second)
    await move(second, third)
    assert contents(third) == contents(first)


@pytest.mark.parametrize("target", KINDS)
async def test_a_target_that_holds_anything_is_refused_and_not_touched(make: Make, target: str) -> None:
    old, new = make("sqlite-old"), make(f"{target}-new")
    await furnish(old, memory_ring())
    await new.start()
    await new.add_api_key(ApiKeyRow(b"hash", 7, body("x")))
    await new.close()
    before = contents(new)
    with pytest.raises(StoreError, match="empty"):
        await move(old, new)
    assert contents(new) == before
    with pytest.raises(StoreError, match="empty"):
        await move(old, old)


async def test_what_was_cut_off_opens_for_nobody_and_holds_no_data(make: Make) -> None:
    """A value that no store writes ends the copy in the middle of the data; the keys are written by then."""
    old, new = make("sqlite-old"), make("postgres-new")
    await furnish(old, memory_ring())
    with closing(sqlite3.connect(tmp_of(old), isolation_level=None)) as db:
        db.execute("update spent set tokens = 'many'")
    with pytest.raises(StoreError, match="cannot keep"):
        await move(old, new)
    found = contents(new)
    assert found["user_keys 4"] and not any(found[f"{table} 13"] for table in DATA)
    with pytest.raises(StoreError, match="another database"):
        await new.start()


def tmp_of(store: AnyStore) -> str:
    assert isinstance(store, SqliteStore)
    return store.paths[0]


async def test_more_rows_than_are_read_at_once_come_over(make: Make) -> None:
    old, new, again = make("sqlite-old"), make("postgres-new"), make("sqlite-again")
    await old.start()
    await old.close()
    with closing(sqlite3.connect(tmp_of(old), isolation_level=None)) as db:
        rows = ((b"%d" % number, number, b"x") for number in range(2 * CHUNK + 7))
        db.executemany("insert into api_keys (hash, made, body) values (?, ?, ?)", rows)
    assert await move(old, new) == 2 * CHUNK + 7
    assert await move(new, again) == 2 * CHUNK + 7
    assert contents(again) == contents(old)


@pytest.mark.parametrize(("kind", "tables"), [("data", {**DATA, **META}), ("keys", {**KEYS, **META})])
def test_every_table_and_column_is_named(kind: str, tables: dict[str, tuple[str, ...]]) -> None:
    """A table that a migration adds is moved too, or this fails."""
    db = sqlite3.connect(":memory:")
    for _, _, statements in migrations("sqlite", kind):
        for statement in statements:
            db.execute(statement)
    names = [name for (name,) in db.execute("select name from sqlite_master where type = 'table'")]
    found = {name: tuple(row[1] for row in db.execute(f"pragma table_info({name})")) for name in names}
    db.close()
    assert found == tables
