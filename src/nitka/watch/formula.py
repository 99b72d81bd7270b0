"""Formulas: `,` is or, `&` is and, `>` is earlier than, as in the seed's table.

a,b > c & d      some of a,b before some of c, and before d
(a > b) & c      a before b; c at any time
@pretext         every flag of the group pretext
@minor           a condition of the engine (see CONDITIONS)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from nitka.watch.errors import RuleError
from nitka.watch.types import Formula

CONDITIONS = frozenset({"@minor", "@age_unknown", "@adults"})
_NAME = re.compile(r"@?[a-z][a-z0-9_]*\Z")


def parse(text: str, groups: Mapping[str, frozenset[str]], *, where: str = "formula") -> Formula:
    """Read a formula; `groups` are the named groups of flags. Raises `RuleError` at `where`."""
    if not text.strip():
        return Formula()
    loose: list[frozenset[str]] = []
    order: list[tuple[int, int]] = []
    for part in _parts(text):
        sides = part.strip("() ").split(">")
        if len(sides) > 2 or ("(" not in text and ">" in part and "&" in part and not part):
            raise RuleError(where, "more than one > in a part", "a > b")
        first = len(loose)
        for side in sides:
            for group in side.split("&"):
                loose.append(_group(group, groups, where))
        if len(sides) == 2:
            left = len(sides[0].split("&"))
            order += [(first + i, first + j) for i in range(left) for j in range(left, len(loose) - first)]
    return Formula(tuple(loose), tuple(order))


def _parts(text: str) -> list[str]:
    """The pieces joined by & that order does not reach across: the whole text unless parentheses say otherwise."""
    if "(" not in text:
        return [text]
    return [p for p in re.split(r"&(?![^(]*\))", text) if p.strip()]


def _group(text: str, groups: Mapping[str, frozenset[str]], where: str) -> frozenset[str]:
    flags: set[str] = set()
    for name in (n.strip() for n in text.split(",")):
        if not _NAME.match(name):
            raise RuleError(where, "a name that is malformed", "a flag, or @ and a group")
        if name.startswith("@") and name not in CONDITIONS:
            if name[1:] not in groups:
                raise RuleError(where, "an unknown group", " ".join(sorted(groups)))
            flags |= groups[name[1:]]
        else:
            flags.add(name)
    return frozenset(flags)
