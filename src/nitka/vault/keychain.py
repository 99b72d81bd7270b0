"""Who an owner is, and the key that opens what is theirs.

An owner id is a keyed hash of the user's id under the tenant's tag key. A user's key is random, made with a random
incarnation, stored wrapped by a root key in the store of keys, and kept opened in memory for some minutes. Whoever
uses a cached key compares its incarnation with the owner row first; a key of another incarnation is dropped and
read anew.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

from nitka.errors import BadId, Damaged, WrongKey
from nitka.store.port import KeyRow, KeyStore, RootRow
from nitka.tokens import KnownSizes
from nitka.types import Limits, Person, Tag, User
from nitka.vault.cache import Cache
from nitka.vault.roots import RootKeys
from nitka.vault.seal import KEY_BYTES, Kind, Place, SealKey, TagKey, UserKey
from nitka.world import monotonic, random_bytes

PROOF = b"nitka: this root key belongs to this store"
NO_TENANT = Tag(bytes(16))
MAX_ID_BYTES = 512
KEPT_VALUES = 320  # of one owner: the longest backlog, and what recall shows beside it
KEPT_BYTES = 64 << 20  # of all owners, about
FINDS = 64  # owners looked for between two looks at how much is kept
VALUE_BYTES = 1_000  # of a value whose size nobody said, about


class Recent:
    """The last few values opened or sealed with a key, so that the next turn need not open them again.

    Each is given back only for the very bytes it belongs to: what was sealed and never written is never found. They
    live and die with the opened key they hang on. Single steps of an OrderedDict are safe between threads.
    """

    __slots__ = ("_bytes", "_count", "_kept")

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, tuple[object, Any, int]] = OrderedDict()
        self._bytes = 0
        self._count: KnownSizes | None = None

    @property
    def bytes(self) -> int:
        """About how much room it takes."""
        return self._bytes + (self._count.bytes if self._count is not None else 0)

    def clear(self) -> None:
        self._kept.clear()
        self._bytes, self._count = 0, None

    def counting(self, count: Callable[[str], int]) -> Callable[[str], int]:
        """`count`, which remembers the sizes of this owner's last texts here."""
        if self._count is None or self._count.plain is not count:
            self._count = KnownSizes(count)
        return self._count

    def get(self, place: Hashable, sealed: object) -> Any:
        """What was opened at this place from these bytes, or None."""
        kept = self._kept.get(place)
        return kept[1] if kept is not None and kept[0] == sealed else None

    def keep(self, place: Hashable, sealed: object, value: object, *, size: int = VALUE_BYTES) -> None:
        """Keeps what was opened; `size` is about how many bytes it takes."""
        held = self._kept.pop(place, None)
        if held is None and len(self._kept) >= KEPT_VALUES:
            with contextlib.suppress(KeyError):  # another thread lets go too
                _, held = self._kept.popitem(last=False)
        self._kept[place] = (sealed, value, size)
        self._bytes += size - (held[2] if held is not None else 0)


@dataclass(frozen=True, slots=True)
class Owner:
    """A user as the store knows him: an opaque id, this life's incarnation, the key, and what it opened lately."""

    id: bytes
    incarnation: bytes
    key: UserKey = field(repr=False, compare=False)
    recent: Recent = field(default_factory=Recent, repr=False, compare=False)


def id_bytes(value: str, what: str) -> bytes:
    """An external id as bytes. Raises `BadId`; ids are never repaired."""
    if not isinstance(value, str):
        raise BadId(f"The {what} is a {type(value).__name__}, not a string.")
    try:
        data = value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise BadId(f"(The {what}.)") from error
    if not data or len(data) > MAX_ID_BYTES or b"\0" in data:
        raise BadId(f"(The {what}.)")
    return data


def _name(user: Person) -> tuple[bytes, ...]:
    """What is hashed. The kind comes first, so that no user and no handle meet."""
    if isinstance(user, User):
        return b"user", id_bytes(user.id, "user id")
    return b"handle", id_bytes(user.channel, "channel of the handle"), id_bytes(user.id, "handle")


class Keychain:
    """Opened keys of tenants and users over a store of wrapped ones."""

    def __init__(self, keys: KeyStore, roots: RootKeys, limits: Limits, clock: Callable[[], float] = monotonic) -> None:
        self.keys = keys
        self.roots = roots
        self._limits = limits
        self._clock = clock
        self._active = b""
        self._tag_keys: dict[Tag, TagKey] = {}
        self._owners: OrderedDict[bytes, tuple[float, Owner]] = OrderedDict()
        self._finds = 0
        self.cache = Cache(limits.cache_bytes, limits.cache_seconds, clock)

    async def prepare(self) -> None:
        """Proves that the roots belong to this store, before anything is read. Raises `KeyMissing`, `WrongKey`."""
        rows = await self.keys.roots()
        await self.roots.prepare(fresh=not rows)
        if not rows:
            await self._register(await self.roots.active())
            rows = await self.keys.roots()
        await self._prove(rows)
        self._active = next((row.root for row in rows if row.active), b"")
        if not self._active:
            raise Damaged("(the active root)")
        await self.roots.claim(await self.keys.store_id(), [row.root for row in rows])

    async def prove(self) -> None:
        """Proves again that the roots belong to this store. Raises `WrongKey`, `StoreError`."""
        await self._prove(await self.keys.roots())

    async def owner_id(self, user: Person) -> Tag:
        """The opaque id of a (tenant, user); that of a (tenant, channel, handle) as long as it is linked to nobody,
        and its tag (`vault.handles` tells whose it is). Raises `BadId`.
        """
        parts = _name(user)
        tenant = NO_TENANT
        if user.tenant:
            tenant = (await self._tag_key(NO_TENANT)).tag(b"tenant", id_bytes(user.tenant, "tenant id"))
        return (await self._tag_key(tenant)).tag(*parts)

    async def system_key(self) -> SealKey:
        """Seals what belongs to the server and to no user: its API keys, the tokens it hands out. Made from the first
        of all tag keys, wrapped and rotated with it.
        """
        return (await self._tag_key(NO_TENANT)).sealing

    async def passing_key(self, period: int) -> SealKey:
        """As `system_key`, another one for every period: for what is handed out all the time and soon worthless."""
        return (await self._tag_key(NO_TENANT)).sealing_in(period)

    async def find(self, owner: bytes) -> Owner | None:
        """The owner, if he has a key; possibly from memory, so compare the incarnation."""
        self._finds += 1
        if self._finds % FINDS == 0:
            self._trim()
        cached = self._owners.get(owner)
        if cached is not None and cached[0] > self._clock():
            self._owners.move_to_end(owner)
            return cached[1]
        row = await self.keys.user_key(owner)
        return self._keep(await self._open(row)) if row is not None else None

    async def make(self, owner: bytes) -> Owner:
        """The owner, with a key that is durable from now on."""
        self.drop(owner)
        incarnation = random_bytes(16)
        key = random_bytes(KEY_BYTES)
        while True:
            place = Place(Kind.USER_KEY, incarnation, owner)
            wrapped = await self.roots.wrap(key, place, root=self._active)
            row = await self.keys.add_user_key(KeyRow(owner, incarnation, self._active, wrapped))
            if row is not None:
                return self._keep(await self._open(row))
            await self._renew()

    async def stands(self, owner: Owner) -> bool:
        """Whether the key is still there, asked of the store: its owner was not forgotten since."""
        row = await self.keys.user_key(owner.id)
        return row is not None and row.incarnation == owner.incarnation

    def drop(self, owner: bytes) -> None:
        """Forgets the opened key, and what was opened with it."""
        self._owners.pop(owner, None)
        self.cache.drop(owner)

    def expire(self) -> None:
        """Forgets the opened keys whose time is over, and what they had opened. Called now and then."""
        now = self._clock()
        for owner in [owner for owner, (until, _) in self._owners.items() if until <= now]:
            del self._owners[owner]
        self.cache.expire()

    async def register(self, root: bytes) -> None:
        """Makes a root the active one of this store: it wraps every key that is made from now on."""
        await self._register(root)
        self._active = root

    async def _register(self, root: bytes) -> None:
        proof = await self.roots.wrap(PROOF, Place(Kind.PROOF, bytes(16)), root=root)
        await self.keys.add_root(RootRow(root, True, proof))

    async def _prove(self, rows: Sequence[RootRow]) -> None:
        proven = 0
        for row in rows:
            if not await self.roots.holds(row.root):
                if row.active:
                    raise WrongKey("It lacks the store's active root key.")
                continue
            try:
                proven += await self.roots.unwrap(row.proof, Place(Kind.PROOF, bytes(16)), root=row.root) == PROOF
            except Damaged as error:
                raise WrongKey from error
        if not proven:
            raise WrongKey

    async def _renew(self) -> None:
        """Another process made another root the active one."""
        await self.roots.reload()
        await self.prepare()

    async def _tag_key(self, tenant: Tag) -> TagKey:
        if tenant not in self._tag_keys:
            row = await self.keys.tag_key(tenant)
            if row is None and tenant == NO_TENANT:
                row = await self._lost_tag_key()
            while row is None:
                place = Place(Kind.TAG_KEY, tenant, tenant)
                wrapped = await self.roots.wrap(random_bytes(KEY_BYTES), place, root=self._active)
                row = await self.keys.add_tag_key(KeyRow(tenant, tenant, self._active, wrapped))
                if row is None:
                    await self._renew()
            self._tag_keys[tenant] = TagKey(await self._unwrap(row, Kind.TAG_KEY))
        return self._tag_keys[tenant]

    async def _lost_tag_key(self) -> KeyRow | None:
        """The first of all keys, if another process has just made it. Raises `Damaged` where other keys are there and
        it is not: a new one would make strangers of all users, and their past would seem empty.
        """
        used = [root for root in await self.keys.roots() if await self.keys.wrapped_by(root.root, 1)]
        row = await self.keys.tag_key(NO_TENANT)
        if used and row is None:
            raise Damaged("(the tag key)")
        return row

    async def _open(self, row: KeyRow) -> Owner:
        return Owner(row.owner, row.incarnation, UserKey(await self._unwrap(row, Kind.USER_KEY)))

    async def _unwrap(self, row: KeyRow, kind: Kind) -> bytes:
        if not await self.roots.holds(row.root):
            await self._renew()
        return await self.roots.unwrap(row.wrapped, Place(kind, row.incarnation, row.owner), root=row.root)

    def _trim(self) -> None:
        """Lets go what those who were least lately asked for had opened, where all together is too much."""
        kept = sum(owner.recent.bytes for _, owner in self._owners.values())
        for _, owner in self._owners.values():
            if kept <= KEPT_BYTES:
                return
            kept -= owner.recent.bytes
            owner.recent.clear()

    def _keep(self, owner: Owner) -> Owner:
        self._owners[owner.id] = (self._clock() + self._limits.cache_seconds, owner)
        self._owners.move_to_end(owner.id)
        while len(self._owners) > self._limits.cache_entries:
            self._owners.popitem(last=False)
        return owner
