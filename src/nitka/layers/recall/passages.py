"""From rows of the log to passages: the pieces that are found. Pure.

Rules
* A passage lies within one row, is at most `LONGEST` characters long, and ends where a sentence or a line ends if it
  can. The passages of a row follow each other without gap; what lies between them is white space only. So every word of
  a row is in exactly one passage.
* A passage carries where it stands (row, character offsets), who spoke, and when by the speaker's own calendar; the
  text itself is used to index it and is not kept in the index.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import re2

from nitka.types import Message

LONGEST = 480  # characters; two or three paragraphs of talk, a quarter of what a small embedder reads at once

_END = re2.compile(r"(?:[.!?…؟।]+[\"'»”’)\]]*\s)|[。！？]+|\n")
_SENTENCE = re2.compile(r"[^.!?…؟。！？\n]*[.!?…؟。！？\n]*")
_OFFSET = re2.compile(r"([+-])(\d{2}):?(\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a row, ready to be indexed.

    `session` is whatever names the session to the caller. `start` and `end` are character offsets in the row. `day` is
    the speaker's own date as an ordinal (`date.toordinal`). `asks` is the share of the text, from 0 to 1, that is
    questions.
    """

    session: str
    n: int
    seq: int
    start: int
    end: int
    speaker: str
    at: datetime
    day: int
    text: str
    asks: float


def passages(
    messages: Sequence[Message], *, session: str, speakers: tuple[str, str] = ("user", "assistant")
) -> tuple[Passage, ...]:
    """All passages of some rows of one session, in order. `speakers` are the names of the user and the assistant."""
    return tuple(piece for message in messages for piece in _of_row(message, session, speakers))


def _of_row(message: Message, session: str, speakers: tuple[str, str]) -> Iterator[Passage]:
    day = local_day(message.at, message.zone)
    for start, end in spans(message.text):
        text = message.text[start:end]
        yield Passage(
            session=session,
            n=message.n,
            seq=message.seq,
            start=start,
            end=end,
            speaker=speakers[message.role == "assistant"],
            at=message.at,
            day=day,
            text=text,
            asks=asking(text),
        )


def spans(text: str, *, longest: int = LONGEST) -> list[tuple[int, int]]:
    """Where to cut a text into pieces of at most `longest` characters; no piece is blank or begins or ends with white
    space.
    """
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(text):
        end = at + _piece(text[at : at + longest + 1], longest, last=len(text) - at <= longest)
        first, last = at + _leading(text[at:end]), at + len(text[at:end].rstrip())
        if first < last:
            found.append((first, last))
        at = end
    return found


def _leading(piece: str) -> int:
    return len(piece) - len(piece.lstrip())


def _piece(view: str, longest: int, *, last: bool) -> int:
    """Length of the first piece of `view`: to the last sentence end, else the last blank, in its second half, else all
    that fits.
    """
    if last:
        return len(view)
    ends = [int(match.end()) for match in _END.finditer(view) if longest // 2 <= match.end() <= longest]
    if ends:
        return ends[-1]
    blank = max((view.rfind(char, longest // 2, longest + 1) for char in " \t\n\u3000"), default=-1)
    return blank if blank > 0 else longest


def asking(text: str) -> float:
    """The share of a text, by characters, that stands in sentences ending in a question mark."""
    questions = total = 0
    for sentence in _SENTENCE.findall(text):
        size = len(sentence.strip())
        total += size
        questions += size * (sentence.rstrip()[-1:] in "?؟？" and size > 0)
    return questions / total if total else 0.0


def local_day(at: datetime, zone: str) -> int:
    """The date on the speaker's own calendar, as an ordinal. A zone nobody knows counts as UTC."""
    return at.astimezone(_zone(zone)).toordinal()


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name)
    if offset:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-size if offset[1] == "-" else size) if size < timedelta(days=1) else UTC
    try:
        return ZoneInfo(name) if name else UTC
    except (ZoneInfoNotFoundError, ValueError):
        return UTC
