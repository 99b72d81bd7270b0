"""Anchors: the exact things a reader would miss, found by their form: names, numbers, dates, amounts, codes,
addresses, quoted titles.

Each has a kind, a weight (how much a reader would miss it, roughly 0 to 3) and keys by which the same thing is
known again in another form of the word. Nothing is looked up in a list of names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nitka.models.extract.lexicon import HAN, Lexicon
from nitka.models.extract.text import CODED, FIGURE, VALUE, Sentence, Word

Kind = Literal["date", "weekday", "time", "money", "number", "code", "name", "title"]
DIGITS = re.compile(r"\d")
LETTERS = re.compile(r"[^\W\d_]")
DATE = re.compile(r"\d{1,2}[./]\d{1,2}(?:[./]\d{2,4})?|\d{4}-\d{2}-\d{2}")
CLOCK = re.compile(r"\d{1,2}:\d{2}")
MEASURED = re.compile(
    r"\d+(?:[.,]\d+)?[-–]?(?:[^\W\d_]{1,2}|\d*x\d+|\d*х\d+|min|sec|hrs?|год[а-я]*|час[а-я]*|мин|сек|тыс|руб)"
)
ORDINAL = re.compile(r"\d+(?:st|nd|rd|th|-?(?:го|му|е|м|й|я))")
WEIGHT: dict[Kind, float] = {
    "date": 3.0,
    "weekday": 1.6,
    "time": 1.8,
    "money": 3.0,
    "number": 1.6,
    "code": 3.0,
    "name": 2.4,
    "title": 1.6,
}
THOUSAND = 1000
HOURS = 12  # a bare number word up to this is likely an hour or a few of something
MEASURES = {"money", "unit", "counted", "time", "clock", "month"}
PHONE = 7  # figures in a number that is copied, not counted
GENITIVE = ("го", "му")  # endings of a Russian ordinal that is a day; English days are in figures or beside a month
NEUTER = ("ое", "тье")  # «на девятое»
SMALL = 0.4  # a bare small number
COUNTED = 1.2  # a small number of something: worth a line only with more
TITLE_WORDS = 4


@dataclass(frozen=True, slots=True)
class Anchor:
    """Words `[start, end)` of a sentence. `keys` are the stems of its telling words."""

    kind: Kind
    start: int
    end: int
    weight: float
    keys: frozenset[str]


def mark(read: Sentence, lexicon: Lexicon) -> list[Anchor]:
    """The anchors of a sentence in order; each word is told which of them it belongs to."""
    anchors: list[Anchor] = []
    quoted = re.search(r"[«“„\"`]", read.source) is not None
    at = 0
    while at < len(read.words):
        if not (quoted or lexicon.parts or read.words[at].valued or read.words[at].text[0].isupper()):
            at += 1
            continue
        found = (
            (_unspaced(read.words, at) if lexicon.parts else None)
            or _value(read.words, at, lexicon)
            or (_title(read, at) if quoted else None)
            or _name(read, at, lexicon)
        )
        if found is None:
            at += 1
            continue
        for word in read.words[found.start : found.end]:
            word.anchor = len(anchors)
        anchors.append(found)
        at = found.end
    return anchors


def _unspaced(words: Sequence[Word], at: int) -> Anchor | None:
    """A run of a script without spaces, weighed by what is found inside it; it cannot be cut, so it stands whole."""
    word = words[at]
    if not HAN.search(word.text):
        return None
    weight = 2.4 * ("name" in word.tags) + 1.2 * ("date" in word.tags) + 0.8 * ("amount" in word.tags)
    weight += 1.6 * (FIGURE.search(word.text) is not None)
    return Anchor("name", at, at + 1, weight, frozenset([word.low])) if weight else None


def _value(words: Sequence[Word], at: int, lexicon: Lexicon) -> Anchor | None:
    """A number, date, time, amount or code, with the small words that tie its parts ("the 6th of October", "с
    девяти до двенадцати").
    """
    if not words[at].valued:
        return None
    if _is_code(words[at].text):
        return Anchor("code", at, at + 1, WEIGHT["code"], frozenset([words[at].stem]))
    end = at + 1
    while (longer := _tied(words, end)) is not None:
        end = longer
    return _priced(words, at, end, lexicon)


def _tied(words: Sequence[Word], end: int) -> int | None:
    """The end of the value after one more part, if the next part is tied to it."""
    for reach in range(3):
        at = end + reach
        if (
            at >= len(words)
            or "\n" in words[at].gap
            or (words[at].gap.strip() not in ("", "-", "–", "—", ",", "х", "x", "×"))
        ):
            return None
        if "," in words[at].gap and not (
            "weekday" in words[end - 1].tags or (not reach and _dated(words[at]) and _dated(words[end - 1]))
        ):
            return None
        if words[at].valued and not _is_code(words[at].text):
            return at + 1
        if "bridge" not in words[at].tags:
            return None
    return None


def _dated(word: Word) -> bool:
    return bool(word.tags & {"month", "weekday", "ordinal", "time"}) or word.text[:1].isdigit()


def _priced(words: Sequence[Word], start: int, end: int, lexicon: Lexicon) -> Anchor:
    inside = words[start:end]
    after = words[end] if end < len(words) and words[end].gap.strip() in ("", "-") else None
    before = words[start - 1].tags if start else set()
    kind = _kind(inside, after)
    if kind == "date" and not _placed(inside, before, after):
        kind = "number"
    if kind == "number" and "link" in before and _hours(inside, lexicon):
        kind = "time"
    if after is not None and (
        after.tags & {"money", "unit", "counted", "time", "clock", "month"} or _counted(kind, after)
    ):
        end += 1
    keys = _keys(inside, lexicon)
    return Anchor(kind, start, end, _weight(kind, inside, after, lexicon), keys)


def _hours(inside: Sequence[Word], lexicon: Lexicon) -> bool:
    """Two small numbers, rising, with a word between them: "from nine to twelve", "between 8 and 11"."""
    if len(inside) < 3 or any(word.text.isdecimal() and len(word.text) > 2 for word in inside):
        return False
    figures = [(at, at + 1, int(word.text)) for at, word in enumerate(inside) if word.text.isdecimal()]
    found = sorted([*figures, *number_runs(inside, lexicon)])
    return len(found) == 2 and found[1][0] > found[0][1] and found[0][2] < found[1][2] <= HOURS * 2


def _keys(inside: Sequence[Word], lexicon: Lexicon) -> frozenset[str]:
    """By what a value is known again in another form: its figures, number words put together ("twenty five" is 25),
    other words' stems.
    """
    numbers = number_runs(inside, lexicon)
    worded = {at for start, end, _ in numbers for at in range(start, end)}
    rest = (word for at, word in enumerate(inside) if at not in worded and word.valued)
    return frozenset(
        [*(str(value) for _, _, value in numbers), *("".join(DIGITS.findall(w.text)) or w.stem for w in rest)]
    )


def number_runs(words: Sequence[Word], lexicon: Lexicon) -> list[tuple[int, int, int]]:
    """Number words that make one number: `(start, end, value)` for each run. "Forty three five hundred" is two
    numbers.
    """
    runs: list[tuple[int, int, int]] = []
    for at, word in enumerate(words):
        figure = _figure(word, lexicon)
        if not figure:
            continue
        start, end, value = runs[-1] if runs else (0, -1, 0)
        if end == at and figure == THOUSAND and value < THOUSAND:
            runs[-1] = (start, at + 1, value * THOUSAND)
        elif end == at and value % _magnitude(figure) == 0:
            runs[-1] = (start, at + 1, value + figure)
        else:
            runs.append((at, at + 1, figure))
    return runs


def _figure(word: Word, lexicon: Lexicon) -> int:
    """What a number word stands for; 0 for other words and for figures, which are kept as written."""
    return int(lexicon.figure(word.low) or "0") if word.tags & {"number", "ordinal"} else 0


def _magnitude(figure: int) -> int:
    return int(10 ** len(str(figure)))


def _counted(kind: Kind, after: Word) -> bool:
    """Whether the word after a number is what is counted."""
    return kind == "number" and after.gap == " " and after.content and not after.valued and after.text[0].islower()


def _kind(inside: Sequence[Word], after: Word | None) -> Kind:
    tags = set().union(*(word.tags for word in inside))
    text = " ".join(word.text for word in inside)
    if tags & {"month", "season"} or DATE.fullmatch(text):
        return "date"
    if "weekday" in tags:
        return "date" if len(inside) > 1 and (tags & {"ordinal"} or DIGITS.search(text)) else "weekday"
    if ("ordinal" in tags or ORDINAL.fullmatch(inside[-1].low)) and not (after and "unit" in after.tags):
        return "date"
    if "time" in tags or CLOCK.search(text) or (after and after.tags & {"time", "clock"}):
        return "time"
    if "money" in tags or (after and "money" in after.tags) or re.search(r"[$€£¥₽]|\d[.,]\d{3}\b", text):
        return "money"
    return "code" if len(DIGITS.findall(text)) >= PHONE else "number"


def _placed(inside: Sequence[Word], before: set[str], after: Word | None) -> bool:
    """Whether an ordinal stands for a day: in figures, beside a month or weekday, or after a preposition."""
    if any(word.tags & {"month", "season", "weekday"} or word.text[0].isdigit() for word in inside):
        return True
    if len(inside) == 1 and after is None and inside[0].low.endswith(GENITIVE):  # «начнёт десятого»
        return True
    if "link" in before and inside[-1].low.endswith(NEUTER):
        return after is None or bool(after.tags & {"daypart", "time", "clock"})
    return "link" in before and inside[-1].low.endswith(GENITIVE)


def _weight(kind: Kind, inside: Sequence[Word], after: Word | None, lexicon: Lexicon) -> float:
    if kind != "number":
        return WEIGHT[kind]
    worded = max((len(str(value)) for _, _, value in number_runs(inside, lexicon) if value > HOURS), default=0)
    figures = max(worded, sum(len(DIGITS.findall(word.text)) for word in inside))
    counted = any("counted" in word.tags for word in inside) or inside[-1].text.endswith(("%", "‰"))
    counted = counted or (after is not None and bool(after.tags & {"unit", "counted", "money"}))
    if figures >= 3:
        return 2.6
    if figures == 2:
        return 2.2
    return COUNTED if counted else SMALL


def _is_code(text: str) -> bool:
    """Letters and figures mixed, figures with hyphens, or an address: what must be copied exactly."""
    if CODED.search(text):
        return True
    if not DIGITS.search(text) or ORDINAL.fullmatch(text.lower()) or CLOCK.fullmatch(text):
        return False
    if LETTERS.search(text):
        return len(text) >= 3 and not MEASURED.fullmatch(text.lower())
    return re.fullmatch(r"\d+(?:-\d+)+", text) is not None and DATE.fullmatch(text) is None


def _title(read: Sentence, at: int) -> Anchor | None:
    """A short quoted title: «Старый бакен», "Old Anchor"."""
    opened = re.search(r"[«“„\"`]$", read.words[at].gap)
    if not opened:
        return None
    for end in range(at + 1, min(at + TITLE_WORDS, len(read.words)) + 1):
        after = read.words[end].gap if end < len(read.words) else read.source[read.words[end - 1].end :]
        if re.match(r"[.,!?]?[»”“\"`]", after):
            named = read.words[at].text[:1].isupper()
            keys = frozenset(word.stem for word in read.words[at:end])
            return Anchor("title", at, end, WEIGHT["name"] if named else WEIGHT["title"] / 2, keys)
    return None


def _name(read: Sentence, at: int, lexicon: Lexicon) -> Anchor | None:
    words = read.words
    end = at
    while (
        end < len(words)
        and _capital(words, end, lexicon)
        and (end == at or not re.search(r"[^\s.'’-]", words[end].gap))
    ):
        end += 1
    if end == at:
        return None
    doubtful = lexicon.nouns_capitalised and end == at + 1
    weight = WEIGHT["name"] + 0.4 * (end - at > 1) - 1.6 * doubtful - 1.2 * (_opens(words, at) and end == at + 1)
    return Anchor("name", at, end, weight, frozenset(word.stem for word in words[at:end]))


def _capital(words: Sequence[Word], at: int, lexicon: Lexicon) -> bool:
    """A word written with a capital that its place does not ask for, or that no list knows."""
    word = words[at]
    if (
        not word.text[0].isupper()
        or (len(word.text) == 1 and not word.gap.endswith("."))
        or word.tags & (VALUE | {"daypart"})
    ):
        return False
    if not _opens(words, at):
        return not word.tags & {"function", "link", "keep", "polite", "filler"} and not word.low.startswith(
            ("i'", "i’")
        )
    following = words[at + 1] if at + 1 < len(words) else None
    paired = following is not None and following.text[0].isupper() and not following.tags and following.gap == " "
    return not word.tags - {"name"} and (paired or word.text[1:] != word.text[1:].lower() or "name" in word.tags)


def _opens(words: Sequence[Word], at: int) -> bool:
    """Whether the word stands where any word is written with a capital."""
    return at == 0 or re.search(r"[.!?:…«“„\"(—]\s*$", words[at].gap) is not None
