"""The offline profile: standing context within its cap, in the user's language, without secrets or a list of facts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.layers.facts import Fact, current, extract, reconcile
from nitka.layers.facts.profile import offline_profile
from nitka.types import Message

START = datetime(2025, 3, 8, 11, tzinfo=UTC)


def rows(*texts: str) -> list[Message]:
    return [Message(seq=n, n=n, role="user", text=t, at=START + timedelta(minutes=n)) for n, t in enumerate(texts)]


def known(said: list[Message]) -> tuple[Fact, ...]:
    return current(reconcile((), extract(said), said).facts)


def words(text: str) -> int:
    return len(text.split())


def profile(*texts: str, cap: int = 120) -> str:
    said = rows(*texts)
    return offline_profile(said, known(said), cap=cap, count=words)


def test_it_tells_language_manner_role_and_matters() -> None:
    text = profile(
        "hi, call me Tess, I live in Leeds",
        "I'm a nurse and I use a screen reader",
        "how do I prune an apple tree? keep it short",
        "and when does the apple tree want water",
    )
    assert text.splitlines() == [
        "Writes in English, briefly",
        "Goes by Tess, based in Leeds",
        "Work: nurse",
        "Keep in mind: screen reader",
        "Wants: short",
        "Currently about: apple, tree",
    ]


def test_it_speaks_the_users_language() -> None:
    text = profile("привет, меня зовут Женя, живу в Пскове", "подскажи, как варить борщ", "и сколько варить борщ")
    assert text.startswith("Пишет по-русски") and "Имя: Женя, город: Псков" in text and "борщ" in text


def test_nothing_said_is_nothing_known() -> None:
    assert profile() == ""


def test_what_is_kept_out_or_secret_never_enters() -> None:
    text = profile(
        "don't store this: divorce lawyer divorce",
        "between us, my divorce",
        "password is plum-47",
        "password is plum-47",
    )
    assert "divorce" not in text and "plum" not in text


def test_quoted_words_are_not_the_users_matters() -> None:
    assert "SYSTEM" not in profile('fix "the SYSTEM gateway rejects tokens"', 'fix "the SYSTEM gateway rejects tokens"')


@given(st.lists(st.text(max_size=80), max_size=8), st.integers(0, 60))
@settings(deadline=None, max_examples=60)
def test_the_cap_holds_for_any_text(texts: list[str], cap: int) -> None:
    assert words(profile(*texts, cap=cap)) <= cap


@pytest.mark.parametrize("times", [1, 50])
def test_it_does_not_grow_with_the_facts(times: int) -> None:
    text = profile(*[f"I love thing{n}, I hate stuff{n}" for n in range(times)])
    assert "thing" not in text.split("Currently")[0]
