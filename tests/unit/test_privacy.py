"""docs/privacy.md lists every column that is left in clear, in both languages, and no other."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path

import pytest

from nitka.store.sql import migrations

DOCS = Path(__file__).resolve().parents[2] / "docs"
SEALED = {"body", "wrapped", "proof"}


def columns() -> dict[str, set[str]]:
    """Clear columns of each table of both files; tables of one name are taken together."""
    found: dict[str, set[str]] = {"migrations": {"number", "name"}}
    for kind in ("data", "keys"):
        db = sqlite3.connect(":memory:")
        for _, _, statements in migrations("sqlite", kind):
            for statement in statements:
                db.execute(statement)
        for (table,) in db.execute("select name from sqlite_master where type = 'table'").fetchall():
            names = {row[1] for row in db.execute(f"pragma table_info({table})")}
            found.setdefault(table, set()).update(names - SEALED)
        db.close()
    return found


def listed(page: Path) -> dict[str, set[str]]:
    """The rows of the table whose second column names columns."""
    text = page.read_text(encoding="utf-8")
    table = max(re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE), key=len)
    found: dict[str, set[str]] = {}
    for row in table.splitlines()[2:]:
        tables, names, _ = (re.findall(r"`(\w+)`", cell) for cell in row.strip("|").split("|"))
        for name in tables:
            found[name] = set(names)
    return found


@pytest.mark.parametrize("page", ["privacy.md", "privacy.ru.md"])
def test_every_clear_column_is_listed_and_no_other(page: str) -> None:
    assert listed(DOCS / page) == columns()
