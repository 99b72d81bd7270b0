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
    if isinstance(off, str):
        raise RuleError("off", "a string", 'a list of ids of rules: ["F11"]')
    off = tuple(off)
    unknown = sorted({str(one)[:40] for one in off if one not in book.rules})
    if unknown:
        raise RuleError("off", f"no rule of that id: {' '.join(unknown)}", f"{' '.join(sorted(book.rules))}")
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
            raise RuleError(str(own), "no folder", "a folder of rules")
        packaged = book.version
        add(book, texts(own))
        book.version = f"{packaged}+{own.name}" if book.version == packaged else f"{packaged}+{book.version}"
        for code, files in _languages(own / "languages").items():
            languages.setdefault(code, []).extend(files)
    return book, languages


def texts(folder: Traversable) -> list[Text]:
    """The `.txt` and `.toml` files of a folder, by name."""
    names = sorted((f for f in folder.iterdir() if f.name.endswith((".txt", ".toml"))), key=lambda f: f.name)
    return [Text(f.name, _text(f, f.name)) for f in names]


def _text(file: Traversable, name: str) -> str:
    """A file of rules or words. Raises `RuleError` where it is no file, too large or not UTF-8."""
    if not file.is_file():
        raise RuleError(name, "no ordinary file", "a text file")
    with file.open("rb") as opened:
        found = opened.read(_MOST + 1)
    if len(found) > _MOST:
        raise RuleError(name, "a larger file", f"at most {_MOST} bytes")
    try:
        return found.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise RuleError(name, f"no UTF-8 at byte {error.start}", "UTF-8") from None


def unread(own: Path | None) -> list[Path]:
    """Folders `languages/<code>/words` of one's own: what `tools/build.py` reads for the package, and nobody here."""
    return sorted(own.glob("languages/*/words")) if own else []


def _languages(folder: Traversable) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = {}
    if folder.is_dir():
        for code in sorted(folder.iterdir(), key=lambda f: f.name):
            forms = code / "forms.txt"
            if forms.is_file():
                found[code.name] = [(f"{code.name}/forms.txt", _text(forms, f"{code.name}/forms.txt"))]
    return found
