"""The building blocks that rules are written with: `{NAME}` in a pattern stands for one of these.

Most are data (`lexicon.toml`), and may be written with others; numbers and dates come from the modules that also read
them. Patterns ignore case, except inside names and places, where capitals are what tells them. Every repetition is
bounded, so that no text can make a pattern slow.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.dates import month_pattern, weekday_pattern
from nitka.layers.facts.dates import pattern as date_pattern
from nitka.layers.facts.numbers import pattern as number_pattern

_MACRO = re.compile(r"\{([A-Z][A-Z0-9_]*)\}")


def expanded(pattern: str, language: str) -> str:
    """The pattern with its macros put in. Raises `KeyError` for an unknown one."""
    known = _macros(language)
    while _MACRO.search(pattern):
        pattern = _MACRO.sub(lambda match: known[match[1]], pattern)
    return pattern


def compiled(pattern: str, language: str) -> re.Pattern[str]:
    """The pattern of a rule, for the language ("en", "ru") it is written for; case is ignored."""
    return re.compile(expanded(pattern, language), re.I)


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("lexicon.toml").read_text("utf-8"))


@cache
def _macros(language: str) -> dict[str, str]:
    table = _table()
    return {
        **{name: "(?:" + "|".join(words) + ")" for name, words in table["lists"].items()},
        **table["patterns"],
        **table[f"patterns_{language}"],
        **_phrases(language),
        "NO_NAME": rf"(?!{_trie(table['no_name']['words'].split())}\b)",
        "NO_PERSON": rf"(?!{_trie([word.upper() for word in table['stop'][language].split() if len(word) > 1])}\b)",
        "NUM": f"(?:{number_pattern(language)})",
        "WEEKDAY": weekday_pattern(language),
        "MONTH": month_pattern(language),
        "DATE": date_pattern(language),
    }


def _phrases(language: str) -> dict[str, str]:
    """Noun phrases: words up to the first that belongs to no name of a thing.

    The leading word is possessive: "a a a ..." would else be read in exponentially many ways.
    """
    stop = rf"(?!{_trie(_table()['stop'][language].split())}(?![\w’']))"
    english = language == "en"
    lead = r"(?:(?:the|a|an|my|our|some|all|most|both|any|mild|severe|really|very) )?+" if english else ""
    of = "(?:of )?" if english else ""
    joint = r", (?:and |or )?| and | or | & " if english else r", (?:и )?| и | или "
    mine = r"(?!(?:my|our|his|her|their|your|мой|моя|мои|наш|наша|у)\b)"  # a new clause begins there, not an item
    return {
        "NP": rf"{lead}{stop}{{WORD}}(?: {of}{stop}{{WORD}}){{0,3}}",
        "NP1": rf"{lead}{stop}{{WORD}}(?: {stop}{{WORD}})?",
        "NPS": rf"{lead}{stop}{{WORD}}(?:(?:(?:{joint}){mine}| {of}){lead}{stop}{{WORD}}){{0,12}}",
    }


def _trie(words: list[str]) -> str:
    """A pattern for any of these words that shares their beginnings: it compiles and matches faster than a list."""
    heads: dict[str, list[str]] = {}
    for word in words:
        if word:
            heads.setdefault(word[0], []).append(word[1:])
    if not heads:
        return ""
    branches = "|".join(re.escape(head) + _trie(tails) for head, tails in heads.items())
    return f"(?:{branches})" + ("?" if "" in words else "")
