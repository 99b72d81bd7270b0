"""Sentences and clauses: where they begin and end, what is quoted or retold, what asks.

A clause holds one predicate with what belongs to it. Commas, dashes and conjunctions are only candidates: a piece
without a predicate of its own ("please", "at the school gate") goes to the clause before it, so word order and
punctuation matter little. No clause is longer than `LONGEST` tokens: what looks through a clause from each of its
words stays linear in the text.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from nitka.watch.lexicon import Found, Hit, Lexicon
from nitka.watch.tokens import LINK, MARK, NUMBER, WORD, Token

_END = frozenset(".!?…\n")
_PAUSE = frozenset(",;:—–()[]-|")
_OPEN = {"«": "»", "“": "”", "„": "“", '"': '"'}
_TOP = frozenset("com org net info ru рф example uk de io me shop site online xyz top app biz link club live".split())
_BRIEF = 3  # words
_SHORT = 7  # tokens
LONGEST = 128  # tokens of a clause; people write no longer ones
_JOINING = frozenset({"AND", "IF", "THAT"})
_SUBJECTS = frozenset({"I", "YOU", "WE", "THEY", "HE", "SHE"})


class Reading(NamedTuple):
    """The tokens of a message with what the lexicon says of them. `grammar[i]` holds the capital concepts at token i,
    `at[i]` all hits.
    """

    tokens: Sequence[Token]
    forms: Sequence[str]
    grammar: Sequence[frozenset[str]]
    at: Sequence[Sequence[Hit]]  # hits by first token
    verb: Sequence[bool]
    numbers: Sequence[int]  # tokens that are numbers, in digits or words
    framed: bool  # some word says that something is retold
    links: tuple[int, ...] = ()  # tokens that are, or begin, the end of a web address

    def numbers_in(self, start: int, end: int) -> Sequence[int]:
        """The numbers among the tokens `[start, end)`."""
        return _among(self.numbers, start, end)

    def links_in(self, start: int, end: int) -> Sequence[int]:
        """The links among the tokens `[start, end)`."""
        return _among(self.links, start, end)


def _among(places: Sequence[int], start: int, end: int) -> Sequence[int]:
    return places[bisect_left(places, start) : bisect_left(places, end)] if places else ()


class Clause(NamedTuple):
    """Tokens `[start, end)`. `retold`: quoted, reported or pasted, so nothing in it is said by the speaker. `brief`:
    the whole sentence is this clause and has at most three words. `open`: it ends the sentence, and no mark says
    whether it tells or asks.
    """

    start: int
    end: int
    question: bool
    coordinated: bool  # begins with "and" and the like: a verb without subject goes on with the clause before
    subordinate: str  # IF, THAT or empty
    retold: bool
    brief: bool = False
    open: bool = False


class Sentence(NamedTuple):
    """Tokens `[start, end)`; `place` is its code points `[from, to)` in the message."""

    start: int
    end: int
    place: tuple[int, int]
    clauses: tuple[Clause, ...] = ()


_NONE: frozenset[str] = frozenset()
NUMERALS = frozenset(f"N{n}" for n in (*range(21), *range(30, 100, 10)))
_AUXILIARY = ("BE", "DO", "HAVE", "CAN", "WILL")
_ASKED = ("I", "YOU", "YOUR", "WE", "HE", "SHE", "THEY", "ANY", "IT", "MY", "THERE", "ARTICLE", "PERSON")  # after it
_UNDER = frozenset({"IF", "THAT"})
_BEFORE_ASKING = frozenset({"FILLER", "AND", "PREP"})  # may stand before a question word
_OWN_SUBJECT = ("I", "YOU", "WE", "HE", "SHE", "THEY", "IT", "HERE")


def read(tokens: Sequence[Token], forms: Sequence[str], found: Found, lexicon: Lexicon) -> Reading:
    """A message's tokens with what was found at them; unknown words with a verb's ending are taken for verbs."""
    verb, known, endings = found.verb, lexicon.known, lexicon.suffixes
    numbers, links, odd = list[int](), list[int](), False
    for i, token in enumerate(tokens):
        form, grammar = forms[i], found.grammar[i]
        if token.kind == LINK or (form == "." and _domain(tokens, i)):
            links.append(i)
        if token.kind == NUMBER or not grammar.isdisjoint(NUMERALS):
            numbers.append(i)
        if grammar and ("RETOLD" in grammar or "PASTED" in grammar):
            odd = True
        if endings and not verb[i] and token.kind == WORD and len(form) > 4 and form not in known:
            verb[i] = form.endswith(endings)
    return Reading(tokens, forms, found.grammar, found.at, verb, tuple(numbers), odd, tuple(links))


def _domain(tokens: Sequence[Token], dot: int) -> bool:
    """Whether the full stop at `dot` stands inside a bare web address ("pay-out.example/88")."""
    if not 0 < dot < len(tokens) - 1:
        return False
    before, after = tokens[dot - 1], tokens[dot + 1]
    if before.end != tokens[dot].start or after.start != tokens[dot].end or after.kind != WORD:
        return False
    path = dot + 2 < len(tokens) and tokens[dot + 2].form == "/" and tokens[dot + 2].start == after.end
    return path or after.form in _TOP


def sentences(reading: Reading) -> list[Sentence]:
    """Cut the message into sentences with their clauses."""
    cut: list[Sentence] = []
    start, tokens = 0, reading.tokens
    for index, token in enumerate(tokens):
        if token.kind == MARK and token.form in _END and _ends(reading, index):
            cut.append(_sentence(reading, start, index + 1))
            start = index + 1
    if start < len(tokens):
        cut.append(_sentence(reading, start, len(tokens)))
    return _clauses_of(reading, [s for s in cut if s.end > s.start])


def _sentence(reading: Reading, start: int, end: int) -> Sentence:
    tokens = reading.tokens
    while start < end and tokens[start].form == "\n":
        start += 1
    last = end
    while last > start and tokens[last - 1].form == "\n":
        last -= 1
    place = (tokens[start].start, tokens[last - 1].end) if start < last else (0, 0)
    return Sentence(start, last, place)


def _ends(reading: Reading, index: int) -> bool:
    tokens = reading.tokens
    token = tokens[index]
    if index + 1 == len(tokens) or token.form == "\n":
        return True
    following = tokens[index + 1]
    if following.form in _END:
        return False
    if token.form in ".…":
        before = tokens[index - 1] if index else None
        short = before is not None and before.kind == WORD and "ABBREVIATION" in reading.grammar[index - 1]
        return following.start > token.end and not short
    return True


def _clauses_of(reading: Reading, whole: Sequence[Sentence]) -> list[Sentence]:
    quoted = _quoted(reading)
    retold, done = False, []
    for sentence in whole:
        clauses, retold = _clauses(reading, sentence, quoted, retold)
        done.append(Sentence(sentence.start, sentence.end, sentence.place, clauses))
    return done


def _quoted(reading: Reading) -> Sequence[bool] | None:
    """For each token, whether it stands inside a closed pair of quotation marks. One pass."""
    tokens = reading.tokens
    if not any(t.form in _OPEN for t in tokens if t.kind == MARK):
        return None
    inside, opened, closing = [False] * len(tokens), -1, ""
    for i, token in enumerate(tokens):
        if opened >= 0 and token.form == closing:
            if i - opened > 3:  # a name or a title in quotation marks is not a quotation
                inside[opened : i + 1] = [True] * (i + 1 - opened)
            opened = -1
        elif opened < 0 and token.kind == MARK and token.form in _OPEN:
            opened, closing = i, _OPEN[token.form]
    return inside


def _clauses(
    reading: Reading, sentence: Sentence, quoted: Sequence[bool] | None, retold: bool
) -> tuple[tuple[Clause, ...], bool]:
    """The clauses of a sentence, and whether what follows it is a pasted text."""
    bounds = _bounds(reading, sentence)
    last = _last_mark(reading, sentence)
    asks = last == "?"
    frame = _frame(reading, sentence) if reading.framed else 0
    brief = len(bounds) == 1 and _brief(reading, sentence)
    clauses = []
    asked = _asked(reading, bounds) if asks else sentence.end
    for start, end in bounds:
        is_quoted = quoted is not None and sum(quoted[start:end]) * 2 > end - start
        question = end >= asked and asks or _inverted(reading, start, end, alone=len(bounds) == 1)
        head = reading.grammar[start] if start < end else _NONE
        under = "IF" if "IF" in head else "THAT" if "THAT" in head else ""
        told = retold or frame > 0 or is_quoted
        still = end == sentence.end and last == ""
        clauses.append(Clause(start, end, question, "AND" in head, under, told, brief, still))
    return tuple(clauses), retold or frame == 2


def _asked(reading: Reading, bounds: Sequence[tuple[int, int]]) -> int:
    """The end of the first clause that a question mark at the end of the sentence speaks of: the last one, and the one
    that it hangs on ("can I have the code that came?", «сколько вам, если не секрет?»).
    """
    place = len(bounds) - 1
    while place > 0 and not _UNDER.isdisjoint(reading.grammar[bounds[place][0]]):
        place -= 1
    return bounds[place][1]


def _brief(reading: Reading, sentence: Sentence) -> bool:
    if sentence.end - sentence.start > _BRIEF + 6:
        return False
    return sum(token.kind != MARK for token in reading.tokens[sentence.start : sentence.end]) <= _BRIEF


def _last_mark(reading: Reading, sentence: Sentence) -> str:
    """ "?" if the sentence ends as a question, "." if it ends with any other full stop, else nothing."""
    found = ""
    for index in range(sentence.end - 1, max(sentence.end - 5, sentence.start - 1), -1):
        token = reading.tokens[index]
        if token.kind != MARK:
            break
        if token.form == "?":
            return "?"
        if token.form in ".!":
            found = "."
    return found


def _frame(reading: Reading, sentence: Sentence) -> int:
    """0: the speaker's own words; 1: this sentence is retold; 2: so is all that follows ("I got this:")."""
    for index in range(sentence.start, sentence.end):
        found = reading.grammar[index]
        if "PASTED" in found:
            return 2
        if "RETOLD" in found:
            colon = any(reading.tokens[i].form in ":\n" for i in range(index, sentence.end))
            return 2 if colon else 1
    return 0


def _bounds(reading: Reading, sentence: Sentence) -> list[tuple[int, int]]:
    """Cut at pauses and conjunctions, then give pieces without a predicate to their neighbour on the left."""
    pieces: list[tuple[int, int]] = []
    start = sentence.start
    grammar, tokens = reading.grammar, reading.tokens
    for index in range(sentence.start, sentence.end):
        if grammar[index] and index > start and not _JOINING.isdisjoint(grammar[index]):
            cut = index
        elif tokens[index].kind == MARK and tokens[index].form in _PAUSE:
            cut = index + 1
        else:
            continue
        pieces.append((start, cut))
        start = cut
    if start < sentence.end:
        pieces.append((start, sentence.end))
    return [part for piece in _merge(reading, pieces) for part in _parts(*piece)]


def _parts(start: int, end: int) -> list[tuple[int, int]]:
    """A piece cut so that none is longer than `LONGEST`."""
    return [(at, min(at + LONGEST, end)) for at in range(start, end, LONGEST)]


def _merge(reading: Reading, pieces: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    pending = False  # the last one has no predicate yet
    for start, end in pieces:
        whole = _predicate(reading, start, end)
        if merged and (pending or not whole):
            merged[-1] = (merged[-1][0], end)
            pending = pending and not whole
        else:
            merged.append((start, end))
            pending = not whole
    return merged


def _predicate(reading: Reading, start: int, end: int) -> bool:
    """Whether a piece has a verb, or an English subject (whose verb may be one we do not know)."""
    if True in reading.verb[start:end]:
        return True
    for i in range(start, end):
        found = reading.grammar[i]
        if found and not _SUBJECTS.isdisjoint(found) and reading.forms[i].isascii():
            return True
    return False


def _auxiliary(reading: Reading, index: int, end: int) -> bool:
    """Whether an auxiliary stands here with its subject after it."""
    after, here = reading.grammar[index + 1] if index + 1 < end else _NONE, reading.grammar[index]
    if "ARTICLE" in after and here.isdisjoint(("BE", "CAN", "WILL")):
        return reading.forms[index] in ("does", "did", "has")  # "have a", "do the", "got a" begin no question
    return not here.isdisjoint(_AUXILIARY) and not after.isdisjoint(_ASKED)


def _inverted(reading: Reading, start: int, end: int, *, alone: bool) -> bool:
    """Whether the clause begins as a question does: a question word, or an auxiliary before its subject. `alone`: it
    is the whole sentence, so a word that may also join clauses («когда») asks.
    """
    seen = 0
    for index in range(start, min(end, start + 6)):
        found = reading.grammar[index]
        if "WHETHER" in found:
            return True
        if reading.tokens[index].kind == MARK or not found.isdisjoint(_BEFORE_ASKING):
            continue
        if "WH" in found:
            return (
                "THAT" not in found
                or (alone and "WHICH" in found)
                or any(_auxiliary(reading, i, end) for i in range(index + 1, min(end, index + 4)))
            )
        if seen == 0 and not found.isdisjoint(_AUXILIARY) and found.isdisjoint(_OWN_SUBJECT):
            return _auxiliary(reading, index, end)
        seen += 1
        if seen > 1:
            break
    return _asks_within(reading, start, end) or (end - start <= _SHORT and _asks_last(reading, start, end))


def _asks_within(reading: Reading, start: int, end: int) -> bool:
    """Whether a word that asks wherever it stands comes before any verb: «родители где сейчас», «ты в каком классе»."""
    for index in range(start, end):
        if reading.verb[index]:
            return False
        if "WHICH" in reading.grammar[index] and "THAT" not in reading.grammar[index]:
            return True
    return False


def _asks_last(reading: Reading, start: int, end: int) -> bool:
    """Whether the last word of the clause is a question word: «а мама где», «тебе сколько»."""
    last = next((i for i in range(end - 1, start, -1) if reading.tokens[i].kind != MARK), start)
    if any("NOT" in reading.grammar[i] for i in range(max(start, last - 2), last)):
        return False  # «ни с кем»
    return "WH" in reading.grammar[last] and not reading.grammar[last] & {"THAT", "ANY", "NOT"}
