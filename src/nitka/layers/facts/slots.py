"""The slot table: which slots hold one value and which many, their categories, and which contradict each other. Data
in `slots.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal, cast

Category = Literal["health", "belief", "orientation", "finance", "contact", "other"]
CATEGORIES: tuple[Category, ...] = ("health", "belief", "orientation", "finance", "contact", "other")

_SLOT = re.compile(r"[a-z][a-z0-9_]*(?:\.[^\W.][^\W.]*(?:[-' ][^\W.]+)*)*")
SLOT_BYTES = 120


def is_slot(name: str) -> bool:
    """Whether this can name a slot: dotted words, the first of ASCII, at most SLOT_BYTES of UTF-8."""
    return _SLOT.fullmatch(name) is not None and len(name.encode()) <= SLOT_BYTES


def is_many(slot: str) -> bool:
    """Whether the slot may hold several values at once."""
    rule = _rule(slot)
    return True if rule is None else bool(rule.get("many", False))


def category_of(slot: str, value: str = "") -> Category:
    """The category of the slot, or, where the slot has none of its own, the one its words speak of."""
    rule = _rule(slot) or {}
    if "category" in rule:
        return cast(Category, rule["category"])
    text = f"{slot.partition('.')[2] if rule.get('named') else ''} {value}".casefold().replace("ё", "е")
    spoken = (name for name, pattern in _words() if pattern.search(text))
    return next(spoken, "other")


def opposite_of(slot: str) -> str | None:
    """The beginning of the slots that this one contradicts, for the same value."""
    opposites = _table()["opposite"]
    return next((cast(str, opposites[head]) for head in _heads(slot) if head in opposites), None)


def within(slot: str, head: str) -> bool:
    """Whether `slot` is `head` or lies under it."""
    return slot == head or slot.startswith(head + ".")


@cache
def _table() -> dict[str, Any]:
    return tomllib.loads(files(__package__).joinpath("slots.toml").read_text("utf-8"))


@cache
def _words() -> tuple[tuple[Category, re.Pattern[str]], ...]:
    words = _table()["words"]
    return tuple((name, re.compile("|".join(map(_word, words[name])))) for name in words)


def _word(word: str) -> str:
    """The beginning of a word, or with a full stop the whole of it; what begins with "~" is a pattern as it stands."""
    if word.startswith("~"):
        return word[1:]
    return rf"\b{re.escape(word.rstrip('.'))}" + (r"\b" if word.endswith(".") else "")


def _heads(slot: str) -> list[str]:
    parts = slot.split(".")
    return [".".join(parts[:size]) for size in range(len(parts), 0, -1)]


def _rule(slot: str) -> dict[str, Any] | None:
    slots = _table()["slots"]
    for head in _heads(slot):
        starred = re.sub(r"^(\w+)\.[^.]+\.", r"\1.*.", head)
        if head in slots or starred in slots:
            return cast(dict[str, Any], slots.get(head, slots.get(starred)))
    return None


def usual_slots() -> tuple[str, ...]:
    """The slots of the table, for whoever proposes facts."""
    return tuple(name for name in _table()["slots"] if "*" not in name)
