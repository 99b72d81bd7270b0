"""What to show of a passage that is longer than its allowance: the sentences that speak of the question, as they were
said. Pure.

Nothing is reworded. Cuts are marked with an ellipsis, and the marks count.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import re2

from nitka.layers.recall.passages import spans
from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import Vocabulary, read

MARK = "…"

_SENTENCE = re2.compile(r"\s*[^.!?…؟।。！？\n]*[.!?…؟।。！？\n]*[\"'»”’)\]]*")


class Bearing:
    """How many of a question's terms a text holds. Texts that were counted once are known, so use one for all that one
    question shows, and no longer: it holds what people wrote.
    """

    def __init__(self, wanted: Array, vocabulary: Vocabulary) -> None:
        """`wanted` are the question's keys (`Wanted.keys`)."""
        self._wanted = frozenset(wanted.tolist())
        self._vocabulary = vocabulary
        self._counted: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        counted = self._counted.get(text)
        if counted is None:
            keys = (self._vocabulary(word) for word in read(text)) if self._wanted else ()
            counted = self._counted[text] = len(self._wanted.intersection(chain.from_iterable(keys)))
        return counted


def quote(text: str, bearing: Callable[[str], int], limit: int) -> str:
    """At most `limit` characters of a text: all of it if it fits, else its sentences that bear most on the question.

    Between equals the one nearest to the best stays; order is kept.
    """
    if len(text) <= limit:
        return text
    pieces = _sentences(text, max(limit - 2 * len(MARK), 1))
    held = [bearing(text[start:end]) for start, end in pieces]
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
