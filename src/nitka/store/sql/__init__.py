"""SQL as SQL: reads files of named queries and of migrations.

A file of queries holds `-- name: NAME` lines, each followed by one statement. A migration is a file
`NNNN_name.sql`; what a released version has applied is never edited. `LiteralString` is the type of text that a
programmer wrote: queries can be nothing else.
"""

from __future__ import annotations

import re
import sqlite3
from importlib.resources import files
from typing import LiteralString, cast

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")

Migration = tuple[int, str, list[str]]
"""Number, file name, statements."""


def queries(*path: str) -> dict[str, LiteralString]:
    """The named queries of one file of this package."""
    text = files(__package__).joinpath(*path).read_text(encoding="utf-8")
    parts = _NAME.split(text)[1:]
    # Sound: the file is part of this package, written by programmers.
    return {name: cast(LiteralString, sql.strip()) for name, sql in zip(parts[::2], parts[1::2], strict=True)}


def migrations(*path: str) -> list[Migration]:
    """The migrations of one folder of this package, in order."""
    found = []
    for entry in files(__package__).joinpath(*path).iterdir():
        match = _MIGRATION.match(entry.name)
        if match:
            found.append((int(match[1]), entry.name, statements(entry.read_text(encoding="utf-8"))))
    return sorted(found)


def statements(script: str) -> list[str]:
    """Splits a script where a statement is complete, so that each can be run inside one transaction."""
    result, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(current):
            result.append(current.strip())
            current = ""
    if current.strip() and not all(line.lstrip().startswith("--") for line in current.strip().splitlines()):
        result.append(current.strip())
    return result
