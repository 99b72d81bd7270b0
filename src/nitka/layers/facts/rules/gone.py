"""What is no longer so, told in other words than the fact's: "we divorced", "no dog any more", "I drink again".

One mechanism for all languages; what is said, and of which slots, is data (`gone.toml`, whose head explains its
fields). What names nothing that is known takes back nothing; facts told in the same message are let be, since they
are what is so now; of others than the user only what the sentence names them for. With an animal goes whatever is
kept under its name. What takes the place of the old ("swapped the Skoda for a Fiat", "Bim is a cat, not a dog") is kept
where the old was.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import name_key, tokens
from nitka.layers.facts.model import Candidate
from nitka.layers.facts.rules import engine, people, russian
from nitka.layers.facts.rules.engine import Scene
from nitka.layers.facts.rules.macros import expanded
from nitka.layers.facts.rules.modality import denied, senses
from nitka.layers.facts.rules.needs import Index, key_of, packaged
from nitka.layers.facts.slots import within

_BARRED = (engine.BLOCKING | {"untrue"}) - {"temporary"}
_LANGUAGES = ("en", "ru")
_CYRILLIC = re.compile("[а-яё]", re.I)
_DOING = re.compile(r"(?:(.)(?=\1))?(?:ing|ed|er|or|e)$")  # "running" and "run", "nursing" and "nurse"
_PREFIX = 5  # letters that two Russian words for one doing share at least


@dataclass(frozen=True)
class _Entry:
    """One pattern with what it may take back."""

    slots: tuple[str, ...]
    source: str
    by: str
    only: bool
    lone: bool
    barred: frozenset[str]
    values: Mapping[str, re.Pattern[str]]


@dataclass(frozen=True)
class _Alike:
    slot: str
    words: frozenset[str]
    otherwise: frozenset[str] | None


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("gone.toml").read_text("utf-8"))


def _sources(language: str, entry: dict[str, Any]) -> list[str]:
    return [expanded(pattern, language) for pattern in entry["said"]]


def patterns() -> tuple[str, ...]:
    """The patterns of all entries, with everything put in."""
    return tuple(source for name in _LANGUAGES for entry in _data()[name] for source in _sources(name, entry))


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.I)


@cache
def _entries(language: str) -> tuple[_Entry, ...]:
    return tuple(
        _Entry(
            tuple(entry["slots"]),
            source,
            entry.get("by", "name"),
            entry.get("only", False),
            entry.get("lone", False),
            _BARRED - frozenset(entry.get("allow", ())),
            {slot: re.compile(expanded(values, language), re.I) for slot, values in entry.get("values", {}).items()},
        )
        for entry in _data()[language]
        for source in _sources(language, entry)
    )


@cache
def _contrasts(language: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(expanded(pattern, language), re.I) for pattern in _data()["contrast"][language])


@cache
def _index(language: str) -> Index:
    return Index(packaged().get(key_of(entry.source), ()) for entry in _entries(language))


@cache
def _alike() -> tuple[_Alike, ...]:
    def words(text: str) -> frozenset[str]:
        return frozenset(word for part in text.split() for word in _words(part))

    return tuple(
        _Alike(row["slot"], words(row["words"]), words(row["otherwise"]) if "otherwise" in row else None)
        for row in _data()["alike"]
    )


def kinds() -> tuple[frozenset[str], ...]:
    """Words for one kind of thing, without their endings, a set for each kind."""
    return tuple(row.words for row in _alike() if row.otherwise is None)


def taken_back(scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    """Retractions of those facts, told before this message, that the sentence says are so no longer."""
    older = [fact for fact in facts if fact.n != scene.message.n and fact.op == "assert"]
    text = scene.sentence.text
    for language in engine.languages(text) if older else ():
        for entry in map(_entries(language).__getitem__, _index(language).worth(text)):
            for match in _pattern(entry.source).finditer(text):
                yield from _ended(entry, match, scene, older)


def contrasted(scene: Scene, stated: Sequence[Candidate], facts: Sequence[Candidate]) -> Iterator[Candidate]:
    """Retractions of what the sentence denies beside what it states: "allergic to figs, not nuts"."""
    slots = {(name_key(one.about), one.slot) for one in stated if one.op == "assert"}
    beside = [
        fact
        for fact in facts
        if (name_key(fact.about), fact.slot) in slots and fact.n != scene.message.n and fact.op == "assert"
    ]
    text = scene.sentence.text
    for language in engine.languages(text) if beside else ():
        for match in (m for pattern in _contrasts(language) for m in pattern.finditer(text)):
            quote = engine.quoted(scene, match.start(), match.end())
            yield from (_over(fact, quote, scene) for fact in beside if _agrees(match["v"], fact, "whole"))


def _ended(entry: _Entry, match: re.Match[str], scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    about = engine.about(match, scene) if not senses(scene.reaches, match.start()) & entry.barred else None
    if about is None:
        return
    clause = scene.sentence.clause_at(match.start())
    if entry.by == "either" and denied(scene.sentence.text[clause.start : match.start("v")]):
        return
    mine = [fact for fact in facts if name_key(fact.about) == name_key(about) and _may_end(entry, fact)]
    at, words = match.groupdict().get("at"), match.groupdict().get("v")
    if at and not any((_words(at) | _words(russian.nominative(at))) & _words(fact.value) for fact in mine):
        return
    aimed = [fact for fact in mine if words is None or _agrees(words, fact, entry.by)]
    if entry.lone and len(aimed) != 1:
        return
    quote = engine.quoted(scene, match.start(), match.end())
    new = match.groupdict().get("new")
    if new:
        yield from _replaced(aimed, match["v"], new, match.groupdict().get("at"), quote, scene)
        return
    names = {engine.slot_part(fact.slot.split(".")[1]) for fact in aimed if fact.slot.startswith("pet.")}
    names |= {engine.slot_part(fact.value) for fact in aimed if fact.slot == "pet"}
    aimed += [fact for fact in facts if _of_pet(fact, names) and fact not in aimed]
    for fact in aimed:
        yield _over(fact, quote, scene)


def _over(fact: Candidate, quote: str, scene: Scene) -> Candidate:
    return replace(fact, op="retract", statement="", quote=quote, seq=scene.message.seq, n=scene.message.n)


def _replaced(
    aimed: Sequence[Candidate], old: str, new: str, named: str | None, quote: str, scene: Scene
) -> Iterator[Candidate]:
    """The old values taken back, and the new one where the first of them was; `named`: only of somebody so called."""
    whose = engine.slot_part(named) if named else ""
    for fact in aimed:
        if whose and whose not in (engine.slot_part(fact.value), *fact.slot.split(".")[1:2]):
            continue
        yield _over(fact, quote, scene)
        renewed = _renewed(fact, old, new)
        if renewed is not None:
            yield replace(renewed, quote=quote, seq=scene.message.seq, n=scene.message.n)


def _renewed(fact: Candidate, old: str, new: str) -> Candidate | None:
    """The fact with the new in the place of the old: another slot for another relation, another word for a doing that
    was said with the old one, else another value."""
    relation = people.slot_of(new.split()[-1])
    if fact.slot.startswith(("family.", "person")):
        return replace(fact, slot=relation, statement=f"{new}: {fact.value}") if relation else None
    cyrillic = _CYRILLIC.search(new) is not None
    value = new.strip()
    if cyrillic:
        value = russian.nominative(value, prefer=("Geox", "Orgn")) if value[0].isupper() else russian.base(value)
    if within(fact.slot, "hobby") or within(fact.slot, "work.role"):
        stems = _words(old)
        words = [new if _words(word) & stems else word for word in fact.value.split()]
        value = " ".join(words) if new in words and len(words) > 1 else value
    return replace(fact, value=value, statement=fact.statement.replace(fact.value, value))


def _may_end(entry: _Entry, fact: Candidate) -> bool:
    fits = any(fact.slot == slot or (not entry.only and within(fact.slot, slot)) for slot in entry.slots)
    wanted = entry.values.get(fact.slot) if fits else None
    return fits and (wanted is None or wanted.search(fact.value) is not None)


def _of_pet(fact: Candidate, names: set[str]) -> bool:
    """Whether this is an animal's name, or what is kept under it, when the animal is gone."""
    parts = fact.slot.split(".")
    return parts[0] == "pet" and (engine.slot_part(fact.value) if len(parts) == 1 else parts[1]) in names


def _agrees(words: str, fact: Candidate, by: str) -> bool:
    """Whether these words mean the fact, by the measure of the entry."""
    said, own = _words(words), _words(fact.value)
    if not said or not own:
        return False
    doing = by in ("doing", "either") and all(any(_one_doing(word, other) for other in own) for word in said)
    if doing or by == "doing":
        return doing
    if by == "food" and fact.slot == "diet":
        return bool(said & _forbidden(fact.value))
    if by == "whole":
        return said <= own or own <= said
    relation = people.slot_of(words)
    if relation is not None:
        return fact.slot == relation
    head = _words(words.split()[-1])
    if within(fact.slot, "pet"):  # a dog bed is no dog
        return bool(head & (own | _words(" ".join(fact.slot.split(".")[1:2])))) or _one_kind(head, fact, own)
    return said <= own or own <= said or _one_kind(head, fact, own)


def _one_kind(head: set[str], fact: Candidate, own: set[str]) -> bool:
    """Whether the word is another for what the fact's value is: "собака" for "пёс", "car" for "Skoda"."""
    rows = (row for row in _alike() if within(fact.slot, row.slot) and head & row.words)
    return any(own & row.words or (row.otherwise is not None and not own & row.otherwise) for row in rows)


def _one_doing(one: str, other: str) -> bool:
    if _CYRILLIC.match(one):
        return one == other or (len(one) > _PREFIX and one[:_PREFIX] == other[:_PREFIX])
    return one == other or _DOING.sub("", one) == _DOING.sub("", other)


def _forbidden(diet: str) -> set[str]:
    rows = (row["foods"] for row in _data()["without"] if re.search(row["diet"], diet, re.I))
    return {word for foods in rows for food in foods.split() for word in _words(food)}


def _words(text: str) -> set[str]:
    """The words of a text without their endings, little words left out."""
    if not _CYRILLIC.search(text):
        return set(tokens(text))
    return {stem for word in tokens(text) for stem in tokens(russian.lemma(word))}
