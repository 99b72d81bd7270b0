"""Laws of cutting rows into passages."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.recall import passages
from nitka.layers.recall.passages import LONGEST, asking, local_day, spans
from tests.unit.recall.making import row

SENTENCES = st.lists(st.text(alphabet="abвг .!?…\n。 ", min_size=1, max_size=200), min_size=1, max_size=12).map("".join)


@given(SENTENCES, st.integers(1, 80))
def test_pieces_hold_every_word_once_and_in_order(text: str, longest: int) -> None:
    pieces = [text[start:end] for start, end in spans(text, longest=longest)]
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(0 < len(piece) <= longest and piece == piece.strip() for piece in pieces)


@given(SENTENCES)
def test_passages_point_at_their_own_text(text: str) -> None:
    for passage in passages([row(7, text)], session="s"):
        assert passage.text == text[passage.start : passage.end]
        assert (passage.n, passage.seq, passage.session, passage.speaker) == (7, 7, "s", "user")
        assert 0.0 <= passage.asks <= 1.0


def test_a_long_answer_is_cut_where_sentences_end() -> None:
    text = "The first thing is flour. " * 60
    pieces = passages([row(0, text)], session="s")
    assert len(pieces) > 2
    assert all(piece.text.endswith(".") and len(piece.text) <= LONGEST for piece in pieces)


@pytest.mark.parametrize(
    ("text", "share"),
    [("Where is it?", 1.0), ("It is here.", 0.0), ("", 0.0), ("Где он? Тут он.", 0.5), ("¿Y tú?", 1.0)],
)
def test_the_share_of_a_text_that_asks(text: str, share: float) -> None:
    assert asking(text) == pytest.approx(share, abs=0.08)


@pytest.mark.parametrize(
    ("zone", "day"),
    [
        ("", 24),
        ("Asia/Tokyo", 25),
        ("America/Los_Angeles", 24),
        ("+05:30", 25),
        ("-03:00", 24),
        ("nowhere/at-all", 24),
        ("+99:00", 24),
    ],
)
def test_the_day_is_that_of_the_speakers_own_calendar(zone: str, day: int) -> None:
    assert local_day(datetime(2026, 7, 24, 22, 0, tzinfo=UTC), zone) == datetime(2026, 7, day, tzinfo=UTC).toordinal()
