"""Recall: passages and facts found again by words and by meaning, in one person's memory, in RAM.

    words = Vocabulary(installed())
    made = segment(passages(messages, session="web-1"), words)   # a fold step; `to_bytes(made)` is sealed and stored
    made = with_vectors(made, vectors, embedder.name)            # later, when there is time
    memory = index([from_bytes(data) for data in opened])        # once a load
    found = search(memory, Query(text=question, vector=vector, asker="user"), k=10, budget=1_500)
    rows = together(found.hits)                                  # which rows to read, then `quote` what is too long

Everything here is pure but `installed()`, which loads dictionaries once a process. Nothing keeps a text.
"""

from nitka.layers.recall.facts import (
    fact_segment,
    facts_index,
    rank_facts,
    vector_from_json,
    vector_to_json,
    words_of,
)
from nitka.layers.recall.index import Index, index
from nitka.layers.recall.lemmas import Lemmas, Whole, installed
from nitka.layers.recall.passages import Passage, passages
from nitka.layers.recall.query import Asked, Query, Wanted, read_question, understand
from nitka.layers.recall.quote import Bearing, quote
from nitka.layers.recall.search import Found, Hit, Stretch, search, together
from nitka.layers.recall.segment import (
    Segment,
    from_bytes,
    given,
    join,
    plain,
    segment,
    to_bytes,
    with_vectors,
    without,
)
from nitka.layers.recall.words import Vocabulary

__all__ = [
    "Asked",
    "Bearing",
    "Found",
    "Hit",
    "Index",
    "Lemmas",
    "Passage",
    "Query",
    "Segment",
    "Stretch",
    "Vocabulary",
    "Wanted",
    "Whole",
    "fact_segment",
    "facts_index",
    "from_bytes",
    "given",
    "index",
    "installed",
    "join",
    "passages",
    "plain",
    "quote",
    "rank_facts",
    "read_question",
    "search",
    "segment",
    "to_bytes",
    "together",
    "understand",
    "vector_from_json",
    "vector_to_json",
    "with_vectors",
    "without",
    "words_of",
]
