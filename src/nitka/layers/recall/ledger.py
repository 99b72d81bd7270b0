"""Which segments one person's index is made of, and how they are merged, dropped and rewritten. Pure.

Rules
* Segments are written once under a number that is never used again; what changes is written under a new number. So
  bytes bound to a number can only be what was written there, and a missing one is noticed.
* Merging by levels (O'Neil et al. 1996, The Log-Structured Merge-Tree): as soon as `FANOUT` segments of a level stand
  side by side they become one. A passage is written anew once a level, so writing is O(log n) a passage, and a load
  opens few segments. The largest are never merged: nobody waits for a write of many megabytes.
* Only the newest `NEWEST` passages count; a segment none of whose passages is among them goes whole.
* `epoch` is the version that last took something away. Whoever has the index of this epoch in memory lacks at most the
  newest rows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from nitka.layers.recall.index import NEWEST
from nitka.layers.recall.segment import Segment, join, plain

FANOUT = 8
LEVELS = (32, 256, 2_048)
"""Passages from which a segment is of level 1, 2 and 3; those of the last are never merged."""


class Part(NamedTuple):
    """One segment: its number, level, passages, how many of them have no vector yet, the first and last row (by n) it
    speaks of, and what made its words and vectors.
    """

    id: int
    level: int
    size: int
    bare: int
    first: int
    last: int
    lemmas: str
    embedder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The state of the fold: rows `[0, cursor)` are in its parts, or had nothing to say, or are too old."""

    parts: tuple[Part, ...] = ()
    number: int = 0  # of the next segment
    epoch: int = 0
    cursor: int = 0
    version: int = 0

    @property
    def size(self) -> int:
        """Passages in all."""
        return sum(part.size for part in self.parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A ledger on its way to the next version: the segments to write, by number, and the parts to remove."""

    ledger: Ledger
    put: Mapping[int, Segment] = field(default_factory=dict)
    drop: tuple[Part, ...] = ()


def begun(ledger: Ledger, *, cursor: int | None = None, purges: bool = False) -> Step:
    """One version on. `purges` says that something is taken away for good."""
    version = ledger.version + 1
    moved = replace(
        ledger,
        version=version,
        cursor=ledger.cursor if cursor is None else cursor,
        epoch=version if purges else ledger.epoch,
    )
    return Step(ledger=moved)


def add(step: Step, made: Segment) -> Step:
    """With one more segment; an empty one adds nothing."""
    if not len(made):
        return step
    number = step.ledger.number
    part = Part(
        id=number,
        level=sum(len(made) >= size for size in LEVELS),
        size=len(made),
        bare=len(made.bare),
        first=int(made.columns["n"].min()),
        last=int(made.columns["n"].max()),
        lemmas=made.lemmas,
        embedder=made.embedder,
    )
    ledger = replace(step.ledger, parts=(*step.ledger.parts, part), number=number + 1)
    return replace(step, ledger=ledger, put={**step.put, number: made})


def remove(step: Step, parts: Sequence[Part]) -> Step:
    """Without these parts; what this very step wrote is not written."""
    going = {part.id for part in parts}
    ledger = replace(step.ledger, parts=tuple(part for part in step.ledger.parts if part.id not in going))
    put = {number: made for number, made in step.put.items() if number not in going}
    return Step(ledger=ledger, put=put, drop=(*step.drop, *(part for part in parts if part.id not in step.put)))


def crowded(ledger: Ledger, lemmas: str) -> tuple[Part, ...]:
    """The parts to be merged next, oldest first: of the lowest level that has too many made with these lemmas; none
    when all levels are in order.
    """
    for level in range(len(LEVELS)):
        found = [part for part in ledger.parts if part.level == level and part.lemmas == lemmas]
        if len(found) >= FANOUT:
            return _enough(sorted(found, key=lambda part: part.last))
    return ()


def _enough(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The first that together fill the last level, at least two of them."""
    size = 0
    for at, part in enumerate(parts):
        size += part.size
        if at and size >= LEVELS[-1]:
            return tuple(parts[: at + 1])
    return tuple(parts)


def merged(step: Step, parts: Sequence[Part], segments: Sequence[Segment], embedder: str) -> Step:
    """With these parts as one. Vectors of another embedder than `embedder` are given up; where that is "", those of
    another than the newest part with vectors has.
    """
    name = embedder or next((part.embedder for part in reversed(parts) if part.embedder), "")
    whole = join([made if made.embedder in ("", name) else plain(made) for made in segments])
    return add(remove(step, parts), whole)


def aged(step: Step, *, newest: int = NEWEST) -> Step:
    """Without the parts that are older than the newest passages."""
    newer, old = 0, []
    for part in sorted(step.ledger.parts, key=lambda part: part.last, reverse=True):
        newer = sum(other.size for other in step.ledger.parts if other.first > part.last)
        if newer >= newest:
            old.append(part)
    return remove(step, old)


def holding(ledger: Ledger, rows: Collection[int]) -> tuple[Part, ...]:
    """The parts that may speak of some rows, given by their n."""
    ordered = np.sort(np.fromiter(rows, np.int64, len(rows)))
    ranges = ((part, np.searchsorted(ordered, [part.first, part.last + 1])) for part in ledger.parts)
    return tuple(part for part, (low, high) in ranges if low < high)


def stale(ledger: Ledger, lemmas: str) -> tuple[Part, ...]:
    """The parts whose words other lemmas made, newest first: they are to be made anew."""
    return _newest_first(part for part in ledger.parts if part.lemmas != lemmas)


def bare(ledger: Ledger, lemmas: str, embedder: str) -> tuple[Part, ...]:
    """The parts that lack vectors of this embedder, newest first."""
    mine = (part for part in ledger.parts if part.lemmas == lemmas and embedder)
    return _newest_first(part for part in mine if part.bare or part.embedder != embedder)


def _newest_first(parts: Any) -> tuple[Part, ...]:
    return tuple(sorted(parts, key=lambda part: part.last, reverse=True))


def to_json(ledger: Ledger) -> dict[str, Any]:
    """What is sealed of a ledger; cursor and version are the row's."""
    return {"number": ledger.number, "epoch": ledger.epoch, "parts": [list(part) for part in ledger.parts]}


def from_json(state: Mapping[str, Any], *, cursor: int, version: int) -> Ledger:
    """The inverse. Raises `KeyError`, `TypeError`, `ValueError`."""
    parts = tuple(_part(*part) for part in state["parts"])
    return Ledger(parts=parts, number=int(state["number"]), epoch=int(state["epoch"]), cursor=cursor, version=version)


def _part(id: int, level: int, size: int, bare: int, first: int, last: int, *made: str) -> Part:
    lemmas, embedder = made
    return Part(int(id), int(level), int(size), int(bare), int(first), int(last), lemmas, embedder)
