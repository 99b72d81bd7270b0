"""What a question asks for: its terms, whom it is about, and when. Pure.

Rules
* A speaker is named by name, or, when it is known who asks, by "I" and "you". A question that names both names nobody.
  The names of speakers are not searched for as words: people seldom call themselves by name, and others do.
* "Last May" leans on `now` and the asker's zone; without `now` it is any May.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import numpy as np

from nitka.layers.recall.dates import LOOKED_AT, Span, read_dates
from nitka.layers.recall.index import Index
from nitka.layers.recall.lemmas import Lemmas
from nitka.layers.recall.passages import local_day
from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import fold, function_words, is_latin, keys, languages_of, terms, words


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
class Wanted:
    """A question, understood. `speakers` are numbers in the index; `spans` the dates it names."""

    keys: Array
    speakers: tuple[int, ...]
    spans: tuple[Span, ...]

    @property
    def empty(self) -> bool:
        """Whether there is nothing to look for: a greeting, a thank-you, signs only."""
        return not len(self.keys) and not self.spans


def understand(query: Query, index: Index, lemmas: Lemmas) -> Wanted:
    """What the question asks for, in the index's own numbers."""
    found = words(query.text[:LOOKED_AT])
    named = _named(found, query.asker, index)
    names = {word for name in index.speakers for word in words(name)}
    wanted = np.unique(keys(terms(" ".join(word for word in found if word not in names), lemmas)))
    spans, said = read_dates(query.text, local_day(query.now, query.zone) if query.now else None)
    # Words of a date are looked for where somebody used them; where nobody did, the date has already spoken.
    dated = np.unique(keys(terms(said, lemmas)))
    unused = dated[~index.knows(dated)]
    return Wanted(keys=np.setdiff1d(wanted, unused), speakers=named if len(named) == 1 else (), spans=spans)


def _named(found: list[str], asker: str, index: Index) -> tuple[int, ...]:
    """Numbers of the speakers a question names, by name or by pronoun."""
    spoken = {fold(word) for word in found}
    by_name = {i for i, name in enumerate(index.speakers) if name != asker and spoken & {fold(w) for w in words(name)}}
    if asker not in index.speakers:
        return tuple(sorted(by_name))
    me = index.speakers.index(asker)
    others = set(range(len(index.speakers))) - {me}
    by_pronoun = ({me} if _says(found, "i") else set()) | (others if _says(found, "you") else set())
    return tuple(sorted(by_name or by_pronoun))


def _says(found: list[str], who: str) -> bool:
    latin, other = languages_of(found)
    listed = function_words()
    return any(fold(word) in listed.get(f"{latin if is_latin(word) else other}.{who}", ()) for word in found)
