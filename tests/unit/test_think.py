"""Reasoning is taken out of answers, however they are cut into pieces."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nitka.models.think import HELD, ThinkFilter, strip_think

CASES = {
    "no reasoning at all": "no reasoning at all",
    "<think>hm</think>Hello": "Hello",
    "<think>\nhm\n</think>\n\nHello": "Hello",
    "\n<think>hm</think>\n\nHello\n": "\nHello\n",
    "One <think>hm</think> two": "One two",
    "One<think>hm</think> two": "One two",
    "One<think>hm</think>two": "Onetwo",
    "<THINK>hm</Think>Да": "Да",
    '<think budget="3">hm</think >Да': "Да",
    "<thinking>a</thinking>b<reasoning\n>c</reasoning>d": "bd",
    "<think>a<think>b</think>c</think>d": "d",
    "<think>a<thinking>b</thinking>c</think>d": "d",
    "<think/>a<think />b": "ab",
    "before<think>never closed": "before",
    "<think></think>": "",
    "a <thinker>b</thinker> <thin> <think": "a <thinker>b</thinker> <thin> <think",
    "if a <b and c> d, 1<2, x</y, <": "if a <b and c> d, 1<2, x</y, <",
    "Write `<think>` and `</think>` around it": "Write `<think>` and `</think>` around it",
    "``a ` <think>`` b": "``a ` <think>`` b",
    "```xml\n<think>\nplan\n</think>\n```\nand<think>x</think> so": "```xml\n<think>\nplan\n</think>\n```\nand so",
    "~~~~\n<think>\n~~~\n</think>\n~~~~\nx": "~~~~\n<think>\n~~~\n</think>\n~~~~\nx",
    "```<think>``` is a tag": "```<think>``` is a tag",
    "A 5` pole <think>hm\nhm</think>stands": "A 5` pole stands",
    "It`s <think>hm</think>late": "It`s late",
    "<think>I must end with `</think>` here</think>Done": "Done",
    "<think>like `<think>`, once</think>Done": "Done",
    "<think>```\ncode that was never closed\n</think>Done": "Done",
    "<think>a ` b</think>Done": "Done",
    "hm\n</think>\n\nHello": "Hello",
    "hm <think>a</think> hm</think>Hello": "Hello",
    "It is `</think>` that ends it": "It is `</think>` that ends it",
    "all of it was reasoning</think>": "",
}
"""What a whole text comes down to."""

PARTS = [
    *"<>/`~ \n\tab",
    "think",
    "<think>",
    "</think>",
    "<thinking>",
    "</reasoning>",
    "<think x='1'>",
    "<think/>",
    "```",
    "~~~",
    "``",
]
TEXTS = st.lists(st.sampled_from([*PARTS, "word " * 30, "да", "\r\n", "   "]), max_size=40).map("".join)


def run(pieces: list[str]) -> str:
    reading = ThinkFilter()
    return "".join([*map(reading.feed, pieces), reading.finish()])


def cut(text: str, places: list[int]) -> list[str]:
    marks = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[a:b] for a, b in zip(marks, marks[1:], strict=False)]


@pytest.mark.parametrize("text", CASES)
def test_a_whole_text_loses_its_reasoning_and_nothing_else(text: str) -> None:
    assert strip_think(text) == CASES[text]


@pytest.mark.parametrize("text", CASES)
def test_a_known_text_gives_the_same_in_two_pieces_cut_anywhere_and_letter_by_letter(text: str) -> None:
    assert {run([text[:at], text[at:]]) for at in range(len(text))} == {run([text])} == {run(list(text))}


@settings(max_examples=600)
@given(TEXTS, st.lists(st.integers(0, 10_000), max_size=12))
@example("`<think>" + "x" * 120 + "`", [120])
def test_a_text_cut_anywhere_gives_the_same(text: str, places: list[int]) -> None:
    assert run(cut(text, places)) == run([text]) == run(list(text))


@given(TEXTS)
def test_no_more_than_a_tag_is_held_back_and_nothing_is_taken_back(text: str) -> None:
    reading, handed, whole = ThinkFilter(), "", run([text])
    for end, char in enumerate(text, 1):
        handed += reading.feed(char)
        now = run([text[:end]])
        assert whole.startswith(handed) and now.startswith(handed) and len(now) - len(handed) < HELD
    assert handed + reading.finish() == whole


@given(st.text(st.characters(codec=None)))
def test_a_text_without_tags_comes_back_as_it_is(text: str) -> None:
    assert strip_think(text) == run(list(text)) == text


WORDS = st.text(st.sampled_from("abc де\n.,<>/`"), max_size=30)


@given(WORDS.filter(lambda text: "`" not in text), st.text(st.sampled_from("abc\n <`~/"), max_size=60), WORDS)
def test_what_stands_between_the_tags_does_not_matter(before: str, thought: str, after: str) -> None:
    expected = strip_think(f"{before}<think>x</think>{after}")
    assert strip_think(f"{before}<think>{thought}</think>{after}") == expected or thought.endswith("`")


@given(WORDS.filter(lambda text: "`" not in text), st.text(st.sampled_from("secret\n "), max_size=60))
def test_reasoning_that_was_cut_off_is_gone_whole(before: str, thought: str) -> None:
    assert strip_think(f"{before}<think>{thought}") == before


@given(st.lists(st.integers(0, 10_000), max_size=5))
def test_what_a_stream_handed_out_can_be_stripped_again(places: list[int]) -> None:
    """Where the opening tag stood in the prompt, the pieces still tell what was reasoning."""
    handed = run(cut("secret, secret\n</think>\nThe answer", places))
    assert strip_think(handed) == "The answer"
