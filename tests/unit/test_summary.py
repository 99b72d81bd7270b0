"""Law 4 as properties: whatever a summariser proposes, the summary settles and stays within its cap."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.errors import Damaged
from nitka.layers import summary as layer
from nitka.types import Line, Proposal, Summary


def words(text: str) -> int:
    """A counter that is not additive over joins: newlines cost too, and long words cost more."""
    return sum(1 + len(word) // 5 for word in text.split()) + text.count("\n")


LAW = settings(max_examples=40, deadline=None)

WORDS = ["Anna", "жизнь", "é\x00", "a\nb", "\u2028", "\ud800x", "12", "、。", "\t", "incomprehensibilities", " "]
TEXT = st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join)
NUMBER = st.integers(-5, 400)


@st.composite
def lines(draw: st.DrawFn) -> Line:
    long = draw(st.sampled_from([1, 1, 1, 40]))
    return Line(
        full=draw(TEXT) * long,
        gist=draw(TEXT),
        first=draw(NUMBER),
        last=draw(NUMBER),
        form=draw(st.sampled_from(["full", "gist"])),
        offline=draw(st.booleans()),
    )


PROPOSAL = st.builds(
    Proposal, add=st.lists(lines(), max_size=4).map(tuple), replaced=st.lists(NUMBER, max_size=5).map(tuple)
)
CAP = st.integers(0, 60)
STEPS = st.lists(st.tuples(PROPOSAL, st.integers(0, 6)), max_size=6)
Steps = list[tuple[Proposal, int]]


def folded(steps: Steps, cap: int) -> list[Summary]:
    """Every state of a summary through the steps, the empty one first."""
    states = [Summary()]
    for proposal, rows in steps:
        before = states[-1]
        states.append(
            layer.advance(before, proposal, cursor=before.cursor + rows, cap=cap, count=words, counter="words")
        )
    return states


@LAW
@given(STEPS, CAP)
def test_after_every_step_the_summary_is_within_its_cap(steps: Steps, cap: int) -> None:
    for state in folded(steps, cap)[1:]:
        assert words(state.text) <= cap
        assert state.tokens == words(state.text)
        assert state.counter == "words"


@LAW
@given(STEPS, CAP)
def test_lines_stay_byte_for_byte_and_in_order(steps: Steps, cap: int) -> None:
    """A line's forms and rows never change, nothing is put before an older line, and only full gives way to gist."""
    states = folded(steps, cap)
    for before, after in pairwise(states):
        written = [replace(line, form="full") for line in before.lines]
        survivors = [replace(line, form="full") for line in after.lines if line.first < before.cursor]
        rest = iter(written)
        assert all(line in rest for line in survivors if line in written)
        for line in after.lines:
            twins = [old for old in before.lines if replace(old, form="full") == replace(line, form="full")]
            assert not (twins and line.form == "full" and all(old.form == "gist" for old in twins))


@LAW
@given(STEPS, CAP)
def test_wording_is_lost_before_sense(steps: Steps, cap: int) -> None:
    """No line goes while one stands in full, and what goes is the oldest."""
    states = folded([(replace(proposal, replaced=()), rows) for proposal, rows in steps], cap)
    for before, after in pairwise(states):
        still = {replace(line, form="gist") for line in after.lines}
        gone = [line for line in before.lines if replace(line, form="gist") not in still]
        if gone:
            assert all(line.form == "gist" for line in after.lines)
            assert gone == list(before.lines[: len(gone)])


@LAW
@given(STEPS, CAP)
def test_a_line_is_one_line_and_not_blank(steps: Steps, cap: int) -> None:
    for state in folded(steps, cap):
        for line in state.lines:
            assert line.text.splitlines() == [line.text]
            assert line.text == line.text.strip() != ""
            assert line.text.encode("utf-8")
        assert len(state.text.splitlines()) == len(state.lines)


@LAW
@given(STEPS, CAP)
def test_every_line_rests_on_rows_that_were_read(steps: Steps, cap: int) -> None:
    states = folded(steps, cap)
    for before, after in pairwise(states):
        old = [replace(line, form="full") for line in before.lines]
        for line in after.lines:
            if replace(line, form="full") not in old:
                assert before.cursor <= line.first <= line.last <= max(before.cursor, after.cursor - 1)


@LAW
@given(STEPS, CAP)
def test_no_two_lines_say_the_same(steps: Steps, cap: int) -> None:
    for state in folded(steps, cap):
        texts = [line.full for line in state.lines]
        assert len(texts) == len(set(texts))


@LAW
@given(STEPS, PROPOSAL)
def test_a_line_is_replaced_only_by_a_new_one(steps: Steps, proposal: Proposal) -> None:
    before = folded(steps, 1000)[-1]
    after = layer.advance(
        before, replace(proposal, add=()), cursor=before.cursor + 2, cap=1000, count=words, counter="words"
    )
    assert after.lines == before.lines
    assert after.version == before.version + 1


@LAW
@given(STEPS, st.sets(st.integers(-3, 30)))
def test_replaced_lines_go_whole_and_all_others_stay(steps: Steps, positions: set[int]) -> None:
    before = folded(steps, 1000)[-1]
    new = Line(full="a line that nobody wrote before", gist="new line", first=before.cursor, last=before.cursor)
    after = layer.advance(
        before,
        Proposal(add=(new,), replaced=tuple(positions)),
        cursor=before.cursor + 1,
        cap=10_000,
        count=words,
        counter="words",
    )
    kept = [line for at, line in enumerate(before.lines) if at not in positions]
    assert list(after.lines[:-1]) == kept
    assert after.lines[-1].full == new.full


@LAW
@given(STEPS, CAP)
def test_versions_count_the_steps_and_the_cursor_follows(steps: Steps, cap: int) -> None:
    states = folded(steps, cap)
    assert [state.version for state in states] == list(range(len(states)))
    assert states[-1].cursor == sum(rows for _, rows in steps)


@LAW
@given(STEPS, st.integers(0, 40), st.integers(0, 10))
def test_forgetting_leaves_no_line_that_rests_on_a_forgotten_row(steps: Steps, first: int, more: int) -> None:
    before = folded(steps, 200)[-1]
    after = layer.forget(before, first, first + more, count=words)
    assert all(line.last < first or line.first > first + more for line in after.lines)
    assert all(gap[1] < first or gap[0] > first + more for gap in after.gaps)
    lost = {row for line in before.lines if line not in after.lines for row in range(line.first, line.last + 1)}
    gaps = {row for gap in after.gaps for row in range(gap[0], gap[1] + 1)}
    assert gaps == lost - set(range(first, first + more + 1))
    assert after.tokens == words(after.text)
    assert (after.version, after.cursor) == (before.version + 1, before.cursor)


@LAW
@given(STEPS, st.integers(0, 40), st.lists(lines(), max_size=4), CAP)
def test_mending_closes_the_gap_in_seq_order(steps: Steps, row: int, anew: list[Line], cap: int) -> None:
    torn = layer.forget(folded(steps, 200)[-1], row, row, count=words)
    for gap in torn.gaps:
        mended = layer.mend(torn, gap, anew, cap=cap, count=words, counter="words")
        assert gap not in mended.gaps
        assert len(mended.gaps) == len(torn.gaps) - 1
        assert words(mended.text) == mended.tokens <= cap
        assert mended.version == torn.version + 1
        seqs = [line.first for line in mended.lines]
        assert seqs == sorted(seqs) or [line.first for line in torn.lines] != sorted(line.first for line in torn.lines)


def test_a_gap_is_mended_once() -> None:
    with pytest.raises(ValueError, match="gap"):
        layer.mend(Summary(cursor=4), (1, 2), (), cap=10, count=words, counter="words")


def test_a_cursor_never_moves_back() -> None:
    with pytest.raises(ValueError, match="cursor"):
        layer.advance(Summary(cursor=4), Proposal(), cursor=3, cap=10, count=words, counter="words")


@LAW
@given(STEPS, CAP)
def test_a_request_is_given_a_view_and_nothing_is_stored(steps: Steps, room: int) -> None:
    stored = folded(steps, 200)[-1]
    shown, changed = layer.shrink(stored, room, words)
    assert words("\n".join(line.text for line in shown)) <= room
    assert changed == (shown != stored.lines)
    assert changed or shown == stored.lines
    full = [replace(line, form="full") for line in stored.lines]
    assert [replace(line, form="full") for line in shown] == full[len(full) - len(shown) :]


@LAW
@given(STEPS, CAP)
def test_json_gives_the_same_summary_back(steps: Steps, cap: int) -> None:
    state = layer.forget(folded(steps, cap)[-1], 2, 3, count=words)
    wire = json.loads(json.dumps(layer.to_json(state)))
    assert layer.from_json(wire) == state
    wire["of a later version"] = 1
    for line in wire["lines"]:
        line["of a later version"] = []
    assert layer.from_json(wire) == state


@pytest.mark.parametrize(
    "state",
    [
        {},
        {"cursor": "4", "version": 0},
        {"cursor": 1, "version": True},
        {"cursor": 1, "version": 0, "lines": [{"full": "x"}]},
        {"cursor": 1, "version": 0, "lines": [{"full": "x", "gist": "x", "first": 0, "last": 0, "form": "short"}]},
        {"cursor": 1, "version": 0, "gaps": [[1]]},
        {"cursor": 1, "version": 0, "lines": [7]},
    ],
)
def test_a_state_of_another_shape_is_damaged(state: dict[str, Any]) -> None:
    with pytest.raises(Damaged):
        layer.from_json(state)


def test_one_giant_line_does_not_push_out_the_others() -> None:
    """A line three times the cap is cut at a word, with a mark, and the older line is still there."""
    first = layer.advance(
        Summary(),
        Proposal(add=(Line(full="Anna has a dog", gist="Anna: dog", first=0, last=0),)),
        cursor=1,
        cap=30,
        count=words,
        counter="words",
    )
    giant = Line(full="word " * 100, gist="word " * 100, first=1, last=1)
    after = layer.advance(first, Proposal(add=(giant,)), cursor=2, cap=30, count=words, counter="words")
    assert [line.text for line in after.lines] == ["Anna has a dog", after.lines[1].full]
    assert after.lines[1].full.endswith("word…")
