"""Connections to one PostgreSQL database, and the transactions that run on them.

* What is known not to have been written is done again by itself, within the stated wait: a connection that broke before
  the commit was sent, a deadlock, a server that starts or stops, a primary that became a standby. The work that is
  given here must bear that: it decides anew from what it reads.
* A connection that breaks while a commit is on its way leaves the outcome unknown. That is a `StoreError`, and whoever
  repeats the turn with its key gets what stands.
* A transaction takes two trips to the server: one that begins it and reads, one that writes and commits. What only
  reads, and all at once, takes one trip and need not say where it begins and ends: what is sent together is one
  transaction, and one snapshot by the isolation level that connections have here unless they say another.
* An answer is durable: a server that is set not to wait for its log is told to.

Texts of PostgreSQL's errors may quote values and are not repeated; its five-letter codes are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8BinaryDumper
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from nitka.errors import BadInput, StoreBusy, StoreError
from nitka.world import monotonic

T = TypeVar("T")
Cell = Any
Connection = AsyncConnection[tuple[Cell, ...]]
Cursor = AsyncCursor[tuple[Cell, ...]]
Params = Sequence[Any] | Mapping[str, Any]
Statement = tuple[LiteralString, Params]

AT_ONCE: LiteralString = ""
READ: LiteralString = "begin isolation level repeatable read read only"
WRITE: LiteralString = "begin isolation level read committed"
SETTINGS: LiteralString = """
select set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', '60s', false),
       set_config('default_transaction_isolation', 'repeatable read', false),
       set_config('synchronous_commit', replace(current_setting('synchronous_commit'), 'off', 'on'), false)
"""
DEFAULTS: Mapping[str, str] = {
    "application_name": "nitka",
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "20000",  # milliseconds; a host that vanished is not waited for longer
}
STATEMENTS = 200  # prepared on one connection
PAUSE = 0.05  # seconds between two tries
STANDBY = "25006"  # the primary became a standby, which takes no writes
PASSING = ("40001", "40P01", STANDBY)  # undone by the server: a conflict, a deadlock
UNKNOWN = "The connection broke during a commit, whose outcome is not known; repeat the turn with its key."
UNREACHABLE = "The database cannot be reached, is not there, or refuses the login."
HINTS: Mapping[str, str] = {
    "42501": "The database refused for lack of rights.",
    "53": "The database is out of room or of connections.",
    "23": "The database refused what was to be written.",
}


def conninfo(url: str) -> str:
    """The URL with our defaults for what it leaves open; of several hosts the one that takes writes is meant. Raises
    `BadInput`, which never repeats the URL.
    """
    try:
        given = conninfo_to_dict(url)
        hosts = str(given.get("host") or "")
        defaults = {**DEFAULTS, **({"target_session_attrs": "read-write"} if "," in hosts else {})}
        return make_conninfo(url, **{name: value for name, value in defaults.items() if name not in given})
    except psycopg.ProgrammingError as error:
        raise BadInput("The URL of the database cannot be read.") from error


def explain(error: psycopg.Error) -> StoreError:
    """Our error for one of PostgreSQL's."""
    code = error.sqlstate or ""
    if code == "55P03":
        return StoreBusy()
    if not code:
        return StoreError(UNREACHABLE)
    hint = HINTS.get(code) or HINTS.get(code[:2]) or "The database refused."
    return StoreError(f"{hint} ({code})")


class Transaction:
    """One transaction. `committing` says that the commit may have reached the server."""

    def __init__(self, connection: Connection, begin: LiteralString) -> None:
        self._connection = connection
        self._waiting: list[Statement] = [(begin, ())] if begin else []
        self._last: list[Statement] = [("commit", ())] if begin else []
        self.committing = False
        self.ended = False

    async def run(self, *statements: Statement) -> list[Cursor]:
        """Sends the statements together and gives their results, in their order."""
        return (await self._send(*statements))[-len(statements) :]

    async def one(self, query: LiteralString, *params: Any) -> tuple[Cell, ...] | None:
        """The first row of a query."""
        return await (await self.run((query, params)))[0].fetchone()

    async def end(self, *statements: Statement) -> list[Cursor]:
        """Sends the statements together with the commit. What comes after is another transaction's."""
        self.committing = self.ended = True
        begun = len(self._waiting)
        return (await self._send(*statements, *self._last))[begun : begun + len(statements)]

    async def drop(self) -> None:
        """Ends it without a trace."""
        self.ended = True
        await self._send(("rollback", ()))

    async def _send(self, *statements: Statement) -> list[Cursor]:
        whole, self._waiting = [*self._waiting, *statements], []
        async with self._connection.pipeline():
            return [await self._connection.execute(query, params, binary=True) for query, params in whole]


Work = Callable[[Transaction], Awaitable[T]]


class Database:
    """A pool of at most `size` connections, each lent for one transaction; a caller waits `wait` seconds at most."""

    def __init__(self, url: str, *, wait: float, size: int) -> None:
        self.conninfo = conninfo(url)
        self._wait = wait
        self._size = size
        self._pool: AsyncConnectionPool[Connection] | None = None

    async def open(self, prepare: Callable[[Connection], Awaitable[None]]) -> None:
        """Connects once, has the database prepared, and opens the pool. Raises `StoreError`."""
        try:
            async with await self._connect() as connection:
                await self._configure(connection)
                await prepare(connection)
        except psycopg.Error as error:
            raise explain(error) from error
        self._pool = AsyncConnectionPool(
            self.conninfo,
            connection_class=AsyncConnection[tuple[Cell, ...]],
            kwargs={"autocommit": True},
            configure=self._configure,
            min_size=1,
            max_size=self._size,
            timeout=self._wait,
            reconnect_timeout=min(self._wait, 5.0),  # then the next who asks tries at once
            open=False,
            name="nitka",
        )
        await self._pool.open()

    async def close(self) -> None:
        """Safe to call twice."""
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()

    async def read(self, work: Work[T], *, at_once: bool = True) -> T:
        """Runs `work` in one snapshot; with `at_once` it sends statements only once, by ending with them."""
        return await self._repeat(work, AT_ONCE if at_once else READ)

    async def write(self, work: Work[T]) -> T:
        """Runs `work` in a transaction that is durable when this returns."""
        return await self._repeat(work, WRITE)

    async def _connect(self) -> Connection:
        return await AsyncConnection.connect(self.conninfo, autocommit=True)

    async def _configure(self, connection: Connection) -> None:
        connection.adapters.register_dumper(int, Int8BinaryDumper)  # one type for all numbers: one prepared statement
        connection.prepared_max = STATEMENTS
        milliseconds = str(max(1, round(self._wait * 1000)))
        await connection.execute(SETTINGS, (milliseconds,), prepare=False)

    async def _repeat(self, work: Work[T], begin: LiteralString) -> T:
        """Tries until it is done, cannot be done, or the wait is over."""
        end = monotonic() + self._wait
        while True:
            connection = await self._lend(end)
            transaction = Transaction(connection, begin)
            try:
                result = await work(transaction)
                if not transaction.ended:
                    await transaction.end()
                return result
            except psycopg.Error as error:
                lost = _lost(connection, error)
                if lost and transaction.committing and begin == WRITE:
                    raise StoreError(UNKNOWN) from error
                if error.sqlstate == STANDBY:
                    await connection.close()  # the next one is to who is the primary now
                if not (lost or error.sqlstate in PASSING) or monotonic() > end:
                    raise explain(error) from error
            finally:
                await self._take_back(connection)
            await asyncio.sleep(PAUSE)

    async def _lend(self, end: float) -> Connection:
        pool = self._pool
        if pool is None:
            raise StoreError("It is closed.")
        before = _failures(pool)
        try:
            return await pool.getconn(timeout=max(PAUSE, end - monotonic()))
        except PoolClosed as error:
            raise StoreError("It is closed.") from error
        except PoolTimeout as error:
            if _failures(pool) > before:
                raise StoreError(UNREACHABLE) from error
            raise StoreBusy(f"It waited {self._wait:g} s.") from error

    async def _take_back(self, connection: Connection) -> None:
        """A connection that is not at rest is made so, or closed: whoever is cancelled leaves it in the middle."""
        try:
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                await connection.rollback()
        except psycopg.Error:
            await connection.close()
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                await connection.close()
            if self._pool is None:
                await connection.close()
            else:
                await self._pool.putconn(connection)


def _failures(pool: AsyncConnectionPool[Connection]) -> int:
    return pool.get_stats().get("connections_errors", 0)


def _lost(connection: Connection, error: psycopg.Error) -> bool:
    """Whether the connection is gone, or is to a server that takes nothing any more."""
    return connection.closed or connection.broken or (error.sqlstate or "").startswith(("57P", "08"))
