"""One self-contained request from its candidates: `pack`, and `refit` with the loop's own traffic.

Rules:
* The order is what changes least first: ONE leading system message (system prompt, profile, summary with the turn
  summary inside it), none when there is nothing to say; the history word for word; ONE system message of labelled
  data (facts, recalled passages, knowledge); the question; this turn's traffic.
* Pieces are counted apart to choose, and the messages are counted as they are sent. The receipt adds up to the
  latter, exactly. Where joined pieces take more tokens than they did apart, the choice is made again with that much
  less room.
* `OverBudget` is raised only when the smallest forms of what may never be left out, really assembled, do not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from nitka.errors import OverBudget
from nitka.request.budget import Prices, choose, smallest
from nitka.request.draft import Draft, draft, price
from nitka.request.parts import Means, Parts, Sizes, bounded
from nitka.request.sheet import Sheet
from nitka.request.traffic import after
from nitka.request.write import write
from nitka.tokens import REQUEST_TOKENS, count_label
from nitka.types import Budget, Receipt, Request


def pack(parts: Parts, budget: Budget, means: Means, *, sizes: Sizes | None = None) -> Request:
    """The best request within the budget.

    Raises `OverBudget` when system prompt, tools, traffic and the question exceed it alone; `BadText` for a blank
    question; `BadInput` for parts that contradict each other, or traffic in another form than the chat API's.
    """
    room = room_of(budget, means)
    made = draft(parts, room, means=means, sizes=sizes)
    count = means.counter.count
    prices = price(made, bounded(count, room), partial(count_label, count), condense=budget.condense_question)
    sheet = _fit(made, prices, room, means)
    receipt = Receipt(
        budget=budget.total,
        room=room,
        counter=means.counter.name,
        entries=tuple(sheet.entries),
        head=parts.head,
        cursor=parts.cursor,
        notes=parts.notes,
    )
    return Request(
        messages=sheet.messages,
        receipt=receipt,
        asked=sheet.asked,
        blocks=tuple(sheet.blocks),
        tools=parts.tools,
        max_tokens=budget.answer,
    )


def refit(
    parts: Parts,
    request: Request,
    messages: Sequence[object],
    budget: Budget,
    means: Means,
    *,
    sizes: Sizes | None = None,
) -> Request:
    """`request` packed again with what the caller's loop has appended to its messages.

    Everything after the question becomes this turn's traffic, repaired for strict providers; it never gives way, the
    history does so first. What stands before the question is made anew from `parts`. Raises as `pack`, and `BadInput`
    when the question is not in `messages`.
    """
    return pack(replace(parts, traffic=after(request, parts.question, messages)), budget, means, sizes=sizes)


def room_of(budget: Budget, means: Means) -> int:
    """Tokens that messages and tools may take: less the answer, the margin, and the marks around the list."""
    return max(0, means.counter.room(budget.total - budget.answer) - REQUEST_TOKENS)


def _fit(made: Draft, prices: Prices, room: int, means: Means) -> Sheet:
    kept_back = 0
    while (choice := choose(prices, room - kept_back)) is not None:
        sheet = write(made, prices, choice, means)
        over = sheet.used - room
        if over <= 0:
            return sheet
        kept_back += max(over, kept_back)
    sheet = write(made, prices, smallest(prices), means)
    if sheet.used > room:
        raise OverBudget(_sizes(made, prices, sheet.used, room))
    return sheet


def _sizes(made: Draft, prices: Prices, used: int, room: int) -> str:
    traffic = sum(made.traffic_sizes)
    system = prices.fixed - made.tool_tokens - traffic
    return (
        f"At least {used} tokens are needed, there is room for {room}: system prompt {system}, "
        f"tool definitions {made.tool_tokens}, tool traffic of this turn {traffic}, "
        f"question {prices.question_least}. "
        "Raise the budget, keep less room for the answer, shorten the system prompt, or offer fewer tools."
    )
