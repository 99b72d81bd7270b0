"""The folds of a person: facts, profile, recall index, and vectors. Each has one cursor over the owner's `n`."""

from __future__ import annotations

from dataclasses import dataclass

from nitka.conversation import FACTS, PROFILE, RECALL, VECTORS, Vault
from nitka.learning import Learner
from nitka.profiling import Profiler
from nitka.remembering import Remembering
from nitka.store.port import Change
from nitka.types import Settled
from nitka.vault.keychain import Owner


@dataclass(frozen=True, slots=True, kw_only=True)
class People:
    """Runs one step of whichever fold is due."""

    vault: Vault
    learner: Learner
    profiler: Profiler
    remembering: Remembering

    async def work(self, owner: Owner, kind: str, *, attempts: int, last_attempt: int) -> Settled:
        """What the step did. Raises `ModelError` and whatever else has the work tried again."""
        recalling = await self.remembering.recalling()  # facts too are written with the words they are found by
        if kind == FACTS:
            rows, stood_in = await self.learner.fold(owner, attempts=attempts, last_attempt=last_attempt)
        elif kind == PROFILE:
            rows, stood_in = await self.profiler.fold(owner, attempts=attempts, last_attempt=last_attempt)
        elif kind == RECALL:
            rows, stood_in = await recalling.fold(self.vault, owner), False
        elif kind == VECTORS:
            rows, stood_in = await recalling.embed(self.vault, owner), False
        else:  # written by a newer nitka
            await self.vault.store.change(self.vault.scope(owner), lambda _: Change(person_done=(kind,)))
            return Settled()
        return Settled(folds=int(rows > 0), messages=rows if kind != PROFILE else 0, offline=int(stood_in and rows > 0))
