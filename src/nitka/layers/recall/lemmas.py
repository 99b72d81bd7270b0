"""Base forms of words, from the libraries that happen to be installed.

* Russian goes to pymorphy3 where it is installed (it also knows names and guesses unknown words),
  everything else to simplemma (54 languages). Without either, a word is its own base form; search still works, on
  shared beginnings of words.
* Nothing here remembers a word it has seen: caches of the libraries are switched off, because a process-wide cache of a
  person's words would outlive their being forgotten.
* What an index was made with is named in it (`name`); an index made with another name is to be made anew.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol

PYMORPHY = ("ru",)  # languages whose pymorphy3 dictionaries come with the extra


def _module(name: str) -> Any:
    """A library of the `lemmas` extra, or None where it is not installed."""
    return import_module(name) if find_spec(name) is not None else None


class Lemmas(Protocol):
    """From a word in lower case and a language code (ISO 639-1) to its base form, deterministically."""

    name: str

    def __call__(self, word: str, language: str) -> str: ...


class Whole:
    """No dictionary at all: every word is its own base form."""

    name = "none"

    def __call__(self, word: str, language: str) -> str:
        return word


class Dictionaries:
    """simplemma, with pymorphy3 before it for the languages that has. Languages nobody knows keep their words as they
    are.
    """

    def __init__(self, plain: Any, morphology: dict[str, Any]) -> None:
        self._plain = plain
        self._morphology = morphology
        self._known: dict[str, bool] = {}
        self.name = "+".join([f"pymorphy3:{code}" for code in sorted(morphology)] + ["simplemma"] * (plain is not None))

    def __call__(self, word: str, language: str) -> str:
        if language in self._morphology:
            return str(self._morphology[language].parse(word)[0].normal_form)
        if self._plain is None or not self._knows(language):
            return word
        return str(self._plain.lemmatize(word, lang=language)).lower()

    def _knows(self, language: str) -> bool:
        if language not in self._known:
            try:
                self._plain.lemmatize("a", lang=language)
            except ValueError:
                self._known[language] = False
            else:
                self._known[language] = True
        return self._known[language]


@cache
def installed() -> Lemmas:
    """The best there is in this environment; its dictionaries are loaded once a process, on first use of a language."""
    simplemma, pymorphy3 = _module("simplemma"), _module("pymorphy3")
    if simplemma is None and pymorphy3 is None:
        return Whole()
    plain = simplemma.Lemmatizer(cache_max_size=0) if simplemma else None
    return Dictionaries(plain, {code: pymorphy3.MorphAnalyzer(lang=code) for code in PYMORPHY} if pymorphy3 else {})
