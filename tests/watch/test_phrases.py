"""The walk over phrases finds what a plain reading of their rules finds, however often it has walked before."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from nitka.watch.phrases import GAP_MOST, GAPPED, STOPS, Phrase, places_of, standing, starts

WORDS = st.sampled_from(["a", "b", "c", "d"])
FORMS = st.lists(st.sampled_from(["a", "b", "c", "d", "x", ",", "."]), max_size=12)
SLOT = st.frozensets(WORDS, min_size=1, max_size=3)
STEP = st.tuples(st.booleans(), SLOT)  # whether a gap stands before the word


@st.composite
def phrases(draw: st.DrawFn) -> tuple[Phrase, ...]:
    made = []
    for number, steps in enumerate(draw(st.lists(st.lists(STEP, min_size=1, max_size=4), max_size=5))):
        rest = itertools.chain.from_iterable((GAPPED, slot) if gap else (slot,) for gap, slot in steps)
        made.append(Phrase(tuple(rest), f"c{number}", ""))
    return tuple(made)


def plainly(forms: list[str], place: int, rest: tuple[frozenset[str], ...]) -> list[int]:
    """The places of a phrase's words, the first included, read slot by slot; empty if it does not stand there."""
    places, at, slots = [place], place + 1, list(rest)
    if slots[0] == GAPPED and at < len(forms) and forms[at] == ",":
        at += 1
    while slots:
        slot = slots.pop(0)
        if slot == GAPPED:
            slot = slots.pop(0)
            near = forms[at : at + GAP_MOST + 1]
            first = next((i for i, form in enumerate(near) if form in slot or form in STOPS), None)
            if first is None or near[first] in STOPS:
                return []
            at += first
        elif at < len(forms) and forms[at] == ",":
            at += 1
        if at >= len(forms) or forms[at] not in slot:
            return []
        places.append(at)
        at += 1
    return places


@given(phrases(), st.lists(FORMS, min_size=1, max_size=4))
def test_a_walk_finds_what_reading_slot_by_slot_finds(several: tuple[Phrase, ...], texts: list[list[str]]) -> None:
    walks = starts(several)
    for forms in texts:  # the later ones meet walks that the earlier ones made
        expected = {
            (place, phrase, plain[-1] + 1)
            for place in range(len(forms))
            for phrase in several
            if (plain := plainly(forms, place, phrase.rest))
        }
        found = standing(forms, [walks] * len(forms))

        assert set(found) == expected
        assert len(found) == len(expected)


@given(phrases(), FORMS)
def test_the_places_of_a_phrase_are_those_of_its_words(several: tuple[Phrase, ...], forms: list[str]) -> None:
    walks = starts(several)
    for place, phrase, end in standing(forms, [walks] * len(forms)):
        places = places_of(forms, place, phrase)

        assert places == plainly(forms, place, phrase.rest)
        assert places[-1] + 1 == end
