"""Conversations to measure the watch with, and what it says of them.

Every message goes through `parse_json`, with the memory written to JSON and read back between any two. Of a corpus only
the odd half is used (CRC-32 of the id): the other half may be looked at when words are added.
"""

from __future__ import annotations

import json
import math
import random
import re
import statistics
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nitka.watch import parse_json

LOUD = ("medium", "high", "extreme")
HIGH = ("high", "extreme")


class Turn(NamedTuple):
    """One message. `counted`: it belongs to the conversation that is scored, and is not harmless talk put between."""

    speaker: str
    text: str
    role: str = ""
    counted: bool = True


class Given(NamedTuple):
    """One alert; `at` is the place of its message among the counted ones, `author` who wrote that."""

    at: int
    rule: str
    severity: str
    tags: tuple[str, ...]
    author: str


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation as it stands in a corpus. `expect` are rules that must have fired by its end."""

    id: str
    language: str
    label: str
    turns: tuple[Turn, ...]
    expect: frozenset[str] = frozenset()


def alerts(turns: Sequence[Turn], language: str) -> list[Given]:
    """Everything a combination of flags gave, message by message."""
    memory: dict[str, Any] | None = None
    found: list[Given] = []
    counted = -1
    for turn in turns:
        counted += turn.counted
        answer = _ask(turn, language, memory)
        memory = json.loads(json.dumps(answer["memory"]))
        for entry in answer.get("abuse", ()):
            if "rule" in entry:
                found.append(Given(counted, entry["rule"], entry["severity"], tuple(entry["tags"]), turn.speaker))
    return found


def _ask(turn: Turn, language: str, memory: dict[str, Any] | None) -> dict[str, Any]:
    wanted: dict[str, Any] = {"state": True, "memory": memory, "entities": False}
    if turn.speaker:
        wanted["speaker"] = {"id": turn.speaker, "role": turn.role} if turn.role else turn.speaker
    return parse_json({"language": language, "content": turn.text, "settings": wanted})


def corpus(path: Path, half: str = "odd") -> list[Talk]:
    """A JSONL corpus: `{"id", "lang", "label", "turns": [{"s", "t"}]}`; written cases have `expect` and `kind`."""
    talks = []
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        odd = zlib.crc32(case["id"].encode()) % 2 == 1
        if half == "all" or odd == (half == "odd"):
            turns = tuple(Turn(t["s"], t["t"], _role(case, t["s"])) for t in case["turns"])
            talks.append(
                Talk(case["id"], case["lang"], case.get("label", ""), turns, frozenset(case.get("expect", ())))
            )
    return talks


def _role(case: dict[str, Any], speaker: str) -> str:
    told = case.get("kind") == "pos_llm" and speaker == "B"
    return "assistant" if told or speaker == "assistant" else ""


def spliced(talks: Sequence[Talk], length: int, count: int, seed: int = 7) -> Iterator[tuple[Turn, ...]]:
    """`count` conversations of two speakers, each `length` messages long, out of whole dialogues one after another. It
    overstates: nobody changes the subject and the circumstances of life so often.
    """
    shuffled = random.Random(f"{seed}/{length}")
    pool: list[Talk] = []
    for _ in range(count):
        turns: list[Turn] = []
        while len(turns) < length:
            if not pool:
                pool = shuffled.sample(list(talks), len(talks))
            turns += _two(pool.pop().turns)
        yield tuple(turns[:length])


def _two(turns: Sequence[Turn]) -> list[Turn]:
    first = turns[0].speaker if turns else ""
    return [Turn("a" if t.speaker == first else "b", t.text) for t in turns]


def widened(turns: Sequence[Turn], harmless: Sequence[Turn], between: int, seed: str) -> list[Turn]:
    """The conversation with so many harmless messages, of its own speakers, between any two of its turns."""
    drawn = random.Random(seed)
    speakers = sorted({t.speaker for t in turns}) or [""]
    wide: list[Turn] = []
    for place, turn in enumerate(turns):
        wide.append(turn)
        if place + 1 < len(turns):
            start = drawn.randrange(max(1, len(harmless) - between))
            wide += [
                Turn(speakers[k % len(speakers)], t.text, counted=False)
                for k, t in enumerate(harmless[start : start + between])
            ]
    return wide


def right(talk: Talk, given: Sequence[Given]) -> bool:
    """A positive is right when all its rules have fired, a negative when nothing loud did."""
    if talk.expect:
        return talk.expect <= {g.rule for g in given}
    return not any(g.severity in LOUD for g in given)


def loud(given: Sequence[Given], levels: Sequence[str] = LOUD) -> bool:
    return any(g.severity in levels for g in given)


# Fraud.

_FRAUD = {"scam", "extortion", "money_laundering"}
_SWAPPED = {"af006", "af016", "af017", "af095"}  # threads whose two sides are not told apart
_PREFACE = 800  # code points
_GREETING = re.compile(
    r"\b(?:dear|hello|hi|greetings|attention|attn|good (?:day|morning|evening)|sir|madam|compliments?)\b", re.IGNORECASE
)


def fraud_talk(talk: Talk) -> tuple[tuple[Turn, ...], str]:
    """The turns that count, and the suspected side ("" when it is not known which)."""
    turns = list(talk.turns)
    while turns and turns[0].speaker == "scam" and _preface(turns[0].text):
        turns.pop(0)
    outcome = next((i for i, t in enumerate(turns) if t.speaker == "system"), len(turns))
    if talk.id in _SWAPPED:
        return tuple(Turn("", t.text) for t in turns), ""
    return tuple(turns[:outcome]), "counterpart" if talk.language == "ru" else "scam"


def _preface(text: str) -> bool:
    return len(text) < _PREFACE and not _GREETING.search(text[:200])


def first_hit(given: Sequence[Given], suspected: str) -> int:
    """Which message (from 1) gave the first right alert: loud, of the corpus' kind, completed by the suspected side; 0
    if none.
    """
    for one in given:
        if one.severity in LOUD and _FRAUD & set(one.tags) and one.author == suspected:
            return one.at + 1
    return 0


@dataclass(frozen=True, slots=True)
class Fraud:
    """How early and how often fraud was noticed. `hits` hold a message number for each conversation, 0 for none."""

    hits: tuple[int, ...]
    lengths: tuple[int, ...]
    false: int
    harmless: int

    def recall(self, by: int = 1 << 30) -> float:
        return sum(0 < hit <= by for hit in self.hits) / len(self.hits)

    def median(self) -> float:
        return statistics.median([h for h in self.hits if h] or [0])

    def f1(self) -> float:
        found = sum(h > 0 for h in self.hits)
        wrong = len(self.hits) - found
        return 2 * found / max(1, 2 * found + wrong + self.false)

    def weighted_f1(self) -> float:
        """F1 times one less the median penalty for lateness, which is a half at the corpus' median length."""
        pace = math.log(3) / max(1.0, statistics.median(self.lengths) - 1)
        late = [-1 + 2 / (1 + math.exp(-pace * (hit - 1))) for hit in self.hits if hit]
        return self.f1() * (1 - statistics.median(late)) if late else 0.0


def fraud(talks: Sequence[Talk], harmless: Sequence[Talk]) -> Fraud:
    """Measure a corpus of fraud against ordinary conversations of the same language."""
    hits, lengths = [], []
    for talk in talks:
        turns, suspected = fraud_talk(talk)
        hits.append(first_hit(alerts(turns, talk.language), suspected))
        lengths.append(len(turns))
    false = sum(loud([g for g in alerts(t.turns, t.language) if _FRAUD & set(g.tags)]) for t in harmless)
    return Fraud(tuple(hits), tuple(lengths), false, len(harmless))
