"""A person's index in the memory of this process: loaded once, kept while it is used, brought up to date beside the
answer's path.

An index is used only for the owner's present incarnation and in the epoch that the turn's own snapshot names: then
nothing in it has been forgotten since, and at most the newest rows are missing, which are read as they are (`tail`).
It is held in the keychain's cache, bounded by bytes and time, and goes when the keychain drops its owner. A load that
such a drop overtakes is not kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from nitka.conversation import FACTS, FAR, RECALL, Said, Vault, said
from nitka.errors import Damaged, Forgotten
from nitka.facts import Facts, Kept, said_of
from nitka.layers.facts import Category
from nitka.layers.recall import (
    Index,
    Segment,
    Vocabulary,
    facts_index,
    index,
    installed,
    join,
    passages,
    plain,
    segment,
)
from nitka.layers.recall.index import NEWEST
from nitka.layers.recall.ledger import Ledger
from nitka.layers.recall.segment import take
from nitka.recalling.aside import aside
from nitka.recalling.shelf import kind_of, opened_part, read_ledger, read_pieces
from nitka.store.port import Look, Piece
from nitka.types import Tag
from nitka.vault.keychain import Owner

log = logging.getLogger("nitka")

LOADING = "recall loading"
TAIL = "recall tail"
FACTS_INDEX = "facts index"
WORDS = "words"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """An index as it was loaded: its ledger, the opened segments by number, and all of them as one."""

    ledger: Ledger
    segments: Mapping[int, Segment]
    index: Index
    bytes: int  # about how much room it takes

    @property
    def lacking(self) -> int:
        """Passages that are not in the index: of segments that do not open, or wait to be made anew."""
        return max(0, min(self.ledger.size, NEWEST) - len(self.index))


class Reach(NamedTuple):
    """Which rows may be found: those of the session `here` below `before`, and with `elsewhere` all of others."""

    here: Tag | None
    before: int = FAR
    elsewhere: bool = False

    def has(self, session: Tag, seq: int) -> bool:
        """Whether a row is within it."""
        return seq < self.before if session == self.here else self.elsewhere

    def ends(self, following: Mapping[Tag, int]) -> bool:
        """Whether it ends before the rows (seq) that are known to follow."""
        known = following.get(self.here) if self.here is not None else None
        return not self.elsewhere and known is not None and known >= self.before


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tail:
    """The rows of `[begin, end)` by their n, which no ledger has read yet, as one segment and ready to be searched;
    and the first row (seq) of each session that is not in it, as far as it was seen.
    """

    begin: int
    end: int
    segment: Segment | None = None
    index: Index | None = None
    next: Mapping[Tag, int] = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """About how much room it takes."""
        return sum(_bytes(part) for part in (self.segment, self.index) if part is not None)


async def dictionaries() -> None:
    """Waits for the dictionaries of words, which take half a second to load, once a process."""
    if not installed.cache_info().currsize:
        await asyncio.to_thread(installed)


def _bytes(one: Index | Segment) -> int:
    values = [getattr(one, name) for name in one.__slots__]
    arrays = [array for value in values for array in (value.values() if isinstance(value, dict) else [value])]
    return sum(int(getattr(array, "nbytes", 0)) for array in arrays)


class Memories:
    """Loads indexes and keeps them in the keychain's cache; of each owner one load runs at a time."""

    def __init__(self, embedder: str) -> None:
        """`embedder` names whose vectors are used; "" where there is none."""
        self._embedder = embedder
        self._loads: dict[bytes, asyncio.Task[Memory]] = {}

    def held(self, vault: Vault, owner: Owner, epoch: int) -> Memory | None:
        """What is in memory for this epoch; its time begins anew."""
        found: Memory | None = vault.keychain.cache.get(owner.id, owner.incarnation, RECALL, epoch)
        if found is not None:
            self._keep(vault, owner, found)
        return found

    def load(self, vault: Vault, owner: Owner) -> asyncio.Task[Memory]:
        """The newest index, as a task that goes on whoever stops waiting for it."""
        task = self._loads.get(owner.id)
        if task is None or task.done():
            task = asyncio.get_running_loop().create_task(self._load(vault, owner), name="nitka-recall")
            self._loads[owner.id] = task
            task.add_done_callback(lambda done: self._ended(owner.id, done))
        return task

    async def refresh(self, vault: Vault, owner: Owner, epoch: int) -> None:
        """Brings what is in memory up to date; nothing where nothing is."""
        if self.held(vault, owner, epoch) is not None:
            await asyncio.shield(self.load(vault, owner))

    async def close(self) -> None:
        """Waits for no load any more."""
        tasks = list(self._loads.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._loads.clear()

    def _ended(self, owner: bytes, task: asyncio.Task[Memory]) -> None:
        if self._loads.get(owner) is task:
            del self._loads[owner]
        if not task.cancelled():
            task.exception()  # looked at, so that a load nobody waits for any more is no error of the event loop's

    async def _load(self, vault: Vault, owner: Owner) -> Memory:
        cache, mark = vault.keychain.cache, object()
        cache.put(owner.id, owner.incarnation, LOADING, 0, mark, size=0)
        ledger, _ = await read_ledger(vault, owner)
        known = self.held(vault, owner, ledger.epoch)
        if known is not None and known.ledger.version == ledger.version:
            return known
        made = await self._read(vault, owner, ledger, known.segments if known else {})
        if cache.get(owner.id, owner.incarnation, LOADING, 0) is mark:
            self._keep(vault, owner, made)
        return made

    async def _read(self, vault: Vault, owner: Owner, ledger: Ledger, known: Mapping[int, Segment]) -> Memory:
        """The newest index; segments that are `known` are not opened again."""
        kinds, pieces = set[str](), dict[Tag, Piece]()
        while not (missing := {kind_of(part) for part in ledger.parts if part.id not in known}) <= kinds:
            kinds |= missing
            ledger, pieces = await read_pieces(vault, owner, kinds)

        return await asyncio.to_thread(lambda: self._built(ledger, _opened(owner, ledger, pieces, known)))

    def _built(self, ledger: Ledger, segments: Mapping[int, Segment]) -> Memory:
        """The index of what was made with the lemmas and the embedder in force; the rest is still to be made anew."""
        lemmas = installed().name
        usable = [made for made in segments.values() if made.lemmas == lemmas]
        whole = index([made if made.embedder in ("", self._embedder) else plain(made) for made in usable])
        size = _bytes(whole) + sum(map(_bytes, segments.values())) + 4_096
        return Memory(ledger=ledger, segments=segments, index=whole, bytes=size)

    def _keep(self, vault: Vault, owner: Owner, memory: Memory) -> None:
        epoch = memory.ledger.epoch
        vault.keychain.cache.put(owner.id, owner.incarnation, RECALL, epoch, memory, size=memory.bytes)


def _opened(
    owner: Owner, ledger: Ledger, pieces: Mapping[Tag, Piece], known: Mapping[int, Segment]
) -> dict[int, Segment]:
    """The segments of a ledger, those that are `known` as they are. What does not open is left out: it must not take
    the rest along.
    """
    found: dict[int, Segment] = {}
    for part in ledger.parts:
        try:
            found[part.id] = known[part.id] if part.id in known else opened_part(owner, part, pieces)
        except Damaged:
            log.warning("a segment of a recall index does not open; it is left out")
    return found


async def facts_ready(
    vault: Vault, owner: Owner, facts: Facts, excluded: frozenset[Category], embedder: str
) -> tuple[tuple[Kept, ...], Index]:
    """The facts that hold now, the newest last, and their index by place in that list."""
    cache = vault.keychain.cache
    known: tuple[tuple[Kept, ...], Index] | None = cache.get(owner.id, owner.incarnation, FACTS_INDEX, facts.version)
    if known is not None:
        return known

    def build() -> tuple[tuple[Kept, ...], Index]:
        current = facts.current(excluded)[::-1]
        texts, words = [said_of(one.fact) for one in current], [one.words for one in current]
        vectors = [one.vector for one in current] if embedder and facts.embedder == embedder else []
        return current, facts_index(texts, words, vectors, embedder=embedder)

    ready = await asyncio.to_thread(build)
    if cache.get(owner.id, owner.incarnation, FACTS, facts.version) is facts:  # not dropped meanwhile
        cache.put(owner.id, owner.incarnation, FACTS_INDEX, facts.version, ready, size=_bytes(ready[1]))
    return ready


def vocabulary(vault: Vault, owner: Owner) -> Vocabulary:
    """What the words of this person are indexed under, as far as it is known; it goes when the keychain drops him."""
    cache = vault.keychain.cache
    known: Vocabulary = cache.get(owner.id, owner.incarnation, WORDS, 0) or Vocabulary(installed())
    cache.put(owner.id, owner.incarnation, WORDS, 0, known, size=Vocabulary.BYTES)
    return known


async def tail(vault: Vault, owner: Owner, ledger: Ledger, wanted: Reach, most: int) -> tuple[Index | None, int]:
    """An index of the rows wanted that the ledger has not read yet, of the `most` oldest, and how many came after
    those. What was made for the last turn is brought up to date: within an epoch rows are only added. So nothing is
    read where the session has no row that is wanted and not in it. Raises `Forgotten`.
    """
    cache = vault.keychain.cache
    none = Tail(begin=ledger.cursor, end=ledger.cursor)
    held: Tail = cache.get(owner.id, owner.incarnation, TAIL, ledger.epoch) or none
    held = held if held.begin <= ledger.cursor <= held.end else none
    if held.begin == ledger.cursor and wanted.ends(held.next):
        return held.index, 0
    cache.put(owner.id, owner.incarnation, TAIL, ledger.epoch, held, size=held.bytes)
    view = await vault.store.view(Look(owner=owner.id, from_n=(held.end, most)))
    if view.incarnation != owner.incarnation:
        raise Forgotten("The user.")
    near = [one for one in view.person_rows if one.row.n < ledger.cursor + most]
    end = max([held.end, *(one.row.n + 1 for one in near if wanted.has(one.session, one.row.seq))])
    new = said(owner, replace(view, person_rows=tuple(one for one in near if one.row.n < end)))
    size, known = sum(len(one.message.text) for one in new.values()), vocabulary(vault, owner)
    made = await aside(size, lambda: _tail(held, new, known, begin=ledger.cursor, end=end))
    made = replace(made, next={one.session: one.row.seq for one in reversed(view.person_rows) if one.row.n >= end})
    if cache.get(owner.id, owner.incarnation, TAIL, ledger.epoch) is held:  # not dropped meanwhile
        cache.put(owner.id, owner.incarnation, TAIL, ledger.epoch, made, size=made.bytes)
    return made.index, max(0, view.n - ledger.cursor - most)


def _tail(held: Tail, new: Mapping[int, Said], known: Vocabulary, *, begin: int, end: int) -> Tail:
    """What is held without what the ledger has read by now, and with new rows."""
    if not new and begin == held.begin:
        return replace(held, end=end)
    found = [piece for n in sorted(new) for piece in passages([new[n].message], session=new[n].tag.hex())]
    parts = [segment(found, known)]
    if held.segment is not None:
        parts.insert(0, take(held.segment, np.flatnonzero(held.segment.columns["n"] >= begin)))
    whole = join(parts)
    return Tail(begin=begin, end=end, segment=whole, index=index([whole]))
