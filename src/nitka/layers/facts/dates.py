"""Dates as people say them, English and Russian, resolved against the message's own time and zone, never against a
clock.

"Next Friday" is the Friday of the next calendar week (weeks begin on Monday); "on Friday" and "Friday" are the first
one to come; "14.03" is day and month. What cannot be resolved stays None: a fact then keeps the words as they were
said.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from nitka.layers.facts.numbers import NUMBER, number
from nitka.layers.facts.numbers import pattern as number_pattern
from nitka.types import Message

_MONTHS_OF = {
    "en": (
        "jan(?:uary)?", "feb(?:ruary)?", "mar(?:ch)?", "apr(?:il)?", "may", "june?", "july?", "aug(?:ust)?",
        "sept?(?:ember)?", "oct(?:ober)?", "nov(?:ember)?", "dec(?:ember)?",
    ),
    "ru": (
        "январ[ьяе]", "феврал[ьяе]", "март[ае]?", "апрел[ьяе]", "ма[йяе]", "июн[ьяе]", "июл[ьяе]", "август[ае]?",
        "сентябр[ьяе]", "октябр[ьяе]", "ноябр[ьяе]", "декабр[ьяе]",
    ),
}  # fmt: skip
_DAYS_OF = {
    "en": (
        "mon(?:day)?", "tue(?:s(?:day)?)?", "wed(?:nesday)?", "thu(?:rs?(?:day)?)?", "fri(?:day)?", "sat(?:urday)?",
        "sun(?:day)?",
    ),
    "ru": (
        "понедельник(?:а|у|ом)?", "вторник(?:а|у|ом)?", "сред[ауые]", "четверг(?:а|у|ом)?", "пятниц[ауые]",
        "суббот[ауые]", "воскресень[ея]",
    ),
}  # fmt: skip
_MONTHS = tuple(f"{en}|{ru}" for en, ru in zip(_MONTHS_OF["en"], _MONTHS_OF["ru"], strict=True))
_DAYS = tuple(f"{en}|{ru}" for en, ru in zip(_DAYS_OF["en"], _DAYS_OF["ru"], strict=True))
_ORDINALS = (
    "перв|второ|треть|четверт|пято|шесто|седьмо|восьмо|девято|десято|одиннадцато|двенадцато|тринадцато|четырнадцато "
    "|пятнадцато| "
    "шестнадцато|семнадцато|восемнадцато|девятнадцато|двадцато|тридцато|сороково|пятидесято|шестидесято|семидесято| "
    "восьмидесято|девяносто "
).split("|")
_TENS = {
    "двадцать": 20,
    "тридцать": 30,
    "сорок": 40,
    "пятьдесят": 50,
    "шестьдесят": 60,
    "семьдесят": 70,
    "восемьдесят": 80,
    "девяносто": 90,
}
_ORDINAL = r"(?:(?:" + "|".join(_TENS) + r")[ ])?(?:" + "|".join(_ORDINALS) + r")(?:ого|его|го)"

MONTH = "(?:" + "|".join(_MONTHS) + ")"
WEEKDAY = "(?:" + "|".join(_DAYS) + ")"
_FULL_DAYS = (
    "(?:mon|tues|wednes|thurs|fri|satur|sun)day|понедельник|вторник|сред[ау]|четверг|пятниц[ау]|суббот[ау]|воскресенье"
)
_RECURRING = "".join(f"(?<!{word} )" for word in "every each last past other прошлую прошлый каждую каждый".split())
_PASSING = re.compile(
    rf"(?i)(?<![\w-]){_RECURRING}(?<!day before )"
    r"(?:(?:the )?day after tomorrow|tomorrow|today|tonight|yesterday|послезавтра|завтра|сегодня|вчера"
    rf"|in (?:a|{number_pattern('en')}) (?:days?|weeks?)"
    rf"|(?:next|this|on(?: next| this)?|by) (?:{_FULL_DAYS})"
    rf"|через (?:(?:{number_pattern('ru')}) )?(?:день|дня|дней|неделю|недели|недель)"
    rf"|(?:в|во|к|на) (?:(?:следующ|эт)\w+ )?(?:{_FULL_DAYS}))"
    r"(?![\w-])(?! ?\()(?! (?:mornings|evenings|nights|afternoons)\b)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th|-?го)?"
_YEAR = (
    r"(?:,?[ ](?P<year>(?:19|20)\d\d)(?:[ ](?:г\.?|года))?"
    rf"|[ ](?P<ryear>(?:тысяча девятьсот |две тысячи )?{_ORDINAL})(?:[ ]года)?)?"
)
_NUMERIC = r"(?:19|20)\d\d-\d\d-\d\d|\d{1,2}\.\d{1,2}(?:\.(?:19|20)\d\d)?"


def month_pattern(language: str) -> str:
    return "(?:" + "|".join(_MONTHS_OF[language]) + ")"


def weekday_pattern(language: str) -> str:
    return "(?:" + "|".join(_DAYS_OF[language]) + ")"


def pattern(language: str) -> str:
    """A date in the words of a language ("en", "ru"), for patterns (case-insensitive, whole words)."""
    month, weekday, count = month_pattern(language), weekday_pattern(language), number_pattern(language)
    if language == "en":
        return (
            rf"(?:{_NUMERIC}|(?:the )?\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{month}(?:,? (?:19|20)\d\d)?"
            rf"|{month} (?:the )?\d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? (?:19|20)\d\d)?"
            rf"|(?:the )?day after tomorrow|tomorrow|today|in (?:{count}|a) (?:days?|weeks?)"
            rf"|(?:(?:next|this|on(?: next| this)?) )?{weekday})"
        )
    return (
        rf"(?:{_NUMERIC}|\d{{1,2}}(?:-?го)? {month}(?: (?:19|20)\d\d(?: года| г)?)?"
        rf"|{_ORDINAL} {month}(?: (?:{_ORDINAL}|(?:19|20)\d\d)(?: года)?)?|послезавтра|завтра|сегодня"
        rf"|через (?:(?:{count}) )?(?:день|дня|дней|неделю|недели|недель)"
        rf"|(?:(?:в|во|на) )?(?:(?:следующ|эт)\w+ )?{weekday})"
    )


@dataclass(frozen=True, slots=True)
class Day:
    """A day; the year is None where none was said or can be known."""

    month: int
    day: int
    year: int | None = None

    @property
    def iso(self) -> str:
        return (
            f"{self.month:02}-{self.day:02}" if self.year is None else f"{self.year:04}-{self.month:02}-{self.day:02}"
        )


def local(message: Message) -> datetime:
    """The message's time on the speaker's own clock; UTC where the zone is not known."""
    return message.at.astimezone(_zone(message.zone))


def resolve(text: str, today: date) -> Day | None:
    """The day these words mean, said on `today`; None when they do not say one."""
    plain = text.strip().casefold().replace("ё", "е")
    return next((day for reader in _READERS if (day := reader(plain, today)) is not None), None)


def dated(text: str, today: date) -> str:
    """The text with the day beside every word that means another day tomorrow: "on Friday (2025-03-14)"."""
    return _PASSING.sub(lambda match: _with_day(match, today), text)


def days(text: str, today: date) -> frozenset[Day]:
    """Every day that the text names, said on `today`."""
    found = (resolve(match.group(), today) for match in _anywhere().finditer(text))
    return frozenset(day for day in found if day is not None)


@cache
def _anywhere() -> re.Pattern[str]:
    return re.compile(rf"(?<![\w-])(?:{pattern('en')}|{pattern('ru')})(?![\w-])", re.I)


def _with_day(match: re.Match[str], today: date) -> str:
    day = resolve(match.group(), today)
    return match.group() if day is None else f"{match.group()} ({day.iso})"


def _zone(name: str) -> timezone | ZoneInfo:
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d\d?):?(\d\d)?", name)
    if offset:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _index(patterns: tuple[str, ...], word: str) -> int | None:
    return next((at for at, pattern in enumerate(patterns) if re.fullmatch(pattern, word)), None)


def _day(year: int | None, month: int, day: int) -> Day | None:
    try:
        date(year or 2024, month, day)
    except ValueError:
        return None
    return Day(month, day, year)


def _numeric(text: str, today: date) -> Day | None:
    iso = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text)
    if iso:
        return _day(int(iso[1]), int(iso[2]), int(iso[3]))
    dotted = re.fullmatch(r"(\d{1,2})\.(\d{1,2})(?:\.(\d{4}))?", text)
    return _day(int(dotted[3]) if dotted[3] else None, int(dotted[2]), int(dotted[1])) if dotted else None


def _worded(text: str, today: date) -> Day | None:
    first = re.fullmatch(rf"(?:the )?(?P<day>{_DAY}|{_ORDINAL}) (?:of )?(?P<month>{MONTH}){_YEAR}", text)
    match = first or re.fullmatch(rf"(?P<month>{MONTH}) (?:the )?(?P<day>{_DAY}){_YEAR}", text)
    if match is None:
        return None
    month = _index(_MONTHS, match["month"])
    leading = re.match(r"\d+", match["day"])
    day = int(leading.group()) if leading else _ordinal(match["day"])
    year = int(match["year"]) if match["year"] else _spoken_year(match["ryear"])
    return None if month is None or day is None else _day(year, month + 1, day)


def _ordinal(text: str) -> int | None:
    tens, _, last = text.rpartition(" ")
    at = next((at for at, stem in enumerate(_ORDINALS) if re.fullmatch(stem + "(?:ого|его|го)", last)), None)
    if at is None:
        return None
    return _TENS.get(tens, 0) + (at + 1 if at < 19 else (at - 17) * 10)


def _spoken_year(text: str | None) -> int | None:
    if not text:
        return None
    century = 2000 if text.startswith("две тысячи ") else 1900
    short = _ordinal(re.sub(r"^(?:тысяча девятьсот|две тысячи) ", "", text))
    return None if short is None else century + short


def _relative(text: str, today: date) -> Day | None:
    named = {
        "today": 0,
        "tonight": 0,
        "сегодня": 0,
        "yesterday": -1,
        "вчера": -1,
        "tomorrow": 1,
        "завтра": 1,
        "day after tomorrow": 2,
        "послезавтра": 2,
    }
    if text in named:
        return _on(today + timedelta(days=named[text]))
    later = re.fullmatch(rf"(?:in|через) (?:(?P<count>{NUMBER}|a) )?(?P<unit>day|week|д(?:ень|ня|ней)|недел)\w*", text)
    if later is None:
        return None
    count = number(later["count"]) if later["count"] and later["count"] != "a" else 1
    days = 7 if later["unit"] in ("week", "недел") else 1
    return _on(today + timedelta(days=int(count) * days)) if count is not None and count < 4_000 else None


def _weekday(text: str, today: date) -> Day | None:
    match = re.fullmatch(
        rf"(?:(?:on|in|by|в|во|на|к) )?(?P<which>next |this |следующ\w+ |эт\w+ )?(?P<day>{WEEKDAY})", text
    )
    at = _index(_DAYS, match["day"]) if match else None
    if match is None or at is None:
        return None
    if (match["which"] or "").startswith(("next", "следующ")):
        return _on(today + timedelta(days=7 - today.weekday() + at))
    return _on(today + timedelta(days=(at - today.weekday()) % 7 or 7))


def _on(day: date) -> Day:
    return Day(day.month, day.day, day.year)


_READERS: tuple[Callable[[str, date], Day | None], ...] = (_numeric, _worded, _relative, _weekday)
