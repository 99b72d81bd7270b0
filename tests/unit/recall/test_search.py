"""Laws of search, and the cases of `searches.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import BadInput
from nitka.layers.recall import (
    Query,
    Vocabulary,
    Whole,
    fact_segment,
    index,
    installed,
    passages,
    rank_facts,
    search,
    segment,
    together,
    with_vectors,
    without,
)
from nitka.layers.recall.search import share
from tests.unit.recall.making import START, hashed, memory, row


class Case(NamedTuple):
    name: str
    texts: list[str]
    question: str
    first: str


def read_cases() -> Iterator[Case]:
    name, texts = "", list[str]()
    for line in Path(__file__).with_name("searches.txt").read_text("utf-8").splitlines():
        kind, _, rest = line.partition(" ")
        if kind == "==":
            name, texts = rest, []
        elif kind == "+":
            texts = [*texts, rest]
        elif kind == "?":
            question, _, first = rest.rpartition(" -> ")
            yield Case(name, texts, question, first)


@pytest.mark.parametrize("case", list(read_cases()), ids=lambda case: f"{case.name}: {case.question}")
def test_the_right_text_comes_first(case: Case) -> None:
    hits = search(memory(case.texts), Query(text=case.question, asker="user")).hits
    assert (str(hits[0].n) if hits else "nothing") == case.first


WORDS = st.sampled_from("flour rye train Porto cello lamp Anna мука поезд лампа уже кот".split())
TEXTS = st.lists(st.lists(WORDS, min_size=1, max_size=6).map(" ".join), min_size=1, max_size=12)
QUESTIONS = st.lists(WORDS, min_size=1, max_size=5).map(" ".join)


@given(TEXTS, QUESTIONS, st.booleans(), st.integers(1, 5))
def test_hits_are_few_different_ordered_and_real(texts: list[str], question: str, vectors: bool, k: int) -> None:
    vector = hashed([question])[0] if vectors else None
    made = memory(texts, lemmas=Whole(), vectors=vectors)
    hits = search(made, Query(text=question, vector=vector), k=k, lemmas=Whole()).hits
    assert len(hits) <= k
    assert len({hit.n for hit in hits}) == len(hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert all(texts[hit.n][hit.start : hit.end] == texts[hit.n] for hit in hits)


@given(TEXTS, QUESTIONS, st.integers(0, 400))
def test_age_alone_never_changes_a_hit(texts: list[str], question: str, years: int) -> None:
    """The same conversation at another time gives the same hits with the same scores."""
    found = []
    for shift in (0, years):
        rows = [row(i, text, at=START + timedelta(days=365 * shift, minutes=i)) for i, text in enumerate(texts)]
        made = index([segment(passages(rows, session="one"), Vocabulary(Whole()))])
        found.append([(hit.n, hit.score) for hit in search(made, Query(text=question), lemmas=Whole()).hits])
    assert found[0] == found[1]


@given(TEXTS, QUESTIONS, st.data())
def test_however_it_is_cut_into_segments_the_memory_is_the_same(
    texts: list[str], question: str, data: st.DataObject
) -> None:
    rows = [row(i, text) for i, text in enumerate(texts)]
    cuts = sorted(data.draw(st.sets(st.integers(0, len(rows)), max_size=4)) | {0, len(rows)})
    parts = [
        segment(passages(rows[a:b], session="one"), Vocabulary(Whole())) for a, b in zip(cuts, cuts[1:], strict=False)
    ]
    parts = data.draw(st.permutations(parts))
    asked = Query(text=question)
    whole = search(index([segment(passages(rows, session="one"), Vocabulary(Whole()))]), asked, lemmas=Whole())
    assert search(index(parts), asked, lemmas=Whole()) == whole


@given(TEXTS, QUESTIONS, st.sets(st.integers(0, 11), min_size=1))
def test_what_is_forgotten_is_never_found(texts: list[str], question: str, rows: set[int]) -> None:
    found = passages([row(i, text) for i, text in enumerate(texts)], session="one")
    left = index([without(segment(found, Vocabulary(Whole())), rows)])
    assert not {hit.n for hit in search(left, Query(text=question), k=50, lemmas=Whole()).hits} & rows


@given(TEXTS, QUESTIONS, st.integers(0, 12))
def test_the_window_is_never_recalled(texts: list[str], question: str, before: int) -> None:
    asked = Query(text=question, session="one", before=before)
    assert all(hit.seq < before for hit in search(memory(texts, lemmas=Whole()), asked, k=50, lemmas=Whole()).hits)


def two_sessions() -> list[tuple[str, str]]:
    return [("one", "The rye flour is in the cellar"), ("two", "Rye flour costs three coins")]


def test_other_sessions_are_found_only_when_asked_for() -> None:
    parts = [
        segment(passages([row(i, text)], session=name), Vocabulary(installed()))
        for i, (name, text) in enumerate(two_sessions())
    ]
    made = index(parts)
    assert {hit.session for hit in search(made, Query(text="rye flour")).hits} == {"one", "two"}
    assert {hit.session for hit in search(made, Query(text="rye flour", session="one")).hits} == {"one", "two"}
    asked = Query(text="rye flour", session="one", elsewhere=False)
    assert {hit.session for hit in search(made, asked).hits} == {"one"}
    asked = Query(text="rye flour", session="never seen", elsewhere=False)
    assert search(made, asked).hits == ()


def test_an_empty_memory_answers_nothing() -> None:
    assert search(index([]), Query(text="rye flour", vector=np.ones(3, np.float32))).hits == ()


def test_an_answer_is_found_by_the_words_of_its_question() -> None:
    """A passage hears its neighbours: "at nine" answers, though it shares no word with the question."""
    texts = [
        "The cello is loud",
        "assistant|When does the train to Porto leave?",
        "At nine, from the old station",
        "The lamp is red",
    ]
    hits = search(memory(texts), Query(text="when does the train to Porto leave"), k=2).hits
    assert {hit.n for hit in hits} == {1, 2}


def test_saying_the_same_again_takes_no_second_place() -> None:
    texts = ["The rye flour is in the cellar"] * 8 + ["Rye bread needs time"]
    assert [hit.n for hit in search(memory(texts), Query(text="rye flour"), k=3).hits][1:] == [8]


def test_a_date_in_the_question_chooses_between_equals() -> None:
    days = [datetime(2023, month, 10, tzinfo=UTC) for month in (2, 5, 9)]
    rows = [row(i, f"We baked rye bread, batch {i}", at=at) for i, at in enumerate(days)]
    made = index([segment(passages(rows, session="one"), Vocabulary(installed()))])
    now = datetime(2023, 12, 1, tzinfo=UTC)
    for text, expected in (
        ("rye bread in May 2023", 1),
        ("rye bread last September", 2),
        ("хлеб rye bread в феврале", 0),
    ):
        assert search(made, Query(text=text, now=now)).hits[0].n == expected


def test_a_speaker_who_is_named_is_believed() -> None:
    rows = [row(0, "I like rye bread best"), row(1, "assistant|I like rye bread best of all")]
    made = index([segment(passages(rows, session="one", speakers=("Anna", "Boris")), Vocabulary(installed()))])
    assert search(made, Query(text="Which bread does Boris like?")).hits[0].speaker == "Boris"
    assert search(made, Query(text="Which bread does Anna like?")).hits[0].speaker == "Anna"


def test_vectors_find_what_words_do_not() -> None:
    """A passage that is close in meaning is nominated without any common word."""
    texts = ["motorcycling every weekend", *("rye bread" for _ in range(5)), *(f"lamp number {i}" for i in range(20))]
    words = segment(passages([row(i, text) for i, text in enumerate(texts)], session="one"), Vocabulary(Whole()))
    vectors = np.array([[1, 0], *([0, 1] for _ in texts[1:])], np.float32)
    asked = Query(text="lamp", vector=np.array([1, 0], np.float32))
    found = search(index([with_vectors(words, vectors, "by hand")]), asked, k=25, lemmas=Whole())
    assert 0 in {hit.n for hit in found.hits}
    assert 0 not in {hit.n for hit in search(index([words]), asked, k=25, lemmas=Whole()).hits}


def test_a_cosine_from_which_things_are_alike_nominates_alone() -> None:
    texts = ["lamps in the hall", "bicycling"]
    asked = Query(text="bicyclist", vector=hashed(["bicycling"])[0])
    made = memory(texts, lemmas=Whole(), vectors=True)
    assert search(made, Query(text="zzz", vector=asked.vector), alike=0.9, lemmas=Whole()).hits[0].n == 1
    assert search(made, Query(text="zzz", vector=asked.vector), lemmas=Whole()).hits == ()


def test_passages_without_a_vector_are_found_by_words() -> None:
    rows = [row(i, text) for i, text in enumerate(["rye flour", "a train to Porto"])]
    found = passages(rows, session="one")
    half = with_vectors(
        segment(found, Vocabulary(Whole())), hashed(["rye flour", ""]) * np.array([[1], [0]], np.float32), "hashed"
    )
    made = index([half])
    assert made.with_vectors == 1
    hits = search(made, Query(text="train", vector=hashed(["train"])[0]), lemmas=Whole()).hits
    assert (hits[0].n, hits[0].cosine) == (1, None)


def test_a_vector_of_another_length_is_left_aside() -> None:
    hits = search(memory(["rye flour"], vectors=True), Query(text="rye", vector=np.ones(3, np.float32))).hits
    assert hits[0].cosine is None


def test_only_the_newest_passages_are_kept() -> None:
    rows = [row(i, f"rye flour lot {i}") for i in range(30)]
    made = index([segment(passages(rows, session="one"), Vocabulary(Whole()))], newest=10)
    assert sorted(made.columns["n"].tolist()) == list(range(20, 30))


def test_segments_of_different_lemmas_do_not_go_together() -> None:
    parts = [segment(passages([row(0, "rye")], session="one"), Vocabulary(kind)) for kind in (Whole(), installed())]
    with pytest.raises(BadInput):
        index(parts)


@given(st.lists(st.integers(1, 480), max_size=12), st.integers(0, 3_000))
def test_shares_keep_to_the_budget_and_waste_nothing(sizes: list[int], budget: int) -> None:
    kept, allowed = share(np.array(sizes), budget)
    assert sum(allowed) <= budget
    assert all(given <= size for given, size in zip(allowed, sizes, strict=False))
    if kept == len(sizes) and sum(sizes) > budget:
        assert budget - sum(allowed) < max(kept, 1)
    if sum(sizes) <= budget:
        assert allowed == sizes


@given(st.sets(st.integers(0, 30), min_size=1, max_size=10))
def test_hits_bring_their_pairs_and_neighbours_become_one(rows: set[int]) -> None:
    texts = [f"{'assistant|' if i % 2 else ''}rye flour number {i}" for i in range(31)]
    hits = [
        hit
        for hit in search(memory(texts, lemmas=Whole()), Query(text="rye"), k=31, lemmas=Whole()).hits
        if hit.n in rows
    ]
    joined = together(hits)
    covered = [seq for stretch in joined for seq in range(stretch.first, stretch.last + 1)]
    assert len(covered) == len(set(covered))
    assert set(covered) == {seq for hit in hits for seq in (hit.seq & ~1, hit.seq | 1)}
    assert all(a.last + 1 < b.first for a, b in zip(joined, joined[1:], strict=False))
    assert sorted(hit.n for stretch in joined for hit in stretch.hits) == sorted(hit.n for hit in hits)


FACTS = [
    "Lives in Porto",
    "Is allergic to walnuts",
    "Has a sister named Ines",
    "Plays the cello",
    "Собака Рекса боится грома",
]


@pytest.mark.parametrize(
    ("question", "first"),
    [("am I allergic to something?", 1), ("what instrument do I play?", 3), ("кто боится грома", 4), ("hello", None)],
)
def test_facts_are_ranked_and_a_greeting_finds_none(question: str, first: int | None) -> None:
    ranked = rank_facts(FACTS, Query(text=question))
    assert (ranked[0] if ranked else None) == first
    assert rank_facts(index([fact_segment(FACTS)]), Query(text=question)) == ranked
    filled = rank_facts(FACTS, Query(text=question), fill=True)
    assert filled[: len(ranked)] == ranked
    assert sorted(filled) == (list(range(len(FACTS))) if ranked else [])


def test_a_cosine_nominates_facts_that_share_no_word() -> None:
    vectors = np.eye(len(FACTS), dtype=np.float32)
    asked = Query(text="which town should the caterer drive to", vector=vectors[0])
    assert rank_facts(FACTS, asked, vectors=vectors, related=0.9) == (0,)
    assert rank_facts(FACTS, asked, vectors=vectors) == ()
