"""Cutting a message into sentences and clauses, after hiding what is not the user's own statement.

Hidden, with the same length so that positions keep: quotations, pasted passages, quoted lines of mail, code, links,
and instructions that speak to a machine ("SYSTEM: ..."). A short quoted name («Лаймпиксель») stays, because it names
a thing; a single quoted lower-case word does not, because such quotes mark irony.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

HIDDEN = "\ufffc"
MESSAGE_CHARS = 4_000
"""Of a longer message only the beginning and the end are read."""
SENTENCE_CHARS = 400

_QUOTED = re.compile(
    r"«[^«»]*»|“[^“”]*”|„[^„“”]*[“”]|\"[^\"]*\"|(?<!\w)‘[^‘’\n]{8,}’(?!\w)|(?<!\w)'[^'\n]{3,} [^'\n]{3,}'(?!\w)", re.S
)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]+`|https?://\S+|www\.\S+", re.S)
_MAIL_LINE = re.compile(r"^[ \t]*>.*$", re.M)
_PIECE = re.compile(r"[^.!?\n]+[.!?]?")
_ADDRESSED = re.compile(
    r"(?i)\b(?:system|assistant|developer|admin|система|ассистент|админ) ?(?:prompt|message|note)? ?:[^\n]*"
    r"|<\|?[^<>\n]{1,40}\|?>"
)
_ORDER = re.compile(  # a piece of a sentence that gives orders to a machine
    r"""(?ix) \b(?:ignore|disregard|forget)[ ](?:all[ ]|any[ ])?(?:the[ ]|your[ ])?(?:previous|prior|above|earlier)[ ]\w
    | \b(?:игнорируй|проигнорируй|забудь)[ ](?:все[ ])?(?:предыдущие|прошлые)[ ]\w
    | \b(?:store|save|note|record|remember|memori[sz]e)\b.{0,40}\bthe[ ]user\b
    | \b(?:запомни|сохрани|запиши|занеси)\w*\b.{0,40}\bпользовател"""
)
_PASTE_AFTER = re.compile(
    r"(?i)\b(?:this|following|below|text|letter|e-?mail|message|minutes|article|notes|draft|вот|текст|письм\w+|сообщени\w+|стать\w+|протокол\w*|"
    r"перевед\w+|провер\w+|сократ\w+|summary|summari[sz]e|translate|proofread|check)\b[^\n]{0,80}:[ \t]*\n"
)
_STOP = re.compile(
    r"(?<=[.!?…])[\"»)\]]*\s+|\n+|(?<=[)(])(?<=\)\)|[:;]\)|[:;]\()\s+|(?<=\w\))\s+(?=[A-ZА-ЯЁ])|\s+(?=[:;]-?[)(])"
)
_SHORT = re.compile(
    r"(?i)\b(?:mr|mrs|ms|dr|st|prof|sr|jr|vs|etc|e\.g|i\.e|approx|no|ул|г|д|кв|им|т\.е|т\.к|т\.д|тыс|руб|стр|др)\.$"
)
_JOINT = re.compile(
    r"(?i)\s*[,;:()]\s*|\s+[-–—]+\s+|[–—]|\s+(?=(?:and|but|so|because|though|although|while|when|since|unless|until|which|who|и|а|но|да|"
    r"потому|поэтому|хотя|когда|если|чтобы|пока|зато|который|которая)\b)"
)


@dataclass(frozen=True, slots=True)
class Clause:
    """A piece of a sentence, by positions in the message."""

    start: int
    end: int


@dataclass(frozen=True)
class Sentence:
    """One sentence of the hidden text; `start` is where it begins in the message."""

    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def asks(self) -> bool:
        return self.text.rstrip(" )(\"'»").endswith("?")

    @cached_property
    def clauses(self) -> tuple[Clause, ...]:
        """The clauses, by positions in the sentence; together with their joints they cover it."""
        cuts = [0, *(match.end() for match in _JOINT.finditer(self.text)), len(self.text)]
        pairs = zip(cuts, cuts[1:], strict=False)
        return tuple(Clause(first, last) for first, last in pairs if last > first)

    def clause_at(self, place: int) -> Clause:
        return next((clause for clause in reversed(self.clauses) if clause.start <= place), self.clauses[0])


def hidden(text: str) -> str:
    """The message with everything hidden that is not the user's own statement; the same length."""
    text = _ends(text)
    for pattern in (_CODE, _MAIL_LINE):
        text = pattern.sub(_blank, text)
    text = _QUOTED.sub(lambda match: match.group() if _is_name(match.group()) else _blank(match), text)
    text = _ADDRESSED.sub(_blank, _without_paste(text))
    return _PIECE.sub(lambda match: _blank(match) if _ORDER.search(match.group()) else match.group(), text)


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a hidden text. Over-long ones are cut, since nobody says one thing in so many words."""
    start = 0
    for match in [*_STOP.finditer(text), None]:
        end = len(text) if match is None else match.start()
        if match is not None and "\n" not in match.group() and _SHORT.search(text[start:end]):
            continue
        for first in range(start, end, SENTENCE_CHARS):
            piece = text[first : min(end, first + SENTENCE_CHARS)]
            if piece.strip(HIDDEN + " \t\n.,!?"):
                yield Sentence(piece, first)
        start = end if match is None else match.end()


def _ends(text: str) -> str:
    """The beginning and the end of a text that is too long to be the user's own statement throughout."""
    if len(text) <= MESSAGE_CHARS:
        return text
    half = MESSAGE_CHARS // 2
    return text[:half] + HIDDEN * (len(text) - MESSAGE_CHARS) + text[-half:]


def _blank(match: re.Match[str]) -> str:
    return HIDDEN * len(match.group())


def _is_name(quoted: str) -> bool:
    inner = quoted[1:-1].strip()
    short = 0 < len(inner) <= 40 and len(inner.split()) <= 4 and not re.search(r"[.!?,:;\n]", inner)
    return short and (inner[0].isupper() or inner[0].isdigit())


def _without_paste(text: str) -> str:
    """Paragraphs after "... this text:" are somebody's text, up to a short last paragraph, in which the user speaks
    again."""
    lead = _PASTE_AFTER.search(text)
    if lead is None:
        return text
    head, body = text[: lead.end()], text[lead.end() :]
    last = body.rstrip().rfind("\n\n")
    if last < 0:
        cut = len(body) if len(body) > 200 else 0
    else:
        cut = last if len(body) - last <= 240 else len(body)
    return head + HIDDEN * cut + body[cut:]
