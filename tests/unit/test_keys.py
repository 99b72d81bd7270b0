"""Who an owner is and which key is theirs; and rotation, cut off at every step."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import BadId, BadInput, Damaged, KeyMissing, WrongKey
from nitka.store.port import RootRow
from nitka.testing import FaultyStore, MemoryStore, memory_ring
from nitka.types import Limits, Sealed, User
from nitka.vault.keychain import FINDS, KEPT_BYTES, KEPT_VALUES, Keychain, Recent, id_bytes
from nitka.vault.roots import KeyRing, Ring
from nitka.vault.rotate import Rotated, rewrap, rotate
from nitka.vault.seal import Kind, Place, SealKey

pytestmark = pytest.mark.anyio

USERS = (User("anna"), User("boris"), User("anna", tenant="shop"))


async def started() -> MemoryStore:
    store = MemoryStore()
    await store.start()
    return store


async def chain(store: MemoryStore | FaultyStore, ring: KeyRing, **limits: Any) -> Keychain:
    made = Keychain(store.keys, ring, Limits(**limits))
    await made.prepare()
    return made


async def owners(keychain: Keychain) -> list[tuple[bytes, ...]]:
    """What must not change: who the users are, and what their keys derive."""
    found: list[tuple[bytes, ...]] = []
    for user in USERS:
        owner_id = await keychain.owner_id(user)
        owner = await keychain.find(owner_id) or await keychain.make(owner_id)
        found.append((owner.id, owner.incarnation, owner.key.tags.tag(b"session", b"web")))
    return found


def file_ring(path: Path) -> KeyRing:
    return KeyRing(None, path=path / "keys.json")


# Who belongs to whom


async def test_a_fresh_store_takes_the_active_root_and_proves_it_from_then_on() -> None:
    store, ring = await started(), memory_ring()
    await chain(store, ring)
    assert [(row.root, row.active) for row in await store.keys.roots()] == [(ring.ring.active, True)]
    await chain(store, ring)
    assert len(await store.keys.roots()) == 1


async def test_another_ring_is_a_wrong_key_and_writes_nothing() -> None:
    store = await started()
    await chain(store, memory_ring())
    before = await store.keys.roots()
    with pytest.raises(WrongKey):
        await chain(store, memory_ring())
    assert await store.keys.roots() == before


async def test_a_proof_that_does_not_open_is_a_wrong_key() -> None:
    store, ring = await started(), memory_ring()
    forged = await ring.wrap(b"something else", Place(Kind.PROOF, bytes(16)), root=ring.ring.active)
    for proof in (Sealed(b"junk"), forged):
        await store.keys.add_root(RootRow(ring.ring.active, True, proof))
        with pytest.raises(WrongKey):
            await chain(store, ring)


async def test_a_store_in_use_whose_key_file_is_gone_gets_no_new_one(tmp_path: Path) -> None:
    store = await started()
    await chain(store, file_ring(tmp_path))
    (tmp_path / "keys.json").unlink()
    with pytest.raises(KeyMissing):
        await chain(store, file_ring(tmp_path))
    assert list(tmp_path.iterdir()) == []


async def test_users_and_tenants_are_told_apart_and_found_again() -> None:
    store, ring = await started(), memory_ring()
    one, two = await chain(store, ring), await chain(store, ring)
    users = [User("a"), User("b"), User("a", "t"), User("b", "t"), User("a", "b"), User("t", "a"), User("at")]
    ids = [await one.owner_id(user) for user in users]
    assert len(set(ids)) == len(users)
    assert [await two.owner_id(user) for user in users] == ids
    assert all(len(owner) == 16 for owner in ids)


async def test_the_same_user_in_two_stores_has_two_ids() -> None:
    ring = memory_ring()
    ids = [await (await chain(await started(), ring)).owner_id(User("anna")) for _ in range(2)]
    assert ids[0] != ids[1]


BAD = ["", "a\0b", "\ud800", "x" * 513, "я" * 257]


@pytest.mark.parametrize("bad", BAD)
async def test_bad_ids_are_refused_before_anything_is_made(bad: str) -> None:
    store = await started()
    keychain = await chain(store, memory_ring())
    users = [User(bad)] if not bad else [User(bad), User("anna", tenant=bad)]
    for user in users:
        with pytest.raises(BadId) as caught:
            await keychain.owner_id(user)
        assert not bad or bad not in str(caught.value)


@given(st.text(max_size=300))
def test_ids_pass_byte_for_byte_or_not_at_all(text: str) -> None:
    try:
        data = id_bytes(text, "user id")
    except BadId:
        plain = text.encode("utf-8", "surrogatepass")
        assert not text or "\0" in text or len(plain) > 512 or any("\ud800" <= c <= "\udfff" for c in text)
    else:
        assert data.decode("utf-8") == text
        assert 1 <= len(data) <= 512


@pytest.mark.parametrize("pair", [("é", "e\u0301"), ("a", " a"), ("a", "A"), ("а", "a"), ("a\u200b", "a")])
async def test_ids_that_only_look_alike_are_two_users(pair: tuple[str, str]) -> None:
    keychain = await chain(await started(), memory_ring())
    assert await keychain.owner_id(User(pair[0])) != await keychain.owner_id(User(pair[1]))


# Keys of users


async def test_all_who_make_a_user_at_once_get_one_key() -> None:
    store, ring = await started(), memory_ring()
    chains = [await chain(store, ring) for _ in range(4)]
    owner_id = await chains[0].owner_id(USERS[0])
    made = await asyncio.gather(*(keychain.make(owner_id) for keychain in chains))
    assert len({(owner.incarnation, owner.key.seal.id) for owner in made}) == 1


async def test_opened_keys_are_kept_for_their_time_and_their_number() -> None:
    now = [0.0]
    store = await started()
    keychain = Keychain(store.keys, memory_ring(), Limits(cache_seconds=10, cache_entries=2), lambda: now[0])
    await keychain.prepare()
    ids = [await keychain.owner_id(User(name)) for name in "abc"]
    made = [await keychain.make(owner) for owner in ids]
    for owner, its in zip(ids, made, strict=True):
        await store.keys.remove_user_key(owner, its.incarnation)
    assert [await keychain.find(owner) is not None for owner in ids] == [False, True, True]
    assert not await keychain.stands(made[2]), "the store is asked, not the memory"
    keychain.drop(ids[1])
    assert await keychain.find(ids[1]) is None
    now[0] = 9.9
    assert await keychain.find(ids[2]) is not None
    now[0] = 10.0
    assert await keychain.find(ids[2]) is None


async def test_a_wrapped_key_that_was_altered_or_given_to_another_life_is_damaged() -> None:
    store = await started()
    keychain = await chain(store, memory_ring())
    owner = await keychain.make(await keychain.owner_id(USERS[0]))
    row = await store.keys.user_key(owner.id)
    assert row is not None
    for bad in (replace(row, wrapped=Sealed(row.wrapped[:-1] + b"?")), replace(row, incarnation=b"2" * 16)):
        await store.keys.remove_user_key(owner.id, row.incarnation)
        await store.keys.remove_user_key(owner.id, b"2" * 16)
        await store.keys.add_user_key(bad)
        keychain.drop(owner.id)
        with pytest.raises(Damaged):
            await keychain.find(owner.id)


# Rotation


async def test_rotation_changes_the_root_and_nothing_else(tmp_path: Path) -> None:
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    before, old = await owners(keychain), ring.ring.active
    told: list[int] = []
    done = await rotate(keychain, ring, retire_old=False, progress=told.append)
    assert done == Rotated(active=ring.ring.active, rewrapped=5)
    assert told == [5], "two users, one of a tenant, and two tag keys"
    assert await store.keys.wrapped_by(old, 1) == []
    assert {row.root: row.active for row in await store.keys.roots()} == {old: False, done.active: True}
    assert await owners(keychain) == before
    assert await owners(await chain(store, file_ring(tmp_path))) == before


async def test_a_retired_root_is_gone_from_store_and_file_and_opens_nothing(tmp_path: Path) -> None:
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    before, old = await owners(keychain), ring.ring.active
    copy = await store.keys.user_key(before[0][0])
    done = await rotate(keychain, ring, retire_old=True)
    assert (done.retired, done.kept, done.complete) == ((old,), (), True)
    assert [row.root for row in await store.keys.roots()] == [done.active]
    assert old.hex() not in (tmp_path / "keys.json").read_text()
    assert await owners(await chain(store, file_ring(tmp_path))) == before
    assert copy is not None
    with pytest.raises(WrongKey):
        await file_ring(tmp_path).unwrap(copy.wrapped, Place(Kind.USER_KEY, copy.incarnation), root=copy.root)


async def test_retiring_retires_the_roots_of_all_rotations_before(tmp_path: Path) -> None:
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    before = await owners(keychain)
    roots = [ring.ring.active]
    for _ in range(2):
        roots.append((await rotate(keychain, ring, retire_old=False)).active)
    done = await rotate(keychain, ring, retire_old=True)
    assert set(done.retired) == set(roots)
    assert set(ring.ring.roots) == {done.active}
    assert await owners(keychain) == before


async def test_a_root_that_another_store_needs_stays_in_the_file(tmp_path: Path) -> None:
    ring = file_ring(tmp_path)
    one, two = await started(), await started()
    chains = [await chain(store, ring) for store in (one, two)]
    before = [await owners(keychain) for keychain in chains]
    old = ring.ring.active
    done = await rotate(chains[0], ring, retire_old=True)
    assert (done.retired, done.kept) == ((old,), (old,))
    assert [await owners(await chain(store, file_ring(tmp_path))) for store in (one, two)] == before
    done = await rotate(chains[1], ring, retire_old=True)
    assert (done.retired, done.kept) == ((old,), ())
    assert set(ring.ring.roots) == {done.active}
    assert [await owners(await chain(store, file_ring(tmp_path))) for store in (one, two)] == before


@pytest.mark.parametrize("retire", [False, True])
async def test_a_process_with_an_older_ring_goes_on_working(tmp_path: Path, retire: bool) -> None:
    store = await started()
    ours, theirs = file_ring(tmp_path), file_ring(tmp_path)
    keychain, other = await chain(store, ours), await chain(store, theirs)
    before = await owners(other)
    await rotate(keychain, ours, retire_old=retire)
    assert await owners(other) == before, "from memory"
    new = await other.make(await other.owner_id(User("new", tenant="new")))
    row = await store.keys.user_key(new.id)
    assert row is not None
    assert row.root == ours.ring.active
    await rotate(keychain, ours, retire_old=retire)
    for owner_id, *_ in before:
        other.drop(owner_id)
    assert await owners(other) == before, "opened anew, by roots it learned of just now"
    another = await other.make(await other.owner_id(User("another")))
    row = await store.keys.user_key(another.id)
    assert row is not None
    assert row.root == ours.ring.active


async def test_keys_made_and_removed_while_it_rotates_are_right(tmp_path: Path) -> None:
    store, ring = await started(), file_ring(tmp_path)
    keychain, other = await chain(store, ring), await chain(store, file_ring(tmp_path))
    made = [await keychain.make(await keychain.owner_id(User(f"u{at}"))) for at in range(30)]

    async def busy() -> None:
        for at in range(30):
            await other.make(await other.owner_id(User(f"late {at}")))
            await store.keys.remove_user_key(made[at].id, made[at].incarnation)

    await asyncio.gather(busy(), rotate(keychain, ring, retire_old=True))
    fresh = await chain(store, file_ring(tmp_path))
    assert [await fresh.find(owner.id) for owner in made] == [None] * 30
    for at in range(30):
        assert await fresh.find(await fresh.owner_id(User(f"late {at}"))) is not None


class Cut(Exception):
    """The process ends here."""


class CutRing(KeyRing):
    """A ring whose file is never written, or is written just before the end."""

    def __init__(self, path: Path, *, at: int, after: bool) -> None:
        super().__init__(None, path=path)
        self._at, self._after = at, after

    def update(self, change: Callable[[Ring], Ring]) -> None:
        self._at -= 1
        if self._at == 0 and not self._after:
            raise Cut
        super().update(change)
        if self._at == 0:
            raise Cut


@pytest.mark.parametrize("retire", [False, True])
@pytest.mark.parametrize("after", [False, True])
async def test_rotation_cut_off_at_any_call_of_the_store_is_ended_by_calling_again(
    tmp_path: Path, retire: bool, after: bool
) -> None:
    at = 0
    while True:
        folder = tmp_path / str(at)
        store = await started()
        keychain = await chain(store, file_ring(folder))
        before, old = await owners(keychain), keychain.roots
        assert isinstance(old, KeyRing)
        faulty = FaultyStore(store, at=at, after=after)
        cut_ring = file_ring(folder)
        cut = Keychain(faulty.keys, cut_ring, Limits())
        try:
            await rotate(cut, cut_ring, retire_old=retire)
        except Exception as error:  # noqa: BLE001  # whatever it ends with, what it left is looked at below
            assert type(error).__name__ == "InjectedFault"
        else:
            break
        await check_and_end(store, folder, before, retire, {old.ring.active})
        at += 1
    assert at >= 7


@pytest.mark.parametrize("at", [1, 2])
@pytest.mark.parametrize("after", [False, True])
async def test_rotation_cut_off_at_any_change_of_the_file_is_ended_by_calling_again(
    tmp_path: Path, at: int, after: bool
) -> None:
    store = await started()
    ring = file_ring(tmp_path)
    before = await owners(await chain(store, ring))
    cut = CutRing(tmp_path / "keys.json", at=at, after=after)
    with pytest.raises(Cut):
        await rotate(Keychain(store.keys, cut, Limits()), cut, retire_old=True)
    await check_and_end(store, tmp_path, before, True, {ring.ring.active})


async def check_and_end(store: MemoryStore, folder: Path, before: list[Any], retire: bool, old: set[bytes]) -> None:
    """Everything opens as it was left, and calling again ends what was begun."""
    ring = file_ring(folder)
    keychain = await chain(store, ring)
    assert await owners(keychain) == before
    done = await rotate(keychain, ring, retire_old=retire)
    assert await owners(await chain(store, file_ring(folder))) == before
    roots = {row.root: row.active for row in await store.keys.roots()}
    assert roots[done.active] is True
    for root in roots:
        assert root == done.active or await store.keys.wrapped_by(root, 1) == []
    if retire:
        assert set(roots) == set(ring.ring.roots) == {done.active}
        assert not old & set(roots)


async def test_a_rotation_that_was_cut_off_goes_on_with_its_own_root(tmp_path: Path) -> None:
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    await owners(keychain)
    store_id = await store.keys.store_id()
    ring.update(lambda now: now.with_new_root(store_id))
    begun = ring.ring.active
    await keychain.register(begun)
    done = await rotate(keychain, ring, retire_old=False)
    assert (done.active, done.rewrapped) == (begun, 5)


async def test_after_a_forget_no_root_that_was_in_use_before_is_left(tmp_path: Path) -> None:
    """A rotation is cut off; a copy is taken; somebody is forgotten; the rotation is called again, to retire."""
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    await owners(keychain)
    store_id = await store.keys.store_id()
    ring.update(lambda now: now.with_new_root(store_id))
    await keychain.register(ring.ring.active)
    await rewrap(keychain, ring.ring.active)
    copy = {row.root for row in [await store.keys.user_key((await owners(keychain))[0][0])] if row}
    done = await rotate(keychain, ring, retire_old=True)
    assert not copy & set(ring.ring.roots)
    assert done.active not in copy


async def spoil(store: MemoryStore, keychain: Keychain, user: User) -> bytes:
    """Alters the user's wrapped key; returns his id."""
    owner = await keychain.find(await keychain.owner_id(user))
    assert owner is not None
    row = await store.keys.user_key(owner.id)
    assert row is not None
    await store.keys.remove_user_key(row.owner, row.incarnation)
    await store.keys.add_user_key(replace(row, wrapped=Sealed(row.wrapped[:-1] + bytes([row.wrapped[-1] ^ 1]))))
    keychain.drop(owner.id)
    return owner.id


@pytest.mark.parametrize("retire", [False, True])
async def test_a_damaged_key_does_not_keep_the_others_from_being_wrapped_anew(tmp_path: Path, retire: bool) -> None:
    """It is counted, its root stays, and the next rotation begins a new root all the same."""
    store, ring = await started(), file_ring(tmp_path)
    keychain = await chain(store, ring)
    before, old = await owners(keychain), ring.ring.active
    bad = await spoil(store, keychain, USERS[1])
    done = await rotate(keychain, ring, retire_old=retire)
    assert (done.rewrapped, done.damaged, done.needed, done.retired) == (4, 1, (old,), ())
    assert [row.owner for row in await store.keys.wrapped_by(old, 10)] == [bad]
    assert {old, done.active} <= set(ring.ring.roots)
    again = await rotate(keychain, ring, retire_old=retire)
    assert again.active != done.active and (again.rewrapped, again.damaged) == (4, 1)
    assert again.retired == ((done.active,) if retire else ())
    fresh = await chain(store, file_ring(tmp_path))
    for user, known in zip(USERS, before, strict=True):
        if user != USERS[1]:
            found = await fresh.find(await fresh.owner_id(user))
            assert found is not None and found.id == known[0]


async def test_batches_go_on_past_more_damaged_keys_than_one_holds() -> None:
    store, ring = await started(), memory_ring()
    keychain = await chain(store, ring)
    users = [User(f"user {number}") for number in range(9)]
    for user in users:
        await keychain.make(await keychain.owner_id(user))
    for user in users[:5]:
        await spoil(store, keychain, user)
    both = KeyRing(Ring(SealKey(b"n" * 32).id, {SealKey(b"n" * 32).id: b"n" * 32, **ring.ring.roots}))
    keychain = await chain(store, both)
    await keychain.register(both.ring.active)
    assert await rewrap(keychain, both.ring.active, batch=2) == (5, 5)  # four users and the tag key


async def test_a_ring_of_the_environment_rotates_to_its_first_key() -> None:
    keys = [bytes([at]) * 32 for at in range(3)]

    def ring(*order: int) -> KeyRing:
        return KeyRing(Ring.from_text(",".join(base64.b64encode(keys[at]).decode() for at in order)))

    store = await started()
    before = await owners(await chain(store, ring(0)))
    with pytest.raises(BadInput):
        await rotate(await chain(store, ring(0)), ring(0), retire_old=True)
    both = ring(1, 0)
    done = await rotate(await chain(store, both), both, retire_old=True)
    old, new = SealKey(keys[0]).id, SealKey(keys[1]).id
    assert done == Rotated(active=new, rewrapped=5, retired=(old,), in_environment=True)
    assert await owners(await chain(store, ring(1))) == before
    with pytest.raises(WrongKey):
        await chain(store, ring(0))


async def test_a_root_that_is_lost_while_it_wraps_keys_is_told() -> None:
    keys = [bytes([at]) * 32 for at in range(2)]
    old, new = (base64.b64encode(key).decode() for key in keys)
    store = await started()
    await owners(await chain(store, KeyRing(Ring.from_text(old))))
    both = KeyRing(Ring.from_text(f"{new},{old}"))
    keychain = await chain(store, both)
    await keychain.register(both.ring.active)
    lost = KeyRing(Ring.from_text(new))
    with pytest.raises(WrongKey):
        await rotate(await chain(store, lost), lost, retire_old=False)
    assert len(await store.keys.wrapped_by(SealKey(keys[0]).id, 10)) == 5


async def test_what_all_had_opened_stays_within_its_room_and_the_latest_keep_theirs() -> None:
    """Thousands of keys may be in memory, but not all that was ever opened with each."""
    store = await started()
    keychain = await chain(store, memory_ring())
    ids = [await keychain.owner_id(User(name)) for name in "abc"]
    for owner in ids:
        (await keychain.make(owner)).recent.keep("row", b"sealed", "text", size=KEPT_BYTES // 2)
    for _ in range(FINDS):
        last = await keychain.find(ids[2])
    assert last is not None
    assert last.recent.get("row", b"sealed") == "text"
    first = await keychain.find(ids[0])
    assert first is not None
    assert first.recent.get("row", b"sealed") is None


@given(st.lists(st.tuples(st.integers(0, KEPT_VALUES + 40), st.integers(0, 9)), max_size=30), st.integers(0, 400))
def test_recent_values_are_bounded_and_their_size_is_the_sum(kept: list[tuple[int, int]], more: int) -> None:
    recent = Recent()
    for place, size in [*kept, *((-at, 1) for at in range(more))]:
        recent.keep(place, b"sealed", "text", size=size)
    assert len(recent._kept) <= KEPT_VALUES
    assert recent.bytes == sum(size for _, _, size in recent._kept.values())
