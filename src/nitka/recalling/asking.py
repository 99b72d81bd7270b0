"""What bears on a question, found while somebody waits for the answer.

Rules
* A turn waits at most `Limits.recall_wait` in all. What is not ready by then is left out, and a note says so; loads go
  on, and the next turn finds them done. Only the question is embedded here.
* Whatever goes wrong here, in the embedder or with what is stored, is a note too, and never the turn's failure.
* What is shown comes from the rows themselves, read after the search: what was forgotten meanwhile is not shown,
  whatever an index says.
* Rows that the index has not read yet are searched beside it, by words.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, NamedTuple, Protocol

from nitka import facts as facts_of
from nitka.conversation import FACTS, RECALL, Said, Vault
from nitka.errors import NitkaError
from nitka.facts import Kept
from nitka.layers.facts import Category
from nitka.layers.recall import Asked, Bearing, Hit, Index, Query, Vocabulary, rank_facts, read_question, search
from nitka.layers.recall.segment import Array
from nitka.models.embed import Embedder
from nitka.recalling.aside import aside
from nitka.recalling.memory import Memories, Memory, Reach, dictionaries, facts_ready, tail, vocabulary
from nitka.recalling.shelf import opened, read_ledger, rows_of
from nitka.recalling.shown import LOOKED_AT, alive, as_passages, as_recalled, within
from nitka.store.port import FoldRow
from nitka.types import Limits, Passage, Recalled, Tag
from nitka.vault.codec import session_tag
from nitka.vault.keychain import Owner

log = logging.getLogger("nitka")

K = 10  # passages looked for
MOST_FACTS = 40
FEW_FACTS = 24  # of a person who has no more than that, those that bear on nothing named may fill the room
TAIL_ROWS = 64  # read beside the index, at most
FIRST = 0.6  # share of the waiting time that is given to what the search needs


class Recollected(NamedTuple):
    """Facts and passages that bear on a question, best first. `notes` are for the receipt and quote nobody. `looked`:
    the facts were looked through in time, so that none means that none bears on it.
    """

    facts: tuple[Passage, ...] = ()
    recalled: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()
    looked: bool = False


class Question(Protocol):
    """What is asked, and what may be looked at; see `nitka.remembering.Wanted`."""

    @property
    def text(self) -> str: ...
    @property
    def session(self) -> str: ...
    @property
    def before(self) -> int: ...
    @property
    def now(self) -> datetime: ...
    @property
    def zone(self) -> str: ...
    @property
    def recall(self) -> Literal["session", "user", "off"]: ...


@dataclass(slots=True, kw_only=True, eq=False)
class Ready:
    """What has come in for one question so far."""

    memory: Memory | None = None
    tail: Index | None = None
    vector: Array | None = None
    facts: tuple[tuple[Kept, ...], Index] | None = None
    ranked: tuple[Passage, ...] | None = None
    recalled: tuple[Passage, ...] = ()
    notes: list[str] = field(default_factory=list)

    def indexes(self) -> tuple[Index, ...]:
        held = (self.memory.index if self.memory else None, self.tail)
        return tuple(one for one in held if one is not None and len(one))


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Answers the questions of one vault's people. Holds nobody's data: what is in memory is in the keychain."""

    memories: Memories
    embedder: Embedder | None
    limits: Limits
    running: set[asyncio.Future[Any]] = field(default_factory=set)

    async def recollect(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        wanted: Question,
        excluded: frozenset[Category] = frozenset(),
        end: float | None = None,
    ) -> Recollected:
        """Facts and passages for a request, within `Limits.facts_tokens` and `Limits.recall_tokens`. `rows` are the
        person's folds in the snapshot of the turn, `end` the loop's time until which it waits.
        """
        now = asyncio.get_running_loop().time()
        end = now + self.limits.recall_wait if end is None else end
        ready = Ready()
        parts = self._parts(vault, owner, rows, wanted, excluded, ready)
        await self._gathered(parts, ready, end - (1 - FIRST) * (end - now))
        if wanted.recall != "off" and self._wordless(ready):
            ready.notes.append("recall went by words alone: the question's vector was not ready")
        await self._gathered({"what was found": self._found(vault, owner, wanted, ready)}, ready, end)
        return Recollected(ready.ranked or (), ready.recalled, tuple(ready.notes), looked=ready.ranked is not None)

    def _parts(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        wanted: Question,
        excluded: frozenset[Category],
        ready: Ready,
    ) -> dict[str, Awaitable[None]]:
        """What has to come in before the search; each puts what it got into `ready`."""
        parts: dict[str, Awaitable[None]] = {}
        if FACTS in rows:
            parts["facts"] = self._facts(vault, owner, rows, excluded, ready)
        if wanted.recall == "user" or (wanted.recall == "session" and wanted.before > 0):
            parts["passages"] = self._passages(vault, owner, rows.get(RECALL), wanted, ready)
        if parts and self.embedder is not None:
            parts["vector"] = self._vector(self.embedder, wanted.text, ready)
        return parts

    async def _gathered(self, parts: Mapping[str, Awaitable[None]], ready: Ready, end: float) -> None:
        """Waits until `end`; of what is not there by then a note is made. It goes on all the same."""
        tasks = {asyncio.ensure_future(part): name for name, part in parts.items()}
        if not tasks:
            return
        left = max(0.0, end - asyncio.get_running_loop().time())
        done, pending = await asyncio.wait(tasks, timeout=left)
        for task in pending:
            self.running.add(task)
            task.add_done_callback(self._over)
            if tasks[task] != "vector":
                ready.notes.append(f"recall was not ready: {tasks[task]} may be missing")
        for task, error in ((task, task.exception()) for task in done):
            if error is None:
                continue
            log.warning("recall: %s failed (%s)", tasks[task], type(error).__name__)
            if tasks[task] != "vector":
                ready.notes.append(f"recall failed: {tasks[task]} may be missing ({type(error).__name__})")

    def _over(self, task: asyncio.Future[Any]) -> None:
        self.running.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: nobody waits for it any more

    async def _facts(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        excluded: frozenset[Category],
        ready: Ready,
    ) -> None:
        await dictionaries()
        known = await facts_of.load(vault, owner, rows.get(FACTS))
        ready.facts = await facts_ready(vault, owner, known, excluded, self._name)

    async def _passages(self, vault: Vault, owner: Owner, row: FoldRow | None, wanted: Question, ready: Ready) -> None:
        """The index, and what it has not read yet."""
        await dictionaries()
        ledger = opened(owner, row)
        memory = self.memories.held(vault, owner, ledger.epoch)
        if memory is None and ledger.parts:
            memory = await asyncio.shield(self.memories.load(vault, owner))
            memory = memory if memory.ledger.epoch >= ledger.epoch else None
        elif memory is not None and memory.ledger.version < ledger.version:
            self.memories.load(vault, owner)  # beside the path: what it lacks is in the tail
        ready.memory = memory
        base = memory.ledger if memory else ledger
        reach = Reach(session_tag(owner, wanted.session), wanted.before, elsewhere=wanted.recall == "user")
        ready.tail, late = await tail(vault, owner, base, reach, TAIL_ROWS)
        if late:
            ready.notes.append(f"recall: {late} of the newest rows are not indexed yet")
        if memory is not None and memory.lacking:
            ready.notes.append(f"recall: {memory.lacking} passages are not usable until the index is made anew")

    async def _vector(self, embedder: Embedder, text: str, ready: Ready) -> None:
        ready.vector = (await embedder.embed_query([text]))[0]

    def _wordless(self, ready: Ready) -> bool:
        """Whether there is meaning to compare with, and the question has none."""
        memory, facts = ready.memory, ready.facts
        there = (memory is not None and memory.index.with_vectors) or (facts is not None and facts[1].with_vectors)
        return bool(there) and ready.vector is None

    async def _found(self, vault: Vault, owner: Owner, wanted: Question, ready: Ready) -> None:
        """Facts, then passages, from what is ready; what was found first counts, should the rest come too late."""
        here = session_tag(owner, wanted.session)
        query = Query(
            text=wanted.text,
            vector=ready.vector,
            asker="user",
            now=wanted.now,
            zone=wanted.zone,
            session=here.hex(),
            before=wanted.before,
            elsewhere=wanted.recall == "user",
        )
        known = vocabulary(vault, owner)
        size = len(wanted.text) + sum(map(len, ready.indexes())) + len(ready.facts[0] if ready.facts else ())
        asked, hits = await aside(size, lambda: self._looked(vault, query, ready, known))
        numbers = {n for hit in hits for n in (hit.n, hit.n + 1 - 2 * (hit.seq % 2))}
        rows = await rows_of(vault, owner, numbers) if hits else {}
        count, bearing = owner.recent.counting(vault.count), Bearing(asked.keys, known)
        size = sum(min(len(one.message.text), LOOKED_AT) for one in rows.values())
        ready.recalled = await aside(size, lambda: self._shown(hits, rows, bearing, here, count)) if rows else ()

    def _looked(self, vault: Vault, query: Query, ready: Ready, known: Vocabulary) -> tuple[Asked, list[Hit]]:
        """Ranks the facts, and returns what was found of passages."""
        asked = read_question(query, known)
        if ready.facts is not None:
            ready.ranked = self._ranked(vault, query, asked, *ready.facts)
        return asked, self._searched(query, asked, ready.indexes(), K)

    def _ranked(
        self, vault: Vault, query: Query, asked: Asked, kept: Sequence[Kept], made: Index
    ) -> tuple[Passage, ...]:
        related = self.embedder.related if self.embedder is not None else 1.0
        anywhere = replace(query, session=None, before=None)
        few = len(kept) <= FEW_FACTS
        places = rank_facts(made, anywhere, k=MOST_FACTS, related=related, fill=few, asked=asked)
        texts = [facts_of.said_of(kept[place].fact) for place in places]
        return tuple(map(Passage, _fitting(texts, self.limits.facts_tokens, vault)))

    def _searched(self, query: Query, asked: Asked, indexes: Sequence[Index], k: int) -> list[Hit]:
        alike = self.embedder.alike if self.embedder is not None else 1.0
        found = [hit for one in indexes for hit in search(one, query, k=k, alike=alike, asked=asked).hits]
        return sorted(found, key=lambda hit: -hit.score)[:k]

    def _shown(
        self, hits: Sequence[Hit], rows: Mapping[int, Said], bearing: Bearing, here: Tag, count: Callable[[str], int]
    ) -> tuple[Passage, ...]:
        budget = self.limits.recall_tokens
        allowed = within(alive(hits, rows), rows, budget, count)
        return as_passages(allowed, rows, bearing, session=here, budget=budget, count=count)

    async def search(
        self, vault: Vault, owner: Owner, query: Query, *, session: str | None, k: int, budget: int | None
    ) -> tuple[Recalled, ...]:
        """Passages for a caller who waits as long as it takes. `budget` is in characters. Raises `Damaged` where the
        index does not open, `Forgotten`.
        """
        await dictionaries()
        ledger, _ = await read_ledger(vault, owner)
        memory = await asyncio.shield(self.memories.load(vault, owner))
        if memory.ledger.epoch < ledger.epoch:  # it was being loaded while something was forgotten
            memory = await asyncio.shield(self.memories.load(vault, owner))
        here = session_tag(owner, session) if session is not None else None
        reach = Reach(here, elsewhere=here is None)
        newest, _ = await tail(vault, owner, memory.ledger, reach, 4 * TAIL_ROWS)
        ready = Ready(memory=memory, tail=newest)
        if self.embedder is not None and memory.index.with_vectors:
            try:
                await self._vector(self.embedder, query.text, ready)
            except NitkaError as error:
                log.warning("recall: vector failed (%s)", type(error).__name__)
        query = replace(query, vector=ready.vector, session=here.hex() if here else None, elsewhere=here is None)
        known = vocabulary(vault, owner)
        asked = await asyncio.to_thread(read_question, query, known)
        hits = await asyncio.to_thread(self._searched, query, asked, ready.indexes(), k)
        rows = await rows_of(vault, owner, {hit.n for hit in hits})
        return await asyncio.to_thread(_recalled, hits, rows, Bearing(asked.keys, known), budget)

    @property
    def _name(self) -> str:
        return self.embedder.name if self.embedder is not None else ""

    async def close(self) -> None:
        """Ends what nobody waits for any more."""
        tasks = [task for task in self.running if not task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _fitting(texts: Sequence[str], budget: int, vault: Vault) -> list[str]:
    """The texts that fit into a budget of tokens, best first; one that is too long lets others pass."""
    kept: list[str] = []
    for text in texts:
        cost = vault.count(text) + 2  # the mark before it and the line's end
        if cost <= budget:
            kept.append(text)
            budget -= cost
    return kept


def _recalled(
    hits: Sequence[Hit], rows: Mapping[int, Said], bearing: Bearing, budget: int | None
) -> tuple[Recalled, ...]:
    return as_recalled(within(alive(hits, rows), rows, budget, len, frame=0), rows, bearing)
