"""Text to sentences, words and comma-wide segments, with offsets into the source so that what is written later is
verbatim.

Linear in the length of the text, whatever it holds: a sentence is at most `SENTENCE` characters, cut by force when
its writer set no mark.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise

from nitka.models.extract.lexicon import PREFIX, Lexicon, fold

SENTENCE = 600  # characters
COARSE = 100_000  # characters above which a text is first looked at in stretches
STRETCH = 2_000
SAMPLES = 300  # stretches that are looked at, at most
TOLD = frozenset({"strict", "decide", "promise", "open", "correct"})
MARKED = re.compile(r"[^\W\d_]+")
WORD = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"  # an address
    r"|https?://[^\s<>\"«»]+[\w/]"
    r"|(?<![\w./\\])(?:~|\.{1,2}|[A-Za-z]:)?[\\/](?:[\w.~+-]*[\\/])*[\w.~+-]*\w"  # a path from a root
    r"|(?<![\w.-])(?:--[A-Za-z][\w-]*(?:=[\w./:-]*\w)?|-[A-Za-z]\d*(?!\S)|\.[a-z][\w-]*)"  # an option, .name
    r"|[A-Za-z_]\w*=[\w./:-]*\w"
    r"|(?<![\w/\\])[A-Za-z_][\w/\\-]*(?:(?<=\w\w)\.[a-z_](?:[\w/\\-]*\w)?|(?<=\d)\.\d(?:[\w-]*\w)?)+(?:\(\))?"  # dotted
    r"|[A-Z](?:\+\+|#)(?!\w)"
    r"|[@#№][\w-]*\w"
    r"|\d+(?:[.,:/]\d+)*[^\W\d_]*(?:[-–]\w+(?:[.,:]\d+)*)*(?:[ \u00a0\u202f]?(?:[%‰€£¥₽]|°[CFС]?))?"
    r"|[$€£¥₽]\s?\d+(?:[.,]\d+)*(?:[-–]\d+(?:[.,]\d+)*)?"
    r"|[^\W_]+(?:(?:[-'’]|/_*|_+)[^\W_]+)*(?:\(\))?|_+\w+(?:\(\))?"
    r"|[$€£₽]"
)
CODED = re.compile(  # copied letter for letter: an identifier, a path, an option, a setting, a tag, an address
    r"\w_\w|^_|[\\=@]|://|^[~.#№/]|^-|^[A-Za-z]:|(?:/.*){2}|[^\W\d]\.\w|\(\)$|\+\+$|^[a-z]+[A-Z]"
)
END = re.compile(r"[.!?…。！？]+[\"»”’')\]]*(?=\s|$|[^\x00-\u2fff])|\n+|;\s")
SPLIT = re.compile(r"[,;()\[\]]|:\s|，|、|；|：")
SIGNS = re.compile(r"\d+|(?<=\w )[^\W\d_a-zа-яё]\w+|«|@")
NOT = ("не", "no")
VALUE = frozenset({"number", "ordinal", "month", "weekday", "time", "season"})
FIGURE = re.compile(r"\d")
CONTENTLESS = frozenset({"function", "link", "filler", "keep", "joiner"})
DASH = re.compile(r"\s[-–—]\s|—")


@dataclass(slots=True)
class Word:
    """One word with its place in the sentence's source, and what the lexicon says of it."""

    text: str
    low: str
    stem: str
    start: int
    end: int
    gap: str  # what stands between the word before and this one
    tags: set[str] = field(default_factory=set)
    anchor: int = -1  # index of the anchor this word belongs to
    valued: bool = False  # a figure, or a word of number, date or time
    content: bool = True  # says something of its own: no function word, filler or link


@dataclass(slots=True)
class Sentence:
    """Words of one sentence. `phrases` are the entries found: (tag, first word, number of words)."""

    source: str
    words: list[Word]
    asks: bool
    phrases: list[tuple[str, int, int]]

    def tagged(self, tag: str, start: int, end: int) -> bool:
        return any(name == tag and start <= at < end for name, at, _ in self.phrases)

    def verbatim(self, start: int, end: int) -> str:
        """The source from the first to the last of these words."""
        return self.source[self.words[start].start : self.words[end - 1].end] if start < end else ""


def pieces(text: str, lexicon: Lexicon) -> Iterator[str]:
    """The sentences of a text, each with its end mark; blank ones are passed over."""
    start = 0
    for mark in END.finditer(text):
        if mark.group().startswith(".") and _abbreviated(text[start : mark.start()], lexicon):
            continue
        yield from _bounded(text[start : mark.end()])
        start = mark.end()
    yield from _bounded(text[start:])


def _abbreviated(head: str, lexicon: Lexicon) -> bool:
    last = re.split(r"[\s(«\"]", head[-12:])[-1]
    if lexicon.dotted_ordinals and last.isdecimal() and len(last) < 3:
        return True
    return fold(last) in lexicon.abbreviations or (len(last) == 1 and last.isupper())


def _bounded(piece: str) -> Iterator[str]:
    """The piece, cut at a space every `SENTENCE` characters or before; by index, so that it stays linear."""
    start = 0
    while len(piece) - start > SENTENCE:
        at = max(piece.rfind(" ", start, start + SENTENCE), piece.rfind("，", start, start + SENTENCE)) + 1
        at = at if at > start else start + SENTENCE
        if part := piece[start:at].strip():
            yield part
        start = at
    if part := piece[start:].strip():
        yield part


def telling(text: str, lexicon: Lexicon, limit: int) -> list[str]:
    """The sentences of a long text that look most telling, in order, at most `limit` of them: a cheap look at figures
    and capitals, in a very long text at stretches of it first.
    """
    if len(text) > COARSE:
        text = "\n".join(_densest(_stretches(text), limit))
    return _densest(pieces(text, lexicon), limit)


def telling_signs(text: str, lexicon: Lexicon) -> int:
    """How many signs of something worth a line the beginning of a text has: figures, capitals, marks of speech acts."""
    sample = text[:SENTENCE]
    marks = (tag in TOLD for word in MARKED.findall(fold(sample)) for tag in lexicon.single.get(word, ()))
    begun = (
        start
        for word in MARKED.findall(fold(sample))
        if word[:PREFIX] in lexicon.starting
        for start, tag in lexicon.starting[word[:PREFIX]]
        if tag in TOLD and word.startswith(start)
    )
    return len(SIGNS.findall(sample)) + sum(marks) + sum(1 for _ in begun)


def _stretches(text: str) -> Iterator[str]:
    """Pieces of about `STRETCH` characters that cover the text, or of a longer one `SAMPLES` of them, evenly spread."""
    start, step = 0, max(STRETCH, len(text) // SAMPLES)
    while start < len(text):
        end = text.find(" ", start + STRETCH, start + STRETCH + SENTENCE)
        end = end if end > 0 else start + STRETCH
        yield text[start:end]
        start = max(end, start + step) if step > STRETCH else end


def _densest(parts: Iterable[str], limit: int) -> list[str]:
    """The parts with most signs of something exact for their length, in order; those without any are left out."""
    scored = []
    for at, part in enumerate(parts):
        signs = len(SIGNS.findall(part))
        if signs:
            scored.append((signs / (40 + len(part)), -at, part))
    best = heapq.nlargest(limit, scored, key=lambda one: one[:2])
    return [part for _, _, part in sorted(best, key=lambda one: -one[1])]


def sentence(piece: str, lexicon: Lexicon) -> Sentence:
    """One sentence read: its words, and every entry of the lexicon found in it."""
    words = _words(piece, lexicon)
    lows = [word.low for word in words]
    heads = lexicon.heads
    phrases = [
        (tag, at, size)
        for at, low in enumerate(lows)
        if low[:PREFIX] in heads or lexicon.parts
        for tag, size in lexicon.at(lows, at)
    ]
    for tag, at, size in phrases:
        for i in range(at, at + size):
            words[i].tags.add(tag)
    for earlier, word in pairwise(words):
        if "capital_month" in word.tags and word.text[0].isupper() and _dates(earlier):
            word.tags = {"month"}
        if "one" in word.tags and "number" in earlier.tags:  # «сорок один»
            word.tags = {"number"}
    for word in words:
        word.content = word.tags.isdisjoint(CONTENTLESS)
        word.valued = (
            not word.tags.isdisjoint(VALUE)
            or (not word.text.islower() or not word.text.isalpha())
            and (FIGURE.search(word.text) is not None or CODED.search(word.text) is not None)
        )
    phrases += [("strict", at, 2) for at in range(len(words) - 1) if lows[at] in NOT and _forbids(words, at, lexicon)]
    return Sentence(piece, words, piece.rstrip("\"»”')").endswith(("?", "？", "吗")), phrases)


def _words(piece: str, lexicon: Lexicon) -> list[Word]:
    words: list[Word] = []
    before = 0
    low_piece = fold(piece)
    aligned = len(low_piece) == len(piece)  # some letters grow when they are made small
    for match in WORD.finditer(piece):
        start, end = match.span()
        text = piece[start:end]
        low = low_piece[start:end] if aligned else fold(text)
        words.append(Word(text, low, lexicon.stem(low), start, end, piece[before:start]))
        before = end
    return words


def _dates(before: Word) -> bool:
    """Whether a word that is also a month is one here: after a figure, an ordinal, or a preposition."""
    return FIGURE.search(before.text) is not None or bool(before.tags & {"ordinal", "link"})


def _forbids(words: list[Word], at: int, lexicon: Lexicon) -> bool:
    """A command with a negation before it, or a clause that opens with "no" and a thing."""
    word, after = words[at], words[at + 1]
    if after.gap.strip():
        return False
    opens = at == 0 or bool(word.gap.strip()) or "joiner" in words[at - 1].tags
    return (word.low == "не" and after.low.endswith(lexicon.imperative)) or (
        word.low == "no" and opens and after.content
    )


def segments(read: Sentence) -> list[tuple[int, int]]:
    """The sentence in runs of words `[start, end)`: cut at commas, before subordinate words, and where a new
    subject begins.

    A value that spans a comma (a weekday and its date) is never cut; a short label before a colon stays with what
    it names.
    """
    starts = {at for tag, at, _ in read.phrases if tag == "subordinate"}
    cuts = [0]
    for at in range(1, len(read.words)):
        if _cut_before(read, at, cuts[-1], at in starts):
            cuts.append(at)
    cuts.append(len(read.words))
    return [(a, b) for a, b in pairwise(cuts) if a < b]


def _aside(read: Sentence, at: int) -> bool:
    """The comma only sets off a filler inside the clause: "remind me, please, on Monday"."""
    words = read.words
    opens = "filler" in words[at].tags and at + 1 < len(words) and "," in words[at + 1].gap
    closes = "filler" in words[at - 1].tags and "," in words[at - 1].gap
    return at > 1 and (opens or closes)


def _cut_before(read: Sentence, at: int, start: int, subordinate: bool) -> bool:
    word, before = read.words[at], read.words[at - 1]
    if word.anchor >= 0 and word.anchor == before.anchor:
        return False
    if subordinate:
        return True
    mark = SPLIT.search(word.gap)
    if mark and mark.group() == "," and _aside(read, at):
        return False
    if mark:
        return not (mark.group()[0] in ":：" and at - start <= 6)
    if DASH.search(word.gap):
        return at - start >= 4 and len(read.words) - at >= 4
    following = read.words[at + 1] if at + 1 < len(read.words) else None
    return "joiner" in word.tags and following is not None and "subject" in following.tags
