"""Words by what they do: one data file a language, looked up in one pass over the tokens.

A lexicon never says what a text is about. It knows function words, dates, numbers and the marks of speech acts
(decided, promised, left open, corrected); everything else is content. A language without a file is read with
`NEUTRAL`: digits, capitals, quotes and punctuation.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

LANGUAGES = ("en", "ru", "de", "fr", "es", "pt", "zh")
SPACED = ("en", "de", "fr", "es", "pt")  # told apart by their function words
CYRILLIC = re.compile("[а-яёА-ЯЁіїєґІЇЄҐ]")
LATIN = re.compile("[a-zA-ZÀ-ɏ]")
HAN = re.compile("[\u3040-\u30ff\u4e00-\u9fff]")
KANA = re.compile("[\u3040-\u30ff]")
FOREIGN = re.compile("[\u0402-\u040f\u0452-\u045f\u0490-\u04ff]", re.I)  # Cyrillic letters that Russian lacks
CERTAIN = 0.4  # share of function words in a text of a language; in a related one it is a third
BARE = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)?")
GIST_SIZE = 9.5  # tokens, about; a language in which words cost more asks for less
PREFIX = 3  # entries that end in * are found by this many first letters


@dataclass(frozen=True, slots=True)
class Phrase:
    """An entry of several words. A word that ends in `*` in the file stands for all that begin so."""

    words: tuple[tuple[str, bool], ...]  # (word, the rest is free)
    tag: str

    def stands(self, lows: Sequence[str], at: int) -> bool:
        """Whether it begins at this word."""
        if at + len(self.words) > len(lows):
            return False
        for low, (word, free) in zip(lows[at : at + len(self.words)], self.words, strict=True):
            if not (low.startswith(word) if free else low == word):
                return False
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """The lists of one language. Single words and phrases are kept apart, since most lookups end at the single word."""

    code: str
    texts: Mapping[str, str]
    stemmed: re.Pattern[str]  # group 1 is the stem
    abbreviations: frozenset[str]
    single: Mapping[str, tuple[str, ...]]  # tags of a word
    starting: Mapping[str, tuple[tuple[str, str], ...]]  # by the first letters: beginnings of words, and their tags
    # by the first word, or by its first letters and "*"; then by the first letters of the second
    phrases: Mapping[str, Mapping[str, tuple[Phrase, ...]]]
    heads: frozenset[str]  # the first letters of every entry: most words have none, and this tells it at once
    parts: Mapping[str, tuple[str, ...]]  # by tag, where words are not set apart by spaces: what is looked for inside
    function: frozenset[str]
    talks: bool  # knows the words of talk itself, without which a plain statement cannot be told from small talk
    nouns_capitalised: bool
    dotted_ordinals: bool  # "4. Juni"
    figures: Mapping[str, str]  # beginnings of number words, and the figure
    gist: float  # size of a gist in tokens, about
    people: str  # the stem of what a collective numeral counts («шестеро»); empty where there are none
    weak: tuple[str, ...]  # endings of words that describe: the first to be left out
    own: tuple[str, ...]  # endings by which a promise is the speaker's own ("напомню"); see also the words "own"
    told: tuple[str, ...]  # endings of a verb that only opens a report before a colon ("Уточнила: …")
    imperative: tuple[str, ...]  # endings of a command; with a negation before it, something that must not be done

    def at(self, lows: Sequence[str], at: int) -> list[tuple[str, int]]:
        """Every entry that begins at this word: its tag, and its number of words."""
        low = lows[at]
        head = low[:PREFIX]
        found = [(tag, 1) for tag in self.single[low]] if low in self.single else []
        for start, tag in self.starting.get(head, ()):
            if low.startswith(start):
                found.append((tag, 1))
        for key in (low, head + "*"):
            if key in self.phrases and at + 1 < len(lows):
                for phrase in self.phrases[key].get(lows[at + 1][:PREFIX], ()):
                    if phrase.stands(lows, at):
                        found.append((phrase.tag, len(phrase.words)))
        if self.parts:
            found += [(tag, 1) for tag, inner in self.parts.items() if any(part in low for part in inner)]
        return found

    def stem(self, low: str) -> str:
        """A rough stem: the longest known ending off, three letters left at least."""
        found = self.stemmed.match(low)
        return found[1] if found else low

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
    single: dict[str, list[str]] = {}
    starting: dict[str, list[tuple[str, str]]] = {}
    phrases: dict[str, dict[str, list[Phrase]]] = {}
    for tag, entry in ((tag, entry) for tag, entries in lists.items() for entry in entries):
        words = tuple((fold(word.rstrip("*")), word.endswith("*")) for word in entry.split())
        first, free = words[0]
        if len(words) > 1:
            following = phrases.setdefault(first[:PREFIX] + "*" if free else first, {})
            following.setdefault(words[1][0][:PREFIX], []).append(Phrase(words, tag))
        elif free:
            starting.setdefault(first[:PREFIX], []).append((first, tag))
        else:
            single.setdefault(first, []).append(tag)
    forms = data.get("forms", {})
    return Lexicon(
        code=code,
        texts=data.get("texts", {}),
        stemmed=_stemmer(forms.get("suffixes", ())),
        abbreviations=frozenset(forms.get("abbreviations", ())),
        single={word: tuple(tags) for word, tags in single.items()},
        starting={head: tuple(found) for head, found in starting.items()},
        phrases={key: {head: tuple(found) for head, found in after.items()} for key, after in phrases.items()},
        heads=frozenset(head[:PREFIX] for head in (*single, *starting, *phrases)),
        parts={tag: tuple(map(fold, inner)) for tag, inner in data.get("parts", {}).items()},
        function=frozenset(fold(word) for word in (*lists.get("function", ()), *lists.get("link", ()))),
        figures={fold(word): str(figure) for word, figure in data.get("figures", {}).items()},
        gist=float(forms.get("gist", GIST_SIZE)),
        people=str(forms.get("people", "")),
        weak=tuple(forms.get("weak", ())),
        own=tuple(forms.get("own", ())),
        told=tuple(forms.get("told", ())),
        imperative=tuple(forms.get("imperative", ())),
        talks="talk" in lists,
        nouns_capitalised=bool(forms.get("nouns_capitalised", False)),
        dotted_ordinals=bool(forms.get("dotted_ordinals", False)),
    )


def _stemmer(suffixes: Sequence[str]) -> re.Pattern[str]:
    endings = "|".join(re.escape(fold(suffix)) for suffix in suffixes)
    return re.compile(rf"([^\W\d_]{{{PREFIX},}}?(?:-[^\W_]+?)*?)(?:{endings})$" if suffixes else r"(?!)")


NEUTRAL = _build("", {})


def script(text: str) -> str:
    """ "zh" where a text has Chinese or Japanese signs, "ru" where it has Cyrillic letters, else "en": what a code of a
    language is written in, for a code too.
    """
    if text in ("ru", "zh"):
        return text
    return "zh" if HAN.search(text) else "ru" if CYRILLIC.search(text) else "en"


def language(text: str) -> str:
    """The code of the language whose function words the text uses most; by script where that decides; "" if unknown."""
    sample = text[:2000]
    cyrillic = len(CYRILLIC.findall(sample))
    letters = cyrillic + len(LATIN.findall(sample))
    han = len(HAN.findall(sample))
    if han * 4 > letters:
        return "zh"
    if cyrillic * 2 > letters:
        return "ru"
    words = set(BARE.findall(fold(sample)))
    scores = [(len(words & lexicon(code).function), -at, code) for at, code in enumerate(SPACED)]
    best = max(scores)
    return best[2] if best[0] else ""


def certain_language(text: str) -> str:
    """The code of the language where the text leaves no doubt; else "". Many languages look like one of ours, and a
    model that is asked for a language writes in that one.
    """
    code = language(text)
    if code == "zh":
        return "" if KANA.search(text) else code
    words = BARE.findall(fold(text[:2000]))
    if not words or (code == "ru" and FOREIGN.search(text)):
        return ""
    known = lexicon(code).function
    return code if sum(word in known for word in words) >= CERTAIN * len(words) else ""
