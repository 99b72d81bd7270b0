"""Write `languages/<code>/forms.txt` from the readable files in `languages/<code>/words/`. Run by hand; the output is
committed.

    python -m nitka.watch.tools.build en ru

A words file has `[concept]` headers and lines `kind: words`. Kinds: `n` nouns, `v` verbs and `a` adjectives, which
are expanded into all their forms; `w` words as they stand, `w/imp` the same in a stated grammatical form; `p`
phrases, separated by commas, in which `~word` is expanded, `~v.word` as a verb, and `*` is a gap of up to three
tokens. A Russian word that no dictionary has is written `word=model` (запостить=простить) and inflected like its
model. English verbs that are irregular are written base/past or base/past/participle. Russian is expanded by
pymorphy3 (`pip install nitka[lemmas]`), which the watch itself never loads.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

from nitka.watch.errors import RuleError
from nitka.watch.lexicon import COUNTED, FORMS
from nitka.watch.types import MARKS_OF_STRENGTH

Forms = list[tuple[str, str]]  # (surface form, grammatical form)
Classes = dict[str, list[str]]  # word classes by `=name`, each a list of spellings
LANGUAGES = Path(__file__).parent.parent / "languages"


def main(codes: Iterable[str]) -> None:
    for code in codes:
        (LANGUAGES / code / "forms.txt").write_text(build(LANGUAGES / code / "words", code), encoding="utf-8")


def build(folder: Path, code: str) -> str:
    """The text of `forms.txt`, in one order whatever the files' order."""
    classes = dict(_classes(folder))
    table: dict[str, dict[str, set[str]]] = {}
    for path in sorted(folder.glob("*.txt")):
        for concept, form, item in _entries(path, code, classes):
            table.setdefault(concept, {}).setdefault(form, set()).add(item)
    lines = ["# Written by tools/build.py from words/*.txt; edit those."]
    for concept in sorted(table):
        lines.append(f"@{concept}")
        for form in sorted(table[concept]):
            lines.append(" ".join([f"/{form}" if form else "/", *sorted(table[concept][form])]))
    return "\n".join(lines) + "\n"


def _classes(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Word classes of a folder: `[=name]`, then `w:` words and `p:` phrases; used in phrases as `=name`."""
    for path in sorted(folder.glob("*.txt")):
        name = ""
        for raw in path.read_text(encoding="utf-8").splitlines():
            line = raw.split("#")[0].strip().lower().replace("ё", "е")
            if line.startswith("["):
                name = line.strip("[]") if line.startswith("[=") else ""
            elif name and line:
                kind, _, words = line.partition(":")
                parts = words.split(",") if kind == "p" else words.split()
                yield name, ["_".join(p.split()) for p in parts]


def _entries(path: Path, code: str, classes: Classes) -> Iterator[tuple[str, str, str]]:
    """(concept, form, item) for each surface form of a words file."""
    concept = ""
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line, where = raw.split("#")[0].strip().lower().replace("ё", "е"), f"{path.name}:{number}"
        if not line:
            continue
        if line.startswith("["):
            concept = raw.split("#")[0].strip().strip("[]")
            continue
        if concept.startswith("="):
            continue
        kind, colon, words = line.partition(":")
        if not colon or not concept:
            raise RuleError(where, "a line that is no entry", "[concept], then kind: words")
        for item, form in _expanded(kind.strip(), words.strip(), code, where, classes):
            # VERB is a predicate and nothing else
            yield _weighed(concept, item), "" if concept == "VERB" else form, item


_FEW = 2  # words


def _weighed(concept: str, item: str) -> str:
    """A flag's idiom of one or two words is weak (`!flag?`) unless it is marked otherwise."""
    if COUNTED in concept and "_" not in item:
        return concept.partition(COUNTED)[0] + "?"
    if concept[0] != "!" or concept[-1] in MARKS_OF_STRENGTH or COUNTED in concept:
        return concept
    return concept + "?" if sum(token != "*" for token in item.split("_")) <= _FEW else concept


def _expanded(kind: str, words: str, code: str, where: str, classes: Classes) -> Forms:
    kind, _, form = kind.partition("/")
    if form not in FORMS:
        raise RuleError(where, "an unknown form", " ".join(FORMS))
    if kind == "p":
        return [
            (f, g or form)
            for phrase in words.split(",")
            if phrase.strip()
            for f, g in _phrase(phrase.split(), code, classes)
        ]
    if kind == "w":
        return [(word.replace("-", "_").strip("_"), form) for word in words.split()]
    if kind not in ("n", "v", "a"):
        raise RuleError(where, "an unknown kind", "n v a w p")
    return [pair for word in words.split() for pair in _word(word, kind, code)]


def _phrase(tokens: list[str], code: str, classes: Classes) -> Forms:
    """A phrase, once for each grammatical form its words may give it; words of one form stand together as `a|b`."""
    if len(tokens) == 1:
        return _choices(tokens[0], code, classes)
    choices = [_by_form(_choices(token, code, classes)) for token in tokens]
    return [("_".join(f for f, _ in row), next((g for _, g in row if g), "")) for row in product(*choices)]


def _by_form(several: Forms) -> Forms:
    """The words of each grammatical form in one. What is itself several words (`_`) stands alone."""
    forms: dict[str, list[str]] = {}
    for word, form in several:
        if "_" not in word:
            forms.setdefault(form, []).append(word)
    joined = [("|".join(dict.fromkeys(words)), form) for form, words in forms.items()]
    return joined + [pair for pair in several if "_" in pair[0]]


def _choices(token: str, code: str, classes: Classes) -> Forms:
    if "|" in token:
        return [pair for one in token.split("|") for pair in _choices(one, code, classes)]
    if token.startswith("="):
        return [(form, "") for word in classes[token] for form in _spelled(word, code)]
    if not token.startswith("~"):
        return [(form, "") for form in (_written(token) if code == "en" else _spelled(token, code))]
    kind, dot, word = token[1:].partition(".")
    return _word(word, kind, code) if dot else _word(token[1:], "n", code)


def _spelled(word: str, code: str) -> list[str]:
    """A word, and without its accents, as people type it; English and Russian have their own ways."""
    if code in ("en", "ru"):
        return [word]
    bare = "".join(c for c in unicodedata.normalize("NFD", word) if not unicodedata.combining(c))
    return list(dict.fromkeys([word, bare, bare.replace("'", "")]))


def _word(word: str, kind: str, code: str) -> Forms:
    return list(dict.fromkeys(_russian(word, kind) if code == "ru" else _english(word, kind)))


# English.

# How people write what a contraction stands for, and the shortest spellings of chat.
_SPELLINGS = {
    "you": "you u",
    "your": "your ur yr",
    "you're": "you're youre ur you_are u_r u_are",
    "are": "are r",
    "i'm": "i'm im i_am",
    "i've": "i've ive i_have",
    "i'll": "i'll ill i_will",
    "i'd": "i'd id i_would",
    "you've": "you've youve you_have u_have",
    "you'll": "you'll youll you_will u_will",
    "you'd": "you'd youd you_would",
    "we're": "we're we_are",
    "we've": "we've weve we_have",
    "we'll": "we'll we_will",
    "they're": "they're theyre they_are",
    "they'll": "they'll they_will",
    "it's": "it's its it_is",
    "it'll": "it'll itll it_will",
    "that's": "that's thats that_is",
    "there's": "there's theres there_is",
    "what's": "what's whats what_is",
    "who's": "who's whos who_is",
    "don't": "don't dont do_not",
    "doesn't": "doesn't doesnt does_not",
    "didn't": "didn't didnt did_not",
    "can't": "can't cant cannot can_not",
    "won't": "won't wont will_not",
    "isn't": "isn't isnt is_not",
    "wouldn't": "wouldn't wouldnt would_not",
    "shouldn't": "shouldn't shouldnt should_not",
    "couldn't": "couldn't couldnt could_not",
    "haven't": "haven't havent have_not",
    "mustn't": "mustn't mustnt must_not",
    "because": "because cause cuz cos coz",
    "please": "please pls plz",
    "mum": "mum mom",
    "mum's": "mum's mom's mums moms",
    "nobody": "nobody no_one noone",
    "anyone": "anyone anybody",
    "someone": "someone somebody",
    "everyone": "everyone everybody",
}


def _written(token: str) -> list[str]:
    """All spellings of a word in a phrase; several words are joined by `_`."""
    known = _SPELLINGS.get(token)
    if known:
        return known.split()
    return [token, token.replace("'", "")] if "'" in token[:-1] else [token]


_VOWELS = "aeiou"


def _english(word: str, kind: str) -> Forms:
    if kind == "n":
        return [(word, ""), (_plural(word), "")]
    if kind == "a":
        return [(word, "")]
    base, *past = word.split("/")
    pasts = past or [_past(base)]
    return [(base, "base"), (_plural(base), "3"), (_ing(base), "ing"), *((p, "past") for p in pasts)]


def _plural(word: str) -> str:
    if word.endswith(("s", "x", "z", "ch", "sh")) or word in ("go", "do"):
        return word + "es"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ies"
    return word + "s"


def _doubled(word: str) -> str:
    short = len(word) > 2 and word[-1] not in _VOWELS + "wxy" and word[-2] in _VOWELS and word[-3] not in _VOWELS
    return word + word[-1] if short and (len(word) < 5 or word in ("transfer", "forget", "permit", "submit")) else word


def _ing(word: str) -> str:
    if word.endswith("ie"):
        return word[:-2] + "ying"
    if word.endswith("e") and not word.endswith(("ee", "oe")):
        return word[:-1] + "ing"
    return _doubled(word) + "ing"


def _past(word: str) -> str:
    if word.endswith("e"):
        return word + "d"
    if word.endswith("y") and word[-2:-1] not in _VOWELS:
        return word[:-1] + "ied"
    return _doubled(word) + "ed"


# Russian.


def _analyser() -> Any:
    import pymorphy3  # only whoever builds lexicons has it

    return pymorphy3.MorphAnalyzer()


_CACHE: list[Any] = []
_POS = {"n": ("NOUN", "ADJF"), "v": ("INFN",), "a": ("ADJF", "ADJS")}


def _russian(word: str, kind: str) -> Forms:
    word, _, model = word.partition("=")
    if model:
        shared = next(n for n in range(len(model)) if word.endswith(model[n:]))
        stem, of_model = word[: len(word) - len(model) + shared], model[:shared]
        return [(stem + f[shared:], g) for f, g in _russian(model, kind) if f.startswith(of_model)]
    if not _CACHE:
        _CACHE.append(_analyser())
    parses = sorted(
        (p for p in _CACHE[0].parse(word) if p.tag.POS in _POS[kind]), key=lambda p: _POS[kind].index(p.tag.POS)
    )
    if not parses and kind == "v":
        raise RuleError(word, "no verb of that spelling", "an infinitive")
    if not parses:
        return [(word, "")]
    best = next((p for p in parses if p.normal_form == word), parses[0])
    found = []
    for form in best.lexeme:
        grammar = _verb_form(form.tag) if kind == "v" else ""
        if grammar is not None:
            found.append((form.word.replace("ё", "е"), grammar))
    return found


def _verb_form(tag: Any) -> str | None:
    """Our name of a Russian verb form; None for those we do not use (participles in full form, gerunds)."""
    if tag.POS == "INFN":
        return "inf"
    if tag.POS == "PRTS":
        return "pass"
    if tag.POS != "VERB":
        return None
    if tag.mood == "impr":
        return "imp" if tag.involvement != "incl" else "1p"
    if tag.tense == "past":
        return "past" if tag.number == "sing" else "pastp"
    perfective = tag.tense == "futr"
    if tag.person == "1per":
        return "1p" if tag.number == "plur" else "1" if perfective else "1i"
    if tag.person == "2per":
        return "2" if perfective else "2i"
    return "3" if tag.number == "sing" else "3p"


if __name__ == "__main__":
    main(sys.argv[1:])
