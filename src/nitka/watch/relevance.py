"""Whether a message can matter at all, told from its words alone, before anything is made of it.

Most of what people say holds no word that any pattern could use. `may_matter` answers from one integer, the union of
the marks of the words: it is true whenever a pattern could be met or something said could be referred back to, and
sometimes when neither is so; never the other way round. So what it spares changes no result.

A mark stands for a concept; for a concept as a verb; for it as a verb that may be past; for a denial, a wish, a
number, one that may be an age, a word for years, a link, an idiom, a pronoun that may stand for a person, a verb whose
object may be left out, and what is remembered.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import reduce
from operator import and_

from nitka.watch.acts import AFTER, FIRST
from nitka.watch.ages import ADULT, MINOR
from nitka.watch.types import Pattern

ALWAYS, DENIAL, WISH, NUMBER, AGE, YEARS, LINK, IDIOM, PERSON, HANDOVER, KEPT = (1 << n for n in range(11))
_FIRST_FREE = 11
_YEARS = NUMBER | YEARS
_DENYING = frozenset({"NOT", "NEVER", "NONEED", "FORBIDDEN"})
_PRONOUNS = frozenset({"HE", "SHE", "THEY"})
_WISHING = frozenset({"WANT", "LET", "CAN", "MAY", "TRY", "WILL", "ASKING", "NONEED"})
_WISHED_ACTS = frozenset({"want", "invite"})
_DENIED_ACTS = frozenset({"forbid", "noneed", "refuse"})
_PAST_ACTS = frozenset({"did1", "did2"})
_PAST_FORMS = frozenset({"past", "pastp", "inf"})  # an infinitive after "and" takes the act of the verb before it
_NUMBERS = {"#number": NUMBER, "#digits": NUMBER, "#link": LINK}
_AGES = ("#minor", "#adult", "#age")

Need = tuple[tuple[int, ...], ...]  # for each group of a pattern, what each of its keys needs: all bits of one key


@dataclass(slots=True)
class Relevance:
    """Bits of concepts in their three roles, and patterns by the bit that can set them off."""

    bits: dict[tuple[str, str], int] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    by_bit: dict[int, list[tuple[int, Need]]] = field(
        default_factory=dict
    )  # with what all of its choices have in common
    always: list[Need] = field(default_factory=list)
    triggers: int = 0

    def mark(self, concept: str, form: str = "") -> int:
        """The marks that a hit leaves."""
        found = self.bits.get((concept, ""), 0)
        if form and form != "x":
            found |= self.bits.get((concept, "verb"), 0)
        if form in _PAST_FORMS:
            found |= self.bits.get((concept, "past"), 0)
        return found | _special(concept) | (KEPT if concept in self.kept else 0)

    def after(self, flags: Iterable[str]) -> int:
        """The marks of what the other side has just shown."""
        found = 0
        for flag in flags:
            found |= self.bits.get((flag, AFTER), 0)
        return found

    def may_matter(self, marks: int, person: str, thing: str) -> bool:
        """Whether a message with these marks may show a flag or leave something to refer to. `person` and `thing`
        are the concepts last mentioned, or empty.
        """
        if marks & (KEPT | IDIOM | AGE) or marks & _YEARS == _YEARS or (thing and marks & HANDOVER):
            return True
        if person and marks & PERSON:
            marks |= self.bits.get((person, ""), 0)
        marks |= ALWAYS
        left = marks & self.triggers
        while left:
            lowest = left & -left
            for wanted, need in self.by_bit[lowest]:
                if wanted & marks == wanted and _meets(need, marks):
                    return True
            left ^= lowest
        return any(_meets(need, marks) for need in self.always)


def _meets(need: Need, marks: int) -> bool:
    for group in need:
        for key in group:
            if marks & key == key:
                break
        else:
            return False
    return True


def _special(concept: str) -> int:
    if concept in _WISHING:
        return WISH | (DENIAL if concept in _DENYING else 0)
    if concept in _DENYING:
        return DENIAL
    if concept in _PRONOUNS:
        return PERSON
    if concept == "handover":
        return HANDOVER
    if concept[0] == "!":
        return IDIOM
    if concept == "YEARS":
        return YEARS
    if concept[0] == "N" and concept[1:].isdigit():
        return NUMBER | AGE if int(concept[1:]) in (*MINOR, *ADULT) else NUMBER
    return 0


def relevance(patterns: Iterable[Pattern], vetoes: Iterable[str], kept: Iterable[str]) -> Relevance:
    """What the words must be marked with for these patterns. `vetoes` are keys that matter by themselves, `kept` the
    concepts that memory keeps as mentioned.
    """
    made = Relevance(kept=frozenset(kept))
    for groups in (*(p.groups for p in patterns), *(((key,),) for key in sorted(vetoes))):
        need = tuple(tuple(_need(made.bits, key) for key in group) for group in groups)
        choice = min((g for g in need if ALWAYS not in g), key=len, default=None)
        if choice is None:
            made.always.append(need)
            continue
        for key in choice:
            lowest = key & -key if key < 1 << _FIRST_FREE else _own_bit(key)
            made.by_bit.setdefault(lowest, []).append((_common(need), need))
            made.triggers |= lowest
    return made


def _common(need: Need) -> int:
    """The bits that are needed whichever key of each group is there: a quick no."""
    whole = 0
    for group in need:
        whole |= reduce(and_, group)
    return whole


def _own_bit(key: int) -> int:
    """The bit of the concept, which every key has beside the general ones."""
    return key >> _FIRST_FREE << _FIRST_FREE


def _need(bits: dict[tuple[str, str], int], key: str) -> int:
    if key[0] == "#":
        return AGE if key.startswith(_AGES) else _NUMBERS.get(key, ALWAYS)
    act, colon, concept = key.partition(":")
    if not colon:
        return _bit(bits, key, "")
    if act in (AFTER, FIRST):
        return _bit(bits, concept, AFTER if act == AFTER else "")
    if act in _PAST_ACTS:
        return _bit(bits, concept, "past")
    return _bit(bits, concept, "verb") | (DENIAL if act in _DENIED_ACTS else WISH if act in _WISHED_ACTS else 0)


def _bit(bits: dict[tuple[str, str], int], concept: str, role: str) -> int:
    return bits.setdefault((concept, role), 1 << _FIRST_FREE + len(bits))
