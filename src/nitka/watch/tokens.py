"""Tokens: words, numbers, punctuation, links, each with its place in the message.

A token's `form` is what the lexicons are asked for. Letters spelled apart ("w.h.a.t.s") are joined, letters of two
scripts in one word are folded to the script of the majority. Repairs that need a vocabulary (`repairs`) are proposed
here and chosen by the lexicon.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from nitka.watch.normalise import Clean

WORD, NUMBER, MARK, LINK, MAIL = "w", "n", "p", "u", "e"

_TOKEN = re.compile(
    r"(?P<u>(?:https?://|www\.)\S+)"
    r"|(?P<e>[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6})"
    r"|(?P<a>(?<!\w)[^\W\d_](?:[.\-_*·•][^\W\d_]){2,40}(?!\w)|(?<!\w)[^\W\d_](?: [^\W\d_]){3,40}(?!\w))"
    r"|(?P<n>\d+(?:[.,]\d+)*(?![^\W_]))"
    r"|(?P<w>[@$]{0,2}\w[\w@$]*(?:'[^\W\d_]+)?)"
    r"|(?P<p>(?!(?<=\w)-(?=\w))[^\w\s]|\n)"
)
_PLAIN_TOKEN = re.compile(
    r"(?P<n>\d+(?:[.,]\d+)*(?![^\W_]))|(?P<w>\w+(?:'[^\W\d_]+)?)|(?P<p>(?!(?<=\w)-(?=\w))[^\w\s]|\n)"
)
_ODD = re.compile(r"[@$]|https?:|www\.|(?<!\w)[^\W\d_][ .\-_*·•][^\W\d_](?:[ .\-_*·•]|\Z)")
_LATIN = re.compile("[a-z]")
_CYRILLIC = re.compile("[а-я]")
_OWN_LATIN = re.compile("[bdf-nq-wz]")
_OWN_CYRILLIC = re.compile("[бвгдж-нпт-фц-я]")
_TO_CYRILLIC = str.maketrans("aceopxykmtbhnu", "асеорхукмтвнпи")
_TO_LATIN = str.maketrans("асеорхукмтвніїѕјһ", "aceopxykmtbhiisjh")
_LETTERS_LATIN = str.maketrans("013457@$", "oieastas")
_LETTERS_CYRILLIC = str.maketrans("013460@", "оизчбоа")
STRETCH = re.compile(r"(.)\1{2,}")


class Token(NamedTuple):
    """One token. `start` and `end` are code points of the message."""

    form: str
    kind: str
    start: int
    end: int


_new: Callable[[tuple[str, str, int, int]], Token] = partial(tuple.__new__, Token)  # the same as Token(*…), sooner


def tokenise(clean: Clean) -> list[Token]:
    """Cut the clean text into tokens, in order. Linear: every repetition is bounded or possessive by construction."""
    text = clean.text
    pattern = _TOKEN if _ODD.search(text) else _PLAIN_TOKEN
    mixed = not text.isascii() and _LATIN.search(text) is not None
    if clean.at is None and pattern is _PLAIN_TOKEN and not mixed:
        return [_new((m.group(), m.lastgroup or MARK, *m.span())) for m in pattern.finditer(text)]
    return [_token(m, *clean.span(m.start(), m.end())) for m in pattern.finditer(text)]


def _token(match: re.Match[str], start: int, end: int) -> Token:
    kind, form = match.lastgroup or MARK, match.group()
    if kind == "a":
        return Token(_one_script("".join(c for c in form if c.isalnum())), WORD, start, end)
    if kind == WORD and not form.isascii():
        form = _one_script(form)
    return Token(form, kind, start, end)


def _one_script(word: str) -> str:
    latin, cyrillic = len(_LATIN.findall(word)), len(_CYRILLIC.findall(word))
    if not latin or not cyrillic:
        return word
    twins = sum(c in "aceopxyасеорху" for c in word)  # letters of one shape prove nothing, if any others are there
    if twins < len(word):
        latin, cyrillic = len(_OWN_LATIN.findall(word)), len(_OWN_CYRILLIC.findall(word))
    return word.translate(_TO_CYRILLIC) if cyrillic >= latin else word.translate(_TO_LATIN)


def repairs(word: str) -> Iterator[str]:
    """Plainer spellings of a word no lexicon knows, likeliest first: letters for digits, stretched letters
    shortened.
    """
    if len(word) > 40:
        return
    if word.endswith("'s"):
        yield word[:-2]
    plain = word
    if not word.isalpha() and any(c.isalpha() for c in word):
        table = _LETTERS_CYRILLIC if _CYRILLIC.search(word) else _LETTERS_LATIN
        plain = word.translate(table)
        yield plain
        if table is _LETTERS_LATIN and "1" in word:
            yield word.replace("1", "l").translate(table)
    if STRETCH.search(plain):
        yield STRETCH.sub(r"\1", plain)
        yield STRETCH.sub(r"\1\1", plain)
