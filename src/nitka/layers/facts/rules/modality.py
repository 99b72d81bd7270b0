"""In what sense something is said: asked, supposed, past, passing, reported, joked, to be kept out, denied.

Each cue is data (`cues.toml`): a pattern, the sense it gives, and how far it reaches: its clause, from itself to the
end of the sentence (or to a word that resets, such as "but"), or the whole sentence. A rule then says which senses it
can live with.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from nitka.layers.facts.rules.text import Sentence

_FIRST_PERSON = re.compile(r"(?i)^\W*(?:i|i'?m|i'?ve|we|we'?re|my|our|я|мы|мне|у меня|у нас|мой|моя|мои)\b")


@dataclass(frozen=True, slots=True)
class Cue:
    sense: str
    reach: str  # "clause", "after" or "sentence"
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class Reach:
    """A stretch of a sentence said in one sense."""

    sense: str
    start: int
    end: int


def senses(reaches: tuple[Reach, ...], place: int) -> frozenset[str]:
    """The senses in force at a place of the sentence."""
    return frozenset(reach.sense for reach in reaches if reach.start <= place < reach.end)


def reaches(sentence: Sentence) -> tuple[Reach, ...]:
    """Every stretch of the sentence that is not plain statement."""
    table = _cues()
    resets = [match.start() for match in table.reset.finditer(sentence.text)]
    found = [
        _reach(cue, match, sentence, resets) for cue in table.cues for match in cue.pattern.finditer(sentence.text)
    ]
    return (*found, *_asked(sentence, table.asking))


def denied(text: str) -> bool:
    """Whether these words carry a negation."""
    return _cues().denial.search(text) is not None


def ended(text: str) -> bool:
    """Whether these words say that something is so no longer."""
    return _cues().ended.search(text) is not None


def _reach(cue: Cue, match: re.Match[str], sentence: Sentence, resets: list[int]) -> Reach:
    if cue.reach == "sentence":
        return Reach(cue.sense, 0, len(sentence.text))
    if cue.reach == "after":
        end = next((place for place in resets if place > match.start() + 2), len(sentence.text))
        return Reach(cue.sense, match.start(), end)
    clause = sentence.clause_at(match.start())
    return Reach(cue.sense, clause.start, max(clause.end, match.end()))


def _asked(sentence: Sentence, asking: re.Pattern[str]) -> list[Reach]:
    """The part of a sentence that is a question: from its question word, or else its last clause."""
    opened = [clause for clause in sentence.clauses if asking.match(sentence.text, clause.start)]
    if opened and _cues().request.match(sentence.text, opened[0].start):
        return [Reach("request", opened[0].start, len(sentence.text))]
    if opened:
        return [Reach("question", opened[0].start, len(sentence.text))] if sentence.asks or opened[0].start == 0 else []
    if not sentence.asks:
        return []
    last = sentence.clauses[-1]
    whole = len(sentence.clauses) == 1 or not _FIRST_PERSON.match(sentence.text)
    return [Reach("question", 0 if whole and len(sentence.clauses) < 3 else last.start, len(sentence.text))]


@dataclass(frozen=True, slots=True)
class _Table:
    cues: tuple[Cue, ...]
    reset: re.Pattern[str]
    asking: re.Pattern[str]
    request: re.Pattern[str]
    denial: re.Pattern[str]
    ended: re.Pattern[str]


@cache
def _cues() -> _Table:
    data = tomllib.loads(files(__package__).joinpath("cues.toml").read_text("utf-8"))
    cues = tuple(
        Cue(sense, reach, re.compile(r"(?i)(?<!\w)(?:" + "|".join(patterns) + r")(?!\w)"))
        for sense, by_reach in data["cues"].items()
        for reach, patterns in by_reach.items()
    )

    def one(name: str) -> re.Pattern[str]:
        return re.compile(r"(?i)(?<!\w)(?:" + "|".join(data[name]) + r")(?!\w)")

    def opening(name: str) -> re.Pattern[str]:
        return re.compile(r"(?i)\W*(?:" + "|".join(data[name]) + r")(?!\w)")

    return _Table(cues, one("reset"), opening("asking"), opening("request"), one("denial"), one("ended"))
