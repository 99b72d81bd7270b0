"""What a turn costs on PostgreSQL beside SQLite, and what a message weighs there.

    python -m benchmarks.postgres [--users N] [--turns N] [--folder PATH]

Private servers are made from the installed binaries, with every commit on disk; "with standby" waits until a second
server has it on disk too. One turn is what nitka asks of a store for one: a view, and a change that adds two rows,
moves the session and notes what is due. Client and server share the machine. CPU is what the client's process and all
of the server's processes used; it says more than the wall time of a machine that is busy with other things.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from nitka.store.port import Change, Locked, Look, Row, Scope, SessionRow, Store
from nitka.store.postgres import PostgresStore
from nitka.store.sqlite import SqliteStore
from nitka.types import Sealed, Tag
from tests.contract.cluster import Cluster, binaries, new_cluster

SESSION, LIFE, KINDS = Tag(b"s" * 16), b"1" * 16, ("summary", "watch")
MESSAGE_BYTES, SESSION_BYTES = 448, 320  # sealed: 300 characters, and what a session's row says
TICKS = 100  # of the processor's clock in a second, as /proc counts


@dataclass
class Cost:
    """Of one run: wall times of the turns, and per turn the processor's time here and in the server, and its log."""

    wall: list[float]
    elapsed: float
    client: float
    server: float
    log: float

    def row(self, name: str, together: int) -> list[str]:
        p50, p95 = statistics.median(self.wall), statistics.quantiles(self.wall, n=20)[-1]
        cells = (len(self.wall) / self.elapsed, p50 * 1e3, p95 * 1e3, self.client * 1e3, self.server * 1e3)
        return [name, str(together), *(f"{cell:.1f}" for cell in cells), f"{self.log:,.0f}" if self.log else "–"]


def server_seconds(cluster: Cluster | None) -> float:
    """The processor's time of all processes of a server that live."""
    if cluster is None or cluster.pid is None:
        return 0.0
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(cluster.pid)], capture_output=True, text=True)
    total = 0
    for pid in found.stdout.split():
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / TICKS


def written(cluster: Cluster | None) -> int:
    return int(cluster.execute("select pg_current_wal_lsn() - '0/0'")[0][0]) if cluster else 0


def body(text: str, size: int) -> Sealed:
    return Sealed(text.encode().ljust(size, b"."))


async def turn(store: Store, owner: bytes, number: int) -> None:
    """What nitka asks of a store for one turn: a view when it opens, a change when it ends."""
    key = Tag(number.to_bytes(16, "big"))
    look = Look(
        owner=owner, session=SESSION, turn_key=key, folds=KINDS, person_folds=("profile",), first=None, limit=12
    )
    await store.view(look)

    def step(locked: Locked) -> Change:
        rows = tuple(Row(locked.head + at, locked.n + at, body(f"{number} {at}", MESSAGE_BYTES)) for at in (0, 1))
        return Change(append=rows, session_body=body("s", SESSION_BYTES), turn_key=key, due=("summary",))

    scope = Scope(owner=owner, incarnation=LIFE, session=SESSION, session_incarnation=LIFE, turn_key=key, folds=KINDS)
    await store.change(scope, step)


async def run(store: Store, cluster: Cluster | None, *, users: int, turns: int, together: int) -> Cost:
    """`users` say `turns` each, `together` of them at a time."""
    wall: list[float] = []
    owners = [hashlib.blake2b(b"%d %d" % (together, at), digest_size=16).digest() for at in range(users)]
    rest = iter(owners)

    async def worker() -> None:
        for owner in rest:
            for number in range(1, turns + 1):
                start = time.perf_counter()
                await turn(store, owner, number)
                wall.append(time.perf_counter() - start)

    await store.start()
    for owner in owners:
        await store.create(owner, LIFE, SessionRow(SESSION, LIFE, 0, body("s", SESSION_BYTES)))
    await asyncio.gather(*(turn(store, owner, 0) for owner in owners))
    before = time.perf_counter(), time.process_time(), server_seconds(cluster), written(cluster)
    await asyncio.gather(*(worker() for _ in range(together)))
    after = time.perf_counter(), time.process_time(), server_seconds(cluster), written(cluster)
    await store.close()
    elapsed, client, server, log = (b - a for a, b in zip(before, after, strict=True))
    return Cost(wall, elapsed, client / len(wall), server / len(wall), log / len(wall))


@contextmanager
def served(folder: Path, *, standby: bool) -> Iterator[Cluster]:
    """A durable server; with `standby` one that waits for a second."""
    found = binaries()
    assert found is not None, "no PostgreSQL server is installed"
    with new_cluster(found, folder) as primary, new_cluster(found, folder) as second:
        primary.init()
        primary.start()
        if standby:
            second.copy_of(primary, "second")
            primary.stop()
            primary.start(synchronous_standby_names="second")
            second.start()
        yield primary


def lay(cluster: Cluster, owners: int) -> None:
    """Rows by the hundred thousand: owners with five sessions of ten turns, a summary each, and twenty facts."""
    one = f"sha256(int4send(o)) as id from generate_series(1, {owners}) o"
    owner, session = "substr(id, 1, 16)", "substr(sha256(int4send(s)), 1, 16)"
    noise = "(select string_agg(sha256(int4send(%s) || int8send(b)), '') from generate_series(1, %d) b)"
    for statement in (
        f"insert into nitka.owners select {owner}, {owner}, 100 from (select {one}) x",
        f"insert into nitka.sessions select {owner}, {session}, {owner}, 20, {noise % ('s', 10)}"
        f" from (select {one}) x, generate_series(1, 5) s",
        f"insert into nitka.messages select {owner}, {session}, m, (s - 1) * 20 + m, {noise % ('m', 14)}"
        f" from (select {one}) x, generate_series(1, 5) s, generate_series(0, 19) m",
        f"insert into nitka.turn_keys select {owner}, {session}, substr(sha256(int4send(m)), 1, 16), 2 * m"
        f" from (select {one}) x, generate_series(1, 5) s, generate_series(0, 9) m",
        f"insert into nitka.folds select {owner}, {session}, 'summary', 8, 8, {noise % ('s', 60)}"
        f" from (select {one}) x, generate_series(1, 5) s",
        f"insert into nitka.pieces select {owner}, 'fact', {session}, {noise % ('s', 20)}"
        f" from (select {one}) x, generate_series(1, 20) s",
        f"insert into nitka_keys.user_keys select {owner}, {owner}, substr(id, 1, 8), {noise % ('1', 2)}"
        f" from (select {one}) x",
    ):
        cluster.execute(statement)


def weigh(cluster: Cluster) -> list[tuple[str, int, float]]:
    """Tables with rows: how many, and bytes of each with its indexes."""
    cluster.execute("vacuum full")
    names = "select oid::regclass::text from pg_class where relnamespace = 'nitka'::regnamespace and relkind = 'p'"
    names += " union all select 'nitka_keys.user_keys'"
    found = []
    for (table,) in cluster.execute(names):
        leaves = f"(select sum(pg_total_relation_size(relid)) from pg_partition_tree('{table}') where isleaf)"
        sizes = f"coalesce({leaves}, pg_total_relation_size('{table}'))"
        ((count, size),) = cluster.execute(f"select count(*), {sizes} from {table}")
        found.append((table, count, float(size)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=int, default=192)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--lay", type=int, default=2000, help="owners whose rows are weighed")
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    console, table = Console(), Table(title=f"{options.users} users, {options.turns} turns each")
    for head in ("store", "at once", "turns/s", "p50 ms", "p95 ms", "CPU here, ms", "CPU server, ms", "log, bytes"):
        table.add_column(head, justify="right")

    def measure(name: str, make: Callable[[], Store], cluster: Cluster | None) -> None:
        for together in (1, 16, 64):
            work = run(make(), cluster, users=options.users, turns=options.turns, together=together)
            table.add_row(*asyncio.run(work).row(name, together))

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure("SQLite", lambda: SqliteStore(f"{folder}/nitka.db"), None)
    for name, standby in (("PostgreSQL", False), ("with standby", True)):
        with served(options.folder, standby=standby) as cluster:
            measure(name, lambda: PostgresStore(cluster.url(), size=16), cluster)
            if not standby:
                lay(cluster, options.lay)
                weights = weigh(cluster)
    console.print(table)
    for name, count, size in weights:
        if count:
            console.print(f"{name}: {count:,} rows, {size / count:,.0f} bytes each with indexes")


if __name__ == "__main__":
    main()
