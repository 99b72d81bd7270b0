"""Words of a language: which concepts a word or phrase stands for, and in which grammatical form.

A lexicon is the file `forms.txt` of a language folder. `@name` opens a concept, `/form` opens a list of its words in
one form, then come words, separated by blanks. A phrase is written with `_` between its tokens; a token `*` is a gap
of up to three tokens. A concept written in capitals is grammar (`YOU`, `NOT`); one that begins with `!` is a flag
said outright by an idiom. `README.md` beside this file is the full description; `tools/build.py` writes `forms.txt`
from the readable files in `words/`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nitka.watch.errors import RuleError
from nitka.watch.tokens import WORD, Token, repairs

GAP = "*"
GAP_MOST = 3
FORMS = ("", "imp", "inf", "base", "1", "1i", "1p", "2", "2i", "3", "3p", "past", "pastp", "pass", "ing", "x")

Reading = tuple[str, str]  # concept, grammatical form


class Hit(NamedTuple):
    """A concept in a grammatical form, over `width` tokens from where it stands."""

    concept: str
    form: str
    width: int


class Word(NamedTuple):
    """What a word form stands for. `grammar` are its concepts in capitals; `verb`: it makes a predicate."""

    hits: tuple[Hit, ...]
    grammar: frozenset[str]
    verb: bool


class Phrase(NamedTuple):
    """A phrase after its first token: the rest of its tokens and what it stands for."""

    rest: tuple[str, ...]
    concept: str
    form: str


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Look-ups for one set of languages. `first` leads from a phrase's first token, and then its second, to the
    phrases.
    """

    words: Mapping[str, Word]
    first: Mapping[str, Mapping[str, tuple[Phrase, ...]]]
    known: frozenset[str]
    spelled: Mapping[str, str]  # Latin spelling -> the word, for languages of another script
    suffixes: tuple[str, ...] = ()  # endings that make an unknown word a verb


class Found(NamedTuple):
    """What stands at each token: hits, grammar, whether it makes a predicate."""

    at: list[tuple[Hit, ...]]
    grammar: list[frozenset[str]]
    verb: list[bool]


PREDICATES = frozenset(
    {"BE", "CAN", "WILL", "MUST", "NEED", "WANT", "LET", "LETS", "HAVE", "DO", "VERB", "NONEED", "MIND"}
)
_NOTHING = Word((), frozenset(), False)


@dataclass(slots=True)
class _Draft:
    words: dict[str, list[Reading]] = field(default_factory=dict)
    first: dict[str, dict[str, list[Phrase]]] = field(default_factory=dict)
    known: set[str] = field(default_factory=set)
    suffixes: list[str] = field(default_factory=list)


def load(texts: Iterable[tuple[str, str]], parents: Mapping[str, Sequence[str]]) -> Lexicon:
    """Compile lexicon texts, given as (name for errors, content). `parents` gives the wider concepts of each
    concept.
    """
    draft = _Draft()
    for name, text in texts:
        _read(name, text, draft)
    words = {form: _word(readings, parents) for form, readings in draft.words.items()}
    first = {
        head: {second: _widen_phrases(phrases, parents) for second, phrases in seconds.items()}
        for head, seconds in draft.first.items()
    }
    return Lexicon(words, first, frozenset(draft.known), _spellings(draft.known, words), tuple(draft.suffixes))


def _word(readings: Iterable[Reading], parents: Mapping[str, Sequence[str]]) -> Word:
    hits = tuple(Hit(concept, form, 1) for concept, form in dict.fromkeys(_widen(readings, parents)))
    grammar = frozenset(hit.concept for hit in hits if hit.concept.isupper())
    return Word(hits, grammar, any(hit.form for hit in hits) or not grammar.isdisjoint(PREDICATES))


def _widen(readings: Iterable[Reading], parents: Mapping[str, Sequence[str]]) -> Iterable[Reading]:
    for concept, form in readings:
        yield concept, form
        for wider in parents.get(concept, ()):
            yield wider, form


def _widen_phrases(phrases: Iterable[Phrase], parents: Mapping[str, Sequence[str]]) -> tuple[Phrase, ...]:
    wide = [Phrase(p.rest, c, p.form) for p in phrases for c in (p.concept, *parents.get(p.concept, ()))]
    return tuple(dict.fromkeys(wide))


def _read(name: str, text: str, draft: _Draft) -> None:
    concept, form = "", ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("#") or not line:
            continue
        if line.startswith("@"):
            concept, form = line[1:].strip(), ""
            continue
        items = line.split()
        if line.startswith("/"):
            form = items.pop(0)[1:]
            if form not in FORMS:
                raise RuleError(f"{name}:{number}", "an unknown form", " ".join(FORMS))
        if not concept:
            raise RuleError(f"{name}:{number}", "words before any @concept", "an @concept line first")
        _enter(draft, concept, form, items)


def _enter(draft: _Draft, concept: str, form: str, items: list[str]) -> None:
    if concept == "SUFFIX":
        draft.suffixes.extend(items)
        return
    for item in items:
        if "_" in item:
            head, *rest = item.split("_")
            seconds = draft.first.setdefault(head, {})
            seconds.setdefault(rest[0], []).append(Phrase(tuple(rest), concept, form))
            draft.known.update(t for t in (head, *rest) if t != GAP)
        else:
            draft.words.setdefault(item, []).append((concept, form))
            draft.known.add(item)


_LATIN_OF = str.maketrans(
    dict(
        zip(
            "абвгдезийклмнопрстуфхцчшщыэюяьъ",
            "a b v g d e z i y k l m n o p r s t u f h c ch sh sh y e yu ya".split() + ["", ""],
            strict=True,
        )
    )
    | {"ж": "zh"}
)


def latin(word: str) -> str:
    """The plainest Latin spelling of a Russian word."""
    return word.translate(_LATIN_OF)


def plain_latin(word: str) -> str:
    """A Latin word in the same spelling as `latin` gives: the usual ways of writing one Russian letter made one."""
    for usual, ours in (
        ("shch", "sh"),
        ("sch", "sh"),
        ("kh", "h"),
        ("ts", "c"),
        ("x", "h"),
        ("j", "y"),
        ("w", "v"),
        ("'", ""),
    ):
        if usual in word:
            word = word.replace(usual, ours)
    return word.replace("yo", "e") if "yo" in word else word


def _spellings(known: Iterable[str], words: Mapping[str, Word]) -> dict[str, str]:
    """Latin spellings of the Cyrillic words; where two collide, verbs go first, then the shorter word."""
    cyrillic = sorted(
        (w for w in known if "а" <= w[:1] <= "я"),
        key=lambda w: (w not in words or not words[w].verb, len(w), w),
        reverse=True,
    )
    return {key: w for w in cyrillic if len(key := latin(w)) > 1}


def forms_of(tokens: Sequence[Token], lexicon: Lexicon) -> list[str]:
    """The form under which each token is looked up: as written if known, else repaired, else (if most are) read as
    transliterated.
    """
    known, strange = lexicon.known, []
    forms = [token.form for token in tokens]
    for index, form in enumerate(forms):
        if form not in known and tokens[index].kind == WORD:
            form = next((r for r in repairs(form) if r in known), form)
            if form not in known and form.isascii():
                strange.append(index)
            forms[index] = form
    if strange and lexicon.spelled:
        _transliterate(tokens, forms, strange, lexicon)
    return forms


def _transliterate(tokens: Sequence[Token], forms: list[str], strange: list[int], lexicon: Lexicon) -> None:
    """Read Latin words as Russian when that explains at least half of the unknown ones and at least two words."""
    spelled = lexicon.spelled
    words = [i for i, t in enumerate(tokens) if t.kind == WORD and t.form.isascii()]
    readings = {i: spelled[key] for i in words if (key := plain_latin(forms[i])) in spelled}
    explained = sum(1 for i in strange if i in readings)
    if explained * 2 < len(strange) or explained < 1 or len(readings) < 2 or len(readings) * 5 < len(words) * 3:
        return
    for i, reading in readings.items():
        forms[i] = reading


def look_up(forms: Sequence[str], lexicon: Lexicon) -> Found:
    """Every concept in a row of tokens, words and phrases alike, under its first token."""
    words, first, count = lexicon.words, lexicon.first, len(forms)
    whats = [words.get(form, _NOTHING) for form in forms]
    found = Found([w.hits for w in whats], [w.grammar for w in whats], [w.verb for w in whats])
    for place, form in enumerate(forms):
        seconds = first.get(form)
        if seconds is not None and place + 1 < count:
            after = place + 2 if forms[place + 1] == "," and place + 2 < count else place + 1
            for phrase in seconds.get(forms[after], ()):
                _add_phrase(found, forms, place, after, phrase)
            for phrase in seconds.get(GAP, ()):
                _add_phrase(found, forms, place, after, phrase)
    return found


def _add_phrase(found: Found, forms: Sequence[str], place: int, after: int, phrase: Phrase) -> None:
    end = _phrase_end(forms, after, phrase.rest)
    if end:
        add(found, place, Hit(phrase.concept, phrase.form, end - place))


def add(found: Found, place: int, hit: Hit) -> None:
    """Put one more hit at a token."""
    found.at[place] = (*found.at[place], hit)
    if hit.concept.isupper():
        found.grammar[place] |= {hit.concept}
    if hit.form or hit.concept in PREDICATES:
        found.verb[place] = True


def _phrase_end(forms: Sequence[str], place: int, rest: Sequence[str]) -> int:
    """The index after the phrase if it stands at `place`, else 0."""
    count, index = len(forms), 0
    while index < len(rest):
        if rest[index] == GAP:
            index += 1
            window = range(place, min(place + GAP_MOST + 1, count))
            place = next((p for p in window if forms[p] == rest[index]), -1)
            if place < 0:
                return 0
        else:
            if place + 1 < count and forms[place] == ",":  # a comma inside a phrase is nobody's concern
                place += 1
            if place >= count or forms[place] != rest[index]:
                return 0
        place += 1
        index += 1
    return place
