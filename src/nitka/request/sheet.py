"""The sheet a request is written on: messages, blocks and entries grow together, so that they always add up.

Rules:
* A message that several layers share is counted as it is sent; `settle` spreads the difference to the pieces' own
  prices, the first of them taking the message's frame. So entries and blocks add up to the messages exactly.
* What is not sent leaves an entry too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from nitka.tokens import Counter, count_message
from nitka.types import Block, ChatMessage, Entry, Layer, Outcome

Rows = tuple[int | None, int | None]
NO_ROWS: Rows = (None, None)


class Share(NamedTuple):
    """One entry's part of a piece."""

    tokens: int
    number: int = 1
    rows: Rows = NO_ROWS
    outcome: Outcome = "sent"
    why: str = ""


class Piece(NamedTuple):
    """One layer of a shared message; its shares are the entries it leaves."""

    layer: Layer
    text: str
    shares: Sequence[Share]
    rows: Rows = NO_ROWS


@dataclass(slots=True)
class Sheet:
    """What is being written. Lives only inside one `pack`."""

    counter: Counter
    messages: list[ChatMessage] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    asked: int = 0

    @property
    def used(self) -> int:
        return sum(entry.tokens for entry in self.entries)

    def share(self, content: str, pieces: Sequence[Piece]) -> None:
        """Add one system message that the layers of `pieces` share."""
        message = {"role": "system", "content": content}
        self.messages.append(message)
        prices = iter(
            settle([share.tokens for piece in pieces for share in piece.shares], count_message(self.counter, message))
        )
        for layer, text, shares, rows in pieces:
            total = 0
            for share in shares:
                tokens = next(prices)
                total += tokens
                self.enter(layer, share._replace(tokens=tokens))
            self.block(layer, text, total, rows)

    def block(self, layer: Layer, text: str, tokens: int, rows: Rows = NO_ROWS) -> None:
        self.blocks.append(Block(layer, text, tokens, *rows))

    def enter(self, layer: Layer, share: Share) -> None:
        tokens, number, (first, last), outcome, why = share
        self.entries.append(
            Entry(layer=layer, outcome=outcome, tokens=tokens, count=number, first=first, last=last, why=why)
        )

    def leave_out(self, layer: Layer, count: int, why: str) -> None:
        """Account for `count` candidates that are not sent; none leave no entry."""
        if count:
            self.enter(layer, Share(0, count, outcome="left_out", why=why))


def settle(prices: Sequence[int], total: int) -> list[int]:
    """Prices that add up to `total`: the first takes the difference; where it would be negative, the next ones help."""
    settled = []
    rest = total - sum(prices)
    for tokens in prices:
        share = max(rest, -tokens)
        settled.append(tokens + share)
        rest -= share
    return settled
