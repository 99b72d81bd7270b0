"""Checks of a rule folder: `python -m nitka.watch.lint [FOLDER] [--against FILE.jsonl]`.

Errors: an unknown flag, concept or group; a number used twice; a sentence of observations.txt that does not show its
flag, or shows it though it must not; a pattern that no sentence needs; a rule without a conversation that shows it,
or with fewer than three twins per language, or without `within` where it needs one; a conversation that comes out
wrong; a flag without words. With `--against`, how much of the lexicon looks copied from that file: idioms of four or
more content words, and idioms that match exactly one of its lines; together at most 5 %.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from nitka.watch import conversations, engine, lexicon, observe, phrases
from nitka.watch.acts import AFTER
from nitka.watch.conversations import Conversation
from nitka.watch.data import rule_book
from nitka.watch.engine import Watch, build, who
from nitka.watch.errors import RuleError
from nitka.watch.formula import CONDITIONS
from nitka.watch.memory import Memory
from nitka.watch.normalise import clean
from nitka.watch.observe import idiom
from nitka.watch.rules import Example, RuleBook
from nitka.watch.tokens import tokenise
from nitka.watch.types import Pattern, Rule

LANGUAGES = ("en", "ru")
TWINS = 3
FEATURES = frozenset(
    "#req #question #neg #if #me #reader #third #number #minor_self #adult_self #named #self #brief "
    "#age_of_reader #minor_number #adult_number #digits #link #sum #maybe".split()
)
_EXEMPT = ("extract", "control")
_MOST_COPIED = 0.05


def lint(rule_folder: str | Path | None = None, against: Iterable[str] | None = None) -> list[str]:
    """Everything wrong with the packaged rules together with those of `rule_folder`; empty when all is well.

    `against` are lines of text, for instance of a corpus the lexicon must not have been copied from.
    """
    own = None if rule_folder is None else Path(rule_folder)
    try:
        book, languages = rule_book(own)
        talks = list(_talks(own))
    except RuleError as error:
        return [str(error)]
    watch = build(book, languages)
    found = [*_names(book, watch), *_sentences(book, watch), *_rules(book, talks), *_outcomes(watch, talks)]
    if against is not None:
        found += _copied(languages, list(against))
    return found


def _talks(own: Path | None) -> Iterator[Conversation]:
    folders: list[Traversable] = [resources.files("nitka.watch") / "rules" / "conversations"]
    if own is not None:
        folders.append(own / "conversations")
    for folder in folders:
        if folder.is_dir():
            for file in sorted(folder.iterdir(), key=lambda f: f.name):
                if file.name.endswith((".txt", ".md")):
                    yield from conversations.read(file.name, file.read_text(encoding="utf-8"))


# Names.


def _names(book: RuleBook, watch: Watch) -> Iterator[str]:
    yield from _rule_names(book)
    concepts = book.parents.keys()
    for source in book.sources:
        for key in _keys(source.pattern):
            act, _, name = key.rpartition(":")
            known = book.kinds if act == AFTER else concepts
            if not name.isupper() and name not in known and name not in FEATURES:
                yield f"{source.where}: unknown concept, feature or flag {name}"
    for code, files in watch.languages.items():
        yield from _lexicon_names(code, files, book)
    for kind in book.kinds.values():
        if set(LANGUAGES) - kind.words.keys():
            yield f"flags.toml:{kind.id}: no words in {' '.join(sorted(set(LANGUAGES) - kind.words.keys()))}"


def _keys(pattern: Pattern) -> list[str]:
    return [*(key for group in pattern.groups for key in group), *pattern.never]


def _rule_names(book: RuleBook) -> Iterator[str]:
    numbers: dict[int, str] = {}
    for rule in book.rules.values():
        if rule.number in numbers or not 0 <= rule.number < 128:
            yield f"{rule.id}: its number is taken or not within 0 to 127"
        numbers[rule.number] = rule.id
        whole = [rule.formula, rule.requires, *(w.formula for w in rule.severity_if)]
        named = {flag for formula in whole for group in formula.groups for flag in group} | rule.suppress
        for flag in sorted(named - book.kinds.keys() - CONDITIONS):
            yield f"{rule.id}: unknown flag {flag}"


def _lexicon_names(code: str, files: Sequence[tuple[str, str]], book: RuleBook) -> Iterator[str]:
    for name, text in files:
        for line in text.splitlines():
            if line.startswith("@") and not line[1:].isupper() and not _known(line[1:], book):
                yield f"{code}/{name}: unknown concept {line[1:]}"


def _known(name: str, book: RuleBook) -> bool:
    return (
        idiom(name.replace(lexicon.COUNTED, ""), {})[0] in book.kinds if name.startswith("!") else name in book.parents
    )


# Sentences of observations.txt.


def _sentences(book: RuleBook, watch: Watch) -> Iterator[str]:
    used: set[str] = set()
    for example in book.examples:
        noticed, after = _shown(watch, example)
        shown = example.flag in {s.flag for s in noticed.sightings}
        if shown != example.wanted:
            yield f"{example.where}: {'does not show' if example.wanted else 'shows'} {example.flag}"
        if example.wanted:
            used |= _explaining(book, noticed, example.flag, after)
    for source in book.sources:
        if source.where not in used:
            yield f"{source.where}: no sentence of {source.pattern.flag} needs this pattern"


def _shown(watch: Watch, example: Example) -> tuple[engine.Noticed, list[str]]:
    """An example read, and the flags of what the other side said just before (`question // answer`)."""
    *earlier, text = example.text.split(" // ")
    memory, after = Memory(), list[str]()
    for said in earlier:
        before = engine.step(watch, said, (example.language,), memory, who("b"))
        memory, after = before.memory, [*after, *(s.flag for s in before.sightings)]
    return engine.step(watch, text, (example.language,), memory, who("a")), after


def _explaining(book: RuleBook, noticed: engine.Noticed, flag: str, after: Sequence[str]) -> set[str]:
    """Where the patterns stand that are met in a sentence, read without memory."""
    found: set[str] = set()
    answered = {f"{AFTER}:{name}": (0, 1) for name in after}
    if noticed.seen is None:
        return found
    for sentence in noticed.seen.sentences:
        before = ""
        wide: observe.Keys = {}
        for clause in sentence.clauses:
            keys, before = observe.clause_keys(noticed.seen.reading, clause, before)
            keys |= answered
            wide = {**keys, **wide}
            found |= {
                s.where
                for s in book.sources
                if s.pattern.flag == flag and not s.pattern.wide and observe.met(s.pattern, keys)
            }
        found |= {
            s.where for s in book.sources if s.pattern.flag == flag and s.pattern.wide and observe.met(s.pattern, wide)
        }
    return found


# Rules and their conversations.


def _rules(book: RuleBook, talks: Sequence[Conversation]) -> Iterator[str]:
    for rule in book.rules.values():
        for code in LANGUAGES:
            yield from _covered(rule, [t for t in talks if t.language == code], code)
        if _needs_within(rule, book):
            yield f"{rule.id}: two groups with a long life and no `within`"
    for talk in talks:
        unknown = sorted({*talk.shows, *talk.twin_of} - book.rules.keys())
        if unknown:
            yield f"{talk.where}: unknown rules {' '.join(unknown)}"
        if talk.twin_of and not talk.apart:
            yield f"{talk.where}: nothing says what tells it apart"


def _covered(rule: Rule, talks: Sequence[Conversation], code: str) -> Iterator[str]:
    if not any(rule.id in talk.shows for talk in talks):
        yield f"{rule.id}: no conversation in {code} shows it"
    twins = sum(rule.id in talk.twin_of for talk in talks)
    if twins < TWINS:
        yield f"{rule.id}: {twins} benign twins in {code}, {TWINS} needed"


def _needs_within(rule: Rule, book: RuleBook) -> bool:
    if len(rule.formula.groups) != 2 or rule.within or rule.same_message:
        return False
    return not all(
        all(f in book.kinds and book.kinds[f].group in _EXEMPT for f in group) for group in rule.formula.groups
    )


def _outcomes(watch: Watch, talks: Sequence[Conversation]) -> Iterator[str]:
    for talk in talks:
        codes = tuple(talk.language.split("|")) if talk.language != "*" else tuple(watch.languages)
        yield from conversations.failures(watch, talk, codes)


# Copying.


def _copied(languages: Mapping[str, Sequence[tuple[str, str]]], lines: Sequence[str]) -> Iterator[str]:
    """Idioms that look taken from `lines`: of four or more content words, or matching exactly one line."""
    texts = [" ".join(t.form for t in tokenise(clean(line))) for line in lines]
    for code, files in languages.items():
        words = lexicon.load(files, {})
        walks = ((head, words.words[head].walks) for head in words.known)
        idioms = [
            (head, p) for head, several in walks if several for p in several[0].book.phrases if p.concept[0] == "!"
        ]
        suspect = [i for i in idioms if _content(i, words) >= 4 or _matches(i, texts) == 1]
        share = len(suspect) / max(1, len(idioms))
        if share > _MOST_COPIED:
            yield f"{code}: {len(suspect)} of {len(idioms)} idioms look copied, at most {_MOST_COPIED:.0%} may"


def _content(idiom: tuple[str, phrases.Phrase], words: lexicon.Lexicon) -> int:
    tokens = ({idiom[0]}, *idiom[1].rest)
    return sum(phrases.GAP not in t and not any(words.words[w].grammar for w in t) for t in tokens)


def _matches(idiom: tuple[str, phrases.Phrase], texts: Sequence[str]) -> int:
    gap = rf"(?:\S+ ){{0,{phrases.GAP_MOST}}}"
    parts = (gap if phrases.GAP in t else f"(?:{'|'.join(map(re.escape, sorted(t)))}) " for t in idiom[1].rest)
    needle = re.compile(f" {re.escape(idiom[0])} {''.join(parts)}")
    return sum(needle.search(f" {text} ") is not None for text in texts)


def main(arguments: Sequence[str]) -> int:
    """Print what is wrong; 0 when nothing is."""
    folder, against = None, None
    rest = list(arguments)
    if "--against" in rest:
        place = rest.index("--against")
        against = _lines(Path(rest[place + 1]))
        del rest[place : place + 2]
    if rest:
        folder = rest[0]
    found = lint(folder, against)
    sys.stdout.write("".join(f"{line}\n" for line in found))
    sys.stdout.write(f"{len(found)} complaints\n")
    return 1 if found else 0


def _lines(path: Path) -> list[str]:
    """The turns of a corpus of conversations, or the lines of a text file."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".jsonl":
        return text.splitlines()
    return [turn["t"] for line in text.splitlines() for turn in json.loads(line).get("turns", ())]


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
