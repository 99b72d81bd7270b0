"""Phrases of several words, found by walking on from their first word: one look-up for each further word.

A phrase is a row of slots, each a set of words to choose from or a gap of up to three tokens. A comma right before a
word of a phrase is nobody's concern. A gap ends at the first word that goes on, and never reaches over the end of a
sentence. All phrases with one first word are walked together: a `Walk` is the set of those that are still possible,
each with its slot, and knows the walks that follow it. Those are made when a text first needs them, and kept, up to a
number; what is kept changes no result.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, cast

GAP = "*"
GAPPED = frozenset({GAP})
GAP_MOST = 3
STOPS = frozenset(".!?…\n")
_WORD, _AFTER_COMMA, _FIRST_GAP = -1, 0, GAP_MOST + 2  # what a slot awaits; in between: so many tokens to look at
_KEPT = 4096  # walks of one first word


class Phrase(NamedTuple):
    """A phrase after its first token: the rest of its tokens, each a set of words to choose from, and what it stands
    for.
    """

    rest: tuple[frozenset[str], ...]
    concept: str
    form: str
    marks: int = 0


State = tuple[int, int, int]  # number of a phrase, its slot, what is awaited there


class _Book:
    """The phrases of one first word, and the walks among them that were made so far."""

    __slots__ = ("phrases", "walks")

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        self.phrases = phrases
        self.walks: dict[tuple[State, ...], Walk] = {}

    def step(self, states: Sequence[State], form: str) -> Walk | None:
        """The walk from these states by one token."""
        after = []
        for number, slot, awaited in states:
            moved = _moved(self.phrases[number].rest, slot, awaited, form)
            if moved:
                after.append((number, *moved))
        if not after:
            return None
        key = tuple(after)
        walk = self.walks.get(key)
        if walk is None:
            walk = Walk(self, key)
            if len(self.walks) < _KEPT:
                self.walks[key] = walk
        return walk


def _moved(rest: Sequence[frozenset[str]], slot: int, awaited: int, form: str) -> tuple[int, int] | None:
    """Slot and what is awaited after one more token; None if the phrase has come to nothing, or was whole."""
    if slot == len(rest):
        return None
    if form in rest[slot]:
        gap = slot + 1 < len(rest) and rest[slot + 1] == GAPPED
        return (slot + 2, GAP_MOST + 1) if gap else (slot + 1, _WORD)
    if form == "," and awaited == _WORD:
        return slot, _AFTER_COMMA
    if form == "," and awaited == _FIRST_GAP:
        return slot, GAP_MOST + 1
    left = min(awaited, GAP_MOST + 1) - 1
    return (slot, left) if left > 0 and form not in STOPS else None


class Walk:
    """Where phrases of one first word stand after some words. `ends` are the numbers of those that are whole.

    `nexts` holds the walk after each word that some phrase wants, `other` that after any other word: `UNMADE` until a
    text needs it, None where no phrase is possible any longer. Where only gaps are left, one of `words` must stand
    among the next `gap` tokens, or nothing comes of it.
    """

    __slots__ = ("book", "ends", "gap", "nexts", "other", "states", "words")

    def __init__(self, book: _Book, states: tuple[State, ...]) -> None:
        rests = [book.phrases[number].rest for number, _, _ in states]
        self.book, self.states = book, states
        self.ends = tuple(s[0] for s, rest in zip(states, rests, strict=True) if s[1] == len(rest))
        slots = [rest[s[1]] for s, rest in zip(states, rests, strict=True) if s[1] < len(rest)]
        self.words: frozenset[str] = frozenset().union(*slots)
        self.nexts: dict[str, Walk | None] = dict.fromkeys(self.words.union(STOPS, ","), UNMADE)
        self.other: Walk | None = UNMADE
        self.gap = max((s[2] for s in states), default=0) if all(s[2] > 0 for s in states) else 0

    def make(self, form: str) -> Walk | None:
        """What `nexts` or `other` lack."""
        made = self.book.step(self.states, form)
        if form not in self.nexts:
            self.other = made
        elif len(self.book.walks) < _KEPT:
            self.nexts[form] = made
        return made


UNMADE = cast(Walk, object())


def starts(phrases: Sequence[Phrase]) -> tuple[Walk, ...]:
    """The walks of these phrases before anything after their first word: of those that go on at once, and of those
    that go on after a gap.
    """
    book = _Book(phrases)
    states = [(number, *_first(phrase)) for number, phrase in enumerate(phrases)]
    near, far = (tuple(state for state in states if (state[1] > 0) == gapped) for gapped in (False, True))
    return tuple(Walk(book, several) for several in (near, far) if several)


def _first(phrase: Phrase) -> tuple[int, int]:
    return (1, _FIRST_GAP) if phrase.rest[0] == GAPPED else (0, _WORD)


def standing(forms: Sequence[str], walks: Iterable[Sequence[Walk]]) -> list[tuple[int, Phrase, int]]:
    """The phrases of a text, as (place of the first word, phrase, place after it). `walks` are those of its words. Of
    one first word, short ones stand first, those that begin with a gap last.
    """
    found: list[tuple[int, Phrase, int]] = []
    last = len(forms) - 1
    for place, several in enumerate(walks):
        ends: list[tuple[int, int]] = []
        for first in several if place < last else ():
            if first.gap:
                if first.words.isdisjoint(forms[place + 1 : place + 1 + first.gap]):
                    continue
            elif forms[place + 1] not in first.nexts:
                continue
            ends += _walked(forms, place + 1, first)
        if ends:
            phrases = several[0].book.phrases
            if len(ends) > 1:
                _sort(ends, phrases, forms, place)
            found += [(place, phrases[number], end) for number, end in ends]
    return found


def _walked(forms: Sequence[str], index: int, here: Walk) -> Sequence[tuple[int, int]]:
    """Numbers of the phrases that a walk over the tokens from `index` makes whole, each with the place after it."""
    ends: list[tuple[int, int]] = []
    count = len(forms)
    while index < count:  # the busiest loop of all: for most words one look-up, and out
        if here.gap and here.words.isdisjoint(forms[index : index + here.gap]):
            break
        after = here.nexts.get(forms[index], here.other)
        if after is UNMADE:
            after = here.make(forms[index])
        if after is None:
            break
        here, index = after, index + 1
        if here.ends:
            ends += [(number, index) for number in here.ends]
    return ends


def _sort(ends: list[tuple[int, int]], phrases: Sequence[Phrase], forms: Sequence[str], place: int) -> None:
    ends.sort(key=lambda end: _order(phrases[end[0]].rest, end[0], forms, place))


def _order(rest: Sequence[frozenset[str]], number: int, forms: Sequence[str], place: int) -> tuple[int, int, int]:
    if rest[0] == GAPPED:
        return 3, next(i for i in range(place + 1, len(forms)) if forms[i] in rest[1]), number
    return 0 if len(rest) == 1 else 2 if rest[1] == GAPPED else 1, 0, number


def places_of(forms: Sequence[str], place: int, phrase: Phrase) -> list[int]:
    """Where the words of a phrase stand whose first word stands at `place`."""
    found, (slot, awaited) = [place], _first(phrase)
    for index in range(place + 1, len(forms)):
        moved = _moved(phrase.rest, slot, awaited, forms[index])
        if moved is None:
            break
        if moved[0] > slot:
            found.append(index)
        slot, awaited = moved
    return found
