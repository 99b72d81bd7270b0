"""What a request is made from: every candidate, and the means to measure and shorten them. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from nitka.tokens import Counter
from nitka.types import ChatMessage, Line, Message, Passage, Summary

Count = Callable[[str], int]
Sizes = Mapping[int, int]
"""Row number -> `counter.count(row.text)`, as stored beside the row by the counter in force."""


class Compact(Protocol):
    """Makes a turn summary: at most `room` tokens of lines, oldest first."""

    def __call__(self, messages: Sequence[Message], /, *, room: int, count: Count) -> Sequence[Line]: ...


class Condense(Protocol):
    """Shortens a text to at most `room` tokens: head and tail word for word, a visible mark between them."""

    def __call__(self, text: str, /, *, room: int, count: Count) -> str: ...


@dataclass(frozen=True, slots=True)
class Means:
    """How a request is measured and what shortens its parts."""

    counter: Counter
    compact: Compact
    condense: Condense

    def counting(self, how: Callable[[Count], Count]) -> Means:
        """The same means, with a count that was made from this one: one that remembers sizes where texts may live."""
        counter = Counter(self.counter.name, self.counter.margin, how(self.counter.count))
        return Means(counter, self.compact, self.condense)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Every candidate for one request.

    `history` are the rows of `[cursor, head)` that still live, oldest first; `summary` covers `[0, cursor)`. Facts,
    recalled passages and knowledge come best first. `traffic` is this turn's own, after the question. `language`
    ("en", "ru") chooses the labels; when it is empty, the script of the question does. `notes` go into the receipt as
    they are and must not quote a user.
    """

    question: str
    system: str = ""
    tools: Sequence[Mapping[str, Any]] = ()
    profile: str = ""
    summary: Summary | None = None
    history: tuple[Message, ...] = ()
    facts: tuple[Passage, ...] = ()
    recalled: tuple[Passage, ...] = ()
    knowledge: tuple[Passage, ...] = ()
    traffic: tuple[ChatMessage, ...] = ()
    head: int = 0
    cursor: int = 0
    notes: tuple[str, ...] = ()
    language: str = ""


CHUNK = 8_192  # characters counted at a time in a text that may be far too long


def bounded(count: Count, limit: int) -> Count:
    """`count`, exact up to `limit` tokens; of a text beyond that it only says so, without reading all of it."""
    enough = limit + limit // 32 + 8  # cutting a text into chunks may add a token at each cut

    def counted(text: str) -> int:
        if len(text) <= 2 * CHUNK:
            return count(text)
        total = 0
        for start in range(0, len(text), CHUNK):
            total += count(text[start : start + CHUNK])
            if total > enough:
                return total
        return count(text)

    return counted
