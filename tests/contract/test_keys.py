"""What every store of keys promises."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from nitka.store.port import KeyRow, RootRow, Store
from nitka.types import Sealed, Tag

pytestmark = pytest.mark.anyio

OLD, NEW = b"old-root", b"new-root"
LIFE = b"1" * 16


def key(owner: str, root: bytes = OLD, wrapped: str = "wrapped") -> KeyRow:
    return KeyRow(owner.encode() * 16, LIFE, root, Sealed(f"{wrapped} {owner}".encode()))


def tenant(name: str, root: bytes = OLD) -> KeyRow:
    tag = name.encode() * 16
    return KeyRow(tag, tag, root, Sealed(f"tag key {name}".encode()))


async def root(store: Store, name: bytes, *, active: bool = True) -> None:
    await store.keys.add_root(RootRow(name, active, Sealed(b"proof of " + name)))


async def test_of_the_roots_one_is_active_and_the_first_proof_stays(store: Store) -> None:
    await root(store, OLD)
    await root(store, NEW)
    await store.keys.add_root(RootRow(OLD, True, Sealed(b"another proof")))
    found = {row.root: row for row in await store.keys.roots()}
    assert found[OLD] == RootRow(OLD, True, Sealed(b"proof of " + OLD))
    assert found[NEW].active is False


async def test_a_root_that_is_added_inactive_leaves_the_active_one(store: Store) -> None:
    await root(store, OLD)
    await root(store, NEW, active=False)
    assert {row.root: row.active for row in await store.keys.roots()} == {OLD: True, NEW: False}


async def test_the_first_key_of_a_user_stands(store: Store) -> None:
    await root(store, OLD)
    assert await store.keys.user_key(key("a").owner) is None
    assert await store.keys.add_user_key(key("a")) == key("a")
    assert await store.keys.add_user_key(key("a", wrapped="late")) == key("a")
    assert await store.keys.user_key(key("a").owner) == key("a")


async def test_of_many_who_make_a_key_at_once_all_get_the_same(store: Store) -> None:
    await root(store, OLD)
    made = await asyncio.gather(*(store.keys.add_user_key(key("a", wrapped=f"w{at}")) for at in range(20)))
    assert len(set(made)) == 1


async def test_a_key_under_a_root_that_is_not_active_is_not_written(store: Store) -> None:
    await root(store, OLD)
    await store.keys.add_user_key(key("a"))
    await store.keys.add_tag_key(tenant("t"))
    await root(store, NEW)
    assert await store.keys.add_user_key(key("b")) is None
    assert await store.keys.add_tag_key(tenant("u")) is None
    assert await store.keys.user_key(key("b").owner) is None
    assert await store.keys.tag_key(Tag(tenant("u").owner)) is None
    assert await store.keys.add_user_key(key("a", NEW)) == key("a"), "what stands is given, whatever wraps it"
    assert await store.keys.add_tag_key(tenant("t", NEW)) == tenant("t")


async def test_keys_of_users_and_of_tenants_do_not_meet(store: Store) -> None:
    await root(store, OLD)
    await store.keys.add_tag_key(tenant("a"))
    assert await store.keys.user_key(key("a").owner) is None
    await store.keys.add_user_key(key("a"))
    assert await store.keys.tag_key(Tag(tenant("a").owner)) == tenant("a")
    assert await store.keys.remove_user_key(key("a").owner, LIFE) is True
    assert await store.keys.tag_key(Tag(tenant("a").owner)) == tenant("a")


async def test_only_the_key_of_the_named_incarnation_is_removed(store: Store) -> None:
    await root(store, OLD)
    await store.keys.add_user_key(key("a"))
    assert await store.keys.remove_user_key(key("a").owner, b"2" * 16) is False
    assert await store.keys.user_key(key("a").owner) == key("a")
    assert await store.keys.remove_user_key(key("a").owner, LIFE) is True
    assert await store.keys.remove_user_key(key("a").owner, LIFE) is False
    assert await store.keys.user_key(key("a").owner) is None
    assert await store.keys.scrub() is True


async def test_keys_are_wrapped_anew_in_batches_and_only_where_they_stand_unchanged(store: Store) -> None:
    await root(store, OLD)
    for name in "abc":
        await store.keys.add_user_key(key(name))
    await store.keys.add_tag_key(tenant("t"))
    await root(store, NEW)
    assert len(await store.keys.wrapped_by(OLD, 3)) == 3
    old = await store.keys.wrapped_by(OLD, 10)
    assert {row.owner for row in old} == {key(name).owner for name in "abc"} | {tenant("t").owner}
    await store.keys.remove_user_key(key("b").owner, LIFE)
    pairs = [(row, replace(row, root=NEW, wrapped=Sealed(b"anew"))) for row in old]
    assert await store.keys.rewrap(pairs) == 3
    assert await store.keys.rewrap(pairs) == 0, "twice is once"
    assert list(await store.keys.wrapped_by(OLD, 10)) == []
    assert {row.wrapped for row in await store.keys.wrapped_by(NEW, 10)} == {b"anew"}
    assert await store.keys.user_key(key("b").owner) is None, "a removed key does not come back"


async def test_a_key_of_another_life_is_not_wrapped_anew(store: Store) -> None:
    await root(store, OLD)
    await store.keys.add_user_key(key("a"))
    stale = replace(key("a"), incarnation=b"2" * 16)
    assert await store.keys.rewrap([(stale, replace(stale, wrapped=Sealed(b"anew")))]) == 0
    assert await store.keys.user_key(key("a").owner) == key("a")


async def test_a_root_is_retired_when_it_is_neither_active_nor_needed(store: Store) -> None:
    await root(store, OLD)
    await store.keys.add_user_key(key("a"))
    await store.keys.add_tag_key(tenant("t"))
    assert await store.keys.retire_root(OLD) is False
    await root(store, NEW)
    assert await store.keys.retire_root(OLD) is False
    for row in await store.keys.wrapped_by(OLD, 10):
        assert await store.keys.retire_root(OLD) is False
        await store.keys.rewrap([(row, replace(row, root=NEW))])
    assert await store.keys.retire_root(OLD) is True
    assert await store.keys.retire_root(OLD) is False
    assert [row.root for row in await store.keys.roots()] == [NEW]
