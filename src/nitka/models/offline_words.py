"""The words of the offline stand-in: what it knows of English and Russian, and how it reads a text with that.

Everything here is small on purpose: a light stemmer, lists of words that carry no subject, groups of words that ask and
answer alike. Nothing is loaded, nothing is learned.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Literal

Kind = Literal["name", "date", "number", "place", "any"]
"""What an answer should hold: a proper name, a day or a time, a quantity, a place, or just the subject."""

WORD = re.compile(r"[^\W_]+")
CLAUSE = re.compile(r"[,:–—]\s+|\s(?:and|и|а)\s(?=(?:what|which|who|when|where|how|что|как|кто|когда|где|сколько)\b)")
SENTENCE = re.compile(r"(?<=[.!?…])[\"»”)]*\s+|\n+|;\s+")


_DATA = tomllib.loads(resources.files("nitka.models").joinpath("offline.toml").read_text("utf-8"))


def _set(text: str) -> frozenset[str]:
    return frozenset(text.replace("ё", "е").split())


EMPTY, MINE, YOURS = _set(_DATA["empty"]), _set(_DATA["mine"]), _set(_DATA["yours"])
HELLO, THANKS, BYE = _set(_DATA["hello"]), _set(_DATA["thanks"]), _set(_DATA["bye"])
ASK, MAKE, OPENERS, CHANGED = (_set(_DATA[name]) for name in ("ask", "make", "openers", "changed"))
NUMBER_WORDS, DATE_WORDS, PLACE_WORDS = _set(_DATA["numbers"]), _set(_DATA["dates"]), _set(_DATA["places"])
ALL, TURNED, TURNED_BY = _set(_DATA["all"]), _set(_DATA["turned"]), _set(_DATA["turned_by"])
ASKED, LINKS, INITIAL = _set(_DATA["asked"]), _set(_DATA["links"]), _set(_DATA["initial"])

_RUSSIAN_ENDS = re.compile(
    r"(?:иями|ями|ами|ого|его|ому|ему|ыми|ими|ешь|ишь|ете|ите|ует|уют|ают|яют|ала|или|ила|ыла|или|ать|ять|ить|еть|"
    r"ться|тся|лся|лась|лись|ая|яя|ое|ее|ые|ие|ый|ий|ой|ей|ую|юю|ых|их|ым|им|ом|ем|ам|ям|ах|ях|ов|ев|ет|ит|ут|ют|ат|ят|"
    r"ал|ил|ла|ло|ли|ия|ию|ии|ью|ья|а|я|о|е|ы|и|у|ю|ь|й|л)$"
)
_ENGLISH_ENDS = re.compile(r"(?:ingly|edly|ings|ing|edly|ied|ies|ed|es|ly|s|e|y)$")


def words(text: str) -> tuple[str, ...]:
    """The words of a text, small, `ё` as `е`."""
    return tuple(WORD.findall(text.lower().replace("ё", "е")))


def stem(word: str) -> str:
    """What forms of a word share, roughly: one ending is taken off where at least three letters stay."""
    ends = _RUSSIAN_ENDS if "а" <= word[-1] <= "я" else _ENGLISH_ENDS
    cut = ends.sub("", word)
    if len(cut) < 3:
        return word
    if ends is _ENGLISH_ENDS and len(cut) > 3 and cut[-1] == cut[-2] and cut[-1] not in "sl":
        return cut[:-1]  # planned, planning: plan
    return cut


_GROUPS = {stem(word): f"={at}" for at, group in enumerate(_DATA["like"]) for word in _set(group)}


def subject(word: str) -> str:
    """The stem of a word, or the mark of its group when several words ask and answer alike."""
    root = stem(word)
    return _GROUPS.get(root, root)


def subjects(text: Iterable[str]) -> frozenset[str]:
    """What a text speaks of."""
    return frozenset(subject(word) for word in text if word not in EMPTY and word not in MINE and word not in YOURS)


_UNIT = (
    r"тыс(?:яч[аи]?)?|млн|миллион\w*|млрд|руб\w*|евро|долл\w*|лет|год\w*|час\w*|мин\w*|дн\w*|дней|недел\w*|месяц\w*|"
    r"кг|км|м|см|шт\w*|человек\w*|k|thousand|million|billion|pounds?|dollars?|euros?|years?|hours?|minutes?|days?|"
    r"weeks?|months?|people|kg|km|miles?|grand|old"
)
_NUMBER = rf"(?:[$€£₽¥]\s?)?\d(?:[\d\u00a0 .,:/]*\d)?(?:\s?(?:%|[$€£₽¥]|(?:{_UNIT})\b\.?)){{0,3}}"
_SPELT = (
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|(?:thir|four|fif|six|seven|eigh|nine)teen|twenty|"
    r"thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|два|две|двух|три|трех|трёх|четыре|четырех|пять|пяти|шесть|"
    r"шести|семь|семи|восемь|восьми|девять|десять|десяти|\w+надцать|\w+надцати|двадцать|двадцати|тридцать|тридцати|сорок|"
    r"сорока|пятьдесят|пятидесяти|шестьдесят|семьдесят|восемьдесят|девяносто|сто|двести|триста|четыреста|пятьсот)"
)
_IN_WORDS = rf"\b{_SPELT}(?:[\s-](?:and\s)?{_SPELT})*(?:\s(?:{_UNIT})\b)*(?!\w)"
_MONTH = (
    r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*|(?:январ|феврал|март|апрел|ма[йяе]|июн|июл|август|сентябр|октябр|ноябр|"
    r"декабр)[а-я]*"
)
_DAY = (
    r"(?:mon|tues?|wednes|thurs?|fri|satur|sun)day|понедельник\w*|вторник\w*|сред[ауы]|четверг\w*|пятниц\w*|суббот\w*|воскресень\w*|"
    r"today|tomorrow|tonight|yesterday|сегодня|завтра|послезавтра|вчера|noon|midnight|полдень|полночь"
)
_AT = r"(?:\d{1,2}(?::\d\d)?\s?(?:am|pm|o'clock|час\w*)|\d{1,2}:\d\d|(?:at|в)\s\d{1,2}(?![\d.,]*\s?(?:тыс|%|руб|k\b)))"
_DATE = (
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}[./]\d{{1,2}}(?:[./]\d{{2,4}})?|\d{{1,2}}(?:st|nd|rd|th|-?го)?\s(?:of\s)?(?:{_MONTH})(?:\s\d{{4}})?|"
    rf"(?:{_MONTH})\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?|(?:{_DAY})|(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)|{_AT}|"
    rf"\b(?:in|в)\s(?:{_MONTH}|\d{{4}})\b"
)
_WHEN = rf"(?:{_DATE})(?:,?\s(?:(?:on|the|at|by|of|в|во|к|на)\s)*(?:{_DATE}))*"
_CAPITAL = r"[A-ZА-ЯЁ][\w’'-]*[^\W_]|[A-ZА-ЯЁ]"
NAMES = re.compile(rf"(?<![\w’'-])(?:{_CAPITAL})(?:\s(?:{_CAPITAL}))*")
PLACES = re.compile(
    r"(?i:\b(?:in|at|to|from|near|on|в|во|на|из|около|под|возле|у|до))\s"
    rf"((?:the\s|г\.\s?|городе?\s)?(?:{_CAPITAL})(?:[\s-](?:{_CAPITAL}))*)"
)
NUMBERS = re.compile(rf"{_NUMBER}|{_IN_WORDS}", re.IGNORECASE)
DATES = re.compile(rf"(?<![\w.]){_WHEN}(?!\w)", re.IGNORECASE)
"""Each finds what an answer of its kind holds."""
