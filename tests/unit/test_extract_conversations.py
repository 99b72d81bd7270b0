"""Small conversations with planted values, folded step by step: what must be left, and what must be gone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import pytest

from nitka.estimate import count
from nitka.layers.summary import advance
from nitka.models.extract import compact, propose
from nitka.types import Message, Summary

FOLDER = Path(__file__).parent / "extract"
FILES = sorted(FOLDER.glob("*.txt"))


@dataclass
class Case:
    cap: int = 300
    keep: float = 1.0
    messages: list[Message] = field(default_factory=list)
    plant: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)


def read(path: Path) -> Case:
    case = Case()
    for line in path.read_text("utf-8").splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key in ("user", "assistant"):
            seq = len(case.messages)
            role = "user" if key == "user" else "assistant"
            at = datetime(2025, 3, 1, 12, seq % 60, tzinfo=UTC)
            case.messages.append(Message(seq=seq, n=seq, role=role, text=value, at=at))  # type: ignore[arg-type]
        elif key in ("plant", "gone"):
            getattr(case, key).append(value)
        elif key:
            setattr(case, key, float(value) if key == "keep" else int(value))
    return case


def fold(case: Case, slice_size: int) -> Summary:
    summary = Summary()
    while summary.cursor < len(case.messages):
        end = min(summary.cursor + slice_size, len(case.messages))
        proposal = propose(summary.lines, case.messages[summary.cursor : end], cap=case.cap)
        summary = advance(summary, proposal, cursor=end, cap=case.cap, count=count, counter="estimate")
    return summary


def stands(planted: str, text: str) -> bool:
    """Whether any form of a planted value stands in the text as whole words."""
    forms = (form.strip() for form in planted.split("|"))
    patterns = (re.escape(form.rstrip("*")) + ("" if form.endswith("*") else r"(?!\w)") for form in forms)
    return any(re.search(r"(?<!\w)" + pattern, text, re.IGNORECASE) for pattern in patterns)


def share(case: Case, text: str) -> float:
    return sum(stands(planted, text) for planted in case.plant) / len(case.plant)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
@pytest.mark.parametrize("slice_size", [2, 14])
def test_what_was_planted_is_left_and_what_was_replaced_is_gone(path: Path, slice_size: int) -> None:
    case = read(path)
    summary = fold(case, slice_size)
    assert share(case, summary.text) >= case.keep, [p for p in case.plant if not stands(p, summary.text)]
    assert not [value for value in case.gone if stands(value, summary.text)]
    assert summary.tokens <= case.cap


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_line_is_words_of_its_own_rows_and_its_gist_holds_the_figures(path: Path) -> None:
    """Nothing is made up: each word of a line was said in its rows, and each figure of the full line is in its gist."""
    case = read(path)
    for line in fold(case, 2).lines:
        rows = " ".join(message.text for message in case.messages[line.first : line.last + 1]).lower()
        said = set(re.findall(r"\w+", rows)) | {"assistant", "ассистент"}
        assert set(re.findall(r"\w+", line.full.lower())) <= said
        assert set(re.findall(r"\d+", line.full)) <= set(re.findall(r"\d+", line.gist))
        assert len(line.gist) <= len(line.full)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_turn_summary_of_the_same_messages_fits_its_room_and_tells_as_much(path: Path) -> None:
    case = read(path)
    lines = compact(case.messages, room=case.cap, count=count)
    text = "\n".join(line.text for line in lines)
    assert count(text) <= case.cap
    assert share(case, text) >= case.keep - 0.15
    assert [line.first for line in lines] == sorted(line.first for line in lines)


def test_there_are_conversations() -> None:
    assert len(FILES) >= 6
