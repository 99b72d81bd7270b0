"""Reading a folder of rules: `concepts*.txt`, `flags.toml`, `observations*.txt`, and any number of `*.toml` with
`[[rule]]` tables.

Examples, twins and reasons stand in the same files and are read by `lint`; here they are skipped. `README.md` beside
this file describes the formats. A user's folder has the same files, all of them optional; its numbers lie between 96
and 127.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from nitka.watch import formula
from nitka.watch.acts import ACTS, AFTER, FIRST
from nitka.watch.errors import RuleError
from nitka.watch.types import (
    LIVES,
    MARKS_OF_STRENGTH,
    NORMAL,
    SEVERITIES,
    STRONG,
    WEAK,
    FlagKind,
    Formula,
    Pattern,
    Rule,
    When,
)

STRENGTHS = {"weak": WEAK, "normal": NORMAL, "strong": STRONG}
GROUPS = ("context", "rapport", "pressure", "channel", "pretext", "control", "extract", "target", "protective", "llm")


@dataclass(frozen=True, slots=True)
class Text:
    """A file of a rule folder, read at the rim."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """One entry of `observations.txt` with its place and examples, for lint."""

    pattern: Pattern
    where: str


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence that must (or, not `wanted`, must not) show the flag."""

    flag: str
    language: str
    text: str
    wanted: bool
    where: str


@dataclass(slots=True)
class RuleBook:
    """Everything of one or more folders, in reading order."""

    parents: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kinds: dict[str, FlagKind] = field(default_factory=dict)
    sources: list[Source] = field(default_factory=list)
    vetoes: dict[str, set[str]] = field(default_factory=dict)  # flag -> keys whose presence in a message takes it back
    hushes: dict[str, set[str]] = field(
        default_factory=dict
    )  # flag -> keys whose presence in a clause hushes its idioms
    examples: list[Example] = field(default_factory=list)
    rules: dict[str, Rule] = field(default_factory=dict)
    raw: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # rule id -> its table, for lint and documents
    version: str = ""


def add(book: RuleBook, files: Iterable[Text]) -> RuleBook:
    """Add a folder's files to the book. Raises `RuleError` naming file and entry."""
    texts = {f.name: f.text for f in files}
    _concepts(book, "\n".join(text for name, text in texts.items() if _is(name, "concepts")))
    tables = {name: _toml(name, text) for name, text in texts.items() if name.endswith(".toml")}
    for name, table in tables.items():
        book.version = table.get("version", book.version)
        for entry in table.get("flag", ()):
            _flag(book, name, entry)
    for name, text in texts.items():
        if _is(name, "observations"):
            _observations(book, name, text)
    groups = _groups(book)
    for name, table in tables.items():
        for entry in table.get("rule", ()):
            rule = _rule(entry, groups, f"{name}:{entry.get('id', '?')}")
            book.rules[rule.id] = rule
            book.raw[rule.id] = entry
    return book


def _is(name: str, kind: str) -> bool:
    """Whether a file is `kind.txt` or `kind_anything.txt`."""
    return name.endswith(".txt") and name[:-4].partition("_")[0] == kind


def _toml(name: str, text: str) -> Mapping[str, Any]:
    try:
        return _shaped(name, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise RuleError(name, f"malformed TOML ({str(error).split('(at')[-1].strip(') ')})", "TOML 1.0") from None


FIELDS: Mapping[str, type] = {
    "id": str,
    "number": int,
    "formula": str,
    "requires": str,
    "type": str,
    "severity": str,
    "strength": str,
    "speaker": str,
    "needs_role": str,
    "tags": list,
    "suppress": list,
    "severity_if": list,
    "within": int,
    "same_message": bool,
    "minors": bool,
    "adults": bool,
    "peers": bool,
}


def _shaped(name: str, table: Mapping[str, Any]) -> Mapping[str, Any]:
    """The table, if its rules and flags are lists of tables and what is in them is of the right kind."""
    for key in ("rule", "flag"):
        entries = table.get(key, [])
        if not (isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)):
            raise RuleError(f"{name}:{key}", "something else", f"a list of tables: [[{key}]]")
    for entry in table.get("rule", []):
        for key, value in entry.items():
            if key in FIELDS and not isinstance(value, FIELDS[key]):
                raise RuleError(f"{name}:rule.{key}", type(value).__name__, FIELDS[key].__name__)
    return table


def _concepts(book: RuleBook, text: str) -> None:
    """`name < wider wider : what it means`; wider concepts are resolved through."""
    direct: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        head = line.split("#")[0].split(":")[0].strip()
        if head:
            name, _, wider = head.partition("<")
            direct[name.strip()] = tuple(wider.split())
    direct = {n: book.parents.get(n, ()) for n in book.parents} | direct
    for name in direct:
        book.parents[name] = _above(name, direct, ())


def _above(name: str, direct: Mapping[str, tuple[str, ...]], path: tuple[str, ...]) -> tuple[str, ...]:
    if name in path:
        raise RuleError(f"concepts.txt:{name}", "a concept that is wider than itself", "an order without circles")
    found: dict[str, None] = {}
    for wider in direct.get(name, ()):
        found[wider] = None
        found.update(dict.fromkeys(_above(wider, direct, (*path, name))))
    return tuple(found)


def _flag(book: RuleBook, name: str, entry: Mapping[str, Any]) -> None:
    where = f"{name}:{entry.get('id', '?')}"
    number = entry.get("number")
    if not isinstance(number, int) or not 0 <= number < 128 or any(k.number == number for k in book.kinds.values()):
        raise RuleError(f"{where}.number", "no free number", "0 to 95 for the packaged flags, 96 to 127 for one's own")
    if (
        entry.get("life") not in LIVES
        or entry.get("group") not in GROUPS
        or entry.get("set_by") not in ("A", "T", "X", "R")
    ):
        raise RuleError(where, "an unknown life, group or set_by", f"{' '.join(LIVES)}; {' '.join(GROUPS)}; A T X R")
    strength = STRENGTHS.get(entry.get("strength", "normal"), 0)
    if not strength:
        raise RuleError(f"{where}.strength", "an unknown strength", " ".join(STRENGTHS))
    words = {lang: (pair[0], pair[1]) for lang, pair in entry.get("words", {}).items()}
    book.kinds[entry["id"]] = FlagKind(
        entry["id"],
        number,
        entry["group"],
        entry["life"],
        entry["set_by"],
        words,
        entry.get("alone", ""),
        strength,
    )


def _observations(book: RuleBook, name: str, text: str) -> None:
    """`[flag]`, then `+ pattern` (one clause) or `~ pattern` (one sentence), then examples `en: ...` and
    counter-examples `en-: ...`.
    """
    flag = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line, where = raw.strip(), f"{name}:{number}"
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            flag = line.strip("[]")
            if flag not in book.kinds:
                raise RuleError(where, "an unknown flag", "a flag of flags.toml")
        elif line[0] == "-":
            into = book.hushes if line[1:2] == "?" else book.vetoes
            into.setdefault(flag, set()).update(k for t in line.lstrip("-?").split() for k in _keys(t, where))
        elif line[0] in "+~":
            book.sources.append(Source(pattern(flag, line, where, book.kinds[flag].strength), where))
        else:
            head, _, sentence = line.partition(":")
            wanted = not head.endswith("-")
            book.examples.append(Example(flag, head.rstrip("-"), sentence.strip(), wanted, where))


def pattern(flag: str, line: str, where: str, usual: int = NORMAL) -> Pattern:
    """Read `+ acts:concepts concept|concept ... ! never ...`; `+?`, `+=`, `+!` state how much a sighting says."""
    mark = MARKS_OF_STRENGTH.get(line[1:2], 0)
    wanted, _, never = line[2 if mark else 1 :].partition("!")
    groups = tuple(tuple(_keys(term, where)) for term in wanted.split())
    if not groups:
        raise RuleError(where, "a pattern without terms", "+ acts:concepts ...")
    return Pattern(
        flag, groups, tuple(k for t in never.split() for k in _keys(t, where)), line[0] == "~", mark or usual
    )


def _keys(term: str, where: str) -> list[str]:
    """`a|b` is either; `act|act:a|b` any of the acts with any of the concepts; `,` joins such terms into one."""
    if "," in term:
        return [key for part in term.split(",") for key in _keys(part, where)]
    head, colon, tail = term.partition(":")
    if not colon:
        return head.split("|")
    acts = head.split("|")
    if not set(acts) <= {*ACTS, AFTER, FIRST}:
        raise RuleError(where, "an unknown act", " ".join(ACTS))
    return [f"{act}:{concept}" for act in acts for concept in tail.split("|")]


def _groups(book: RuleBook) -> dict[str, frozenset[str]]:
    return {g: frozenset(k.id for k in book.kinds.values() if k.group == g) for g in GROUPS}


def _rule(entry: Mapping[str, Any], groups: Mapping[str, frozenset[str]], where: str) -> Rule:
    for key in ("id", "number", "formula", "type", "tags", "severity"):
        if key not in entry:
            raise RuleError(f"{where}.{key}", "nothing", "a value")
    if entry["severity"] not in SEVERITIES or entry.get("speaker", "any") not in ("any", "same"):
        raise RuleError(where, "an unknown severity or speaker", f"{' '.join(SEVERITIES)}; any same")
    whole = formula.parse(entry["formula"], groups, where=f"{where}.formula")
    return Rule(
        id=entry["id"],
        number=entry["number"],
        formula=whole,
        type=entry["type"],
        tags=tuple(entry["tags"]),
        severity=entry["severity"],
        speaker=entry.get("speaker", "any"),
        suppress=frozenset(entry.get("suppress", ())),
        within=entry.get("within", 0),
        same_message=entry.get("same_message", False),
        requires=formula.parse(entry.get("requires", ""), groups, where=where),
        severity_if=tuple(_when(w, groups, where) for w in entry.get("severity_if", ())),
        minors=entry.get("minors", True),
        adults=entry.get("adults", False),
        peers=entry.get("peers", False),
        needs_role=entry.get("needs_role", ""),
        flags=frozenset().union(*whole.groups),
    )


def _when(entry: Mapping[str, Any], groups: Mapping[str, frozenset[str]], where: str) -> When:
    holds: Formula = formula.parse(entry.get("when", ""), groups, where=where)
    return When(entry["severity"], holds, entry.get("within", 0), frozenset(entry.get("only", ())))
