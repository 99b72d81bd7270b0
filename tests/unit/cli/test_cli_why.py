"""The receipt as a table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from nitka.cli.texts import ENGLISH, RUSSIAN
from nitka.cli.why import BAR, bar, receipt_table
from nitka.types import Entry, Receipt


def drawn(receipt: Receipt, texts: Any) -> str:
    console = Console(width=120, color_system=None)
    with console.capture() as capture:
        console.print(receipt_table(receipt, texts))
    return capture.get()


@given(st.integers(0, 10_000), st.integers(1, 10_000))
def test_a_bar_is_to_scale(tokens: int, largest: int) -> None:
    """Never longer than the whole, never nothing for something, and within an eighth of a character."""
    tokens = min(tokens, largest)
    eighths = sum(" ▏▎▍▌▋▊▉█".index(char) for char in bar(tokens, largest))
    assert eighths == pytest.approx(8 * BAR * tokens / largest, abs=1)
    assert bool(eighths) == bool(tokens)


LEFT_OUT = Entry(layer="recall", outcome="left_out", tokens=0, count=3, why="no room")
GIST = Entry(layer="summary", outcome="gist", tokens=9, first=0, last=23, why="4 lines by their gist: no room")
NOTE = "summary lines were removed by forgetting and are not yet written anew"
RECEIPT = Receipt(budget=100, room=80, counter="c", entries=(GIST, LEFT_OUT), head=30, cursor=24, notes=(NOTE,))


def test_what_was_left_out_is_told_with_its_reason() -> None:
    """Nothing is left out in silence (law 6)."""
    text = drawn(RECEIPT, ENGLISH)
    assert "left out (3): no room" in text
    assert "0–23" in text
    assert NOTE in text
    assert "The summary stands for messages 0–23." in text


def test_reasons_are_said_in_russian() -> None:
    """The receipt's own reasons are English; none of them is left so."""
    text = drawn(RECEIPT, RUSSIAN)
    assert "не вошло (3): нет места" in text
    assert "строк в краткой форме: 4; нет места" in text
    assert "no room" not in text
    assert "forgetting" not in text
