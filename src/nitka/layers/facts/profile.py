"""The offline profile: a few lines of standing context, made without a model from recent rows and from what is known.

It says how the user writes, who they are in the conversation, what must be kept in mind in every answer, how they
want to be answered, and what the talk keeps coming back to. It is no list of facts: one line for each of these, the
newest values only, and whatever does not fit the cap is left out from the end. Words of a secret never enter it.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from nitka.layers.facts.canon import stem
from nitka.layers.facts.model import USER, Fact
from nitka.layers.facts.rules.modality import reaches
from nitka.layers.facts.rules.text import hidden, sentences
from nitka.layers.facts.secrets import holds_secret
from nitka.layers.facts.slots import within
from nitka.types import Message

RECENT = 40
"""Rows of the user that are looked at, the newest."""
_VALUES, _MATTERS, _LONG, _SHORT = 3, 3, 40, 12
_WORD = re.compile(r"[^\W\d_]{4,}(?:[-'’][^\W\d_]+)*")
_FAMILIAR = re.compile(r"(?i)(?<!\w)(?:ты|тебя|тебе|тобой|посоветуй|подскажи|помоги|скажи|слушай|глянь|привет)(?!\w)")
_FORMAL = re.compile(r"(?i)(?<!\w)(?:вы|вас|вам|посоветуйте|подскажите|помогите|скажите|здравствуйте|будьте)(?!\w)")
_POLITE = re.compile(r"(?i)\b(?:please|thank you|could you|would you|kind regards|dear)\b")
_CASUAL = re.compile(r"(?i)\b(?:lol|haha|gonna|wanna|ya|yeah|nah|btw|thx|omg|u|im|dont|cant)\b|[!?]{2,}|\)\)")


def offline_profile(
    messages: Sequence[Message], facts: Sequence[Fact], *, cap: int, count: Callable[[str], int]
) -> str:
    """A standing description of at most `cap` tokens by `count`; "" when the user has said nothing yet."""
    said = [message.text for message in messages if message.role == "user"][-RECENT:]
    if not said:
        return ""
    words = _data()["ru" if _is_russian(" ".join(said)) else "en"]
    mine = [fact for fact in facts if fact.live and fact.about == USER]
    lines = [
        _manner(said, words),
        _who(mine, words),
        *(_named(mine, name, words) for name in ("work", "needs", "wants")),
        _matters(said, words),
    ]
    kept = [line for line in lines if line and not holds_secret(line)]
    while kept and count("\n".join(kept)) > cap:
        kept.pop()
    return "\n".join(kept)


def _manner(said: Sequence[str], words: dict[str, Any]) -> str:
    text = " ".join(said)
    sizes = sorted(len(one.split()) for one in said)
    middle = sizes[len(sizes) // 2]
    parts = [words["language"].format(v=words["languages"]["ru" if _is_russian(text) else _latin(text)])]
    if middle <= _SHORT or middle >= _LONG:
        parts.append(words["short" if middle <= _SHORT else "long"])
    casual, polite = (_FAMILIAR, _FORMAL) if _is_russian(text) else (_CASUAL, _POLITE)
    counts = len(casual.findall(text)), len(polite.findall(text))
    if counts[0] != counts[1]:
        parts.append(words["informal" if counts[0] > counts[1] else "polite"])
    return ", ".join(parts)


def _who(facts: Sequence[Fact], words: dict[str, Any]) -> str:
    named = [words["name"].format(v=fact.value) for fact in facts if fact.slot == "name"]
    home = [words["home"].format(v=value) for value in _values(facts, _data()["slots"]["home"])[:1]]
    line = ", ".join([*named, *home])
    return line[:1].upper() + line[1:]


def _named(facts: Sequence[Fact], name: str, words: dict[str, Any]) -> str:
    values = _values(facts, _data()["slots"][name])[:_VALUES]
    return str(words[name].format(v=", ".join(values))) if values else ""


def _values(facts: Sequence[Fact], slots: Sequence[str]) -> list[str]:
    """The statements of these slots where a value alone would not say enough, the newest of each slot first."""
    found: list[str] = []
    for slot in slots:
        fitting = sorted((fact for fact in facts if within(fact.slot, slot)), key=lambda fact: fact.when, reverse=True)
        found += [fact.statement if slot in _SPELT_OUT else fact.value for fact in fitting]
    return found


_SPELT_OUT = frozenset(("allergy", "preference.address", "work.runs"))


def _matters(said: Sequence[str], words: dict[str, Any]) -> str:
    """What the talk keeps coming back to: words of several rows, each counted once a row, as they were last written."""
    rows: Counter[str] = Counter()
    forms: dict[str, str] = {}
    for text in said:
        here = {stem(word.casefold()): word for word in _WORD.findall(_open(text)) if word.casefold() not in _empty()}
        forms.update(here)
        rows.update(here.keys())  # counted in the order of first appearance, which breaks ties
    best = [forms[key] for key, times in rows.most_common(_MATTERS) if times > 1]
    return str(words["matters"].format(v=", ".join(best))) if best else ""


def _open(text: str) -> str:
    """What the user said, without what was to be kept out and without secrets."""
    parts = (part for part in sentences(hidden(text)) if not holds_secret(part.text))
    return " ".join(part.text for part in parts if all(reach.sense != "kept_out" for reach in reaches(part)))


def _is_russian(text: str) -> bool:
    return len(re.findall("[А-Яа-яЁё]", text)) * 2 > len(re.findall(r"[^\W\d_]", text))


def _latin(text: str) -> str:
    """The language of a text that is not Russian; English where it is too short to tell."""
    import py3langid

    code = str(py3langid.classify(text)[0]) if len(text) > 60 else "en"
    return code if code in _data()["en"]["languages"] and code != "ru" else "en"


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("profile.toml").read_text("utf-8"))


@cache
def _empty() -> frozenset[str]:
    return frozenset(_data()["words"]["empty"].split())
