"""Latin spellings of Russian words, as people type them without a Russian keyboard: "skin foto", "privet"."""

from __future__ import annotations

from collections.abc import Iterable, Set

_LATIN_OF = str.maketrans(
    dict(
        zip(
            "абвгдезийклмнопрстуфхцчшщыэюяьъ",
            "a b v g d e z i y k l m n o p r s t u f h c ch sh sh y e yu ya".split() + ["", ""],
            strict=True,
        )
    )
    | {"ж": "zh"}
)


def latin(word: str) -> str:
    """The plainest Latin spelling of a Russian word."""
    return word.translate(_LATIN_OF)


def plain_latin(word: str) -> str:
    """A Latin word in the same spelling as `latin` gives: the usual ways of writing one Russian letter made one."""
    for usual, ours in (
        ("shch", "sh"),
        ("sch", "sh"),
        ("kh", "h"),
        ("ts", "c"),
        ("x", "h"),
        ("j", "y"),
        ("w", "v"),
        ("'", ""),
    ):
        if usual in word:
            word = word.replace(usual, ours)
    return word.replace("yo", "e") if "yo" in word else word


def spellings(known: Iterable[str], verbs: Set[str]) -> dict[str, str]:
    """Latin spellings of the Cyrillic words; where two collide, verbs go first, then the shorter word."""
    cyrillic = sorted((w for w in known if "а" <= w[:1] <= "я"), reverse=True)
    cyrillic.sort(key=len, reverse=True)
    ordered = [*(w for w in cyrillic if w not in verbs), *(w for w in cyrillic if w in verbs)]
    keys = latin("\n".join(ordered)).split("\n") if ordered else []
    return {key: w for key, w in zip(keys, ordered, strict=True) if len(key) > 1}
