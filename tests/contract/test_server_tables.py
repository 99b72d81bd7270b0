"""What every store promises about the keys of the server and about what is to be delivered elsewhere."""

from __future__ import annotations

import asyncio

import pytest

from nitka.store.port import NOBODY, ApiKeyRow, Change, OutboxRow, Store
from nitka.types import Tag
from tests.contract.making import ANNA, BORIS, LIFE, body, scope, write

pytestmark = pytest.mark.anyio


def parcel(number: int, made: int = 0, owner: bytes = ANNA, text: str = "alert") -> OutboxRow:
    return OutboxRow(owner, Tag(bytes([number]) * 16), made, body(text))


async def post(store: Store, *parcels: OutboxRow) -> None:
    for owner in sorted({row.owner for row in parcels}):
        await store.create(owner, LIFE)
        mine = tuple(row for row in parcels if row.owner == owner)
        await store.change(scope(owner, NOBODY), write(Change(outbox=mine)))


async def take(store: Store, now: int, *, until: int | None = None, limit: int = 99, oldest: int = 0) -> list[int]:
    taken = await store.take_outbox(now=now, until=now + 10 if until is None else until, limit=limit, oldest=oldest)
    return [row.id[0] for row in taken]


async def test_keys_of_the_server_are_found_by_their_hash_listed_by_age_and_removed(store: Store) -> None:
    new, old, same = (ApiKeyRow(name, made, body(name)) for name, made in ((b"n", 20), (b"z", 10), (b"a", 20)))
    assert await store.api_key(b"n") is None
    for row in (new, old, same):
        await store.add_api_key(row)
    await store.add_api_key(ApiKeyRow(b"n", 99, body("late")))
    assert await store.api_key(b"n") == new
    assert list(await store.api_keys()) == [old, same, new]
    assert [await store.remove_api_key(b"n") for _ in range(2)] == [True, False]
    assert list(await store.api_keys()) == [old, same]


async def test_parcels_are_taken_oldest_first_whose_ever_they_are(store: Store) -> None:
    rows = (parcel(3, 30), parcel(1, 10, BORIS), parcel(2, 20))
    await post(store, *rows)
    assert await store.take_outbox(now=40, until=50, limit=2, oldest=0) == [rows[1], rows[2]]
    assert await store.take_outbox(now=40, until=50, limit=2, oldest=0) == [rows[0]]


async def test_a_parcel_that_is_there_already_stays(store: Store) -> None:
    await post(store, parcel(1))
    await post(store, parcel(1, 7, text="late"))
    await post(store, parcel(1, 8, BORIS, text="another's"))
    taken = await store.take_outbox(now=9, until=10, limit=9, oldest=0)
    assert list(taken) == [parcel(1), parcel(1, 8, BORIS, text="another's")]


async def test_a_taken_parcel_comes_back_when_its_time_is_over_and_counts_its_attempts(store: Store) -> None:
    await post(store, parcel(1))
    assert await take(store, 0, until=100) == [1]
    assert await take(store, 99, until=200) == []
    (again,) = await store.take_outbox(now=100, until=200, limit=1, oldest=0)
    assert again.attempts == 1


async def test_a_parcel_that_was_put_back_waits(store: Store) -> None:
    await post(store, parcel(1))
    await take(store, 0, until=100)
    await store.put_back_outbox(BORIS, parcel(1).id, retry_at=0)
    assert await take(store, 50) == []
    await store.put_back_outbox(ANNA, parcel(1).id, retry_at=70)
    assert [await take(store, now) for now in (69, 70)] == [[], [1]]


async def test_a_delivered_parcel_is_gone(store: Store) -> None:
    await post(store, parcel(1), parcel(2))
    await take(store, 0)
    removed = [await store.remove_outbox(owner, parcel(1).id) for owner in (BORIS, ANNA, ANNA)]
    assert removed == [False, True, False]
    await store.put_back_outbox(ANNA, parcel(1).id, retry_at=0)
    assert await take(store, 999) == [2]


async def test_what_is_too_old_is_removed_undelivered(store: Store) -> None:
    await post(store, parcel(1, 10), parcel(2, 20), parcel(3, 30))
    assert await take(store, 100, limit=1, oldest=20) == [2]
    assert await store.remove_outbox(ANNA, parcel(1).id) is False
    assert await take(store, 200, oldest=0) == [2, 3]


async def test_of_many_who_deliver_each_parcel_is_taken_by_one(store: Store) -> None:
    await post(store, *(parcel(number) for number in range(20)))
    taken = await asyncio.gather(*(take(store, 0, limit=3) for _ in range(10)))
    assert sorted(number for some in taken for number in some) == list(range(20))
