"""An estimate of token counts that needs no vocabulary at hand and is never too low by more than its margin.

The rule: for any text, the larger of the real counts of cl100k_base and o200k_base is at most `count * (1 + MARGIN)`.
It is an upper bound in the making: a bound is computed and then divided by `1 + MARGIN`, so that the plain number lies
nearer to the truth. Each part of a text is priced by what tokenizers of this kind do with it:

* letters of ASCII and of Russian, by runs, with a price for each pair of letters that words seldom hold. Prose has
  few such pairs; random letters, hex, base64 and rare names have many, and need many more tokens;
* every other character by a small table, at what it takes when it stands alone;
* digits by threes; punctuation one by one, less for repetition; spaces only where they do not melt into a word.

The prices were fitted as a linear program: the least total over prose such that no text of a large mixed set (prose in
many languages, chats, names, code, JSON, base64, hex, tables, emoji, random characters of every block, whole and in
windows of 5 to 200 characters) exceeds its bound. Where it ends: a few letters and marks repeated without end ("ла",
two hundred times) can exceed it, one character repeated cannot. What it costs: prose that o200k_base knows well (Hindi,
Arabic, Hebrew, Greek, Georgian) is priced as cl100k_base sees it, two to five times higher than o200k_base would.
"""

from __future__ import annotations

import functools
import math
import re
from collections import Counter
from operator import add

from nitka.estimate_tables import CYRILLIC, LATIN, ONE, THREE, TWO

NAME = "estimate-1"
MARGIN = 0.25


def count(text: str) -> int:
    """About how many tokens a text has; 0 for an empty one. Pure and linear in the text; takes lone surrogates."""
    if not text:
        return 0
    bound = _START + _latin(text) + _russian(text) + _others(text) + _marks(text) + _spaces(text)
    return math.ceil(bound / (1 + MARGIN))


_START = 3.0  # short texts have no room for the law of large numbers


def _unlike(groups: str, letters: str) -> frozenset[str]:
    """The pairs of these letters that words seldom hold."""
    known = {group[0] + letter for group in groups.split() for letter in group[1:]}
    return frozenset(first + letter for first in letters for letter in letters) - known


_WORDS = re.compile(r"[A-Za-z]+")
_HUMPS = re.compile(r"[a-z](?=[A-Z])|[A-Z](?=[A-Z][a-z])")
_RARE = _unlike(LATIN, "abcdefghijklmnopqrstuvwxyz")
_RUSSIAN = re.compile(r"[А-Яа-яЁё]+")
_CAPITALS = re.compile(r"[А-ЯЁ]")
_DOUBLE = re.compile(r"[ЁХШЩЪЫЬЮ]")  # capitals that take two tokens
_RARE_RUSSIAN = _unlike(CYRILLIC, "абвгдежзийклмнопрстуфхцчшщъыьэюяё")
_TRIPLES = re.compile(r"(?=([A-Za-zА-Яа-яЁё])\1\1)")
_PLAIN = re.compile(r"[\x00-\x7fА-Яа-яЁё]+")
_DIGITS = re.compile(r"[0-9]+")
_SINGLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_MARKS = re.compile(r"([!-/:-@\[-`{-~])(?:\1)*")
_ALONE = re.compile(r"(?<=[!-&(-/:-@\[-`{-~0-9])[A-Za-z](?![A-Za-z '])")  # a letter that melts into nothing
_DRAWN = frozenset("-=.*_#")  # lines are drawn with these, and the vocabularies hold long runs of them
_BLANKS = re.compile(r" {2,}|\t+|\n+")
_LONE = re.compile(r"\s(?=[^\x00-\x7fА-Яа-яЁё])|(?<! ) (?=[0-9])|(?<! ) (?=\s|\Z)")


def _rare(text: str, pairs: frozenset[str]) -> int:
    small = text.lower()
    return sum(map(pairs.__contains__, map(add, small, small[1:])))


def _over(words: list[str], length: int) -> int:
    """Letters beyond a length: of long words, and of what is no word."""
    return sum(len(word) - length for word in words if len(word) > length)


def _latin(text: str) -> float:
    words = _WORDS.findall(text)
    long = 0.33 * _over(words, 6) + 0.4 * _over(words, 20)
    return 0.91 * len(words) + long + 0.82 * len(_HUMPS.findall(text)) + 0.63 * _rare(text, _RARE)


def _russian(text: str) -> float:
    words = _RUSSIAN.findall(text)
    if not words:
        return 0.0
    letters, capitals = sum(map(len, words)), len(_CAPITALS.findall(text))
    rare, double = _rare(text, _RARE_RUSSIAN), len(_DOUBLE.findall(text))
    return (
        0.83 * len(words)
        + 0.25 * (letters - capitals)
        + 0.73 * capitals
        + double
        + 0.84 * rare
        + 0.5 * _over(words, 12)
    )


def _others(text: str) -> float:
    """Every character that is neither ASCII nor Russian, as it stands alone."""
    rest = _PLAIN.sub("", text)
    return float(sum(price(char) * times for char, times in Counter(rest).items()))


def _marks(text: str) -> float:
    total = 1.13 * sum(-(-len(run) // 3) for run in _DIGITS.findall(text)) + 1.15 * len(_SINGLE.findall(text))
    total += 0.3 * len(_ALONE.findall(text)) + 0.6 * len(_TRIPLES.findall(text))
    for run in _MARKS.finditer(text):
        more = run.end() - run.start() - 1
        total += 0.81 + more * (0.2 if run[1] in _DRAWN else 0.5)
    return total


def _spaces(text: str) -> float:
    runs = sum(0.95 + (len(run) - 1) * (0.02 if run[0] == " " else 0.1) for run in _BLANKS.findall(text))
    return runs + len(_LONE.findall(text))


@functools.cache
def _table() -> dict[str, int]:
    ranges = [(THREE, 3), (TWO, 2)]
    table = {chr(code): tokens for spans, tokens in ranges for first, last in spans for code in range(first, last + 1)}
    return table | dict.fromkeys(ONE, 1)


def price(char: str) -> int:
    """How many tokens a character outside ASCII takes alone, at most. A lone surrogate counts as U+FFFD."""
    return 1 if "\ud800" <= char <= "\udfff" else _table().get(char) or min(len(char.encode()), 4)
