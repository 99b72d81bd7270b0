"""Facts in the same index: each statement is a passage that has no neighbours. Pure.

A fact is a short sentence, so the best part of a question's words seldom stands in it; with vectors, meaning nominates,
and without them a shared word is enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf

import numpy as np
import numpy.typing as npt

from nitka.layers.recall.index import Index, index
from nitka.layers.recall.lemmas import Lemmas, installed
from nitka.layers.recall.passages import Passage
from nitka.layers.recall.query import Query
from nitka.layers.recall.search import Hit, search
from nitka.layers.recall.segment import Segment, segment, with_vectors

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def fact_segment(statements: Sequence[str], *, lemmas: Lemmas | None = None, first: int = 0) -> Segment:
    """A segment of statements, numbered from `first` on as `n`, each alone in a session of its own."""
    found = [
        Passage(
            session=str(number),
            n=number,
            seq=0,
            start=0,
            end=len(text),
            speaker="",
            at=_EPOCH,
            day=_EPOCH.toordinal(),
            text=text,
            asks=0.0,
        )
        for number, text in enumerate(statements, start=first)
    ]
    return segment(found, lemmas or installed())


def rank_facts(
    statements: Sequence[str] | Index,
    query: Query,
    *,
    vectors: npt.NDArray[np.float32] | None = None,
    k: int = 10,
    lemmas: Lemmas | None = None,
    alike: float = inf,
) -> tuple[Hit, ...]:
    """The at most `k` facts that matter for the question, best first; `Hit.n` is the number of the statement.

    Pass an `Index` of `fact_segment`s where there are many: reading words costs about half a millisecond a statement.
    `alike` as for `search`.
    """
    if not isinstance(statements, Index):
        made = fact_segment(statements, lemmas=lemmas)
        statements = index([made if vectors is None else with_vectors(made, vectors, "given")])
    return search(statements, query, k=k, lemmas=lemmas, alike=alike).hits
