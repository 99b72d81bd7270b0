"""The offline rules: what English and Russian messages say about the user, as candidates for `reconcile`.

`extract` is pure and needs no model. It reads the user's own statements, in order, keeps track of who was named, and
knows in what sense something is said; everything that depends on a language is data beside this file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from unicodedata import normalize

from nitka.layers.facts.canon import value_key
from nitka.layers.facts.dates import local
from nitka.layers.facts.model import USER, Candidate, Fact, key_of
from nitka.layers.facts.rules import commands, engine, gone, jokes, people, russian
from nitka.layers.facts.rules.engine import Scene, slot_part
from nitka.layers.facts.rules.modality import senses
from nitka.layers.facts.rules.people import Mention, Person
from nitka.layers.facts.rules.text import Sentence, hidden, sentences
from nitka.types import Message

__all__ = ["extract"]

_GENERIC = re.compile(
    r"(?i)dog|puppy|pup|doggo|cat|kitten|kitty|собак\w+|п[её]с|пса|щен\w+|кот\w?|котик|котён\w+|котен\w+|кошк\w+|mutt|mongrel"
)
_GONE = re.compile(
    r"(?i)[^.!?;]{0,20}\b(?:died|passed|is gone|was put down|ran away|умер\w*|погиб\w*|не стало|усыпили|сбежал\w*)"
)
_HAD = re.compile(
    r"(?i)\b(?:(?:had|used to have)(?: an?)?(?: [\w-]+){0,2}|lost|buried|put|said goodbye to|gave away|rehomed|"
    r"потерял[аи]?|похоронил[аи]?|усыпил[аи]?|усыпить|отдал[аи]?|отдать|не стало|пристроил[аи]?)"
    r"(?: (?:my|our|the|наш\w*|мо\w+|свою|своего))? $"
)
_NARROW = {0xFF01 + at: 0x21 + at for at in range(94)} | {0x3000: 0x20}  # full-width letters, digits and signs
_NEAR = 8  # rows in which what was said is still spoken of
_SETTLED = frozenset(("past", "hypothetical", "tentative", "joke", "untrue", "kept_out"))


@dataclass(frozen=True, slots=True)
class _Read:
    """What has been read so far: a value, replaced message by message."""

    cast: tuple[Person, ...]
    facts: tuple[Candidate, ...]  # everything asserted and not taken back, known facts first
    out: tuple[Candidate, ...] = ()
    question: str = ""  # the assistant's last question
    grouped: bool = False
    known: tuple[Fact, ...] = ()
    before: tuple[Candidate, ...] = ()  # the facts before the user's last message
    last: int = -1  # the row of that message


@dataclass(slots=True)
class _Found:
    """What one sentence gave, while its rules run."""

    candidates: list[Candidate] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)


def extract(messages: Sequence[Message], *, known: Sequence[Fact] = ()) -> tuple[Candidate, ...]:
    """Candidates from the user's rows among `messages` (in order; the assistant's rows only tell what a short answer
    answers).

    `known` are the facts as they are: they say who "he" is and what "forget" means. Evidence, secrets and categories
    are judged by `reconcile`, not here.
    """
    read = _Read(people.cast_of(known), tuple(map(_as_candidate, known)), known=tuple(known))
    try:
        for message in map(_composed, messages):
            if message.role == "assistant":
                read = replace(read, question=_last_question(message.text))
            else:
                after = _message(message, read)
                read = replace(after, question="", before=read.facts, last=message.n)
    finally:
        russian.forget()
    return tuple(replace(candidate, ours=True) for candidate in read.out)


def _composed(message: Message) -> Message:
    """The row in the form in which a letter is one character with its accents, as patterns take it."""
    return replace(message, text=normalize("NFC", message.text))


def _message(message: Message, read: _Read) -> _Read:
    text = hidden(message.text.translate(_NARROW), _names(read))
    parts = list(sentences(text))
    today = local(message).date()
    scenes: list[Scene] = []
    cast, grouped = read.cast, read.grouped
    for part in parts:
        grouped = people.group(part.text) or (grouped and len(scenes) < 2)
        spoken = people.mentions(part, cast, grouped=grouped)
        scenes.append(Scene(message, part, spoken, cast, grouped, today))
        cast = people.joined(cast, spoken)
    kept = _kept_out(scenes)
    for at, scene in enumerate(scenes):
        if at not in kept:
            read = _sentence(scene, read, first=at == 0)
    read = _whole(message, text, read, kept_out=bool(kept))
    read = _taken(read, list(jokes.unsaid(message, read.before, read.facts, read.known, read.last)))
    return replace(read, cast=people.joined(read.cast, _as_mentions(cast)), grouped=grouped)


def _names(read: _Read) -> list[str]:
    return [fact.value for fact in read.facts if fact.slot == "name" and fact.about == USER]


def _sentence(scene: Scene, read: _Read, *, first: bool) -> _Read:
    scene = replace(scene, cast=people.joined(scene.cast, _as_mentions(read.cast[len(scene.cast) :])))
    found = _Found()
    for mention in scene.mentions:
        found.candidates += _naming(mention, scene, read)
    if first and read.question:
        found.candidates += [*commands.answered(scene, read.question), *commands.affirmed(scene, read.question)]
    _by_rules(scene, found, read, whole=False)
    note = commands.remembered(scene, found.spans)
    asked = first and bool(read.question)
    found.candidates += commands.corrected(scene, [*read.facts, *found.candidates], asked=asked)
    found.candidates += [note] if note else []
    over = [*gone.taken_back(scene, read.facts), *gone.contrasted(scene, found.candidates, read.facts)]
    new = {value_key(one.value): one.slot for one in over if one.op == "assert"}
    stated = [one for one in found.candidates if new.get(value_key(one.value), one.slot) == one.slot]
    read = _taken(_taken(read, over), stated)
    return _taken(read, list(commands.forgotten(scene, read.facts)))


def _whole(message: Message, text: str, read: _Read, *, kept_out: bool) -> _Read:
    if kept_out or len(text) > 1_000:
        return read
    found = _Found()
    _by_rules(Scene(message, Sentence(text, 0), (), read.cast, False, local(message).date()), found, read, whole=True)
    return _taken(read, found.candidates)


def _by_rules(scene: Scene, found: _Found, read: _Read, *, whole: bool) -> None:
    taken: list[tuple[engine.Rule, tuple[int, int]]] = []
    for rule, candidate, span in engine.found(scene, whole=whole):
        used = any(other is not rule and first < span[1] and last > span[0] for other, (first, last) in taken)
        same = any(_same(candidate, other) for other in found.candidates)
        oldest = scene.message.n - _NEAR if rule.near else -1
        idle = rule.known and all(fact.slot != candidate.slot or fact.n < oldest for fact in read.facts)
        if (used and not rule.also) or same or idle:
            continue
        found.candidates.append(candidate)
        taken.append((rule, span))
    found.spans += [span for _, span in taken]


def _naming(mention: Mention, scene: Scene, read: _Read) -> Iterator[Candidate]:
    """The facts that a naming gives: who somebody is to the user, or what kind of animal it is."""
    person = mention.person
    if not mention.fresh or senses(scene.reaches, mention.start) & _SETTLED:
        return
    text = scene.sentence.text
    if person.is_pet and (_GONE.match(text, mention.end) or _HAD.search(text, 0, mention.start)):
        return
    quote = engine.quoted(scene, mention.start, mention.end)
    said = f"{person.word}: {person.name}" if not person.is_pet else f"{person.kind or person.word}: {person.name}"
    named = Candidate(
        slot=person.slot, value=person.name, statement=said, quote=quote, seq=scene.message.seq, n=scene.message.n
    )
    yield named
    slot = f"pet.{slot_part(person.name)}.kind"
    known = any(fact.slot == slot for fact in read.facts)
    if person.is_pet and person.kind and not (known and _GENERIC.fullmatch(person.kind)):
        yield replace(named, slot=slot, value=person.kind, statement=person.kind)


def _taken(read: _Read, candidates: Sequence[Candidate]) -> _Read:
    """The state with these candidates; a retraction takes its fact out of what is known."""
    facts = list(read.facts)
    for candidate in candidates:
        gone = candidate.slot, value_key(candidate.value), candidate.about
        if candidate.op == "retract":
            facts = [fact for fact in facts if (fact.slot, value_key(fact.value), fact.about) != gone]
        else:
            facts = [fact for fact in facts if _key(fact) != _key(candidate)] + [candidate]
    return replace(read, facts=tuple(facts), out=(*read.out, *candidates))


_ALL_THAT_FOLLOWS = re.compile(r"(?i)\b(?:between us|off the record|между нами|по секрету)\b")
_WHAT_WENT_BEFORE = re.compile(
    r"(?i)^\W*(?:please |but |и |но |пожалуйста )*(?:don.?t|do not|не) \w+ (?:that|this|it|это|его|её|ее)\b"
)


def _kept_out(scenes: Sequence[Scene]) -> frozenset[int]:
    """The sentences that the user wants kept out: those that say so, and what they point to, before or after; also
    what is called a joke right after it."""
    out: set[int] = set()
    for at, scene in enumerate(scenes):
        if at and (jokes.called_joke(scene.sentence.text) or _only_a_joke(scene)):
            out |= {at - 1, at}
        if all(reach.sense != "kept_out" for reach in scene.reaches):
            continue
        out.add(at)
        text = scene.sentence.text.rstrip(" .!")
        if text.endswith(":") or (len(text) < 40 and _ALL_THAT_FOLLOWS.search(text)):
            out.add(at + 1)
        if at and len(text) < 60 and _WHAT_WENT_BEFORE.search(text):
            out.add(at - 1)
    return frozenset(out)


def _only_a_joke(scene: Scene) -> bool:
    """Whether the sentence does nothing but call what went before it a joke."""
    words = len(scene.sentence.text.split())
    return words <= 5 and any(reach.sense == "joke" for reach in scene.reaches)


def _last_question(text: str) -> str:
    asked = [part.text for part in sentences(text[-600:]) if part.asks] if "?" in text[-600:] else []
    return asked[-1] if asked else ""


def _key(candidate: Candidate) -> tuple[str, str, str, str]:
    return (candidate.op, *key_of(candidate.about, candidate.slot, candidate.value))


def _same(one: Candidate, other: Candidate) -> bool:
    """Whether two rules have read the same thing: one key, or one value under two slots."""
    alike = (one.op, one.about, value_key(one.value)) == (other.op, other.about, value_key(other.value))
    return _key(one) == _key(other) or (alike and one.quote == other.quote)


def _as_mentions(cast: Sequence[Person]) -> list[Mention]:
    return [Mention(0, 0, person) for person in cast]


def _as_candidate(fact: Fact) -> Candidate:
    return Candidate(
        slot=fact.slot,
        value=fact.value,
        statement=fact.statement,
        about=fact.about,
        quote=fact.quote,
        seq=fact.seq,
        n=fact.n,
    )
