"""Facts without some rows: what rested on them alone goes, the rest loses that confirmation. Pure.

No word of a forgotten row may stay behind. So a value that other rows say too is told anew from those: its quote, its
times and its place come from the rows that live, as if the forgotten ones had never been said.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import NamedTuple

from nitka.layers.facts.canon import fold
from nitka.layers.facts.model import Fact, Seen
from nitka.layers.facts.reconcile import BY_HAND, QUOTE_CHARS
from nitka.layers.facts.rules.text import sentences
from nitka.types import Message

_SEEN = tuple(field.name for field in fields(Seen))


class RestsOn(NamedTuple):
    """A living row that says a fact: what was said, and in which session."""

    message: Message
    session: str


def rests_on(facts: Iterable[Fact]) -> frozenset[int]:
    """Every row, by its `n`, that these facts or their past values rest on."""
    return frozenset(n for fact in facts for seen in (fact, *fact.past) for n in _rows_of(seen) if n >= 0)


def _rows_of(seen: Seen) -> tuple[int, ...]:
    """What was set by hand has the number of the row that came next, which says nothing of it."""
    return seen.rows if seen.hand else (*seen.rows, seen.n)


def touches(fact: Fact, gone: Collection[int]) -> bool:
    """Whether the fact, or that it was taken back, rests on one of these rows."""
    return _taken_back_in(fact, gone) or any(n in gone for n in rests_on([fact]))


def without_rows(fact: Fact, gone: Collection[int], living: Mapping[int, RestsOn]) -> Fact | None:
    """The fact without the rows `gone`; None where nothing says it any more. `living` has the other rows of it."""
    versions = [kept for seen in (fact, *fact.past) if (kept := _without(seen, gone, living)) is not None]
    if not versions:
        return None
    newest, *past = sorted(versions, key=lambda seen: seen.when, reverse=True)
    retracted = None if _taken_back_in(fact, gone) else fact.retracted
    return replace(fact, past=tuple(past), retracted=retracted, **{name: getattr(newest, name) for name in _SEEN})


def _taken_back_in(fact: Fact, gone: Collection[int]) -> bool:
    return fact.retracted is not None and fact.retracted[2] != BY_HAND and fact.retracted[1] in gone


def _without(seen: Seen, gone: Collection[int], living: Mapping[int, RestsOn]) -> Seen | None:
    rows = tuple(n for n in seen.rows if n not in gone and n in living)
    lost = len(seen.rows) - len(rows)
    plain = Seen(**{name: getattr(seen, name) for name in _SEEN})
    if not lost:
        return plain
    confirmations = max(len(rows), seen.confirmations - lost, int(seen.hand))
    if seen.hand:
        return replace(plain, quote="", seq=-1, session="", rows=rows, confirmations=confirmations)
    return _told_by(plain, rows, living, confirmations) if rows else None


def _told_by(seen: Seen, rows: Sequence[int], living: Mapping[int, RestsOn], confirmations: int) -> Seen:
    first, last = living[rows[0]], living[rows[-1]]
    return replace(
        seen,
        quote=quote_of(seen.value, first.message.text),
        first_seen=first.message.at,
        last_seen=last.message.at,
        session=first.session,
        seq=first.message.seq,
        n=first.message.n,
        latest=(last.message.n, 0),
        rows=tuple(rows),
        confirmations=confirmations,
    )


def quote_of(value: str, text: str) -> str:
    """The words of a row that say the value: its sentence, or the beginning of the row where it was put otherwise."""
    wanted = fold(value).casefold()
    said = next((part.text for part in sentences(text) if wanted in fold(part.text).casefold()), text)
    return said.strip()[:QUOTE_CHARS].rstrip()
