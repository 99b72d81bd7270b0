"""PostgreSQL's schema is the sum of its migrations; old and new programs live on one; too new a one is refused."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import psycopg
import pytest

from nitka.errors import StoreError
from nitka.store.port import Look, Store
from nitka.store.postgres import PostgresStore
from nitka.store.postgres_migrate import migrate, oldest
from nitka.store.postgres_pool import Database
from nitka.store.sql import Migration, migrations
from tests.contract.databases import Databases, server
from tests.contract.making import ANNA, HOME, KEY, scope, start, turn

FOLDERS = ("data", "keys")
SCHEMAS = {"data": "nitka", "keys": "nitka_keys"}


@pytest.fixture(scope="module")
def databases() -> Iterator[Databases]:
    with server() as made:
        yield made


def folder(kind: str) -> Path:
    return Path(str(files("nitka.store.sql"))) / "postgres" / kind


def shape(url: str) -> set[tuple[Any, ...]]:
    """Columns with types, storage, defaults; partitions with bounds and options; indexes and constraints."""
    with psycopg.connect(url) as db:
        mine = "relnamespace in (select oid from pg_namespace where nspname like 'nitka%')"
        columns = db.execute(
            "select attrelid::regclass::text, attname, atttypid::regtype::text, attnotnull, attstorage::text"
            f" from pg_attribute join pg_class c on c.oid = attrelid where {mine} and attnum > 0 and not attisdropped"
        ).fetchall()
        tables = db.execute(
            "select c.oid::regclass::text, relkind::text, reloptions, pg_get_expr(relpartbound, c.oid),"
            f" pg_get_partkeydef(c.oid) from pg_class c where {mine}"
        ).fetchall()
        indexes = db.execute("select indexdef from pg_indexes where schemaname like 'nitka%'").fetchall()
        constraints = db.execute(
            f"select conname, pg_get_constraintdef(n.oid) from pg_constraint n join pg_class c on c.oid = conrelid"
            f" where {mine}"
        ).fetchall()
    plain = [tuple(tuple(cell) if isinstance(cell, list) else cell for cell in row) for row in tables]
    return {*columns, *plain, *indexes, *constraints}


async def migrated(url: str, schema: str, steps: list[Migration]) -> None:
    await with_connection(url, lambda connection: migrate(connection, schema, steps))


async def with_connection(url: str, prepare: Callable[[Any], Awaitable[None]]) -> None:
    database = Database(url, wait=5, size=1)
    await database.open(prepare)
    await database.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_schema_is_the_sum_of_the_migrations(kind: str, databases: Databases) -> None:
    from_schema, from_migrations = databases.new(), databases.new()
    with psycopg.connect(from_schema) as db:
        db.execute((folder(kind) / "schema.sql").read_text(encoding="utf-8").encode())
    asyncio.run(migrated(from_migrations, SCHEMAS[kind], migrations("postgres", kind)))
    assert shape(from_schema) == shape(from_migrations) != set()


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_sql_file_is_the_schema_or_a_migration_numbered_without_gaps(kind: str) -> None:
    names = sorted(path.name for path in folder(kind).iterdir() if path.name != "schema.sql")
    steps = migrations("postgres", kind)
    assert [name for _, name, _ in steps] == names
    assert [number for number, _, _ in steps] == list(range(1, len(names) + 1))
    for number, _, statements in steps:
        assert 1 <= oldest("\n".join(statements)) <= number


def test_every_column_and_table_of_sqlite_is_there_too(databases: Databases) -> None:
    """What docs/privacy.md lists is therefore true of both."""
    url = databases.new()
    for kind in FOLDERS:
        asyncio.run(migrated(url, SCHEMAS[kind], migrations("postgres", kind)))
        lite = sqlite3.connect(":memory:")
        lite.executescript((folder(kind).parents[1] / "sqlite" / kind / "schema.sql").read_text("utf-8"))
        for (table,) in lite.execute("select name from sqlite_master where type = 'table'").fetchall():
            theirs = [row[1] for row in lite.execute(f"pragma table_info({table})")]
            with psycopg.connect(url) as db:
                mine = db.execute(f"select * from {SCHEMAS[kind]}.{table} limit 0".encode()).description
            assert [column.name for column in mine or () if column.name != "one"] == theirs, table
        lite.close()


def later(number: int, needs: int) -> Migration:
    """What a version to come may do: add a column that the present one does not know, and a table."""
    script = f"""-- oldest: {needs}
alter table nitka.messages add column later{number} bytea;
alter table nitka.sessions add column later{number} bigint not null default 7;
alter table nitka.owners add column later{number} text default 'x';
create table nitka.later{number} (owner bytea primary key)"""
    return number, f"{number:04}_later.sql", [f"{statement};" for statement in script.split(";")]


async def talk(store: Store, key: int) -> None:
    await store.change(scope(), turn(f"turn {key}", KEY if key == 0 else None))


def test_old_and_new_programs_work_on_one_schema(databases: Databases) -> None:
    """The present program is at work while the next version migrates, goes on, and can be started again."""
    url, known = databases.new(), migrations("postgres", "data")
    newest = known[-1][0]

    async def live() -> None:
        old = PostgresStore(url)
        await old.start()
        await start(old, turns=1)
        await migrated(url, "nitka", [*known, later(newest + 1, newest)])
        await talk(old, 0)
        again = PostgresStore(url)
        await again.start()
        await talk(again, 1)
        await talk(old, 2)
        views = [await store.view(Look(owner=ANNA, session=HOME, limit=99)) for store in (old, again)]
        assert views[0] == views[1] and len(views[0].rows) == 8
        await old.close()
        await again.close()

    asyncio.run(live())


def test_a_schema_that_asks_for_a_newer_program_is_refused_and_not_touched(databases: Databases) -> None:
    url, known = databases.new(), migrations("postgres", "data")
    newest = known[-1][0]
    asyncio.run(migrated(url, "nitka", [*known, later(newest + 1, newest), later(newest + 2, newest + 1)]))
    before = shape(url)
    with pytest.raises(StoreError, match="newer version"):
        asyncio.run(PostgresStore(url).start())
    assert shape(url) == before


def test_a_migration_that_fails_leaves_no_trace_and_can_be_mended(databases: Databases) -> None:
    url, known = databases.new(), migrations("postgres", "data")
    number = known[-1][0] + 1
    broken = (number, "broken.sql", ["-- oldest: 1\ncreate table nitka.half (a int);", "select 1 / 0;"])
    with pytest.raises(StoreError):
        asyncio.run(migrated(url, "nitka", [*known, broken]))
    assert not [row for row in shape(url) if "half" in str(row)]
    asyncio.run(migrated(url, "nitka", [*known, (number, "broken.sql", broken[2][:1])]))
    assert [row for row in shape(url) if "half" in str(row)]


def test_a_migration_says_which_programs_it_leaves_working() -> None:
    with pytest.raises(StoreError):
        oldest("create table x (a int)")
    assert oldest("-- a comment\n-- oldest: 12\ncreate") == 12
