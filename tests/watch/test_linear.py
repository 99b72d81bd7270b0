"""The work on a message grows with its length and with nothing else, whatever is said in it again and again."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nitka.watch import clauses, parse
from nitka.watch.data import default
from nitka.watch.engine import read
from nitka.watch.memory import Memory

SHORT, TIMES = 3_000, 4  # characters; how much longer the other text is
MARKS = ("1. ", "24. 12. ", "1.\n", "1. хлеб\n2. молоко\n", "«", "(", "$", "?", "...", ", ", "- ", "a@b.ru ", "13 ")
SAID = ("I tell your mom. ", "скинь фото, ", "is she home? ", "if you don't send me, ", "мне 13, ", "don't ")
KNOWN = tuple(sorted(default().lexicon(("en", "ru")).known))


def steps(text: str) -> int:
    """Calls made while a text is parsed, of Python and of C."""
    count = 0

    def counted(frame: FrameType, event: str, arg: Any) -> None:
        nonlocal count
        count += 1

    sys.setprofile(counted)
    try:
        parse(text, language="en|ru")
    finally:
        sys.setprofile(None)
    return count


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Words are read when they are first met."""
    for unit in (*MARKS, *SAID):
        parse(unit * 3, language="en|ru")


@given(st.lists(st.sampled_from((*MARKS, *SAID, *KNOWN)), min_size=1, max_size=3))
@settings(max_examples=60)
@example(["send"])
@example(["скинь", "фото"])
@example(["1. "])
@example(["24. 12. "])
def test_a_text_four_times_as_long_takes_about_four_times_the_steps(units: list[str]) -> None:
    unit = " ".join(units) + " "
    repeats = SHORT // len(unit) + 1
    parse(unit * 2, language="en|ru")
    short = steps(unit * repeats)
    assert steps(unit * repeats * TIMES) < short * TIMES * 1.3


@pytest.mark.parametrize("unit", (*MARKS, *SAID, "send ", "отправь "))
def test_no_clause_is_longer_than_the_bound(unit: str) -> None:
    """Work inside C (a slice, a union) is no call, so the counter above does not see it: the bound holds it."""
    watch = default()
    seen, _ = read(watch, unit * 500, watch.lexicon(("en", "ru")), Memory())
    assert all(c.end - c.start <= clauses.LONGEST for s in seen.sentences for c in s.clauses)
