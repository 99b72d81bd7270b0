"""The first look spares work and nothing else: what it lets pass unread would have given nothing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.watch import conversations, engine
from nitka.watch.data import default, texts
from nitka.watch.engine import Watch
from nitka.watch.glance import glance
from nitka.watch.lexicon import forms_of
from nitka.watch.memory import Memory
from nitka.watch.normalise import clean
from nitka.watch.relevance import Relevance
from nitka.watch.tokens import tokenise

WATCH = default()
PATIENT = dataclasses.replace(WATCH, relevance=Relevance(always=[()]))  # to whom everything matters
SAID = [
    said
    for file in texts(Path(engine.__file__).parent / "rules" / "conversations")
    for talk in conversations.read(file.name, file.text)
    for _, said in talk.turns
]
FORMS = sorted({form for codes in (("en",), ("ru",)) for form in WATCH.lexicon(codes).known})
words = st.lists(
    st.sampled_from(FORMS)
    | st.sampled_from([",", "?", ".", "!", "\n", "and", "не", "you", "ты", "it", "she", "7", "ok"]),
    min_size=1,
    max_size=8,
).map(" ".join)
speakers = st.sampled_from(["", "a", "b"])
languages = st.sampled_from([("en",), ("ru",), ("en", "ru")])


def told(watch: Watch, turns: list[tuple[str, str]], codes: tuple[str, ...]) -> list[tuple[object, ...]]:
    """What each message of a conversation gave, and the memory after it."""
    memory = Memory()
    given: list[tuple[object, ...]] = []
    for speaker, text in turns:
        found = engine.step(watch, text, codes, memory, engine.who(speaker), whole=False)
        memory = found.memory
        given.append((list(found.sightings), found.alerts, memory, found.language))
    return given


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(speakers, words | st.sampled_from(SAID)), min_size=1, max_size=5), languages)
def test_reading_whole_or_at_a_glance_gives_the_same(turns, codes):
    assert told(WATCH, turns, codes) == told(PATIENT, turns, codes)


@pytest.mark.parametrize("codes", [("en",), ("ru",), ("en", "ru")])
def test_the_packaged_conversations_give_the_same(codes):
    turns = [("a" if index % 2 else "b", text) for index, text in enumerate(SAID)]
    assert told(WATCH, turns, codes) == told(PATIENT, turns, codes)


def test_small_talk_is_not_cut_into_sentences():
    for text in ("Good morning!", "Доброе утро!", "Lovely weather today, the garden is full of birds."):
        assert engine.step(WATCH, text, ("en", "ru"), Memory(), engine.who("a"), whole=False).seen is None


@settings(max_examples=300, deadline=None)
@given(words | st.sampled_from(SAID), languages)
def test_a_glance_finds_the_words_that_are_there(text, codes):
    seen = glance(text, WATCH.lexicon(codes))
    if seen is not None:
        assert list(seen.forms) == forms_of(tokenise(clean(text)), WATCH.lexicon(codes))
