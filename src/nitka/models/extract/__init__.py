"""The offline summariser: clauses picked and shortened by rules, no model, no network.

`propose` is the fold step's work as a pure function, `OfflineSummariser` the same behind the port; `compact` makes
the turn summary of messages that did not fit a request, and `condense` shortens one huge text between visible
marks.
"""

from __future__ import annotations

from collections.abc import Sequence

from nitka.models.extract.notes import propose
from nitka.models.extract.views import compact, condense
from nitka.types import Line, Message, Proposal

__all__ = ["OfflineSummariser", "compact", "condense", "propose"]


class OfflineSummariser:
    """`Summariser` without a model: always at hand, never fails, costs about a millisecond a message."""

    name = "offline"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        return propose(lines, messages, cap=cap)
