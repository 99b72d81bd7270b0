"""Conversations in `cases/*.md`, and the packaged rules' own, come out as written; the packaged rules pass lint."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nitka.watch import conversations
from nitka.watch.data import default
from nitka.watch.lint import lint

CASES = [
    case
    for path in sorted((Path(__file__).parent / "cases").glob("*.md"))
    for case in conversations.read(path.name, path.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"{c.where} {c.name}")
def test_case(case):
    """A conversation that anyone can add."""
    watch = default()
    codes = tuple(watch.languages) if case.language == "*" else tuple(case.language.split("|"))
    assert not list(conversations.failures(watch, case, codes))


def test_the_packaged_rules_pass_lint():
    assert lint() == []


def test_no_text_reaches_standard_output_or_error():
    """Nothing of the message, the speaker or a malformed pattern is written to the file descriptors."""
    script = """
import sys
from nitka.watch import parse, WatchError
from nitka.watch.data import default
for text in ("MARKERWORD where are your parents", "MARKERWORD \\ud800 \\x00", "MARKERWORD@example.com +7 916 1234567"):
    parse(text, settings={"speaker": "MARKERWORD", "message_id": "MARKERWORD"})
pattern = {"if": {"regex": "(MARKERWORD"}}
malformed = ({"assign": [pattern]}, {"flags": [{"MARKERWORD": 1}]}, {"x": {"v": 1, "s": "MARKERWORD"}})
for bad in malformed:
    try:
        parse("x", memory=bad)
    except WatchError as error:
        print(error)
        print(error, file=sys.stderr)
    else:
        raise SystemExit("accepted")
"""
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert b"MARKERWORD" not in run.stdout + run.stderr
    assert run.stdout.count(b"settings.memory") == 3
