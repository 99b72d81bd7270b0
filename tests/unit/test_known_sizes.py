"""What a count that remembers must never change: the sizes, and how much it holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nitka.request.blocks import QUOTE, one_line, quote_lines
from nitka.tokens import REMEMBERED_CHARS, KnownSizes, count_label
from nitka.vault.keychain import Recent

TEXTS = st.lists(st.text(max_size=30) | st.integers(0, 20_000).map("x".__mul__), max_size=40)


@given(TEXTS)
def test_sizes_are_those_of_the_count_in_any_order_of_asking(texts):
    known = KnownSizes(len)
    assert [known(text) for text in texts + texts[::-1]] == [len(text) for text in texts + texts[::-1]]


@given(TEXTS)
def test_no_more_than_the_stated_characters_are_held(texts):
    known = KnownSizes(len)
    for text in texts:
        known(text)
    assert sum(map(len, known._known)) == known._chars <= REMEMBERED_CHARS


def test_a_text_is_counted_once_while_it_is_remembered():
    asked: list[str] = []
    known = KnownSizes(lambda text: asked.append(text) or len(text))  # type: ignore[func-returns-value]
    assert [known("a"), known("b"), known("a"), known("b")] == [1, 1, 1, 1]
    assert asked == ["a", "b"]


def test_each_owner_remembers_apart_and_anew_for_another_count():
    one, other = Recent(), Recent()
    assert one.counting(len) is one.counting(len)
    assert one.counting(len) is not other.counting(len)
    assert one.counting(str.__len__)("abc") == 3


def test_labels_are_remembered_under_the_plain_count_for_everybody():
    """A label must not be kept once for each owner: that table would never forget them."""
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return len(text)

    assert count_label(KnownSizes(count), "label") == count_label(KnownSizes(count), "label") == 5
    assert asked == ["label"]


@given(st.lists(st.text(alphabet=" ab\n\t\u00a0\x00<[|\u2028ж", max_size=8), max_size=6))
def test_lines_quoted_at_once_are_those_quoted_one_by_one(lines):
    """The quick way of a summary gives the same bytes as the careful one, or is not taken."""
    assert quote_lines(lines) == "\n".join(QUOTE + clean for clean in map(one_line, lines) if clean)
