"""Which sentence answers a question, and which words of it. Pure functions over sentences.

A sentence answers when it speaks of what was asked (the strong subjects of the question: not the verbs and kinds that
go with anything) and holds a value of the kind that was asked for; not when it is of somebody else (`offline_who`). Of
those that answer about equally well the latest is taken. A value that was taken back later ("he can't on Saturday, he
comes on Sunday") gives way to what took it back.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from nitka.models import offline_values as values
from nitka.models import offline_who as who
from nitka.models import offline_words as lexicon
from nitka.models.offline_values import Kind
from nitka.models.offline_words import NAME

Source = Literal["user", "assistant", "notes", "prompt"]

_ENOUGH = 0.6  # of the question's subjects must be spoken of
_CLOSE = 0.12  # answers that differ by less answer equally well, and the latest is taken
_CLEAR = 8  # characters by which one value must be nearer than the next
_LIGHT = 0.3  # weight of a subject that goes with anything
_PRIOR = {"user": 0.05, "notes": 0.03, "assistant": -0.05, "prompt": -0.1}
_MUST: frozenset[Kind] = frozenset(("age", "money", "span", "count"))
_SHOULD: frozenset[Kind] = frozenset(("date", "time", "name"))
_INTRODUCES = re.compile(
    r"^(?i:(?:hi|hello|hey|привет|здравствуйте|добрый день)\W+)?"
    r"(?i:i['’]?m|i am|this is|call me|я|это|зовите меня|зови меня)\s"
    r"[A-ZА-ЯЁ]\w+(?=\s*(?:[,.!(]|$|\s(?:and|from|и|из)\s))"
    r"|^(?i:is called|зовут)\s[A-ZА-ЯЁ][\w-]*"  # as a fact says it
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One statement that may answer: `order` is its place in time, `about` are words it speaks of and does not say."""

    text: str
    source: Source
    order: int
    words: tuple[str, ...]
    about: tuple[str, ...] = ()
    lean: float = 0.0  # how far what it is about counts as said
    subjects: frozenset[str] = field(init=False)
    meant: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        named = frozenset({NAME}) if _INTRODUCES.search(self.text) else frozenset[str]()
        said = lexicon.subjects(self.words) | lexicon.shown(self.text) | named
        object.__setattr__(self, "subjects", said)
        object.__setattr__(self, "meant", lexicon.subjects(self.about))

    def speaks_of(self, want: str) -> float:
        """1 for what it says, `lean` for what it only refers to, else 0."""
        return 1.0 if _holds(want, self.subjects) else self.lean if _holds(want, self.meant) else 0.0


@dataclass(frozen=True, slots=True)
class Query:
    """A question, read once: its words, the kind of its answer, and what the answer has to speak of."""

    text: str
    words: tuple[str, ...] = field(init=False)
    kind: Kind = field(init=False)
    strong: frozenset[str] = field(init=False)
    weak: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        small = lexicon.words(self.text)
        light = lexicon.WEAK | lexicon.ASK | lexicon.ALL
        told = tuple(word for before, word in zip(("", *small), small, strict=False) if before != "how")
        strong = lexicon.subjects(word for word in told if word not in light)
        weak = lexicon.subjects(told) - strong
        kind = kind_of(self.text)
        if not strong and not weak and self.mine:  # "Who am I?", "Where am I at home?"
            strong = {"name": frozenset({NAME}), "place": frozenset({lexicon.HOME})}.get(kind, strong)
        for name, value in (("words", small), ("kind", kind), ("strong", strong or weak), ("weak", weak)):
            object.__setattr__(self, name, value)

    @property
    def mine(self) -> bool:
        return not lexicon.MINE.isdisjoint(lexicon.words(self.text))

    @property
    def yours(self) -> bool:
        return not lexicon.YOURS.isdisjoint(lexicon.words(self.text))

    @property
    def of_you(self) -> bool:
        """Whether it asks after the one spoken to ("do you play?"), and not what he knows ("do you know…?")."""
        if self.mine or not self.yours:
            return False
        places = [at for at, word in enumerate(self.words) if word in lexicon.YOURS]
        beside = {word for at in places for word in self.words[max(0, at - 1) : at + 2]}
        return lexicon.KNOWS.isdisjoint(beside)


_OLD, _LONG = ("how", "old"), ("how", "long")
_MANY = frozenset(("how", much) for much in ("many", "much", "far", "tall", "big", "heavy", "high", "fast"))


def kind_of(question: str) -> Kind:
    """What an answer to this question should hold."""
    small = lexicon.words(question)
    pairs, has = set(zip(small, small[1:], strict=False)), set(small)
    if has & lexicon.AGE_WORDS or _OLD in pairs or ("сколько" in has and has & {"лет", "годиков"}):
        return "age"
    if ("во", "сколько") in pairs or (has & lexicon.TIME_WORDS and has & {"what", "which", "который", "котором"}):
        return "time"
    if _LONG in pairs or ("сколько" in has and (has & {"времени", "длится", "занимает", "заняла", "занял", "заняло"})):
        return "span"
    if ("на", "сколько") in pairs or ("at", "what") in pairs and "temperature" in has:
        return "number"
    if has & {"when", "когда"} or has & lexicon.DATE_WORDS:
        return "date"
    return _other_kind(has, pairs, small)


def _other_kind(has: set[str], pairs: set[tuple[str, str]], small: tuple[str, ...]) -> Kind:
    spoken = lexicon.subjects(small)
    if has & {"where", "где", "куда", "откуда"}:
        return "place"
    if "сколько" in has or pairs & _MANY:
        price = lexicon.PRICE in spoken or (
            ("how", "much") in pairs and not has & {"do", "does", "did"} and "is" in has
        )
        return "money" if price else "count"
    if has & {"who", "whom", "whose", "кто", "кого", "кому", "кем", "ком"} or NAME in spoken:
        known = [word for word in small if word not in lexicon.EMPTY and word not in lexicon.MINE]
        return (
            "any"
            if has & {"такой", "такая", "такие"} or not known and NAME not in spoken and not _mine(has)
            else "name"
        )
    if not has & lexicon.WHAT:
        return "any"
    kinds: tuple[tuple[frozenset[str], Kind], ...] = (
        (lexicon.MONEY_WORDS, "money"),
        (lexicon.NUMBER_WORDS, "number"),
        (lexicon.PLACE_WORDS, "place"),
    )
    return next((kind for these, kind in kinds if has & these), "any")


def _mine(has: set[str]) -> bool:
    return not lexicon.MINE.isdisjoint(has)


def best(question: str, known: Sequence[Sentence]) -> Sentence | None:
    """The sentence that answers best, the latest of those that do so about equally well; None when none does."""
    query = Query(question)
    good = _scored(query, known)
    if not good:
        return None
    top = max(score for score, _ in good)
    chosen = max((one for score, one in good if score >= top - _CLOSE), key=lambda one: one.order)
    return _taken_back(query, chosen, known) or chosen


def all_of(question: str, known: Sequence[Sentence], most: int) -> list[Sentence]:
    """All statements that speak of what was asked, the newest `most`, oldest first."""
    query = Query(question)
    if not query.strong:
        return []
    speak = [one for one in known if one.source != "prompt" and all(one.speaks_of(want) for want in query.strong)]
    return sorted(speak, key=lambda one: one.order)[-most:]


def _scored(query: Query, known: Sequence[Sentence]) -> list[tuple[float, Sentence]]:
    wanted = query.strong | query.weak
    if not wanted:
        return []
    often = {want: sum(one.speaks_of(want) > 0 for one in known) for want in wanted}
    weights = {
        want: (1.0 if want in query.strong else _LIGHT) / (1 + 0.5 * math.log1p(count)) for want, count in often.items()
    }
    scored = [(_score(query, one, weights), one) for one in known if not query.of_you or one.source != "user"]
    return [(score, one) for score, one in scored if score > 0 and not _of_another(query, one, known)]


def _holds(want: str, said: frozenset[str]) -> bool:
    """Whether a subject is among others, up to the ends that the stemmer left."""
    if want in said or want[0] == "=" or len(want) < 4:
        return want in said
    return any(len(other) >= 4 and (other.startswith(want) or want.startswith(other)) for other in said)


def _score(query: Query, one: Sentence, weights: dict[str, float]) -> float:
    """How well a sentence answers; 0 when it does not speak of enough that was asked."""
    held = {want: weight * one.speaks_of(want) for want, weight in weights.items()}
    if NAME in weights and _apposed(query, one.text):
        held[NAME] = weights[NAME]
    if query.kind == "name" and query.strong == {NAME} and query.mine and not _names_me(one):
        return 0.0
    covered = sum(held.values()) / sum(weights.values())
    fits = query.kind == "any" or bool(_values(query, one)) or _somewhere(query, one)
    central = sum(held[want] for want in query.strong) / sum(weights[want] for want in query.strong)
    if lexicon.WH.isdisjoint(query.words) and 2 * sum(map(one.speaks_of, query.strong)) <= len(query.strong):
        return 0.0  # half of what a yes or no is asked about is not enough
    if central < 0.5 or covered < (0.45 if fits else _ENOUGH):
        return 0.0
    if not fits and (query.kind in _MUST or (query.kind in _SHOULD and covered < 0.99)):
        return 0.0
    return covered + (0.25 if fits else -0.3) + 0.3 * _near(query, one) + _PRIOR[one.source] + _speaker(query, one)


def _of_another(query: Query, one: Sentence, known: Sequence[Sentence]) -> bool:
    """Whether the statement is of somebody else than the question asks about."""
    if one.source not in ("user", "notes"):
        return False
    told, asked = who.told_of(one.text, note=one.source == "notes"), who.asked_of(query.text)
    if not asked:
        return bool(told) and who.of_oneself(query.text)
    spoken = any(map(one.speaks_of, lexicon.subjects(word for name in asked for word in lexicon.words(name))))
    return told is not None and not spoken and told not in who.called(asked, (other.text for other in known))


def _speaker(query: Query, one: Sentence) -> float:
    """What the user asks of himself is better known from him, what he asks of the assistant from the assistant."""
    if one.source != "assistant" or query.mine == query.yours:
        return 0.0
    return 0.3 if query.yours else -0.1


def _names_me(one: Sentence) -> bool:
    return NAME in _owned(one.words) or bool(_INTRODUCES.search(one.text))


def _somewhere(query: Query, one: Sentence) -> bool:
    return query.kind == "place" and bool(values.SOMEWHERE.search(one.text))


def _apposed(query: Query, text: str) -> bool:
    """Whether a proper name stands right beside what was asked for: "my wife Joana", "дочка Инна"."""
    return any(_beside(query, text, name) for name in values.found("name", text))


def _beside(query: Query, text: str, name: re.Match[str]) -> bool:
    before = (*lexicon.words(text[: name.start()])[-1:], *lexicon.words(name.group())[:-1])
    return not (query.strong - {NAME}).isdisjoint(lexicon.subjects(before))


def _near(query: Query, one: Sentence) -> float:
    """Whether "my name" of the question is also "my name" in the sentence, and not "my sister's name"."""
    asked = _owned(query.words)
    if not lexicon.subjects(query.words) and query.mine:
        asked = frozenset({NAME})  # "Who am I?"
    return len(asked & _owned(one.words)) / len(asked) if asked else 0.0


def _owned(small: tuple[str, ...]) -> frozenset[str]:
    """Subjects that stand right beside the speaker's word for himself."""
    own = lexicon.MINE | {"user", "пользователь", "пользователя"}
    small = tuple(word for word in small if len(word) > 1 or word in own)
    pairs = [*zip(small, small[1:], strict=False), *zip(small[1:], small, strict=False)]
    return frozenset(subject for word, other in pairs if word in own for subject in lexicon.subjects([other]))


def _taken_back(query: Query, chosen: Sentence, known: Sequence[Sentence]) -> Sentence | None:
    """The latest later statement of the user that denies the chosen one's value and gives another."""
    value = set(lexicon.words(answer_in(query.text, chosen))) - lexicon.EMPTY
    later = [one for one in known if one.source in ("user", "notes") and one.order > chosen.order]
    subjects = chosen.subjects - lexicon.subjects(value)
    denying = [
        one
        for one in later
        if value & set(one.words)
        and not lexicon.DENIES.isdisjoint(one.words + tuple(re.findall(r"n[’']t\b", one.text.lower())))
        and not subjects.isdisjoint(one.subjects)
        and any(not value >= set(lexicon.words(found.group())) - lexicon.EMPTY for found in _values(query, one))
    ]
    return max(denying, key=lambda one: one.order, default=None)


def answer_in(question: str, one: Sentence) -> str:
    """The words of the sentence that answer; empty when it is not clear which they are, or when all of them do."""
    query, text = Query(question), one.text
    if query.kind == "name" and NAME in query.strong | query.weak and (named := _after_link(query, text)):
        return named
    found = _values(query, one)
    if not lexicon.BUT.isdisjoint(one.words) and len(list(values.NUMBERS.finditer(text))) > len(found) > 0:
        return ""  # one figure against another: the sentence tells it better
    if len(found) > 1:
        found = _closest(query, text, found)
    return " ".join(_value(query, found[0]).split()) if len(found) == 1 else ""


def _value(query: Query, match: re.Match[str]) -> str:
    """The words of a value; of "Фотограф Надя Петрова" without the word that was asked for."""
    inner: str = match.group(match.lastindex or 0) if match.re in (values.PLACES, values.NAMES) else match.group()
    first, _, rest = inner.partition(" ")
    if match.re is values.NAMES and rest and not query.strong.isdisjoint(lexicon.subjects(lexicon.words(first))):
        return rest
    return inner.strip(" ,")


def _values(query: Query, one: Sentence) -> list[re.Match[str]]:
    """The values of the wanted kind that the question did not say itself, and that nothing beside them denies."""
    asked = set(query.words)
    found = [
        match
        for match in values.found(query.kind, one.text)
        if not asked >= set(lexicon.words(match.group())) and not _denied(one.text, match)
    ]
    if query.kind == "name":
        known = query.strong | query.weak
        small = [(match, lexicon.words(match.group())) for match in found]
        found = [
            match for match, said in small if not set(said) <= lexicon.INITIAL and not lexicon.subjects(said) <= known
        ]
    if query.kind == "money" and len(found) > 1:
        return [match for match in found if values.priced(match.group())] or _uncounted(query, one.text, found)
    return _counted(query, one, found) if query.kind == "count" else found


def _counted(query: Query, one: Sentence, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """The figures that count what was asked for: its own word first, then "people" and the like, then the only one."""
    for wanted in (query.strong, query.weak):
        if counted := [match for match in found if _counts(wanted, one.text, match)]:
            return counted
    return found if len(found) == 1 and not query.strong.isdisjoint(one.subjects) else []


def _uncounted(query: Query, text: str, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """Figures without a currency that may be prices: not "four" of "480 for four tyres"."""
    return [match for match in found if not _counts(query.strong, text, match)] or found


def _denied(text: str, match: re.Match[str]) -> bool:
    """Whether what stands before a value, in the same stretch between commas, rules it out."""
    before = re.split(r"[,;:–—]\s|\s(?:but|а|но)\s", text[: match.start()])[-1]
    return bool(lexicon.STILL_NOT.search(before)) or before.rstrip().lower().endswith("instead of")


def _counts(wanted: frozenset[str], text: str, match: re.Match[str]) -> bool:
    """Whether it counts what was asked for: the word stands in the value, right after it, or right before it."""
    after = lexicon.words(re.split(r"[,;:.]\s", text[match.end() :])[0])[:3]
    before = lexicon.words(re.split(r"[,;:.]\s", text[: match.start()])[-1])[-2:]
    near = lexicon.subjects((*lexicon.words(match.group()), *after, *before))
    return any(_holds(want, near) for want in wanted)


def _closest(query: Query, text: str, found: list[re.Match[str]]) -> list[re.Match[str]]:
    """The value nearest to a word that was asked for, within one stretch between commas where that is possible."""
    places = [spans for want in query.strong if (spans := _places(query, text, want))]

    def distance(match: re.Match[str]) -> int:
        return sum(min(_apart(text, match.span(), span) for span in spans) for spans in places)

    ranked = sorted(found, key=distance)
    return ranked[:1] if distance(ranked[0]) + _CLEAR < distance(ranked[1]) else []


def _places(query: Query, text: str, want: str) -> list[tuple[int, int]]:
    """Where a text speaks of a subject: by the question's own word if it has it, else by one that means the same."""
    stems = {lexicon.stem(word) for word in query.words}
    spoken = [(word.span(), small) for word in lexicon.WORD.finditer(text) for small in lexicon.words(word.group())]
    like = [(span, small) for span, small in spoken if _holds(want, lexicon.subjects([small]))]
    own = [span for span, small in like if lexicon.stem(small) in stems]
    return own or [span for span, _ in like]


def _apart(text: str, a: tuple[int, int], b: tuple[int, int]) -> int:
    """Characters between two places; a comma or a joining word between them counts for much more."""
    first, then = sorted((a, b))
    between = text[first[1] : then[0]]
    return max(0, then[0] - first[1]) + 100 * len(re.findall(r"[,;:]\s|\s(?:and|but|и|а|но)\s", between))


def _after_link(query: Query, text: str) -> str:
    """The name after "name is", "зовут", "call me", "I'm", or beside what was asked for."""
    intro = _INTRODUCES.search(text)
    if intro and not (query.strong - {NAME}):
        return re.split(r"\s", intro.group())[-1]
    places = [word for word in lexicon.WORD.finditer(text) if lexicon.subjects(lexicon.words(word.group())) == {NAME}]
    for place in reversed(places):
        at = place.end()
        while (word := lexicon.WORD.search(text, at)) and _leads(word.group().lower()):
            at = word.end()
        quoted = word and text[word.start() - 1 : word.start()] == "«"
        capital = values.NAMES.match(text, word.start() - bool(quoted)) if word else None
        if capital:
            return _value(query, capital)
        if word and word.group().lower() not in lexicon.EMPTY:
            return word.group()
    beside = [name for name in values.found("name", text) if _beside(query, text, name)]
    return _value(query, beside[0]) if beside else ""


def _leads(word: str) -> bool:
    return word in lexicon.LINKS or word in lexicon.MINE
