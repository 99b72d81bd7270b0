"""Runs the rules over one message: where a pattern matches, in what sense it is said, of whom, and what value it gives.

A rule is data (`en.toml`, `ru.toml`): `slot`, `when` (patterns with a group `v`), `as` (see `shape`), `say` (the
statement, a predicate without its subject), and optionally

* `allow`  senses of `cues.toml` that the rule can live with (question, hypothetical, past, temporary, joke, reported)
* `denied` what a negation makes of it: "drop" (default), "retract", "keep", "told" (kept where the value itself tells
  the negation), or another slot ("dislikes.food")
* `op`     "retract" for rules that take something back
* `value`  what it says whatever its words are: "tied the knot" is "married"
* `who`    "self": only the user, whatever the grammar; "other": never the user
* `whole`  the pattern is matched against the whole message, not sentence by sentence
* `also`   it may use words that another rule has used
* `known`  it only changes what is known: without a fact in its slot it says nothing
* `near`   and only where that was said in the last few rows
* `form`   it reads a field of a form, so that the lines around it must be the user's own as well
* `free`   its verb has no person, so that any subject before it in the clause counts, known or not
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cache, cached_property
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import name_key
from nitka.layers.facts.model import USER, Candidate
from nitka.layers.facts.rules import people, russian, speakers
from nitka.layers.facts.rules.macros import expanded
from nitka.layers.facts.rules.modality import Reach, denied, ended, reaches, senses
from nitka.layers.facts.rules.needs import Index, Needs, key_of, packaged
from nitka.layers.facts.rules.people import Mention, Person
from nitka.layers.facts.rules.shape import shape
from nitka.layers.facts.rules.strangers import strangers
from nitka.layers.facts.rules.text import SENTENCE_CHARS, Sentence
from nitka.types import Message

BLOCKING = frozenset(
    ("question", "request", "hypothetical", "tentative", "past", "temporary", "joke", "reported", "kept_out")
)
_SELF = re.compile(r"(?i)(?:i|we|i'?m|me|us|my|our|я|мы|мне|нам|у меня|у нас|меня|нас|мной|со мной)")
_SUBJECTS = re.compile(
    r"(?i)(?<![\w’'])(?P<self>i|we|im|я|мы|мне|нам|меня|нас)(?:(?![\w])|(?=['’]))|(?<![\w’'])(?P<you>you|ты|вы)(?![\w])|(?<![\w’'])(?P<third>he|she|hes|shes|он|она|ему|ей|него|неё|нее|нему|ней)(?!\w)"
)


@dataclass(frozen=True, slots=True)
class Rule:
    slot: str
    source: str  # of its pattern, with everything put in
    needs: Needs
    kind: str
    say: str
    allow: frozenset[str] = frozenset()
    denied: str = "drop"
    op: str = "assert"
    value: str = ""
    who: str = ""
    whole: bool = False
    also: bool = False
    free: bool = False
    known: bool = False
    near: bool = False
    form: bool = False


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.I)


@dataclass(frozen=True)
class Scene:
    """A sentence with everything that is known about it."""

    message: Message
    sentence: Sentence
    mentions: tuple[Mention, ...]
    cast: tuple[Person, ...]  # everybody named up to and including this sentence
    grouped: bool  # children have just been spoken of
    today: date

    @cached_property
    def reaches(self) -> tuple[Reach, ...]:
        return reaches(self.sentence)


@cache
def rules(language: str) -> tuple[Rule, ...]:
    """The rules of a language, in their order: of two that use the same words the earlier wins."""
    table = tomllib.loads(files(__package__).joinpath(f"{language}.toml").read_text("utf-8"))
    return tuple(_rule(entry, pattern, language) for entry in table["rule"] for pattern in entry["when"])


@cache
def _reading(language: str, whole: bool) -> tuple[tuple[Rule, ...], Index]:
    """The rules that read a whole message, or those that read a sentence, with their index."""
    reading = tuple(rule for rule in rules(language) if rule.whole is whole)
    return reading, Index(rule.needs for rule in reading)


def patterns(language: str) -> tuple[str, ...]:
    """The patterns of a language's rules, with everything put in."""
    return tuple(rule.source for rule in rules(language))


def _rule(entry: dict[str, Any], pattern: str, language: str) -> Rule:
    source = expanded(pattern, language)
    return Rule(
        slot=entry["slot"],
        source=source,
        needs=packaged().get(key_of(source), ()),
        kind=entry.get("as", "thing"),
        say=entry.get("say", "{v}"),
        allow=frozenset(entry.get("allow", ())),
        denied=entry.get("denied", "drop"),
        op=entry.get("op", "assert"),
        value=entry.get("value", ""),
        who=entry.get("who", ""),
        whole=entry.get("whole", False),
        also=entry.get("also", False),
        free=entry.get("free", False),
        known=entry.get("known", False),
        near=entry.get("near", False),
        form=entry.get("form", False),
    )


def found(scene: Scene, *, whole: bool) -> Iterator[tuple[Rule, Candidate, tuple[int, int]]]:
    """What the rules find in the scene, with the span of the value in the sentence."""
    text = scene.sentence.text
    for language in languages(text):
        reading, index = _reading(language, whole)
        for rule in map(reading.__getitem__, index.worth(text)):
            for match in _pattern(rule.source).finditer(text):
                if rule.form and not speakers.own_form(scene.message.text, scene.sentence.start):
                    break
                for candidate in _candidates(rule, match, scene):
                    yield rule, candidate, _span(candidate.value, match)


def _span(value: str, match: re.Match[str]) -> tuple[int, int]:
    """Where the value stands; the whole group where it was put in other words."""
    at = match["v"].find(value)
    return match.span("v") if at < 0 else (match.start("v") + at, match.start("v") + at + len(value))


def quoted(scene: Scene, start: int, end: int) -> str:
    """The clauses around these places, in the user's own words."""
    clauses = [clause for clause in scene.sentence.clauses if clause.start < end and clause.end > start]
    first = min((clause.start for clause in clauses), default=start) + scene.sentence.start
    last = max((clause.end for clause in clauses), default=end) + scene.sentence.start
    return scene.message.text[first:last].strip(" \t\n,;:—–-")


def languages(text: str) -> list[str]:
    """Those whose letters are in the text."""
    return [name for name, letters in (("en", "[a-zA-Z]{2}"), ("ru", "[а-яА-ЯёЁ]")) if re.search(letters, text)]


def _candidates(rule: Rule, match: re.Match[str], scene: Scene) -> Iterator[Candidate]:
    lead = re.match(r"[^\w«\"“]*", match.group())
    start, at = match.start() + (lead.end() if lead else 0), match.start("v")
    sense = senses(scene.reaches, start) | senses(scene.reaches, at)
    if sense & (BLOCKING - rule.allow):
        return
    outcome = _outcome(rule, match, scene, untrue="untrue" in sense)
    person = _who(rule, match, scene) if outcome else None
    if outcome is None or person is None:
        return
    op, slot = outcome
    if "untrue" in sense:  # whatever a denial says then, it is not taken for a statement
        if op == "retract":
            return
        op = "retract"
    groups = {name: (words or "").casefold() for name, words in match.groupdict().items()}
    about, slot = _placed(person, slot.format(**groups))
    fixed = [(rule.value, rule.value)] if rule.value else None
    for value, seen in fixed or shape(rule.kind, match["v"], scene.today):
        yield Candidate(
            op="retract" if op == "retract" else "assert",
            slot=slot,
            value=value,
            statement=_said(rule, scene, match, outcome).format(**groups | {"v": seen}),
            about=about,
            quote=quoted(scene, start, match.end()),
            seq=scene.message.seq,
            n=scene.message.n,
        )


def _said(rule: Rule, scene: Scene, match: re.Match[str], outcome: tuple[str, str]) -> str:
    """The statement; its contrary where the words deny it into another slot."""
    if outcome[1] == rule.slot:
        return rule.say
    over = ended(f"{match.group()} {scene.sentence.text[match.end() : match.end() + 20]}")
    if re.search("[а-яё]", rule.say):
        return "больше не " + rule.say if over else "не " + rule.say
    return ("no longer " if over else "does not ") + (rule.say if over else re.sub(r"^(\w+)s\b", r"\1", rule.say))


def _outcome(rule: Rule, match: re.Match[str], scene: Scene, *, untrue: bool = False) -> tuple[str, str] | None:
    """What to do and in which slot, given the negations around; None to leave it. Of what is called untrue only the
    match's own words can deny anything: the words around it are those that call it so."""
    if rule.denied == "keep" or rule.op == "retract":
        return rule.op, rule.slot
    text, clause = scene.sentence.text, scene.sentence.clause_at(match.start("v"))
    if rule.denied == "told":
        around = f"{text[clause.start : match.start('v')]} | {text[match.end('v') : clause.end]}"
        return None if denied(around) and not denied(match["v"]) else (rule.op, rule.slot)
    before = text[match.start() if untrue else min(clause.start, match.start()) : match.start("v")]
    after = re.split(r"[,.;:!?)(—–]", text[match.end("v") : match.end("v") + 30], maxsplit=1)[0]
    no = denied(before)
    over = ended(f"{before} {after}")
    if not no and not over:
        return rule.op, rule.slot
    inside = denied(match.group()[: match.start("v") - match.start()]) or over
    if rule.denied == "drop" or not inside:
        return None
    return ("retract", rule.slot) if rule.denied == "retract" else ("assert", rule.denied)


_ME = Person(USER, "", "")
_YOU = Person("", "", "")  # the assistant: nothing is kept about it


def _who(rule: Rule, match: re.Match[str], scene: Scene) -> Person | None:
    """The one of whom it is said; `_ME` for the user, None when it cannot be known."""
    groups = match.groupdict()
    person = _said_of(groups, match, scene) if rule.who != "self" else _ME
    clause = scene.sentence.clause_at(match.start())
    if rule.who == "self" and strangers(scene.sentence.text[clause.start : match.start()], match.group()):
        return None
    if person is _YOU:
        return None
    if (rule.who == "other" or (rule.free and _has_subject(match, scene))) and person is _ME:
        return None
    return person


def about(match: re.Match[str], scene: Scene) -> str | None:
    """Of whom a match outside the rules is said, by its groups `me`, `o`, `s`; a verb without a person, of the user
    where no other subject stands before it. None when it cannot be known, and for animals."""
    groups = match.groupdict()
    if groups.get("me") is not None:
        return USER
    if not any(groups.get(name) for name in ("o", "s")):
        return None if _has_subject(match, scene) or _concerns(match, scene) else USER
    person = _said_of(groups, match, scene)
    return None if person is None or person is _YOU or person.is_pet else person.label


def _concerns(match: re.Match[str], scene: Scene) -> bool:
    """Whether a person, in whatever case, stands before what is spoken of in its clause: "жене снова можно"."""
    clause, at = scene.sentence.clause_at(match.start()), match.start("v") if "v" in match.re.groupindex else -1
    return any(clause.start <= one.start <= at and not one.person.is_pet for one in scene.mentions)


def _has_subject(match: re.Match[str], scene: Scene) -> bool:
    """Whether somebody or something else, unknown to us, stands as the subject before these words in their clause."""
    clause = scene.sentence.clause_at(match.start())
    before = scene.sentence.text[clause.start : match.start()]
    if any(found["self"] for found in _SUBJECTS.finditer(before)):
        return False
    english = re.findall(r"[a-zA-Z’']+", before)
    others = [word for word in re.findall(r"[А-Яа-яёЁ-]+", before) if russian.is_a(word, "NOUN", "nomn")]
    return bool(others) or any(word.casefold() not in _NO_SUBJECT for word in english)


_NO_SUBJECT = frozenset(
    "and but so then when since after just finally recently actually also have has ve i'd originally now last month "
    "year week first then hi hello "
    "hey oh well ok yes we've i've we i".split()
)


def _said_of(groups: dict[str, str | None], match: re.Match[str], scene: Scene) -> Person | None:
    if groups.get("me"):
        return _ME
    for name in ("s", "o"):
        words = groups.get(name)
        if words:
            return _named(words, match.span(name), scene)
    third, elided = bool(groups.get("other")), "s" in groups
    nearest = _nearest(scene, match.start(), third=third)
    strange = nearest is None and (strangers(scene.sentence.text[: match.start()]) or _carried(scene))
    return nearest or (None if third or elided or strange else _ME)


def _carried(scene: Scene) -> bool:
    """Whether the sentences before speak of somebody else last, so that words without a subject may be of them."""
    before = scene.message.text[: scene.sentence.start]
    if not before.strip() or _SUBJECTS.search(scene.sentence.text):
        return False
    before = before[-SENTENCE_CHARS:]
    others = [m.start for m in people.mentions(Sentence(before, 0), ()) if m.subject]
    own = [found.start() for found in _SUBJECTS.finditer(before) if found["self"]]
    return bool(others) and (not own or max(own) < max(others)) and "\n" not in before[max(others) :]


def _named(words: str, span: tuple[int, int], scene: Scene) -> Person | None:
    if _SELF.fullmatch(words.strip()):
        return _ME
    if people.is_pronoun(words.strip()):
        return _meant(words.strip(), span[0], scene)
    inside = [m for m in scene.mentions if m.start < span[1] and m.end > span[0]]
    if inside:
        return inside[0].person
    name = re.sub(r"['’]s$", "", words.split(",")[0])
    if scene.grouped and re.fullmatch(r"[A-ZА-ЯЁ][^\W\d_]+", name):
        return Person(name, "child" if name[0] < "Ѐ" else "ребёнок", "family.child")
    return None


def _meant(pronoun: str, place: int, scene: Scene) -> Person | None:
    """Whom a pronoun means: somebody earlier in the sentence, else the last one named before it."""
    here = [mention.person for mention in scene.mentions if mention.start < place]
    return people.meant(pronoun, here, near=True) or people.meant(pronoun, scene.cast)


def _nearest(scene: Scene, place: int, *, third: bool) -> Person | None:
    """The subject that words without one inherit: the nearest before them in the sentence."""
    marks: list[tuple[int, Person | None]] = []
    for match in _SUBJECTS.finditer(scene.sentence.text, 0, place):
        third_person = match["third"] and _meant(match["third"], match.start(), scene)
        marks.append((match.start(), _ME if match["self"] else _YOU if match["you"] else third_person or None))
    marks += [(mention.start, mention.person) for mention in scene.mentions if mention.end <= place]
    fitting = [(at, person) for at, person in marks if person is not None and not (third and person is _ME)]
    return max(fitting, key=lambda mark: mark[0])[1] if fitting else None


def _placed(person: Person, slot: str) -> tuple[str, str]:
    """About whom and in which slot: what concerns an animal is kept with the user, under the animal's name."""
    if person is _ME:
        return USER, slot
    if person.is_pet:
        head = "avoids" if slot.split(".")[0] in ("allergy", "diet") else slot.split(".")[0]
        return USER, f"pet.{slot_part(person.label)}.{head}"
    return person.label, slot


def slot_part(name: str) -> str:
    """A name as a part of a slot."""
    return re.sub(r"[^\w' -]", "", name_key(name)).replace("_", "")
