"""What to show of a passage that is longer than its allowance: the sentences that speak of the question, as they were
said. Pure.

Nothing is reworded. Cuts are marked with an ellipsis, and the marks count.
"""

from __future__ import annotations

import numpy as np
import re2

from nitka.layers.recall.lemmas import Lemmas, installed
from nitka.layers.recall.passages import spans
from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import keys, terms

MARK = "…"

_SENTENCE = re2.compile(r"\s*[^.!?…؟।。！？\n]*[.!?…؟।。！？\n]*[\"'»”’)\]]*")


def quote(text: str, wanted: Array, limit: int, *, lemmas: Lemmas | None = None) -> str:
    """At most `limit` characters of a text: all of it if it fits, else its sentences that hold most of the question's
    terms.

    `wanted` are the question's keys (`Wanted.keys`). Between equals the one nearest to the best stays; order is kept.
    """
    if len(text) <= limit:
        return text
    pieces = _sentences(text, max(limit - 2 * len(MARK), 1))
    held = [_held(text[start:end], wanted, lemmas or installed()) for start, end in pieces]
    best = held.index(max(held)) if held else 0
    chosen: set[int] = set()
    for place in sorted(range(len(pieces)), key=lambda i: (-held[i], abs(i - best), i)):
        if len(_written(text, pieces, chosen | {place})) <= limit:
            chosen.add(place)
    return _written(text, pieces, chosen)


def _sentences(text: str, longest: int) -> list[tuple[int, int]]:
    """Sentences as offsets, those longer than `longest` cut further."""
    found: list[tuple[int, int]] = []
    at = 0
    for match in _SENTENCE.finditer(text):
        found += [(at + start, at + end) for start, end in spans(match[0], longest=longest)]
        at += len(match[0])
    return found


def _held(sentence: str, wanted: Array, lemmas: Lemmas) -> int:
    return len(np.intersect1d(keys(terms(sentence, lemmas)), wanted))


def _written(text: str, pieces: list[tuple[int, int]], chosen: set[int]) -> str:
    """The chosen pieces in order, with a mark wherever words are missing."""
    written, end = "", 0
    for place in sorted(chosen):
        start, stop = pieces[place]
        between = text[end:start]
        written += (f"{MARK} " if written else MARK) if between.strip() else between
        written += text[start:stop]
        end = stop
    return written.strip() + (MARK if text[end:].strip() else "")
