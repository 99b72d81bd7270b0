"""An index of facts from what is kept beside them says the same as one made by reading every statement."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.recall import (
    Query,
    Whole,
    fact_segment,
    facts_index,
    index,
    rank_facts,
    vector_from_json,
    vector_to_json,
    with_vectors,
    words_of,
)
from tests.unit.recall.making import hashed

STATEMENTS = st.lists(st.text(alphabet="abc абв?.", max_size=30), max_size=8)


@given(STATEMENTS, st.booleans())
def test_what_is_kept_makes_the_same_index_as_the_statements(statements: list[str], meaning: bool) -> None:
    vectors = hashed(statements, 16) if statements else np.zeros((0, 16), np.float32)
    read = fact_segment(statements, lemmas=Whole())
    whole = index([with_vectors(read, vectors, "hashed") if meaning else read])
    words = json.loads(json.dumps([words_of(text, lemmas=Whole()) for text in statements]))
    kept = json.loads(json.dumps([vector_to_json(vector) for vector in vectors])) if meaning else []
    again = facts_index(statements, words, kept, embedder="hashed", lemmas=Whole())
    assert again.sessions == whole.sessions
    for name, column in whole.columns.items():
        assert again.columns[name].tolist() == column.tolist(), name
    assert again.vocabulary.tolist() == whole.vocabulary.tolist()
    assert again.posting.tolist() == whole.posting.tolist()
    assert again.count.tolist() == whole.count.tolist()
    if again.with_vectors:
        assert np.array_equal(again.vectors, whole.vectors)


def test_words_of_other_lemmas_are_made_anew() -> None:
    stale = [["of another time", 1, 1], None]
    made = facts_index(["likes rye bread", "lives in Porto"], stale, lemmas=Whole())
    assert rank_facts(made, Query(text="rye")) == (0,)
    assert rank_facts(made, Query(text="Porto")) == (1,)


def test_a_fact_without_a_vector_stands_beside_those_with_one() -> None:
    statements = ["likes rye bread", "lives in Porto", "owns a boat"]
    vectors = [vector_to_json(vector) for vector in hashed(statements)]
    words = [words_of(text) for text in statements]
    made = facts_index(statements, words, [vectors[0], None, vector_to_json(np.ones(8, np.float32))], embedder="hashed")
    assert (made.columns["scale"] > 0).tolist() == [True, False, False]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=40))
def test_a_vector_is_read_as_it_was_written(values: list[float]) -> None:
    vector = np.array(values, np.float32)
    scale, data = vector_from_json(json.loads(json.dumps(vector_to_json(vector))))
    assert np.abs(np.frombuffer(data, np.int8) * scale - vector).max() <= max(np.abs(vector).max() / 250, 1e-30)
