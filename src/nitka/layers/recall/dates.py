"""Dates that a question names ("in March 2023", "last May", «в прошлую пятницу»), matched against the day a passage was
said. Pure.

Rules
* A named date becomes a span of days or, when the year is not said, the same days of every year. Words that lean on
  today ("yesterday", "last week") need `today` and are ignored without it.
* What was said is often said a little later than it happened ("yesterday I …"), so a passage from shortly after a span
  fits too, less with every day; one from before it fits half as well (a plan). A date only ever speaks for a passage;
  age alone counts for nothing.
* "Today" is no date here: it seldom asks for what was said today.
* English and Russian; numeric and ISO dates everywhere. `May`, `March`, `мая` and the like count as months only where
  the words around them say so.
"""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from nitka.layers.recall.segment import Array
from nitka.layers.recall.words import fold

LOOKED_AT = 2_000  # characters of a question
LATER = 7.0  # days after which a late mention fits a third as well

_MONTHS = (
    "jan(?:uary)?|январ[яеь]",
    "feb(?:ruary)?|феврал[яеь]",
    "march|mar|март[ае]?",
    "apr(?:il)?|апрел[яеь]",
    "may|ма[йяе]",
    "june?|июн[яеь]",
    "july?|июл[яеь]",
    "aug(?:ust)?|август[ае]?",
    "sept?(?:ember)?|сентябр[яеь]",
    "oct(?:ober)?|октябр[яеь]",
    "nov(?:ember)?|ноябр[яеь]",
    "dec(?:ember)?|декабр[яеь]",
)
_WEEKDAYS = (
    "monday|понедельник[ае]?",
    "tuesday|вторник[ае]?",
    "wednesday|сред[ауые]",
    "thursday|четверг[ае]?",
    "friday|пятниц[ауые]",
    "saturday|суббот[ауые]",
    "sunday|воскресень[ея]",
)
_SEASONS = {"winter|зим[аойуые]+": 12, "spring|весн[аойуые]+": 3, "summer|лет[аоме]+": 6, "autumn|fall|осен[ьюи]+": 9}
_UNITS = {"day|дн[яейь]+|день": 1, "week|недел[яиюье]+": 7, "month|месяц[аеыв]*": 30, "year|год[ауов]*|лет": 365}
_NUMBERS = {
    "a|an|one|один|одну|": 1,
    "two|a couple of|couple of|два|две|пару": 2,
    "three|три": 3,
    "four|четыре": 4,
    "five|пять": 5,
    "six|шесть": 6,
    "ten|десять": 10,
}
_LAST = r"(?:last|this past|past|previous|прошл(?:ый|ая|ое|ого|ой|ую|ым|ом))"
_THIS = r"(?:this|эт(?:от|у|ой|ом|им))"
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_OF_YEAR = rf"(?:\s*(?:of|,)?\s*{_YEAR}(?:\s*г(?:од[ау]?)?\b)?)?"
_TH = r"(?:st|nd|rd|th|-?го)?"


@dataclass(frozen=True, slots=True)
class Span:
    """Days from `first` to `last`, both included, as ordinals; with `yearly`, the same days of every year."""

    first: int
    last: int
    yearly: bool = False


def named_dates(question: str, today: int | None = None) -> tuple[Span, ...]:
    """The spans of days that a question names, the most exact reading of each place only. `today` is an ordinal."""
    return read_dates(question, today)[0]


def read_dates(question: str, today: int | None = None) -> tuple[tuple[Span, ...], str]:
    """The spans, and what the question says (folded) in the places where they were read."""
    text = fold(question[:LOOKED_AT])
    found: list[Span] = []
    said: list[str] = []
    for pattern, read in _RULES:
        for match in pattern.finditer(text):
            span = read(match, today)
            if span is not None:
                found.append(span)
                said.append(match[0])
                text = text[: match.start()] + " " * len(match[0]) + text[match.end() :]
    return tuple(dict.fromkeys(found)), " ".join(said)


def fits(days: Array, spans: Sequence[Span]) -> Array:
    """How well each day fits the best of the spans: 1 inside, falling off after and (from a half) before; 0 without
    spans.
    """
    best = np.zeros(len(days), np.float32)
    for span in spans:
        shifts = _years_between(days, span) if span.yearly else (0,)
        for shift in shifts:
            best = np.maximum(best, _fit(days, span.first + shift, span.last + shift))
    return best


def _fit(days: Array, first: int, last: int) -> Array:
    after, before = np.maximum(days - last, 0), np.maximum(first - days, 0)
    value = np.exp(-after / LATER) * np.where(before > 0, 0.5 * np.exp(-before / LATER), 1.0)
    return np.where(value < 0.02, 0, value).astype(np.float32)


def _years_between(days: Array, span: Span) -> Iterator[int]:
    """Shifts in days that bring a yearly span to each year in which something was said."""
    if not len(days):
        return
    start, stop = date.fromordinal(int(days.min())).year - 1, date.fromordinal(int(days.max())).year + 1
    first = date.fromordinal(span.first)
    for year in range(start, stop + 1):
        yield _safe(year, first.month, first.day) - span.first


def _safe(year: int, month: int, day: int) -> int:
    return date(year, month, min(day, monthrange(year, month)[1])).toordinal()


_Read = Callable[["re.Match[str]", "int | None"], "Span | None"]


def _choice(options: Sequence[str]) -> str:
    return "|".join(f"(?:{option})" for option in options)


def _place(options: Sequence[str], text: str) -> int:
    return next(i for i, option in enumerate(options) if re.fullmatch(option, text))


_MONTH = f"(?P<month>{_choice(_MONTHS)})"
_SEASON = f"(?P<season>{_choice(tuple(_SEASONS))})"


def _month(match: re.Match[str], today: int | None) -> Span | None:
    return _months(_place(_MONTHS, match["month"]) + 1, 1, match.groupdict().get("year"))


def _season(match: re.Match[str], today: int | None) -> Span | None:
    return _months(tuple(_SEASONS.values())[_place(tuple(_SEASONS), match["season"])], 3, match.groupdict().get("year"))


def _months(first: int, number: int, year: str | None) -> Span:
    in_year = int(year) if year else 2001
    start = date(in_year, first, 1).toordinal()
    return Span(start, _later(in_year, first, number) - 1, yearly=not year)


def _later(year: int, month: int, number: int) -> int:
    month += number
    return date(year + (month - 1) // 12, (month - 1) % 12 + 1, 1).toordinal()


def _last_time(read: _Read) -> _Read:
    """The latest whole occurrence before today of what `read` finds for every year."""

    def latest(match: re.Match[str], today: int | None) -> Span | None:
        span = read(match, today)
        if span is None or today is None:
            return span
        year = date.fromordinal(today).year
        start = date.fromordinal(span.first)
        ends = span.last - span.first
        starts = [_safe(y, start.month, start.day) for y in (year, year - 1)]
        return next((Span(s, s + ends) for s in starts if s + ends < today), None)

    return latest


def _day(match: re.Match[str], today: int | None) -> Span | None:
    groups = match.groupdict()
    month = int(groups["number"]) if groups.get("number") else _place(_MONTHS, groups["month"]) + 1
    year, day = groups.get("year"), int(groups["day"])
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(int(year) if year else 2004, month)[1]:
        return None
    at = date(int(year) if year else 2004, month, day).toordinal()
    return Span(at, at, yearly=not year)


def _year(match: re.Match[str], today: int | None) -> Span | None:
    return _whole_year(int(match["year"]))


def _whole_year(year: int) -> Span:
    return Span(date(year, 1, 1).toordinal(), date(year, 12, 31).toordinal())


def _ago(match: re.Match[str], today: int | None) -> Span | None:
    if today is None:
        return None
    size = tuple(_UNITS.values())[_place([f"(?:{unit})s?" for unit in _UNITS], match["unit"])]
    said = (match["count"] or "").strip()
    number = int(said) if said.isdigit() else tuple(_NUMBERS.values())[_place(tuple(_NUMBERS), said)]
    at = today - number * size
    return Span(max(at - size // 3, 1), at + size // 3) if at > 0 else None


def _days_back(number: int) -> _Read:
    return lambda match, today: None if today is None else Span(today - number, today - number)


def _last_unit(match: re.Match[str], today: int | None) -> Span | None:
    if today is None:
        return None
    back = 1 if match["last"] else 0
    now, unit = date.fromordinal(today), match["unit"]
    monday = today - now.weekday() - 7 * back
    if re.fullmatch("week|недел.", unit):
        return Span(monday, monday + 6)
    if re.fullmatch("weekend|выходн..", unit):
        return Span(monday - 2 + 7 * back, monday - 1 + 7 * back)
    if re.fullmatch("month|месяц.?", unit):
        first = (now.replace(day=1) - timedelta(days=back)).replace(day=1)
        return Span(first.toordinal(), _later(first.year, first.month, 1) - 1)
    return _whole_year(now.year - back)


def _weekday(match: re.Match[str], today: int | None) -> Span | None:
    if today is None:
        return None
    back = (date.fromordinal(today).weekday() - _place(_WEEKDAYS, match["weekday"]) - 1) % 7 + 1
    return Span(today - back, today - back)


_COUNT = rf"(?P<count>\d{{1,3}}|{_choice(tuple(_NUMBERS))})"
_UNIT = rf"(?P<unit>(?:{_choice(tuple(_UNITS))})s?)"
_DAY = r"(?P<day>\d{1,2})"
_GODA = r"(?:\s*г(?:од[ау]?)?)?"  # «2023 г.», «2023 года»
_IN = r"(?:in|of|during|since|this|early|late|mid|until|by|for|в|во|с|до|к|за|начале|конце)[\s-]+"
_ON = rf"(?:on|{_LAST}|{_THIS}|во?(?:\s+(?:{_LAST}|{_THIS}))?)\s+"
_PERIOD = r"(?P<unit>weekend|week|month|year|недел[яиюе]|месяц[ае]?|год[уа]?|выходн(?:ые|ых))"

# In this order; what one rule has read is blank to the rules below it.
_RULES: tuple[tuple[re.Pattern[str], _Read], ...] = (
    (re.compile(rf"\b{_YEAR}-(?P<number>\d\d)-(?P<day>\d\d)\b"), _day),
    (re.compile(rf"\b{_DAY}\.(?P<number>\d{{1,2}})\.{_YEAR}\b"), _day),
    (re.compile(rf"\b{_DAY}{_TH}\s+(?:of\s+)?{_MONTH}\b{_OF_YEAR}"), _day),
    (re.compile(rf"\b{_MONTH}\.?\s+{_DAY}{_TH}\b(?!\d){_OF_YEAR}"), _day),
    (re.compile(rf"\b{_LAST}\s+{_MONTH}\b"), _last_time(_month)),
    (re.compile(rf"\b{_IN}{_MONTH}\b{_OF_YEAR}"), _month),
    (re.compile(rf"\b{_MONTH},?\s+(?:of\s+)?{_YEAR}{_GODA}\b"), _month),
    (re.compile(rf"\b{_LAST}\s+{_SEASON}\b"), _last_time(_season)),
    (re.compile(rf"\b{_SEASON}\s+(?:of\s+)?{_YEAR}{_GODA}\b"), _season),
    (re.compile(rf"\b(?:in|during|this)\s+(?:the\s+)?{_SEASON}\b"), _season),
    (re.compile(r"\bday before yesterday\b|\bпозавчера\b"), _days_back(2)),
    (re.compile(r"\byesterday\b|\bвчера\b"), _days_back(1)),
    (re.compile(rf"(?:\b{_COUNT}\s+)?\b{_UNIT}\s+(?:ago|назад)\b"), _ago),
    (re.compile(rf"\b(?:(?P<last>{_LAST})|{_THIS})\s+{_PERIOD}\b"), _last_unit),
    (re.compile(rf"\b{_ON}(?P<weekday>{_choice(_WEEKDAYS)})\b"), _weekday),
    (re.compile(rf"\b{_YEAR}\b"), _year),
)
