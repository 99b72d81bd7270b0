"""Laws of what is shown of a passage that is too long."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.recall import Bearing, Vocabulary, Whole, installed, quote
from nitka.layers.recall.quote import MARK
from nitka.layers.recall.words import keys, terms

TEXTS = st.lists(st.text(alphabet="abc .!?…\n。абв", min_size=1, max_size=60), min_size=1, max_size=8).map("".join)


@given(TEXTS, st.integers(1, 120), st.text(alphabet="abc абв", max_size=8))
def test_a_quotation_fits_and_rewords_nothing(text: str, limit: int, question: str) -> None:
    shown = quote(text, Bearing(keys(terms(question, Whole())), Vocabulary(Whole())), limit)
    assert len(shown) <= limit or shown == MARK
    at = 0
    for piece in shown.split(MARK):
        assert text.find(piece.strip(), at) >= 0
        at = text.find(piece.strip(), at)


def test_a_text_that_fits_is_shown_whole() -> None:
    assert quote(" rye ", Bearing(np.zeros(0, np.uint32), Vocabulary(Whole())), 5) == " rye "


def test_the_sentence_that_answers_stays() -> None:
    text = "I slept late. Then we had soup. The cello lesson is on Tuesday. My neighbour shouted. It rained all day."
    wanted = Bearing(keys(terms("when is the cello lesson?", installed())), Vocabulary(installed()))
    assert quote(text, wanted, 36) == "…The cello lesson is on Tuesday.…"
    assert quote(text, wanted, 56) == "…Then we had soup. The cello lesson is on Tuesday.…"
