"""One person's segments merged in memory, ready to be searched. Built once when it is loaded; pure and never changed.

Rules
* Passages stand in the order of conversation: session by session, row by row. A *stretch* is a run of one session
  without a pause of more than `PAUSE`; neighbours never reach across its ends.
* Only the newest `NEWEST` passages (by row number) are kept, so memory and time are bounded whatever the log holds.
* Words are kept as an inverted index (term, then the passages that have it); vectors as one float32 matrix, zeros where
  there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nitka.layers.recall.segment import Array, Segment, join, take

NEWEST = 20_000  # passages
PAUSE = 6 * 3_600  # seconds
LONG_STRETCH = 64  # passages; a longer stretch is cut there, or "the same stretch" would say nothing

# What a passage hears from its neighbours: a bell over distance, and half as much from what follows as from what came
# before, because an answer comes after what it answers.
REACH: Mapping[int, float] = {
    distance: float(np.exp(-(distance**2) / 4.5)) * (1.0 if distance >= 0 else 0.5) for distance in range(-3, 4)
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Index:
    """See the module. Arrays have one element a passage unless said otherwise."""

    sessions: tuple[str, ...]
    speakers: tuple[str, ...]
    columns: Mapping[str, Array]
    embedder: str
    lemmas: str
    chars: Array
    stretch: Array  # number of the stretch
    stretch_at: Array  # one a stretch: where it begins
    length: Array  # terms
    near_length: Array  # terms within reach, weighted
    stretch_length: Array  # one a stretch
    vocabulary: Array  # one a term, sorted
    posting_at: Array  # one a term and one more: where its postings begin
    posting: Array  # passages, by term
    count: Array  # and how often
    term: Array  # the same the other way round: terms by passage, sorted
    term_at: Array  # one a passage and one more: where its terms begin
    vectors: Array

    def __len__(self) -> int:
        return len(self.chars)

    def knows(self, keys: Array) -> Array:
        """Which of some terms stand anywhere in the index."""
        at = np.searchsorted(self.vocabulary, keys)
        known = at < len(self.vocabulary)
        known[known] = self.vocabulary[at[known]] == keys[known]
        return np.asarray(known)

    def terms_of(self, place: int) -> Array:
        """The distinct terms of one passage."""
        return self.term[self.term_at[place] : self.term_at[place + 1]]

    @property
    def with_vectors(self) -> int:
        """How many passages have a vector."""
        return int((self.columns["scale"] > 0).sum())


def index(segments: Sequence[Segment], *, newest: int = NEWEST) -> Index:
    """All segments of one person as one index. Segments must have been made with the same lemmas and embedder
    (`BadInput`).
    """
    whole = join(segments)
    order = np.lexsort((whole.columns["start"], whole.columns["seq"], whole.columns["session"]))
    if len(order) > newest:
        oldest_kept = np.partition(whole.columns["n"], -newest)[-newest]
        order = order[whole.columns["n"][order] >= oldest_kept]
    return _built(take(whole, order))


def _built(made: Segment) -> Index:
    columns = made.columns
    stretch = _stretches(columns)
    stretch_at = np.flatnonzero(np.diff(stretch, prepend=-1))
    ends = columns["ends"]
    passage = np.repeat(np.arange(len(made), dtype=np.int32), np.diff(ends, prepend=0))
    by_term = np.argsort(made.term, kind="stable")
    vocabulary, posting_at = np.unique(made.term[by_term], return_index=True)
    length = np.bincount(passage, made.count, minlength=len(made)).astype(np.float32)
    return Index(
        sessions=made.sessions,
        speakers=made.speakers,
        columns=columns,
        embedder=made.embedder,
        lemmas=made.lemmas,
        chars=(columns["end"] - columns["start"]).astype(np.float32),
        stretch=stretch,
        stretch_at=stretch_at,
        length=length,
        near_length=spread(length, stretch),
        stretch_length=np.add.reduceat(length, stretch_at) if len(length) else length,
        vocabulary=vocabulary,
        posting_at=np.append(posting_at, len(by_term)),
        posting=passage[by_term],
        count=made.count[by_term].astype(np.float32),
        term=made.term,
        term_at=np.append(0, ends),
        vectors=_unit(made.vectors),
    )


def _unit(vectors: Array) -> Array:
    """8-bit vectors as unit vectors; a vector that is not there stays zero."""
    wide = vectors.astype(np.float32)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), np.float32(1)))


def _stretches(columns: Mapping[str, Array]) -> Array:
    size = len(columns["n"])
    new = np.ones(size, bool)
    new[1:] = (np.diff(columns["session"]) != 0) | (np.diff(columns["at"]) > PAUSE)
    starts = np.flatnonzero(new)
    since = np.arange(size) - np.repeat(starts, np.diff(np.append(starts, size)))
    return np.asarray(np.cumsum(new | (since % LONG_STRETCH == 0)) - 1)


def spread(values: Array, stretch: Array) -> Array:
    """What each passage hears from itself and its neighbours: the last axis is passages, `REACH` the weights."""
    heard = np.zeros_like(values, np.float32)
    for distance, weight in REACH.items():
        step = abs(distance)
        if step >= len(stretch):
            continue
        together = np.float32(weight) * (stretch[step:] == stretch[: len(stretch) - step])
        early, late = slice(0, len(stretch) - step), slice(step, len(stretch))
        listener, speaker = (late, early) if distance >= 0 else (early, late)
        heard[..., listener] += together * values[..., speaker]
    return heard
