"""What a turn is given of the person, beside the session's own layers: profile, facts, recalled passages.

None of it can hold up or spoil an answer: what does not open or is not there in time is left out, and the receipt
says so. Facts are given whole where all of them fit, else those that bear on the question; while that cannot be told
(arrays and dictionaries take half a second to load, beside whatever comes first), the newest.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from nitka import facts as facts_of
from nitka.conversation import FACTS, PROFILE, Vault
from nitka.errors import Damaged, NitkaError
from nitka.layers.facts import Category
from nitka.profiling import read_profile
from nitka.store.port import FoldRow
from nitka.types import Limits, Passage
from nitka.vault.keychain import Owner

if TYPE_CHECKING:
    from nitka.models.embed import Embedder
    from nitka.recalling import Recalling

_loading = threading.Lock()
os.register_at_fork(before=_loading.acquire, after_in_parent=_loading.release, after_in_child=_loading.release)

Reach = Literal["session", "user", "off"]
MOST = 200  # facts of which one request can hold; there is no room for more
REACHES: tuple[Reach, ...] = ("session", "user", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The question, and what may be looked at: rows of the session below `before`, which the window has left, and
    with the reach "user" other sessions.
    """

    text: str
    session: str
    before: int
    now: datetime
    zone: str = ""
    recall: Reach = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What outlives the session, best first. `notes` are for the receipt and quote nobody."""

    profile: str = ""
    facts: tuple[Passage, ...] = ()
    recalled: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


def _loaded() -> ModuleType:
    """Arrays and dictionaries. Nobody forks in the middle of it: the child would wait for ever for a module that no
    thread of it goes on loading.
    """
    with _loading:
        module = import_module("nitka.recalling")
        module.warm()
    return module


class Remembering:
    """One process's way to what is remembered of people. `embedder` is None where recall goes by words alone; it is
    closed with this.
    """

    def __init__(self, embedder: Embedder | None, limits: Limits) -> None:
        self.embedder = embedder
        self._limits = limits
        self._loading: asyncio.Task[Recalling] | None = None

    def load(self) -> asyncio.Task[Recalling]:
        """Begins to load recall, if that has not begun."""
        if self._loading is None:
            self._loading = asyncio.get_running_loop().create_task(self._load(), name="nitka-recall-load")
        return self._loading

    async def recalling(self) -> Recalling:
        """Recall, loaded."""
        return await asyncio.shield(self.load())

    async def _load(self) -> Recalling:
        module = await asyncio.to_thread(_loaded)
        recalling: Recalling = module.Recalling(self.embedder, self._limits)
        return recalling

    async def remembered(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        wanted: Wanted,
        excluded: frozenset[Category],
    ) -> Remembered:
        """What bears on the question. `rows` are the person's folds in the snapshot of the turn."""
        end = asyncio.get_running_loop().time() + self._limits.recall_wait
        notes: list[str] = []
        profile = ""
        try:
            profile = read_profile(owner, rows.get(PROFILE)).text
        except Damaged:
            notes.append("the profile does not open")
        facts, ranked = await self._facts(vault, owner, rows, excluded, notes, end)
        if ranked and (wanted.recall == "off" or (wanted.recall == "session" and not wanted.before)):
            return Remembered(profile=profile, facts=facts, notes=tuple(notes))
        task = self.load()
        if not task.done():
            await asyncio.wait([task], timeout=max(0.0, end - asyncio.get_running_loop().time()))
        if not task.done():
            notes.append("recall is being loaded: nothing was looked for")
            return Remembered(profile=profile, facts=facts, notes=tuple(notes))
        known = {kind: row for kind, row in rows.items() if not ranked or kind != FACTS}
        found = await task.result().recollect(vault, owner, known, wanted, excluded, end)
        chosen = found.facts if found.looked else facts
        return Remembered(profile=profile, facts=chosen, recalled=found.recalled, notes=(*notes, *found.notes))

    async def _facts(
        self,
        vault: Vault,
        owner: Owner,
        rows: Mapping[str, FoldRow],
        excluded: frozenset[Category],
        notes: list[str],
        end: float,
    ) -> tuple[tuple[Passage, ...], bool]:
        """The newest facts, as many as there is room for, and whether these are all: then nothing has to be ranked."""
        if FACTS not in rows:
            return (), True
        try:
            async with asyncio.timeout_at(end):
                known = await facts_of.load(vault, owner, rows[FACTS])
        except TimeoutError:
            return (), False
        except NitkaError as error:
            notes.append(f"facts left out: {type(error).__name__}")
            return (), True
        held = known.current(excluded)
        room, chosen = self._limits.facts_tokens, list[Passage]()
        for one in held[:MOST]:
            text = facts_of.said_of(one.fact)
            room -= vault.count(text) + 2
            if room < 0:
                break
            chosen.append(Passage(text))
        return tuple(chosen), len(chosen) == len(held)

    async def close(self) -> None:
        """Ends loads and closes the embedder."""
        if self._loading is None:
            if self.embedder is not None:
                await self.embedder.close()
            return
        recalling = await asyncio.shield(self._loading)
        await recalling.close()
