"""Clean text whose every character still knows its place in the message.

Rules: offsets are code points of the message as given. Characters may be dropped (zero-width, combining marks),
replaced (lone surrogates become U+FFFD, one for one; full-width and decorated letters their plain form) or composed
(и + breve = й), never reordered. Case is folded and ё becomes е. What needs to know words (digits for letters,
stretched vowels, look-alike letters) is done per token in `tokens`, because «о» in a Latin word and "o" in a Russian
one are told apart only by their neighbours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_PLAIN = re.compile(r"[\x20-\x7e\n\t\rа-яА-ЯёЁ«»—–№…’‘“”„€£₽]*\Z")
QUOTES = str.maketrans({"ё": "е", "’": "'", "ʼ": "'", "`": "'", "´": "'", "‘": "'", "\u00a0": " ", "‐": "-", "‑": "-"})
_DROPPED = frozenset("\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\ufeff\ufffc") | frozenset(
    chr(c) for c in (*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), *range(0xFE00, 0xFE10))
)


@dataclass(frozen=True, slots=True)
class Clean:
    """`text` is what is read; `at[i]` is where its character i stood in the message (None: the same place)."""

    text: str
    at: Sequence[int] | None
    length: int  # of the message, in code points

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where the characters `[start, end)` stood: the message's own `[start, end)`."""
        if self.at is None:
            return start, end
        if start >= end:
            place = self.at[start] if start < len(self.at) else self.length
            return place, place
        return self.at[start], self.at[end - 1] + 1


def clean(message: str) -> Clean:
    """Fold one message. Linear in its length; total over any sequence of code points."""
    if _PLAIN.match(message):
        return Clean(message.lower().translate(QUOTES), None, len(message))
    return _slowly(message)


def _slowly(message: str) -> Clean:
    out: list[str] = []
    at: list[int] = []
    for place, char in enumerate(message):
        for piece in _fold(char, out):
            out.append(piece)
            at.append(place)
    return Clean("".join(out), at, len(message))


def _fold(char: str, before: list[str]) -> str:
    """The characters that stand for `char`; a combining mark is composed into the one before it or dropped."""
    code = ord(char)
    if code < 0x80:
        return char.lower()
    if 0xD800 <= code <= 0xDFFF:
        return "\ufffd"
    if char in _DROPPED:
        return ""
    if unicodedata.combining(char):
        return _compose(char, before)
    return unicodedata.normalize("NFKC", char).lower().translate(QUOTES)[:8]


def _compose(mark: str, before: list[str]) -> str:
    if before:
        whole = unicodedata.normalize("NFC", before[-1] + mark)
        if len(whole) == 1:
            before[-1] = whole.translate(QUOTES)
    return ""


def utf16_at(text: str) -> list[int]:
    """For each code point boundary of `text` (its length plus one of them), the offset in UTF-16 units."""
    places = [0]
    for char in text:
        places.append(places[-1] + (2 if ord(char) > 0xFFFF else 1))
    return places
