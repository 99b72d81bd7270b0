"""From a text to the terms it is indexed under. Pure; the same text always gives the same terms.

Rules
* Unicode first: NFKC (so full-width digits and composed or decomposed letters are one), lower case, ё as е, decimal
  digits of any script as ASCII, accents dropped from Latin and Greek letters and vowel points from Arabic and Hebrew
  ones. Marks that ARE the vowels (Devanagari, Thai) stay.
* A word is a run of letters, marks and digits. There is no query syntax: quotes, `*`, `NEAR` and the like are just not
  letters.
* Function words go (`function_words.txt`, closed classes only). A text of nothing else has no terms, and so finds
  nothing.
* A word becomes its base form, cut to its first six letters: derived words (organise, organisation; переезд,
  переезжать) then meet, and an unknown ending does no harm. Tokens with a digit are never cut.
* Scripts written without spaces (Han, kana, Thai, Lao, Khmer, Burmese) and Hangul, whose particles cling to the noun,
  become overlapping pairs of characters.
* Terms are stored as 32-bit hashes (BLAKE2b): stable across processes, and cheap to merge. Two of 100,000 different
  terms collide about once, which costs a little noise and nothing else.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import re2

from nitka.layers.recall.lemmas import Lemmas

STEM = 6  # letters kept of a base form
LONGEST = 40  # letters of a word that are looked at; what is longer is not a word

# Texts of scripts without marks, which are most, need no more than Python's own letters and digits: ten times as fast.
_PLAIN = re.compile(r"[\0-\u02ff\u0370-\u0482\u048a-\u052f\u2000-\u206f]*")
_PLAIN_WORD = re.compile(r"[^\W_]+")
_WORD = re2.compile(r"[\p{L}\p{N}][\p{L}\p{N}\p{M}]*")
_NO_SPACES = r"\p{Han}\p{Hiragana}\p{Katakana}ー々\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
_SPACELESS = re2.compile(f"[{_NO_SPACES}]")
_HAN = re2.compile(r"\p{Han}")
_FIRST_SPACELESS = "\u0e00"  # no such script begins before Thai; a cheap first look
_PARTS = re2.compile(f"[{_NO_SPACES}][{_NO_SPACES}\\p{{M}}]*|[^{_NO_SPACES}]+")
_SCRIPTS = {  # by the first word of a letter's Unicode name: the language assumed for the script
    "CYRILLIC": "ru",
    "GREEK": "el",
    "ARABIC": "ar",
    "HEBREW": "he",
    "DEVANAGARI": "hi",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
}
_LATIN = ("en", "de", "fr", "es", "pt", "it", "nl", "pl")
_UKRAINIAN, _RUSSIAN = frozenset("іїєґ"), frozenset("ыэъё")
_UNACCENTED = ("LATIN", "GREEK")


class _Fold(dict[int, str]):
    """A translation table that fills itself, one entry a character; characters are not a person's words, so it may
    stay.
    """

    def __missing__(self, code: int) -> str:
        char = chr(code)
        self[code] = result = _fold_char(char)
        return result


def _fold_char(char: str) -> str:
    if char == "ё":
        return "е"
    category = unicodedata.category(char)
    if category == "Nd":
        return str(unicodedata.decimal(char))
    if category == "Mn" and _is_pointing(ord(char)):
        return ""
    if category == "Ll" and unicodedata.name(char, "").startswith(_UNACCENTED):
        return unicodedata.normalize("NFD", char)[0]
    return char


def _is_pointing(code: int) -> bool:
    return 0x0300 <= code <= 0x036F or 0x0591 <= code <= 0x05C7 or 0x0610 <= code <= 0x061A or 0x064B <= code <= 0x0670


_FOLD = _Fold()


class _Script(dict[str, str]):
    """The script of each letter, which is the first word of its Unicode name; fills itself like `_Fold`."""

    def __missing__(self, char: str) -> str:
        self[char] = result = unicodedata.name(char, "").split(" ", 1)[0]
        return result


_SCRIPT = _Script()


def fold(text: str) -> str:
    """The text as it is compared: see the rules above. Idempotent."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).translate(_FOLD)


def words(text: str) -> list[str]:
    """The words of a text in lower case, accents still on (for dictionaries), scripts without spaces split off."""
    if text.isascii():
        return _PLAIN_WORD.findall(text.lower())
    plain = unicodedata.normalize("NFKC", text.encode("utf-8", "replace").decode()).lower()
    if _PLAIN.fullmatch(plain):
        return _PLAIN_WORD.findall(plain)
    found: list[str] = []
    for word in _WORD.findall(plain):
        found += _PARTS.findall(word) if max(word) >= _FIRST_SPACELESS else [word]
    return found


@cache
def _listed() -> Mapping[str, tuple[str, ...]]:
    """The data file as it stands: what each line lists, folded."""
    source = files("nitka.layers.recall").joinpath("function_words.txt").read_text("utf-8")
    lines = (line.split(":", 1) for line in source.splitlines() if line and not line.startswith("#"))
    return {code: tuple(fold(word) for word in listed.split()) for code, listed in lines}


@cache
def function_words() -> Mapping[str, frozenset[str]]:
    """Closed-class words by language, and the words for oneself and the other under `CODE.i` and `CODE.you`; all
    folded.
    """
    return {code: frozenset(word for word in listed if "_" not in word) for code, listed in _listed().items()}


@cache
def _latin_function_words() -> Mapping[str, tuple[str, ...]]:
    """The languages in Latin letters of which a word is a function word."""
    found: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
    for code in _LATIN:
        for word in function_words()[code]:
            found[word] += (code,)
    return dict(found)


@cache
def _formulas() -> Mapping[str, Mapping[str, tuple[tuple[str, ...], ...]]]:
    """Formulas of politeness by language and first word, each as its words."""
    found: defaultdict[str, defaultdict[str, tuple[tuple[str, ...], ...]]] = defaultdict(lambda: defaultdict(tuple))
    for code, listed in _listed().items():
        for formula in (tuple(word.split("_")) for word in listed if "_" in word):
            found[code][formula[0]] += (formula,)
    return {code: dict(formulas) for code, formulas in found.items()}


def language_of(found: Iterable[str]) -> str:
    """The language whose dictionary and function words to use: by script, and within Latin by whose function words
    occur most.

    Falls back to English. It need not be right, only the same for like texts; cutting words short forgives the rest.
    """
    counted: defaultdict[str, int] = defaultdict(int)
    cyrillic: set[str] = set()
    listed = _latin_function_words()
    for word in found:
        script = _SCRIPT[word[0]]
        if script == "LATIN":
            for code in listed.get(fold(word), ()):
                counted[code] += 1
        elif script in _SCRIPTS:
            counted[_SCRIPTS[script]] += 1
            cyrillic.update(word if script == "CYRILLIC" else "")
    if cyrillic and counted["ru"] == max(counted.values()):
        return "uk" if cyrillic & _UKRAINIAN and not cyrillic & _RUSSIAN else "ru"
    return _leader(counted)


def _latin_language_of(folded: Iterable[str]) -> str:
    """The same for folded words that are all in Latin letters."""
    listed = _latin_function_words()
    counted: dict[str, int] = {}
    for word in folded:
        for code in listed.get(word, ()):
            counted[code] = counted.get(code, 0) + 1
    return _leader(counted)


def _leader(counted: Mapping[str, int]) -> str:
    best = max(counted.values(), default=0)
    leaders = {language for language, number in counted.items() if number == best}
    return "en" if not leaders or "en" in leaders else min(leaders)


def is_latin(word: str) -> bool:
    """Whether a word, by its first letter, is written in Latin letters (or digits)."""
    return word[0] < "\u0250"


class Word(NamedTuple):
    """A word of a text in lower case, as it is compared (`fold`), and in which language to look it up."""

    text: str
    folded: str
    language: str


def read(text: str) -> list[Word]:
    """The words of a text, in order."""
    found = [(word, fold(word), is_latin(word)) for word in words(text)]
    latin = _latin_language_of(folded for _, folded, plain in found if plain)
    other = language_of(word for word, _, plain in found if not plain)
    return [Word(word[:LONGEST], folded, latin if plain else other) for word, folded, plain in found]


def terms(text: str, lemmas: Lemmas) -> list[str]:
    """The index terms of a text, in order, repeated as often as they occur."""
    return [term for word in without_formulas(read(text)) for term in terms_of(word, lemmas)]


def without_formulas(found: Sequence[Word]) -> list[Word]:
    """The words without formulas of politeness, in whichever of their languages."""
    languages = {word.language for word in found}
    formulas = [listed for code in languages if (listed := _formulas().get(code))]
    kept: list[Word] = []
    at = 0
    while at < len(found):
        known = [formula for listed in formulas for formula in listed.get(found[at].folded, ())]
        size = _longest(known, found, at) if known else 0
        if not size:
            kept.append(found[at])
        at += size or 1
    return kept


def _longest(formulas: Iterable[tuple[str, ...]], found: Sequence[Word], at: int) -> int:
    """How many words the longest of the formulas that stand at a place has; 0 where none does."""
    sizes = (len(formula) for formula in formulas if formula == tuple(w.folded for w in found[at : at + len(formula)]))
    return max(sizes, default=0)


def terms_of(word: Word, lemmas: Lemmas) -> list[str]:
    """The index terms of one word: one, none of a function word, several of scripts without spaces."""
    text, folded, language = word
    if text[0] >= _FIRST_SPACELESS and _SPACELESS.match(text):
        return pairs(fold(text))
    if not folded or folded in function_words().get(language, ()):
        return []
    if not folded.isalpha() and any(char.isdigit() for char in folded):
        return [fold(text)]
    return [fold(lemmas(text, language))[:STEM]]


def pairs(run: str) -> list[str]:
    """Overlapping pairs of characters, function words of the script cut out first. A single character, and every Han
    character (many are words), stands for itself too.
    """
    pieces = [piece for piece in _small_words().split(run) if piece]
    doubles = [piece[i : i + 2] for piece in pieces for i in range(len(piece) - 1)]
    return doubles + [char for piece in pieces for char in piece if len(piece) == 1 or _HAN.match(char)]


@cache
def _small_words() -> Any:
    """A pattern of the function words of the scripts without spaces, longest first."""
    listed = sorted(
        frozenset().union(*(function_words()[code] for code in ("zh", "ja", "ko"))), key=lambda w: (-len(w), w)
    )
    return re2.compile("|".join(re2.escape(word) for word in listed))


def keys(found: Iterable[str]) -> npt.NDArray[np.uint32]:
    """The 32-bit hashes that stand for terms in an index."""
    return np.fromiter(map(key, found), np.uint32)


def key(term: str) -> int:
    """The 32-bit hash that stands for a term."""
    return int.from_bytes(blake2b(term.encode("utf-8", "replace"), digest_size=4).digest(), "little")


class Vocabulary:
    """What each word is indexed under, looked up once: most words that people say they have said before. It holds what
    people wrote, so it may live no longer than what was made of it.
    """

    MOST = 1_000  # words; any more are looked up each time
    BYTES = 300_000  # about what so many take

    def __init__(self, lemmas: Lemmas) -> None:
        self.lemmas = lemmas
        self._known: dict[Word, tuple[int, ...]] = {}

    def __call__(self, word: Word) -> tuple[int, ...]:
        """The keys of a word's terms."""
        known = self._known.get(word)
        if known is None:
            known = tuple(map(key, terms_of(word, self.lemmas)))
            if len(self._known) < self.MOST:
                self._known[word] = known
        return known

    def read(self, text: str) -> list[int]:
        """The keys of a text's terms, in order, repeated as often as they occur."""
        return [key for word in without_formulas(read(text)) for key in self(word)]
