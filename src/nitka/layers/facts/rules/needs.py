"""What a text must hold for a pattern to match in it: so most rules are neither run on it nor even compiled.

`literals` reads a pattern's parse tree; that costs as much as compiling it, so what it finds for the packaged rules
lies beside them as data (`needs.json`, by a hash of the pattern). A pattern that is not there is always run.

    python -m nitka.layers.facts.rules.needs     # after a rule was changed; a test tells

Case is ignored as `re` ignores it but for a few letters beyond the alphabets; a text with one of those is read by
every rule.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import Any

ODD = frozenset("ſKİıÅ")  # letters that `re` takes for others when it ignores case
MOST = 400  # literals of one pattern; with more, looking for them costs as much as the pattern
HEAD = 3  # letters of a needed text by which it is found
VARIANTS = 4  # letters in a class that are spelt out ("[её]")

Needs = tuple[str, ...]


def literals(pattern: str) -> Needs:
    """Lower-case texts of which every match of the pattern, case ignored, holds at least one; none if unknown."""
    found = _of_sequence(import_module("re._parser").parse(pattern, re.I))
    return tuple(sorted(found)) if found else ()


def key_of(expanded: str) -> str:
    """What a pattern is known by in the data."""
    return hashlib.blake2b(expanded.encode(), digest_size=8).hexdigest()


@cache
def packaged() -> dict[str, Needs]:
    """What the packaged rules need."""
    data = json.loads(files(__package__).joinpath("needs.json").read_text("utf-8"))
    return {key: tuple(needs) for key, needs in data.items()}


class Index:
    """Which of some patterns, known by their places, may match in a text.

    A needed text is looked for only where its first letters occur, so that what a text costs grows with its own length
    and hardly with the number of patterns.
    """

    def __init__(self, needs: Iterable[Needs]) -> None:
        places: dict[str, list[int]] = {}
        for place, texts in enumerate(needs):
            for text in texts or ("",):
                places.setdefault(text, []).append(place)
        self._by_head: dict[str, list[tuple[str, list[int]]]] = {}
        self._short: list[tuple[str, list[int]]] = []
        for text, where in places.items():
            (self._by_head.setdefault(text[:HEAD], []) if len(text) >= HEAD else self._short).append((text, where))
        self._every = sorted({place for where in places.values() for place in where})

    def worth(self, text: str) -> list[int]:
        """The places, ascending, of those that have to be tried."""
        if ODD.intersection(text):
            return self._every
        lower = text.lower()
        heads = self._by_head.keys() & {lower[at : at + HEAD] for at in range(len(lower) - HEAD + 1)}
        near = [pair for head in heads for pair in self._by_head[head]]
        return sorted({place for need, where in (*near, *self._short) if need in lower for place in where})


def _better(one: frozenset[str], two: frozenset[str]) -> frozenset[str]:
    """Of two sets the one that says more: longer texts, then fewer of them."""
    if not one or not two:
        return one or two
    return max(one, two, key=lambda needs: (min(map(len, needs)), -len(needs)))


def _of_sequence(items: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    best: frozenset[str] = frozenset()
    run: list[str] = [""]  # the literal text up to here, in its spellings
    for op, value in items:
        letters = _letters(op, value)
        if letters and len(run) * len(letters) <= VARIANTS:
            run = [start + letter for start, letter in product(run, letters)]
            continue
        if str(op) in ("AT", "ASSERT_NOT"):
            continue  # takes no room: what is before it and after it stands together
        best = _better(best, _whole(run))
        run = [""]
        best = _better(best, _of_one(op, value))
    return _better(best, _whole(run))


def _whole(run: Sequence[str]) -> frozenset[str]:
    return frozenset(run) if all(text.strip() for text in run) else frozenset()


def _letters(op: Any, value: Any) -> list[str]:
    """The few letters that may stand here, in lower case."""
    if str(op) == "LITERAL":
        return [chr(value).lower()]
    if str(op) == "IN" and all(str(kind) == "LITERAL" for kind, _ in value):
        return sorted({chr(code).lower() for _, code in value})
    return []


def _of_one(op: Any, value: Any) -> frozenset[str]:
    name = str(op)
    if name == "SUBPATTERN":
        return _of_sequence(value[3])
    if name == "ATOMIC_GROUP":
        return _of_sequence(value)
    if name == "BRANCH":
        return _of_branches([_of_sequence(branch) for branch in value[1]])
    if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT") and value[0] > 0:
        return _of_sequence(value[2])
    if name == "ASSERT":
        return _of_sequence(value[1])
    return frozenset()


def _of_branches(branches: Sequence[frozenset[str]]) -> frozenset[str]:
    every = frozenset().union(*branches)
    return every if all(branches) and len(every) <= MOST else frozenset()


def main() -> None:
    """Writes what the packaged rules need."""
    from nitka.layers.facts.rules import engine, gone

    every = [*engine.patterns("en"), *engine.patterns("ru"), *gone.patterns()]
    found = {key_of(pattern): literals(pattern) for pattern in every}
    text = json.dumps(dict(sorted(found.items())), ensure_ascii=False, separators=(",", ":"))
    Path(__file__).with_name("needs.json").write_text(text.replace('],"', '],\n"') + "\n", "utf-8")


if __name__ == "__main__":
    main()
