"""The facts as they were known when a row was said, by the times and rows they rest on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from nitka.facts import said_of
from nitka.layers.facts import Category, Fact, Seen
from nitka.layers.facts.model import When
from nitka.types import Message, Passage

FRAME = 2  # tokens around a fact, as a turn reckons them


class Then(NamedTuple):
    """A fact as it was at some time, and when it was last said before that."""

    fact: Fact
    when: When


def known_at(
    facts: Iterable[Fact],
    row: Message,
    *,
    times: Mapping[int, datetime] | None = None,
    excluded: Collection[Category] = (),
) -> list[Then]:
    """What was known when `row` was said, the newest first. A value that rests on a row is known after that row, one
    that was set by hand after its time. `times` are those of rows, by the owner's n, as far as they are at hand.
    """
    then = (_then(fact, row, times or {}) for fact in facts if fact.category not in excluded)
    return sorted((one for one in then if one is not None), key=lambda one: one.when, reverse=True)


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


def _then(fact: Fact, row: Message, times: Mapping[int, datetime]) -> Then | None:
    """The value that was in force, if one was."""
    said = [(when, at, seen) for at, seen in enumerate((fact, *fact.past)) if (when := _said(seen, row, times))]
    if not said:
        return None
    when, _, seen = max(said, key=lambda one: one[:2])
    if fact.retracted is not None and _before(fact.retracted, row) and fact.retracted > when:
        return None
    value = {name: getattr(seen, name) for name in ("value", "statement", "quote", "session", "seq", "n")}
    return Then(replace(fact, **value, past=()), when)


def _said(seen: Seen, row: Message, times: Mapping[int, datetime]) -> When | None:
    """When the value was last said before the row: of what was said between the first time and the last, the row is
    known, and its time where it is at hand.
    """
    if _before(seen.when, row):
        return seen.when
    if not _before((seen.first_seen, seen.n, 0), row):
        return None
    n = max([n for n in seen.rows if n < row.n], default=seen.n)
    return times.get(n, seen.first_seen), n, 0


def _before(when: When, row: Message) -> bool:
    at, n, _ = when
    return n < row.n if n >= 0 else at < row.at
