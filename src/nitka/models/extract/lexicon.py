"""Words by what they do: one data file a language, looked up in one pass over the tokens.

A lexicon never says what a text is about. It knows function words, dates, numbers and the marks of speech acts
(decided, promised, left open, corrected); everything else is content. A language without a file is read with
`NEUTRAL`: digits, capitals, quotes and punctuation.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "ru", "de", "fr", "es", "pt", "zh")
PREFIX = 3  # entries that end in * are found by this many first letters


@dataclass(frozen=True, slots=True)
class Entry:
    """One word or phrase of a list. A word that ends in `*` in the file stands for all that begin so."""

    words: tuple[tuple[str, bool], ...]  # (word, the rest is free)
    tag: str

    def matches(self, lows: Sequence[str], at: int) -> bool:
        if at + len(self.words) > len(lows):
            return False
        return all(
            lows[at + i].startswith(word) if free else lows[at + i] == word for i, (word, free) in enumerate(self.words)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The lists of one language, indexed by the first word of each entry."""

    code: str
    texts: Mapping[str, str]
    suffixes: tuple[str, ...]  # longest first
    abbreviations: frozenset[str]
    exact: Mapping[str, tuple[Entry, ...]]
    prefixed: Mapping[str, tuple[Entry, ...]]
    function: frozenset[str]
    nouns_capitalised: bool
    figures: Mapping[str, str]  # beginnings of number words, and the figure
    weak: tuple[str, ...]  # endings of words that describe: the first to be left out
    imperative: tuple[str, ...]  # endings of a command; with a negation before it, something that must not be done

    def at(self, lows: Sequence[str], at: int) -> list[Entry]:
        """Every entry that begins at this word."""
        low = lows[at]
        found = [entry for entry in self.exact.get(low, ()) if len(entry.words) == 1 or entry.matches(lows, at)]
        found += [entry for entry in self.prefixed.get(low[:PREFIX], ()) if entry.matches(lows, at)]
        return found

    def stem(self, low: str) -> str:
        """A rough stem: the longest known ending off, three letters left at least."""
        if len(low) <= PREFIX or not low.isalpha():
            return low.removesuffix("'s").removesuffix("’s")
        for suffix in self.suffixes:
            if low.endswith(suffix) and len(low) - len(suffix) >= PREFIX:
                return low[: -len(suffix)]
        return low

    def figure(self, low: str) -> str | None:
        """The figure a number word begins with, the longest beginning first; None for any other word."""
        return next((self.figures[low[:size]] for size in range(len(low), 2, -1) if low[:size] in self.figures), None)


def fold(text: str) -> str:
    """Lower case, and the letters that writers use for one another made one."""
    return text.lower().replace("ё", "е").replace("’", "'")


@cache
def lexicon(code: str) -> Lexicon:
    """The lexicon of a language; one that has no file gets the neutral one."""
    if code not in LANGUAGES:
        return NEUTRAL
    source = files(__package__).joinpath("languages").joinpath(f"{code}.toml")
    return _build(code, tomllib.loads(source.read_text(encoding="utf-8")))


def _build(code: str, data: Mapping[str, Any]) -> Lexicon:
    lists: dict[str, list[str]] = {**data.get("words", {}), **data.get("acts", {})}
    exact: dict[str, list[Entry]] = {}
    prefixed: dict[str, list[Entry]] = {}
    for tag, phrases in lists.items():
        for phrase in phrases:
            words = tuple((fold(word.rstrip("*")), word.endswith("*")) for word in phrase.split())
            entry = Entry(words, tag)
            first, free = words[0]
            (prefixed if free else exact).setdefault(first[:PREFIX] if free else first, []).append(entry)
    forms = data.get("forms", {})
    return Lexicon(
        code=code,
        texts=data.get("texts", {}),
        suffixes=tuple(sorted(map(fold, forms.get("suffixes", ())), key=len, reverse=True)),
        abbreviations=frozenset(forms.get("abbreviations", ())),
        exact={word: tuple(entries) for word, entries in exact.items()},
        prefixed={word: tuple(entries) for word, entries in prefixed.items()},
        function=frozenset(fold(word) for word in (*lists.get("function", ()), *lists.get("link", ()))),
        figures={fold(word): str(figure) for word, figure in data.get("figures", {}).items()},
        weak=tuple(forms.get("weak", ())),
        imperative=tuple(forms.get("imperative", ())),
        nouns_capitalised=bool(forms.get("nouns_capitalised", False)),
    )


NEUTRAL = _build("", {})


def language(text: str) -> str:
    """The code of the language whose function words the text uses most; by script where the script decides. Empty
    if unknown.
    """
    sample = text[:2000]
    cyrillic = sum("а" <= c <= "я" or c == "ё" for c in sample.lower())
    han = sum("\u4e00" <= c <= "\u9fff" or "\u3040" <= c <= "\u30ff" for c in sample)
    letters = sum(c.isalpha() for c in sample) or 1
    if han * 4 > letters:
        return "zh"
    if cyrillic * 2 > letters:
        return "ru"
    return _latin(fold(sample).split())


def _latin(words: Sequence[str]) -> str:
    bare = [word.strip('.,;:!?()"«»') for word in words]
    scores = {code: sum(word in lexicon(code).function for word in bare) for code in LANGUAGES[:1] + LANGUAGES[2:-1]}
    best = max(scores, key=lambda code: scores[code])
    return best if scores[best] else ""
