"""The error rates of the watch, as tables for the pages on responsible use, English and Russian.

A page has two marks, `<!-- measured -->` and `<!-- /measured -->`; what stands between them is written anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.watch_talks import Fraud

PAGES = {"en": "responsible-use.md", "ru": "responsible-use.ru.md"}
_BETWEEN = re.compile(r"(?<=<!-- measured -->\n).*?(?=<!-- /measured -->)", re.DOTALL)
_LANGUAGES = {
    "en": {"en": "English", "ru": "Russian", "es": "Spanish", "de": "German", "fr": "French"},
    "ru": {"en": "английский", "ru": "русский", "es": "испанский", "de": "немецкий", "fr": "французский"},
}
_SAID = {
    "en": {
        "seed": "written, seed set",
        "development, even": "written, development set, even half",
        "development, odd": "written, development set, odd half",
        "blind, write": "written without sight of the word lists, since used to widen them",
        "blind, measure": "a second such set, whose misses have since been looked at too",
        "blind, unseen": "by somebody who saw nothing of the watch but its tables; never read, scored a dozen times",
        "blind, later": "written from the tables before the words were looked at; scored a dozen times",
        "blind, latest": "written before the last change by who made it; half of its misses since read",
        "blind, fresh": "written before an earlier widening by who then widened; scored a dozen times",
        "hard negatives": "written hard negatives (family, delivery, school, bank)",
        "head": ("conversations", "language", "positives with a loud alert", "harmless ones with a loud alert"),
        "long": ("ordinary talk", "language", "messages", "conversations with a high alert", "false high per 10,000"),
        "fraud": ("fraud", "conversations", "noticed by message 15", "noticed at all", "median message"),
    },
    "ru": {
        "seed": "написанные, исходный набор",
        "development, even": "написанные, набор разработки, чётная половина",
        "development, odd": "написанные, набор разработки, нечётная половина",
        "blind, write": "написанные без словарей перед глазами, потом по ним словари расширяли",
        "blind, measure": "второй такой набор, его пропуски потом тоже смотрели",
        "blind, unseen": "тем, кто видел только таблицы правил; не читаны, измерены с десяток раз",
        "blind, later": "написанные по таблицам до взгляда на словари; измерены с десяток раз",
        "blind, latest": "написанные перед последней правкой тем, кто её делал; половина промахов прочитана",
        "blind, fresh": "написанные перед прежним расширением тем, кто расширял; измерены с десяток раз",
        "hard negatives": "написанные трудные безобидные (семья, доставка, школа, банк)",
        "head": ("беседы", "язык", "опасные с громким сигналом", "безобидные с громким сигналом"),
        "long": ("обычный разговор", "язык", "сообщений", "бесед с высоким сигналом", "ложных высоких на 10 000"),
        "fraud": ("мошенничество", "бесед", "замечено к 15-му сообщению", "замечено вообще", "медианное сообщение"),
    },
}
_CORPORA = {
    "en": {
        "dailydialog": "everyday dialogues, spliced",
        "sgd": "service dialogues, spliced",
        "film": "film dialogues, spliced",
        "scam_en_advance_fee": "advance-fee mail threads (English)",
        "scam_ru_marketplace": "marketplace scenarios (Russian)",
    },
    "ru": {
        "dailydialog": "бытовые диалоги, склеенные",
        "sgd": "диалоги со службами, склеенные",
        "film": "диалоги из фильмов, склеенные",
        "scam_en_advance_fee": "переписки «о наследстве» (английский)",
        "scam_ru_marketplace": "сценарии с площадки объявлений (русский)",
    },
}


@dataclass(slots=True)
class Measured:
    """Counts as the benchmark found them."""

    cases: list[tuple[str, str, tuple[int, int, int, int]]] = field(default_factory=list)
    talks: list[tuple[str, str, int, tuple[int, int, int, int]]] = field(default_factory=list)
    frauds: list[tuple[str, Fraud]] = field(default_factory=list)

    def written(self, name: str, language: str, counts: tuple[int, int, int, int]) -> None:
        """Loud positives, positives, loud negatives, negatives."""
        self.cases.append((name, language, counts))

    def ordinary(self, language: str, name: str, length: int, counts: tuple[int, int, int, int]) -> None:
        """Conversations with a high alert, conversations, high alerts, messages."""
        self.talks.append((language, name, length, counts))

    def fraud(self, name: str, found: Fraud) -> None:
        self.frauds.append((name, found))


def write(folder: Path, measured: Measured) -> None:
    """Put the tables into both pages."""
    for language, name in PAGES.items():
        page = folder / name
        tables = "\n\n".join("\n".join(t) for t in _tables(measured, language))
        before, _, after = _BETWEEN.sub("\0", page.read_text(encoding="utf-8")).partition("\0")
        page.write_text(f"{before}\n{tables}\n\n{after}", encoding="utf-8")


def _tables(measured: Measured, language: str) -> Iterator[list[str]]:
    said, names, codes = _SAID[language], _CORPORA[language], _LANGUAGES[language]
    yield _table(
        said["head"],
        [
            (str(said[name]), codes.get(code, code), _share(heard, positive), _share(false, negative))
            for name, code, (heard, positive, false, negative) in measured.cases
        ],
    )
    yield _table(
        said["long"],
        [
            (names[name], codes[code], str(length), f"{high / talks:.1%}", f"{false / messages * 1e4:.2f}")
            for code, name, length, (high, talks, false, messages) in measured.talks
        ],
    )
    yield _table(
        said["fraud"],
        [
            (names[name], str(len(f.hits)), f"{f.recall(15):.0%}", f"{f.recall():.0%}", f"{f.median():g}")
            for name, f in measured.frauds
        ],
    )


def _share(part: int, whole: int) -> str:
    return f"{part} / {whole} ({part / whole:.0%})" if whole else "–"


def _table(head: Sequence[str] | str, rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]
