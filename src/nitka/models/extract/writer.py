"""A claim in words: `full` is the clause as said, without filler; `gist` is telegraphic and keeps names, numbers,
dates and what they belong to.

Every word is the writer's own, in the order said; words are only left out. Negations and restrictions stay with the
word they bear on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType

from nitka.models.extract.anchors import number_runs
from nitka.models.extract.judge import Claim
from nitka.models.extract.text import Word

FULL_WORDS = 16
LABELS = 1  # content words kept beside the anchors, at least
TOPIC = 0.6  # what the first word of content, which often says what the clause is about, is worth to a gist
OPEN_EXTRA = 4.0  # tokens more for a question that stays open: its choices must be there
THOUSANDS = 10  # from here on "forty-three five hundred" is 43 500
HUNDREDS = range(100, 1000, 100)
WISHES = {"decide", "promise"}
WISH_EXTRA = 2.5  # tokens more beside a name or a figure, and for a plain statement: who, the verb and its object
OBJECT = 1.0  # what must or must not be
BARE_LABELS = 3  # where there are no anchors
SAID = {"strict", "open"}  # acts whose object must not be lost with the mark
CUES = {"decide", "promise", "open", "close", "limit", "correct", "move", "role"}
DASHES = (" — ", " – ", " - ")  # a label and its value: a colon says the same in one token less
NOTHING: Mapping[int, str] = MappingProxyType({})


def full_text(claim: Claim) -> str:
    """The clause as said: leading talk, filler phrases and loose ends left out, at most `FULL_WORDS` words."""
    keep = _spoken(claim)
    while len(keep) > FULL_WORDS and (loose := _least(claim, keep)) is not None:
        keep.remove(loose)
    return _join(claim, sorted(keep))


def gist_text(claim: Claim) -> str:
    """The clause as one would note it down: anchors, negations, and the nearest words of content, about as many tokens
    in all as the lexicon says.
    """
    spoken = _spoken(claim)
    inside = claim.read.words
    kept = {at for at in spoken if inside[at].anchor >= 0}
    stated = claim.plain and not kept
    wished = bool(kept) and not claim.acts.isdisjoint(WISHES)
    left = (
        claim.lexicon.gist
        + OPEN_EXTRA * ("open" in claim.acts)
        + WISH_EXTRA * (wished or stated)
        - sum(estimate(inside[at].text) for at in kept)
    )
    near = frozenset(kept)
    labels = BARE_LABELS + stated if not near else LABELS + (not claim.acts.isdisjoint(SAID))
    loose = (at for at in spoken if inside[at].content and at not in near)
    for rank, at in enumerate(sorted(loose, key=lambda at: (-_pull(claim, at, near), at))):
        left -= estimate(inside[at].text)
        if left < 0 and rank >= labels:
            break
        kept.add(at)
    kept |= {at for at in spoken if "part" in inside[at].tags and _heads_value(inside, at, kept)}
    bearing = [at for at in spoken if "keep" in inside[at].tags and _bears_on(inside, at, kept, claim.end) is not None]
    kept |= {*bearing, *(after for at in bearing for after in _denied(inside, at, claim.end))}
    kept |= {at for at in spoken if _links(inside, at, kept, claim.end)}
    return _join(claim, sorted(kept), _figures(claim))


def _figures(claim: Claim) -> dict[int, str]:
    """Long number words as figures: those of several words, and the day before a month. A part of a run but the
    first is left out.
    """
    words = claim.words
    written: dict[int, str] = {}
    runs = number_runs(words, claim.lexicon)
    for (start, middle, value), (again, end, rest) in pairwise(runs):
        if middle == again and THOUSANDS <= value < 1000 and rest in HUNDREDS and words[again].gap == " ":
            written |= {claim.start + at: "" for at in range(start + 1, end)}
            written[claim.start + start] = f"{value} {rest}"
    for start, end, value in runs:
        if claim.start + start in written:
            continue
        thousands = end - start > 1 and value >= 1000 and value % 1000 == 0
        dated = end < len(words) and "month" in words[end].tags and words[end].gap == " "
        if not dated and end - start - thousands < 2:
            continue
        last = end - thousands
        written[claim.start + start] = str(value // 1000 if thousands else value)
        written |= {claim.start + at: "" for at in range(start + 1, last)}
    return written


def estimate(text: str) -> float:
    """About how many tokens a text takes, the space or newline before it counted."""
    return 0.5 + sum(0.26 if c < "\u0250" else 0.37 if c < "\u2000" else 1.0 for c in text)


def _spoken(claim: Claim) -> list[int]:
    """The words of the clause without filler phrases and without function words hanging at its ends."""
    words = claim.read.words
    dropped = {
        at + i
        for tag, at, size in claim.read.phrases
        if tag == "filler"
        for i in range(size)
        if claim.start <= at and at + size <= claim.end and all(words[at + k].anchor < 0 for k in range(size))
    }
    dropped -= {at for at in dropped if "keep" in words[at].tags}
    spoken = [at for at in range(claim.start, claim.end) if at not in dropped]
    if _reports(claim, spoken) or _retells(claim, dropped):
        spoken.pop(0)
    while spoken and words[spoken[0]].tags & {"joiner", "subordinate", "lead"} and words[spoken[0]].anchor < 0:
        spoken.pop(0)
    while (
        spoken
        and words[spoken[-1]].anchor < 0
        and words[spoken[-1]].tags & {"link", "joiner", "function", "subordinate"}
    ):
        spoken.pop()
    return spoken


def _reports(claim: Claim, spoken: Sequence[int]) -> bool:
    """The clause opens with a verb that only says that somebody said or found what follows after the colon."""
    if len(spoken) < 3 or not claim.lexicon.told:
        return False
    first, second = (claim.read.words[at] for at in spoken[:2])
    return ":" in second.gap and first.low.endswith(claim.lexicon.told) and "decide" not in first.tags


def _retells(claim: Claim, dropped: set[int]) -> bool:
    """«она сказала приходить»: without the verb of saying the pronoun before it stands for nothing."""
    opens = claim.start not in dropped and claim.start + 1 in dropped
    return opens and bool(claim.lexicon.told) and "third" in claim.read.words[claim.start].tags


def _least(claim: Claim, keep: Sequence[int]) -> int | None:
    """The word that may go first from a clause that is too long: the one farthest from any anchor, from the end on
    equal terms.
    """
    words = claim.read.words
    anchored = [at for at in keep if words[at].anchor >= 0]
    loose = [at for at in keep if words[at].anchor < 0 and "keep" not in words[at].tags]
    if not loose:
        return None
    if not anchored:
        return loose[-1]
    return max(loose, key=lambda at: (min(abs(at - a) for a in anchored), at))


def _pull(claim: Claim, at: int, anchored: frozenset[int]) -> float:
    """How much a word of content belongs beside the anchors: near before far, before rather than after, marks of
    the act first.
    """
    word = claim.read.words[at]
    weak = claim.lexicon.weak and word.low.endswith(claim.lexicon.weak) and len(word.low) > 5
    pull = 0.6 * bool(word.tags & CUES) + 0.8 * ("role" in word.tags) + 0.2 * (len(word.low) > 3) - 0.5 * bool(weak)
    pull += TOPIC * (at == next((i for i in range(claim.start, claim.end) if claim.read.words[i].content), -1))
    pull += OBJECT * (at > claim.start and "strict" in claim.read.words[_before(claim, at)].tags)
    if anchored:
        distance = min((a - at) if a > at else (at - a) * 1.3 for a in anchored)
        return pull + 2.0 / (1.0 + distance)
    return pull + 1.0 / (1.0 + 0.1 * (at - claim.start))


def _before(claim: Claim, at: int) -> int:
    """The word of content or act before this one."""
    words = claim.read.words
    return next((i for i in range(at - 1, claim.start, -1) if not words[i].tags & {"link", "function"}), claim.start)


def _bears_on(words: Sequence[Word], at: int, kept: set[int], end: int) -> int | None:
    """The kept word that a negation or restriction bears on: within the next three, else the two before («менять
    нельзя»).
    """
    return next((i for i in (*range(at + 1, min(at + 4, end)), at - 1, at - 2) if i in kept), None)


def _heads_value(words: Sequence[Word], at: int, kept: set[int]) -> bool:
    """«до конца апреля», "by the end of April": part of the value that follows."""
    following = at + 1
    while following < len(words) and following not in kept and words[following].tags & {"link", "function"}:
        following += 1
    return following in kept and words[following].valued


def _denied(words: Sequence[Word], at: int, end: int) -> list[int]:
    """The word right after a negation: "not leave", «не ниже», «без пропуска»."""
    if "negation" not in words[at].tags:
        return []
    return [i for i in range(at + 1, min(at + 3, end)) if not words[i].tags & {"function", "filler"}][:1]


def _links(words: Sequence[Word], at: int, kept: set[int], end: int) -> bool:
    """A preposition or "and" stays where the next word said, articles aside, is kept."""
    if "link" not in words[at].tags:
        return False
    following = at + 1
    while following < end and following not in kept and words[following].tags & {"function", "filler"}:
        if "object" in words[following].tags:
            return False
        following += 1
    return following in kept


def _join(claim: Claim, kept: Sequence[int], written: Mapping[int, str] = NOTHING) -> str:
    """The kept words with the marks that stood between neighbours; a gap where words were left out is a space, or
    the comma that stood there.
    """
    words = claim.read.words
    parts: list[str] = []
    kept = [at for at in kept if written.get(at) != ""]
    for i, at in enumerate(kept):
        if i:
            parts.append(_between(words, kept[i - 1], at))
        else:
            parts.append("".join(re.findall(r"[«“„\"`]$", words[at].gap)))
        parts.append(written.get(at, words[at].text))
    if kept:
        tail = claim.read.source[words[kept[-1]].end :][:1]
        parts.append(tail if tail in '»”"`%' else "")
    return _balanced("".join(parts))


def _between(words: Sequence[Word], before: int, at: int) -> str:
    gaps = [words[i].gap for i in range(before + 1, at + 1)]
    if len(gaps) == 1 and gaps[0] in DASHES:
        return ": "
    if len(gaps) == 1:
        return gaps[0] if len(gaps[0]) <= 4 and gaps[0].isprintable() else " "
    closing = "".join(re.findall(r"^[»”\"`]", gaps[0]))
    opening = "".join(re.findall(r"(?:^|\s)[«“„\"`]$", gaps[-1])).strip()
    comma = "," if any(mark in gap for gap in gaps for mark in ",;") else ""
    return f"{closing}{comma} {opening}"


def _balanced(text: str) -> str:
    for left, right in ("«»", "“”", "()"):
        if text.count(left) != text.count(right):
            text = text.replace(left, "").replace(right, "")
    for mark in '"`':
        if text.count(mark) % 2:
            text = text.replace(mark, "")
    return text.lstrip(" ,;:–—").rstrip(" ,;:–—-")
