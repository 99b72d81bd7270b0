"""Every query on content touches one partition of PostgreSQL's tables; sealed columns are kept as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from nitka.store.port import Piece
from nitka.store.sql import queries
from tests.contract.databases import Databases
from tests.contract.making import KEY, body, fold, scope, start, turn
from tests.contract.postgres_making import connect, opened

pytestmark = pytest.mark.anyio

QUERIES = queries("postgres", "content.sql")
ARGUMENTS = {
    "bytea": r"'\x61616161616161616161616161616161'",
    "bytea[]": r"""'{"\\x61"}'""",
    "bigint[]": "'{1,2}'",
    "text": "'summary'",
    "text[]": "'{summary}'",
}


@pytest.fixture
def url(databases: Databases) -> str:
    return databases.shared()


def numbered(query: str) -> tuple[str, list[str]]:
    """With $1, $2, … in the places of psycopg's placeholders, and their names."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        name = match[1] or f"#{len(names)}"
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return re.sub(r"%\((\w+)\)s|%s", number, query), names


def argument(name: str, kind: str) -> str:
    """A value of the type; of two numbers that bound a range the second is the greater one."""
    if kind in ("bigint", "integer"):
        return {"first": "0", "end": "9", "limit": "3"}.get(name, name.lstrip("#"))
    return ARGUMENTS[kind]


def scanned(plan: Any) -> Iterator[str]:
    """The tables that a plan reads, and by that all whose rows it changes."""
    if isinstance(plan, dict):
        if "Scan" in plan.get("Node Type", "") and "Relation Name" in plan:
            yield plan["Relation Name"]
        for value in plan.values():
            yield from scanned(value)
    elif isinstance(plan, list):
        for value in plan:
            yield from scanned(value)


@pytest.mark.parametrize("name", [name for name, query in QUERIES.items() if not query.startswith("insert")])
@pytest.mark.parametrize("mode", ["force_generic_plan", "force_custom_plan"])
async def test_a_query_on_content_touches_one_partition(url: str, name: str, mode: str) -> None:
    """Of each table, and the same one of all; also where the plan was made before the owner was known."""
    async with opened(url):
        pass
    with connect(url) as db:
        db.execute(f"set plan_cache_mode = {mode}")
        query, names = numbered(QUERIES[name])
        db.execute(f"prepare asked as {query}".encode())
        types = db.execute("select parameter_types::text[] from pg_prepared_statements where name = 'asked'").fetchone()
        assert types is not None
        arguments = ", ".join(map(argument, names, types[0]))
        plan = db.execute(f"explain (format json) execute asked({arguments})".encode()).fetchone()
    leaves = set(scanned(plan[0] if plan else None))
    assert leaves, json.dumps(plan)
    assert len({leaf[-2:] for leaf in leaves}) == 1, leaves


async def test_all_rows_of_an_owner_lie_in_one_partition_and_owners_in_many(url: str) -> None:
    """Of every table with partitions, counted leaf by leaf."""
    people = [bytes([at]) * 16 for at in range(64)]
    async with opened(url) as store:
        for owner in people:
            await start(store, owner)
            everything = turn("x", KEY, folds=(fold(1),), put_pieces=(Piece("fact", KEY, body("x")),))
            await store.change(scope(owner), everything)
    with connect(url) as db:
        tables = [row[0] for row in db.execute("select relname from pg_class where relkind = 'p'")]
        counts: dict[str, dict[bytes, set[str]]] = {}
        for table in tables:
            rows = db.execute(f"select owner, tableoid::regclass::text, count(*) from nitka.{table} group by 1, 2")
            for owner, leaf, count in rows.fetchall():
                assert count == (2 if table == "messages" else 1)
                counts.setdefault(table, {}).setdefault(owner, set()).add(leaf[-2:])
    assert len(tables) == 6 and counts.keys() == set(tables)
    assert all(len(found[owner]) == 1 for found in counts.values() for owner in people)
    assert len({next(iter(found)) for found in counts["owners"].values()}) > 10
    assert len({tuple(sorted((k, *v) for k, v in found.items())) for found in counts.values()}) == 1, "the same in all"


async def test_sealed_columns_are_kept_as_they_are_and_nobody_tries_to_compress_them(url: str) -> None:
    async with opened(url):
        pass
    with connect(url) as db:
        found = db.execute(
            "select relname, attstorage from pg_attribute join pg_class on pg_class.oid = attrelid"
            " where attname = 'body' and relkind in ('r', 'p')"
            " and relname similar to '(sessions|messages|folds|pieces)%'"
        ).fetchall()
    assert len(found) == 4 * 17
    assert {storage for _, storage in found} == {"e"}
