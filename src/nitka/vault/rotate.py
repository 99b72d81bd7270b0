"""Rotation: a new root key in the place of the old, without touching a row.

The steps: a new root, active in the key file; the same in the store, which from then on refuses new keys wrapped by
another; every wrapped key anew, in batches; and, if the old roots are to go, out of the store, off its disk, and out
of the file. It may be cut off anywhere: calling again ends in the same state. Other processes go on meanwhile; one
that meets a root it does not know looks at the file again.

A key that does not open cannot be wrapped anew: it is counted and left where it is, and the root that wraps it is not
destroyed while it stands there. All others are wrapped.

With `retire_old` the root is always a new one, never that of a rotation that was begun before: a user may have been
forgotten in between, and a copy taken before that must not open with anything that is left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from nitka.errors import BadInput, Damaged
from nitka.store.port import KeyRow, RootRow
from nitka.vault.keychain import Keychain
from nitka.vault.roots import KeyRing
from nitka.vault.seal import Kind, Place

BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Rotated:
    """What a rotation did. Roots are named by their ids."""

    active: bytes
    rewrapped: int  # keys
    retired: tuple[bytes, ...] = ()  # this store does not know them any more
    kept: tuple[bytes, ...] = ()  # of those, still in the key file: other stores need them
    in_environment: bool = False  # the retired ones are to be taken out of NITKA_ROOT_KEYS by hand
    damaged: int = 0  # keys that do not open, left as they are
    needed: tuple[bytes, ...] = ()  # old roots that stay, because they wrap those
    complete: bool = True  # False: a reader kept removed bytes on disk; rotate again, or settle


async def rotate(
    keychain: Keychain, ring: KeyRing, *, retire_old: bool, progress: Callable[[int], None] | None = None
) -> Rotated:
    """Wraps every key of the store by a new root; with `retire_old` the old ones are destroyed.

    `progress` is told how many keys are done. A ring from the environment gets no new root: the first key of
    NITKA_ROOT_KEYS becomes the active one. Raises `BadInput` where there is nothing to rotate to, or the file cannot
    be written; `WrongKey` where a root that still wraps keys is lost.
    """
    await ring.reload()
    target = await _target(keychain, ring, anew=retire_old)
    await keychain.register(target)
    done = await rewrap(keychain, target, progress=progress)
    needed = tuple([row.root for row in await _others(keychain, target) if await keychain.keys.wrapped_by(row.root, 1)])
    rotated = Rotated(active=target, rewrapped=done.changed, damaged=done.damaged, needed=needed)
    return await _retire(keychain, ring, rotated) if retire_old else rotated


class Rewrapped(NamedTuple):
    """How many keys were wrapped anew, and how many do not open and were left."""

    changed: int = 0
    damaged: int = 0


async def rewrap(
    keychain: Keychain, target: bytes, *, batch: int = BATCH, progress: Callable[[int], None] | None = None
) -> Rewrapped:
    """Wraps every key that opens by the root `target`, in batches that may be cut off anywhere and continued later."""
    done = damaged = 0
    for old in await _others(keychain, target):
        bad: set[bytes] = set()
        while rows := await _next(keychain, old.root, bad, batch):
            anew = [(row, new) for row in rows if (new := await _again(keychain, row, target)) is not None]
            bad |= {row.wrapped for row in rows} - {row.wrapped for row, _ in anew}
            done += await keychain.keys.rewrap(anew)
            if progress is not None:
                progress(done)
        damaged += len(bad)
    return Rewrapped(done, damaged)


async def _next(keychain: Keychain, root: bytes, bad: set[bytes], batch: int) -> list[KeyRow]:
    """More keys of a root, without those that are known not to open."""
    rows = await keychain.keys.wrapped_by(root, batch + len(bad))
    return [row for row in rows if row.wrapped not in bad]


async def _unfinished(keychain: Keychain, root: bytes) -> bool:
    """Whether a rotation left keys at this root that could be wrapped anew."""
    bad: set[bytes] = set()
    while rows := await _next(keychain, root, bad, BATCH):
        for row in rows:
            if await _opened(keychain, row) is not None:
                return True
            bad.add(row.wrapped)
    return False


async def _target(keychain: Keychain, ring: KeyRing, *, anew: bool) -> bytes:
    """The root that shall be active: one in the ring that the store never used, or a new one."""
    known = {row.root: row.active for row in await keychain.keys.roots()}
    offered = ring.ring.active
    if ring.path is None:
        if known.get(offered) and len(known) == 1:
            raise BadInput("Put a new key first in NITKA_ROOT_KEYS and keep the old one after it; then rotate.")
        return offered
    if offered not in known:  # an earlier call was cut off here, or another store that shares the file was rotated
        return offered
    unfinished = [root for root in known if not known[root] and await _unfinished(keychain, root)]
    if known[offered] and unfinished and not anew:
        return offered
    store = await keychain.keys.store_id()
    ring.update(lambda now: now.with_new_root(store))
    return ring.ring.active


async def _retire(keychain: Keychain, ring: KeyRing, rotated: Rotated) -> Rotated:
    others = await _others(keychain, rotated.active)
    retired = [row.root for row in others if await keychain.keys.retire_root(row.root)]
    complete = await keychain.keys.scrub()
    rotated = replace(rotated, retired=tuple(retired), complete=complete)
    if ring.path is None:
        return replace(rotated, in_environment=bool(retired))
    store, needs = await keychain.keys.store_id(), [row.root for row in await keychain.keys.roots()]
    ring.update(lambda now: now.without_old(store, needs))
    return replace(rotated, kept=tuple(root for root in retired if root in ring.ring.roots))


async def _others(keychain: Keychain, target: bytes) -> Sequence[RootRow]:
    return [row for row in await keychain.keys.roots() if row.root != target]


async def _again(keychain: Keychain, row: KeyRow, target: bytes) -> KeyRow | None:
    """The key wrapped by another root; None for one that does not open."""
    key = await _opened(keychain, row)
    if key is None:
        return None
    return KeyRow(row.owner, row.incarnation, target, await keychain.roots.wrap(key, _place(row), root=target))


async def _opened(keychain: Keychain, row: KeyRow) -> bytes | None:
    try:
        return await keychain.roots.unwrap(row.wrapped, _place(row), root=row.root)
    except Damaged:
        return None


def _place(row: KeyRow) -> Place:
    return Place(Kind.TAG_KEY if row.owner == row.incarnation else Kind.USER_KEY, row.incarnation, row.owner)
