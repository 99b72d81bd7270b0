"""The profile fold: a few lines of standing context, told anew every so many messages of the user's.

The lines are not a list of facts and have no history: the fold replaces them whole. When a turn is forgotten, the
profile goes with it at once and is told anew from what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

from nitka import facts as facts_of
from nitka.conversation import FACTS, PROFILE, Vault, find_owner
from nitka.errors import Forgotten
from nitka.layers.facts import CATEGORIES, Category
from nitka.models.ports import Extractor
from nitka.standin import Afford, model_or_rules
from nitka.store.port import NOBODY, Change, FoldRow, Locked, Look
from nitka.types import Limits, Message, Person, Profile, Sealed
from nitka.vault import codec
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind

RECENT_ROWS = 160  # looked at, the newest: some 80 messages of the user


@dataclass(frozen=True, slots=True, kw_only=True)
class Profiler:
    """Tells the profile. `model` is None where none is configured."""

    vault: Vault
    model: Extractor | None
    offline: Extractor
    limits: Limits
    afford: Afford
    excluded: frozenset[Category] = frozenset()

    async def fold(self, owner: Owner, *, attempts: int, last_attempt: int) -> tuple[int, bool]:
        """One step: returns 1 if a profile was written, and whether the offline one stood in. Raises `ModelError`."""
        view = await self.vault.store.view(Look(owner=owner.id, person_folds=(FACTS, PROFILE)))
        if view.incarnation != owner.incarnation:
            raise Forgotten("The user.")
        row = view.person_folds.get(PROFILE)
        before = read_profile(owner, row)
        known = await facts_of.load(self.vault, owner, view.person_folds.get(FACTS))
        recent = await self.vault.store.view(Look(owner=owner.id, from_n=(max(0, view.n - RECENT_ROWS), RECENT_ROWS)))
        messages = [said.message for _, said in sorted(facts_of.opened_rows(owner, recent).items())]
        text, stood_in = await self._tell(messages, before.text, known, attempts=attempts, last_attempt=last_attempt)
        after = seal_profile(owner, row, view.n, text)

        def decide(locked: Locked) -> Change:
            if locked.person_folds.get(PROFILE) != row:
                return Change(person_done=(PROFILE,), person_due=(PROFILE,))
            return Change(folds=(after,), person_done=(PROFILE,))

        _, change = await self.vault.store.change(self.vault.scope(owner, PROFILE), decide)
        return int(change is not None and bool(change.folds)), stood_in

    async def _tell(
        self, messages: list[Message], old: str, known: facts_of.Facts, *, attempts: int, last_attempt: int
    ) -> tuple[str, bool]:
        cap, count = self.limits.profile_tokens, self.vault.count
        facts = [one.fact for one in known.current(self.excluded)]
        said = [message for message in messages if message.role == "user"]
        if not said or not cap or self.excluded >= frozenset(CATEGORIES):
            return "", False
        size = sum(count(message.text) for message in said)
        return await model_or_rules(
            self.model,
            self.offline,
            lambda extractor: extractor.profile(messages, old, known=facts, cap=cap, count=count),
            tokens=size,
            afford=self.afford,
            attempts=attempts,
            last_attempt=last_attempt,
        )


def read_profile(owner: Owner, row: FoldRow | None) -> Profile:
    """The profile in a fold row; an empty one where there is none. Raises `Damaged`."""
    if row is None:
        return Profile()
    kept: Profile | None = owner.recent.get(PROFILE, row)
    if kept is None:
        state = codec.open_person_fold(owner, Kind.PROFILE, row)
        kept = Profile(text=state["text"], cursor=row.cursor)
        owner.recent.keep(PROFILE, row, kept)
    return kept


def seal_profile(owner: Owner, before: FoldRow | None, cursor: int, text: str) -> FoldRow:
    """The fold's row with another text, one version on."""
    blank = FoldRow(NOBODY, PROFILE, cursor, before.version + 1 if before else 1, Sealed(b""))
    return codec.seal_person_fold(owner, Kind.PROFILE, blank, {"text": text})


def without(owner: Owner, row: FoldRow | None) -> FoldRow:
    """The row with nothing in it: what was forgotten may have been in it, and cannot be told apart. It is written
    even where there was none: whoever is telling a profile at this moment must find another version.
    """
    return seal_profile(owner, row, row.cursor if row else 0, "")


async def profile_of(vault: Vault, user: Person) -> Profile:
    """The user's profile; an empty one where there is none."""
    owner = await find_owner(vault, user)
    if owner is None:
        return Profile()
    view = await vault.store.view(Look(owner=owner.id, person_folds=(PROFILE,)))
    return read_profile(owner, view.person_folds.get(PROFILE))
