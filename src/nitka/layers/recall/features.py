"""What speaks for each passage as an answer to a question: one array a reason, one element a passage. Pure array
arithmetic.

* `near`: Okapi BM25 (Robertson & Zaragoza 2009, The Probabilistic Relevance Framework) where a term counts at its
  neighbours too, less with distance (after Lv & Zhai 2009, positional language models).
* `stretch`: BM25 of the stretch of conversation that the passage stands in.
* `cover`: the share of the question, by rarity, that stands in the passage itself.
* `meaning`: cosine with the question, heard from neighbours in the same way; standardised over the passages that have a
  vector.
* `speaker`, `date`, `asks`: whether the one who is asked about said it, and when the question says; whether it only
  asks.

Tried on the same data and left out, because they moved recall by less than its noise: BM25 of the passage alone beside
`near`, pairs of words, four-letter pieces of words, length, whether the passage before asks, feeding the best hits back
into the question.

BM25 values are divided by the question's whole weight, so that they run from 0 to about 2 whatever the question.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nitka.layers.recall.index import Index, spread
from nitka.layers.recall.segment import Array

K1 = 0.9
B = 0.4
# What each reason weighs. Chosen by a listwise fit on conversations between two people, each tested on the conversation
# left out, then rounded: the optimum is flat. `meaning` counts standard deviations, the others are shares of 1.
WEIGHTS: Mapping[str, float] = {
    "near": 6.0,
    "cover": 1.0,
    "stretch": 1.0,
    "speaker": 1.5,
    "date": 4.0,
    "asks": -1.0,
    "meaning": 1.0,
}
WORDS_ALONE = 8.0  # of `near`, when there is no meaning to lean on

FEW = 50  # passages; in a smaller memory a word is no less telling for standing in many of them
MOST_TERMS = 48  # of a question, the rarest first; a pasted page is no question


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Matches:
    """Where the question's terms stand: `counts` has a row a term and a column a passage; `weight` is each term's
    rarity (idf).
    """

    counts: Array
    weight: Array
    total: float  # the weight of all terms of the question, found or not


def match(index: Index, keys: Array) -> Matches:
    """Where the question's terms stand. Work grows with the terms of the question, not with the vocabulary."""
    wanted = np.unique(keys)
    at, known = np.searchsorted(index.vocabulary, wanted), index.knows(wanted)
    first, last = index.posting_at[at * known], index.posting_at[at * known + known]
    frequency = np.where(known, last - first, 0)
    weight = np.log1p((max(len(index), FEW) - frequency + 0.5) / (frequency + 0.5))
    rarest = np.argsort(-weight, kind="stable")[:MOST_TERMS]
    found = [i for i in rarest if known[i]]
    counts = np.zeros((len(found), len(index)), np.float32)
    for row, i in enumerate(found):
        place = slice(first[i], last[i])
        counts[row, index.posting[place]] = index.count[place]
    return Matches(counts=counts, weight=weight[found].astype(np.float32), total=float(weight[rarest].sum()))


def by_words(index: Index, matches: Matches) -> dict[str, Array]:
    """`near`, `cover` and `stretch`."""
    counts, weight = matches.counts, matches.weight
    together = np.add.reduceat(counts, index.stretch_at, axis=1) if counts.size else counts[:, : len(index.stretch_at)]
    stretches = len(index.stretch_at)
    held = (together > 0).sum(axis=1)
    rarity = np.log1p((stretches - held + 0.5) / (held + 0.5)).astype(np.float32)
    scale = np.float32(1 / matches.total if matches.total else 0)
    return {
        "cover": scale * np.asarray(weight @ (counts > 0), np.float32),
        "near": scale * bm25(spread(counts, index.stretch), index.near_length, weight),
        "stretch": _whole(rarity) * bm25(together, index.stretch_length, rarity)[index.stretch],
    }


def _whole(rarity: Array) -> np.float32:
    total = float(rarity.sum())
    return np.float32(1 / total if total else 0)


def bm25(counts: Array, length: Array, weight: Array) -> Array:
    """Okapi BM25 of each column of `counts` (a row a term), given the columns' lengths and the terms' weights."""
    mean = float(length.mean()) if len(length) else 0.0
    damping = np.float32(K1) * (np.float32(1 - B) + np.float32(B / mean if mean else 0) * length)
    return np.asarray(weight @ (counts * np.float32(K1 + 1) / (counts + damping)))


def by_meaning(index: Index, vector: Array) -> dict[str, Array]:
    """`meaning` and `cosine`; passages without a vector stand at the mean, which speaks neither for nor against."""
    present = index.columns["scale"] > 0
    # Not `@`: the threads of a BLAS wait for each other, which on a busy machine takes ten times as long.
    cosine = np.asarray(np.einsum("ij,j->i", index.vectors, vector.astype(np.float32)))
    if not present.any():
        return {"meaning": np.zeros(len(index), np.float32), "cosine": cosine}
    filled = np.where(present, cosine, cosine[present].mean())
    heard = spread(filled, index.stretch) / spread(np.ones_like(filled), index.stretch)
    return {"meaning": standard(heard), "cosine": cosine}


def standard(values: Array) -> Array:
    """Mean 0 and deviation 1; all 0 where all are equal."""
    deviation = float(values.std()) if len(values) else 0.0
    return np.asarray((values - values.mean()) / deviation) if deviation > 1e-9 else np.zeros_like(values)


def weighed(reasons: Mapping[str, Array]) -> Array:
    """One score a passage: the reasons, each with its weight."""
    weights = WEIGHTS if "meaning" in reasons else {**WEIGHTS, "near": WORDS_ALONE}
    return np.asarray(sum(np.float32(weight) * reasons[name] for name, weight in weights.items() if name in reasons))
