"""What gives way, on numbers alone: the rule of the ladder against an oracle, for any prices and any room."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.request.budget import Choice, Prices, Shelf, choose, smallest
from nitka.request.history import COMPACTION, LEAN, weigh
from nitka.request.labels import ENGLISH
from nitka.request.parts import bounded
from nitka.request.sheet import settle
from nitka.tokens import MESSAGE_TOKENS, Counter
from nitka.types import Message

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
LETTERS = Counter("letters", 0.0, len)
ROOM = 1_200

amounts = st.integers(1, 120)
shelves = st.builds(
    lambda head, items, tail: Shelf(head=head, items=items, tail=tail) if items else Shelf(),
    st.integers(1, 10),
    st.lists(amounts, max_size=6),
    st.sampled_from([0, 9]),
)


def rows(lengths: Sequence[int]) -> tuple[Message, ...]:
    return tuple(
        Message(seq=at, n=at, role="assistant" if at % 2 else "user", text="x" * length, at=NOW)
        for at, length in enumerate(lengths)
    )


histories = st.lists(amounts, max_size=12).map(
    lambda lengths: weigh(rows(lengths), ROOM, labels=ENGLISH, counter=LETTERS, sizes=None)
)


@st.composite
def all_prices(draw: st.DrawFn) -> Prices:
    question = draw(st.integers(1, 200))
    head = draw(st.integers(1, 20))
    return Prices(
        fixed=draw(amounts),
        question=question,
        question_least=draw(st.integers(1, question)),
        profile=draw(st.one_of(st.just(0), amounts)),
        summary=draw(st.one_of(st.just(0), st.integers(head, 200))),
        summary_head=head,
        history=draw(histories),
        frame=draw(st.integers(1, 20)),
        facts=draw(shelves),
        recall=draw(shelves),
        knowledge=draw(shelves),
    )


def shelf_cost(shelf: Shelf, taken: Sequence[int]) -> int:
    if not taken:
        return 0
    return shelf.head + sum(shelf.items[at] for at in taken) + (shelf.tail if len(taken) < len(shelf.items) else 0)


def taken_of(prices: Prices, choice: Choice) -> tuple[tuple[Shelf, Sequence[int]], ...]:
    return ((prices.facts, choice.facts), (prices.knowledge, choice.knowledge), (prices.recall, choice.recall))


def cost(prices: Prices, choice: Choice) -> int:
    """What a choice takes at the most."""
    data = sum(shelf_cost(shelf, taken) for shelf, taken in taken_of(prices, choice))
    history = prices.history
    turn = 0 if history.is_all(choice.keep) or not history.rows else history.label + choice.turn_room
    if choice.summary_room is None:
        summary = prices.summary
    else:
        summary = prices.summary_head + choice.summary_room if choice.summary_room else 0
    return (
        prices.fixed
        + (prices.question if choice.question_room is None else choice.question_room)
        + summary
        + (prices.profile if choice.profile else 0)
        + history.sums[choice.keep]
        + turn
        + data
        + (prices.frame if data else 0)
    )


@given(prices=all_prices(), room=st.integers(0, ROOM))
@settings(max_examples=200)
def test_a_choice_is_within_its_room_and_is_refused_only_when_the_smallest_forms_exceed_it(
    prices: Prices, room: int
) -> None:
    choice = choose(prices, room)
    if choice is None:
        assert cost(prices, smallest(prices)) > room
    else:
        assert cost(prices, choice) <= room


@given(prices=all_prices(), room=st.integers(0, ROOM))
@settings(max_examples=200)
def test_a_passage_is_left_out_only_if_it_does_not_fit_with_everything_less_protected_gone(
    prices: Prices, room: int
) -> None:
    """Row by row of the ladder: beside what is more protected and the better ones of its row, it is too much."""
    choice = choose(prices, room)
    if choice is None or choice.question_room is not None or choice.summary_room is not None:
        return
    base = prices.fixed + prices.question + prices.summary
    base += min(prices.history.least(1 if choice.keep else 0), room - base)  # the last exchange, or its compacted form
    assert choice.profile or base + prices.profile > room or not prices.profile
    base += prices.profile if choice.profile else 0
    frame = prices.frame
    for shelf, taken in taken_of(prices, choice):
        missing = [at for at in range(len(shelf.items)) if at not in taken]
        waiting = [at for at in missing if base + frame + shelf_cost(shelf, [at]) <= room]
        assert all(at > max(taken, default=-1) for at in waiting)
        if waiting:
            assert base + frame + shelf_cost(shelf, [*taken, waiting[0]]) > room
        base += shelf_cost(shelf, taken) + (frame if taken else 0)
        frame = 0 if taken else frame


@given(prices=all_prices(), room=st.integers(0, ROOM))
@settings(max_examples=150)
def test_within_a_row_the_least_relevant_goes_first(prices: Prices, room: int) -> None:
    """Those taken are a beginning of the row, but for passages that would not fit it even alone."""
    choice = choose(prices, room)
    if choice is None:
        return
    for shelf, taken in taken_of(prices, choice):
        for at in set(range(max(taken, default=-1))) - set(taken):
            assert all(shelf.items[at] > shelf.items[kept] for kept in taken)
            assert shelf.items[at] > sum(shelf.items[kept] for kept in taken)


@given(prices=all_prices())
def test_when_everything_fits_everything_is_taken(prices: Prices) -> None:
    choice = choose(prices, prices.everything)

    assert choice is not None
    assert choice.keep == prices.history.exchanges
    assert choice.question_room is None and choice.summary_room is None
    assert all(len(taken) == len(shelf.items) for shelf, taken in taken_of(prices, choice))


@given(prices=all_prices(), room=st.integers(0, ROOM))
@settings(max_examples=150)
def test_one_more_exchange_would_not_have_fitted(prices: Prices, room: int) -> None:
    """The history takes all that is left, and never in place of its compacted form."""
    choice = choose(prices, room)
    history = prices.history
    if choice is None or choice.keep == history.exchanges or choice.question_room or choice.summary_room is not None:
        return
    more = history.cost(choice.keep + 1) - history.sums[choice.keep] - history.label - choice.turn_room
    assert cost(prices, choice) + more > room


@given(st.lists(amounts, min_size=2, max_size=12), st.integers(0, ROOM))
def test_a_turn_summary_is_never_larger_than_a_share_of_what_it_stands_for(lengths: list[int], room: int) -> None:
    history = weigh(rows(lengths), room, labels=ENGLISH, counter=LETTERS, sizes=None)
    for keep in range(history.exchanges):
        lines = history.cost(keep) - history.sums[keep] - history.label
        assert lines * COMPACTION <= history.total - history.sums[keep]
        assert lines <= history.share
        assert history.lean(keep) <= history.sums[keep] + history.label + history.share // LEAN + 1


@given(st.text(alphabet="ab c", max_size=60), st.integers(0, 80), st.integers(1, 2_000))
def test_a_bounded_count_is_exact_within_its_limit_and_beyond_it_otherwise(text: str, limit: int, times: int) -> None:
    long = text * times
    counted = bounded(len, limit)(long)

    assert counted == len(long) if len(long) <= limit else counted > limit


@given(prices=all_prices(), room=st.integers(0, 600))
@settings(max_examples=150)
def test_the_question_keeps_its_least_and_the_summary_gives_way_only_after_it(prices: Prices, room: int) -> None:
    choice = choose(prices, room)
    if choice is None or choice.question_room is None:
        return
    assert prices.question_least <= choice.question_room < prices.question
    if choice.summary_room is not None:
        assert choice.question_room == prices.question_least


@given(st.lists(st.integers(1, 900), max_size=12), st.integers(0, ROOM))
@settings(max_examples=100)
def test_rows_that_are_not_counted_would_not_change_a_price(lengths: list[int], room: int) -> None:
    """Counting stops early, but every choice that could fit has the price it would have after counting all."""
    ledger = weigh(rows(lengths), room, labels=ENGLISH, counter=LETTERS, sizes=None)
    total = sum(length + MESSAGE_TOKENS for length in lengths)
    for keep in range(ledger.exchanges + 1):
        if ledger.sums[keep] <= room and not ledger.is_all(keep):
            lines = min(ledger.share, (total - ledger.sums[keep]) // COMPACTION)
            assert ledger.cost(keep) == ledger.sums[keep] + ledger.label + lines


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 400))
def test_settled_prices_add_up_and_none_is_negative(prices: list[int], total: int) -> None:
    settled = settle(prices, total)

    assert sum(settled) == total
    assert min(settled) >= 0
    assert total < sum(prices) or settled[1:] == prices[1:]
