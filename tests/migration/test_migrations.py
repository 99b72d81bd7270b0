"""The schema that is read and the migrations that are run say the same, and a migration happens whole or not at all."""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from pathlib import Path

import pytest

from nitka.errors import StoreError
from nitka.store.sql import Migration, migrations, statements
from nitka.store.sqlite_file import SqliteFile

FOLDERS = ("data", "keys")


def folder(kind: str) -> Path:
    return Path(str(files("nitka.store.sql"))) / "sqlite" / kind


def shape(db: sqlite3.Connection) -> dict[tuple[str, str], list[object]]:
    """Tables and indexes with their columns; comments and spacing do not count."""
    found: dict[tuple[str, str], list[object]] = {}
    for kind, name, sql in db.execute("select type, name, sql from sqlite_master").fetchall():
        if name == "migrations":
            continue
        pragma = "table_xinfo" if kind == "table" else "index_xinfo"
        columns: list[object] = [tuple(row) for row in db.execute(f"pragma {pragma}({name})")]
        plain = " ".join(re.sub(r"--.*", "", sql or "").split()).lower().replace("( ", "(").replace(" )", ")")
        found[kind, name] = [plain, *columns]
    return found


def migrated(path: Path, steps: list[Migration]) -> sqlite3.Connection:
    file = SqliteFile(str(path), steps, wait=5)
    file.open()
    file.close()
    return sqlite3.connect(path)


@pytest.mark.parametrize("kind", FOLDERS)
def test_the_schema_is_the_sum_of_the_migrations(kind: str, tmp_path: Path) -> None:
    from_schema = sqlite3.connect(":memory:")
    from_schema.executescript((folder(kind) / "schema.sql").read_text(encoding="utf-8"))
    from_migrations = migrated(tmp_path / "file.db", migrations("sqlite", kind))
    assert shape(from_schema) == shape(from_migrations) != {}
    from_schema.close()
    from_migrations.close()


@pytest.mark.parametrize("kind", FOLDERS)
def test_every_sql_file_is_the_schema_or_a_migration_numbered_without_gaps(kind: str) -> None:
    names = sorted(path.name for path in folder(kind).iterdir() if path.name != "schema.sql")
    steps = migrations("sqlite", kind)
    assert [name for _, name, _ in steps] == names
    assert [number for number, _, _ in steps] == list(range(1, len(names) + 1))


def test_migrations_of_the_two_files_never_share_a_name() -> None:
    """By the name of an applied migration the one file is told from the other."""
    names = [name for kind in FOLDERS for _, name, _ in migrations("sqlite", kind)]
    assert len(names) == len(set(names))


STEPS: list[Migration] = [
    (1, "0001_first.sql", ["create table first (a)", "insert into first values (1)"]),
    (2, "0002_second.sql", ["create table second (b)", "insert into second values (2)"]),
]


def test_an_older_file_gets_what_is_missing_and_keeps_what_it_has(tmp_path: Path) -> None:
    migrated(tmp_path / "file.db", STEPS[:1]).close()
    db = migrated(tmp_path / "file.db", STEPS)
    assert db.execute("select a, b from first, second").fetchall() == [(1, 2)]
    assert db.execute("select number, name from migrations").fetchall() == [step[:2] for step in STEPS]
    db.close()


def test_a_store_of_the_first_version_gets_the_tables_of_persons_and_keeps_its_rows(tmp_path: Path) -> None:
    """Every table of version 1 with a row in it; then all that came after."""
    steps = migrations("sqlite", "data")
    db = migrated(tmp_path / "file.db", steps[:1])
    tables = [name for kind, name in shape(db) if kind == "table"]
    for table in tables:
        columns = [row[2] for row in db.execute(f"pragma table_info({table})")]
        values = [{"blob": b"b" * 16, "integer": 7, "text": "kind"}[kind.lower()] for kind in columns]
        db.execute(f"insert into {table} values ({', '.join('?' * len(values))})", values)
    db.commit()
    before = {table: db.execute(f"select * from {table}").fetchall() for table in tables}
    db.close()
    db = migrated(tmp_path / "file.db", steps)
    assert {table: db.execute(f"select * from {table}").fetchall() for table in tables} == before
    assert {len(rows) for rows in before.values()} == {1} and len(tables) >= 8
    assert [db.execute(f"select * from {name}").fetchall() for name in ("pieces", "handles", "outbox")] == [[], [], []]
    db.close()


def test_opening_again_applies_nothing_again(tmp_path: Path) -> None:
    migrated(tmp_path / "file.db", STEPS).close()
    db = migrated(tmp_path / "file.db", STEPS)
    assert db.execute("select count(*) from first").fetchone() == (1,)
    db.close()


def test_a_migration_that_fails_leaves_no_trace_and_can_be_mended(tmp_path: Path) -> None:
    broken: list[Migration] = [
        STEPS[0],
        (2, "0002_second.sql", ["create table second (b)", "insert into nowhere values (2)"]),
    ]
    with pytest.raises(StoreError):
        migrated(tmp_path / "file.db", broken)
    db = sqlite3.connect(tmp_path / "file.db")
    assert db.execute("select name from sqlite_master where name = 'second'").fetchall() == []
    assert db.execute("select number from migrations").fetchall() == [(1,)]
    db.close()
    db = migrated(tmp_path / "file.db", STEPS)
    assert db.execute("select b from second").fetchall() == [(2,)]
    db.close()


def test_a_file_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    migrated(tmp_path / "file.db", STEPS).close()
    before = (tmp_path / "file.db").read_bytes()
    with pytest.raises(StoreError, match="newer version"):
        migrated(tmp_path / "file.db", STEPS[:1])
    assert (tmp_path / "file.db").read_bytes() == before


def test_statements_are_split_where_they_end() -> None:
    script = (
        "-- a comment; with a semicolon\ncreate table a (b -- note;\n);\n\ninsert into a values ('x;\ny');\n-- end\n"
    )
    assert [" ".join(text.split())[-14:] for text in statements(script)] == ["(b -- note; );", "lues ('x; y');"]
