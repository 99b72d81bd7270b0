"""Words of a language: which concepts a word or phrase stands for, and in which grammatical form.

A lexicon is the file `forms.txt` of a language folder. `@name` opens a concept, `/form` opens a list of its words in
one form, then come words, separated by blanks. A phrase is written with `_` between its tokens; a token `a|b` is
either word, a token `*` a gap of up to three tokens. A concept written in capitals is grammar (`YOU`, `NOT`); one
that begins with `!` is a flag said outright by an idiom. `README.md` beside this file is the full description;
`tools/build.py` writes `forms.txt` from the readable files in `words/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import NamedTuple

from nitka.watch import phrases
from nitka.watch.errors import RuleError
from nitka.watch.latin import plain_latin, spellings
from nitka.watch.phrases import GAP, GAPPED, Phrase, Walk
from nitka.watch.tokens import WORD, Token, repairs
from nitka.watch.types import THIN_MARK

COUNTED = "%"  # after the flag of an idiom: its words are counted
_WEAKLY = 2
_TELLING = 2  # words that tell, of a phrase that is more than weak
FORMS = ("", "imp", "inf", "base", "1", "1i", "1p", "2", "2i", "3", "3p", "past", "pastp", "pass", "ing", "x")

Reading = tuple[str, str]  # concept, grammatical form


class Hit(NamedTuple):
    """A concept in a grammatical form, over `width` tokens from where it stands."""

    concept: str
    form: str
    width: int


class Word(NamedTuple):
    """What a word form stands for. `grammar` are its concepts in capitals; `verb`: it makes a predicate; `walks`
    find the phrases that it may begin; `marks` as in `relevance`.
    """

    hits: tuple[Hit, ...]
    grammar: frozenset[str]
    verb: bool
    walks: tuple[Walk, ...]
    marks: int


@dataclass(slots=True)
class _Draft:
    words: dict[str, list[Reading]] = field(default_factory=dict)
    phrases: dict[str, list[tuple[str, Reading]]] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)  # of phrases
    verbs: set[str] = field(default_factory=set)
    suffixes: list[str] = field(default_factory=list)
    light: set[str] = field(default_factory=set)  # words that tell nothing, such as "the"


class Words(dict[str, Word]):
    """Word forms, each made up when first asked for: a message needs a dozen of fifty thousand. Ask for known forms
    only.
    """

    def __init__(self, draft: _Draft, parents: Mapping[str, Sequence[str]], mark: Mark) -> None:
        super().__init__()
        self._draft, self._parents, self._mark = draft, parents, mark

    def __missing__(self, form: str) -> Word:
        made = self[form] = _word(form, self._draft, self._parents, self._mark)
        return made


class Spellings:
    """Latin spellings of the Cyrillic words, made when a text first has a Latin word that nobody knows."""

    def __init__(self, draft: _Draft) -> None:
        self._draft = draft
        self._made: dict[str, str] | None = None

    def table(self) -> Mapping[str, str]:
        if self._made is None:
            draft = self._draft
            self._made = spellings({*draft.words, *draft.tokens}, draft.verbs & draft.words.keys())
        return self._made


Mark = Callable[[str, str], int]  # concept, form -> marks


@dataclass(frozen=True, slots=True)
class Lexicon:
    """Look-ups for one set of languages."""

    words: Mapping[str, Word]
    known: Set[str]
    spelled: Spellings
    suffixes: tuple[str, ...] = ()  # endings that make an unknown word a verb


class Found(NamedTuple):
    """What stands at each token: hits, grammar, whether it makes a predicate."""

    at: list[tuple[Hit, ...]]
    grammar: list[frozenset[str]]
    verb: list[bool]


PREDICATES = frozenset(
    {"BE", "CAN", "WILL", "MUST", "NEED", "WANT", "LET", "LETS", "HAVE", "DO", "VERB", "NONEED", "MIND"}
)
NOTHING = Word((), frozenset(), False, (), 0)


def _unmarked(_concept: str, _form: str) -> int:
    return 0


def load(texts: Iterable[tuple[str, str]], parents: Mapping[str, Sequence[str]], mark: Mark = _unmarked) -> Lexicon:
    """Read lexicon texts, given as (name for errors, content). `parents` gives the wider concepts of each concept,
    `mark` what a hit marks its word with.
    """
    draft = _Draft()
    for name, text in texts:
        _read(name, text, draft, parents)
    draft.tokens.discard(GAP)
    known = draft.words.keys() | draft.tokens
    return Lexicon(Words(draft, parents, mark), known, Spellings(draft), tuple(draft.suffixes))


def _word(form: str, draft: _Draft, parents: Mapping[str, Sequence[str]], mark: Mark) -> Word:
    readings = dict.fromkeys(_widen(draft.words.get(form, ()), parents))
    hits = tuple(Hit(concept, how, 1) for concept, how in readings)
    grammar = frozenset(hit.concept for hit in hits if hit.concept.isupper())
    verb = any(hit.form for hit in hits) or not grammar.isdisjoint(PREDICATES)
    marks = 0
    for concept, how in readings:
        marks |= mark(concept, how)
    return Word(hits, grammar, verb, phrases.starts(_phrases(form, draft, parents, mark)), marks)


def _phrases(head: str, draft: _Draft, parents: Mapping[str, Sequence[str]], mark: Mark) -> list[Phrase]:
    made: dict[Phrase, None] = {}
    for phrase, reading in draft.phrases.get(head, ()):
        rest = tuple(frozenset(token.split("|")) for token in phrase.split("_")[1:])
        if COUNTED in reading[0]:
            rest = _that_tell(head, rest, draft.light)
            if not rest:
                continue
        elif reading[0][0] == "!" and reading[0][-1].isalpha() and _telling(head, rest, draft.light) < _TELLING:
            reading = (reading[0] + THIN_MARK, reading[1])  # "to receive your" says little, long as it is
        for concept, form in _widen([reading], parents):
            made[Phrase(rest, concept, form, mark(concept, form))] = None
    return list(made)


def _telling(head: str, rest: Sequence[frozenset[str]], light: Set[str]) -> int:
    """How many words of a phrase tell anything, whichever are chosen."""
    return (head not in light) + sum(slot != GAPPED and slot.isdisjoint(light) for slot in rest)


def _that_tell(head: str, rest: tuple[frozenset[str], ...], light: Set[str]) -> tuple[frozenset[str], ...]:
    """The rest of a phrase whose telling words are counted, without the words after `head` with which it could not
    count; empty if it never could.
    """
    needed = _WEAKLY - (head not in light)
    slots = sum(slot != GAPPED for slot in rest)
    if needed < slots:
        return rest
    left = tuple(slot if slot == GAPPED else slot - light for slot in rest)
    return left if needed == slots and all(left) else ()


def _widen(readings: Iterable[Reading], parents: Mapping[str, Sequence[str]]) -> Iterable[Reading]:
    for concept, form in readings:
        yield concept, form
        for wider in parents.get(concept, ()):
            yield wider, form


def _read(name: str, text: str, draft: _Draft, parents: Mapping[str, Sequence[str]]) -> None:
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
        _enter(draft, (concept, form), items, parents)


def _enter(draft: _Draft, reading: Reading, items: list[str], parents: Mapping[str, Sequence[str]]) -> None:
    concept, form = reading
    if concept == "SUFFIX":
        draft.suffixes.extend(items)
        return
    if concept == "LIGHT":
        draft.light.update(items)
    words = draft.words
    for item in items:
        if "_" in item:
            for head in item[: item.index("_")].split("|"):
                draft.phrases.setdefault(head, []).append((item, reading))
            draft.tokens.update(item.replace("|", "_").split("_"))
        elif item in words:
            words[item].append(reading)
        else:
            words[item] = [reading]
    if form or not PREDICATES.isdisjoint((concept, *parents.get(concept, ()))):
        draft.verbs.update(items)


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
    if strange:
        _transliterate(tokens, forms, strange, lexicon)
    return forms


def _transliterate(tokens: Sequence[Token], forms: list[str], strange: list[int], lexicon: Lexicon) -> None:
    """Read Latin words as Russian when that explains at least half of the unknown ones and at least two words."""
    spelled = lexicon.spelled.table()
    if not spelled:
        return
    words = [i for i, t in enumerate(tokens) if t.kind == WORD and t.form.isascii()]
    readings = {i: spelled[key] for i in words if (key := plain_latin(forms[i])) in spelled}
    explained = sum(1 for i in strange if i in readings)
    if explained * 2 < len(strange) or explained < 1 or len(readings) < 2 or len(readings) * 5 < len(words) * 3:
        return
    for i, reading in readings.items():
        forms[i] = reading


class Looked(NamedTuple):
    """What the lexicon has for a row of forms: the word of each, phrases as (first token, phrase, token after), and all
    their marks.
    """

    forms: Sequence[str]
    words: Sequence[Word]
    phrases: Sequence[tuple[int, Phrase, int]]
    marks: int


def look(forms: Sequence[str], lexicon: Lexicon) -> Looked:
    """Look up every token, and the phrases that begin at it."""
    known, words = lexicon.known, lexicon.words
    met = words.get
    row = [met(form) or (words[form] if form in known else NOTHING) for form in forms]
    marks = reduce(or_, [word.marks for word in row], 0)
    found = []
    for place, phrase, end in phrases.standing(forms, [word.walks for word in row]):
        counted = _counted(phrase, forms, row, place) if COUNTED in phrase.concept else phrase
        if counted:
            found.append((place, counted, end))
            marks |= counted.marks
    return Looked(forms, row, found, marks)


def found(looked: Looked) -> Found:
    """Every concept in a row of tokens, words and phrases alike, under its first token."""
    row = looked.words
    whole = Found([w.hits for w in row], [w.grammar for w in row], [w.verb for w in row])
    for place, phrase, end in looked.phrases:
        add(whole, place, Hit(phrase.concept, phrase.form, end - place))
    return whole


def add(found: Found, place: int, hit: Hit) -> None:
    """Put one more hit at a token."""
    found.at[place] = (*found.at[place], hit)
    if hit.concept.isupper():
        found.grammar[place] |= {hit.concept}
    if hit.form or hit.concept in PREDICATES:
        found.verb[place] = True


def _counted(phrase: Phrase, forms: Sequence[str], row: Sequence[Word], place: int) -> Phrase | None:
    """A phrase whose words are chosen freely counts by how many of those that stand here tell anything: as it is with
    three, weakly with two, not at all with fewer.
    """
    telling = sum("LIGHT" not in row[index].grammar for index in phrases.places_of(forms, place, phrase))
    flag, _, mark = phrase.concept.partition(COUNTED)
    if telling < _WEAKLY:
        return None
    return phrase._replace(concept=flag + (mark or ("" if telling > _WEAKLY else "?")))
