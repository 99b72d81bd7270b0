"""What to add to a summary for a few messages, and which of its lines they replace: pure, deterministic, no model.

The summary evicts by age and never rewords, so all choice lies here, at the moment of writing: a claim is written
only when it is worth its room, and, once the summary is full, only when it is worth more than the oldest lines it
would push out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nitka.models.extract.judge import Claim, claims, present, read_message
from nitka.models.extract.replace import replaced_lines
from nitka.models.extract.writer import full_text, gist_text
from nitka.types import Line, Message, Proposal

WORTH = 1.5  # below this nothing is written
SHARE = 0.6  # of a line's worth per token, against the lines it would push out


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
    notes = take_notes(lines, messages)
    replaced = replaced_lines(lines, [claim for note in notes for claim in note.claims], messages)
    chosen = _worthwhile(notes, [line for at, line in enumerate(lines) if at not in replaced], cap)
    return Proposal(add=tuple(note.line for note in chosen), replaced=tuple(sorted(replaced)) if chosen else ())


def take_notes(lines: Sequence[Line], messages: Sequence[Message]) -> list[Note]:
    """Every line worth writing for these messages, in order, without regard to room."""
    known = present([line.text for line in lines])
    for message in messages:
        known.names |= _names(message)
    notes: list[Note] = []
    for at, message in enumerate(messages):
        answered = message.role == "user" and at + 1 < len(messages)
        found = claims(message, known, answered)
        for group in _groups(found):
            note = _note(group)
            if note is not None:
                notes.append(note)
                for claim in group:
                    known.learn(claim)
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
    """Claims worth writing, each with the neighbour it needs to be understood: a bare value takes its label, "he"
    its name.
    """
    groups: list[list[Claim]] = []
    for at, claim in enumerate(found):
        if claim.value < WORTH and not (groups and at and groups[-1][-1] is found[at - 1] and _leans(claim)):
            continue
        before = found[at - 1] if at else None
        if groups and before is groups[-1][-1] and _belongs(claim, before):
            groups[-1].append(claim)
        elif not claim.label and before is not None and before.read is claim.read and before.label:
            groups.append([before, claim])
        else:
            groups.append([claim])
    return groups


def _leans(claim: Claim) -> bool:
    return False


def _belongs(claim: Claim, before: Claim) -> bool:
    if before.read is claim.read and not (claim.label and before.label):
        return True
    pronoun = any("third" in word.tags for word in claim.words[:2])
    return (
        pronoun
        and any(anchor.kind == "name" for anchor in before.anchors)
        and not any(a.kind == "name" for a in claim.anchors)
    )


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


def estimate(text: str) -> float:
    """About how many tokens a text takes."""
    return 1 + sum(0.24 if c < "\u0250" else 0.31 if c < "\u2000" else 1.0 for c in text)


def _worthwhile(notes: Sequence[Note], lines: Sequence[Line], cap: int) -> list[Note]:
    """The notes worth their room: those with the most worth a token when they exceed the cap among themselves."""
    ranked = sorted(notes, key=lambda note: -note.value / estimate(note.line.gist))
    chosen: list[Note] = []
    used = 0.0
    for note in ranked:
        size = estimate(note.line.gist)
        if used + size <= cap:
            chosen.append(note)
            used += size
    return [note for note in notes if note in chosen]
