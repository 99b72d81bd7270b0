"""Dates named in questions: examples as data, and laws of fitting."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.recall.dates import Span, fits, named_dates

TODAY = date(2024, 6, 14)  # a Friday
CASES = [
    [part.strip() for part in line.split("->")]
    for line in Path(__file__).with_name("dates.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("#")
]


def written(span: Span) -> str:
    first, last = date.fromordinal(span.first), date.fromordinal(span.last)
    if span.yearly:
        return f"every {first:%m-%d}..{last:%m-%d}"
    return f"{first}" if first == last else f"{first}..{last}"


@pytest.mark.parametrize(("question", "expected"), CASES)
def test_a_named_date_is_read(question: str, expected: str) -> None:
    found = "; ".join(written(span) for span in named_dates(question, TODAY.toordinal()))
    assert (found or "none") == expected


@pytest.mark.parametrize("question", ["yesterday", "last week", "две недели назад", "в прошлую пятницу"])
def test_what_leans_on_today_needs_today(question: str) -> None:
    assert named_dates(question) == ()


@given(st.text(max_size=80), st.one_of(st.none(), st.integers(1, 3_000_000)))
def test_any_text_is_read_without_error(text: str, today: int | None) -> None:
    assert all(span.first <= span.last for span in named_dates(text, today))


@given(
    st.lists(st.integers(700_000, 740_000), min_size=1, max_size=20), st.integers(700_000, 740_000), st.integers(0, 400)
)
def test_a_day_inside_fits_wholly_and_others_less(days: list[int], first: int, size: int) -> None:
    found = fits(np.array(days), [Span(first, first + size)])
    inside = np.array([first <= day <= first + size for day in days])
    assert (found[inside] == 1).all()
    assert ((found[~inside] >= 0) & (found[~inside] < 1)).all()


@given(st.lists(st.integers(700_000, 740_000), max_size=20))
def test_age_alone_never_counts(days: list[int]) -> None:
    """Without a date in the question no day fits better than another."""
    assert (fits(np.array(days, np.int64), ()) == 0).all()


def test_a_month_without_a_year_is_any_years_month() -> None:
    days = np.array([date(year, 5, 10).toordinal() for year in (2021, 2022, 2023)] + [date(2022, 11, 1).toordinal()])
    assert fits(days, named_dates("in May")).tolist() == [1, 1, 1, 0]


def test_said_shortly_after_fits_better_than_said_long_after() -> None:
    day = date(2023, 5, 31).toordinal()
    near, far, before = fits(np.array([day + 2, day + 10, day - 32]), named_dates("in May 2023"))
    assert 1 > near > far > 0
    assert before < near
