"""Russian word forms: the nominative of names and places, and what a word may be. Uses pymorphy3 where it is installed.

Without the dictionary words stay as they were said; facts are then still right, only their form is that of the
sentence. Nothing that is compared or hashed depends on this module.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

_WORD = re.compile(r"[А-Яа-яЁё]+(?:-[А-Яа-яЁё]+)*")


@cache
def _analyser() -> Any:
    try:
        import pymorphy3
    except ImportError:
        return None
    return pymorphy3.MorphAnalyzer()


@lru_cache(maxsize=4096)
def _parses(word: str) -> tuple[Any, ...]:
    analyser = _analyser()
    return () if analyser is None else tuple(analyser.parse(word))


def forget() -> None:
    """Drops the words that were looked up: what is remembered of a person's words must not outlive them."""
    _parses.cache_clear()
    _best.cache_clear()


def is_a(word: str, *grammemes: str) -> bool:
    """Whether some reading of the word has all these grammemes of OpenCorpora ("Name", "Geox", "nomn"); False without
    the dictionary."""
    return any(all(mark in parse.tag for mark in grammemes) for parse in _parses(word.casefold()))


def is_known(word: str) -> bool:
    """Whether the dictionary has the word itself; False without the dictionary."""
    return any(parse.is_known for parse in _parses(word.casefold()))


def may_be_nominative(name: str) -> bool:
    """Whether the first word of a name, as it stands, may be a nominative; True where the dictionary does not know
    it."""
    word = name.split()[0] if name.split() else ""
    return not is_known(word) or is_a(word, "nomn")


def gender(name: str) -> str:
    """ "m", "f" or "" for a name in any case."""
    first = name.split()[0] if name.split() else ""
    best = _best(first, ("Name", "Patr", "Surn")) if _WORD.fullmatch(first) else None
    if best is None:
        return ""
    return "m" if "masc" in best.tag else "f" if "femn" in best.tag else ""


def nominative(name: str, *, prefer: tuple[str, ...] = ("Name", "Geox", "Patr", "Surn", "Orgn")) -> str:
    """A name of one or more words in the nominative, capitals as they were; unchanged where it cannot be known."""
    words = _WORD.findall(name)
    last = _best(words[-1], prefer) if words else None
    kind = str(last.tag.gender) if last is not None and last.tag.gender else ""
    return _WORD.sub(lambda match: _plain(match.group(), prefer, kind), name)


def lemma(word: str) -> str:
    """The form that stands for all forms of a word; the word itself without the dictionary."""
    best = _best(word, ("VERB", "INFN", "NOUN"))
    return str(best.normal_form) if best is not None else word


def lemmas(word: str) -> frozenset[str]:
    """What the word may be a form of; nothing without the dictionary."""
    russian = _WORD.fullmatch(word) is not None
    return frozenset(parse.normal_form.replace("ё", "е") for parse in (_parses(word.casefold()) if russian else ()))


_PROPER = ("Name", "Surn", "Patr", "Geox", "Orgn", "Trad")


def uncapitalised(words: str) -> str:
    """Without the capital that a common noun has only because a sentence begins with it; one word, else as it is."""
    common = _WORD.fullmatch(words) and is_known(words) and not any(is_a(words, mark) for mark in _PROPER)
    return words.casefold() if common and words[1:].islower() else words


def base(word: str) -> str:
    """A common noun in the nominative, its number kept: "крановщиком" becomes "крановщик"."""
    parse = _best(word, ("NOUN",))
    if parse is None or "NOUN" not in parse.tag or is_a(word, "NOUN", "nomn"):
        return word
    objects = (
        other
        for other in _parses(word.casefold())
        if "NOUN" in other.tag and {"accs", "gent", "loct", "ablt"} & set(other.tag.grammemes)
    )
    parse = next(objects, parse) if "datv" in parse.tag else parse
    if "datv" in parse.tag:
        return word
    form = parse.inflect({"nomn", "plur" if "plur" in parse.tag else "sing"})
    return str(form.word) if form else word


def _plain(word: str, prefer: tuple[str, ...], kind: str) -> str:
    parse = _best(word, prefer)
    if (
        parse is not None and parse.tag.POS == "ADJF" and kind and "plur" not in parse.tag
    ):  # "Великом" agrees with its noun
        agreed = parse.inflect({"nomn", "sing", kind})
        return _like(agreed.word, word) if agreed else word
    if parse is None or "nomn" in parse.tag or parse.tag.POS not in ("NOUN", "ADJF"):
        return word
    form = parse.inflect({"nomn"} | ({"plur"} if "plur" in parse.tag and "Pltm" not in parse.tag else set())) or parse
    plain = form.normal_form if "Pltm" in parse.tag or "Geox" in parse.tag else form.word
    return "-".join(map(_like, plain.split("-"), [*word.split("-"), *[word] * 9]))


def _like(plain: str, word: str) -> str:
    return plain.upper() if len(word) > 1 and word.isupper() else plain.capitalize() if word[:1].isupper() else plain


@lru_cache(maxsize=4096)
def _best(word: str, prefer: tuple[str, ...]) -> Any:
    """The likeliest reading; readings of the preferred kinds go first, in any case but the vocative."""
    parses = _parses(word.casefold())
    wanted = [parse for parse in parses if any(mark in parse.tag for mark in prefer)]
    places = sorted(wanted, key=lambda parse: "Geox" in parse.tag and "datv" in parse.tag)  # one is in or from a place
    return next(iter(places or parses), None)
