"""The rim: packaged data, and a user's folder, read from disk once."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from nitka.watch.engine import Watch, build
from nitka.watch.errors import RuleError
from nitka.watch.rules import RuleBook, Text, add

_MOST = 4 * 1024 * 1024


def load(folder: str | Path | None = None, off: Iterable[str] = ()) -> Watch:
    """The packaged rules, with a folder of one's own added and rules switched off by id.

    The folder may hold `concepts.txt`, `flags.toml`, `observations.txt`, `*.toml` with rules, and
    `languages/<code>/forms.txt`. Raises `RuleError` naming the file and the entry.
    """
    own = None if folder is None else Path(folder)
    book, languages = rule_book(own)
    unknown = sorted(set(off) - book.rules.keys())
    if unknown:
        raise RuleError("off", f"{len(unknown)} unknown rules", "ids of rules")
    return build(book, languages, off)


@cache
def default() -> Watch:
    """The packaged rules, compiled once per process."""
    return load()


def rule_book(own: Path | None = None) -> tuple[RuleBook, dict[str, list[tuple[str, str]]]]:
    """Rules and lexicon texts, packaged and own."""
    package = resources.files("nitka.watch")
    book = add(RuleBook(), texts(package / "rules"))
    languages = _languages(package / "languages")
    if own is not None:
        if not own.is_dir():
            raise RuleError("folder", "no folder", "a folder of rules")
        packaged = book.version
        add(book, texts(own))
        book.version = f"{packaged}+{own.name}" if book.version == packaged else f"{packaged}+{book.version}"
        for code, files in _languages(own / "languages").items():
            languages.setdefault(code, []).extend(files)
    return book, languages


def texts(folder: Traversable) -> list[Text]:
    """The `.txt` and `.toml` files of a folder, by name."""
    names = sorted((f for f in folder.iterdir() if f.name.endswith((".txt", ".toml"))), key=lambda f: f.name)
    return [Text(f.name, f.read_text(encoding="utf-8")) for f in names]


def _languages(folder: Traversable) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    if folder.is_dir():
        for code in sorted(folder.iterdir(), key=lambda f: f.name):
            forms = code / "forms.txt"
            if forms.is_file():
                found[code.name] = [(f"{code.name}/forms.txt", forms.read_text(encoding="utf-8"))]
    return found
