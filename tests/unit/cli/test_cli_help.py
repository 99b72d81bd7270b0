"""What the command line says of itself: no option without help, no command undocumented, no text in one language."""

from __future__ import annotations

import ast
import dataclasses
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from nitka.cli.commands import app
from nitka.cli.texts import ENGLISH, RUSSIAN, said, texts_for
from nitka.errors import NitkaError
from nitka.types import Entry

ROOT = Path(__file__).resolve().parents[3]


def commands(command: Any, name: str = "nitka") -> Iterator[tuple[str, Any]]:
    """Every command and group, with its full name."""
    yield name, command
    for word, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{name} {word}")


ALL = dict(commands(typer.main.get_command(app)))


@pytest.mark.parametrize("name", sorted(ALL))
def test_every_command_and_option_has_a_help_text(name: str) -> None:
    command = ALL[name]
    assert command.help, name
    for param in command.params:
        assert getattr(param, "help", None), f"{name}: {param.name}"


@pytest.mark.parametrize("name", sorted(ALL))
def test_the_first_line_of_a_help_text_is_not_cut_short(cli: Any, name: str) -> None:
    result = cli(*name.split()[1:], "--help")
    assert result.code == 0
    listed = result.out.split("Commands:")[1] if "Commands:" in result.out else ""
    assert "..." not in listed


@pytest.mark.parametrize("page", ["README.md", "README.ru.md"])
@pytest.mark.parametrize("name", sorted(set(ALL) - {"nitka"}))
def test_every_command_is_documented(name: str, page: str) -> None:
    assert f"`{name}" in (ROOT / page).read_text(encoding="utf-8"), f"{name} is not in {page}"


def fields(text: Any) -> list[set[str]]:
    """What is filled in, text by text, for a text or a table of texts."""
    if isinstance(text, str):
        return [{name for _, name, _, _ in string.Formatter().parse(text) if name}]
    values = [text[key] for key in sorted(text)] if hasattr(text, "keys") else list(text)
    return [part for value in values for part in fields(value)]


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(ENGLISH)])
def test_both_languages_fill_in_the_same(name: str) -> None:
    if name in ("errors", "details", "usage", "reasons"):
        return  # English speaks for itself there
    assert fields(getattr(ENGLISH, name)) == fields(getattr(RUSSIAN, name))


def leaves(kind: type[Any]) -> Iterator[type[Any]]:
    yield kind
    for inner in kind.__subclasses__():
        if inner.__module__ == "nitka.errors":
            yield from leaves(inner)


@pytest.mark.parametrize("kind", sorted({kind.__name__ for kind in leaves(NitkaError)}))
def test_every_error_is_said_in_russian(kind: str) -> None:
    assert re.search("[а-я]", RUSSIAN.errors[kind])


def noted(path: Path) -> Iterator[str]:
    """The notes for receipts that a module makes, with a number for whatever is filled in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("notes.append"):
            (note,) = node.args
            parts = note.values if isinstance(note, ast.JoinedStr) else [note]
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "7" for part in parts)


NOTES = [note for path in ("remembering.py", "recalling/asking.py") for note in noted(ROOT / "src/nitka" / path)]


@pytest.mark.parametrize("note", NOTES)
def test_every_note_of_a_receipt_is_said_in_russian(note: str) -> None:
    assert re.search("[а-я]", said(RUSSIAN, note))


def test_the_notes_are_found() -> None:
    assert len(NOTES) >= 7


@pytest.mark.parametrize("texts", [ENGLISH, RUSSIAN])
def test_every_layer_and_outcome_has_a_name(texts: Any) -> None:
    hints = {field.name: str(field.type) for field in dataclasses.fields(Entry)}
    assert hints["layer"] == "Layer"
    from typing import get_args

    from nitka import types

    assert set(texts.layers) == set(get_args(types.Layer))
    assert set(texts.outcomes) == set(get_args(types.Outcome))


@pytest.mark.parametrize(
    ("locale", "texts"), [("ru_RU.UTF-8", RUSSIAN), ("RU", RUSSIAN), ("C", ENGLISH), ("", ENGLISH), ("rue", ENGLISH)]
)
def test_the_language_of_a_locale(locale: str, texts: Any) -> None:
    assert texts_for(locale) is texts
