"""The ledger of the verbatim history: what keeping the newest exchanges costs, with a turn summary for the rest.

Rules:
* Rows give way by whole exchanges (a user's row and what answers it), oldest first; so what stays begins with a
  user's row, as strict providers ask. Rows before the first user's row cannot stay.
* What does not stay word for word is compacted, never just removed: keeping the newest k exchanges costs their
  tokens, and, unless k is all of them, the turn summary's label and a share for its lines.
* Rows are counted from the newest, each once, and only until the sum is beyond any possible use: the cost of an open
  request does not grow with the megabytes that cannot be in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nitka.request.blocks import SEPARATOR, row_message
from nitka.request.labels import Labels
from nitka.request.parts import Sizes, bounded
from nitka.tokens import MESSAGE_TOKENS, Counter, count_label
from nitka.types import ChatMessage, Message

TURN_SUMMARY = 300  # tokens the lines of a turn summary take at most, as the stored summary,
TURN_SHARE = 8  # and at most an eighth of the room,
COMPACTION = 3  # and at most a third of what they stand for;
LEAN = 4  # a quarter of that must do when the last exchange would have to go for more


class Weighed(NamedTuple):
    row: Message
    chat: ChatMessage
    tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """`sums[k]` tokens are taken by the newest `k` exchanges, which are the rows from `starts[k]` on.

    `weighed` holds the counted rows, newest first. `whole` says that the longest choice is all there is; `total` are
    all tokens counted, at least as many as matter.
    """

    rows: tuple[Message, ...] = ()
    weighed: Sequence[Weighed] = ()
    sums: Sequence[int] = (0,)
    starts: Sequence[int] = (0,)
    whole: bool = True
    total: int = 0
    label: int = 0  # tokens of the turn summary's label
    share: int = 0  # tokens its lines may take

    @property
    def exchanges(self) -> int:
        """How many exchanges can be chosen at most."""
        return len(self.sums) - 1

    def cost(self, keep: int) -> int:
        """Tokens of keeping the newest `keep` exchanges, the turn summary of the rest included."""
        if self.whole and keep == self.exchanges:
            return self.sums[keep]
        return self.sums[keep] + self.label + min(self.share, (self.total - self.sums[keep]) // COMPACTION)

    def lean(self, keep: int) -> int:
        """The same with few lines in the turn summary; with none of them when no exchange is kept."""
        if not keep:
            return self.label if self.rows else 0
        return min(self.cost(keep), self.sums[keep] + self.label + self.share // LEAN)

    def least(self, keep: int) -> int:
        """The lowest price of keeping `keep` exchanges or more: a short history is cheaper whole."""
        return min(self.cost(keep), self.cost(self.exchanges))

    def fill(self, room: int, *, least: int = 0) -> int | None:
        """The most exchanges that fit `room`; `least` if only a lean turn summary fits beside them; else none."""
        for keep in range(self.exchanges, least - 1, -1):
            if self.cost(keep) <= room:
                return keep
        return least if self.lean(least) <= room else None

    def smallest(self) -> int:
        """The number of kept exchanges that takes least: all or none."""
        return self.exchanges if self.whole and self.total <= self.label else 0

    def older(self, keep: int) -> tuple[Message, ...]:
        """The rows before the newest `keep` exchanges."""
        return self.rows[: self.starts[keep]]

    def kept(self, keep: int) -> list[Weighed]:
        """The rows of the newest `keep` exchanges, oldest first."""
        return [self.weighed[at] for at in range(len(self.rows) - self.starts[keep] - 1, -1, -1)]

    def is_all(self, keep: int) -> bool:
        return self.whole and keep == self.exchanges


def weigh(rows: tuple[Message, ...], room: int, *, labels: Labels, counter: Counter, sizes: Sizes | None) -> History:
    """The ledger of `rows`, oldest first, for a request of at most `room` tokens."""
    share = min(TURN_SUMMARY, room // TURN_SHARE)
    label = count_label(counter.count, f"{SEPARATOR}{labels.turn_summary.format(count=len(rows))}\n") if rows else 0
    enough = room + COMPACTION * share
    count = bounded(counter.count, enough)
    weighed: list[Weighed] = []
    sums, starts, total = [0], [len(rows)], 0
    for at in range(len(rows) - 1, -1, -1):
        row = rows[at]
        chat = row_message(row, labels)
        content = chat["content"]
        known = sizes.get(row.seq) if sizes and content is row.text else None  # a mark or a repair is not in the size
        tokens = MESSAGE_TOKENS + (count(content) if known is None else known)
        total += tokens
        weighed.append(Weighed(row, chat, tokens))
        if row.role == "user":
            sums.append(total)
            starts.append(at)
        if total > enough:
            break
    return History(
        rows=rows,
        weighed=weighed,
        sums=sums,
        starts=starts,
        whole=starts[-1] == 0,
        total=total,
        label=label,
        share=share,
    )
