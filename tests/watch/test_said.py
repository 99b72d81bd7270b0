"""What people say, by the flag that it shows (`said/<language>/*.txt`): most of it is heard, and ordinary talk is not.

A file has `[flag]` headers, or several flags in one, or `[-]` for talk that shows nothing; then one sentence a line.
Anyone may add to it. The sentences are a sample and no list to be met one by one: how many are heard, flag by flag
and in all, is what is tested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from nitka.watch import engine, parse
from nitka.watch.data import default
from nitka.watch.engine import who
from nitka.watch.memory import Memory
from nitka.watch.types import WEAK

SAID = Path(__file__).parent / "said"
LANGUAGES = sorted(folder.name for folder in SAID.iterdir() if folder.is_dir())
OF_ALL, OF_A_FLAG, OF_NOTHING, WEAKLY_OF_NOTHING = 0.85, 0.4, 0.2, 0.5


def said(language: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every sentence with the flags it shows."""
    for path in sorted((SAID / language).glob("*.txt")):
        flags: tuple[str, ...] = ()
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                flags = tuple(name for name in line.strip("[]").split() if name != "-")
            elif line and not line.startswith("#"):
                yield line, flags


def shown(sentence: str, language: str) -> tuple[str, ...]:
    return parse(sentence, language=language, settings={"speaker": "a"}).result.flags


@pytest.mark.parametrize("language", LANGUAGES)
def test_most_of_what_shows_a_flag_is_heard(language):
    """Most of all, and two in five of each flag that does not depend on what was said before."""
    heard: dict[str, list[bool]] = defaultdict(list)
    for sentence, flags in said(language):
        for flag in flags:
            heard[flag].append(flag in shown(sentence, language))
    answers = {"target_refusal", "target_discomfort", "target_complied", "target_distress"}
    answers |= {"persist_after_refusal", "guilt_pressure"}  # these need the message before
    shares = {flag: sum(marks) / len(marks) for flag, marks in heard.items() if flag not in answers}
    assert not {flag: share for flag, share in shares.items() if share < OF_A_FLAG}
    assert sum(shares.values()) / len(shares) >= OF_ALL


@pytest.mark.parametrize("language", LANGUAGES)
def test_ordinary_talk_shows_little(language):
    """A flag alone raises nothing, but what is more than weak should be rare where nothing is meant."""
    plain = [sentence for sentence, flags in said(language) if not flags]
    seen = [engine.step(default(), sentence, (language,), Memory(), who("a")).sightings for sentence in plain]
    firm = sum(any(s.strength > WEAK for s in sightings) for sightings in seen)
    assert firm <= OF_NOTHING * len(plain)
    assert sum(bool(sightings) for sightings in seen) <= WEAKLY_OF_NOTHING * len(plain)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_flag_named_is_known(language):
    named = {flag for _, flags in said(language) for flag in flags}
    assert named - default().kinds.keys() == set()
