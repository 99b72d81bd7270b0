"""Normal forms, by which two wordings are known to be one value.

The keys made here are stored as keyed hashes and must come out the same on every machine, so nothing here depends on
an optional dictionary: numbers in words become digits, units and frequencies get one name, a few endings are cut,
little words go, and the order of the rest does not matter. Two values with one key are the same; two values with
different keys may still be (then a slot of one value is updated, which loses nothing).
"""

from __future__ import annotations

import re
import unicodedata

from nitka.layers.facts.numbers import digits

_TOKEN = re.compile(r"(?=[^\W_]*\d)[^\W_]+(?:[-./:,][^\W_]+)*|[^\W_]+(?:['’][^\W_]+)?")
_SPACE = re.compile(r"\s+")

_STOP = frozenset(
    "a an the is are was be am i me my mine we our you it its this that what who which of by to for at in on and or "
    "so very really just also "
    "do does did have has had been being with as "
    "я мне меня мой моя мое мои мы нас нам у и а но в во на к с со по за из от для что это же ли бы очень еще уже "
    "тоже также есть".split()
)
_SAME = {
    "kilometre": "km", "kilometer": "km", "kilometres": "km", "kilometers": "km", "kms": "km", "км": "km",
    "километр": "km",
    "километра": "km", "километров": "km", "mile": "mi", "miles": "mi", "миля": "mi", "мили": "mi", "миль": "mi",
    "kilogram": "kg", "kilograms": "kg", "kilo": "kg", "kilos": "kg", "кг": "kg", "кило": "kg", "килограмм": "kg",
    "килограммов": "kg",
    "gram": "g", "grams": "g", "г": "g", "грамм": "g", "граммов": "g", "minute": "min", "minutes": "min", "mins": "min",
    "мин": "min", "минут": "min", "минуты": "min", "минута": "min", "hour": "h", "hours": "h", "hrs": "h", "час": "h",
    "часа": "h", "часов": "h",
    "weekly": "week", "неделю": "week", "неделя": "week", "недели": "week", "еженедельно": "week", "weeks": "week",
    "daily": "day", "день": "day", "дня": "day", "дней": "day", "ежедневно": "day", "days": "day",
    "monthly": "month", "месяц": "month", "месяца": "month", "ежемесячно": "month", "months": "month",
    "yearly": "year", "year": "year", "год": "year", "года": "year", "лет": "year", "years": "year",
    "every": "", "each": "", "per": "", "каждый": "", "каждую": "", "каждое": "", "раз": "", "once": "", "twice": "2",
    "дважды": "2", "favorite": "favourite", "color": "colour", "gray": "grey", "mum": "mother", "mom": "mother",
}  # fmt: skip
_UNITS = frozenset(("km", "mi", "kg", "g", "min", "h"))
_MOVES = frozenset(("run", "walk", "swim", "ride", "jog", "cycle", "hike"))
_RU_ENDINGS = (
    "иями", "ями", "ами", "ого", "его", "ому", "ему", "ыми", "ими", "иях", "ией", "ях", "ах", "ов", "ев", "ей", "ой",
    "ий", "ый", "ая", "яя", "ое", "ее",
    "ые", "ие", "ую", "юю", "ом", "ем", "ам", "ям", "ым", "им", "ых", "их", "ия", "ии", "ию", "а", "я", "о", "е", "ы",
    "и", "у", "ю", "ь", "й",
)  # fmt: skip


def fold(text: str) -> str:
    """NFC, one space for any run of white space, none at the ends: the form in which a quote is looked for."""
    return _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()


def one_line(text: str, limit: int) -> str:
    """A text as it may be stored in a fact: one line, no control characters, at most `limit` characters."""
    plain = "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char for char in text)
    return fold(plain)[:limit].rstrip()


def name_key(name: str) -> str:
    """The key of who a fact is about."""
    return fold(unicodedata.normalize("NFKC", name)).casefold().replace("ё", "е")


def tokens(text: str) -> tuple[str, ...]:
    """The words of a value in normal form, in their order, without little words."""
    plain = unicodedata.normalize("NFKC", text).casefold().replace("ё", "е")
    words = [_SAME.get(word, word) for word in digits(_TOKEN.findall(plain))]
    moving = any(word in _MOVES for word in words)
    joined: list[str] = []
    for word in words:
        if moving and re.fullmatch(r"\d+k", word):
            word = word[:-1] + "km"
        if word in _UNITS and joined and joined[-1].isdigit():
            joined[-1] += word
        elif word and word not in _STOP:
            joined.append(stem(word))
    return tuple(joined)


def value_key(value: str) -> str:
    """The key of a value: equal for wordings that are known to mean the same."""
    words = sorted(set(tokens(value)))
    return " ".join(words) if words else name_key(value)


def stem(word: str) -> str:
    """The word without its commonest endings; short words and words with digits stay as they are."""
    if any(char.isdigit() for char in word) or len(word) < 4:
        return word
    if word[0] >= "Ѐ":
        ending = next((end for end in _RU_ENDINGS if word.endswith(end) and len(word) - len(end) >= 3), "")
        return word[: len(word) - len(ending)]
    if word.endswith("ies") and len(word) > 5:
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "sses", "xes", "oes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word
