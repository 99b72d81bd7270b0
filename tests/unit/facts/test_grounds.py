"""What a model proposes is held against the row: it may put things in other words, and may not invent."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.layers.facts import Candidate, current, extract, reconcile
from nitka.layers.facts.grounds import Ground, bears_out
from nitka.models.extractor import ModelExtractor
from nitka.models.ports import Answer
from nitka.types import Message

HERE = Path(__file__).parent
START = datetime(2025, 3, 8, 11, tzinfo=UTC)  # a Saturday


def talk(*texts: str) -> list[Message]:
    return [
        Message(
            seq=n,
            n=n,
            role="assistant" if text.startswith("A:") else "user",
            text=text.removeprefix("A:").strip(),
            at=START + timedelta(minutes=n),
        )
        for n, text in enumerate(texts)
    ]


def paragraphs(name: str) -> Iterator[list[str]]:
    for paragraph in re.split(r"\n\s*\n", (HERE / name).read_text("utf-8")):
        lines = [line for line in paragraph.splitlines() if line and not line.startswith("#")]
        if lines:
            yield lines


def cases() -> Iterator[Any]:
    for lines in paragraphs("grounds.txt"):
        rows = [line for line in lines if line[:2] not in ("+ ", "- ")]
        for line in lines[len(rows) :]:
            slot, value = line[2:].split(" = ", 1)
            yield pytest.param(rows, slot, value, line[0] == "+", id=f"{rows[-1][:40]} {line}")


def proposed(rows: list[Message], slot: str, value: str, statement: str = "") -> Candidate:
    last = rows[-1]
    return Candidate(slot=slot, value=value, statement=statement, quote=last.text, seq=last.seq, n=last.n)


@pytest.mark.parametrize(("texts", "slot", "value", "fits"), [*cases()])
def test_a_proposed_value_is_kept_when_the_row_bears_it_out_and_else_counted(
    texts: list[str], slot: str, value: str, fits: bool
) -> None:
    rows = talk(*texts)
    result = reconcile((), [proposed(rows, slot, value)], rows)
    assert result.counts == ({"added": 1} if fits else {"refused: invented": 1})


def test_rows_of_another_conversation_do_not_help() -> None:
    rows = talk("my dog Biscuit is a mess", "he hates thunder")
    value = proposed(rows, "pet.biscuit", "Biscuit hates thunder")
    assert reconcile((), [value], rows).counts == {"added": 1}
    assert reconcile((), [value], rows, sessions={0: "one", 1: "two"}).counts == {"refused: invented": 1}


def test_a_statement_that_names_what_nobody_said_gives_way_to_the_value() -> None:
    rows = talk("I moved to Porto")
    good, bad = (proposed(rows, "home.city", "Porto", said) for said in ("lives in Porto", "lives in Porto with Ann"))
    assert [fact.statement for fact in reconcile((), [good], rows).facts] == ["lives in Porto"]
    assert [fact.statement for fact in reconcile((), [bad], rows).facts] == ["Porto"]


def test_what_the_rules_find_in_the_fixtures_is_borne_out_by_its_rows() -> None:
    """Their values are right, so each refusal would be one of a good proposal of a model's; what a joke brings back
    is said by an earlier row."""
    told = refused = 0
    for name in ("statements.txt", "talks.txt", "changes.txt"):
        for lines in paragraphs(name):
            rows = talk(*(line.replace("\\n", "\n") for line in lines if not re.match(r"[=-](?: |$)", line)))
            found = [replace(one, ours=False) for one in extract(rows) if one.op == "assert"]
            told += len(found)
            refused += reconcile((), found, rows).counts["refused: invented"]
    assert told > 300 and refused <= told // 100


class Scripted:
    """A chat model with one answer."""

    name = "scripted"

    def __init__(self, *items: dict[str, Any]) -> None:
        self.text = json.dumps({"facts": items}, ensure_ascii=False)

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Answer:
        return Answer(text=self.text)

    async def stream(self, messages: Any, *, max_tokens: int) -> Any:
        yield self.text

    async def close(self) -> None:
        return None


def test_a_model_that_quotes_rightly_and_invents_is_counted_and_the_rest_stands() -> None:
    rows = talk("I moved to Porto and I don't eat meat")
    quote = {"op": "assert", "about": "user", "statement": "", "quote": "I moved to Porto", "row": 0, "fact": None}
    told = {**quote, "quote": "I don't eat meat"}
    chat = Scripted(
        {**quote, "slot": "home.city", "value": "Porto"},
        {**quote, "slot": "family.wife", "value": "Marisol"},
        {**quote, "slot": "home.rent", "value": "900"},
        {**told, "slot": "diet", "value": "vegetarian"},
    )
    found = asyncio.run(ModelExtractor(chat).extract(rows))
    result = reconcile((), found, rows)
    assert result.counts == {"added": 2, "refused: invented": 2}
    assert {fact.value for fact in current(result.facts)} == {"Porto", "vegetarian"}


LETTERS = st.text("bcdfghjklmnpqrstvwxz", min_size=6, max_size=9)


@given(st.lists(LETTERS, min_size=1, max_size=6), st.data())
def test_words_of_the_row_are_borne_out_in_any_order(words: list[str], data: st.DataObject) -> None:
    value = " ".join(data.draw(st.permutations(words)))
    assert bears_out(Ground(" ".join(words), START.date()), value, "note")


@given(st.lists(LETTERS, min_size=1, max_size=6), LETTERS, st.integers(10, 99))
def test_names_and_numbers_that_are_not_in_the_row_are_not_borne_out(words: list[str], name: str, number: int) -> None:
    ground = Ground(" ".join(words), START.date())
    if all(word[:4] != name[:4] for word in words):
        assert not bears_out(ground, f"{' '.join(words)} Я{name}", "note")
    assert not bears_out(ground, f"{' '.join(words)} {number}", "note")


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(["home.city", "pet.rex.kind", "smoking"]))
def test_any_texts_can_be_held_against_each_other(row: str, value: str, slot: str) -> None:
    assert isinstance(bears_out(Ground(row, START.date()), value, slot), bool)
