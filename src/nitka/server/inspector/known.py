"""The facts as they were known when a row was said, by the times and rows they rest on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from nitka.facts import said_of
from nitka.layers.facts import Category, Fact, Seen
from nitka.types import Message, Passage

FRAME = 2  # tokens around a fact, as a turn reckons them


class Then(NamedTuple):
    """A fact as it was at some time, and when it was last said before that."""

    fact: Fact
    at: datetime
    n: int


def known_at(facts: Iterable[Fact], row: Message, excluded: Collection[Category] = ()) -> list[Then]:
    """What was known when `row` was said, the newest first. A value that rests on a row is known after that row, one
    that was set by hand after its time.
    """
    found = [then for fact in facts if fact.category not in excluded and (then := _then(fact, row)) is not None]
    return sorted(found, key=lambda then: (then.at, then.n), reverse=True)


def as_passages(known: Iterable[Then], room: int, count: Callable[[str], int]) -> tuple[tuple[Passage, ...], bool]:
    """The newest that fit, and whether these are all. Where not, a turn chooses those that bear on the question; which
    these were is not kept.
    """
    chosen: list[Passage] = []
    for then in known:
        text = said_of(then.fact)
        room -= count(text) + FRAME
        if room < 0:
            return tuple(chosen), False
        chosen.append(Passage(text))
    return tuple(chosen), True


def _then(fact: Fact, row: Message) -> Then | None:
    """The value that was in force, if one was."""
    said = [(*moment, seen) for seen in (fact, *fact.past) if (moment := _said(seen, row)) is not None]
    if not said:
        return None
    at, n, seen = max(said, key=lambda one: one[:2])
    if fact.retracted is not None and _before(fact.retracted[:2], row) and fact.retracted[:2] > (at, n):
        return None
    value = {name: getattr(seen, name) for name in ("value", "statement", "quote", "session", "seq", "n")}
    return Then(replace(fact, **value, past=()), at, n)


def _said(seen: Seen, row: Message) -> tuple[datetime, int] | None:
    """When the value was last said before the row, as far as that is known: between the first and the last time only
    the rows are.
    """
    if _before((seen.last_seen, seen.latest[0]), row):
        return seen.last_seen, seen.latest[0]
    if not _before((seen.first_seen, seen.n), row):
        return None
    return seen.first_seen, max([n for n in seen.rows if n < row.n], default=seen.n)


def _before(moment: tuple[datetime, int], row: Message) -> bool:
    at, n = moment
    return n < row.n if n >= 0 else at < row.at
