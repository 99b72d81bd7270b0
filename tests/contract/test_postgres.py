"""What PostgreSQL promises beyond the contract: waiting that ends, leases by its own clock, no
connection while nobody needs one, restarts that lose no turn, keys elsewhere.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from nitka import Nitka, StoreBusy, StoreError
from nitka.errors import BadInput, KeyMissing
from nitka.store.choose import choose_store
from nitka.store.port import Change, HandleRow, Locked, Look, OutboxRow, Step, View
from nitka.store.postgres import PostgresStore
from nitka.testing import FakeModel, memory_ring
from nitka.types import Tag
from tests.contract.cluster import Cluster, binaries, new_cluster
from tests.contract.databases import WHY, Databases
from tests.contract.making import ANNA, BORIS, HOME, KEY, LIFE, body, scope, session, start, turn, write
from tests.contract.postgres_making import connect, opened

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def url(databases: Databases) -> str:
    return databases.shared()


# Waiting


async def test_a_locked_owner_is_waited_for_as_long_as_was_said_and_others_not_at_all(url: str) -> None:
    async with opened(url, wait=2) as store:
        for owner in (ANNA, BORIS):
            await start(store, owner)
        with psycopg.connect(url) as other:
            other.execute("select from nitka.owners where owner = %s for update", (ANNA,))
            await store.change(scope(BORIS), turn("goes on"))
            with pytest.raises(StoreBusy):
                await store.change(scope(), turn("waits"))
            assert (await store.view(Look(owner=ANNA))).n == 0, "reading waits for nobody"
        locked, _ = await store.change(scope(), turn("now"))
        assert locked.n == 0


async def test_when_all_connections_are_lent_the_next_waits_as_long_as_was_said(url: str) -> None:
    async with opened(url, wait=2, size=1) as store:
        await start(store)
        with psycopg.connect(url) as other:
            other.execute("select from nitka.owners where owner = %s for update", (ANNA,))
            results = await asyncio.gather(
                *(store.change(scope(), turn("waits")) for _ in range(3)), return_exceptions=True
            )
        assert [type(result) for result in results] == [StoreBusy] * 3
        await store.change(scope(), turn("now"))


async def test_whoever_is_cancelled_leaves_a_connection_that_can_be_used(url: str) -> None:
    async with opened(url, size=1) as store:
        await start(store)
        with psycopg.connect(url) as other:
            other.execute("select from nitka.owners where owner = %s for update", (ANNA,))
            task = asyncio.create_task(store.change(scope(), turn("cancelled")))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        locked, _ = await store.change(scope(), turn("now"))
        assert locked.n == 0


async def test_no_connection_is_held_while_models_think(url: str) -> None:
    """Forty turns are open at once on two connections, and a forty-first ends before any of them."""
    gate = asyncio.Event()
    async with Nitka.open(PostgresStore(url, wait=60, size=2), model=FakeModel(), keys=memory_ring()) as nitka:

        async def slow(number: int) -> None:
            async with nitka.turn(f"u{number}", "s", text="Think.") as open_turn:
                await gate.wait()
                open_turn.answer("Thought.")

        tasks = [asyncio.create_task(slow(number)) for number in range(40)]
        await asyncio.sleep(0.5)
        await nitka.say("quick", "s", text="Hello.")
        assert not any(task.done() for task in tasks)
        gate.set()
        await asyncio.gather(*tasks)
        assert [len(await nitka.history(f"u{number}", "s")) for number in range(40)] == [2] * 40


# Leases


async def test_leases_are_counted_by_the_databases_clock(url: str) -> None:
    """Two machines, one of them an hour ahead: neither takes what the other has leased, and a lease ends for both."""
    hour = 3_600_000
    async with opened(url) as one, opened(url) as ahead:
        await start(one)
        await one.change(scope(), write(Change(due=("summary",))))
        (due,) = await one.lease(now=0, until=400, limit=9)
        assert list(await ahead.lease(now=hour, until=hour + 400, limit=9)) == []
        await asyncio.sleep(0.5)
        assert len(await ahead.lease(now=hour, until=hour + 99_000, limit=9)) == 1
        assert list(await one.lease(now=500, until=900, limit=9)) == []
        await ahead.put_back(due, retry_at=hour + 60_000)
        assert list(await one.lease(now=1000, until=2000, limit=9)) == [], "not for a minute"
        assert len(await one.lease(now=1000, until=2000, limit=9, early=True)) == 1


async def test_a_lease_waits_for_nobody(url: str) -> None:
    """What somebody else has locked is passed over."""
    async with opened(url) as store:
        for owner in (ANNA, BORIS):
            await start(store, owner)
            parcel = OutboxRow(owner, KEY, 0, body("x"))
            await store.change(scope(owner), write(Change(due=("summary",), outbox=(parcel,))))
        with psycopg.connect(url) as other:
            for table in ("due", "outbox"):
                other.execute(f"select from nitka.{table} where owner = %s for update", (ANNA,))
            due = await store.lease(now=0, until=9, limit=9)
            parcels = await store.take_outbox(now=0, until=9, limit=9, oldest=0)
        assert [[row.owner for row in due], [row.owner for row in parcels]] == [[BORIS], [BORIS]]


async def test_who_forgets_and_who_links_or_begins_do_not_miss_each_other(url: str) -> None:
    """Whatever comes first, nothing of the forgotten owner is left."""
    async with opened(url) as store:
        for number in range(20):
            await start(store, turns=1)
            new = replace(session(), session=Tag(bytes([number]) * 16))
            await asyncio.gather(
                store.erase_owner(ANNA, LIFE),
                store.add_handle(HandleRow(KEY, ANNA, body("x")), LIFE),
                store.change(scope(), turn("late")),
                store.create(ANNA, LIFE, new),
                return_exceptions=True,
            )
            if (await store.view(Look(owner=ANNA))).incarnation is None:
                assert (await store.handle(KEY), list(await store.sessions(ANNA))) == (None, [])
            await store.erase_owner(ANNA, LIFE)
            assert await store.view(Look(owner=ANNA)) == View()
            assert list(await store.handles(ANNA)) == []


# What goes wrong


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """A server of this test alone, that is as durable as a real one."""
    found = binaries()
    if found is None:
        pytest.skip(WHY)
    with new_cluster(found) as made:
        made.init()
        made.start()
        yield made


def keyed(number: int) -> Step:
    """The turn `number`, once: a repetition finds its key and writes nothing."""
    step = turn(f"{number}", Tag(number.to_bytes(16, "big")))
    return lambda locked: step(locked) if locked.known is None else None


async def talk(store: PostgresStore, count: int, pause: float = 0.02) -> list[int]:
    """Writes turns as a host would: again with the same key after an error. Gives how often each was sent."""
    sent = [0] * count
    for number in range(count):
        done = False
        while not done:
            sent[number] += 1
            try:
                await store.change(scope(turn_key=Tag(number.to_bytes(16, "big"))), keyed(number))
                done = True
            except StoreError:
                await asyncio.sleep(0.1)
        await asyncio.sleep(pause)
    return sent


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
async def test_a_restart_of_the_server_loses_no_turn_and_doubles_none(cluster: Cluster, how: signal.Signals) -> None:
    async with opened(cluster.url(), wait=20, size=4) as store:
        await start(store)
        task = asyncio.create_task(talk(store, 60))
        for _ in range(2):
            await asyncio.sleep(0.4)
            await asyncio.to_thread(cluster.stop, how)
            await asyncio.sleep(0.3)
            await asyncio.to_thread(cluster.start)
        await task
        rows = (await store.view(Look(owner=ANNA, session=HOME, limit=999))).rows
    assert [row.body for row in rows] == [body(f"{number} {at}") for number in range(60) for at in (0, 1)]


async def test_a_connection_that_broke_at_rest_is_not_noticed_by_anybody(cluster: Cluster) -> None:
    """What is known not to have been written is done again."""
    async with opened(cluster.url(), size=3) as store:
        await start(store)
        await asyncio.gather(*(store.view(Look(owner=ANNA)) for _ in range(9)))
        cluster.stop()
        cluster.start()
        assert await talk(store, 3) == [1, 1, 1]


async def test_a_commit_whose_outcome_is_not_known_is_an_error_and_harmless_to_repeat(cluster: Cluster) -> None:
    """The server waits for a standby that is not there, with the turn already in its log; then the connection dies."""
    async with opened(cluster.url()) as store:
        await start(store)
        cluster.execute("alter system set synchronous_standby_names = 'nobody'")
        cluster.execute("select pg_reload_conf()")
        await asyncio.sleep(0.3)
        task = asyncio.create_task(store.change(scope(turn_key=Tag(bytes(16))), keyed(0)))
        await asyncio.sleep(0.5)
        assert not task.done()
        cluster.execute("select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'SyncRep'")
        with pytest.raises(StoreError, match="not known"):
            await task
        cluster.execute("alter system reset synchronous_standby_names")
        cluster.execute("select pg_reload_conf()")
        await asyncio.sleep(0.3)
        assert await talk(store, 2) == [1, 1]
        rows = (await store.view(Look(owner=ANNA, session=HOME, limit=99))).rows
    assert [row.body for row in rows] == [body(f"{number} {at}") for number in (0, 1) for at in (0, 1)]


async def test_a_server_that_is_gone_is_an_error_that_says_so_and_names_nothing(cluster: Cluster) -> None:
    url = cluster.url().replace("user=nitka", "user=nitka&password=hush-hush")
    async with opened(url, wait=1) as store:
        cluster.stop()
        with pytest.raises(StoreError, match="cannot be reached") as caught:
            await store.view(Look(owner=ANNA))
        with pytest.raises(StoreError) as again:
            await PostgresStore(url, wait=1).start()
    for error in (caught.value, again.value):
        assert "hush" not in str(error) and str(cluster.folder) not in str(error)


async def test_a_database_that_is_not_there_is_an_error_at_once(databases: Databases) -> None:
    with pytest.raises(StoreError, match="is not there"):
        await PostgresStore(psycopg.conninfo.make_conninfo(databases.shared(), dbname="nowhere"), wait=30).start()


async def test_a_server_that_does_not_wait_for_its_log_is_told_to(databases: Databases) -> None:
    url = databases.new()
    with connect(url) as db:
        db.execute(f"alter database {db.info.dbname} set synchronous_commit = off")
    async with opened(url) as store:
        (row,) = await store._read("show synchronous_commit")
    assert row == ("on",)


# Choosing


def test_a_url_chooses_it_and_a_bad_one_is_not_repeated() -> None:
    assert isinstance(choose_store("postgresql://anna@localhost/nitka", wait=1), PostgresStore)
    for url in ("postgresql://localhost:port/x?hush=1", "postgres://[hush", "postgresql://h/d?hush=hush"):
        with pytest.raises(BadInput) as caught:
            choose_store(url, wait=1)
        assert "hush" not in str(caught.value)


def test_without_its_driver_the_extra_is_named_and_nothing_else_needs_it() -> None:
    script = "import sys; sys.modules['psycopg'] = None\nfrom nitka.store.choose import choose_store\n"
    script += "choose_store('sqlite:///x.db', wait=1)\nchoose_store('postgresql://localhost/x', wait=1)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert "BadInput" in done.stderr and 'pip install "nitka[postgres]"' in done.stderr


# Keys


async def test_keys_may_lie_in_another_database(databases: Databases) -> None:
    data, keys = databases.new(), databases.new()
    ring = memory_ring()
    for _ in range(2):
        store = PostgresStore(data, keys_url=keys)
        assert store.keys_apart
        async with Nitka.open(store, model=FakeModel(), keys=ring) as nitka:
            await nitka.say("anna", "s", text="Hello.")
    with connect(keys) as db:
        assert db.execute("select count(*) from nitka_keys.user_keys").fetchone() == (1,)
    with connect(data) as db:
        assert db.execute("select to_regnamespace('nitka_keys')").fetchone() == (None,)
    assert not PostgresStore(data).keys_apart and not PostgresStore(data, keys_url=data).keys_apart
    await refused(KeyMissing, data, keys_url=databases.new())
    other = databases.new()
    async with opened(other):
        pass
    await refused(StoreError, data, keys_url=other)


async def refused(error: type[StoreError] | type[KeyMissing], url: str, **more: Any) -> None:
    with pytest.raises(error):
        async with opened(url, **more):
            pass


async def test_of_two_who_open_an_empty_database_at_once_both_get_the_same_store(databases: Databases) -> None:
    url = databases.new()
    stores = [PostgresStore(url) for _ in range(4)]
    await asyncio.gather(*(store.start() for store in stores))
    assert len({await store.keys.store_id() for store in stores}) == 1
    for store in stores:
        await store.close()


async def test_a_step_that_wants_nothing_written_is_asked_again_when_its_connection_breaks(cluster: Cluster) -> None:
    async with opened(cluster.url(), size=2) as store:
        await start(store, turns=1)
        asked: list[Locked] = []

        def step(locked: Locked) -> None:
            asked.append(locked)
            if len(asked) == 1:
                cluster.execute("select pg_terminate_backend(pid) from pg_stat_activity where state like 'idle in%'")

        locked, change = await store.change(scope(), step)
        assert (len(asked), asked[0], change) == (2, locked, None)
