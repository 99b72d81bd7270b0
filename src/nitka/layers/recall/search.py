"""From a question to the passages worth showing. Pure.

Rules
* Words and meaning each nominate; the score is a weighted sum of reasons (`features.py`). Age alone never counts.
* No hit is an answer. A question with nothing to look for finds nothing. A passage is nominated when enough of the
  question stands in it or around it, or it was said when the question says, or its meaning alone is close enough for
  that embedder, or (for a question of which the memory knows at least something) it stands out among all passages.
* Of passages that say nearly the same in the same words, the best stays.
* With a budget of characters, long hits give way before hits are left out: each gets an equal allowance, and what a hit
  does not need goes to the others. When allowances would fall below `LEAST`, the last hits go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from nitka.layers.recall.dates import fits
from nitka.layers.recall.features import by_meaning, by_words, match, weighed
from nitka.layers.recall.index import Index
from nitka.layers.recall.lemmas import Lemmas, installed
from nitka.layers.recall.query import Asked, Query, Wanted, read_question, understand
from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import Vocabulary

SAID = 0.1  # share of the question that must stand in or around a passage, by rarity
STANDS_OUT = 1.0  # deviations of meaning above the mean of all passages
SAME = 0.9  # share of common terms (Jaccard) from which two passages say the same
SPARE = 30  # hits looked at beyond those wanted, to stand in for those that say the same
LEAST = 80  # characters; less of a passage is not worth showing


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A passage that was found: characters `start..end` of row `seq` of `session`, of which `allowed` may be shown.

    `score` orders hits of one search and means nothing between searches; `said` is the share of the question found in
    and around it (0 to about 2); `cosine` is None without vectors.
    """

    session: str
    n: int
    seq: int
    start: int
    end: int
    speaker: str
    at: int  # seconds since 1970, UTC
    score: float
    said: float
    cosine: float | None
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The hits, best first; of how many passages they were chosen, how many of those had a vector, and how many hits
    the budget cost.
    """

    hits: tuple[Hit, ...]
    passages: int
    with_vectors: int
    left_out: int = 0


def search(
    index: Index,
    query: Query,
    *,
    k: int = 10,
    budget: int | None = None,
    lemmas: Lemmas | None = None,
    alike: float = inf,
    asked: Asked | None = None,
) -> Found:
    """The at most `k` passages that answer the question best.

    `budget` is in characters, over all hits. `alike` is the cosine from which the index's embedder means "the same
    matter" (`Embedder.alike`); the default lets meaning nominate alone never. `asked` is the question as it was read
    already (`read_question`). Time is linear in the passages, with no Python loop over them.
    """
    if query.vector is not None and query.vector.shape != index.vectors.shape[1:]:
        query = replace(query, vector=None)
    wanted = understand(asked or read_question(query, Vocabulary(lemmas or installed())), query.asker, index)
    nothing = Found(hits=(), passages=len(index), with_vectors=index.with_vectors)
    if wanted.empty or not len(index) or k < 1:
        return nothing
    reasons = _reasons(index, query, wanted)
    nominated = _nominated(reasons, wanted, alike) & _allowed(index, query)
    best = _distinct(index, _ranked(reasons["score"], nominated), k)
    kept, allowances = share(index.chars[best], budget)
    return Found(
        hits=tuple(_hit(index, reasons, i, allowed) for i, allowed in zip(best[:kept], allowances, strict=True)),
        passages=len(index),
        with_vectors=nothing.with_vectors,
        left_out=len(best) - kept,
    )


def _reasons(index: Index, query: Query, wanted: Wanted) -> dict[str, Array]:
    reasons = by_words(index, match(index, wanted.keys))
    if query.vector is not None and index.with_vectors:
        reasons |= by_meaning(index, query.vector)
    if wanted.speakers:
        reasons["speaker"] = (index.columns["speaker"] == wanted.speakers[0]).astype(np.float32)
    if wanted.spans:
        reasons["date"] = fits(index.columns["day"], wanted.spans)
    reasons["asks"] = index.columns["asks"] / np.float32(255)
    reasons["score"] = weighed(reasons)
    return reasons


def _nominated(reasons: Mapping[str, Array], wanted: Wanted, alike: float) -> Array:
    said = reasons["near"] >= SAID
    if wanted.spans:
        said = said | (reasons["date"] >= 0.5)
    if "meaning" not in reasons:
        return said
    known = bool((reasons["cover"] >= SAID).any())
    return said | (reasons["cosine"] >= alike) | ((reasons["meaning"] >= STANDS_OUT) & known)


def _allowed(index: Index, query: Query) -> Array:
    """Which passages may be found at all: not the window's, and other sessions' only when asked for."""
    if query.session is None:
        return np.ones(len(index), bool)
    here = index.columns["session"] == (index.sessions.index(query.session) if query.session in index.sessions else -1)
    old = here if query.before is None else here & (index.columns["seq"] < query.before)
    return np.asarray(old | ~here if query.elsewhere else old)


def _ranked(score: Array, nominated: Array) -> Array:
    places = np.flatnonzero(nominated)
    return places[np.argsort(-score[places], kind="stable")]


def _distinct(index: Index, ranked: Array, k: int) -> Array:
    """The first `k` that differ; only `SPARE` more are looked at, so that a crowd of equals cannot make it slow."""
    kept: list[int] = []
    terms: list[frozenset[int]] = []
    for place in ranked[: k + SPARE].tolist():
        if len(kept) == k:
            break
        own = frozenset(index.terms_of(place).tolist())
        if not any(_same(own, other) for other in terms):
            kept.append(place)
            terms.append(own)
    return np.array(kept, np.int64)


def _same(one: frozenset[int], other: frozenset[int]) -> bool:
    """Whether two passages say the same: the share of common terms is high (Jaccard)."""
    few, many = sorted((len(one), len(other)))
    if few < SAME * many:
        return False
    common = len(one & other)
    return common >= SAME * (len(one) + len(other) - common)


def share(sizes: Array, budget: int | None) -> tuple[int, list[int]]:
    """How many of the texts to show, and how many characters of each, so that the sum keeps to the budget."""
    if budget is None:
        return len(sizes), [int(size) for size in sizes]
    kept = len(sizes)
    while kept and _level(sizes[:kept], budget) < min(LEAST, int(sizes[:kept].max())):
        kept -= 1
    level = _level(sizes[:kept], budget)
    return kept, [min(int(size), level) for size in sizes[:kept]]


def _level(sizes: Array, budget: int) -> int:
    """The largest allowance that, given to each, keeps within the budget."""
    left = max(budget, 0)
    ordered = sorted(int(size) for size in sizes)
    for place, size in enumerate(ordered):
        if size * (len(ordered) - place) > left:
            return left // (len(ordered) - place)
        left -= size
    return ordered[-1] if ordered else 0


def _hit(index: Index, reasons: Mapping[str, Array], place: int, allowed: int) -> Hit:
    columns = index.columns
    return Hit(
        session=index.sessions[columns["session"][place]],
        n=int(columns["n"][place]),
        seq=int(columns["seq"][place]),
        start=int(columns["start"][place]),
        end=int(columns["end"][place]),
        speaker=index.speakers[columns["speaker"][place]],
        at=int(columns["at"][place]),
        score=float(reasons["score"][place]),
        said=float(reasons["near"][place]),
        cosine=float(reasons["cosine"][place]) if "cosine" in reasons and columns["scale"][place] > 0 else None,
        allowed=allowed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Rows `first..last` of a session that belong together, and the hits in them."""

    session: str
    first: int
    last: int
    hits: tuple[Hit, ...]


def together(hits: Sequence[Hit], *, pairs: bool = True) -> tuple[Stretch, ...]:
    """Hits joined to stretches of rows, in order of the log: neighbouring rows become one, and with `pairs` a hit
    brings the other row of its turn (rows 2i and 2i+1 are a turn).
    """
    joined: list[Stretch] = []
    for hit in sorted(hits, key=lambda hit: (hit.n, hit.start)):
        first, last = (hit.seq & ~1, hit.seq | 1) if pairs else (hit.seq, hit.seq)
        before = next(
            (s for s in joined if s.session == hit.session and s.first - 1 <= last and first <= s.last + 1), None
        )
        if before is None:
            joined.append(Stretch(session=hit.session, first=first, last=last, hits=(hit,)))
            continue
        joined[joined.index(before)] = Stretch(
            session=hit.session,
            first=min(before.first, first),
            last=max(before.last, last),
            hits=(*before.hits, hit),
        )
    return tuple(joined)
