"""Facts in the same index: each statement is a passage that has no neighbours. Pure.

A fact is a short sentence and seldom shares a word with the question it answers ("which town", "lives in Porto"). So
meaning has to nominate, from a lower cosine than between whole passages; where there is no meaning, `fill` helps.
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
from nitka.layers.recall.query import Query, understand
from nitka.layers.recall.search import search
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
    related: float = inf,
    fill: bool = False,
) -> tuple[int, ...]:
    """Numbers of the at most `k` facts that bear on the question, best first; none for a greeting.

    `related` is the cosine from which this embedder's fact bears on a question (`Embedder.related`). With `fill`, the
    other facts follow, the newest (of the highest number) first: for a person of few facts, where sharing no word says
    little. Pass an `Index` of `fact_segment`s where there are many: reading words costs about half a millisecond a
    statement.
    """
    if not isinstance(statements, Index):
        made = fact_segment(statements)
        statements = index([made if vectors is None else with_vectors(made, vectors, "given")])
    hits = tuple(hit.n for hit in search(statements, query, k=k, alike=related).hits)
    if not fill or understand(query, statements, installed()).empty:
        return hits
    rest = sorted(set(statements.columns["n"].tolist()) - set(hits), reverse=True)
    return (*hits, *rest)[:k]
