"""What a question asks for: its terms, whom it is about, and when. Pure.

Rules
* A speaker is named by name, or, when it is known who asks, by "I" and "you". A question that names both names nobody.
  The names of speakers are not searched for as words: people seldom call themselves by name, and others do.
* "Last May" leans on `now` and the asker's zone; without `now` it is any May.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from nitka.layers.recall.dates import LOOKED_AT, Span, read_dates
from nitka.layers.recall.index import Index
from nitka.layers.recall.passages import local_day
from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import Vocabulary, Word, fold, function_words, read, without_formulas, words

NONE: Array = np.zeros(0, np.uint32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """A question to one person's memory.

    `vector` is the question's unit vector from the embedder that made the index's, or None for words only. `asker` is
    the speaker who asks, as passages name speakers. `now` (aware) and `zone` are the asker's. With `session`, rows of
    that session from `before` on (the window's) are never found, and with `elsewhere` false neither are rows of other
    sessions.
    """

    text: str
    vector: Array | None = None
    asker: str = ""
    now: datetime | None = None
    zone: str = ""
    session: str | None = None
    before: int | None = None
    elsewhere: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Asked:
    """A question as it was read, whichever index it is put to."""

    words: tuple[tuple[str, tuple[int, ...]], ...]  # each in lower case, and its keys
    folded: frozenset[str]
    me: bool  # whether the one who asks names himself, or
    you: bool  # the other
    spans: tuple[Span, ...]
    dated: Array  # keys of the words that name a date

    @property
    def keys(self) -> Array:
        """The keys of all its words."""
        return _united(key for _, own in self.words for key in own)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wanted:
    """A question, understood by one index. `speakers` are numbers in the index; `spans` the dates it names."""

    keys: Array
    speakers: tuple[int, ...]
    spans: tuple[Span, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for: a greeting, a thank-you, signs only."""
        return not len(self.keys) and not self.spans


def read_question(query: Query, vocabulary: Vocabulary) -> Asked:
    """Reads the question: nearly all that a search in a small memory costs, so once for all indexes."""
    found = read(query.text[:LOOKED_AT])
    spans, said = read_dates(query.text, local_day(query.now, query.zone) if query.now else None)
    return Asked(
        words=tuple((word.text, vocabulary(word)) for word in without_formulas(found)),
        folded=frozenset(word.folded for word in found),
        me=_says(found, "i"),
        you=_says(found, "you"),
        spans=spans,
        dated=_united(vocabulary.read(said)) if said else NONE,
    )


def understand(asked: Asked, asker: str, index: Index) -> Wanted:
    """What the question asks for, in the index's own numbers."""
    named = _named(asked, asker, index)
    names = {word for name in index.speakers for word in words(name)}
    wanted = _united(key for word, own in asked.words if word not in names for key in own)
    if len(asked.dated):
        # Words of a date are looked for where somebody used them; where nobody did, the date has already spoken.
        wanted = np.setdiff1d(wanted, asked.dated[~index.knows(asked.dated)])
    return Wanted(keys=wanted, speakers=named if len(named) == 1 else (), spans=asked.spans)


def _united(found: Iterable[int]) -> Array:
    return np.array(sorted(set(found)), np.uint32)


def _named(asked: Asked, asker: str, index: Index) -> tuple[int, ...]:
    """Numbers of the speakers a question names, by name or by pronoun."""
    by_name = {
        i
        for i, name in enumerate(index.speakers)
        if name != asker and not asked.folded.isdisjoint(fold(word) for word in words(name))
    }
    if asker not in index.speakers:
        return tuple(sorted(by_name))
    me = index.speakers.index(asker)
    others = set(range(len(index.speakers))) - {me}
    by_pronoun = ({me} if asked.me else set()) | (others if asked.you else set())
    return tuple(sorted(by_name or by_pronoun))


def _says(found: Sequence[Word], who: str) -> bool:
    listed = function_words()
    return any(word.folded in listed.get(f"{word.language}.{who}", ()) for word in found)
