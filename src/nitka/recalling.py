"""PLACEHOLDER until the index fold is committed: keeps the tree importable. Replace this file whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from nitka import facts as facts_of
from nitka.conversation import FACTS, RECALL, Vault
from nitka.layers.facts import Category
from nitka.store.port import Change, FoldRow, Piece
from nitka.types import Limits, Passage, Recalled, Tag
from nitka.vault.keychain import Owner


class Recollected(NamedTuple):
    facts: tuple[Passage, ...] = ()
    recalled: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


class WithoutRows(NamedTuple):
    put: tuple[Piece, ...] = ()
    drop: tuple[tuple[str, Tag], ...] = ()
    folds: tuple[FoldRow, ...] = ()


class Recalling:
    def __init__(self, embedder: Any, limits: Limits) -> None:
        self._limits = limits

    async def close(self) -> None: ...

    async def fold(self, vault: Vault, owner: Owner) -> int:
        await vault.store.change(vault.scope(owner), lambda _: Change(person_done=(RECALL,)))
        return 0

    async def embed(self, vault: Vault, owner: Owner) -> int:
        return 0

    async def recollect(
        self, vault: Vault, owner: Owner, rows: Mapping[str, FoldRow], wanted: Any, excluded: frozenset[Category]
    ) -> Recollected:
        known = await facts_of.load(vault, owner, rows.get(FACTS))
        return Recollected(facts=tuple(Passage(facts_of.said_of(one.fact)) for one in known.current(excluded)[:12]))

    async def search(self, vault: Vault, owner: Owner, query: str, **more: Any) -> tuple[Recalled, ...]:
        return ()


async def without_rows(vault: Vault, owner: Owner, gone: Collection[int]) -> WithoutRows:
    return WithoutRows()
