"""Things a message names: links, addresses, phones, cards, accounts, wallets, sums, dates, times, ages.

Each search is guarded by a character that must be there, so that ordinary talk costs nothing. Checksums decide where
there are any (Luhn, ISO 13616 for IBAN). Telephone numbers are read by phonenumbers, in pieces of bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from nitka.watch.ages import number_at, self_ages
from nitka.watch.clauses import Reading, Sentence
from nitka.watch.types import Entity

_URL = re.compile(
    r"(?:https?://|www\.)[^\s<>\"'«»]{2,2000}|(?<![\w.@-])(?:[\w-]{1,63}\.){1,4}(?:com|org|net|ru|info|io|me|shop|online|"
    r"site|xyz|top|app|dev|de|es|fr|uk|рф)(?:/[^\s<>\"'«»]{0,500})?(?![\w-])",
    re.I,
)
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_IP = re.compile(r"(?<![\d.])(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)\.){3}(?:25[0-5]|2[0-4]\d|1?\d?\d)(?![\d.])")
_CARD = re.compile(r"(?<![\d-])\d(?:[ -]?\d){12,18}(?![ -]?\d)")
_IBAN = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]){11,30}(?![A-Za-z0-9])")
_USER = re.compile(r"(?<![\w.@])@[A-Za-z_][\w.]{1,31}(?!\w)")
_TAG = re.compile(r"(?<![\w&#])#[^\W\d]\w{0,63}")
_SUM = re.compile(
    r"[$€£₽]\s?\d[\d.,]{0,15}(?:\s?[kк](?!\w))?|(?<![\w.,])\d[\d.,]{0,12}(?:[ \u00a0]\d{3}){0,4}\s?"
    r"(?:[$€£₽]|(?:тыс(?:яч[аи]?)?\.?\s)?(?:usdt?|eur|gbp|rub|btc|dollars?|euros?|pounds?|bucks|quid|grand|"
    r"руб(?:лей|ля|ль)?|р|доллар(?:ов|а)?|евро|тысяч[аи]?|тыс)(?!\w))",
    re.I,
)
_DATE = re.compile(
    r"(?<![\d.])(?:\d{4}-\d{2}-\d{2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})(?!\d)|(?<!\w)\d{1,2}(?:st|nd|rd|th)?\s(?:of\s)?(?:january|february|march|"
    r"april|may|june|july|august|september|october|november|december|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|"
    r"ноября|декабря)(?!\w)",
    re.I,
)
_TIME = re.compile(
    r"(?<![\d:])(?:[01]?\d|2[0-3]):[0-5]\d(?![\d:])(?:\s?[ap]m(?!\w))?|(?<!\w)(?:1[0-2]|\d)\s?[ap]m(?!\w)", re.I
)
_WALLETS = (
    ("bitcoin", re.compile(r"(?<!\w)(?:bc1[02-9ac-hj-np-z]{25,62}|[13][1-9A-HJ-NP-Za-km-z]{25,34})(?!\w)")),
    ("ethereum", re.compile(r"(?<!\w)0x[0-9a-fA-F]{40}(?!\w)")),
    ("tron", re.compile(r"(?<!\w)T[1-9A-HJ-NP-Za-km-z]{33}(?!\w)")),
)
_BRANDS = (("visa", "4"), ("mastercard", "5"), ("mir", "220"), ("amex", "34"), ("amex", "37"), ("mastercard", "2"))
_DIGITS = re.compile(r"\d")
_PHONE_RUN = re.compile(r"[+(]?\d[\d ()./\u00a0-]{5,30}\d")


def entities(
    text: str, reading: Reading, sentences: Sequence[Sentence], region: str, *, plain: bool = False
) -> tuple[Entity, ...]:
    """Everything named in the message, by place; of two that overlap, the one found by the stricter check. A `plain`
    message, words and ordinary marks only, names nothing but ages.
    """
    if plain:
        return _apart([*_ages(reading, sentences, text)]) if reading.numbers else ()
    found: list[Entity] = []
    digits = len(_DIGITS.findall(text)) if _DIGITS.search(text) else 0
    for search in (_links, _wallets, _ibans, _cards, _signs):
        found.extend(search(text, digits))
    if digits >= 6:
        found.extend(_phones(text, region))
    if digits:
        found.extend(_simple(text, "date", _DATE))
        found.extend(_simple(text, "time", _TIME))
        found.extend(_simple(text, "amount_of_money", _SUM))
    found.extend(_ages(reading, sentences, text))
    return _apart(found)


def _apart(found: Sequence[Entity]) -> tuple[Entity, ...]:
    """Drop what overlaps something found before it. Linear after sorting: kept spans are looked up by their
    neighbours only.
    """
    kept: list[Entity] = []
    taken: set[int] = set()
    for one in found:
        span = range(one.start, one.end)
        if taken.isdisjoint(span):
            kept.append(one)
            taken.update(span)
    return tuple(sorted(kept, key=lambda e: (e.start, e.end)))


def _simple(text: str, kind: str, pattern: re.Pattern[str]) -> Iterator[Entity]:
    for match in pattern.finditer(text):
        yield Entity((kind,), match.start(), match.end(), match.group())


def _links(text: str, digits: int) -> Iterator[Entity]:
    if "@" in text:
        yield from _simple(text, "email", _MAIL)
    if digits >= 4 and "." in text:
        yield from _simple(text, "ip_address", _IP)
    if "." in text:
        for match in _URL.finditer(text):
            end = match.start() + len(match.group().rstrip(".,;:!?)]}»"))
            yield Entity(("website",), match.start(), end, text[match.start() : end])


def _signs(text: str, _digits: int) -> Iterator[Entity]:
    if "@" in text:
        yield from _simple(text, "username", _USER)
    if "#" in text:
        yield from _simple(text, "hashtag", _TAG)


def _wallets(text: str, digits: int) -> Iterator[Entity]:
    if digits < 2 or len(text) < 26:
        return
    for name, pattern in _WALLETS:
        for match in pattern.finditer(text):
            if any(c.isdigit() for c in match.group()):
                yield Entity(("crypto",), match.start(), match.end(), match.group(), (name,))


def _ibans(text: str, digits: int) -> Iterator[Entity]:
    if digits < 8:
        return
    for match in _IBAN.finditer(text):
        value = match.group().replace(" ", "")
        if len(value) <= 34 and int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1:
            yield Entity(("bank_account",), match.start(), match.end(), match.group(), ("iban",), value)


def _cards(text: str, digits: int) -> Iterator[Entity]:
    if digits < 13:
        return
    for match in _CARD.finditer(text):
        value = re.sub(r"\D", "", match.group())
        if luhn(value):
            brand = next(((name,) for name, start in _BRANDS if value.startswith(start)), ())
            yield Entity(("credit_card",), match.start(), match.end(), match.group(), brand, value)


def luhn(digits: str) -> bool:
    """The check digit of payment cards (ISO/IEC 7812)."""
    if not digits.isascii() or len(set(digits)) < 2:
        return False
    doubled = [int(d) * (2 if i % 2 else 1) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


def _phones(text: str, region: str) -> Iterator[Entity]:
    from phonenumbers import (
        PhoneNumberFormat,
        PhoneNumberMatcher,
        format_number,
    )  # a tenth of a second, needed by few messages

    for run in _PHONE_RUN.finditer(text):
        for match in PhoneNumberMatcher(run.group(), region or None):
            start = run.start() + match.start
            value = format_number(match.number, PhoneNumberFormat.E164)
            yield Entity(("phone",), start, start + len(match.raw_string), match.raw_string, (), value)


def _ages(reading: Reading, sentences: Sequence[Sentence], text: str) -> Iterator[Entity]:
    tokens = reading.tokens
    if not reading.numbers:
        return
    for sentence in sentences:
        own = {}
        for clause in sentence.clauses:
            own.update({end: (age, start) for age, start, end in self_ages(reading, clause)})
        for end, (age, start) in own.items():
            yield _age(age, tokens[start].start, tokens[end - 1].end, text)
    for place in reading.numbers:
        value, end = number_at(reading, place)
        if 0 < value < 120 and end < len(tokens) and "YEARS" in reading.grammar[end]:
            yield _age(value, tokens[place].start, tokens[end].end, text)


def _age(age: int, start: int, end: int, text: str) -> Entity:
    kinds = ("age", "minor_age") if age < 18 else ("age",)
    return Entity(kinds, start, end, text[start:end], (), str(age))
