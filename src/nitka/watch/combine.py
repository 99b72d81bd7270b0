"""Combinations of flags into alerts. Knows no language and no text: only which flag was seen when, and by whom.

Who says it decides. A suppressor put in by the caller or said by the other side silences; said by the side it
protects, it lowers the severity one step, and only if it comes after everything the rule rests on. A weak one by the
other side does nothing. An unknown speaker
equals every speaker. At least one flag of a rule must be in this message. When order within an earlier message
decides, it is taken as given: memory keeps messages, not positions.

How much is said decides too. A sighting is weak where the words are innocent alone, strong where nobody says them by
chance. Two parts bear the rule's own severity if one of them is strong and none weak, three if none is weak; a strong
part makes up for a weak one. Two weak parts are low, all else is at most medium. Other flags of the same kind that the
same person showed of late lift it one step.

In long everyday talk any two themes meet, so where a doubt is left four things are asked. Direction: what one person
does to another is done by one of them; parts that come from both sides anyhow are low, even in a rule that takes them
from anybody. One-sidedness: an innocent wording that both sides have used (both propose to meet, both tell of their
work) is talk and does not count as a part. Words of its own: a part that rests on the words of another does not count
either. Nearness: parts that are all weak belong to each other only within a few
messages, and a weak one to another within some dozens.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from nitka.watch.formula import CONDITIONS
from nitka.watch.types import NORMAL, SEVERITIES, WEAK, Formula, Kinds, Rule, Sighting, Span, Speaker

UNKNOWN, CALLER = "", "!"  # speakers without a name: nobody knows; the caller put the flag in
MINOR_FLAGS = ("minor_self_age", "minor_school_cue")
Seen = Mapping[str, Mapping[str, Span]]  # flag -> speaker -> ages


@dataclass(frozen=True, slots=True)
class Scene:
    """What the rules look at: all flags alive, this message's sightings, who speaks now, what the caller said of
    whom.
    """

    seen: Seen
    now: Mapping[str, tuple[Sighting, Sighting]]  # flag -> first and last sighting in this message
    speaker: str
    known: Mapping[str, Speaker]
    kinds: Kinds


@dataclass(frozen=True, slots=True)
class Part:
    """One group met: by which flag, whose, and when."""

    flag: str
    speaker: str
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    rule: Rule
    severity: str
    actor: str
    parts: tuple[Part, ...]
    place: Sighting


def matches(rules: Iterable[Rule], scene: Scene) -> Iterator[Match]:
    """Every rule that holds now and has a flag in this message, with the severity it has now."""
    for rule in rules:
        best: Match | None = None
        for actor in _actors(rule, scene):
            found = _match(rule, scene, actor)
            if found and (best is None or _rank(found.severity) > _rank(best.severity)):
                best = found
        if best:
            yield best


NEAR = 8
"""Messages. What lies further apart may belong to nothing: in long ordinary talk any two themes meet by chance. Such an
alert is still raised, at most as medium.
"""


BESIDE, _BESIDE = 12, 2
"""Messages within which other flags of the kind are counted, and how much they must say together to lift a step. One of
them at least must be more than weak: a crowd of innocent words is what everyday talk is made of.
"""
LOOSE = 60  # messages within which a weak part may still belong to one that is not,
TWO_WEAK, MORE_WEAK = 16, 24  # and weak ones to each other: a story may have five harmless messages between its turns
_PAIR = 2  # groups; more of them say something together though each is weak
_KINDS = (frozenset({"context", "rapport", "pressure", "channel"}), frozenset({"pretext", "control", "extract"}))


def doings(kinds: Kinds) -> list[str]:
    """The flags of what the acting side does: all that a rule's kinds know, but what the other side shows."""
    mine = frozenset().union(*_KINDS)
    return [flag for flag, kind in kinds.items() if kind.group in mine and kind.set_by == "A"]


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity)


def _actors(rule: Rule, scene: Scene) -> list[str]:
    """Who may be behind the rule: the present speaker first, then the others who did any of it; nobody in particular
    last.
    """
    if not rule.flags & scene.now.keys():
        return []
    if rule.speaker == "any":
        return [_suspect(rule, scene)]
    others = {s for f in rule.flags for s in scene.seen.get(f, ()) if s not in (UNKNOWN, CALLER, scene.speaker)}
    return list(dict.fromkeys([scene.speaker, *sorted(others)]))


def _suspect(rule: Rule, scene: Scene) -> str:
    """In a rule for any speaker: whose flag of the actor's kind is the latest."""
    latest = [
        (span.last, who != scene.speaker, who)
        for flag in rule.flags
        if scene.kinds.set_by.get(flag) == "A"
        for who, span in scene.seen.get(flag, {}).items()
        if who != CALLER
    ]
    return min(latest)[2] if latest else scene.speaker


def _match(rule: Rule, scene: Scene, actor: str) -> Match | None:
    parts = _meet(rule.formula, rule, scene, actor)
    if parts is None or not _holds(rule.requires, scene, actor):
        return None
    here = [scene.now[p.flag][1] for p in parts if p.span.last == 0 and p.flag in scene.now]
    if not here or (rule.same_message and any(p.span.last for p in parts)):
        return None
    severity = _severity(rule, scene, actor, parts)
    return Match(rule, severity, actor, parts, max(here, key=lambda s: s.order)) if severity else None


def _meet(formula: Formula, rule: Rule, scene: Scene, actor: str) -> tuple[Part, ...] | None:
    """One part for each group, in the required order, or None."""
    lefts = {i for i, _ in formula.order}
    parts = []
    for index, group in enumerate(formula.groups):
        choices = list(_choices(group, rule, scene, actor))
        if not choices:
            return None
        parts.append(max(choices, key=_oldest(scene)) if index in lefts else min(choices, key=_newest(scene)))
    for left, right in formula.order:
        if not _before(parts[left], parts[right], scene):
            return None
    return tuple(parts)


def _choices(group: frozenset[str], rule: Rule, scene: Scene, actor: str) -> Iterator[Part]:
    for flag in sorted(group):
        for who, span in scene.seen.get(flag, {}).items():
            if (not rule.within or span.last <= rule.within) and _fits(
                rule, scene.kinds.set_by.get(flag, "A"), who, actor
            ):
                yield Part(flag, who, span)


def _fits(rule: Rule, set_by: str, who: str, actor: str) -> bool:
    return rule.speaker == "any" or _is_theirs(set_by, who, actor)


def _is_theirs(set_by: str, who: str, actor: str) -> bool:
    """Whether a flag comes from the side that it should: the target's from another than the actor, all else from
    them.
    """
    if who in (UNKNOWN, CALLER) or actor == UNKNOWN:
        return True
    return who != actor if set_by == "T" else who == actor


def _oldest(scene: Scene):  # type: ignore[no-untyped-def]
    return lambda p: (p.span.first, -_position(scene, p, 0), p.flag)


def _newest(scene: Scene):  # type: ignore[no-untyped-def]
    return lambda p: (p.span.last, -_position(scene, p, 1), p.flag)


def _position(scene: Scene, part: Part, end: int) -> int:
    here = scene.now.get(part.flag)
    return here[end].order if here and (part.span.first, part.span.last)[end] == 0 else 0


def _before(left: Part, right: Part, scene: Scene) -> bool:
    if left.span.first != right.span.last:
        return left.span.first > right.span.last
    return left.span.first > 0 or _position(scene, left, 0) < _position(scene, right, 1)


def _holds(formula: Formula, scene: Scene, actor: str) -> bool:
    """Whether each group is seen at all, by anybody, or is a condition that holds."""
    return all(
        any(_condition(n, scene, actor) if n in CONDITIONS else n in scene.seen for n in g) for g in formula.groups
    )


def _condition(name: str, scene: Scene, actor: str) -> bool:
    if name == "@minor":
        return _minor(scene, actor)
    if name == "@adults":
        return _adults(scene, actor)
    return not _minor(scene, actor) and not any(_adult(scene, who) for who in _people(scene) if who != actor)


# Ages.


def _people(scene: Scene) -> set[str]:
    return {s for spans in scene.seen.values() for s in spans if s not in (UNKNOWN, CALLER)} | scene.known.keys()


def _said(scene: Scene, flags: Iterable[str], who: str) -> bool:
    return any(who in scene.seen.get(flag, ()) for flag in flags)


def _is_minor(scene: Scene, who: str) -> bool:
    known = scene.known.get(who)
    return _said(scene, MINOR_FLAGS, who) or (known is not None and (known.age == "minor" or known.role == "minor"))


def _minor(scene: Scene, actor: str) -> bool:
    """A minor is on the other side, or nobody knows on which."""
    if any(_said(scene, MINOR_FLAGS, nobody) for nobody in (UNKNOWN, CALLER)):
        return True
    return any(_is_minor(scene, who) for who in _people(scene) if who != actor or actor == UNKNOWN)


def _adult(scene: Scene, who: str) -> bool:
    return not _is_minor(scene, who) and (_said(scene, ("adult_self_claim",), who) or _given_adult(scene, who))


def _given_adult(scene: Scene, who: str) -> bool:
    known = scene.known.get(who)
    return known is not None and (known.age == "adult" or (known.role == "adult" and not known.age))


def _adults(scene: Scene, actor: str) -> bool:
    people = _people(scene)
    return len(people) > 1 and not _minor(scene, UNKNOWN) and all(_adult(scene, who) for who in people)


# Severity.


def _severity(rule: Rule, scene: Scene, actor: str, parts: tuple[Part, ...]) -> str:
    """The severity after conditions, ages and suppressors; empty for silence."""
    minor, peer = _minor(scene, actor), _is_minor(scene, actor)
    if rule.peers and peer and minor:
        return ""
    if rule.adults and _adults(scene, actor) and all(_given_adult(scene, who) for who in _people(scene)):
        return ""
    level = _rank(_own(rule, scene, actor, parts))
    if rule.minors and minor and not peer:
        level += 1
    if rule.adults and _adults(scene, actor):
        level -= 1
    hushed = _hushed(rule, scene, actor, parts)
    level = min(level, 3)
    if peer and minor:
        level = min(level, _rank("high"))
    if max(part.span.last for part in parts) > NEAR:
        level = min(level, _rank("medium"))
    level = min(level, _believed(rule, scene, actor, parts)) - hushed
    return "" if hushed > 1 else SEVERITIES[max(0, level)]


def _believed(rule: Rule, scene: Scene, actor: str, parts: tuple[Part, ...]) -> int:
    """The highest severity that the parts bear, by how much the words of each say."""
    groups = zip(rule.formula.groups, parts, strict=True)
    strengths = [_strength(group, part, rule, scene, actor) for group, part in groups]
    doubled = _doubled(parts, strengths, scene)
    if doubled and len(parts) - len(doubled) < _PAIR:
        return _rank("low")
    said = sum(strengths) - NORMAL * len(parts)
    alone = len(parts) == 1  # then the words themselves must leave no doubt
    if said >= alone:
        return _rank("extreme")
    if alone:
        return _rank("medium" if said == 0 else "low")
    counted = [part.flag not in doubled and not _mutual(part, scene) for part in parts]
    telling = [s for s, own in zip(strengths, counted, strict=True) if s > WEAK or own]
    if not _together(telling, parts, scene, actor):
        return _rank("low")
    beside = _beside(rule, scene, actor)
    if len(telling) == len(parts) and said + (beside >= 2 * _BESIDE) >= 0:
        return _rank("extreme")
    said = sum(telling) - NORMAL * len(telling)
    return _rank("medium" if len(telling) > _PAIR or said + (beside >= _BESIDE) > -len(telling) else "low")


def _doubled(parts: Sequence[Part], strengths: Sequence[int], scene: Scene) -> set[str]:
    """Flags of parts that rest on words of this message on which a part that says more, or stands before, rests too:
    "your social security number" is not an office and a number.
    """
    here = [
        (part.flag, strength, scene.now[part.flag])
        for part, strength in zip(parts, strengths, strict=True)
        if part.span.first == 0 and part.flag in scene.now
    ]
    found: set[str] = set()
    for i, (flag, strength, mine) in enumerate(here):
        for other, stronger, theirs in here[i + 1 :]:
            if flag != other and all(a.start < b.end and b.start < a.end for a in mine for b in theirs):
                found.add(flag if strength < stronger else other)
    return found


def _mutual(part: Part, scene: Scene) -> bool:
    """Whether somebody else has shown this flag too."""
    nobody = (UNKNOWN, CALLER)
    return part.speaker not in nobody and any(who not in (*nobody, part.speaker) for who in scene.seen[part.flag])


def _together(telling: Sequence[int], parts: Sequence[Part], scene: Scene, actor: str) -> bool:
    """Whether parts that leave a doubt belong to each other. `telling` are the strengths of those that count."""
    if len(telling) < _PAIR:
        return False
    if not all(_is_theirs(scene.kinds.set_by.get(part.flag, "A"), part.speaker, actor) for part in parts):
        return False
    reach = LOOSE if max(telling) > WEAK else TWO_WEAK if len(parts) == _PAIR else MORE_WEAK
    return max(part.span.last for part in parts) <= reach


def _strength(group: frozenset[str], part: Part, rule: Rule, scene: Scene, actor: str) -> int:
    """Of what meets a group, the strongest that is not long before the part that is told."""
    latest = part.span.last + NEAR
    return max(c.span.strength for c in _choices(group, rule, scene, actor) if c.span.last <= latest)


def _beside(rule: Rule, scene: Scene, actor: str) -> int:
    """How much other flags of the rule's kind say, that the same person showed of late."""
    kinds = scene.kinds
    mine = {kinds[f].group for f in rule.flags if f in kinds}
    groups = frozenset().union(*(k for k in _KINDS if not k.isdisjoint(mine)))
    found = [0]
    for flag, spans in scene.seen.items():
        if flag in rule.flags or flag not in kinds or kinds[flag].group not in groups or kinds[flag].set_by != "A":
            continue
        near = [s.strength for who, s in spans.items() if s.last <= BESIDE and who in (actor, UNKNOWN)]
        found.append(max(near, default=0))
    return sum(found) if max(found) > WEAK else 0


def _own(rule: Rule, scene: Scene, actor: str, parts: tuple[Part, ...]) -> str:
    for when in rule.severity_if:
        if when.only and not _only(rule, scene, actor, parts, when.only):
            continue
        if when.within and any(p.span.last > when.within for p in parts):
            continue
        if _holds(when.formula, scene, actor):
            return when.severity
    return rule.severity


def _only(rule: Rule, scene: Scene, actor: str, parts: tuple[Part, ...], only: frozenset[str]) -> bool:
    """Whether some group is met by nothing but flags in `only`."""
    for group in rule.formula.groups:
        found = {part.flag for part in _choices(group, rule, scene, actor)}
        if found and found <= only:
            return True
    return False


def _hushed(rule: Rule, scene: Scene, actor: str, parts: tuple[Part, ...]) -> int:
    """0: nothing suppresses; 1: the actor's own word lowers; 4: silence."""
    lowered = 0
    for flag in rule.suppress:
        for who, span in scene.seen.get(flag, {}).items():
            if not _protects(flag, who, actor, scene):
                if all(
                    _before(Part(p.flag, p.speaker, Span(p.span.last, p.span.last)), Part(flag, who, span), scene)
                    for p in parts
                ):
                    lowered = 1
            elif span.strength > WEAK or who == CALLER:
                return 4  # a weak one does nothing: "my mum says so" is no mother who reads along
    return lowered


def _protects(flag: str, who: str, actor: str, scene: Scene) -> bool:
    if who == CALLER:
        return True
    if scene.kinds.set_by.get(flag) == "R":  # what the other one is to the speaker
        return who in (UNKNOWN, actor)
    if who == UNKNOWN or actor == UNKNOWN:
        return scene.kinds.set_by.get(flag) == "X"
    return who != actor
