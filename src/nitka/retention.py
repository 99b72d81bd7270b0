"""What goes by age, when `settle` runs: turns after `retain_days`, facts after `retain_facts_days`.

A turn's age is that of its own time. It goes like a forgotten one, but for what was made from it: a line of the
summary goes when none of its rows lives any more, and facts have an age of their own, by when they were last said.
Rows that a fold has yet to read are not taken away from it: they go after the fold.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import NamedTuple

from nitka import facts, forgetting, log
from nitka.acts import PAGE, session_rows
from nitka.conversation import FACTS, FAR, RECALL, SUMMARY, Thread, Vault, known_owner, read_summary
from nitka.errors import Damaged, Forgotten, StoreBusy
from nitka.layers import summary as summaries
from nitka.log import Along, Expire
from nitka.store.port import NOBODY, Change, Locked, Look, SessionRow
from nitka.types import Limits, Line, Settled, Summary
from nitka.vault import codec
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind
from nitka.world import random_bytes

logger = logging.getLogger("nitka")


class Old(NamedTuple):
    """Rows `[first, end)` that go, and their n."""

    first: int
    end: int
    ns: frozenset[int]


async def expire(vault: Vault, limits: Limits, now: datetime, whose: bytes | None) -> Settled:
    """Removes what is too old, of one owner or of all; from the disk too, or the next `settle` does. What does not
    open is left for whoever repairs or forgets it.
    """
    note = random_bytes(16)
    await vault.store.begin_erasure(NOBODY, note)
    rows = gone = 0
    doubt = False  # whether something may have gone before what did not open was met
    async for id in _owners(vault, whose):
        try:
            old = await _old_of(vault, id, limits, now)
        except Damaged as error:
            logger.warning("something of a user does not open (%s); it is not looked at for its age", error)
            doubt = True
            continue
        except Forgotten:
            continue
        if old != (0, 0):
            vault.keychain.drop(id)  # with what it had opened of them
        rows, gone = rows + old[0], gone + old[1]
    if not (rows or gone or doubt) or await vault.store.scrub():
        await vault.store.end_erasure(NOBODY, note)
    return Settled(expired=rows, expired_facts=gone)


async def _old_of(vault: Vault, id: bytes, limits: Limits, now: datetime) -> tuple[int, int]:
    """How many rows and facts of an owner went."""
    owner = await known_owner(vault, id)
    rows = known = 0
    if owner is not None and limits.retain_days is not None:
        rows = await _old_rows(vault, owner, limits, now - timedelta(days=limits.retain_days))
    if owner is not None and limits.retain_facts_days is not None:
        known = await _old_facts(vault, owner, now - timedelta(days=limits.retain_facts_days))
    return rows, known


async def _owners(vault: Vault, whose: bytes | None) -> AsyncIterator[bytes]:
    if whose is not None:
        yield whose
        return
    after = b""
    while owners := await vault.store.owners(after=after, limit=PAGE):
        for owner in owners:
            yield owner
        after = owners[-1]


async def _old_rows(vault: Vault, owner: Owner, limits: Limits, before: datetime) -> int:
    gone = 0
    view = await vault.store.view(Look(owner=owner.id, person_folds=(FACTS,)))
    read = view.person_folds[FACTS].cursor if FACTS in view.person_folds else 0
    read = read if view.n - read > limits.facts_slack else FAR  # what may wait is due to nobody
    async for row in session_rows(vault, owner):
        info = codec.open_session(owner, row)
        if (info.oldest or info.started) < before:
            gone += await _old_turns(vault, Thread(owner, row.session, row.incarnation), row, limits, (before, read))
    return gone


async def _old_turns(vault: Vault, thread: Thread, row: SessionRow, limits: Limits, until: tuple[datetime, int]) -> int:
    """Removes the turns of a session that are older and whose n the facts fold has passed; the session too, where
    nothing of it is left.
    """
    before, read = until
    view = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, folds=(SUMMARY,)))
    cursor = read_summary(thread, view.folds.get(SUMMARY)).cursor
    living = [item async for item in _living(vault, thread, row.head)]
    late = sum(seq >= cursor for seq, _, _ in living) > limits.window + limits.slack
    old = {seq for seq, n, at in living if at < before and n < read and (seq < cursor or not late)}
    old &= {seq for seq in old if seq ^ 1 in old}  # both rows of a turn
    if len(old) == len(living):
        return await _whole_session(vault, thread, row.head, frozenset(n for _, n, _ in living))
    rest = {seq: at for seq, _, at in living if seq not in old}

    def lives(line: Line) -> bool:
        return any(line.first <= seq <= line.last for seq in rest)

    def shrink(summary: Summary) -> Summary:
        return summaries.expire(summary, lives, count=vault.count)

    how = Expire(shrink, min(rest.values()))
    for run in _runs(living, old):
        await _tombstones(vault, thread, run, how)
    return len(old)


async def _living(vault: Vault, thread: Thread, head: int) -> AsyncIterator[tuple[int, int, datetime]]:
    """Number, n and time of every living row."""
    for first in range(0, head, PAGE):
        look = Look(owner=thread.owner.id, session=thread.tag, first=first, end=min(first + PAGE, head), limit=PAGE)
        for row in (await vault.store.view(look)).rows:
            stored = codec.open_message(thread.owner, thread.incarnation, row)
            if stored is not None:
                yield row.seq, row.n, stored.message.at


def _runs(living: Sequence[tuple[int, int, datetime]], old: set[int]) -> Iterator[Old]:
    """The old rows, as ranges in which nothing else lives."""
    run: list[tuple[int, int]] = []
    for seq, n, _ in living:
        if seq in old:
            run.append((seq, n))
        elif run:
            yield Old(run[0][0], run[-1][0] + 1, frozenset(n for _, n in run))
            run = []
    if run:
        yield Old(run[0][0], run[-1][0] + 1, frozenset(n for _, n in run))


async def _tombstones(vault: Vault, thread: Thread, old: Old, how: Expire) -> None:
    for _ in range(forgetting.TRIES):
        index = await _index_without(vault, thread.owner, old.ns)
        went = await log.forget_rows(vault, thread, old.first, old.end, index, expire=how)
        if went is not None:
            return
    raise StoreBusy("(The session is written to all the time.)")


async def _whole_session(vault: Vault, thread: Thread, head: int, ns: frozenset[int]) -> int:
    scope = replace(thread.scope(), person_folds=(RECALL,))
    for _ in range(forgetting.TRIES):
        index = await _index_without(vault, thread.owner, ns)

        def step(locked: Locked, index: Along = index) -> Change | None:
            return index.change if locked.head == head and index.stands(locked) else None

        went = await vault.store.erase_session(scope, step)
        if went is not None:
            return went.messages
    return 0  # it goes on; its old turns go next time


async def _index_without(vault: Vault, owner: Owner, ns: frozenset[int]) -> Along:
    """The recall index without some rows."""
    index = await forgetting.index_without(vault, owner, ns)
    before = {row.kind: row.version - 1 for row in index.folds}

    def stands(locked: Locked) -> bool:
        now = {kind: row.version for kind, row in locked.person_folds.items()}
        return all(now.get(kind, 0) == version for kind, version in before.items())

    change = Change(put_pieces=index.put, drop_pieces=index.drop, folds=index.folds)
    return Along(kinds=(RECALL,), stands=stands, change=change)


async def _old_facts(vault: Vault, owner: Owner, before: datetime) -> int:
    """Removes the facts that nobody confirmed since."""
    row = (await vault.store.view(Look(owner=owner.id, person_folds=(FACTS,)))).person_folds.get(FACTS)
    if row is None:
        return 0
    oldest = codec.open_person_fold(owner, Kind.FACTS, row).get("oldest")
    if oldest is None or datetime.fromisoformat(oldest) >= before:
        return 0
    for _ in range(forgetting.TRIES):
        known = await facts.load(vault, owner)
        left = [fact for fact in known.all if fact.last_seen >= before]
        if len(left) == len(known.kept):
            return 0
        step = await asyncio.to_thread(facts.written, owner, known, left)
        if await facts.write(vault, owner, known, step):
            return len(known.kept) - len(left)
    raise StoreBusy("(These facts are written to all the time.)")
