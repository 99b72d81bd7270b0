"""What to add to a summary for a few messages, and which of its lines they replace: pure, deterministic, no model.

The summary evicts by age and never rewords, so all choice lies here, at the moment of writing: a claim is written
only when it is worth its room, and, once the summary is full, only when it is worth more than the oldest lines it
would push out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nitka.models.extract.judge import Claim, Known, claims, keys_of, present, read_message, standing_worth
from nitka.models.extract.replace import replaced_lines
from nitka.models.extract.writer import estimate, full_text, gist_text
from nitka.types import Line, Message, Proposal

WORTH = 1.2  # below this nothing is written
FULLNESS = 1.0  # what is asked for on top of that when the summary is full, from ROOMY on
ROOMY = 0.5  # of the cap
SHARE = 0.9  # of the worth of the lines it would push out, below which a new line is not written
FILL = 0.98  # of the cap, since sizes are estimates


@dataclass(frozen=True, slots=True)
class Note:
    """A line to be, with its worth."""

    line: Line
    value: float
    claims: tuple[Claim, ...]


def propose(lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
    """Lines for `messages`, in order, and the positions of `lines` that they replace entirely.

    `cap` is the summary's cap in tokens, of which the size of a line is only estimated here. The same arguments
    give the same proposal.
    """
    known = present([line.text for line in lines])
    standing = tuple(known.standing)
    notes = _take_notes(known, messages)
    replaced = replaced_lines(standing, [note.claims for note in notes])
    kept = [claim for at, claim in enumerate(standing) if at not in replaced]
    chosen = _worthwhile(notes, kept, cap)
    return Proposal(add=tuple(note.line for note in chosen), replaced=tuple(sorted(replaced)) if chosen else ())


def take_notes(messages: Sequence[Message]) -> list[Note]:
    """Every line worth writing for these messages, in order, without regard to room."""
    return _take_notes(present(()), messages)


def _take_notes(known: Known, messages: Sequence[Message]) -> list[Note]:
    for message in messages:
        known.names |= _names(message)
    notes: list[Note] = []
    for at, message in enumerate(messages):
        answered = message.role == "user" and at + 1 < len(messages)
        for group in _groups(claims(message, known, answered)):
            note = _note(group)
            if note is not None:
                notes.append(note)
                known.learn(set().union(*(keys_of(claim) for claim in group)))
    return notes


def _names(message: Message) -> set[str]:
    return {
        read.words[at].stem
        for read, anchors in read_message(message, set())
        for anchor in anchors
        if anchor.kind == "name" and anchor.weight > 2
        for at in range(anchor.start, anchor.end)
    }


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
        if before is not None and span[0] and before is found[span[0] - 1] and _belongs(found[span[0]], before):
            groups[-1].extend(found[i] for i in span)
        else:
            groups.append([found[i] for i in span])
    return groups


def _span(found: Sequence[Claim], at: int) -> list[int]:
    """The claim's place and those of the neighbours it leans on: a short topic before it, the clause after a bare
    value.
    """
    claim = found[at]
    before = found[at - 1] if at else None
    after = found[at + 1] if at + 1 < len(found) else None
    if before is not None and before.read is claim.read and before.label and _topic(before):
        return [at - 1, at]
    if claim.label:
        return [at]
    if before is not None and before.read is claim.read and before.label and before.start + 8 > before.end:
        return [at - 1, at]
    return [at, at + 1] if after is not None and after.label and after.read is claim.read else [at]


def _topic(claim: Claim) -> bool:
    """One or two words of content set before a comma: what the next clause speaks of."""
    content = [word for word in claim.words if word.content]
    return (
        claim.start == 0
        and 1 <= len(content) <= 2
        and not claim.anchors
        and not claim.acts & {"open", "decide", "close"}
    )


def _belongs(claim: Claim, before: Claim) -> bool:
    """Whether the claim goes on in the line of the one just before it: a bare value, "she …", "and I: the other"."""
    if before.read is claim.read and not (claim.label and before.label):
        return True
    named = any(anchor.kind == "name" for anchor in claim.anchors)
    pronoun = any("third" in word.tags for word in claim.words[:2])
    return pronoun and not named and any(anchor.kind == "name" for anchor in before.anchors)


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


def _worthwhile(notes: Sequence[Note], standing: Sequence[Claim], cap: int) -> list[Note]:
    """The notes worth their room, in order: all while there is room, then those worth more than the oldest lines
    they push out.
    """
    chosen: list[Note] = []
    sizes = [estimate(claim.read.source) for claim in standing]
    used = sum(sizes)
    start = 0
    asked = WORTH + FULLNESS * min(1.0, max(0.0, used / cap - ROOMY) / (1 - ROOMY)) if cap > 0 else 0.0
    for note in sorted(notes, key=lambda note: -note.value / estimate(note.line.gist)):
        size = estimate(note.line.gist)
        out, freed = start, 0.0
        while out < len(standing) and used + size - freed > FILL * cap:
            freed += sizes[out]
            out += 1
        loss = sum(standing_worth(claim) for claim in standing[start:out])
        if used + size - freed <= FILL * cap and note.value >= max(asked, SHARE * loss):
            used, start = used + size - freed, out
            chosen.append(note)
    return [note for note in notes if any(note is one for one in chosen)]
