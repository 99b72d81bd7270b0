"""What a forgotten fact leaves behind, so that no earlier message teaches it again: a hash and a number.

A note covers a value, whatever a slot holds, or all about a named other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from nitka.layers.facts import Candidate, Fact, is_many
from nitka.layers.facts.canon import name_key, value_key
from nitka.types import Tag
from nitka.vault.seal import TagKey

NOTES = TagKey(b"nitka: notes of forgotten facts")


class Note(NamedTuple):
    """What a forgotten fact leaves: no row before `n` teaches it again. The tag is a hash and lies sealed; it is the
    same for everybody, so that it can go along when a visitor becomes a user.
    """

    tag: Tag
    n: int


def forgets(notes: Sequence[Note]) -> Callable[[Candidate], bool]:
    """Whether a proposal would teach again what was forgotten."""
    until: dict[Tag, int] = {}
    for note in notes:
        until[note.tag] = max(note.n, until.get(note.tag, 0))

    def covered(candidate: Candidate) -> bool:
        tags = _note_tags(candidate.about, candidate.slot, candidate.value) if until else ()
        return any(candidate.n < until.get(tag, 0) for tag in tags)

    return covered


def _note_tags(about: str, slot: str, value: str) -> tuple[Tag, Tag, Tag]:
    who, where, what = _as_bytes(name_key(about)), _as_bytes(slot), _as_bytes(value_key(value))
    tag = NOTES.tag
    return tag(b"about", who), tag(b"slot", who, where), tag(b"value", who, where, what)


def note_on(fact: Fact, n: int) -> Note:
    """The note of a forgotten fact: on the value where its slot holds many, else on whatever the slot holds."""
    _, slot, value = _note_tags(fact.about, fact.slot, fact.value)
    return Note(value if is_many(fact.slot) else slot, n)


def note_on_person(about: str, n: int) -> Note:
    """The note that keeps everything about a named other away."""
    return Note(_note_tags(about, "", "")[0], n)


def _as_bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def mentions(fact: Fact, name: str) -> bool:
    """Whether a fact is about a named other, or names nobody else than him as its value."""
    return name_key(fact.about) == name_key(name) or name_key(fact.value) == name_key(name)
