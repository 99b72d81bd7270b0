"""Which present lines a few new claims replace entirely.

A line is replaced when every value it holds is of the kind that the new claim gives anew, and the two speak of the
same thing: the message names the former value ("Tuesday instead of Monday"), or both share their topic and the
message marks a change, or an appointment is moved and the line holds the latest one. An open question is replaced
by the claim that closes it. A line that holds anything else exact (a code, a title, another kind of value) stays:
its other statements were not replaced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nitka.models.extract.anchors import Anchor
from nitka.models.extract.judge import Claim, acts_of
from nitka.models.extract.text import Word

FAMILY = {"date": "day", "weekday": "day", "time": "day", "money": "amount", "number": "amount"}
FORMER_REACH = 4  # words after "instead of" in which the former value stands
PENDING = 4  # lines among which a request for another day is looked for
RECENT = 24  # lines among which an appointment that is moved is looked for
SAME = 2  # parts that two values share when they are the same one said in other words (a day and its month)
CLEAR = 2  # topical words with which a note says what it is about; with fewer it is read with what stands before it
MANY = 6  # topical words of a line that surely says more than its value
STATED = 1.25  # weight up to which a value states nothing by itself (a bare "two", "two days")
ALIKE = 0.6  # of all topical words of a line and of a note that are the same when one is the other with another value


@dataclass(frozen=True, slots=True)
class New:
    """What a new note says, with its message around it."""

    claims: tuple[Claim, ...]
    values: tuple[Anchor, ...]
    topic: frozenset[str]  # of the note and of what stands around it
    acts: frozenset[str]
    families: frozenset[str]  # of the values

    @property
    def asks(self) -> bool:
        return any(claim.read.asks for claim in self.claims)


def replaced_lines(standing: Sequence[Claim], claims: tuple[Claim, ...]) -> frozenset[int]:
    """Positions of the standing lines whose every statement a new note, made of these claims, replaces."""
    new = _new(claims)
    found = {
        at
        for at, line in enumerate(standing)
        if (_may_give_anew(line, new) and _gives_anew(line, new) and _says_so(line, new)) or _renamed(line, new)
    }
    asked = _asked_to_move(standing)
    if not found and not new.asks and ("move" in new.acts or asked):
        found = _moved(standing, new)
        found |= asked if found else set()
    return frozenset(found | {at for at, line in enumerate(standing) if _closed(line, new)})


def _new(claims: tuple[Claim, ...]) -> New:
    reads = [claim.read for claim in claims]
    acts = set().union(
        *(claim.acts for claim in claims), *(acts_of(read) for read in reads), *(claim.around for claim in claims)
    )
    topic = set().union(*(_topic(claim) for claim in claims))
    if len(topic) < CLEAR:
        topic = topic.union(*(claim.beside for claim in claims))
    values = tuple(anchor for claim in claims for anchor in _values(claim))
    return New(claims, values, frozenset(topic), frozenset(acts), frozenset(FAMILY[a.kind] for a in values))


def _values(claim: Claim) -> list[Anchor]:
    """The values a claim states: not a bare "two", and not a month without a day."""
    return [a for a in claim.anchors if a.kind in FAMILY and a.weight > STATED and not _vague(claim, a)]


def _vague(claim: Claim, anchor: Anchor) -> bool:
    return anchor.kind == "date" and all("month" in w.tags for w in claim.read.words[anchor.start : anchor.end])


def _units(claim: Claim) -> set[str]:
    """What the amounts of a claim are amounts of, as far as it is said."""
    spans = (claim.read.words[a.start : a.end] for a in _values(claim) if FAMILY[a.kind] == "amount")
    words = [word for span in spans for word in span if word.content]
    people = {claim.lexicon.people for word in words if word.valued and "counted" in word.tags} - {""}
    return {word.stem for word in words if not word.valued} | people


def _topic(claim: Claim) -> set[str]:
    """The stems that say what a claim is about: words of content that are no value and no mark of a change."""
    words = claim.read.words[claim.start : claim.end]
    valued = {at for a in claim.anchors if a.kind in FAMILY for at in range(a.start - claim.start, a.end - claim.start)}
    return {
        word.stem
        for at, word in enumerate(words)
        if _topical(word) and (at not in valued or not word.valued or "counted" in word.tags)
    }


def _topical(word: Word) -> bool:
    return word.content and not word.tags & {"unit", "money", "correct", "move", "daypart"}


def _heads(line: Claim) -> set[str]:
    """What the values belong to: the two nearest topical words before each, a counted noun in it, or else the
    nearest after it.
    """
    words = line.read.words
    heads: set[str] = set()
    for anchor in _values(line):
        before = [word.stem for word in words[: anchor.start] if _topical(word) and word.anchor < 0]
        after = [word.stem for word in words[anchor.end : anchor.end + 1] if _topical(word) and word.anchor < 0]
        heads |= set(before[-2:] or after[:1])
        heads |= {word.stem for word in words[anchor.start : anchor.end] if _topical(word) and not word.valued}
    return heads


def _may_give_anew(line: Claim, new: New) -> bool:
    """A cheap look: most lines hold nothing, or values of another family."""
    return any(FAMILY.get(anchor.kind) in new.families for anchor in line.anchors)


def _says_so(line: Claim, new: New) -> bool:
    return _named(line, new) or _revised(line, new) or _same_matter(line, new)


def _gives_anew(line: Claim, new: New) -> bool:
    """Whether the note has a new value of the one family that all the line's values belong to, and the line nothing
    else exact.
    """
    values = _values(line)
    families = {FAMILY[anchor.kind] for anchor in values}
    if len(families) != 1 or any(anchor.kind in ("code", "title") for anchor in line.anchors):
        return False
    if len(_topic(line)) >= MANY and not _topic(line) <= new.topic:
        return False
    dated = any(anchor.kind in ("date", "weekday") for anchor in values)
    fresh = [a for a in new.values if FAMILY[a.kind] in families and not (dated and a.kind == "time")]
    old = set().union(*(anchor.keys for anchor in values))
    units, others = _units(line), set().union(*(_units(claim) for claim in new.claims))
    if "amount" in families and units.isdisjoint(others) and (units and others or not new.acts & {"correct", "move"}):
        return False
    counted = {word.stem for word in line.words if word.stem in units and "money" not in word.tags}
    if "amount" in families and counted and not others and counted.isdisjoint(new.topic):
        return False
    again = any(_same(anchor.keys, old) for anchor in fresh)
    return bool(fresh) and not again


def _same(keys: frozenset[str], old: set[str]) -> bool:
    """Whether a value is an old one, perhaps in other words: all of it is there, or two parts and the figures
    among them.
    """
    shared = keys & old
    figures = {key for key in keys if key.isdecimal()}
    return keys <= old or (len(shared) >= SAME and (not figures or bool(figures & shared)))


def _named(line: Claim, new: New) -> bool:
    """The message names a value of the line as the former one."""
    former = [keys for claim in new.claims for keys in _former(claim)]
    if new.acts & {"correct", "move"}:
        former += [anchor.keys for claim in new.claims for anchor in claim.before if anchor.kind in FAMILY]
        held = set().union(*(anchor.keys for anchor in _values(line)))
        return any(keys and keys <= held for keys in former)
    return any(anchor.keys <= keys for anchor in _values(line) for keys in former)


def _former(claim: Claim) -> list[frozenset[str]]:
    """The keys of values that the sentence calls former."""
    marks = [at + size for tag, at, size in claim.read.phrases if tag == "former"]
    reached = [
        {claim.read.words[i].anchor for i in range(at, min(at + FORMER_REACH, len(claim.read.words)))} for at in marks
    ]
    return [anchor.keys for anchors in reached for at, anchor in enumerate(claim.read_anchors) if at in anchors]


def _revised(line: Claim, new: New) -> bool:
    """The message marks a change and speaks of what the line's value belongs to, or says the same with another
    value.
    """
    if new.asks:
        return False
    if new.acts & {"correct", "move"} and _moves(line, new):
        heads = _heads(line)
        if not heads and _units(line) & set().union(*(_units(claim) for claim in new.claims)):
            return True
        day = all(FAMILY[anchor.kind] == "day" for anchor in _values(line))
        return bool((heads | line.beside if day and len(heads) < CLEAR else heads) & new.topic)
    topic, own = _topic(line), set().union(*(_topic(claim) for claim in new.claims))
    return len(topic & own) >= max(1.0, ALIKE * len(topic | own)) and len(topic & own) * 2 > len(topic)


def _same_matter(line: Claim, new: New) -> bool:
    """Without a mark of change: all the line speaks of is said again, and of the same person or thing as the line
    before it ("starts on the 3rd" after "the roofer, Efim").
    """
    own = set().union(*(_topic(claim) for claim in new.claims))
    topic = _topic(line)
    return not new.asks and bool(topic) and topic <= own and not line.beside.isdisjoint(own - topic)


def _renamed(line: Claim, new: New) -> bool:
    """The line holds nothing exact but a name, and the note says that another stands in its place: the message names
    the former one and marks a change while both speak of one matter, or a wish to go somewhere became a journey.
    """
    if new.asks or len(line.anchors) != 1 or line.anchors[0].kind not in ("name", "title") or "strict" in line.acts:
        return False
    former = line.anchors[0].keys
    told = [claim for claim in new.claims if {"correct", "other"} <= claim.acts]
    names = _names(told) or _names(new.claims)
    if not names or any(keys & former for keys in names):
        return False
    return _put_aside(line, former, new) or _went_elsewhere(line, new)


def _names(claims: Sequence[Claim]) -> list[frozenset[str]]:
    return [anchor.keys for claim in claims for anchor in claim.anchors if anchor.kind in ("name", "title")]


def _put_aside(line: Claim, former: frozenset[str], new: New) -> bool:
    spoken = [anchor.keys for claim in new.claims for anchor in (*claim.before, *claim.read_anchors)]
    if any(keys <= former for claim in new.claims for keys in _former(claim) if keys):
        return True
    if not new.acts & {"correct", "move"}:
        return False
    topic = _topic(line) - former
    if any(keys & former for keys in spoken):
        return not topic or bool(topic & new.topic) or bool(line.acts & {"decide", "promise", "open"})
    return bool(new.acts & {"other"}) and bool(topic & set().union(*(_topic(claim) for claim in new.claims)))


def _went_elsewhere(line: Claim, new: New) -> bool:
    """ "We want to go to the Azores", then "we fly to Madeira": the same preposition before another name."""
    if not line.acts & {"decide", "go"}:
        return False
    return any(
        "go" in acts_of(claim.read) and _preposition(claim, anchor) & _preposition(line, line.anchors[0])
        for claim in new.claims
        for anchor in claim.anchors
        if anchor.kind == "name"
    )


def _preposition(claim: Claim, anchor: Anchor) -> set[str]:
    before = claim.read.words[max(0, anchor.start - 1) : anchor.start]
    return {word.low for word in before if "link" in word.tags}


def _asked_to_move(standing: Sequence[Claim]) -> set[int]:
    """The newest lines that ask for another day: the day that is then named is the answer, whoever names it."""
    newest = range(max(0, len(standing) - PENDING), len(standing))
    return {at for at in newest if standing[at].read.asks and "move" in standing[at].acts}


def _moves(line: Claim, new: New) -> bool:
    """A bare weekday ("answers on Mondays") changes only where something is said to move."""
    return "move" in new.acts or any(anchor.kind != "weekday" for anchor in _values(line))


def _moved(standing: Sequence[Claim], new: New) -> set[int]:
    """The latest appointment among the recent lines, and every other line that holds nothing but the same day."""
    if not any(anchor.kind in ("date", "weekday") for anchor in new.values):
        return set()
    recent = range(max(0, len(standing) - RECENT), len(standing))
    days = [at for at in recent if _gives_anew(standing[at], new) and _day(standing[at])]
    told = [at for at in days if not standing[at].read.asks]
    fixed = [at for at in told if _appointment(standing[at]) or _topic(standing[at]) & new.topic]
    if not fixed:
        return set()
    latest = _day(standing[fixed[-1]])
    return {at for at in days if at == fixed[-1] or (_day(standing[at]) <= latest and _appointment(standing[at]))}


def _appointment(line: Claim) -> bool:
    """A weekday with a date or a time, or a date with a time."""
    tags = set().union(*(word.tags for word in line.read.words if word.anchor >= 0))
    kinds = {anchor.kind for anchor in line.anchors}
    return ("weekday" in tags and bool(kinds & {"date", "time"})) or kinds >= {"date", "time"}


def _day(line: Claim) -> set[str]:
    return {key for anchor in line.anchors if anchor.kind in ("date", "weekday") for key in anchor.keys}


def _closed(line: Claim, new: New) -> bool:
    """The line asks or leaves open what the note settles."""
    if not ("open" in line.acts or line.read.source.endswith("?")) or new.asks or "open" in new.acts:
        return False
    if not new.acts & {"close", "decide", "correct"}:
        return False
    topic = _topic(line)
    own = set().union(*(_topic(claim) for claim in new.claims))
    return len(topic & new.topic) >= max(1, 0.5 * len(topic)) and bool(own)
