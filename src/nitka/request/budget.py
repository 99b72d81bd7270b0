"""What goes into a request and what gives way: numbers in, a choice out.

Rules (law 5, and the ladder of what gives way):
* Least protected to most: history older than the last exchange, recalled passages, knowledge, facts, the profile, the
  last exchange, the question's middle, the summary. The system prompt, the tools and this turn's traffic never give
  way.
* "Gives way" means: nothing is shortened or left out while it would fit if everything less protected than it were
  gone. So the choice is made from the most protected down, each taking what it needs, and the history gets all that
  is left: no room stays empty that some part of the request could have used.
* Within a row the least relevant goes first. A passage too large to fit its row even alone does not take the better
  ones, or the smaller ones behind it, down with it.
* The history never just goes: its compacted form is reserved before anything less needed is chosen.
* Everything is linear in the number of candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nitka.request.history import History


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """One row of passages, best first: tokens of its label, each passage, and the line that counts the missing."""

    head: int = 0
    items: Sequence[int] = ()
    tail: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What every candidate would take."""

    fixed: int  # system prompt, tools, traffic
    question: int
    question_least: int  # of its condensed form; the question's own price where it may not or need not be condensed
    profile: int
    summary: int
    summary_head: int  # its label alone
    history: History
    frame: int  # of the message that facts, recall and knowledge share
    facts: Shelf
    recall: Shelf
    knowledge: Shelf

    @property
    def everything(self) -> int:
        shelves = [shelf for shelf in (self.facts, self.recall, self.knowledge) if shelf.items]
        data = sum(shelf.head + sum(shelf.items) for shelf in shelves) + (self.frame if shelves else 0)
        return (
            self.fixed + self.question + self.profile + self.summary + self.history.cost(self.history.exchanges) + data
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What is sent. A room of None means: whole."""

    keep: int  # newest exchanges word for word
    turn_room: int = 0  # for the lines of the turn summary
    profile: bool = False
    facts: Sequence[int] = ()
    recall: Sequence[int] = ()
    knowledge: Sequence[int] = ()
    question_room: int | None = None
    summary_room: int | None = None  # for its lines; 0 leaves it out


def choose(prices: Prices, room: int) -> Choice | None:
    """The best choice within `room` tokens; none when not even the smallest forms fit."""
    history = prices.history
    left = room - prices.fixed
    if prices.everything <= room and history.whole:
        return _all(prices)
    if left < prices.question + prices.summary + history.least(0):
        return _squeeze(prices, left)
    left -= prices.question + prices.summary
    least = 1 if history.exchanges and min(history.lean(1), history.least(1)) <= left else 0
    reserved = min(history.least(least), left)
    left -= reserved
    profile = prices.profile <= left
    left -= prices.profile if profile else 0
    frame = prices.frame
    facts, left, frame = _take(prices.facts, left, frame)
    knowledge, left, frame = _take(prices.knowledge, left, frame)
    recall, left, frame = _take(prices.recall, left, frame)
    history_room = left + reserved
    keep = history.fill(history_room, least=least) or 0
    return Choice(
        keep=keep,
        turn_room=_turn_room(history, keep, history_room),
        profile=profile,
        facts=facts,
        recall=recall,
        knowledge=knowledge,
    )


def smallest(prices: Prices) -> Choice:
    """The smallest form of everything that may never be left out."""
    least = prices.question_least if prices.question_least < prices.question else None
    return Choice(keep=prices.history.smallest(), question_room=least, summary_room=0)


def _all(prices: Prices) -> Choice:
    return Choice(
        keep=prices.history.exchanges,
        profile=prices.profile > 0,
        facts=range(len(prices.facts.items)),
        recall=range(len(prices.recall.items)),
        knowledge=range(len(prices.knowledge.items)),
    )


def _squeeze(prices: Prices, left: int) -> Choice | None:
    """Only the compacted history, the question and the summary are left to share what there is."""
    history = prices.history
    question = left - prices.summary - history.least(0)
    if question >= prices.question_least:
        return _squeezed(prices, history.least(0), question=question, summary=None)
    left -= prices.question_least
    summary = left - history.least(0) - prices.summary_head
    if summary > 0:
        return _squeezed(prices, history.least(0), question=prices.question_least, summary=summary)
    return _squeezed(prices, left, question=prices.question_least, summary=0)


def _squeezed(prices: Prices, history_room: int, *, question: int, summary: int | None) -> Choice | None:
    keep = prices.history.fill(history_room)
    if keep is None:
        return None
    return Choice(
        keep=keep,
        turn_room=_turn_room(prices.history, keep, history_room),
        question_room=question if question < prices.question else None,
        summary_room=summary if prices.summary else None,
    )


def _turn_room(history: History, keep: int, room: int) -> int:
    """Tokens for the lines of the turn summary when the history has `room` in all."""
    if history.is_all(keep):
        return 0
    return max(0, min(history.share, room - history.sums[keep] - history.label))


def _take(shelf: Shelf, room: int, frame: int) -> tuple[Sequence[int], int, int]:
    """The passages that fit, the room left after them, and the frame's price for the next shelf."""
    if not shelf.items:
        return (), room, frame
    space = room - frame - shelf.head
    total = sum(shelf.items)
    if total <= space:
        return range(len(shelf.items)), space - total, 0
    space -= shelf.tail
    taken: list[int] = []
    alone = space
    for at, tokens in enumerate(shelf.items):
        if tokens > alone:
            continue
        if tokens > space:
            break
        taken.append(at)
        space -= tokens
    return (taken, space, 0) if taken else ((), room, frame)
