"""Two views for one request: the turn summary of messages that did not fit, and a huge text with its middle condensed.

Both stay within their room by the counter they are given, and both take time linear in what they are given: the
counter itself is only ever asked about pieces about as long as the room.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from nitka.models.extract.lexicon import language, lexicon
from nitka.models.extract.notes import Note, take_notes
from nitka.models.extract.text import telling, telling_signs
from nitka.types import Line, Message

Count = Callable[[str], int]

HEAD, TAIL = 0.4, 0.25  # of the room; the rest is for the condensed middle
SPARE = 8  # an eighth of the room left over is given back to the ends
WIDE = 16  # characters: no token of ordinary text is wider, so a text of more than WIDE * room is not counted whole
READ, NEWEST = 36, 12  # messages of a turn summary that are read, and how many of them are the newest
MIDDLE_SENTENCES = 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def compact(messages: Sequence[Message], *, room: int, count: Count) -> tuple[Line, ...]:
    """Lines for messages that did not fit a request, in order, at most `room` tokens of `count` when joined by
    newlines.

    The lines worth most for their size are taken as gists, then as many of the newest as fit are given in full.
    Small talk gives nothing. A turn waits for this, so at most `READ` messages are read: the newest, and those that
    look most telling.
    """
    return _compacted(_worth_reading(messages), room, count)


def _worth_reading(messages: Sequence[Message]) -> Sequence[Message]:
    if len(messages) <= READ:
        return messages
    older = messages[:-NEWEST]
    lex = lexicon(language("\n".join(message.text[:100] for message in messages[-READ:])))
    told = [telling_signs(message.text, lex) / (1 + (message.role == "assistant")) for message in older]
    best = heapq.nlargest(READ - NEWEST, range(len(older)), key=lambda at: (told[at], at))
    return [*(older[at] for at in sorted(best)), *messages[-NEWEST:]]


def _compacted(messages: Sequence[Message], room: int, count: Count) -> tuple[Line, ...]:
    notes = take_notes(messages)
    chosen = _affordable(notes, room, count)
    lines = [replace(note.line, form="gist") for note in notes if id(note) in chosen]
    while lines and _size(lines, count) > room:
        lines.pop(0)
    return tuple(_spelt_out(lines, room, count))


def _affordable(notes: Sequence[Note], room: int, count: Count) -> set[int]:
    prices = [(note, 1 + count(note.line.gist)) for note in notes]
    chosen, used = set(), 0
    for note, price in sorted(prices, key=lambda priced: -priced[0].value / priced[1]):
        if used + price <= room + 1:
            chosen.add(id(note))
            used += price
    return chosen


def _spelt_out(lines: list[Line], room: int, count: Count) -> list[Line]:
    """The newest lines in full, as far back as it fits."""
    for at in range(len(lines) - 1, -1, -1):
        longer = [*lines[:at], replace(lines[at], form="full"), *lines[at + 1 :]]
        if _size(longer, count) > room:
            break
        lines = longer
    return lines


def _size(lines: Sequence[Line], count: Count) -> int:
    return count("\n".join(line.text for line in lines)) if lines else 0


def condense(text: str, *, room: int, count: Count) -> str:
    """The text within `room` tokens: unchanged if it fits, else head and tail verbatim and between visible marks
    what the middle says.

    The first mark tells how many characters were condensed. Where not even the marks have room, the head alone is
    left, cut.
    """
    if room <= 0:
        return ""
    if len(text) <= WIDE * room and count(text) <= room:
        return text
    texts = lexicon(language(text)).texts or lexicon("en").texts
    longest = texts["open_mark"].format(count=len(text)) + "\n\n" + texts["close_mark"] + "\n\n"
    left = room - count(longest) - 2
    if left < 4:
        return cut_head(text, room, count)
    ends = int(left * (HEAD + TAIL))
    head, tail = _ends(text, ends, count)
    said = _gist_of(text[len(head) : len(text) - len(tail)], left - ends, count)
    spare = left - sum(map(count, (head, tail, "\n".join(said))))
    if spare * SPARE > left:  # the middle had little to say: more of both ends is better than unused room
        head, tail = _ends(text, ends + spare, count)
    return _marked(text, _Parts(head, tail, tuple(said)), texts, room, count) or cut_head(text, room, count)


@dataclass(frozen=True, slots=True)
class _Parts:
    """A long text in three: its ends verbatim, and what the middle says."""

    head: str
    tail: str
    said: tuple[str, ...]


def _ends(text: str, room: int, count: Count) -> tuple[str, str]:
    """Head and tail that take `room` tokens together."""
    head = cut_head(text, int(room * HEAD / (HEAD + TAIL)), count)
    return head, cut_tail(text[len(head) :], int(room * TAIL / (HEAD + TAIL)), count)


def _marked(text: str, parts: _Parts, texts: Mapping[str, str], room: int, count: Count) -> str:
    """The parts with their marks, the last clauses and then the tail given up until all fits; empty when it never
    does.
    """
    said, tail = list(parts.said), parts.tail
    while True:
        opening = texts["open_mark"].format(count=len(text) - len(parts.head) - len(tail))
        whole = "\n".join([parts.head, opening, *said, texts["close_mark"], tail])
        if count(whole) <= room:
            return whole
        if not said and not tail:
            return ""
        if said:
            said.pop()
        else:
            tail = tail[1 + len(tail) // 8 :]


def _gist_of(text: str, room: int, count: Count) -> list[str]:
    """What a long text says, as short clauses in order, most of it from the sentences that look most telling."""
    lex = lexicon(language(text))
    sentences = telling(text, lex, MIDDLE_SENTENCES)
    rows = [Message(seq=at, n=at, role="user", text=sentence, at=EPOCH) for at, sentence in enumerate(sentences)]
    return [line.text for line in _compacted(rows, room, count)]


def cut_head(text: str, room: int, count: Count) -> str:
    """The longest beginning within `room` tokens, ended before a word where there are words. Asks about short
    pieces only.
    """
    low, high = 0, min(len(text), WIDE * max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= room else (low, middle - 1)
    if low < len(text):
        space = max(text.rfind(" ", low // 2, low), text.rfind("\n", low // 2, low))
        low = space if space > 0 else low
    return text[:low]


def cut_tail(text: str, room: int, count: Count) -> str:
    """The longest end within `room` tokens, begun after a space where there are words."""
    low, high = 0, min(len(text), WIDE * max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[len(text) - middle :]) <= room else (low, middle - 1)
    tail = text[len(text) - low :] if low else ""
    space = tail.find(" ", 0, len(tail) // 2)
    return tail[space + 1 :] if 0 < low < len(text) and space >= 0 else tail
