"""English words: what is a word of the language and what can only be a name. Uses simplemma where it is installed.

Without the dictionary no word is known, so that capitals alone tell names, as everywhere in the rules.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _dictionary() -> Any:
    try:
        from simplemma.strategies import DictionaryLookupStrategy
    except ImportError:
        return None
    return DictionaryLookupStrategy()  # keeps no words it was asked for


@cache
def _both() -> frozenset[str]:
    table = tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text("utf-8"))
    return frozenset(table["also_names"]["words"].split())


def is_common(word: str) -> bool:
    """Whether the dictionary has the word, capital or not, as a common one only ("Lost", "Home"), and it is no given
    name either ("Grace")."""
    plain = word.capitalize()
    if _dictionary() is None or plain in _both():
        return False
    lemma = _dictionary().get_lemma(plain, "en") or _dictionary().get_lemma(plain.lower(), "en")
    return lemma is not None and bool(lemma[:1].islower())
