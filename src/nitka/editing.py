"""Facts as they are seen and changed from outside: listed, set and taken back by hand, given over to another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from typing import NamedTuple

from nitka.conversation import FAR, Vault, find_owner, make_owner
from nitka.errors import BadInput, StoreBusy
from nitka.facts import TRIES, Facts, Kept, Written, load, tag_of, write, written
from nitka.layers import facts as layer
from nitka.layers.facts import USER, Category, Fact, Seen, category_of
from nitka.layers.facts.canon import name_key
from nitka.layers.facts.reconcile import VALUE_CHARS
from nitka.notes import Note, note_on
from nitka.store.port import Look
from nitka.types import Fact as KnownFact
from nitka.types import PastValue, Person
from nitka.vault.keychain import Owner


def shown(one: Kept, *, past: bool) -> KnownFact:
    """A fact as the caller sees it."""
    fact = one.fact
    return KnownFact(
        id=one.id.hex(),
        slot=fact.slot,
        value=fact.value,
        statement=fact.statement,
        about=fact.about,
        category=fact.category,
        quote=fact.quote,
        session=fact.session or None,
        seq=fact.seq if fact.seq >= 0 else None,
        first_seen=fact.first_seen,
        last_seen=fact.last_seen,
        confirmations=fact.confirmations,
        by_hand=fact.hand,
        current=fact.live,
        past=tuple(map(_past, fact.past)) if past else (),
    )


def _past(seen: Seen) -> PastValue:
    return PastValue(
        value=seen.value,
        statement=seen.statement,
        quote=seen.quote,
        session=seen.session or None,
        seq=seen.seq if seen.seq >= 0 else None,
        first_seen=seen.first_seen,
        last_seen=seen.last_seen,
    )


def listed(facts: Facts, about: str | None, *, past: bool) -> tuple[KnownFact, ...]:
    """What is known, of the user first, then of others, slot by slot; with `past` also what was taken back."""
    chosen = [
        one
        for one in facts.kept.values()
        if (past or one.fact.live) and (about is None or name_key(about) == name_key(one.fact.about))
    ]
    chosen.sort(key=lambda one: (one.fact.about != USER, one.fact.about, one.fact.slot, one.fact.value))
    return tuple(shown(one, past=past) for one in chosen)


Edit = Callable[[tuple[Fact, ...], int], Iterable[Fact]]


async def edit(vault: Vault, owner: Owner, change: Edit) -> Facts:
    """Changes facts by hand: `change` gets them and the owner's n, and may be called again if they moved meanwhile."""
    return await _edited(vault, owner, lambda before, n: written(owner, before, change(before.all, n)))


async def _edited(vault: Vault, owner: Owner, change: Callable[[Facts, int], Written]) -> Facts:
    for _ in range(TRIES):
        before = await load(vault, owner)
        n = (await vault.store.view(Look(owner=owner.id))).n
        step = await asyncio.to_thread(change, before, n)
        if await write(vault, owner, before, step):
            return step.after
    raise StoreBusy("(These facts are written to all the time.)")


def found(facts: Facts, id: str) -> Kept | None:
    """The fact of that id, if there is one."""
    return next((one for tag, one in facts.kept.items() if tag.hex() == id), None)


class Said(NamedTuple):
    """What a person sets. With `now` it comes after all that is known; else it takes its place by its time."""

    slot: str
    value: str
    about: str
    at: datetime
    now: bool


def check(slot: str, value: str, excluded: frozenset[Category]) -> None:
    """Raises `BadInput` for a value that is too long to be a fact's, and for a category that is excluded."""
    if not isinstance(slot, str) or not isinstance(value, str):
        raise BadInput("Slot and value of a fact are strings.")
    if len(value) > VALUE_CHARS:
        raise BadInput(f"The value of a fact has at most {VALUE_CHARS} characters.")
    if (category := category_of(slot, value)) in excluded:
        raise BadInput(f"Facts of the category {category} are excluded here; nothing was written.")


async def set_fact(vault: Vault, user: Person, said: Said) -> KnownFact:
    """Sets a fact by hand. Raises `BadInput`, before anybody new is made."""
    slot, value, about, at, now = said
    (alone,) = layer.set_by_hand((), slot, value, about=about, at=at, n=0)
    key = alone.key
    owner = await make_owner(vault, user)

    def change(facts: tuple[Fact, ...], n: int) -> tuple[Fact, ...]:
        later = [_after(fact) for fact in facts if now and fact.key == key]
        return layer.set_by_hand(facts, slot, value, about=about, at=max([at, *later]), n=n)

    after = await edit(vault, owner, change)
    return shown(after.kept[tag_of(owner, key)], past=True)


def _after(fact: Fact) -> datetime:
    """A moment later than everything that is known of the fact: what is done by hand comes after it, however fast."""
    known = [fact.last_seen, *([fact.retracted[0]] if fact.retracted else [])]
    return max(known) + timedelta(microseconds=1)


async def retract_fact(vault: Vault, user: Person, id: str, *, at: datetime) -> bool:
    """Takes a fact back by hand; False if there is none of that id in force."""
    owner = await find_owner(vault, user)
    one = found(await load(vault, owner), id) if owner is not None else None
    if owner is None or one is None or not one.fact.live:
        return False
    key, when = one.fact.key, max(at, _after(one.fact))
    await edit(vault, owner, lambda facts, n: layer.retract_by_hand(facts, key, at=when, n=n))
    return True


async def adopt(vault: Vault, visitor: Owner, user: Owner) -> int:
    """Does again for a user what was done by hand to a visitor's facts: what was set is set, what was taken back or
    forgotten is not taught by the rows that come over. To be called before they come, and `adopted` afterwards.
    Returns how many were set.
    """
    theirs = await load(vault, visitor, whole=False)
    back = [fact for fact in theirs.all if fact.retracted is not None and fact.retracted[2] == layer.BY_HAND]
    notes = {note.tag for note in (*theirs.notes, *(note_on(fact, 0) for fact in back))}

    by_hand = [fact for fact in theirs.all if fact.hand and fact.live]

    def change(before: Facts, n: int) -> Written:
        facts = before.all
        for fact in by_hand:
            facts = layer.set_by_hand(facts, fact.slot, fact.value, about=fact.about, at=fact.last_seen, n=n)
        held = (*before.notes, *(Note(tag, FAR) for tag in sorted(notes)))
        return written(user, before, facts, notes=tuple(dict.fromkeys(held)))

    await _edited(vault, user, change)
    return len(by_hand)


async def adopted(vault: Vault, user: Owner) -> None:
    """All rows of a visitor have come over: what the user says from now on may teach again."""

    def change(before: Facts, n: int) -> Written:
        return written(user, before, before.all, notes=[note._replace(n=min(note.n, n)) for note in before.notes])

    await _edited(vault, user, change)
