"""What a reader would miss: the segments of a message as claims, each with its value.

A claim is worth what its anchors are worth that the summary does not hold yet, and what its speech act is worth: a
decision, a promise, an open question, a limit, a correction. The user's words count in full. The assistant's count
when they promise or give something new and exact in its own name; its questions and its advice do not (they matter
when the user adopts them, and then the user says so).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from nitka.models.extract.anchors import Anchor, mark
from nitka.models.extract.lexicon import Lexicon, language, lexicon
from nitka.models.extract.text import Sentence, Word, pieces, segments, sentence, telling
from nitka.types import Message

ACTS = ("decide", "promise", "open", "close", "limit", "correct", "move", "identity", "advice", "commit", "unreal")
USER = {"decide": 1.5, "promise": 1.3, "open": 2.2, "limit": 1.4, "correct": 0.6, "identity": 0.8, "close": 0.6}
ASSISTANT = {"promise": 1.2, "commit": 0.3}
LONG = 6_000  # characters; of a longer message only the sentences that look most telling are read closely
LONG_SENTENCES = 40
KNOWN = 0.12  # what is left of an anchor's weight when the summary holds it already
ASKED = 0.45  # of what is only asked about
ADVISED = 0.3
UNREAL = 0.3
PLAIN = 0.5  # of an assistant's figures that nothing commits it to


@dataclass(slots=True)
class Claim:
    """Words `[start, end)` of one sentence of one message, and their worth."""

    read: Sentence
    start: int
    end: int
    anchors: list[Anchor]
    acts: set[str]
    seq: int
    said_by: str
    lexicon: Lexicon
    value: float = 0.0
    label: bool = False  # has a content word of its own beside its anchors

    @property
    def words(self) -> list[Word]:
        return self.read.words[self.start : self.end]

    @property
    def stems(self) -> set[str]:
        return {word.stem for word in self.words if word.content}


@dataclass(slots=True)
class Known:
    """What is already written: stems of all words of the present lines, and names seen."""

    stems: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    def learn(self, claim: Claim) -> None:
        self.stems |= {word.stem for word in claim.words}

    def holds(self, anchor: Anchor) -> bool:
        return anchor.keys <= self.stems


def read_message(message: Message, names: set[str]) -> list[tuple[Sentence, list[Anchor]]]:
    """The message's sentences with their anchors. `names` are stems that are known to be names, wherever they stand."""
    lex = lexicon(language(message.text))
    read = []
    text = message.text
    for piece in pieces(text, lex) if len(text) <= LONG else telling(text, lex, LONG_SENTENCES):
        one = sentence(piece, lex)
        for word in one.words:
            if word.text[0].isupper() and word.stem in names and not word.tags & {"function", "link"}:
                word.tags.add("name")
        read.append((one, mark(one, lex)))
    return read


def claims(message: Message, known: Known, answered: bool) -> list[Claim]:
    """Every segment of the message as a claim with its worth, in order. `answered`: the slice holds an answer to
    what it asks.
    """
    lex = lexicon(language(message.text))
    found = []
    for one, anchors in read_message(message, known.names):
        for start, end in segments(one):
            inside = [anchor for anchor in anchors if start <= anchor.start < end]
            acts = {tag for tag, at, _ in one.phrases if tag in ACTS and start <= at < end}
            claim = Claim(one, start, end, inside, acts, message.seq, message.role, lex)
            claim.label = any(word.content and word.anchor < 0 for word in claim.words)
            claim.value = worth(claim, known, answered)
            found.append(claim)
    return found


def worth(claim: Claim, known: Known, answered: bool) -> float:
    """How much a reader would miss the claim: about 0 for small talk, 1.5 for one plain fact, 6 for a promise with
    a name and a date.
    """
    exact = sum(anchor.weight * (KNOWN if known.holds(anchor) else 1.0) for anchor in claim.anchors)
    acts = claim.acts
    if claim.said_by == "assistant":
        return _assistant(claim, exact)
    act = _acted(claim, USER, known)
    if claim.read.asks and "open" not in acts:
        exact *= ASKED
        act = 0.0 if answered else min(act, 1.0)
    total = exact + act
    return total * UNREAL if "unreal" in acts else total


def _assistant(claim: Claim, exact: float) -> float:
    if claim.read.asks:
        return 0.0
    promised = "promise" in claim.acts and ("commit" in claim.acts or not claim.acts & {"advice"})
    committed = "commit" in claim.acts or "commit" in _acts_of(claim.read)
    act = ASSISTANT["promise"] * (promised and _substance(claim) >= 2) + ASSISTANT["commit"] * (committed and exact > 1)
    if not committed and not promised:
        exact *= PLAIN
        if "advice" in claim.acts or "advice" in _acts_of(claim.read):
            exact *= ADVISED
    return exact + act


def _acts_of(read: Sentence) -> set[str]:
    return {tag for tag, _, _ in read.phrases if tag in ACTS}


def _acted(claim: Claim, weights: dict[str, float], known: Known) -> float:
    """The worth of the speech acts: the best in full, others a third; nothing without words of substance that are
    new.
    """
    found = sorted((weights[act] for act in claim.acts if act in weights), reverse=True)
    if not found:
        return 0.0
    fresh = sum(1 for word in claim.words if word.content and word.stem not in known.stems)
    substance = min(1.0, (fresh + 0.5 * (_substance(claim) - fresh)) / 2.5)
    return (found[0] + sum(found[1:]) / 3) * substance


def _substance(claim: Claim) -> int:
    return sum(1 for word in claim.words if word.content and len(word.low) > 2)


def present(texts: Sequence[str]) -> Known:
    """What the present lines hold."""
    known = Known()
    for text in texts:
        lex = lexicon(language(text))
        one = sentence(text, lex)
        known.stems |= {word.stem for word in one.words}
        known.names |= {word.stem for word in one.words[1:] if word.text[0].isupper()}
    return known
