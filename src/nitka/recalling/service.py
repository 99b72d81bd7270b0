"""`Recalling`: one process's way to everybody's index."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from nitka.conversation import RECALL, Vault
from nitka.layers.facts import Category
from nitka.layers.recall import Query
from nitka.models.embed import Embedder
from nitka.recalling.asking import Asker, Question, Recollected
from nitka.recalling.folding import embed, fold
from nitka.recalling.memory import Memories
from nitka.recalling.shelf import opened
from nitka.store.port import FoldRow, Look
from nitka.types import Limits, Recalled
from nitka.vault.keychain import Owner


class Recalling:
    """Folds, embeds, recollects and searches. `embedder` is None where recall goes by words alone; it is closed with
    this.
    """

    def __init__(self, embedder: Embedder | None, limits: Limits) -> None:
        self.embedder = embedder
        self._limits = limits
        self._name = embedder.name if embedder is not None else ""
        self._memories = Memories(self._name)
        self._asker = Asker(memories=self._memories, embedder=embedder, limits=limits)

    async def fold(self, vault: Vault, owner: Owner) -> int:
        """One step of the index; returns how many rows went in. What is in memory is brought up to date. Raises
        `Damaged`, `Forgotten`, `StoreError`.
        """
        rows = await fold(vault, owner, self._limits, self._name)
        if rows:
            await self._refresh(vault, owner)
        return rows

    async def embed(self, vault: Vault, owner: Owner) -> int:
        """One piece of the work that can wait: vectors for facts and passages. Returns how many. Raises `ModelError`,
        and what `fold` raises.
        """
        done = await embed(vault, owner, self.embedder)
        if done:
            await self._refresh(vault, owner)
        return done

    async def _refresh(self, vault: Vault, owner: Owner) -> None:
        view = await vault.store.view(Look(owner=owner.id, person_folds=(RECALL,)))
        ledger = opened(owner, view.person_folds.get(RECALL))
        await self._memories.refresh(vault, owner, ledger.epoch)

    async def recollect(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        wanted: Question,
        excluded: frozenset[Category] = frozenset(),
        end: float | None = None,
    ) -> Recollected:
        """What bears on a turn's question; see `nitka.recalling.asking`. `rows` are the person's folds in the snapshot
        of the turn, `excluded` the categories of facts that are not used, `end` the loop's time until which the turn
        waits (by default `Limits.recall_wait` from now). Raises nothing but cancellation.
        """
        return await self._asker.recollect(vault, owner, rows, wanted, excluded, end)

    async def search(
        self,
        vault: Vault,
        owner: Owner,
        query: str,
        *,
        session: str | None = None,
        k: int = 10,
        budget: int | None = None,
        now: datetime | None = None,
        zone: str = "",
    ) -> tuple[Recalled, ...]:
        """Up to `k` passages of the person's conversations, or of one, best first, word for word; with a `budget` of
        characters long ones are cut to the sentences that bear on the query. Raises `BadId`, `Damaged`, `Forgotten`,
        `StoreError`.
        """
        asked = Query(text=query, asker="user", now=now, zone=zone)
        return await self._asker.search(vault, owner, asked, session=session, k=k, budget=budget)

    async def close(self) -> None:
        """Ends loads and closes the embedder."""
        await self._asker.close()
        await self._memories.close()
        if self.embedder is not None:
            await self.embedder.close()
