"""Wrapped keys that live in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from nitka.errors import StoreError
from nitka.store.port import Effort, KeyRow, RootRow
from nitka.types import Tag
from nitka.world import random_bytes


class MemoryKeys:
    """Wrapped keys in dictionaries."""

    def __init__(self) -> None:
        self.open = False
        self._id = random_bytes(16)
        self._roots: dict[bytes, RootRow] = {}
        self._tag_keys: dict[bytes, KeyRow] = {}
        self._user_keys: dict[bytes, KeyRow] = {}

    async def store_id(self) -> bytes:
        await self._turn()
        return self._id

    async def roots(self) -> Sequence[RootRow]:
        await self._turn()
        return list(self._roots.values())

    async def add_root(self, row: RootRow) -> None:
        await self._turn()
        kept = self._roots.get(row.root, row)
        if row.active:
            self._roots = {root: replace(other, active=False) for root, other in self._roots.items()}
        self._roots[row.root] = replace(kept, active=row.active)

    async def retire_root(self, root: bytes) -> bool:
        await self._turn()
        used = any(key.root == root for keys in (self._tag_keys, self._user_keys) for key in keys.values())
        if used or root not in self._roots or self._roots[root].active:
            return False
        del self._roots[root]
        return True

    async def tag_key(self, tenant: Tag) -> KeyRow | None:
        await self._turn()
        return self._tag_keys.get(tenant)

    async def add_tag_key(self, row: KeyRow) -> KeyRow | None:
        await self._turn()
        return self._add(self._tag_keys, row)

    async def user_key(self, owner: bytes) -> KeyRow | None:
        await self._turn()
        return self._user_keys.get(owner)

    async def add_user_key(self, row: KeyRow) -> KeyRow | None:
        await self._turn()
        return self._add(self._user_keys, row)

    async def remove_user_key(self, owner: bytes, incarnation: bytes) -> bool:
        await self._turn()
        key = self._user_keys.get(owner)
        if key is None or key.incarnation != incarnation:
            return False
        del self._user_keys[owner]
        return True

    async def wrapped_by(self, root: bytes, limit: int) -> Sequence[KeyRow]:
        await self._turn()
        keys = [*self._tag_keys.values(), *self._user_keys.values()]
        return [key for key in keys if key.root == root][:limit]

    async def rewrap(self, rows: Sequence[tuple[KeyRow, KeyRow]]) -> int:
        await self._turn()
        done = 0
        for old, new in rows:
            for keys in (self._user_keys, self._tag_keys):
                if keys.get(old.owner) == old:
                    keys[old.owner] = new
                    done += 1
        return done

    async def scrub(self, effort: Effort = "short") -> bool:
        await self._turn()
        return True

    async def _turn(self) -> None:
        if not self.open:
            raise StoreError("It is closed.")
        await asyncio.sleep(0)

    def _add(self, keys: dict[bytes, KeyRow], row: KeyRow) -> KeyRow | None:
        if row.owner in keys:
            return keys[row.owner]
        if row.root not in self._roots or not self._roots[row.root].active:
            return None
        keys[row.owner] = row
        return row
