"""Whether a value is borne out by the row it is said to come from: a proposal may put things in other words, but not
invent them.

A model normalises ("vegetarian" for "I don't eat meat"), so not every word can be asked for:

* A name (a word with a capital), a number and a date must be said: the name in any case or by its initials, the number
  in digits or words, the date as this library resolves the row's own words. One that is not said, and the value is
  refused.
* Of the other words more than half must be said: in any form, as another word for the same thing, or
  as the ordinary name of what the row says (`grounds.toml`). Words that say nothing by themselves do not count.
* What was said just before helps; alone it suffices only for a row that points to it ("I hate it now"). A plain yes
  says what it answers.

It asks a dictionary only to accept more; the library's own rules are not asked, since their values are the canonical
forms.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import name_key, stem, tokens
from nitka.layers.facts.dates import days, local
from nitka.layers.facts.numbers import amounts, scale_of, value_of
from nitka.layers.facts.rules import russian
from nitka.layers.facts.rules.commands import affirms
from nitka.layers.facts.rules.gone import kinds
from nitka.layers.facts.rules.modality import denied
from nitka.types import Message

_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_OWNED = re.compile(r"['’]s\b")
_ISO = re.compile(r"(?<!\d)(?:(?P<year>\d{4})-)?(?P<month>\d\d)-(?P<day>\d\d)(?!\d)")
_SOMETIME = re.compile(  # times that are told, but not resolved here
    r"(?i)\b(?:weeks?|months?|fortnight|days? (?:after|before)|weekend|end of|last|next|ago|easter|christmas|"
    r"недел\w*|месяц\w*|после|назад|через|конц[еау]|выходн\w*|пасх\w*|рождеств\w*|прошл\w*|следующ\w*)\b"
)
_POINTS = re.compile(
    r"(?i)\b(?:it|that|this|them|those|these|one|ones|there|him|her|he|she|they|so|too|same|это|этого|эту|этот|его|её|ее|их|"
    r"там|он|она|они|тоже|такой|такая|такое|туда|ему|ей|им)\b"
)
BEFORE = 4  # rows before a row that may help to understand it
_CHARS = 20_000  # read of a row
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]"
)  # Thai, Lao, Khmer, Chinese ...
_READ = re.compile("(?i)[a-zà-ſа-яё]{2}")
_UNITS = frozenset("km mi kg g min h day week month year".split())
_LEAST = 4  # letters that two forms of a word share at least
_ROOT, _ENDING = 3, 4
_SHARE, _NAME_SHARE = 0.55, 0.65  # of the longer form


@dataclass(frozen=True)
class Ground:
    """What a value may rest on: `text`, the row and the question that it affirms; `before`, what was said just before
    it, which helps, and suffices only where the row points back to it. What is found in them is found once."""

    text: str
    today: date
    before: str = ""
    points_back: bool = False

    @property
    def all(self) -> str:
        return f"{self.text} {self.before}"

    @cached_property
    def here(self) -> _Words:
        return _Words(self.text)

    @cached_property
    def anywhere(self) -> _Words:
        return _Words(self.all) if self.before.strip() else self.here

    @cached_property
    def numbers(self) -> frozenset[str]:
        return amounts(self.all)


def ground_of(row: Message, rows: Mapping[int, Message], sessions: Mapping[int, str]) -> Ground:
    """What a value said in the row may rest on; `rows` by `n`, with their `sessions` where they are known."""
    here = sessions.get(row.n)
    near = [rows[n] for n in range(row.n - BEFORE, row.n) if n in rows and sessions.get(n) == here]
    last = _ends(near[-1].text) if near and near[-1].role == "assistant" else ""
    text = _ends(row.text)
    return Ground(
        text=f"{text} {last}" if last and affirms(row.text) else text,
        today=local(row).date(),
        before=" ".join([*(_ends(other.text) for other in near if other.role == "user"), last]),
        points_back=_POINTS.search(text) is not None,
    )


def _ends(text: str) -> str:
    return text if len(text) <= _CHARS else f"{text[: _CHARS // 2]} {text[-_CHARS // 2 :]}"


def bears_out(ground: Ground, value: str, slot: str) -> bool:
    """Whether these words say the value."""
    if invents(ground, value):
        return False
    words = _words(value)
    if not words:
        return bool(amounts(value)) or _slot_said(ground.here, slot)
    said = [word for word in words if ground.anywhere.has(word)]
    points = any(map(ground.here.has, said)) or bool(amounts(value) & amounts(ground.text)) or ground.points_back
    return 2 * len(said) > len(words) and points


def invents(ground: Ground, text: str) -> bool:
    """Whether the text names a name, a number or a date that these words do not."""
    bare = _ISO.sub(lambda match: match.group() if match.group() in ground.all else " ", text)
    if not (_dates_said(ground, text) and _numbers_said(ground, bare)):
        return True
    return not all(ground.anywhere.has(word) for word in _words(text) if word[0].isupper())


def _words(text: str) -> list[str]:
    """The words of the text that say something: no numbers, and none of the little words."""
    words = _WORD.findall(_ISO.sub(" ", text))
    telling = [word for at, word in enumerate(words) if (at and word[0].isupper()) or not _is_light(word)]
    return [word for word in telling if not any(map(str.isdigit, word)) and not _counts(word)]


def _dates_said(ground: Ground, value: str) -> bool:
    if _ISO.search(value) is None:
        return True
    spoken = days(ground.all, ground.today)
    vague = not days(ground.text, ground.today) and _SOMETIME.search(ground.text) is not None
    return all(
        match.group() in ground.all
        or vague
        or any(
            (day.month, day.day) == (int(match["month"]), int(match["day"]))
            and (match["year"] is None or day.year in (None, int(match["year"])))
            for day in spoken
        )
        for match in _ISO.finditer(value)
    )


def _numbers_said(ground: Ground, value: str) -> bool:
    """Whether every number is said: as it stands, in words, or on a clock of twelve hours. Words for numbers are known
    in English and Russian; in a script that is neither's they cannot be asked for."""
    if not _READ.search(ground.text):
        return True
    figures = re.sub(r"\D", "", ground.all)
    return all(
        number in ground.numbers
        or not number.strip("0")
        or (number.isdigit() and str(int(number) - 12) in ground.numbers)
        for number in amounts(value)
    ) or (len(re.sub(r"\D", "", value)) > 4 and re.sub(r"\D", "", value) in figures)


def _slot_said(here: _Words, slot: str) -> bool:
    """Whether at least the slot is spoken of, where the value is a mere yes or no, or a word that says nothing."""
    return any(here.has(part) for part in re.split(r"[._ ]", slot) if part)


def _counts(word: str) -> bool:
    return value_of(word) is not None or scale_of(word) is not None


class _Words:
    """The words of a text, to look other words up among them."""

    def __init__(self, text: str) -> None:
        self._text = text.casefold().replace("ё", "е")
        self._found = _WORD.findall(_OWNED.sub("", text))
        self._keys = {name_key(word) for word in self._found}
        self._forms = {form for word in self._keys for form in _forms(word)}

    def has(self, word: str) -> bool:
        """Whether the text has the word: in some form, by its initials, as another word for it, or as its reason."""
        key = name_key(word)
        if _UNSPACED.search(key):
            return _pairs_said(key, self._text)
        share = _NAME_SHARE if word[0].isupper() else _SHARE
        return (
            bool(_forms(key) & self._forms)
            or any(_akin(key, other, share) for other in self._keys)
            or (word.isupper() and 1 < len(word) < 5 and self._initials(key))
            or any(_forms(key) & names and row & self._forms for names, row in _alike())
            or any(row.name.fullmatch(key) and row.of(self._text) for row in _renamed())
        )

    def _initials(self, letters: str) -> bool:
        heads = "".join(word[0] for word in self._found).casefold()
        return letters in heads


def _pairs_said(word: str, text: str) -> bool:
    """Whether most of the word is in the text, pair by pair, where words are written without spaces."""
    pairs = [word[at : at + 2] for at in range(max(1, len(word) - 1))]
    return 2 * sum(pair in text for pair in pairs) > len(pairs)


def _akin(one: str, other: str, share: float) -> bool:
    """Whether the words begin alike over most of the longer; of a short one, that it begins the other ("бег",
    "бегаю")."""
    short, long = sorted((one, other), key=len)
    common = next((at for at, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    root = share == _SHARE and common == len(short) >= _ROOT and len(long) - common <= _ENDING
    return root or (common >= _LEAST and common >= share * len(long))


def _forms(word: str) -> frozenset[str]:
    return frozenset((word, stem(word), *russian.lemmas(word)))


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("grounds.toml").read_text("utf-8"))


def _is_light(word: str) -> bool:
    plain = tokens(word)
    return len(word) < 2 or name_key(word) in _light() or not plain or plain[0] in _UNITS


@cache
def _light() -> frozenset[str]:
    return frozenset(name_key(_data()["light"]).split())


@cache
def _alike() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Words of a value, and words of a row that say each of them."""

    def forms(words: str) -> frozenset[str]:
        return frozenset(form for word in words.split() for form in _forms(name_key(word)))

    general = forms(_data()["general"])
    own = ((row, row) for row in map(forms, _data()["alike"]))
    return (*own, *((kind & general, kind) for kind in kinds()))


@dataclass(frozen=True, slots=True)
class _Renamed:
    name: re.Pattern[str]
    reason: re.Pattern[str]
    denied: bool  # only of what the row denies

    def of(self, text: str) -> bool:
        return self.reason.search(text) is not None and (not self.denied or denied(text))


@cache
def _renamed() -> tuple[_Renamed, ...]:
    return tuple(
        _Renamed(re.compile(rf"(?:{name_key(name)})\w*"), re.compile(reason.replace("ё", "е")), bool(rest))
        for name, reason, *rest in _data()["renamed"]
    )
