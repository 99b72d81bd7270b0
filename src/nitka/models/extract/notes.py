"""What to add to a summary for a few messages, and which of its lines they replace: pure, deterministic, no model.

The summary evicts by age and never rewords, so all choice lies here, at the moment of writing: a claim is written
only when it is worth its room, and more is asked of it as the summary fills up, because every new line then pushes out
an old one. (Weighing a new line against those very lines was tried and kept less: a heavy line at the front shuts out
all that comes after it.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nitka.models.extract.judge import Claim, Known, claims, keys_of, names_in, present
from nitka.models.extract.lexicon import language
from nitka.models.extract.replace import replaced_lines
from nitka.models.extract.writer import estimate, full_text, gist_text
from nitka.types import Line, Message, Proposal

WORTH = 0.9  # below this nothing is written
FULLNESS = 1.5  # what is asked for on top of that when the summary is full, from ROOMY on
ROOMY = 0.5  # of the cap
PLAIN_ROOM = 0.5  # of the cap, as written: up to there a plain statement is worth a line
SPARE_ROOM = 0.33  # the same for one in a message that gives other lines too
STATED = 1.0  # what it is worth
DEAR = 0.3  # how far a longer gist must be worth more, in a full summary
COMMON = 8.0  # tokens of a gist, about
LONG_LABEL = 5  # stems of a clause that says enough to stand alone; a day after it may be moved, and gets its own line
REACH = 11  # words, about, of a clause that a bare value after it takes for its label
CHOICE = 6  # words of a clause that goes on with an open question


@dataclass(frozen=True, slots=True)
class Note:
    """A line to be, with its worth."""

    line: Line
    value: float
    claims: tuple[Claim, ...]
    replaced: frozenset[int] = frozenset()  # positions of the lines it replaces

    plain: bool = False  # says nothing exact and is no act: worth a line only while there is room


def propose(lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
    """Lines for `messages`, in order, and the positions of `lines` that they replace entirely.

    `cap` is the summary's cap in tokens, of which the size of a line is only estimated here. The same arguments
    give the same proposal.
    """
    known = present([line.text for line in lines], [line.first for line in lines])
    standing = tuple(known.standing)
    filled = _written(lines) / cap if cap > 0 else 1.0
    notes = _settled(_take_notes(known, messages, filled=filled))
    notes = [replace(note, replaced=replaced_lines(standing, note.claims)) for note in notes]
    replaced = frozenset[int]().union(*(note.replaced for note in notes))
    kept = [line for at, line in enumerate(lines) if at not in replaced]
    chosen = _worthwhile(notes, kept, cap)
    gone = frozenset[int]().union(*(note.replaced for note in chosen))
    return Proposal(add=tuple(note.line for note in chosen), replaced=tuple(sorted(gone)))


def take_notes(messages: Sequence[Message]) -> list[Note]:
    """Every line worth writing for these messages, in order, without regard to room."""
    return _settled(_take_notes(present(()), messages, filled=0.0))


def _settled(notes: Sequence[Note]) -> list[Note]:
    """The notes without those that a later one of the same messages replaces."""
    gone: set[int] = set()
    several = len({note.line.last for note in notes}) > 1
    standing = present([n.line.full for n in notes], [n.line.first for n in notes]).standing if several else []
    for at, note in enumerate(notes):
        earlier = [i for i in range(at) if notes[i].line.last < note.line.first]
        gone |= {earlier[i] for i in replaced_lines([standing[i] for i in earlier], note.claims)} if earlier else set()
    return [note for at, note in enumerate(notes) if at not in gone]


def _take_notes(known: Known, messages: Sequence[Message], *, filled: float) -> list[Note]:
    known.tongue = known.tongue or language("\n".join(message.text[:500] for message in messages))
    lexicons = [known.lexicon(message.text) for message in messages]
    for message, lex in zip(messages, lexicons, strict=True):
        known.names |= names_in(message, lex)
    notes: list[Note] = []
    for at, message in enumerate(messages):
        answered = message.role == "user" and at + 1 < len(messages)
        found = claims(message, known, lexicons[at], answered=answered)
        groups = _groups(found)
        own = [note for group in groups if (note := _note(group)) is not None]
        for note in own:
            known.learn(set().union(*(keys_of(claim) for claim in note.claims)))
        roomy = filled <= (SPARE_ROOM if own else PLAIN_ROOM)
        notes += _with_plain(own, found, groups) if roomy else own
    return notes


def _with_plain(own: Sequence[Note], found: Sequence[Claim], groups: Sequence[Sequence[Claim]]) -> list[Note]:
    """The notes and, each at its place, the plain statements of the same message that none of them holds: beside
    notes only whole sentences, since what surrounds something exact is mostly talk.
    """
    at = {id(claim): place for place, claim in enumerate(found)}
    held = {id(claim) for group in groups for claim in group}
    plain = [_note([claim]) for claim in found if claim.plain and id(claim) not in held and _stands_alone(claim, own)]
    added = [replace(note, value=max(note.value, STATED), plain=True) for note in plain if note is not None]
    return sorted([*own, *added], key=lambda note: at[id(note.claims[0])])


def _stands_alone(claim: Claim, own: Sequence[Note]) -> bool:
    """A whole sentence, but for a "no" before a change of mind; where the message gives no other note, the clause that
    opens one too.
    """
    said_no = "correct" in claim.acts and not any(word.content for word in claim.read.words[: claim.start])
    return (claim.start == 0 or said_no) and (not own or claim.end == len(claim.read.words))


def _groups(found: Sequence[Claim]) -> list[list[Claim]]:
    """Claims worth writing, each with the neighbours it needs to be understood."""
    groups: list[list[Claim]] = []
    taken: set[int] = set()
    for at, claim in enumerate(found):
        if claim.value < WORTH or at in taken:
            continue
        span = _span(found, at)
        span = [i for i in span if i not in taken]
        taken.update(span)
        before = groups[-1][-1] if groups else None
        if len(span) == 1 and not claim.label and _bare(claim):
            if before is None or before.read is not claim.read:
                continue
        if before is not None and span[0] and before is found[span[0] - 1] and _belongs(found[span[0]], groups[-1]):
            groups[-1].extend(found[i] for i in span)
        else:
            groups.append([found[i] for i in span])
    return groups


def _span(found: Sequence[Claim], at: int) -> list[int]:
    """The claim's place and those of the neighbours it leans on: a short topic before it, the clause after a bare
    value.
    """
    claim = found[at]
    if "open" in claim.acts and at + 1 < len(found) and _other_choice(found[at + 1], claim):
        return [at, at + 1]
    before = found[at - 1] if at else None
    after = found[at + 1] if at + 1 < len(found) else None
    if before is not None and before.read is claim.read and before.label and _topic(before):
        return [at - 1, at]
    if claim.label:
        return [at]
    if before is not None and before.read is claim.read and before.label and before.start + REACH > before.end:
        return [at - 1, at]
    plain = after is not None and after.label and after.read is claim.read and not after.anchors
    return [at, at + 1] if plain else [at]


def _bare(claim: Claim) -> bool:
    """Nothing but figures that are no day: a reader could not tell what they are of."""
    return bool(claim.anchors) and all(a.kind in ("number", "money", "time", "weekday") for a in claim.anchors)


def _other_choice(claim: Claim, before: Claim) -> bool:
    """The short clause after an open question that goes on with it: "… the boat, and I the chair"."""
    joined = claim.start < claim.end and "joiner" in claim.words[0].tags
    return claim.read is before.read and joined and claim.end - claim.start <= CHOICE and claim.label


def _topic(claim: Claim) -> bool:
    """One or two words of content set before a comma: what the next clause speaks of."""
    content = [word for word in claim.words if word.content]
    return (
        claim.start == 0
        and 1 <= len(content) <= 2
        and not claim.anchors
        and not claim.acts & {"open", "decide", "close"}
    )


def _belongs(claim: Claim, group: Sequence[Claim]) -> bool:
    """Whether the claim goes on in the line of the one just before it: a bare value, "she …", "and I: the other"."""
    before = group[-1]
    if before.read is claim.read and {"correct", "other"} <= claim.acts:
        return True
    if before.read is claim.read and not claim.label:
        changed = before.acts & {"correct", "move"}
        return bool(changed) or sum(len(one.stems) for one in group) < LONG_LABEL or not _bare_day(claim)
    named = any(anchor.kind == "name" for anchor in claim.anchors)
    pronoun = any("third" in word.tags for word in claim.words[:2])
    return pronoun and not named and any(anchor.kind == "name" for anchor in before.anchors)


def _bare_day(claim: Claim) -> bool:
    return bool(claim.anchors) and all(anchor.kind in ("date", "weekday") for anchor in claim.anchors)


def _note(group: Sequence[Claim]) -> Note | None:
    full = ", ".join(filter(None, (full_text(claim) for claim in group)))
    gist = ", ".join(filter(None, (gist_text(claim) for claim in group)))
    if not full or not gist:
        return None
    first = group[0]
    if first.said_by == "assistant" and any("promise" in claim.acts for claim in group):
        who = first.lexicon.texts.get("assistant", "assistant")
        full, gist = f"{who}: {full}", f"{who}: {gist}"
    if group[-1].read.asks and "open" not in group[-1].acts:
        full, gist = f"{full}?", f"{gist}?"
    seqs = [claim.seq for claim in group]
    line = Line(full=full, gist=gist if len(gist) < len(full) else full, first=min(seqs), last=max(seqs), offline=True)
    return Note(line, sum(claim.value for claim in group), tuple(group))


def _written(lines: Sequence[Line]) -> float:
    """The size of lines as they stand; while there is room that is more than their gists take."""
    return sum(estimate(line.text) for line in lines)


def _worthwhile(notes: Sequence[Note], standing: Sequence[Line], cap: int) -> list[Note]:
    """The notes worth their room, in order. What replaces a line always is; of the others, more is asked the fuller
    it gets.
    """
    used = sum(estimate(line.gist) for line in standing)
    written = _written(standing)
    chosen: list[Note] = []
    size = 0.0
    for note in sorted(notes, key=lambda note: (not note.replaced, -note.value / estimate(note.line.gist))):
        full = min(1.0, (used + size) / cap) if cap > 0 else 1.0
        asked = WORTH + FULLNESS * max(0.0, full - ROOMY) / (1 - ROOMY)
        price = estimate(note.line.gist)
        asked *= 1 + DEAR * full * (price / COMMON - 1)
        if note.plain and not note.replaced and written > PLAIN_ROOM * cap:
            continue
        if size + price <= cap and (note.replaced or note.value >= asked):
            chosen.append(note)
            size += price
            written += estimate(note.line.full)
    return [note for note in notes if any(note is one for one in chosen)]
