"""What a reader would miss: the segments of a message as claims, each with its value.

A claim is worth what its anchors are worth that the summary does not hold yet, and what its speech act is worth: a
decision, a promise, an open question, a limit, a correction. The user's words count in full. The assistant's count
when they promise or give something new and exact in its own name; its questions and its advice do not (they matter
when the user adopts them, and then the user says so).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from nitka.models.extract.anchors import Anchor, Kind, mark
from nitka.models.extract.lexicon import SPACED, Lexicon, fold, language, lexicon, script
from nitka.models.extract.text import Sentence, Word, pieces, segments, sentence, telling
from nitka.types import Message

INSIDE = re.compile(r"(?<=[\w,;] )[A-ZА-ЯЁÀ-Þ]\w+")
ACTS = (
    "strict",
    "decide",
    "promise",
    "open",
    "close",
    "limit",
    "correct",
    "move",
    "identity",
    "advice",
    "commit",
    "unreal",
    "go",
    "other",
)
USER = {
    "strict": 2.2,
    "decide": 1.6,
    "promise": 2.4,
    "open": 2.2,
    "limit": 1.4,
    "correct": 1.2,
    "identity": 0.8,
    "close": 0.6,
}
UNANCHORED = {**USER, "correct": 0.5}  # "now", "instead" beside nothing exact
ASSISTANT = {"promise": 1.8, "commit": 0.3}
QUOTATION = re.compile(r"«[^«»\n]{1,400}»|“[^“”\n]{1,400}”|(?<!\w)\"(?=\S)[^\"\n]{1,400}\"(?!\w)")
CONDENSED = re.compile(r"\[…[^\[\]\n]{1,60}…\]")  # a mark where a text was shortened says nothing
QUOTED_WORDS = 4  # from this many on a quotation is what somebody said, not a title
LONG = 6_000  # characters; of a longer message only the sentences that look most telling are read closely
LONG_SENTENCES = 40
LATIN_LANGUAGES = ("", *SPACED)
SHORT = 40  # characters
KNOWN = 0.12  # what is left of an anchor's weight when the summary holds it already
ASKED = 0.45  # of what is only asked about
ADVISED = 0.3
ABOUT = 0.5  # of something new that the user states of a person
OPENING = 1.6  # of what opens the talk: it tells what it is about
OPENING_WORDS = 3  # of substance, in its sentence
SAYING = 2  # words of substance, from which on an act without anything exact says something
CLEAR = ("strict", "open", "decide")  # but a ban, a question and a choice say it in two
ABOUT_TALK = {"talk", "request", "daypart", "unit", "polite"}
UNREAL = 0.3  # of jokes, similes and old stories
PLAIN: dict[Kind, float] = {
    "name": 0.8,
    "code": 0.8,
    "title": 0.2,
    "date": 0.5,
}  # of what nothing commits the assistant to
EXACT = ("name", "code", "title")  # what advice tells too: "ask for Marguerite"
FIGURE = 0.25  # of its other figures: sums it worked out


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
    read_anchors: list[Anchor] = field(default_factory=list)  # of the whole sentence
    plain: bool = False  # a statement with nothing exact in it and no act: worth a line only while there is room
    label: bool = False  # has a content word of its own beside its anchors
    beside: set[str] = field(default_factory=set)  # stems of the two clauses before it in the message
    committed: bool = False  # what stands around it speaks for a service: a booking, a case, a guarantee
    opens: bool = False  # stands in the sentence that opens the talk
    before: list[Anchor] = field(default_factory=list)  # anchors of those
    around: set[str] = field(default_factory=set)  # acts of those

    @property
    def words(self) -> list[Word]:
        return self.read.words[self.start : self.end]

    @property
    def span(self) -> range:
        return range(self.start, self.end)

    @property
    def stems(self) -> set[str]:
        return {word.stem for word in self.words if word.content}


@dataclass(slots=True)
class Known:
    """What is already written: the present lines as claims, their stems line by line and in all, and the stems of
    names seen.
    """

    standing: list[Claim] = field(default_factory=list)
    lines: list[set[str]] = field(default_factory=list)
    stems: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)

    heard: set[str] = field(default_factory=set)  # stems of what the user says in the slice, written or not
    tongue: str = ""  # the language of the talk, for a message too short to tell

    def lexicon(self, text: str) -> Lexicon:
        """The lexicon a text is read with: its own, or where it is short and in Latin script, that of the talk."""
        own = language(text)
        return lexicon(
            self.tongue if len(text) < SHORT and own not in ("ru", "zh") and self.tongue not in ("ru", "zh") else own
        )

    def line_lexicon(self, text: str) -> Lexicon:
        """The lexicon a present line is read with: that of the lines together, unless its script is another."""
        return lexicon(self.tongue if script(text) == script(self.tongue) else language(text))

    def learn(self, stems: set[str]) -> None:
        self.lines.append(stems)
        self.stems |= stems

    def holds(self, anchor: Anchor) -> bool:
        return anchor.keys <= self.stems and any(anchor.keys <= line for line in self.lines)


def names_in(message: Message, lex: Lexicon) -> set[str]:
    """Stems of words written with a capital where only a name is, so that they are known where any word is."""
    lows = map(fold, INSIDE.findall(message.text[:LONG]))
    return {lex.stem(low) for low in lows if low not in lex.single and not lex.nouns_capitalised}


def read_message(message: Message, names: set[str], lex: Lexicon) -> list[tuple[Sentence, list[Anchor]]]:
    """The message's sentences with their anchors. `names` are stems that are known to be names, wherever they stand."""
    read = []
    text = CONDENSED.sub("\n", message.text)
    text = text if message.role == "user" else QUOTATION.sub(_unquoted, text)
    for piece in pieces(text, lex) if len(text) <= LONG else telling(text, lex, LONG_SENTENCES):
        one = sentence(piece, lex)
        for word in one.words:
            if word.text[0].isupper() and word.stem in names and not word.tags & {"function", "link"}:
                word.tags.add("name")
        read.append((one, mark(one, lex)))
    return read


def _unquoted(quotation: re.Match[str]) -> str:
    """A title stays; what an answer quotes at length belongs to whoever said it, and was read there."""
    return " … " if len(quotation.group().split()) >= QUOTED_WORDS else quotation.group()


def claims(message: Message, known: Known, lex: Lexicon, *, answered: bool) -> list[Claim]:
    """Every segment of the message as a claim with its worth, in order. `answered`: the slice holds an answer to
    what it asks.
    """
    found = []
    for one, anchors in read_message(message, known.names, lex):
        for start, end in segments(one):
            inside = [anchor for anchor in anchors if start <= anchor.start < end]
            acts = {tag for tag, at, _ in one.phrases if tag in ACTS and start <= at < end}
            claim = Claim(one, start, end, inside, acts, message.seq, message.role, lex, read_anchors=anchors)
            exact = {at for at, anchor in enumerate(anchors) if anchor.kind in ("name", "title", "code")}
            claim.label = any(w.content and not w.valued and w.anchor not in exact for w in claim.words)
            found.append(claim)
    _hand_on(found)
    _look_around(found)
    first = _first_said(found) if lex.code and not message.seq and not known.lines else None
    for claim in found:
        claim.opens = claim.read is first and not any("polite" in word.tags for word in claim.words)
        claim.committed = "commit" in (acts_of(claim.read) | claim.around)
        claim.value = worth(claim, known, answered)
    if message.role == "user":
        known.heard = known.heard.union(*(keys_of(claim) for claim in found))
    return found


def _first_said(found: Sequence[Claim]) -> Sentence | None:
    """The first sentence that says something beside politeness."""
    for claim in found:
        words = (word for word in claim.read.words if word.content and not word.valued and len(word.low) > 2)
        told = {word.stem for word in words if "polite" not in word.tags}
        if len(told) >= OPENING_WORDS:
            return claim.read
    return None


def _look_around(found: Sequence[Claim]) -> None:
    """Give each claim the words and acts of the two clauses before it."""
    for at, claim in enumerate(found):
        near = found[max(0, at - 2) : at]
        claim.beside = set().union(*(other.stems for other in near))
        claim.around = set().union(*(other.acts for other in near))
        claim.before = [anchor for other in near for anchor in other.anchors]


def _hand_on(found: Sequence[Claim]) -> None:
    """A bare mark ("we never decided", «вопрос открыт») says nothing alone: what it marks is the clause before it,
    or after a colon.
    """
    for at, claim in enumerate(found):
        for act in claim.acts & {"open", "close", "strict", "promise"}:
            if claim.anchors or _beside(claim, act) > (act in ("open", "close")):
                continue
            near = [
                other
                for other in (*found[at + 1 : at + 3], *reversed(found[max(0, at - 3) : at]))
                if _beside(other, act) > 1
            ]
            inside = [other for other in near if other.read is claim.read]
            for other in (inside or near)[:1]:
                claim.acts.discard(act)
                other.acts.add(act)


def _beside(claim: Claim, act: str) -> int:
    """How many words of content a claim has besides the words that mark the act."""
    marks = {i for tag, at, size in claim.read.phrases if tag == act for i in range(at, at + size)}
    return sum(1 for at in range(claim.start, claim.end) if claim.read.words[at].content and at not in marks)


def worth(claim: Claim, known: Known, answered: bool) -> float:
    """How much a reader would miss the claim: about 0 for small talk, 1.5 for one plain fact, 6 for a promise with
    a name and a date.
    """
    new = [(anchor, anchor.weight * (KNOWN if known.holds(anchor) else 1.0)) for anchor in claim.anchors]
    said = [word.stem for word in claim.words if word.content and not word.valued]
    if len(said) > 1 and len(set(said)) == 1:  # "test test 123"
        return 0.0
    if claim.said_by == "assistant":
        return 0.0 if _echoes(claim, known) else _assistant(claim, new)
    exact, acts = sum(weight for _, weight in new), claim.acts
    act = _acted(claim, USER if claim.anchors else UNANCHORED, known)
    if claim.read.asks and "open" not in acts:
        exact *= ASKED
        act = 0.0 if answered else min(act, 1.0)
    total = exact + act + ABOUT * _about(claim, known) + OPENING * claim.opens * min(1.0, _substance(claim) / 3)
    if "unreal" in acts_of(claim.read):
        return total * UNREAL
    claim.plain = _states(claim, known)
    return total


def _states(claim: Claim, known: Known) -> bool:
    """Whether the clause tells something of a person, a thing, a plan or a wish: two words of substance that are not
    about the talk itself, one of them new; no question, no request, no remark on the one spoken to. Only where the
    lexicon knows the words of talk.
    """
    tags = set().union(*(word.tags for word in claim.words))
    if claim.read.asks or not claim.lexicon.talks or "polite" in tags or claim.words[0].tags & {"second", "lead"}:
        return False
    if _requests(claim) or _in_passing(claim):
        return False
    told = {word.stem for word in claim.words if word.content and word.tags.isdisjoint(ABOUT_TALK)}
    told = {stem for stem in told if len(stem) > 1}
    return len(told) >= SAYING and not told <= known.stems


def _in_passing(claim: Claim) -> bool:
    """Whether it is said with a laugh, in a simile (a wish is none: "I'd like a seat"), or as an aside inside it."""
    light = {tag for tag, at, _ in claim.read.phrases if tag == "levity" or (tag == "aside" and at > claim.start)}
    return bool(light) and ("aside" in light or "decide" not in claim.acts)


def _requests(claim: Claim) -> bool:
    """Whether the clause opens with what is asked of the one spoken to: a word of request, or a command, which in
    English is a word of content with a determiner right after it ("draft a note").
    """
    words = [word for word in claim.words if "filler" not in word.tags][:2]
    if not words or "request" in words[0].tags or _orders(claim):
        return bool(words)
    return len(words) > 1 and words[0].content and not words[0].tags - {"talk"} and "determiner" in words[1].tags


def _assistant(claim: Claim, new: Sequence[tuple[Anchor, float]]) -> float:
    """The assistant's words: what it promises, and what it states for the service it speaks for; sums and advice
    hardly count.
    """
    if claim.read.asks:
        offered = [weight for anchor, weight in new if anchor.kind in ("date", "code", "name")]
        return ASKED * sum(offered) if claim.committed else 0.0
    advice = "advice" in claim.acts or _orders(claim)
    if not claim.committed or advice:
        exact = sum(
            weight * PLAIN.get(anchor.kind, FIGURE) * (ADVISED if advice and anchor.kind not in EXACT else 1.0)
            for anchor, weight in new
        )
    else:
        exact = sum(weight for _, weight in new)
    promised = not advice and _promises(claim) and _substance(claim) >= (2 if claim.anchors else SAYING + 1)
    return exact + ASSISTANT["promise"] * promised + ASSISTANT["commit"] * (claim.committed and exact > 1)


def _promises(claim: Claim) -> bool:
    """Whether the speaker promises something himself: "I'll send", «напомню», not "you promised"."""
    lex = claim.lexicon
    if any("own" in word.tags for word in claim.words):
        return "promise" in claim.acts
    words = claim.read.words
    marks = [at + size - 1 for tag, at, size in claim.read.phrases if tag == "promise" and at in claim.span]
    return any(words[at].low.endswith(lex.own) for at in marks) if lex.own else bool(marks) and lex.code != "en"


def _orders(claim: Claim) -> bool:
    """Whether the clause opens with a command: what the user is told to do."""
    first = claim.words[0]
    return bool(claim.lexicon.imperative) and first.content and first.low.endswith(claim.lexicon.imperative)


def _echoes(claim: Claim, known: Known) -> bool:
    """Whether an answer only says again what the user has just said, or what one line holds."""
    said = {word.stem for word in claim.words if word.content and len(word.low) > 2}
    said = said.union(*(anchor.keys for anchor in claim.anchors))
    return said <= known.heard or any(said <= line for line in known.lines)


def acts_of(read: Sentence) -> set[str]:
    return {tag for tag, _, _ in read.phrases if tag in ACTS}


def _acted(claim: Claim, weights: dict[str, float], known: Known) -> float:
    """The worth of the speech acts: the best in full, others a third; nothing without words of substance that are
    new.
    """
    if not claim.anchors and _substance(claim) < SAYING and claim.acts.isdisjoint(CLEAR) and not claim.lexicon.parts:
        return 0.0
    found = sorted((weights[act] for act in claim.acts if act in weights), reverse=True)
    if not found:
        return 0.0
    fresh = sum(1 for word in claim.words if word.content and word.stem not in known.stems)
    substance = (
        min(1.0, (fresh + 0.5 * (_substance(claim) - fresh)) / 2.5) if not claim.lexicon.parts else min(fresh, 1)
    )
    return (found[0] + sum(found[1:]) / 3) * substance


def _about(claim: Claim, known: Known) -> bool:
    """Whether the clause opens with a person and says something new of them."""
    if claim.read.asks:
        return False
    opening = claim.words[:3] if not claim.lexicon.parts else []
    person = any("role" in word.tags or word.text[0].isupper() and word.stem in known.names for word in opening)
    fresh = [word for word in claim.words if word.content and word.anchor < 0 and word.stem not in known.stems]
    return person and len(fresh) >= 2


def _substance(claim: Claim) -> int:
    return sum(1 for word in claim.words if word.content and len(word.low) > 2)


def keys_of(claim: Claim) -> set[str]:
    """Every stem of a claim, and the keys of its anchors."""
    return {word.stem for word in claim.words}.union(*(anchor.keys for anchor in claim.anchors))


def present(texts: Sequence[str], rows: Sequence[int] = ()) -> Known:
    """What the present lines hold. Their stems are known, and the names among them. `rows` tells the first row of each:
    what stands `beside` a line are the stems of the line before it if that was said in the same row.
    """
    known = Known(tongue=language("\n".join(texts)))
    for at, text in enumerate(texts):
        lex = known.line_lexicon(text)
        one = sentence(text, lex)
        line = Claim(one, 0, len(one.words), mark(one, lex), acts_of(one), at, "user", lex)
        if at and rows and rows[at] == rows[at - 1]:
            line.beside = known.standing[-1].stems
        known.standing.append(line)
        known.learn(keys_of(known.standing[-1]))
        known.names |= {word.stem for word in one.words[1:] if word.text[0].isupper()}
    return known
