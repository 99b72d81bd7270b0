"""Facts from labelled dialogues: how much is found, how much of it is right, what must not be there and is.

    python benchmarks/facts.py facts.jsonl --scorer score_facts.py [--single single.json] [--model openai:NAME]

Each dialogue is read as it would be lived: after every row of the assistant's and at the end, the rows since are read
and reconciled with the facts so far. The scorer is used as it is; this adds recall on the statements that stand whole
in one sentence (marked in `--single`, or by `"single": true` in the labels), the share of dialogues whose profile
holds one of `profile_any`, the share of questions for which a turn of a new session is given every fact they need,
and the time a row takes.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import io
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stdout
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType
from typing import Any

from rich.console import Console
from rich.table import Table

from nitka import Limits, Nitka
from nitka.config import Settings
from nitka.layers.facts import Fact, current, extract, reconcile
from nitka.layers.facts.profile import offline_profile
from nitka.models.choose import choose_chat
from nitka.models.extractor import ModelExtractor
from nitka.testing import MemoryStore, memory_ring
from nitka.types import Message

SINGLE = Path(__file__).parent.parent / "tests" / "unit" / "facts" / "single_sentence.json"
Case = dict[str, Any]


def rows_of(case: Case) -> list[Message]:
    rows = []
    for at, row in enumerate(case["messages"]):
        when = datetime.fromisoformat(row["at"])
        rows.append(
            Message(seq=at, n=at, role=row["role"], text=row["text"], at=when.astimezone(UTC), zone=f"{when:%z}")
        )
    return rows


async def lived(rows: Sequence[Message], model: ModelExtractor | None) -> tuple[Fact, ...]:
    """The facts after the rows were read slice by slice."""
    facts: tuple[Fact, ...] = ()
    for first in range(0, len(rows), 2):
        part, context = rows[first : first + 2], rows[max(0, first - 1) : first]
        if model is None:
            found = extract([*context, *part], known=facts)
        else:
            found = await model.extract([*context, *part], known=facts)
        fresh = [candidate for candidate in found if candidate.n >= part[0].n]
        facts = reconcile(facts, fresh, rows).facts
    return facts


def singles(case: Case, marked: dict[str, list[int]]) -> set[int]:
    given = {at for at, fact in enumerate(case["facts"]) if fact.get("single")}
    return given | set(marked.get(case["id"], ()))


def scored(scorer: ModuleType, case: Case, stored: list[dict[str, str]], total: Counter[str], single: set[int]) -> str:
    """Adds this dialogue to its language's totals; what the scorer printed about it."""
    said = io.StringIO()
    with redirect_stdout(said):
        scorer.score_dialogue(case, stored, total)
    for at in single:
        gold = case["facts"][at]
        if not gold.get("debatable"):
            total["single"] += 1
            total["single found"] += any(
                scorer.same_about(fact["about"], gold.get("about"))
                and scorer.found(gold["value_any"], scorer.text_of(fact))
                for fact in stored
            )
    return said.getvalue()


async def run(args: argparse.Namespace) -> None:
    scorer = loaded(args.scorer)
    marked = json.loads(args.single.read_text("utf-8"))
    model = ModelExtractor(choose_chat(args.model, Settings.read())) if args.model else None
    totals: dict[str, Counter[str]] = {}
    started = time.perf_counter()
    for case in map(json.loads, args.path.read_text("utf-8").splitlines()):
        rows = rows_of(case)
        facts = current(await lived(rows, model))
        stored = [{"about": f.about, "slot": f.slot, "value": f.value, "statement": f.statement} for f in facts]
        total = totals.setdefault(case["lang"], Counter())
        said = scored(scorer, case, stored, total, singles(case, marked))
        print(said, end="")
        total["rows"] += sum(row.role == "user" for row in rows)
        if case.get("profile_any"):
            profile = offline_profile(rows, facts, cap=120, count=lambda text: len(text) // 3)
            total["profiles"] += 1
            total["profiles right"] += scorer.found(case["profile_any"], profile)
        if model is None and all(row.role == ("user", "assistant")[at % 2] for at, row in enumerate(rows)):
            await answered(scorer, case, rows, total)
    totals["all"] = sum(totals.values(), Counter())
    show(totals, time.perf_counter() - started)


async def answered(scorer: ModuleType, case: Case, rows: Sequence[Message], total: Counter[str]) -> None:
    """Counts the questions, and those whose needed facts are in the request of a new session's turn."""
    if not case.get("questions"):
        return
    async with Nitka.open(MemoryStore(), keys=memory_ring(), limits=Limits(recall_wait=30)) as nitka:
        for question, answer in zip(rows[::2], [*rows[1::2], None], strict=False):
            said = answer.text if answer is not None else "Noted."
            await nitka.record(
                "someone",
                "then",
                text=question.text,
                answer=said,
                at=question.at,
                zone=f"{question.zone[:3]}:{question.zone[3:]}",
            )
        await nitka.settle()
        for asked in case["questions"]:
            needed = [gold for gold in case["facts"] if gold["slot"] in asked["needs"]]
            async with nitka.turn("someone", "now", text=asked["q"], private="reads") as turn:
                given = " | ".join(block.text for block in turn.request.blocks if block.layer in ("facts", "profile"))
            total["questions"] += 1
            total["questions answered"] += all(scorer.found(gold["value_any"], given) for gold in needed)


def show(totals: dict[str, Counter[str]], seconds: float) -> None:
    heads = (
        "",
        "precision",
        "recall: single",
        "all",
        "duplicates",
        "forbidden",
        "unlabelled",
        "overfull",
        "profile",
        "questions",
    )
    table = Table(*heads)
    for language, total in sorted(totals.items()):
        labelled = total["right"] + total["forbidden"]
        table.add_row(
            language,
            f"{total['right'] / labelled:.3f}" if labelled else "–",
            share(total["single found"], total["single"]),
            share(total["found"], total["gold"]),
            *(str(total[name]) for name in ("duplicates", "forbidden", "unlabelled", "overfull")),
            share(total["profiles right"], total["profiles"]),
            share(total["questions answered"], total["questions"]),
        )
    Console(width=150).print(table)
    kinds = {name: times for name, times in totals["all"].items() if name.startswith("forbidden:")}
    print(kinds or "nothing forbidden", f"– {1000 * seconds / totals['all']['rows']:.1f} ms a row of the user's")


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f} ({part}/{whole})" if whole else "–"


def loaded(path: Path) -> ModuleType:
    """The scorer as a module, with its neighbours importable."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--scorer", type=Path, required=True)
    parser.add_argument("--single", type=Path, default=SINGLE)
    parser.add_argument("--model", default="", help="openai:NAME; without it the offline rules are measured")
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
