"""What the pages of a conversation show, worked out from its log. Pure but for `prepared`, which reads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple

from nitka.facts import Facts
from nitka.layers.facts import Category
from nitka.server.errors import Refusal
from nitka.server.inspector import drawing, reading
from nitka.server.inspector.door import Visit
from nitka.server.inspector.known import Then, as_passages, known_at
from nitka.server.inspector.past import MARKS, Log, Rules, Stand, request_of, stands
from nitka.server.inspector.reading import Found
from nitka.server.inspector.tickets import Ticket
from nitka.types import Budget, Message, Person, Request
from nitka.vault.keychain import Owner

MOST_COLUMNS = 240


class Shown(NamedTuple):
    """A turn as a page shows it. `stand` and `request` are None where too little is known."""

    seq: int
    state: str
    question: Message | None
    answer: Message | None
    stand: Stand | None
    request: Request | None
    whole: bool  # all facts known then fitted, so none had to be chosen


@dataclass(frozen=True)
class Conversation:
    """One conversation that has been opened, with all that its requests can be put together from."""

    person: Person
    session: str
    owner: Owner
    log: Log
    rules: Rules
    facts: Facts
    excluded: frozenset[Category]
    facts_tokens: int

    @cached_property
    def stands(self) -> dict[int, Stand]:
        return stands(self.log, self.rules)

    @cached_property
    def messages(self) -> dict[int, Message]:
        return {row.seq: row for row in self.log.rows}

    @cached_property
    def times(self) -> dict[int, datetime]:
        return {row.n: row.at for row in self.log.rows}

    @cached_property
    def turns(self) -> list[int]:
        """First rows of all turns there are, forgotten ones among them; of a long log those that can be told."""
        first = min(self.stands, default=self.log.first) if self.log.first else 0
        return list(range(first, self.log.head, 2))

    def turn(self, seq: int) -> Shown:
        """A turn with its request."""
        question, stand = self.messages.get(seq), self.stands.get(seq)
        request, whole = None, True
        if question is not None and stand is not None:
            passages, whole = as_passages(self.known(question), self.facts_tokens, self.rules.means.counter.count)
            request = request_of(self.log, seq, stand.cursor, self.rules, passages)
        return Shown(seq, self.log.state(seq), question, self.messages.get(seq + 1), stand, request, whole)

    def known(self, row: Message) -> list[Then]:
        """The facts as they were known when a row was said."""
        return known_at(self.facts.all, row, times=self.times, excluded=self.excluded)

    def columns(self) -> tuple[list[drawing.Column], int, int]:
        """The chart of what was sent and folded, of turns evenly spread where there are many."""
        asked = drawing.sampled(sorted(self.stands), MOST_COLUMNS)
        folded = self._folded(asked)
        return drawing.chart([(seq, self.turn(seq).request, folded[seq]) for seq in asked])

    def _folded(self, asked: Sequence[int]) -> dict[int, int]:
        """Tokens folded before each of these turns and after the one before it among them."""
        found, waiting, chosen = dict[int, int](), 0, frozenset(asked)
        for seq, stand in sorted(self.stands.items()):
            waiting += stand.folded
            if seq in chosen:
                found[seq], waiting = waiting, 0
        return found


async def prepared(visit: Visit, ticket: Ticket) -> Conversation:
    """The conversation a ticket stands for. Raises `Refusal` where it is gone, `Damaged`."""
    person = ticket.person(visit.tenant)
    there = await reading.found(visit.shared.vault, person, ticket.session)
    if there is None:
        raise Refusal("There is no such conversation.", status=404, code="no_session")
    return await _conversation(visit, person, ticket.session, there)


async def _conversation(visit: Visit, person: Person, session: str, there: Found) -> Conversation:
    vault, turns = visit.shared.vault, visit.shared.nitka._turns
    limits = turns.limits
    return Conversation(
        person=person,
        session=session,
        owner=there.thread.owner,
        log=await reading.read_log(vault, there),
        rules=Rules(
            window=limits.window,
            slack=limits.slack,
            slice_tokens=limits.slice_tokens,
            budget=Budget(total=limits.budget, answer=min(limits.answer_tokens, limits.budget // 4)),
            means=turns.means,
        ),
        facts=await reading.facts_at_hand(vault, there.thread.owner),
        excluded=turns.excluded,
        facts_tokens=limits.facts_tokens,
    )


def blocks_of(request: Request) -> list[dict[str, Any]]:
    """The blocks of a request with how far each can be believed."""
    return [
        {
            "number": number,
            "kind": block.layer,
            "mark": MARKS[block.layer],
            "text": block.text,
            "tokens": block.tokens,
            "first": block.first,
            "last": block.last,
        }
        for number, block in enumerate(request.blocks)
    ]
