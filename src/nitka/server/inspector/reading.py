"""What the inspector reads, by the ways in which the rest of nitka reads it. Nothing is written."""

from __future__ import annotations

from typing import NamedTuple

from nitka import acts, editing
from nitka import facts as facts_of
from nitka.conversation import Thread, Vault, find_owner, find_thread
from nitka.errors import Damaged
from nitka.facts import Facts
from nitka.server.inspector.past import Log
from nitka.store.port import Look, Row, SessionRow
from nitka.types import Fact, Message, Person, Summary
from nitka.vault import codec
from nitka.vault.codec import Stored
from nitka.vault.keychain import Owner

PAGE = 500
MOST_ROWS = 2_000  # of one conversation, the newest


class Found(NamedTuple):
    """A session of a person, and its row."""

    thread: Thread
    row: SessionRow


async def found(vault: Vault, person: Person, session: str) -> Found | None:
    """The session, if there is one. Raises `Damaged`, `BadId`."""
    owner = await find_owner(vault, person)
    there = await find_thread(vault, owner, session) if owner is not None else None
    if there is None:
        return None
    codec.open_session(there[0].owner, there[1])
    return Found(*there)


async def read_log(vault: Vault, there: Found, *, most: int = MOST_ROWS) -> Log:
    """The newest rows of a session, forgotten ones left out and damaged ones named, with its summary."""
    head = there.row.head
    first = max(0, head - most) & ~1
    rows: list[Message] = []
    sizes: dict[int, int] = {}
    damaged: set[int] = set()
    for begin in range(first, head, PAGE):
        end = min(begin + PAGE, head)
        look = Look(owner=there.thread.owner.id, session=there.thread.tag, first=begin, end=end, limit=PAGE)
        view = await vault.store.view(look)
        damaged |= set(codec.missing_rows(view.rows, begin, end))
        for row in view.rows:
            stored = _opened(there.thread, row, damaged)
            if stored is not None:
                rows.append(stored.message)
                sizes[row.seq] = _size(vault, stored)
    rows.sort(key=lambda row: row.seq)
    summary = await summary_of(vault, there.thread)
    return Log(
        first=first,
        head=head,
        rows=tuple(rows),
        sizes=sizes,
        damaged=frozenset(damaged),
        summary=summary or Summary(cursor=head),
        closed=summary is None,
    )


async def summary_of(vault: Vault, thread: Thread) -> Summary | None:
    """The summary; None where it does not open."""
    try:
        return await acts.summary_of(vault, thread)
    except Damaged:
        return None


async def facts_at_hand(vault: Vault, owner: Owner) -> Facts:
    """The facts that open."""
    try:
        return await facts_of.load(vault, owner, whole=False)
    except Damaged:
        return Facts()


def listed(facts: Facts) -> tuple[Fact, ...]:
    """The facts as they are seen from outside, with their history and with those that were taken back."""
    return editing.listed(facts, None, past=True)


def _opened(thread: Thread, row: Row, damaged: set[int]) -> Stored | None:
    try:
        return codec.open_message(thread.owner, thread.incarnation, row)
    except Damaged:
        damaged.add(row.seq)
        return None


def _size(vault: Vault, stored: Stored) -> int:
    return stored.tokens if stored.counter == vault.counter else vault.count(stored.message.text)
