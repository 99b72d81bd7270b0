"""The pages on the widget say what it does: their snippets run, and their tables are whole."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nitka.cli import texts
from nitka.server import user_tokens, widget
from tests.server.test_widget import SECRET

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = ["widget.md", "widget.ru.md"]


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest) -> str:
    return (DOCS / str(request.param)).read_text(encoding="utf-8")


@pytest.fixture
def source() -> str:
    return widget.script().plain.decode()


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def named(page: str, form: str) -> set[str]:
    """What the tables' first columns name."""
    firsts = (line.split("|")[1] for line in page.splitlines() if line.startswith("| `"))
    return {name for first in firsts for name in re.findall(form, first)}


def test_the_hosts_snippet_makes_tokens_that_are_good(page: str) -> None:
    (snippet,) = blocks(page, "python")
    scope: dict[str, Any] = {}
    exec(compile(snippet, "snippet", "exec"), scope)
    now = datetime.now(UTC)
    assert user_tokens.read(scope["user_token"](SECRET, "anna"), SECRET, now) == ("anna", None)
    both = scope["user_token"](SECRET, "anna", "visitor:abc")
    assert user_tokens.read(both, SECRET, now) == ("anna", "visitor:abc")


def test_every_variable_event_and_attribute_is_told(page: str, source: str) -> None:
    assert named(page, r"`(--nitka-[a-z-]+)`") == set(re.findall(r"var\((--nitka-[a-z-]+)", source))
    assert named(page, r"`(nitka-[a-z-]+)`") == {f"nitka-{name}" for name in re.findall(r'#tell\("([a-z-]+)"', source)}
    read = set(re.findall(r'this\.(?:get|has)Attribute\("([a-z-]+)"', source))
    (table,) = re.findall(r"^\| `key`.*?\n\n", page, re.MULTILINE | re.DOTALL)
    assert named(table, "`(.+?)`") == {*read, "theme", "lang", "text-…"}


def test_the_names_of_all_words_are_told(page: str, source: str) -> None:
    (listed,) = re.findall(r"^(?:The names|Имена) (?:for|для) `text-…`.*?:\n\n(.*?)\.\n\n", page, re.M | re.S)
    words = re.search(r"^  en: \{$(.*?)^  \},$", source, re.DOTALL | re.MULTILINE)
    assert words
    assert re.findall(r"`(\w+)`", listed) == re.findall(r"^    (\w+):", words[1], re.MULTILINE)


def test_the_words_are_there_in_both_languages(source: str) -> None:
    english, russian = re.findall(r"^  (?:en|ru): \{$(.*?)^  \},$", source, re.DOTALL | re.MULTILINE)
    keys = [re.findall(r"^    (\w+):", words, re.MULTILINE) for words in (english, russian)]
    assert keys[0] == keys[1]
    assert len(set(keys[0])) == len(keys[0]) > 40
    braces = [re.findall(r"\{\w+\}", words) for words in (english, russian)]
    assert braces[0] == braces[1]
    used = set(re.findall(r'"(\w+)"', source.split("class NitkaChat")[1]))
    used |= set(re.findall(r'return "(\w+)"', source))
    assert set(keys[0]) <= used, set(keys[0]) - used


def test_both_pages_have_the_same_parts() -> None:
    """The same headings in number, the same code, the same tables."""
    english, russian = ((DOCS / name).read_text(encoding="utf-8") for name in PAGES)
    for kind in ("sh", "html", "css"):
        assert blocks(english, kind) == blocks(russian, kind)
    for form in (r"^#+ ", r"^\| ", r"^\* "):
        assert len(re.findall(form, english, re.MULTILINE)) == len(re.findall(form, russian, re.MULTILINE)), form


def test_the_command_is_there(page: str) -> None:
    """What the page tells to type makes a key; see also tests/server/test_running.py."""
    assert blocks(page, "sh") == ["nitka keys create --scope widget --origin https://shop.example\n"]
    assert all(table.signing_made for table in texts.TABLES.values())
