"""A past request, put together again: laws 2 and 5 hold for it, and it is the one that was really sent, as far as that
can be known.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka import Nitka
from nitka.facts import Facts
from nitka.layers.facts import Fact, Seen
from nitka.models.extract import compact, condense
from nitka.request.parts import Means
from nitka.server.inspector import reading
from nitka.server.inspector.drawing import LABEL, WIDE, budget_bar, close_up, dots, rows_strip, sampled, shares
from nitka.server.inspector.known import as_passages, known_at
from nitka.server.inspector.past import Log, Rules, request_of, stands
from nitka.testing import MemoryStore, memory_ring
from nitka.tokens import Counter, default_counter
from nitka.types import Budget, Layer, Limits, Line, Message, Receipt, Request, Summary, User

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
COUNTERS = (Counter("letters", 0.0, len), Counter("quarters", 0.25, lambda text: -(-len(text) // 4)), default_counter())


def row(seq: int, text: str) -> Message:
    return Message(seq=seq, n=seq, role="assistant" if seq % 2 else "user", text=text, at=NOW + timedelta(minutes=seq))


@st.composite
def logs(draw: st.DrawFn, counter: Counter) -> Log:
    """A session's log: some turns forgotten, a summary that has read some of it, in lines of any rows."""
    pairs = draw(st.lists(st.one_of(st.none(), st.tuples(texts, texts)), min_size=1, max_size=24))
    rows = [row(2 * at + part, pair[part]) for at, pair in enumerate(pairs) if pair for part in (0, 1)]
    cursor = draw(st.integers(0, 2 * len(pairs)))
    ranges = draw(st.lists(st.tuples(st.integers(0, max(0, cursor - 1)), st.integers(0, 5)), max_size=8))
    ends = [(first, min(first + more, max(0, cursor - 1))) for first, more in sorted(ranges)]
    lines = [Line(full=f"({at})", gist="g", first=first, last=last) for at, (first, last) in enumerate(ends)]
    return Log(
        first=0,
        head=2 * len(pairs),
        rows=tuple(rows),
        sizes={one.seq: counter.count(one.text) for one in rows},
        summary=Summary(lines=tuple(lines) if cursor else (), cursor=cursor, counter=counter.name),
    )


texts = st.one_of(st.text(min_size=1, max_size=60).filter(str.strip), st.sampled_from(["да", "word " * 80, "🎂" * 9]))


@st.composite
def scenes(draw: st.DrawFn) -> tuple[Log, Rules]:
    counter = draw(st.sampled_from(COUNTERS))
    budget = draw(st.sampled_from([300, 900, 8_000]))
    rules = Rules(
        window=draw(st.integers(0, 12)),
        slack=draw(st.integers(0, 6)),
        slice_tokens=draw(st.sampled_from([20, 3_000])),
        budget=Budget(total=budget, answer=budget // 4),
        means=Means(counter, compact, condense),
    )
    return draw(logs(counter)), rules


@settings(max_examples=80)
@given(scenes())
def test_a_reassembled_request_covers_the_log_exactly_and_fits(scene: tuple[Log, Rules]) -> None:
    """Law 2: the summary stands for the rows before the cursor, verbatim and turn summary for the rest, each once. Law
    5: never more than the budget; and the bars that are drawn of it add up.
    """
    log, rules = scene
    for seq, stand in stands(log, rules).items():
        request = request_of(log, seq, stand.cursor, rules)
        if request is None:
            continue
        receipt = request.receipt
        assert receipt.used <= receipt.room <= receipt.budget == rules.budget.total
        assert (receipt.cursor, receipt.head) == (stand.cursor, seq)
        living = [one.seq for one in log.rows if stand.cursor <= one.seq < seq]
        verbatim = [block.first for block in request.blocks if block.layer == "history"]
        compacted = sum(entry.count for entry in receipt.layer("history") if entry.outcome == "compacted")
        assert living[compacted:] == verbatim
        told = [block.text for block in request.blocks if block.layer == "summary"]
        assert all(line.last < stand.cursor for line in log.summary.lines if any(line.full in text for text in told))
        _drawn_to_scale(log, seq, stand.cursor, request)


def _drawn_to_scale(log: Log, seq: int, cursor: int, request: Request) -> None:
    assert request is not None
    bar = budget_bar(request)
    used = request.receipt.used
    assert sum(part.width for part in bar) == pytest.approx(1000)
    assert all(after.x == pytest.approx(part.x + part.width) for part, after in zip(bar, bar[1:], strict=False))
    assert sum(share.tokens for share in shares(request)) == used
    assert sum(part.tokens for part in close_up(request)) == used
    strip = rows_strip(log, seq, request, cursor)
    assert [number for part in strip for number in range(part.first, part.last + 1)] == list(range(seq + 1))


@settings(max_examples=80)
@given(scenes())
def test_the_cursor_follows_the_rule_and_never_moves_back(scene: tuple[Log, Rules]) -> None:
    """Before each turn no more than window and slack is unfolded, unless today's cursor says that it was; and all that
    was folded before some turn is told once.
    """
    log, rules = scene
    found = stands(log, rules)
    assert list(found) == [one.seq for one in log.rows if one.role == "user"]
    cursors = [stand.cursor for stand in found.values()]
    assert cursors == sorted(cursors)
    for seq, stand in found.items():
        assert stand.cursor <= min(seq, log.summary.cursor)
        unfolded = [one for one in log.rows if stand.cursor <= one.seq < seq]
        assert len(unfolded) <= rules.window + rules.slack or stand.cursor == log.summary.cursor
    if found:
        last = max(found)
        below = sum(log.sizes[one.seq] for one in log.rows if one.seq < found[last].cursor)
        assert sum(stand.folded for stand in found.values()) <= below


def test_of_a_long_log_only_turns_are_told_whose_past_is_known() -> None:
    rows = tuple(row(seq, "word") for seq in range(100, 160))
    means = Means(COUNTERS[0], compact, condense)
    rules = Rules(window=12, slack=0, slice_tokens=3_000, budget=Budget(total=8_000), means=means)
    log = Log(first=100, head=160, rows=rows, sizes={one.seq: 4 for one in rows}, summary=Summary(cursor=148))
    found = stands(log, rules)
    assert min(found) == 114
    assert all(stand.cursor == seq - 12 for seq, stand in found.items())


ALIKE: tuple[Layer, ...] = ("question", "history", "facts")
SAID = (
    "My name is Anna.",
    "I live in Leeds, and my sister Vera turns 40 on 12 June.",
    "Она любит джаз, а я пеку торт на 25 гостей.",
    "I have moved to York.",
    "The cake has three layers and no nuts.",
    "What is my name?",
    "word " * 60,
)


async def held(limits: Limits) -> tuple[dict[int, Receipt], Log, Facts, Means]:
    """A conversation held with Nitka, folded turn by turn: the receipts that were given, and what is left of it."""
    receipts: dict[int, Receipt] = {}
    async with Nitka.open(MemoryStore(), keys=memory_ring(), limits=limits, background=False) as nitka:
        for at in range(22):
            reply = await nitka.say("anna", "s", text=f"{SAID[at % len(SAID)]} {at}", recall="off")
            assert reply.seq is not None and reply.receipt is not None
            receipts[reply.seq] = reply.receipt
            await nitka.settle("anna")
        vault = nitka._turns.vault
        there = await reading.found(vault, User("anna"), "s")
        assert there is not None
        facts = await reading.facts_at_hand(vault, there.thread.owner)
        return receipts, await reading.read_log(vault, there), facts, nitka._turns.means


@pytest.mark.anyio
@pytest.mark.parametrize(("window", "slack", "budget"), [(12, 0, 8_000), (4, 0, 8_000), (4, 3, 8_000), (12, 0, 420)])
async def test_it_is_the_request_that_was_sent(window: int, slack: int, budget: int) -> None:
    """For a conversation held with Nitka, folds at once: cursor, history, question, and what was compacted are those of
    the receipts that were given; facts too. So are the tokens of the whole while no line of the summary was tightened.
    """
    whole = {"summary_tokens": 5_000, "profile_every": 10_000, "recall_wait": 60.0}  # so that nothing is left to chance
    limits = Limits(window=window, slack=slack, budget=budget, **whole)  # type: ignore[arg-type]
    receipts, log, facts, means = await held(limits)
    room = Budget(total=budget, answer=min(limits.answer_tokens, budget // 4))
    rules = Rules(window=window, slack=slack, slice_tokens=limits.slice_tokens, budget=room, means=means)
    times = {one.n: one.at for one in log.rows}
    found = stands(log, rules)
    assert found.keys() == receipts.keys()
    compared = 0
    for seq, given_then in receipts.items():
        asked = log.row(seq)
        assert asked is not None
        known = known_at(facts.all, asked, times=times)
        passages, all_fit = as_passages(known, limits.facts_tokens, means.counter.count)
        again = request_of(log, seq, found[seq].cursor, rules, passages)
        assert again is not None and again.receipt.cursor == given_then.cursor
        chosen = any(entry.outcome == "left_out" for entry in given_then.layer("facts"))
        alike = all_fit and not chosen  # of facts that are equally new, which one gives way is nobody's promise
        for layer in ALIKE if alike else ALIKE[:1]:
            assert again.receipt.layer(layer) == given_then.layer(layer), (seq, layer)
        compared += alike
        if alike and not any(entry.outcome == "gist" for entry in given_then.entries):
            assert again.receipt.used == given_then.used
    assert compared >= 5


def fact(value: str, first: int, last: int, *, past: tuple[Seen, ...] = (), retracted: int | None = None) -> Fact:
    return Fact(
        slot="home.city",
        past=past,
        retracted=(NOW + timedelta(minutes=retracted), retracted, 0) if retracted else None,
        **said(value, first, last),
    )


def said(value: str, first: int, last: int) -> dict[str, Any]:
    at = {"first_seen": NOW + timedelta(minutes=first), "last_seen": NOW + timedelta(minutes=last)}
    rest = {"seq": first, "n": first, "latest": (last, 0), "rows": tuple({first, last}), "session": "s", "quote": value}
    return {"value": value, "statement": f"lives in {value}", **at, **rest}


def test_a_fact_is_known_as_it_was_by_the_rows_it_rests_on() -> None:
    leeds = Seen(**said("Leeds", 2, 6))
    york = fact("York", 10, 14, past=(leeds,))

    def then(seq: int) -> list[str]:
        return [known.fact.value for known in known_at([york], row(seq, "?"))]

    assert [then(seq) for seq in (2, 4, 8, 10, 12, 20)] == [[], ["Leeds"], ["Leeds"], ["Leeds"], ["York"], ["York"]]
    gone = fact("York", 10, 10, retracted=12)
    assert [bool(known_at([gone], row(seq, "?"))) for seq in (10, 12, 14)] == [False, True, False]


def test_facts_that_do_not_all_fit_are_the_newest_and_are_said_not_to_be_all() -> None:
    known = known_at([fact("York", 2, 2), fact("Leeds", 4, 4)], row(8, "?"))
    few, whole = as_passages(known, 20, len)
    assert ([passage.text for passage in few], whole) == (["lives in Leeds"], False)
    assert as_passages(known, 100, len)[1]


@given(st.lists(st.integers(), unique=True, max_size=40), st.integers(1, 12))
def test_a_sample_is_spread_and_ends_with_the_last(values: list[int], most: int) -> None:
    chosen = sampled(values, most)
    assert len(chosen) == min(len(values), most)
    assert [value for value in values if value in chosen] == chosen
    assert not values or chosen[-1] == values[-1]


@given(st.sets(st.integers(0, 400)), st.integers(401, 2_000))
def test_numbers_along_a_lane_never_cover_each_other(seqs: set[int], end: int) -> None:
    found = dots(seqs, 0, end)
    assert [dot.seq for dot in found] == sorted(seqs)
    assert all(LABEL / 4 < dot.x < WIDE - LABEL / 4 for dot in found)
    for level in {dot.level for dot in found}:
        row = [dot.x for dot in found if dot.level == level]
        assert all(after - before >= LABEL for before, after in zip(row, row[1:], strict=False))
