"""The watch itself: one message and a memory in, what was noticed and the next memory out.

`Watch` holds compiled data only; it is built once and never changes (lexicons for a set of languages are compiled
when first asked for). Everything else is functions over values.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import NamedTuple

from nitka.watch import assign as assignments
from nitka.watch import clauses, combine, lexicon, memory, observe
from nitka.watch.combine import CALLER, Scene
from nitka.watch.glance import MARKS, glance
from nitka.watch.language import identify
from nitka.watch.lexicon import Lexicon, Looked
from nitka.watch.memory import Memory, id_of, tag_of
from nitka.watch.normalise import clean
from nitka.watch.observe import Index, Mentions
from nitka.watch.relevance import Relevance, relevance
from nitka.watch.rules import RuleBook
from nitka.watch.tokens import WORD, tokenise
from nitka.watch.types import NORMAL, SEVERITIES, Alert, Evidence, FlagKind, Kinds, Rule, Sighting, Span, Speaker
from nitka.watch.wire_memory import flag_name

_JUST = 2  # messages within which a word is an answer


@dataclass(frozen=True, slots=True)
class Watch:
    """Compiled rules and lexicons. `languages` maps a code to its lexicon files."""

    kinds: Kinds
    rules: tuple[Rule, ...]
    by_flag: Mapping[str, tuple[Rule, ...]]
    patterns: Index
    relevance: Relevance
    parents: Mapping[str, Sequence[str]]
    languages: Mapping[str, Sequence[tuple[str, str]]]
    version: str
    codes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # language settings already understood
    _compiled: dict[tuple[str, ...], Lexicon] = field(default_factory=dict)

    def lexicon(self, codes: tuple[str, ...]) -> Lexicon:
        """The lexicon of these languages together."""
        found = self._compiled.get(codes)
        if found is None:
            texts = [text for code in codes for text in self.languages[code]]
            found = self._compiled[codes] = lexicon.load(texts, self.parents, self.relevance.mark)
        return found


def build(book: RuleBook, languages: Mapping[str, Sequence[tuple[str, str]]], off: Iterable[str] = ()) -> Watch:
    """Compile a rule book; `off` names rules to leave out."""
    without = frozenset(off)
    rules = tuple(rule for rule in book.rules.values() if rule.id not in without)
    by_flag: dict[str, list[Rule]] = {}
    for rule in rules:
        for flag in rule.flags:
            by_flag.setdefault(flag, []).append(rule)
    kinds = Kinds(book.kinds)
    patterns = observe.index(
        (s.pattern for s in book.sources), book.vetoes, book.parents, kinds.strength, book.hushes, combine.doings(kinds)
    )
    version = book.version + "".join(f"-{name}" for name in sorted(without))
    return Watch(
        kinds,
        rules,
        {f: tuple(r) for f, r in by_flag.items()},
        patterns,
        relevance(
            (s.pattern for s in book.sources),
            frozenset().union(*book.vetoes.values()),
            patterns.persons | patterns.things,
        ),
        book.parents,
        languages,
        version,
    )


class Who(NamedTuple):
    """The speaker of the message: the id as given, its tag ("" when not given), what the caller says of them."""

    id: str = ""
    tag: str = ""
    age: str = ""
    role: str = ""


def who(identity: str, *, age: int | None = None, role: str = "") -> Who:
    """A speaker; `age` in years."""
    known = "" if age is None else "minor" if age < 18 else "adult"
    tag = tag_of(_digest(identity)) if identity else ""
    return Who(identity, tag, known, role)


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


class Seen(NamedTuple):
    """A message read: its tokens with what they stand for, and its sentences. `plain`: there is nothing in it but words
    and ordinary marks.
    """

    reading: clauses.Reading
    sentences: tuple[clauses.Sentence, ...]
    plain: bool


class Noticed(NamedTuple):
    """What one message gave. `seen` is its reading, None where a first look told that nothing in it matters."""

    seen: Seen | None
    sightings: Sequence[Sighting]
    alerts: tuple[Alert, ...]
    memory: Memory
    language: str


def step(
    watch: Watch,
    text: str,
    codes: tuple[str, ...],
    before: Memory,
    speaker: Who,
    *,
    message_id: str = "",
    whole: bool = True,
) -> Noticed:
    """Read one message. Pure: the same arguments give the same result in any process. Not `whole`: a message in which
    nothing can matter is not cut into sentences, and `seen` is None.
    """
    identity = id_of(_digest(message_id)) if message_id else None
    replay = identity is not None and identity in before.ids
    if before.assign:
        speaker = assignments.with_features(speaker, assignments.about_speaker(before.assign, text, watch.parents))
    now = before if replay else memory.aged(before, watch.kinds)
    words = watch.lexicon(codes)
    mentions, just = _mentions(now, speaker.tag), _just_shown(watch.patterns.after, now, speaker.tag)
    first = None if before.assign else glance(text, words)
    marks = watch.relevance.after(just)
    seen, sightings = None, list[Sighting]()
    if first is not None and not whole and not watch.relevance.may_matter(first.marks | marks, *mentions.concepts()):
        language = identify((form for form in first.forms if form not in MARKS), codes, words)
    else:
        seen, looked = read(watch, text, words, before, first)
        found, antecedents = observe.observe(
            seen.reading,
            seen.sentences,
            watch.patterns,
            mentions,
            after=just,
            matters=None if first is None else _matters(watch.relevance, looked, marks),
        )
        sightings = [s for s in found if _counts(watch.kinds[s.flag], speaker.role)] if speaker.role else found
        now = now._replace(antecedents=antecedents)
        language = identify(_said(seen.reading), codes, words)
    if replay and identity is not None:
        return Noticed(seen, sightings, _again(watch, before, speaker, sightings, identity), before, language)
    if language and language != now.language:
        now = now._replace(language=language)
    now = _note(now, speaker, sightings, watch.kinds)
    alerts, now = _alerts(watch, now, speaker, sightings, identity)
    return Noticed(seen, sightings, alerts, memory.bounded(now, watch.kinds), language)


def read(watch: Watch, text: str, words: Lexicon, before: Memory, first: Looked | None = None) -> tuple[Seen, Looked]:
    """Tokens, concepts, sentences and clauses of a text; `first` is what a first look gave."""
    tokens = tokenise(clean(text))
    looked = lexicon.look(lexicon.forms_of(tokens, words), words) if first is None else first
    found = lexicon.found(looked)
    if before.assign:
        assignments.apply(before.assign, text, tokens, found, watch.parents)
    reading = clauses.read(tokens, looked.forms, found, words)
    return Seen(reading, tuple(clauses.sentences(reading)), first is not None), looked


def _matters(relevance: Relevance, looked: Looked, always: int) -> Callable[[clauses.Sentence, Mentions], bool]:
    """Whether a sentence may matter, as `Relevance.may_matter` tells of a message."""
    at = [word.marks for word in looked.words]
    for place, phrase, _ in looked.phrases:
        at[place] |= phrase.marks

    def matters(sentence: clauses.Sentence, mentions: Mentions) -> bool:
        marks = always
        for here in at[sentence.start : sentence.end]:
            marks |= here
        return relevance.may_matter(marks, *mentions.concepts())

    return matters


def _said(reading: clauses.Reading) -> Iterator[str]:
    """The words of a message, as they are looked up."""
    return (form for token, form in zip(reading.tokens, reading.forms, strict=True) if token.kind == WORD)


def _just_shown(wanted: Set[str], now: Memory, tag: str) -> list[str]:
    """Of these flags, those that somebody else showed in one of the last two messages."""
    return sorted(
        [
            flag
            for flag in wanted & now.seen.keys()
            if any([0 < span.last <= _JUST and (who != tag or not tag) for who, span in now.seen[flag].items()])
        ]
    )


def _mentions(now: Memory, tag: str) -> Mentions:
    if not now.antecedents:
        return Mentions(tag)
    found = {a.kind: a for a in now.antecedents}
    return Mentions(tag, found.get("person"), found.get("thing"))


def _counts(kind: FlagKind, role: str) -> bool:
    """Whether a speaker in this role can show this flag: a system only protects, an assistant and a guardian are
    never the offender.
    """
    if role == "system":
        return kind.group == "protective"
    if role in ("assistant", "guardian"):
        return kind.set_by != "A" or kind.group == "protective"
    return True


def _note(now: Memory, speaker: Who, sightings: Sequence[Sighting], kinds: Kinds) -> Memory:
    if sightings:
        strongest: dict[str, int] = {}
        for one in sightings:
            strongest[one.flag] = max(one.strength, strongest.get(one.flag, 0))
        now = memory.with_sightings(now, strongest, speaker.tag)
    stated = {"guardian": "guardian_present", "staff": "work_or_class_context"}.get(speaker.role, "")
    if stated in kinds:
        now = memory.with_sightings(now, {stated: NORMAL}, CALLER)
    if speaker.tag and (speaker.age or speaker.role):
        known = Speaker(speaker.tag, speaker.age, speaker.role)
        now = now._replace(known={**now.known, speaker.tag: known})
    return now


def _scene(watch: Watch, now: Memory, speaker: Who, sightings: Sequence[Sighting]) -> Scene:
    here: dict[str, tuple[Sighting, Sighting]] = {}
    for one in sightings:
        here[one.flag] = (here[one.flag][0], one) if one.flag in here else (one, one)
    seen = dict(now.seen)
    for entry in now.foreign:
        seen.setdefault(flag_name(entry), {CALLER: Span(1, 1)})
    return Scene(seen, here, speaker.tag, now.known, watch.kinds)


def _alerts(
    watch: Watch, now: Memory, speaker: Who, sightings: Sequence[Sighting], identity: int | None
) -> tuple[tuple[Alert, ...], Memory]:
    """The alerts that are new, or more severe than when they were first given; and the memory that knows of them."""
    if not sightings and identity is None:
        return (), now
    fresh: list[Alert] = []
    fired, recent = dict(now.fired), set(now.recent)
    if sightings:
        scene = _scene(watch, now, speaker, sightings)
        for match in combine.matches(_candidates(watch, scene, now), scene):
            level = SEVERITIES.index(match.severity)
            if level <= fired.get(match.rule.number, -1):
                continue
            fired[match.rule.number] = level
            fresh.append(_alert(match, speaker))
            if identity is not None:
                recent.add((identity, match.rule.number, level))
    ids = now.ids
    if identity is not None:
        ids = {identity: 0} | {i: n + 1 for i, n in now.ids.items() if n < 7}
    return tuple(fresh), now._replace(fired=fired, ids=ids, recent=frozenset(recent))


def _candidates(watch: Watch, scene: Scene, now: Memory) -> list[Rule]:
    found: dict[str, Rule] = {}
    for flag in scene.now:
        for rule in watch.by_flag.get(flag, ()):
            if rule.formula.groups and all(any(f in scene.seen for f in group) for group in rule.formula.groups):
                found[rule.id] = rule
    roles = {s.role for s in now.known.values()}
    return [found[name] for name in sorted(found) if not found[name].needs_role or found[name].needs_role in roles]


def _alert(match: combine.Match, speaker: Who, *, replayed: bool = False) -> Alert:
    rule, place = match.rule, match.place
    evidence = tuple(Evidence(p.flag, _ago(rule, i, p), _name(p.speaker, speaker)) for i, p in enumerate(match.parts))
    return Alert(
        rule.id,
        rule.type,
        match.severity,
        rule.tags,
        place.start,
        place.end,
        place.sentence,
        _name(match.actor, speaker),
        evidence,
        replayed,
    )


def _ago(rule: Rule, index: int, part: combine.Part) -> int:
    """An earlier part of an ordered rule is told from its first sighting, anything else from its last."""
    return part.span.first if any(left == index for left, _ in rule.formula.order) else part.span.last


def _name(tag: str, speaker: Who) -> str:
    if tag in ("", CALLER):
        return ""
    return speaker.id if tag == speaker.tag else f"#{tag}"


def _again(
    watch: Watch, before: Memory, speaker: Who, sightings: Sequence[Sighting], identity: int
) -> tuple[Alert, ...]:
    """The alerts a message gave when it was first read; evidence is told as it stands now."""
    given = {number: level for one, number, level in sorted(before.recent) if one == identity}
    again = []
    places = sightings or [Sighting("", 0, 0, 0, 0)]
    for rule in watch.rules:
        if rule.number in given:
            parts = _parts_again(rule, before, sightings)
            match = combine.Match(rule, SEVERITIES[given[rule.number]], speaker.tag, parts, _last_of(rule, places))
            again.append(_alert(match, speaker, replayed=True))
    return tuple(again)


def _last_of(rule: Rule, places: Sequence[Sighting]) -> Sighting:
    return max((s for s in places if s.flag in rule.flags), key=lambda s: s.order, default=places[-1])


def _parts_again(rule: Rule, before: Memory, sightings: Sequence[Sighting]) -> tuple[combine.Part, ...]:
    here = {s.flag for s in sightings}
    parts = []
    for group in rule.formula.groups:
        for flag in sorted(group, key=lambda f: (f not in here, f)):
            if flag in before.seen:
                tag = min(before.seen[flag])
                parts.append(combine.Part(flag, tag, before.seen[flag][tag]))
                break
    return tuple(parts)
