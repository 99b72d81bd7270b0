"""The public names: each is there, says what it is, and is enough to name whatever a call gives back."""

from __future__ import annotations

import inspect
import re

import pytest

import nitka
import nitka.sync
from nitka import types
from nitka.app import Nitka

CALLS = [name for name, _ in inspect.getmembers(Nitka, callable) if not name.startswith("_")]


@pytest.mark.parametrize("name", nitka.__all__)
def test_every_name_is_there_and_documented(name: str) -> None:
    assert inspect.getdoc(getattr(nitka, name))


@pytest.mark.parametrize("name", CALLS)
def test_every_call_is_documented(name: str) -> None:
    assert inspect.getdoc(getattr(Nitka, name))


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_gives_back_has_a_public_name(name: str) -> None:
    given = str(inspect.signature(getattr(Nitka, name)).return_annotation)
    found = {word: getattr(types, word, None) for word in re.findall(r"[A-Z]\w+", given)}
    ours = {word for word, kind in found.items() if getattr(kind, "__module__", "") == "nitka.types"}
    assert ours <= set(nitka.__all__)


def test_what_is_given_back_is_looked_at() -> None:
    """Else the test above would hold of anything."""
    given = " ".join(str(inspect.signature(getattr(Nitka, name)).return_annotation) for name in CALLS)
    assert {"Fact", "Profile", "Recalled", "Erased", "Adopted", "Settled"} <= set(re.findall(r"\w+", given))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        _ = nitka.nothing_of_the_kind


def test_the_calls_that_do_not_await_are_the_same() -> None:
    there = {name for name, _ in inspect.getmembers(nitka.sync.Nitka, callable) if not name.startswith("_")}
    assert set(CALLS) <= there
