"""The filter in front of the rules never hides a match, and knows all packaged patterns."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.facts.rules import engine, gone
from nitka.layers.facts.rules.needs import ODD, Index, key_of, literals, packaged

HERE = Path(__file__).parent
PARTS = (
    "a",
    "bc",
    "live",
    "[её]",
    "[a-z]",
    "(?:in|at) ",
    "(?:x)?",
    "(?:ab){2}",
    r"\b",
    "(?!no)",
    "(?=yes)",
    "(?<!w)",
    ".",
)


def patterns(language: str) -> tuple[str, ...]:
    return gone.patterns() if language == "gone" else engine.patterns(language)


def may_match(needs: tuple[str, ...], text: str) -> bool:
    return not needs or any(need in text for need in needs)


@cache
def texts() -> list[str]:
    """Whatever is said in the fixtures beside this test."""
    talks = [json.loads(line) for line in (HERE / "dialogues.jsonl").read_text("utf-8").splitlines()]
    said = [row["text"] for talk in talks for row in talk["messages"]]
    return said + (HERE / "statements.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("language", ["en", "ru", "gone"])
def test_every_packaged_pattern_is_known_as_it_is_now(language: str) -> None:
    """If not: python -m nitka.layers.facts.rules.needs"""
    wrong = [pattern for pattern in patterns(language) if packaged().get(key_of(pattern)) != literals(pattern)]
    assert wrong == []


@pytest.mark.parametrize("language", ["en", "ru", "gone"])
def test_what_a_pattern_matches_holds_what_it_needs(language: str) -> None:
    for pattern in patterns(language):
        compiled, needs = re.compile(pattern, re.I), packaged()[key_of(pattern)]
        hidden = [text for text in texts() if not may_match(needs, text.lower()) and compiled.search(text)]
        assert hidden == []


@given(st.lists(st.sampled_from(PARTS), min_size=1, max_size=5), st.text("abceinltvxyё wABX", max_size=12))
def test_no_match_is_hidden_of_any_pattern(parts: list[str], text: str) -> None:
    pattern = "".join(parts)
    pattern = f"(?:{pattern}|live)" if len(parts) % 2 else pattern
    if re.search(pattern, text, re.I):
        assert may_match(literals(pattern), text.lower())


@given(st.lists(st.lists(st.text("abcё ", max_size=5), max_size=3).map(tuple)), st.text("abcdёABKı ", max_size=20))
def test_the_index_finds_the_patterns_that_a_look_at_each_would(needs: list[tuple[str, ...]], text: str) -> None:
    lower = text.lower()
    odd = bool(ODD.intersection(text))
    wanted = [at for at, texts in enumerate(needs) if odd or not texts or any(need in lower for need in texts)]
    assert Index(needs).worth(text) == wanted
