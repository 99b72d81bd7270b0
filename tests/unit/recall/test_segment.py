"""Laws of segments: bytes and back, forgetting, joining, late vectors, damage."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import BadInput, Damaged
from nitka.layers.recall import (
    Segment,
    Vocabulary,
    Whole,
    from_bytes,
    join,
    passages,
    segment,
    to_bytes,
    with_vectors,
    without,
)
from tests.unit.recall.making import hashed, row

TEXTS = st.lists(st.text(alphabet="abc абв?.", min_size=1, max_size=40).filter(str.strip), max_size=8)


def made(texts: list[str], *, first: int = 0, session: str = "one", vectors: bool = True) -> Segment:
    rows = [row(first + number, text) for number, text in enumerate(texts)]
    found = passages(rows, session=session)
    words = segment(found, Vocabulary(Whole()))
    return with_vectors(words, hashed([p.text for p in found], 8), "hashed") if vectors else words


def same(one: Segment, other: Segment) -> bool:
    return to_bytes(one) == to_bytes(other)


@given(TEXTS, st.booleans())
def test_bytes_and_back(texts: list[str], vectors: bool) -> None:
    whole = made(texts, vectors=vectors)
    again = from_bytes(to_bytes(whole))
    assert same(whole, again)
    assert len(again) == len(whole)


@given(TEXTS, st.sets(st.integers(0, 8)))
def test_without_rows_is_as_if_they_had_never_been(texts: list[str], rows: set[int]) -> None:
    """Nothing of a forgotten row stays in the bytes: they are those of a segment made without it."""
    found = [p for p in passages([row(i, t) for i, t in enumerate(texts)], session="one") if p.n not in rows]
    fresh = with_vectors(segment(found, Vocabulary(Whole())), hashed([p.text for p in found], 8), "hashed")
    assert same(without(made(texts), rows), fresh)


@given(TEXTS, TEXTS)
def test_joined_segments_are_one_segment(one: list[str], other: list[str]) -> None:
    both = join([made(one), made(other, first=len(one))])
    assert same(both, made(one + other))


def test_a_session_nobody_needs_loses_its_name() -> None:
    both = join([made(["one"]), made(["two"], first=1, session="secret-session")])
    left = without(both, {1})
    assert left.sessions == ("one",)
    assert b"secret-session" not in to_bytes(left)


def test_no_text_stands_in_the_bytes() -> None:
    assert b"zanzibar" not in to_bytes(made(["a marker: zanzibar, Zanzibar!"])).lower()


def test_words_come_first_and_vectors_later() -> None:
    words = made(["rye flour", "a train"], vectors=False)
    assert words.bare.tolist() == [0, 1]
    half = with_vectors(words, np.stack([hashed(["rye flour"], 8)[0], np.zeros(8, np.float32)]), "hashed")
    assert half.bare.tolist() == [1]
    assert np.isfinite(half.vectors).all()


def test_vectors_lose_little_as_integers() -> None:
    vectors = hashed(["rye flour", "a train to Porto", "весна"], 64)
    words = segment(passages([row(i, t) for i, t in enumerate("abc")], session="s"), Vocabulary(Whole()))
    kept = with_vectors(words, vectors, "hashed")
    again = kept.vectors * kept.columns["scale"][:, None]
    assert np.abs((again * vectors).sum(axis=1) - 1).max() < 0.01


def test_a_vector_that_is_not_a_number_is_none() -> None:
    words = made(["rye", "flour"], vectors=False)
    bad = np.array([[np.nan, 1.0], [np.inf, 0.0]], np.float32)
    assert with_vectors(words, bad, "x").bare.tolist() == [0, 1]


def test_one_vector_a_passage_or_none_at_all() -> None:
    with pytest.raises(BadInput):
        with_vectors(made(["rye"]), np.zeros((2, 8), np.float32), "x")


def test_vectors_of_two_embedders_are_never_joined() -> None:
    other = with_vectors(made(["b"], first=1, vectors=False), hashed(["b"], 8), "another")
    with pytest.raises(BadInput):
        join([made(["a"]), other])


@given(st.data())
def test_damage_is_damage_and_nothing_else(data: st.DataObject) -> None:
    """Bytes cut, lengthened or altered are read as some segment or refused as damaged; no other error comes out."""
    whole = to_bytes(made(["rye flour", "a train?"]))
    at = data.draw(st.integers(0, len(whole) - 1))
    changed = data.draw(st.sampled_from(["cut", "longer", "altered"]))
    bad = {
        "cut": whole[:at],
        "longer": whole + b"x",
        "altered": whole[:at] + bytes([whole[at] ^ 0x41]) + whole[at + 1 :],
    }[changed]
    if changed != "altered":
        with pytest.raises(Damaged):
            from_bytes(bad)
        return
    try:
        assert len(from_bytes(bad)) <= len(bad)
    except Damaged:
        pass


def test_a_later_version_is_refused_by_number() -> None:
    data = bytearray(to_bytes(made(["rye"])))
    data[3] = 9
    with pytest.raises(Damaged, match="version 9"):
        from_bytes(bytes(data))
