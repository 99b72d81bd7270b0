"""Which sentence answers a question, and which words of it. Pure functions over sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from nitka.models import offline_words as lexicon
from nitka.models.offline_words import Kind

Source = Literal["user", "assistant", "notes", "prompt"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One statement that may answer: `order` is its place in time, `about` are words it speaks of and does not say."""

    text: str
    source: Source
    order: int
    words: tuple[str, ...]
    about: tuple[str, ...] = ()

    @property
    def subjects(self) -> frozenset[str]:
        named = frozenset({NAME}) if _INTRODUCES.search(self.text) else frozenset[str]()
        return lexicon.subjects(self.words) | lexicon.subjects(self.about) | named


NAME = lexicon.subject("name")
HOME = lexicon.subject("home")
_INTRODUCES = re.compile(
    r"^(?i:(?:hi|hello|hey|привет|здравствуйте|добрый день)\W+)?"
    r"(?i:i['’]?m|i am|this is|call me|я|это|зовите меня|зови меня)\s"
    r"[A-ZА-ЯЁ]\w+(?=\s*(?:[,.!(]|$|\s(?:and|from|и|из)\s))"
)
_ENOUGH = 0.6  # of the question's subjects must be spoken of
_CLOSE = 0.12  # answers that differ by less answer equally well, and the latest is taken
_PRIOR = {"user": 0.05, "notes": 0.03, "assistant": 0.0, "prompt": -0.1}


def kind_of(question: str) -> Kind:
    """What an answer to this question should hold."""
    small = lexicon.words(question)
    pairs = set(zip(small, small[1:], strict=False))
    has = set(small)
    if has & {"when", "когда"} or ("во", "сколько") in pairs or has & lexicon.DATE_WORDS:
        return "date"
    if has & {"where", "где", "куда", "откуда"}:
        return "place"
    if "сколько" in has or pairs & {("how", much) for much in ("many", "much", "old", "long", "far", "tall", "big")}:
        return "number"
    if has & {"who", "whom", "whose", "кто", "кого", "кому", "кем"} or NAME in lexicon.subjects(small):
        return "name"
    if has & lexicon.NUMBER_WORDS:
        return "number"
    return "place" if has & lexicon.PLACE_WORDS else "any"


def best(question: str, known: Sequence[Sentence]) -> Sentence | None:
    """The sentence that answers best, the latest of those that do so about equally well; None when none does."""
    wanted = _wanted(question)
    if not wanted:
        return None
    spoken = [one.subjects for one in known]
    weights = {want: 1 / (1 + 0.5 * math.log1p(sum(_holds(want, said) for said in spoken))) for want in wanted}
    scored = [(_score(question, one, said, weights), one) for one, said in zip(known, spoken, strict=True)]
    good = [(score, one) for score, one in scored if score > 0]
    if not good:
        return None
    top = max(score for score, _ in good)
    return max((one for score, one in good if score >= top - _CLOSE), key=lambda one: one.order)


def _wanted(question: str) -> frozenset[str]:
    """The subjects of a question; when it has none but its kind, what that kind is about in the speaker's life."""
    small = lexicon.words(question)
    wanted = lexicon.subjects(word for word in small if word not in lexicon.ASKED)
    wanted = wanted or lexicon.subjects(small)
    if not wanted and not lexicon.MINE.isdisjoint(small):
        return {"name": frozenset({NAME}), "place": frozenset({HOME})}.get(kind_of(question), wanted)
    return wanted


def _holds(want: str, said: frozenset[str]) -> bool:
    """Whether a subject is among others, up to the ends that the stemmer left."""
    if want in said or want[0] == "=" or len(want) < 4:
        return want in said
    return any(len(other) >= 4 and (other.startswith(want) or want.startswith(other)) for other in said)


def _score(question: str, one: Sentence, said: frozenset[str], weights: dict[str, float]) -> float:
    """How well a sentence answers; 0 when it does not speak of enough that was asked."""
    covered = sum(weight for want, weight in weights.items() if _holds(want, said)) / sum(weights.values())
    kind = kind_of(question)
    fits = kind == "any" or bool(answer_in(question, one))
    if covered < (0.5 if fits and kind != "any" else _ENOUGH):
        return 0.0
    small = lexicon.words(question)
    mine, yours = not lexicon.MINE.isdisjoint(small), not lexicon.YOURS.isdisjoint(small)
    speaker = -0.1 if mine and not yours and one.source == "assistant" else 0.0
    speaker += 0.2 if yours and not mine and one.source == "assistant" else 0.0
    return covered + (0.25 if fits else -0.3) + 0.3 * _near(small, one) + _PRIOR[one.source] + speaker


def _near(question: tuple[str, ...], one: Sentence) -> float:
    """Whether "my name" of the question is also "my name" in the sentence, and not "my sister's name"."""
    asked = _owned(question)
    if not lexicon.subjects(question) and not lexicon.MINE.isdisjoint(question):
        asked = frozenset({NAME})  # "Who am I?"
    return len(asked & _owned(one.words)) / len(asked) if asked else 0.0


def _owned(small: tuple[str, ...]) -> frozenset[str]:
    """Subjects that stand right beside the speaker's word for himself."""
    own = lexicon.MINE | {"user", "пользователь", "пользователя"}
    pairs = [*zip(small, small[1:], strict=False), *zip(small[1:], small, strict=False)]
    return frozenset(subject for word, other in pairs if word in own for subject in lexicon.subjects([other]))


def answer_in(question: str, one: Sentence) -> str:
    """The words of the sentence that answer; empty when the kind of answer is not in it, or is the whole of it."""
    kind, text = kind_of(question), one.text
    if kind == "name":
        return _name(question, text)
    if kind == "any":
        return ""
    asked = set(lexicon.words(question))
    pattern = {"number": lexicon.NUMBERS, "date": lexicon.DATES, "place": lexicon.PLACES}[kind]
    found = [match for match in pattern.finditer(text) if not asked >= set(lexicon.words(match.group()))]
    if kind == "number":
        dates = [match.span() for match in lexicon.DATES.finditer(text)]
        found = [m for m in found if not any(a <= m.start() < b for a, b in dates)] or found
    if not found:
        return ""
    places = [word.start() for word in lexicon.WORD.finditer(text) if _asked_for(word.group(), question)]
    nearest = min(found, key=lambda match: min((abs(match.start() - place) for place in places), default=0))
    return nearest.group(nearest.lastindex or 0).strip()


def _asked_for(word: str, question: str) -> bool:
    small = lexicon.words(word)
    return bool(small) and not lexicon.subjects(small).isdisjoint(_wanted(question))


def _name(question: str, text: str) -> str:
    """The proper name in a sentence: the one after the word that was asked for, else those that are plainly names."""
    asked = set(lexicon.words(question))
    if NAME in _wanted(question):
        found = _after_link(text)
        if found:
            return found
    names = [
        match.group()
        for match in lexicon.NAMES.finditer(text)
        if not asked >= set(lexicon.words(match.group())) and not set(lexicon.words(match.group())) <= lexicon.INITIAL
    ]
    inner = [name for name in names if not text.lstrip("\"'«“(").startswith(name)]
    if NAME in _wanted(question):
        return (inner or names or [""])[0]
    return ", ".join(dict.fromkeys(inner)) or (names[0] if names else "")


def _after_link(text: str) -> str:
    """The name after "name is", "зовут", "call me", "I'm": with capitals if it has them, else one word."""
    intro = _INTRODUCES.search(text)
    if intro:
        return re.split(r"\s", intro.group())[-1]
    places = [word for word in lexicon.WORD.finditer(text) if lexicon.subjects(lexicon.words(word.group())) == {NAME}]
    for place in reversed(places):
        at = place.end()
        while (word := lexicon.WORD.search(text, at)) and _leads(word.group().lower()):
            at = word.end()
        capital = lexicon.NAMES.match(text, word.start()) if word else None
        if capital:
            return capital.group()
        if word and word.group().lower() not in lexicon.EMPTY:
            return word.group()
    return ""


def _leads(word: str) -> bool:
    return word in lexicon.LINKS or word in lexicon.MINE
