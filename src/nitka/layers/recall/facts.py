"""Facts in the same index: each statement is a passage that has no neighbours. Pure.

A fact is a short sentence and seldom shares a word with the question it answers ("which town", "lives in Porto"). So
meaning has to nominate, from a lower cosine than between whole passages; where there is no meaning, `fill` helps.

A fact is kept with its words and its vector in a form that JSON takes (`words_of`, `vector_to_json`), so that an index
of thousands is put together without reading a single statement.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from math import inf
from typing import Any

import numpy as np
import numpy.typing as npt

from nitka.layers.recall.index import Index, index
from nitka.layers.recall.lemmas import Lemmas, installed
from nitka.layers.recall.query import Asked, Query, read_question, understand
from nitka.layers.recall.search import search
from nitka.layers.recall.segment import Segment, eight_bits, with_vectors
from nitka.layers.recall.words import Vocabulary, key, terms

MOST_COUNTED = 65_535


def words_of(statement: str, *, lemmas: Lemmas | None = None) -> list[Any]:
    """What a statement is found by, as JSON takes it: the name of the lemmas, then term, count, term, count."""
    lemmas = lemmas or installed()
    counted = Counter(map(key, terms(statement, lemmas)))
    return [lemmas.name, *chain.from_iterable((key, min(counted[key], MOST_COUNTED)) for key in sorted(counted))]


def vector_to_json(vector: npt.NDArray[np.float32]) -> list[Any]:
    """A unit vector as JSON takes it: a scale, and 8-bit integers in base64. Zeros (or what is not finite) mean that
    there is none, and stay so.
    """
    whole, scale = eight_bits(vector[None])
    return [float(scale[0]), b64encode(whole[0].tobytes()).decode("ascii")]


def vector_from_json(data: Any) -> tuple[float, bytes]:
    """Scale and 8-bit integers; scale 0 and no integers for None. Raises `ValueError`, `TypeError`."""
    return (0.0, b"") if data is None else (float(data[0]), b64decode(data[1], validate=True))


def fact_segment(statements: Sequence[str], *, lemmas: Lemmas | None = None, first: int = 0) -> Segment:
    """A segment of statements, numbered from `first` on as `n`, each alone in a session of its own."""
    lemmas = lemmas or installed()
    return _segment(statements, [words_of(text, lemmas=lemmas) for text in statements], lemmas, first)


def facts_index(
    statements: Sequence[str],
    words: Sequence[Any],
    vectors: Sequence[Any] = (),
    *,
    embedder: str = "",
    lemmas: Lemmas | None = None,
) -> Index:
    """An index of facts from what was kept beside them: of each its `words_of`, and its `vector_to_json` or None.

    Words that other lemmas made are made anew from the statement, at half a millisecond each; vectors of another length
    than most have are left out. `embedder` is who made the vectors.
    """
    lemmas = lemmas or installed()
    fresh = [
        kept if isinstance(kept, list) and kept[:1] == [lemmas.name] else words_of(text, lemmas=lemmas)
        for text, kept in zip(statements, words, strict=True)
    ]
    return index([_with_kept_vectors(_segment(statements, fresh, lemmas, 0), vectors, embedder)])


def _segment(statements: Sequence[str], words: Sequence[list[Any]], lemmas: Lemmas, first: int) -> Segment:
    size = len(statements)
    numbers = np.arange(size, dtype="<i8")
    zero = np.zeros(size, "<i8")
    flat = np.fromiter(chain.from_iterable(kept[1:] for kept in words), "<i8")
    columns = {
        "n": numbers + first,
        "seq": zero,
        "start": zero.astype("<i4"),
        "end": np.fromiter(map(len, statements), "<i4", size),
        "at": zero,
        "day": np.full(size, 1, "<i4"),
        "asks": zero.astype("|u1"),
        "session": numbers.astype("<i4"),
        "speaker": zero.astype("<i4"),
        "ends": np.cumsum(np.fromiter((len(kept) // 2 for kept in words), "<i8", size), dtype="<i8"),
        "scale": zero.astype("<f4"),
    }
    return Segment(
        lemmas=lemmas.name,
        sessions=tuple(map(str, range(first, first + size))),
        speakers=("",) if size else (),
        columns=columns,
        term=flat[0::2].astype("<u4"),
        count=flat[1::2].astype("<u2"),
        vectors=np.zeros((size, 0), np.int8),
    )


def _with_kept_vectors(made: Segment, vectors: Sequence[Any], embedder: str) -> Segment:
    read = [vector_from_json(vector) for vector in vectors]
    dim = Counter(len(data) for scale, data in read if scale).most_common(1)
    if not dim:
        return made
    width = dim[0][0]
    usable = [scale > 0 and len(data) == width for scale, data in read]
    rows = b"".join(data if ok else bytes(width) for ok, (_, data) in zip(usable, read, strict=True))
    scale = np.array([scale if ok else 0 for ok, (scale, _) in zip(usable, read, strict=True)], "<f4")
    whole = np.frombuffer(rows, np.int8).reshape(len(read), width)
    return replace(made, vectors=whole, columns={**made.columns, "scale": scale}, embedder=embedder)


def rank_facts(
    statements: Sequence[str] | Index,
    query: Query,
    *,
    vectors: npt.NDArray[np.float32] | None = None,
    k: int = 10,
    related: float = inf,
    fill: bool = False,
    asked: Asked | None = None,
) -> tuple[int, ...]:
    """Numbers of the at most `k` facts that bear on the question, best first; none for a greeting.

    `related` is the cosine from which this embedder's fact bears on a question (`Embedder.related`). With `fill`, the
    other facts follow, the newest (of the highest number) first: for a person of few facts, where sharing no word says
    little. Pass a `facts_index` where there are many: reading words costs about half a millisecond a statement, and
    `asked` where the question was read before.
    """
    asked = asked or read_question(query, Vocabulary(installed()))
    if not isinstance(statements, Index):
        made = fact_segment(statements)
        statements = index([made if vectors is None else with_vectors(made, vectors, "given")])
    hits = tuple(hit.n for hit in search(statements, query, k=k, alike=related, asked=asked).hits)
    if not fill or understand(asked, query.asker, statements).empty:
        return hits
    rest = sorted(set(statements.columns["n"].tolist()) - set(hits), reverse=True)
    return (*hits, *rest)[:k]
