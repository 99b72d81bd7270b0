"""The facts fold: what the user said since the cursor becomes facts, by a model or by the offline rules.

It is the first fold of a person: due after every turn, and the one that finds out whether profile and recall index
are due too. The extractor only proposes; reconciling is pure and is done again, without asking again, where the facts
moved meanwhile. Rows that were forgotten meanwhile teach nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nitka import facts as facts_of
from nitka.conversation import FACTS, PROFILE, RECALL, VECTORS, Vault
from nitka.errors import Forgotten
from nitka.facts import Facts
from nitka.layers.facts import CATEGORIES, Candidate, Category, Fact, RestsOn, not_ahead, reconcile
from nitka.models.ports import Extractor
from nitka.notes import forgets
from nitka.standin import Afford, model_or_rules
from nitka.store.port import Change, Locked, Look, Step, View
from nitka.types import Limits, Message
from nitka.vault.keychain import Owner
from nitka.world import Clock

ROWS = 64  # read for one step at most
CONTEXT = 8  # rows before them that tell what a short answer answers


class Read(NamedTuple):
    """Rows of one person by `n`, `[first, end)`, those before `first` for context."""

    rows: Mapping[int, RestsOn]
    first: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """Extracts and reconciles. `model` is None where none is configured; `excluded` categories are never written."""

    vault: Vault
    model: Extractor | None
    offline: Extractor
    limits: Limits
    afford: Afford
    clock: Clock
    excluded: frozenset[Category] = frozenset()
    embeds: bool = False  # facts get vectors when there is time

    async def fold(self, owner: Owner, *, attempts: int, last_attempt: int) -> tuple[int, bool]:
        """One step. Returns how many rows were read, and whether the offline rules stood in for a model. Raises
        `ModelError` where the step has to be tried again.
        """
        view = await self.vault.store.view(Look(owner=owner.id, person_folds=(FACTS, PROFILE, RECALL)))
        if view.incarnation != owner.incarnation:
            raise Forgotten("The user.")
        known = await facts_of.load(self.vault, owner, view.person_folds.get(FACTS))
        if view.n - known.cursor <= self.limits.facts_slack:
            await self.vault.store.change(self.vault.scope(owner), self._waits(view.n))
            return 0, False
        read = await self._read(owner, known.cursor)
        proposals, stood_in = await self._propose(known, read, attempts=attempts, last_attempt=last_attempt)
        committed = await self._commit(owner, known, read, proposals, view)
        return (read.end - read.first) * committed, stood_in

    async def _read(self, owner: Owner, cursor: int) -> Read:
        first = max(0, cursor - CONTEXT)
        look = Look(owner=owner.id, from_n=(first, cursor - first + ROWS))
        view = await self.vault.store.view(look)
        last = view.person_rows[-1].row.n + 1 if view.person_rows else cursor
        full = len(view.person_rows) >= cursor - first + ROWS
        return Read(facts_of.opened_rows(owner, view), cursor, max(cursor, last if full else view.n))

    async def _propose(
        self, known: Facts, read: Read, *, attempts: int, last_attempt: int
    ) -> tuple[tuple[Candidate, ...], bool]:
        runs = _by_session(read)
        if not runs or self.excluded >= frozenset(CATEGORIES):
            return (), False
        live = [one.fact for one in known.current()]
        size = sum(self.vault.count(message.text) for run in runs for message in run)
        return await model_or_rules(
            self.model,
            self.offline,
            lambda extractor: self._asked(extractor, runs, live, read),
            tokens=size,
            afford=self.afford,
            attempts=attempts,
            last_attempt=last_attempt,
        )

    async def _asked(
        self, extractor: Extractor, runs: Sequence[Sequence[Message]], live: Sequence[Fact], read: Read
    ) -> tuple[Candidate, ...]:
        found: list[Candidate] = []
        for run in runs:
            found += await extractor.extract(run, known=live)
        return tuple(candidate for candidate in found if candidate.n >= read.first)

    async def _commit(
        self, owner: Owner, known: Facts, read: Read, proposals: tuple[Candidate, ...], view: View
    ) -> int:
        """Writes the step; 1 if it was written, 0 where somebody else read these rows meanwhile."""
        for _ in range(facts_of.TRIES):
            messages = [said.message for said in read.rows.values()]
            after = reconcile(
                known.all,
                proposals,
                not_ahead(messages, self.clock()),
                sessions={n: said.session for n, said in read.rows.items()},
                forgotten=forgets(known.notes),
                excluded=self.excluded,
            )
            step = await asyncio.to_thread(facts_of.written, owner, known, after.facts, cursor=read.end)
            if await self._written(owner, known, step, read, view):
                return 1
            known = await facts_of.load(self.vault, owner)
            if known.cursor != read.first:
                break
            rows = await facts_of.said_in(self.vault, owner, read.rows)  # some may have been forgotten
            read = read._replace(rows=rows)
        await self.vault.store.change(self.vault.scope(owner), lambda _: AGAIN)
        return 0

    async def _written(self, owner: Owner, known: Facts, step: facts_of.Written, read: Read, view: View) -> bool:
        others = self._also_due(view, read)

        def decide(locked: Locked) -> Change | None:
            if not facts_of.stands(locked, known):
                return None
            due = (FACTS, *others) if locked.n > read.end else others
            due = (*due, VECTORS) if self.embeds and step.put else due
            return step.change(person_done=(FACTS,), person_due=due)

        _, change = await self.vault.store.change(self.vault.scope(owner, FACTS), decide)
        if change is not None:
            facts_of.keep(self.vault, owner, step.after)
        return change is not None

    def _waits(self, n: int) -> Step:
        """Nothing has to be done, unless a turn was written since this was looked at."""

        def decide(locked: Locked) -> Change:
            return Change(person_done=(FACTS,), person_due=(FACTS,) if locked.n > n else ())

        return decide

    def _also_due(self, view: View, read: Read) -> tuple[str, ...]:
        """The person's other folds that have enough to read now."""
        lags = {PROFILE: 2 * self.limits.profile_every, RECALL: self.limits.window + self.limits.recall_slack}
        cursors = {kind: row.cursor for kind, row in view.person_folds.items()}
        return tuple(kind for kind, lag in lags.items() if read.end - cursors.get(kind, 0) > lag)


AGAIN = Change(person_done=(FACTS,), person_due=(FACTS,))
"""Somebody else moved the facts on: the work is free to be looked at anew."""


def _by_session(read: Read) -> list[list[Message]]:
    """The rows session by session, in order; of those before the cursor only such as an answer may answer."""
    runs: dict[str, list[Message]] = {}
    for n in sorted(read.rows):
        said = read.rows[n]
        runs.setdefault(said.session, []).append(said.message)
    cut = [run[max(0, _first(run, read.first) - 1) :] for run in runs.values()]
    return [run for run in cut if any(message.n >= read.first and message.role == "user" for message in run)]


def _first(run: Sequence[Message], n: int) -> int:
    return next((at for at, message in enumerate(run) if message.n >= n), len(run))
