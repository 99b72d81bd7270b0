"""Migrations of PostgreSQL, which old and new processes live through together.

* A migration adds; what it makes superfluous is removed by one that comes a version later. `-- oldest: N` in its first
  lines says which number of migrations a program must know at least to work on what it leaves. So a program accepts a
  schema that is ahead of it as long as every migration says that it may.
* Each is applied with its record in one transaction, under a lock that lets one process at a time look.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import LiteralString

from psycopg import sql

from nitka.errors import StoreError
from nitka.store.postgres_pool import Connection
from nitka.store.sql import Migration

_OLDEST = re.compile(r"^-- oldest: (\d+)$", re.MULTILINE)
LOCK = 0x6E69746B61  # any number that nobody else takes

THERE: LiteralString = "select to_regclass(%s) is not null"
RECORDS: LiteralString = (
    "create table if not exists {} (number bigint primary key, name text not null, oldest bigint not null)"
)
APPLIED: LiteralString = "select number, name, oldest from {} order by number"
RECORD: LiteralString = "insert into {} (number, name, oldest) values (%s, %s, %s)"


async def migrate(connection: Connection, schema: str, steps: Sequence[Migration]) -> None:
    """Applies what is missing. The records lie in the table `SCHEMA_migrations` of the schema `public`. Raises
    `StoreError` for a schema that is too new for this program.
    """
    records = sql.Identifier("public", f"{schema}_migrations")
    if await _missing(connection, records, steps):
        await connection.execute("select pg_advisory_lock(%s::bigint)", (LOCK,))
        try:
            await connection.execute(sql.SQL(RECORDS).format(records))
            for number, name, statements in await _missing(connection, records, steps):
                async with connection.transaction():
                    script = "\n".join(statements)
                    await connection.execute(script)
                    await connection.execute(sql.SQL(RECORD).format(records), (number, name, oldest(script)))
        finally:
            await connection.execute("select pg_advisory_unlock(%s::bigint)", (LOCK,))


async def _missing(connection: Connection, records: sql.Identifier, steps: Sequence[Migration]) -> list[Migration]:
    there = await connection.execute(THERE, (records.as_string(connection),))
    if await there.fetchone() != (True,):
        return list(steps)
    known = {number: name for number, name, _ in steps}
    applied = set()
    for number, name, needed in await (await connection.execute(sql.SQL(APPLIED).format(records))).fetchall():
        if known.get(number, name) != name or needed > max(known):
            raise StoreError("The database was written by a newer version of nitka; upgrade nitka.")
        applied.add(number)
    return [step for step in steps if step[0] not in applied]


def oldest(script: str) -> int:
    """What a migration asks of programs that go on working."""
    found = _OLDEST.search(script)
    if found is None:
        raise StoreError("A migration does not say which programs it leaves working.")
    return int(found[1])
