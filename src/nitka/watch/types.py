"""The frozen values of the watch. Offsets are code points of the message unless a name says otherwise; severities are
the four words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

SEVERITIES = ("low", "medium", "high", "extreme")
LIVES: Mapping[str, int] = {"P": 1 << 30, "L": 200, "M": 60, "S": 15}  # in messages, from the last sighting
AGE_CAP = 255  # an age is counted up to here and then stands still
BITS: Mapping[str, int] = {"P": 8, "L": 8, "M": 6, "S": 4}  # that an age of each life takes in a memory
ROLES = ("", "adult", "minor", "guardian", "staff", "assistant", "system")
SPEAKERS = 8  # told apart in one memory
WEAK, NORMAL, STRONG = (
    1,
    2,
    3,
)  # how much a sighting says: an everyday wording, the usual, one that nobody says by chance
MARKS_OF_STRENGTH: Mapping[str, int] = {"?": WEAK, "=": NORMAL, "!": STRONG}  # as rules and lexicons write it
THIN, THIN_MARK = 0, "~"  # of a phrase in which hardly a word tells anything: only others of its flag make it normal


@dataclass(frozen=True, slots=True)
class FlagKind:
    """One kind of flag: its fixed number, group, life (a key of `LIVES`) and who sets it (A actor, T target, X
    anybody, R the actor, of what the other side is to them).
    """

    id: str
    number: int
    group: str
    life: str
    set_by: str
    words: Mapping[str, tuple[str, str]]  # language -> (past, now): "asked where ...", "asks where ..."
    alone: str = ""  # type of the finding it makes in its own message, empty for none
    strength: int = NORMAL  # of sightings whose pattern or idiom states none
    examples: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


class Kinds(dict[str, FlagKind]):
    """The flags of a rule set by id, with what is looked up all the time: `widths`, the bits of an age, by number;
    by id the number, and `limits` (life, highest age).
    """

    def __init__(self, kinds: Mapping[str, FlagKind]) -> None:
        super().__init__(kinds)
        self.widths = {kind.number: BITS[kind.life] for kind in kinds.values()}
        self.numbers = {flag: kind.number for flag, kind in kinds.items()}
        self.limits = {
            flag: (LIVES[kind.life], min(AGE_CAP, (1 << BITS[kind.life]) - 1)) for flag, kind in kinds.items()
        }
        self.set_by = {flag: kind.set_by for flag, kind in kinds.items()}
        self.strength = {flag: kind.strength for flag, kind in kinds.items()}


class Sighting(NamedTuple):
    """A flag seen in this message. `order` is its position among the message's tokens, `strength` how much the wording
    says.
    """

    flag: str
    start: int
    end: int
    sentence: int
    order: int
    strength: int = NORMAL


class Span(NamedTuple):
    """Ages, in messages, of the first and the last sighting; the message being read is 0. `first >= last` always.
    `strength` is that of the strongest of late.
    """

    first: int
    last: int
    strength: int = NORMAL


class Speaker(NamedTuple):
    """What the caller said of a speaker, under a hashed id. `age` is "", "adult" or "minor"; `role` one of `ROLES`."""

    tag: str
    age: str = ""
    role: str = ""


@dataclass(frozen=True, slots=True)
class Formula:
    """Groups of flags, one of each to be seen; `order` are pairs (i, j): some flag of group i before some flag of
    group j.
    """

    groups: tuple[frozenset[str], ...] = ()
    order: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class When:
    """Another severity: if `formula` holds, if all is within so many messages, if a group is met by nothing but flags
    in `only`.
    """

    severity: str
    formula: Formula = Formula()
    within: int = 0
    only: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Rule:
    """One combination. `speaker` is same or any; `within` is the most messages between its parts (0: as long as the
    flags live).
    """

    id: str
    number: int
    formula: Formula
    type: str
    tags: tuple[str, ...]
    severity: str
    speaker: str = "any"
    suppress: frozenset[str] = frozenset()
    within: int = 0
    same_message: bool = False
    requires: Formula = Formula()
    severity_if: tuple[When, ...] = ()
    minors: bool = True  # a known minor raises the severity one step
    adults: bool = False  # two adults lower it one step, two known adults switch it off
    peers: bool = False  # silent between two minors
    needs_role: str = ""  # runs only when a speaker has this role
    flags: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Pattern:
    """What makes a flag in one clause (or, `wide`, one sentence): one key of each group present, none of `never`."""

    flag: str
    groups: tuple[tuple[str, ...], ...]
    never: tuple[str, ...]
    wide: bool = False
    strength: int = NORMAL


@dataclass(frozen=True, slots=True)
class Evidence:
    """One flag behind an alert; `speaker` is the id as given for the present speaker, `#` and a hash for another, ""
    when unknown.
    """

    flag: str
    messages_ago: int
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A combination completed by this message. The offsets point at the completing words."""

    rule: str
    type: str
    severity: str
    tags: tuple[str, ...]
    start: int
    end: int
    sentence: int
    speaker: str
    evidence: tuple[Evidence, ...]
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Entity:
    """Something named in the message. `type` may have several values; `value` is a normal form where there is one."""

    type: tuple[str, ...]
    start: int
    end: int
    name: str
    subtypes: tuple[str, ...] = ()
    value: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """A remark about this message alone (no rule behind it)."""

    type: str
    severity: str
    tags: tuple[str, ...]
    start: int
    end: int
    flag: str = ""


JSON = Mapping[str, Any]
