"""What can be an answer: names, days and times, amounts, places. Regular expressions for English and Russian, and the
one function that reads a text with them. A value is always whole: no hour without its minutes, no part of a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

Kind = Literal["name", "date", "time", "age", "money", "span", "count", "number", "place", "any"]
"""What an answer should hold: a proper name, a day, an hour, years of age, a price, a length of time, how many of
something, any figure, a place, or just the subject.
"""


def _any(text: str) -> str:
    return "|".join(text.split())


_MONEY = _any(
    r"[$€£₽¥] руб\w* евро долл\w* тенге гривен\w* копе\w* pounds? dollars? euros? cents? roubles? rubles? pence quid"
    r" usd eur"
)
_TIME = _any(
    r"лет год\w* час\w* мин\w* сек\w* дн\w* дней день сут\w* ноч\w* недел\w* месяц\w* years? hours? minutes? mins? hrs?"
    r" seconds? days? nights? weeks? months?"
)
_SIZE = _any(
    r"кг г гр грамм\w* мг мл л литр\w* км м см мм шт\w* градус\w* процент\w* % kg g mg ml l lit(?:er|re)s? km cm mm"
    r" miles? grams? kilos? degrees? percent inch(?:es)? feet ft lbs? oz °[cf]?"
)
_MANY = _any(r"тыс\.? тысяч\w* млн\.? миллион\w* млрд thousand million billion k grand")
_UNIT = rf"(?:(?:{_MANY})(?!\w)\s?)?(?:(?:{_MONEY}|{_TIME}|{_SIZE})(?![\w]))?"
_ONES = _any(
    "one two three four five six seven eight nine ten eleven twelve (?:thir|four|fif|six|seven|eigh|nine)teen twenty"
    " thirty forty fifty sixty seventy eighty ninety hundred один одна два две двух три трех трёх четыре четырех пять"
    " пяти шесть шести семь семи восемь восьми девять десять десяти \\w+надцать \\w+надцати двадцать двадцати тридцать"
    " тридцати сорок сорока пятьдесят пятидесяти шестьдесят семьдесят восемьдесят девяносто сто двести триста"
    " четыреста пятьсот"
)
_SPELT = rf"(?:{_ONES})(?:[\s-](?:and\s)?(?:{_ONES}))*"
_CODE = r"(?<![\w-])(?=[\w-]*\d)(?:\w+(?:-\w+)+|(?=\w*[^\W\d_])\w{4,})(?![\w-])|(?<!\w)\+?\d[\d() -]{5,}\d(?![\w:])"
_PLATE = r"(?-i:\b[A-ZА-ЯЁ]{1,3}\s\d{1,4}\s[A-ZА-ЯЁ]{1,3}\b)"
_FIGURE = r"[$€£₽¥]?\s?\d+(?:[.,/]\d+)*(?:[ \u00a0]\d{3}(?!\d))*"
NUMBERS = re.compile(
    rf"(?P<code>{_PLATE}|{_CODE})|(?:\b(?:минут|часов|лет|рублей|дней|человек|недель)\s)?"
    rf"(?<![\w.,:])(?:{_FIGURE}|\b(?:{_SPELT})\b)(?!\w*:\d)(?:(?:\s?[-–]\s?|\s[наxх×]{{1,2}}\s)\d+)?(?:\s?{_UNIT})?",
    re.IGNORECASE,
)
_IS_MONEY = re.compile(rf"(?:{_MONEY})(?!\w)|^[$€£₽¥]", re.IGNORECASE)
_IS_TIME = re.compile(rf"(?:{_TIME})(?!\w)", re.IGNORECASE)
_IS_SIZE = re.compile(rf"(?:{_SIZE})(?!\w)", re.IGNORECASE)
_IS_AGE = re.compile(r"(?:лет|год\w*|years?)(?!\w)", re.IGNORECASE)
_TELLS_AGE = re.compile(
    r"\b(?:is|am|are|turn(?:s|ed|ing)?|aged?|исполн\w+|стукн\w+|уже|ему|ей|мне|тебе)\W+(?:\w+\W+){0,2}?\d{1,3}(?![\d.,]*\d)|\(\d{1,3}\)",
    re.IGNORECASE,
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|"
    r"nov(?:ember)?|dec(?:ember)?|(?:январ|феврал|март|апрел|июн|июл|август|сентябр|октябр|"
    r"ноябр|декабр)[а-я]*|ма[йяею])(?!\w)"
)
_DAY = (
    r"(?:(?:mon|tues?|wednes|thurs?|fri|satur|sun)days?|weekend|понедельник\w*|вторник\w*|сред(?:[ауые]|ам)|четверг\w*|"
    r"пятниц\w*|суббот\w*|воскресень\w*|воскресений|выходн\w*|today|tomorrow|tonight|yesterday|сегодня|завтра|послезавтра|"
    r"вчера|позавчера)(?!\w)"
)
_ORDER = (
    r"(?:(?:двадцать|тридцать)\s)?(?:перв|втор|треть|четв[её]рт|пят|шест|седьм|восьм|девят|десят|\w+надцат|двадцат|тридцат)"
    r"(?:ого|его|ое|ье)(?!\w)"
)
_HALF = r"half\spast\s\w+|quarter\s(?:past|to)\s\w+|половин[ае]\s\w+"
_CLOCK = (
    rf"(?:at\s|в\s|к\s|by\s|from\s|с\s)?(?:\d{{1,2}}:\d\d(?::\d\d)?(?:\s?[ap]\.?m\b)?|\d{{1,2}}(?:\.\d\d)?\s?[ap]m\b|\d{{1,2}}\so'clock|"
    rf"\d{{1,2}}\s(?:час\w*\s)?(?:утра|дня|вечера|ночи)|{_HALF}|noon|midnight|полдень|полудн\w|полноч\w)"
    r"|at\s\d{1,2}(?:\sin\sthe\s\w+)?(?![\d.,:]*\d|\s?%)|в\s\d{1,2}(?:\sчас\w*)?(?![\d.,:]*\d|\s?%|\s(?:тыс|раз|руб|км|кг|лет|год|дн|дом|чел))"
)
_PART = (
    r"(?:(?:in\sthe|every|this)\s)?(?:morning|afternoon|evening)s?(?!\w)|at\snight|утром|днём|днем|вечером|ночью|по\sутрам|"
    r"по\sвечерам"
)
_DATE = (
    rf"\d{{4}}-\d\d-\d\d|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|(?:{_ORDER}|\d{{1,2}}(?:st|nd|rd|th|-?го|-?е)?)\s(?:of\s)?{_MONTH}"
    rf"(?:,?\s\d{{4}}(?:\sгод\w*)?)?|{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?!\d|:)(?:,?\s\d{{4}})?|{_MONTH}\s\d{{4}}|"
    rf"(?:next\s|last\s|this\s)?{_DAY}|(?:next|this|last)\s(?:week|month|year|spring|summer|autumn|winter)|"
    rf"(?:на\s)?(?:следующ|эт|прошл)\w+\s(?:недел|месяц|год|лет|осен|зим|весн)\w*|(?:the\s)?\d{{1,2}}(?:st|nd|rd|th)(?!\w)|"
    rf"\d{{1,2}}-?го(?!\w)|{_ORDER}(?=\W*(?:$|[,.;)]|с\s|в\s))|(?:in|by|until|till|before|after|в|до|с|к)\s(?:{_MONTH}|\d{{4}}(?!\d)(?:\sгод\w*)?)"
)
_JOIN = r"(?:on|the|at|by|of|from|to|till|until|between|and|в|во|к|на|с|до|и|–|-)"
_MOMENT = rf"(?:{_DATE}|{_CLOCK}|{_PART})"
DATES = re.compile(
    rf"(?<![\w.])(?:{_MOMENT}|(?:from|с)\s\d{{1,2}}:\d\d)(?:,?\s(?:{_JOIN}\s)*{_MOMENT})*(?!\w)", re.IGNORECASE
)
_MOMENTS = re.compile(rf"{_MOMENT}|{_MONTH}", re.IGNORECASE)
HAS_CLOCK = re.compile(_CLOCK, re.IGNORECASE)
HAS_DAY = re.compile(_DATE, re.IGNORECASE)
_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|Prof)\.?\s)?"
_CAPITAL = r"[A-ZА-ЯЁ](?:[\w’-]|'(?!s\b))*[^\W_]|[A-ZА-ЯЁ]"
_LITTLE = r"(?:do|de|da|di|van|von|der|del|du|la|le|of)"
NAMES = re.compile(
    rf"«(?P<quoted>[^«»]{{1,60}})»|(?<![\w’'-]){_TITLE}(?:{_CAPITAL})(?:\s(?:{_LITTLE}\s){{0,2}}(?:{_CAPITAL})(?!\w))*(?:\s«[^«»]{{1,60}}»)?"
)
_BEFORE_PLACE = r"(?i:\b(?:in|at|to|from|near|on|behind|under|next to|в|во|на|из|около|под|возле|у|до|с|за|рядом с))\s"
PLACES = re.compile(
    rf"{_BEFORE_PLACE}((?:the\s|г\.\s?|городе?\s|ул\.\s?|улице\s)?(?:{_CAPITAL})(?:[\s-](?:{_CAPITAL}))*)"
)
SOMEWHERE = re.compile(rf"{_BEFORE_PLACE}(?!\d)[\w«\"]+")
COLOURS = re.compile(
    r"\b(?:red|blue|green|white|black|grey|gray|yellow|brown|pink|purple|orange|beige|cream|silver|golden?|turquoise|"
    r"(?:красн|син|зел[её]н|бел|ч[её]рн|сер|ж[её]лт|коричнев|розов|фиолетов|оранжев|бежев|голуб|золот|серебрист|сливочн)"
    r"(?:ый|ий|ой|ая|яя|ое|ее|ые|ие|ого|его|ую|юю|ом|ем|ых|их))\b",
    re.IGNORECASE,
)
MAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
DOSE = re.compile(r"\d\s?(?:mg|mcg|мг|мкг|drops|капл\w*|tablets?|таблет\w*)\b", re.IGNORECASE)
STREET = re.compile(
    r"\b(?:street|road|avenue|lane|square|ул\.|улиц\w*|проспект\w*|переул\w*|дом\s\d+|[A-Z]\w+\sSt\.?\s\d+)",
    re.IGNORECASE,
)


def found(kind: Kind, text: str) -> Iterator[re.Match[str]]:
    """The values of a kind in a text, in their order. "any" has none, "name" all that is written like one."""
    if kind == "any":
        return
    if kind in ("date", "time", "name", "place"):
        pattern = {"name": NAMES, "place": PLACES}.get(kind, DATES)
        named = kind in ("name", "place")
        for match in pattern.finditer(text):
            inner = match.group(match.lastindex or 0)
            if (not named or not _MOMENTS.fullmatch(inner.strip())) and _is_moment(kind, match.group()):
                yield match
        return
    moments = [match.span() for match in DATES.finditer(text)]
    for match in NUMBERS.finditer(text):
        inside = any(a <= match.start() < b for a, b in moments)
        if not inside and _counts_as(kind, match, text):
            yield match


def _is_moment(kind: Kind, value: str) -> bool:
    return kind != "time" or bool(HAS_CLOCK.search(value))


def _counts_as(kind: Kind, match: re.Match[str], text: str) -> bool:
    """Whether a figure is one of this kind, by its unit."""
    value = match.group()
    if match["code"] is not None or kind == "number":
        return kind == "number"
    if kind == "money":
        return bool(_IS_MONEY.search(value)) or not (_IS_TIME.search(value) or _IS_SIZE.search(value))
    if kind == "span":
        return bool(_IS_TIME.search(value))
    if kind == "age":
        told = any(tells.start() <= match.start() < tells.end() for tells in _TELLS_AGE.finditer(text))
        return bool(_IS_AGE.search(value)) and not _is_year(value) or (told and not _IS_SIZE.search(value))
    return True


def _is_year(value: str) -> bool:
    return bool(re.match(r"\W*(?:19|20)\d\d(?!\d)", value))


def priced(text: str) -> bool:
    """Whether an amount of money stands in the text."""
    return any(_IS_MONEY.search(match.group()) for match in NUMBERS.finditer(text))
