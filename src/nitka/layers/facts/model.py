"""What a fact is, and what may be proposed about one.

Rules kept here: values are frozen; the statement is a predicate without its subject ("lives in Leeds"), because
`about` and `slot` already name it; a fact knows every row that said it, so that forgetting a row can take away
exactly what rests on that row alone.

Versions of one fact form a lattice (earliest first sight, latest last sight, union of rows), which is what makes
reconciling idempotent and independent of order.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from nitka.layers.facts.canon import name_key, value_key
from nitka.layers.facts.slots import Category, category_of, is_many

USER = "user"
ROWS_KEPT = 256
"""Rows a fact names one by one, the newest; older confirmations are only counted."""

Key = tuple[str, str, str]
"""What is unique among current facts: who, slot, and the value's key where the slot holds many values (else "")."""

Op = Literal["assert", "retract"]

When = tuple[datetime, int, int]
"""The order of evidence: the row's own time, its number, and the place in its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """One value with its evidence: the earliest row that said it, and how often it was said since."""

    value: str
    statement: str
    quote: str  # verbatim, from row `n`; empty for what was set by hand
    first_seen: datetime
    last_seen: datetime
    session: str = ""
    seq: int = -1  # row of the session; -1: set by hand
    n: int = -1  # row of the owner
    latest: tuple[int, int] = (-1, -1)  # number of the newest row that said it, and the place in its text
    rows: tuple[int, ...] = ()  # the owner's rows that said it, ascending, at most ROWS_KEPT, the newest
    confirmations: int = 1  # distinct rows or hands that said it
    hand: bool = False

    @property
    def when(self) -> When:
        return (self.last_seen, *self.latest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact(Seen):
    """A durable statement about the user or a named other. `past` are values it had before, newest first."""

    slot: str
    about: str = USER
    past: tuple[Seen, ...] = ()
    retracted: When | None = None  # when it was last taken back; it is live when it was said after that
    _key: Key | None = field(init=False, default=None, compare=False, repr=False)

    @property
    def key(self) -> Key:
        """Worked out once: it lives and dies with the fact."""
        if self._key is None:
            object.__setattr__(self, "_key", key_of(self.about, self.slot, self.value))
        return self._key or key_of(self.about, self.slot, self.value)

    @property
    def live(self) -> bool:
        return self.retracted is None or self.when > self.retracted

    @property
    def category(self) -> Category:
        return category_of(self.slot, self.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One proposal of an extractor, about one row. `retract` with an empty value takes back whatever the slot holds.

    `ours` says that the library's own rules made it: then the value is the canonical form of what the row says. Any
    other value has to be borne out by the row (`grounds.bears_out`).
    """

    op: Op = "assert"
    slot: str
    value: str
    statement: str = ""
    about: str = USER
    quote: str
    seq: int
    n: int
    ours: bool = False


def key_of(about: str, slot: str, value: str) -> Key:
    return name_key(about), slot, value_key(value) if is_many(slot) else ""


def current(facts: tuple[Fact, ...]) -> tuple[Fact, ...]:
    """The facts that hold now."""
    return tuple(fact for fact in facts if fact.live)
