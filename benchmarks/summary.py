"""How much of a long conversation is left in 300 tokens after it was folded step by step, offline.

    python benchmarks/summary.py CONVERSATIONS --scorer PATH

CONVERSATIONS is JSONL: `{"id", "lang", "messages": [{"role", "text", "at"}], "planted": [{"seq", "value_any",
"weight", "superseded_by"}]}`. The
scorer is run as it is (`python PATH CONVERSATIONS SUMMARIES`); its table is what is shown. Each conversation is folded
as a session would:
two rows a turn, a fold when more than 12 + slack rows are unfolded. Beside ours stand two baselines with the same
room: the newest text, and
whole sentences that look salient, picked in one go. "With a label" is the share of planted values found that stand in
a line with at least one
word of content besides the value itself: a heap of names and numbers would score low.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import bpe_openai
from rich.console import Console
from rich.table import Table

from nitka.layers.summary import advance
from nitka.models.extract import propose
from nitka.models.extract.lexicon import lexicon
from nitka.models.extract.text import pieces
from nitka.types import Message, Summary

CAP = 300
WINDOW = 12
TOKENS = bpe_openai.get_encoding("o200k_base")


@dataclass(frozen=True, slots=True)
class Case:
    """One conversation with what was planted in it."""

    id: str
    lang: str
    messages: tuple[Message, ...]
    planted: tuple[dict[str, Any], ...]

    @property
    def upto(self) -> int:
        return len(self.messages) - WINDOW


@dataclass(frozen=True, slots=True)
class Result:
    """The summaries of all conversations by one way, and the time of one fold in milliseconds (None: not folded)."""

    name: str
    lines: dict[str, list[str]]
    fold_ms: float | None = None


def count(text: str) -> int:
    return len(TOKENS.encode(text))


def read(path: Path) -> Iterator[Case]:
    for row in map(json.loads, path.read_text("utf-8").splitlines()):
        messages = tuple(
            Message(seq=at, n=at, role=m["role"], text=m["text"], at=datetime.fromisoformat(m["at"]))
            for at, m in enumerate(row["messages"])
        )
        yield Case(row["id"], row["lang"], messages, tuple(row["planted"]))


def ours(cases: Sequence[Case], slack: int) -> Result:
    lines, folds, spent = {}, 0, 0.0
    for case in cases:
        summary = Summary()
        for end in steps(len(case.messages), slack):
            start = time.process_time()
            proposal = propose(summary.lines, case.messages[summary.cursor : end], cap=CAP)
            summary = advance(summary, proposal, cursor=end, cap=CAP, count=count, counter="o200k")
            spent += time.process_time() - start
            folds += 1
        lines[case.id] = [line.text for line in summary.lines]
    return Result(f"nitka offline, slack {slack}", lines, spent / max(folds, 1) * 1e3)


def steps(messages: int, slack: int) -> Iterator[int]:
    """The cursors after each fold of a session that grows by two rows a turn; what is left is folded at the end."""
    cursor = 0
    for head in range(2, messages + 1, 2):
        if head - cursor > WINDOW + slack:
            cursor = head - WINDOW
            yield cursor
    if cursor < messages - WINDOW:
        yield messages - WINDOW


def newest(cases: Sequence[Case]) -> Result:
    """The newest words of what was folded, as many as fit."""
    lines = {}
    for case in cases:
        words = " ".join(message.text for message in case.messages[: case.upto]).split(" ")
        while count(" ".join(words)) > CAP:
            words = words[max(1, len(words) - CAP) :] if len(words) > 2 * CAP else words[1:]
        lines[case.id] = [" ".join(words)]
    return Result("newest text", lines)


def salient(cases: Sequence[Case]) -> Result:
    """Whole sentences with the most figures and capitals for their length, picked from the whole conversation at
    once.
    """
    lines = {}
    for case in cases:
        texts = [message.text for message in case.messages[: case.upto]]
        sentences = [piece for text in texts for piece in pieces(text, lexicon(case.lang))]
        ranked = sorted(range(len(sentences)), key=lambda at: -_signs(sentences[at]))
        chosen: list[int] = []
        for at in ranked:
            if count("\n".join(sentences[i] for i in sorted([*chosen, at]))) <= CAP:
                chosen.append(at)
        lines[case.id] = [sentences[at] for at in sorted(chosen)]
    return Result("salient sentences, at once", lines)


def _signs(sentence: str) -> float:
    return len(re.findall(r"\d+|(?<=[^.!?] )[A-ZА-ЯЁ]\w+", sentence)) / (20 + len(sentence))


def labelled(cases: Sequence[Case], lines: dict[str, list[str]]) -> float:
    """The share of planted values found that stand with a word of content of their own line."""
    found = alone = 0
    for case in cases:
        function = lexicon(case.lang).function
        for item in case.planted:
            held = [rest for line in lines[case.id] for rest in _without(line, item["value_any"])]
            if held and item["seq"] < case.upto:
                found += 1
                alone += not any(_content(rest, function) for rest in held)
    return 1 - alone / found if found else 0.0


def _without(line: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        place = re.search(rf"(?<!\w){re.escape(value)}\w*", line, re.IGNORECASE)
        if place:
            yield line[: place.start()] + " " + line[place.end() :]
            return


def _content(rest: str, function: frozenset[str]) -> bool:
    return any(len(word) > 2 and word not in function for word in re.findall(r"[^\W\d_]+", rest.lower()))


def score(scorer: Path, gold: Path, result: Result) -> dict[str, tuple[float, int]]:
    """What the scorer says: kept share and superseded values shown, by language and in all."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "summaries.jsonl"
        rows = ({"id": name, "lines": lines} for name, lines in result.lines.items())
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
        told = subprocess.run(
            [sys.executable, scorer.name, str(gold.resolve()), str(path)],
            cwd=scorer.resolve().parent,
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.findall(r"^(\w+)\s+kept ([\d.]+)\s+superseded shown (\d+)", told.stdout, re.MULTILINE)
    return {key: (float(kept), int(stale)) for key, kept, stale in found}


def main() -> None:
    parser = argparse.ArgumentParser(description="What is left of long conversations in 300 tokens.")
    parser.add_argument("conversations", type=Path)
    parser.add_argument("--scorer", type=Path, required=True)
    args = parser.parse_args()
    cases = list(read(args.conversations))
    languages = sorted({case.lang for case in cases})
    table = Table(title=f"{len(cases)} conversations, {CAP} tokens (o200k), all but the last {WINDOW} messages folded")
    table.add_column("")
    for name in [*(f"kept {lang}" for lang in languages), "kept", "superseded", "with a label", "tokens", "ms a fold"]:
        table.add_column(name, justify="right")
    for result in (ours(cases, 0), ours(cases, 12), newest(cases), salient(cases)):
        scores = score(args.scorer, args.conversations, result)
        sizes = [count("\n".join(lines)) for lines in result.lines.values()]
        table.add_row(
            result.name,
            *(f"{scores[lang][0]:.0%}" for lang in languages),
            f"{scores['all'][0]:.1%}",
            str(scores["all"][1]),
            f"{labelled(cases, result.lines):.0%}",
            f"{sum(sizes) / len(sizes):.0f}, at most {max(sizes)}",
            "" if result.fold_ms is None else f"{result.fold_ms:.1f}",
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
