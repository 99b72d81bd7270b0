"""What is no longer so, in other words than the fact's: "we divorced", "no dog any more", "forget where I live".

An entry of `gone.toml` names the slots it may touch. Facts told in the same message are let be, since they are what is
so now; of others than the user only what the sentence names them for.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import name_key, tokens
from nitka.layers.facts.model import Candidate
from nitka.layers.facts.rules import engine, people, russian
from nitka.layers.facts.rules.engine import Scene
from nitka.layers.facts.rules.macros import expanded
from nitka.layers.facts.rules.modality import senses
from nitka.layers.facts.rules.needs import ODD, Needs, key_of, packaged
from nitka.layers.facts.slots import within

_BARRED = frozenset(("question", "request", "hypothetical", "tentative", "past", "joke", "untrue", "kept_out"))


@dataclass(frozen=True)
class _Entry:
    slots: tuple[str, ...]
    said: tuple[tuple[str, Needs], ...]  # patterns, and what a text must hold for them to match
    whole: bool = False
    only: bool = False  # these slots themselves, not those below them


@cache
def _data() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(files(__package__).joinpath("gone.toml").read_text("utf-8"))


def _sources(language: str, entry: dict[str, Any]) -> list[str]:
    return [expanded(pattern, language) for pattern in entry["said"]]


def patterns() -> tuple[str, ...]:
    """The patterns of all entries, with everything put in."""
    return tuple(source for name, entries in _data().items() for entry in entries for source in _sources(name, entry))


@cache
def _pattern(source: str) -> re.Pattern[str]:
    return re.compile(source, re.I)


@cache
def _entries() -> tuple[_Entry, ...]:
    return tuple(
        _Entry(
            tuple(entry["slots"]),
            tuple((source, packaged().get(key_of(source), ())) for source in _sources(language, entry)),
            entry.get("whole", False),
            entry.get("only", False),
        )
        for language, entries in _data().items()
        for entry in entries
    )


def taken_back(scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    """Retractions of those facts, told before this message, that the sentence says are so no longer."""
    older = [fact for fact in facts if fact.n != scene.message.n and fact.op == "assert"]
    if not older:
        return
    text = scene.sentence.text
    lower = text.lower()
    for entry in _entries():
        for source, needs in entry.said:
            if needs and not ODD.intersection(text) and not any(need in lower for need in needs):
                continue
            for match in _pattern(source).finditer(text):
                yield from _ended(entry, match, scene, older)


def _ended(entry: _Entry, match: re.Match[str], scene: Scene, facts: Sequence[Candidate]) -> Iterator[Candidate]:
    about = engine.about(match, scene) if not senses(scene.reaches, match.start()) & _BARRED else None
    if about is None:
        return
    mine = [
        fact
        for fact in facts
        if name_key(fact.about) == name_key(about)
        and any(fact.slot == slot or (not entry.only and within(fact.slot, slot)) for slot in entry.slots)
    ]
    at = match.groupdict().get("at")
    if at and not any((_words(at) | _words(russian.nominative(at))) & _words(fact.value) for fact in mine):
        return
    words = match.groupdict().get("v")
    aimed = [fact for fact in mine if words is None or _agrees(words, fact, whole=entry.whole)]
    names = {engine.slot_part(fact.slot.split(".")[1]) for fact in aimed if fact.slot.startswith("pet.")}
    aimed += [fact for fact in mine if _of_pet(fact, names) and fact not in aimed]
    quote = engine.quoted(scene, match.start(), match.end())
    for fact in aimed:
        yield replace(fact, op="retract", statement="", quote=quote, seq=scene.message.seq, n=scene.message.n)


def _of_pet(fact: Candidate, names: set[str]) -> bool:
    """Whether this is an animal's name, or what is kept under it, when the animal is gone."""
    parts = fact.slot.split(".")
    return parts[0] == "pet" and (engine.slot_part(fact.value) if len(parts) == 1 else parts[1]) in names


def _agrees(words: str, fact: Candidate, *, whole: bool) -> bool:
    """Whether these words name the fact: they are among its own, or it among them; or they say the relation."""
    said = _words(words)
    if whole:
        own = _words(fact.value)
        return bool(said and own) and (said <= own or own <= said)
    relation = people.slot_of(words)
    if relation is not None:
        return fact.slot == relation
    own = _words(fact.value) | (_words(fact.slot.split(".")[1]) if fact.slot.startswith("pet.") else set())
    return bool(said and own) and (said <= own or _words(fact.value) <= said)


def _words(text: str) -> set[str]:
    """The words of a text without their endings, little words left out."""
    return (
        {stem for word in tokens(text) for stem in tokens(russian.lemma(word))}
        if not _LATIN.search(text)
        else set(tokens(text))
    )


_LATIN = re.compile("[a-zA-Z]")
