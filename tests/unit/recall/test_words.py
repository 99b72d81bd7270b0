"""Laws of folding, words and terms."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.recall import Whole, installed
from nitka.layers.recall.words import STEM, fold, function_words, keys, language_of, terms, words

SCRIPTS = st.sampled_from(
    [
        "Latin text with words ",
        "Слова по-русски, ёлка ",
        "words и слова mixed ",
        "漢字かな交じり文 ",
        "한국어 문장 ",
        "ข้อความภาษาไทย ",
        "हिन्दी वाक्य ",
        "العربية ٣٤ ",
        "café Zürich ",
        "!? … 🙂 \u200d ",
        "１２３ x9 ",
    ]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(SCRIPTS, max_size=5).map("".join))


@given(TEXTS)
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold(fold(text)) == fold(text)


@given(TEXTS)
def test_composed_and_decomposed_texts_have_the_same_terms(text: str) -> None:
    assert terms(unicodedata.normalize("NFC", text), Whole()) == terms(unicodedata.normalize("NFD", text), Whole())


@given(TEXTS)
def test_terms_are_the_same_every_time_and_never_empty(text: str) -> None:
    found = terms(text, installed())
    assert found == terms(text, installed())
    assert all(found)


@given(TEXTS)
def test_no_term_is_longer_than_a_stem_unless_it_has_a_digit(text: str) -> None:
    assert all(len(term) <= STEM or any(char.isdigit() for char in term) for term in terms(text, installed()))


@given(TEXTS, TEXTS)
def test_signs_between_texts_do_not_make_terms(one: str, other: str) -> None:
    """What is not a letter or digit only divides."""
    assert words(f'{one} "*()<>{{}}; {other}') == words(one) + words(other)


def test_case_does_not_matter() -> None:
    assert terms("Переезд в ПЕТЕРБУРГ", installed()) == terms("переезд в петербург", installed())


@pytest.mark.parametrize("code", [code for code in function_words() if "." not in code])
def test_a_text_of_function_words_has_no_terms(code: str) -> None:
    """Every listed word disappears, as long as the text is recognised as that language."""
    listed = sorted(function_words()[code])
    if code in ("zh", "ja", "ko"):
        assert [terms(word, Whole()) for word in listed] == [[]] * len(listed)
    else:
        assert language_of(words(" ".join(listed))) == code
        assert terms(" ".join(listed), Whole()) == []


@pytest.mark.parametrize("code", [code for code in function_words() if code.endswith((".i", ".you"))])
def test_words_for_oneself_and_the_other_are_function_words(code: str) -> None:
    assert function_words()[code] <= function_words()[code.split(".")[0]]


def test_an_english_son_is_not_taken_for_a_spanish_verb() -> None:
    assert "son" in terms("My son plays the cello", installed())


def test_keys_are_stable_across_processes() -> None:
    """These numbers stand in stored segments: they may never change."""
    assert keys(["rye", "мука"]).tolist() == [KEY_OF_RYE, KEY_OF_MUKA]


def test_a_surrogate_alone_is_no_reason_to_fail() -> None:
    assert keys(terms("broken \ud800 text", installed())).size == 2


KEY_OF_RYE, KEY_OF_MUKA = 640093779, 581443775


# Every letter of these scripts, and those a mark or a dotless i turn into something else.
PLAIN = "".join(map(chr, [*range(0x20, 0x300), *range(0x370, 0x590), *range(0x2000, 0x2070)])) + "е\u0308и\u0306İıẞ"


@given(st.text(alphabet=PLAIN, max_size=60))
def test_the_short_way_through_plain_scripts_finds_the_same_words(text: str) -> None:
    """What Python's own letters and digits give is what Unicode's classes give."""
    marked = words(f"{text} \u0e01")  # a Thai letter takes the long way
    assert words(text) == marked[:-1]


def test_every_character_of_plain_scripts_is_a_letter_or_digit_for_both() -> None:
    for char in PLAIN:
        assert words(f"{char} \u0e01")[:-1] == words(char), hex(ord(char))
