"""A past request, put together again from the log as of that turn. Pure.

Requests and receipts are not stored. What a turn's request was made from is, for the most part: the rows before it word
for word, the lines of the summary that still exist, the facts with their times. So a past request can be put together
again, by the same rules as then, and every block says how far it can be believed (`MARKS`):

* exact: rows of the conversation, which never change;
* as it stands today: lines of the summary (some have become gists or have gone since), facts by their times, and a turn
  summary, which the rules of today make;
* not kept: whatever came from outside or was chosen at the moment (system prompt, tools, profile, passages).

Where the cursor stood is not written down either. It follows from the rule: a fold is due when more than window + slack
living messages are unfolded, reads down to the window, and is taken to have ended before the next turn began. The
cursor of today is a bound: it never moves back. What was forgotten since counts as if it had never been said, which is
also what an edit makes of the turns it replaces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from nitka.door import is_blank
from nitka.errors import OverBudget
from nitka.request.assemble import pack
from nitka.request.parts import Means, Parts
from nitka.types import Budget, Layer, Message, Passage, Request, Summary

Mark = Literal["exact", "today", "not_kept"]

MARKS: Mapping[Layer, Mark] = {
    "system": "not_kept",
    "tools": "not_kept",
    "profile": "not_kept",
    "summary": "today",
    "turn_summary": "today",
    "history": "exact",
    "facts": "today",
    "recall": "not_kept",
    "knowledge": "not_kept",
    "question": "exact",
    "traffic": "not_kept",
}
NOT_KEPT = tuple(layer for layer, mark in MARKS.items() if mark == "not_kept")


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The rows `[first, head)` of one session as they are now: the living ones with their sizes in tokens, oldest
    first. Of a long session `first` is not 0.
    """

    first: int
    head: int
    rows: tuple[Message, ...]
    sizes: Mapping[int, int] = field(default_factory=dict)
    damaged: frozenset[int] = frozenset()  # do not open
    summary: Summary = Summary()
    closed: bool = False  # the summary does not open: its lines and its cursor are not known

    def state(self, seq: int) -> Literal["living", "damaged", "forgotten"]:
        """What became of the turn that begins with this row."""
        pair = {seq, seq + 1}
        if self.damaged & pair:
            return "damaged"
        return "living" if pair <= self.sizes.keys() else "forgotten"

    def row(self, seq: int) -> Message | None:
        return next((row for row in self.rows if row.seq == seq), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """By what requests are put together and folds run."""

    window: int
    slack: int
    slice_tokens: int
    budget: Budget
    means: Means


class Stand(NamedTuple):
    """Where the summary's cursor stood when a turn was opened, and the tokens that were folded since the one before."""

    cursor: int
    folded: int


def stands(log: Log, rules: Rules) -> dict[int, Stand]:
    """By the first row of each living turn, where the cursor stood when it was opened.

    Of a log that does not begin at 0 the first turns are missing: too little is known of what came before them.
    """
    found: dict[int, Stand] = {}
    unfolded: list[Message] = []
    cursor = log.first
    lag = rules.window + rules.slack
    known = 0 if log.first == 0 else lag + 1
    folded = 0
    for at, row in enumerate(log.rows):
        if row.role == "user" and at >= known:
            found[row.seq] = Stand(min(cursor, log.summary.cursor), folded)
            folded = 0
        unfolded.append(row)
        while row.role == "assistant" and len(unfolded) > lag:
            taken = _slice(unfolded, log.sizes, rules)
            after = unfolded[taken].seq if taken < len(unfolded) else row.seq + 1
            if after <= log.summary.cursor:
                folded += sum(log.sizes.get(one.seq, 0) for one in unfolded[:taken])
            del unfolded[:taken]
            cursor = after
    return found


def _slice(unfolded: Sequence[Message], sizes: Mapping[int, int], rules: Rules) -> int:
    """How many rows one step of the fold reads: down to the window, but no more than a slice, and one at least."""
    used = 0
    for at, row in enumerate(unfolded[: len(unfolded) - rules.window]):
        used += min(sizes.get(row.seq, 0), rules.slice_tokens)
        if at and used > rules.slice_tokens:
            return at
    return len(unfolded) - rules.window


def request_of(log: Log, seq: int, cursor: int, rules: Rules, facts: Sequence[Passage] = ()) -> Request | None:
    """The request of the turn that begins with row `seq`, as it is put together today from what was before it.

    None where that cannot be: the question was blanked out, or does not fit the budget of today.
    """
    asked = log.row(seq)
    if asked is None or is_blank(asked.text):
        return None
    lines = tuple(line for line in log.summary.lines if line.last < cursor)
    parts = Parts(
        question=asked.text,
        summary=Summary(lines=lines, cursor=cursor, counter=log.summary.counter),
        history=tuple(row for row in log.rows if cursor <= row.seq < seq),
        facts=tuple(facts),
        head=seq,
        cursor=cursor,
    )
    try:
        return pack(parts, rules.budget, rules.means, sizes=log.sizes)
    except OverBudget:
        return None
