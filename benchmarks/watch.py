"""The watch, measured: what it notices, what it raises for nothing, how early, how fast.

    python -m benchmarks.watch --shared FOLDER [--quick] [--pages]

FOLDER holds `data/watch_dev.jsonl`, `watch/seed_cases.jsonl` and corpora in `data/watch/`; what is absent is said and
left out. The blind conversations of `tests/watch/blind` are measured from here and never shown. Only alerts of
combinations are scored. `--pages` writes the error rates into the pages on responsible use.

No corpus of grooming is fit for use, so the recall of those rules is shown on written conversations only, which says
nothing of real ones.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import watch_pages, watch_speed
from benchmarks.watch_talks import HIGH, Given, Talk, Turn, alerts, corpus, fraud, loud, right, spliced, widened
from nitka.watch import conversations
from nitka.watch.conversations import read

ROOT = Path(__file__).resolve().parents[1]
BLIND = ROOT / "tests" / "watch" / "blind"
LENGTHS = (30, 100, 300)
BETWEEN = (0, 5, 20, 60)
ORDINARY = {"benign_en_dailydialog": "en", "benign_en_sgd": "en", "benign_ru_film": "ru"}


@dataclass(slots=True)
class Bench:
    """Where things are, how much to do, and what was found for the pages."""

    shared: Path
    quick: bool
    show: Console
    pages: watch_pages.Measured = field(default_factory=watch_pages.Measured)

    def corpus(self, name: str, half: str = "odd") -> list[Talk]:
        """A corpus, or nothing, said aloud, where it is absent."""
        path = self.shared / name
        if path.is_file():
            return corpus(path, half)
        self.show.print(f"{name}: absent, left out", markup=False)
        return []

    def print(self, title: str, columns: Sequence[str], rows: Iterator[tuple[str, ...]]) -> None:
        table = Table(title=title, title_justify="left")
        for column in columns:
            table.add_column(column)
        for row in rows:
            table.add_row(*row)
        if table.row_count:
            self.show.print(table)


def share(part: int, whole: int) -> str:
    return f"{part}/{whole} = {part / whole:.3f}" if whole else "–"


def written(bench: Bench) -> Iterator[tuple[str, ...]]:
    """Conversations written for the purpose, by set and language."""
    sets = [
        ("seed", bench.corpus("watch/seed_cases.jsonl", "all")),
        ("development, even", bench.corpus("data/watch_dev.jsonl", "even")),
        ("development, odd", bench.corpus("data/watch_dev.jsonl", "odd")),
    ]
    sets += [(f"blind, {path.stem.partition('_')[0]}", corpus(path, "all")) for path in sorted(BLIND.glob("*.jsonl"))]
    for name, talks in sets:
        for language in sorted({t.language for t in talks}):
            yield _score(bench, name, language, [t for t in talks if t.language == language])


def _score(bench: Bench, name: str, language: str, talks: Sequence[Talk]) -> tuple[str, ...]:
    lexicons = language if language in ("en", "ru") else "*"
    given = [(t, alerts(t.turns, lexicons)) for t in talks]
    positive = [(t, g) for t, g in given if t.expect]
    negative = [(t, g) for t, g in given if not t.expect]
    exact, heard = sum(right(t, g) for t, g in positive), sum(loud(g) for _, g in positive)
    false = sum(loud(g) for _, g in negative)
    bench.pages.written(name, language, (heard, len(positive), false, len(negative)))
    return (
        name,
        language,
        share(exact, len(positive)),
        share(heard, len(positive)),
        share(false, len(negative)),
    )


def ordinary(bench: Bench) -> Iterator[tuple[str, ...]]:
    """Long conversations of ordinary people, spliced."""
    count = 40 if bench.quick else 150
    for name, language in ORDINARY.items():
        talks = bench.corpus(f"data/watch/{name}.jsonl")
        for length in LENGTHS if talks else ():
            given = [alerts(turns, language) for turns in spliced(talks, length, count)]
            high = sum(loud(g, HIGH) for g in given)
            false = sum(one.severity in HIGH for g in given for one in g)
            bench.pages.ordinary(language, name.rpartition("_")[2], length, (high, count, false, count * length))
            yield (
                name,
                str(length),
                f"{high / count:.1%}",
                f"{sum(loud(g) for g in given) / count:.1%}",
                f"{false / (count * length) * 1e4:.2f}",
                _usual(given),
            )


def _usual(given: Sequence[Sequence[Given]]) -> str:
    counts: dict[str, int] = {}
    for several in given:
        for rule in {one.rule for one in several if one.severity in HIGH}:
            counts[rule] = counts.get(rule, 0) + 1
    return " ".join(f"{rule}:{n}" for rule, n in sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:5])


def apart(bench: Bench) -> Iterator[tuple[str, ...]]:
    """The written positives with harmless talk between their turns."""
    talks = [t for half in ("even", "odd") for t in bench.corpus("data/watch_dev.jsonl", half) if t.expect]
    talks += [t for t in bench.corpus("watch/seed_cases.jsonl", "all") if t.expect]
    filler = {
        "en": [t for talk in bench.corpus("data/watch/benign_en_dailydialog.jsonl") for t in talk.turns],
        "ru": [t for talk in bench.corpus("data/watch/benign_ru_film.jsonl") for t in talk.turns],
    }
    talks = [t for t in talks[:: 3 if bench.quick else 1] if filler.get(t.language)]
    for language in sorted({t.language for t in talks}):
        mine = [t for t in talks if t.language == language]
        cells = []
        for between in BETWEEN:
            given = [alerts(_wide(t, filler[language], between), language) for t in mine]
            cells.append(f"{sum(map(loud, given)) / len(mine):.2f} / {sum(map(right, mine, given)) / len(mine):.2f}")
        yield (language, str(len(mine)), *cells)


def _wide(talk: Talk, filler: Sequence[Turn], between: int) -> list[Turn]:
    return widened(talk.turns, filler, between, talk.id)


def frauds(bench: Bench) -> Iterator[tuple[str, ...]]:
    """Corpora of fraud: how often, and how early."""
    hard = bench.corpus("data/watch/hardneg_en_family_work.jsonl")
    daily = bench.corpus("data/watch/benign_en_dailydialog.jsonl")[:250]
    films = bench.corpus("data/watch/benign_ru_film.jsonl")[:250]
    for name, half, harmless in (
        ("scam_en_advance_fee", "odd", [*hard, *daily]),
        ("scam_ru_marketplace", "all", films),
    ):
        talks = bench.corpus(f"data/watch/{name}.jsonl", half)
        talks = talks[:15] if bench.quick else talks
        if talks:
            found = fraud(talks, harmless)
            bench.pages.fraud(name, found)
            yield (
                name,
                str(len(talks)),
                *(f"{found.recall(by):.2f}" for by in (5, 15, 30, 1 << 30)),
                f"{found.median():g}",
                share(found.false, found.harmless),
                f"{found.f1():.2f}",
                f"{found.weighted_f1():.2f}",
            )


def hard(bench: Bench) -> Iterator[tuple[str, ...]]:
    """What looks like harm and is none; and single messages."""
    sets = [("family and work, en", bench.corpus("data/watch/hardneg_en_family_work.jsonl"))]
    single = {t.turns[0].text: t for t in bench.corpus("data/watch/mixed_en_sms.jsonl")}.values()
    sets += [(f"sms, {label}, en", [t for t in single if t.label == label]) for label in ("benign", "scam")]
    for path in sorted((ROOT / "tests" / "watch" / "cases").glob("hard_negatives*.md")):
        talks = read(path.name, path.read_text(encoding="utf-8"))
        yield _hard_cases(bench, path.stem, talks)
    for name, several in sets:
        given = [alerts(t.turns, t.language) for t in several]
        if several:
            yield _hard_row(name, len(several), sum(len(t.turns) for t in several), given)


def _hard_row(name: str, talks: int, messages: int, given: Sequence[Sequence[Given]]) -> tuple[str, ...]:
    return (
        name,
        str(talks),
        str(messages),
        share(sum(loud(several, HIGH) for several in given), talks),
        share(sum(map(loud, given)), talks),
        _usual(given),
    )


def _hard_cases(bench: Bench, name: str, talks: Sequence[conversations.Conversation]) -> tuple[str, ...]:
    given = []
    for talk in talks:
        turns = [Turn(who.id, text, who.role) for who, text in talk.turns]
        given.append(alerts(turns, talk.language))
    if given:
        heard = sum(map(loud, given))
        bench.pages.written("hard negatives", "ru" if name.endswith("ru") else "en", (0, 0, heard, len(given)))
    return _hard_row(name, len(talks), sum(len(t.turns) for t in talks), given)


def speeds(bench: Bench) -> Iterator[tuple[str, ...]]:
    """Time and room."""
    daily = bench.corpus("data/watch/benign_en_dailydialog.jsonl")
    films = bench.corpus("data/watch/benign_ru_film.jsonl")
    talks = [(turns, "en") for turns in spliced(daily, 50, 20)] if daily else []
    talks += [(turns, "ru") for turns in spliced(films, 50, 20)] if films else []
    if talks:
        yield from watch_speed.pace(talks)
    yield from watch_speed.start()
    if daily and films:
        yield from watch_speed.memories(
            [(turns, code) for code, several in (("en", daily), ("ru", films)) for turns in spliced(several, 500, 5)]
        )
    yield from watch_speed.long_texts()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared", help="the folder of the corpora")
    parser.add_argument("--quick", action="store_true", help="a quarter of the work")
    parser.add_argument("--pages", action="store_true", help="write the error rates into docs/responsible-use*.md")
    chosen = parser.parse_args(arguments)
    begun = time.perf_counter()
    bench = Bench(chosen.shared, chosen.quick, Console(width=132))
    bench.print("Written conversations", ("set", "language", "very rules", "any loud", "false loud"), written(bench))
    bench.print(
        "Long ordinary conversations, spliced (odd half; overstated)",
        ("corpus", "messages", "with a high alert", "with a loud one", "false high per 10,000 messages", "rules"),
        ordinary(bench),
    )
    bench.print(
        "Written positives with harmless messages between their turns: any loud / very rules",
        ("language", "number", *(f"{n} between" for n in BETWEEN)),
        apart(bench),
    )
    columns = (
        "corpus",
        "number",
        "by 5",
        "by 15",
        "by 30",
        "at all",
        "median message",
        "false",
        "F1",
        "latency-weighted",
    )
    bench.print("Fraud: recall by message", columns, frauds(bench))
    bench.print("Hard negatives and sms", ("set", "number", "messages", "high", "loud", "rules"), hard(bench))
    bench.print("Speed and size", ("what", "how much", "of"), speeds(bench))
    if chosen.pages:
        watch_pages.write(ROOT / "docs", bench.pages)
    bench.show.print(f"{time.perf_counter() - begun:.0f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
