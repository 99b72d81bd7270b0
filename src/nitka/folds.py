"""Folds: what is due, taken by lease, stepped, and written by compare-and-swap.

A fold reads the log from its cursor and moves on; state and cursor are written together, on condition that cursor
and version are still those it started from, in a transaction that also finds the owner and the session in the same
incarnation. So each message is given to one committed step, however many workers, retries and crashes there are. A
lease only saves the model call that a second worker would make in vain.

When a model fails, the fold is tried again later; after the third attempt, for a failure that will not pass, behind
a backlog, or above the day's ceiling, the offline summariser does the step and its lines say so.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from nitka.conversation import MEND, SUMMARY, WATCH, Thread, Vault, open_rows, read_summary, seal_summary
from nitka.errors import Forgotten, NitkaError
from nitka.layers import summary as summaries
from nitka.models.extract import condense
from nitka.models.ports import Summariser
from nitka.people import People
from nitka.standin import model_or_rules
from nitka.store.port import NOBODY, Change, Due, Locked, Look, Step
from nitka.types import Limits, Message, Proposal, Settled, Summary, Tag
from nitka.vault.codec import EPOCH, Stored
from nitka.vault.keychain import Owner
from nitka.watching import Watching, catch_up
from nitka.world import Clock

log = logging.getLogger("nitka")

SLICE_ROWS = 64  # read for one step at most
LEASE_SECONDS = 180
AT_ONCE = 8  # leases taken together
ATTEMPTS = 3
BACK_OFF_SECONDS = (5, 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What one step reads: living rows of `[summary.cursor, end)`. `head` is that of the snapshot."""

    thread: Thread
    summary: Summary
    rows: tuple[Stored, ...]
    end: int
    head: int


class Folder:
    """Runs what is due: in the background of a process, or on demand. `model` is None where none is configured."""

    def __init__(
        self,
        vault: Vault,
        *,
        model: Summariser | None,
        offline: Summariser,
        watching: Watching,
        people: People,
        limits: Limits,
        clock: Clock,
    ) -> None:
        self._vault = vault
        self._model = model
        self._offline = offline
        self._watching = watching
        self._people = people
        self._limits = limits
        self._clock = clock
        self._wake = asyncio.Event()
        self._running = asyncio.Lock()
        self._closing = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins, or begins again after `stop`, in the running event loop."""
        self._wake, self._running, self._closing = asyncio.Event(), asyncio.Lock(), False
        self._task = asyncio.get_running_loop().create_task(self._forever(), name="nitka-folds")
        self._wake.set()

    def wake(self) -> None:
        """Something became due."""
        self._wake.set()

    async def stop(self, seconds: float) -> None:
        """Gives running folds some seconds; what is left stays due, and its lease ends by itself."""
        if self._task is None:
            return
        self._closing = True
        self._wake.set()
        _, pending = await asyncio.wait([self._task], timeout=seconds)
        for task in pending:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._task = None

    async def run(self, only: tuple[bytes, Tag | None] | None = None, *, early: bool = True) -> Settled:
        """Runs what is due now, each piece of work once; `early` also what waits for a later attempt."""
        async with self._running:
            return await self._run(only, early=early)

    async def _run(self, only: tuple[bytes, Tag | None] | None, *, early: bool) -> Settled:
        done, failed = Settled(), list[Due]()
        try:
            while not self._closing and (leased := await self._lease(only, early=early)):
                for due, settled in zip(leased, await self._at_once(leased), strict=True):
                    done = add(done, settled)
                    if settled.failed:
                        failed.append(due)
        finally:
            for due in failed:  # only now, so that this run does not take them again
                wait = BACK_OFF_SECONDS[min(max(due.attempts, 0), len(BACK_OFF_SECONDS) - 1)]
                await self._vault.store.put_back(due, retry_at=self._now() + wait * 1000)
                asyncio.get_running_loop().call_later(wait, self._wake.set)
        return done

    async def _at_once(self, leased: Sequence[Due]) -> list[Settled]:
        """Works on all of them. What goes wrong with one, even a summariser that breaks its contract, is that one's
        failure: it is counted, told in the log by its kind, and tried again; the others and the background go on.
        Cut off, it gives the work back for the next opener.
        """
        try:
            results = await asyncio.gather(*map(self._work, leased), return_exceptions=True)
        except asyncio.CancelledError:
            for due in leased:
                await self._vault.store.put_back(due, retry_at=0)
            raise
        return [_counted(result) for result in results]

    async def catch_up(self, thread: Thread) -> None:
        """Brings a session whose backlog is over the limit back under it, offline and at once."""
        while (
            piece := await self._slice(thread)
        ) is not None and piece.head - piece.summary.cursor > self._limits.backlog:
            await self._commit(piece, await self._propose(piece, self._offline))

    async def _forever(self) -> None:
        """Works whenever something became due, and now and then without being told: for what another process was
        killed over, once its lease has ended.
        """
        while not self._closing:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.poll_seconds):
                    await self._wake.wait()
            self._wake.clear()
            self._vault.keychain.expire()
            try:
                await self.run(early=False)
            except NitkaError as error:
                log.warning("folds stopped for a while: %s", type(error).__name__)

    async def _lease(self, only: tuple[bytes, Tag | None] | None, *, early: bool) -> Sequence[Due]:
        now = self._now()
        until = now + LEASE_SECONDS * 1000
        return await self._vault.store.lease(now=now, until=until, limit=AT_ONCE, only=only, early=early)

    def _now(self) -> int:
        return int((self._clock() - EPOCH).total_seconds() * 1000)

    async def _work(self, due: Due) -> Settled:
        try:
            owner = await self._vault.keychain.find(due.owner)
            if owner is None:
                return Settled()  # being forgotten: the erasure removes the entry
            if due.session == NOBODY:
                last = ATTEMPTS - 1
                return await self._people.work(owner, due.kind, attempts=max(due.attempts, 0), last_attempt=last)
            thread = await self._thread(owner, due.session)
            if thread is None:
                return Settled()
            if due.kind == WATCH:
                read = await catch_up(self._vault, self._watching, thread, rows=SLICE_ROWS, now=self._clock())
                return Settled(folds=int(read > 0), messages=read)
            return await (self._mend(thread) if due.kind == MEND else self._fold(thread, due.attempts))
        except Forgotten:
            self._vault.keychain.drop(due.owner)
            return Settled()
        except NitkaError as error:
            status = getattr(error, "status", None)
            log.warning("a fold failed (%s, status %s); it is tried again", type(error).__name__, status)
            return Settled(failed=1)

    async def _thread(self, owner: Owner, session: Tag) -> Thread | None:
        view = await self._vault.store.view(Look(owner=owner.id, session=session))
        if view.incarnation != owner.incarnation:
            raise Forgotten("The user.")
        return Thread(owner, session, view.session.incarnation) if view.session else None

    async def _fold(self, thread: Thread, attempts: int) -> Settled:
        piece = await self._slice(thread)
        if piece is None:
            return Settled()
        behind = piece.head - piece.summary.cursor > self._limits.backlog
        proposal, stood_in = await model_or_rules(
            self._model,
            self._offline,
            lambda summariser: self._propose(piece, summariser),
            tokens=piece.summary.tokens + sum(item.tokens for item in piece.rows),
            afford=partial(affordable, self._vault, self._limits, self._clock),
            attempts=ATTEMPTS if behind else attempts,
            last_attempt=ATTEMPTS - 1,
        )
        committed = await self._commit(piece, proposal)
        return Settled(folds=committed, messages=committed * len(piece.rows), offline=committed and int(stood_in))

    async def _propose(self, piece: Slice, model: Summariser) -> Proposal:
        if not piece.rows:
            return Proposal()
        messages = [self._bounded(item) for item in piece.rows]
        proposal = await model.propose(piece.summary.lines, messages, cap=self._limits.summary_tokens)
        if model is not self._offline:
            return proposal
        return replace(proposal, add=tuple(replace(line, offline=True) for line in proposal.add))

    def _bounded(self, item: Stored) -> Message:
        """The message, a giant one condensed to a slice."""
        room = self._limits.slice_tokens
        if item.tokens <= room and item.counter == self._vault.counter:
            return item.message
        if (
            len(item.message.text) <= room
        ):  # no counter gives more tokens than there are characters but for rare scripts
            return item.message
        return replace(item.message, text=condense(item.message.text, room=room, count=self._vault.count))

    async def _slice(self, thread: Thread) -> Slice | None:
        """The next rows to fold, or None (and the due entry removed) when none have to be."""
        keep = self._limits.window
        lag = keep + self._limits.slack
        look = Look(owner=thread.owner.id, session=thread.tag, folds=(SUMMARY,), first=None, limit=lag + SLICE_ROWS)
        view = await self._vault.store.view(look)
        if view.session is None or view.session.incarnation != thread.incarnation:
            raise Forgotten("The session.")
        summary = read_summary(thread, view.folds.get(SUMMARY))
        rows, head = view.rows, view.session.head
        living = [row.seq for row in rows if row.body is not None]
        if len(living) <= lag:
            await self._vault.store.change(thread.scope(SUMMARY), _not_due(thread, summary, head, lag))
            return None
        floor = living[-keep] if keep else head
        if rows[0].seq > summary.cursor:
            end = min(floor, summary.cursor + SLICE_ROWS)
            look = replace(look, first=summary.cursor, end=end, limit=SLICE_ROWS)
            rows, floor = (await self._vault.store.view(look)).rows, end
        older = open_rows(thread, tuple(row for row in rows if row.seq < floor), first=summary.cursor, end=floor)
        taken, end = _take(older, floor, self._limits.slice_tokens)
        return Slice(thread=thread, summary=summary, rows=taken, end=end, head=head)

    async def _commit(self, piece: Slice, proposal: Proposal) -> int:
        """Writes the step if the summary is still the one it started from; 1 if so, else 0."""
        cap, count, counter = self._limits.summary_tokens, self._vault.count, self._vault.counter
        after = summaries.advance(piece.summary, proposal, cursor=piece.end, cap=cap, count=count, counter=counter)
        lag = self._limits.window + self._limits.slack
        _, change = await self._vault.store.change(piece.thread.scope(SUMMARY), _advance(piece, after, lag))
        return int(change is not None and bool(change.folds))

    async def _mend(self, thread: Thread) -> Settled:
        """Writes anew, offline, what forgotten summary lines said of rows that still live."""
        look = Look(owner=thread.owner.id, session=thread.tag, folds=(SUMMARY,), first=0, end=0)
        view = await self._vault.store.view(look)
        summary = read_summary(thread, view.folds.get(SUMMARY))
        after = summary
        for gap in summary.gaps:
            rows = await self._vault.store.view(replace(look, first=gap[0], end=gap[1] + 1, limit=SLICE_ROWS))
            messages = [self._bounded(item) for item in open_rows(thread, rows.rows)]
            proposal = await self._offline.propose((), messages, cap=self._limits.summary_tokens)
            lines = tuple(replace(line, offline=True) for line in proposal.add)
            cap, count, counter = self._limits.summary_tokens, self._vault.count, self._vault.counter
            after = summaries.mend(after, gap, lines, cap=cap, count=count, counter=counter)
        _, change = await self._vault.store.change(thread.scope(SUMMARY), _mended(thread, summary, after))
        return Settled(mended=len(summary.gaps) if change is not None and change.folds else 0)


async def affordable(vault: Vault, limits: Limits, clock: Clock, tokens: int) -> bool:
    """Whether models may still be given so many tokens today; if so they are counted."""
    if limits.fold_tokens_per_day is None:
        return True
    day = (clock() - EPOCH).days
    if await vault.store.spend(day, 0) + tokens > limits.fold_tokens_per_day:
        return False
    await vault.store.spend(day, tokens)
    return True


def _stands(thread: Thread, locked: Locked, before: Summary) -> bool:
    row = locked.folds.get(SUMMARY)
    now = (row.cursor, row.version) if row else (0, 0)
    return now == (before.cursor, before.version)


def _again(kind: str) -> Change:
    """Somebody else moved the summary on: nothing is written but that the work is free to be looked at anew. Its lease
    would keep everybody from it for minutes, and this was no failure of the model's, so attempts begin at none.
    """
    return Change(done=(kind,), due=(kind,))


def _advance(piece: Slice, after: Summary, lag: int) -> Step:
    def step(locked: Locked) -> Change | None:
        if not _stands(piece.thread, locked, piece.summary):
            return _again(SUMMARY)
        due = (SUMMARY,) if locked.head - after.cursor > lag else ()
        return Change(folds=(seal_summary(piece.thread, after),), done=(SUMMARY,), due=due)

    return step


def _not_due(thread: Thread, before: Summary, head: int, lag: int) -> Step:
    def step(locked: Locked) -> Change | None:
        if not _stands(thread, locked, before):
            return _again(SUMMARY)
        due = (SUMMARY,) if locked.head != head and locked.head - before.cursor > lag else ()
        return Change(done=(SUMMARY,), due=due)

    return step


def _mended(thread: Thread, before: Summary, after: Summary) -> Step:
    def step(locked: Locked) -> Change | None:
        if not _stands(thread, locked, before):
            return _again(MEND)
        return Change(folds=(seal_summary(thread, after),) if after != before else (), done=(MEND,))

    return step


def _take(rows: tuple[Stored, ...], floor: int, room: int) -> tuple[tuple[Stored, ...], int]:
    """The oldest rows that make one slice, at least one, and the cursor after it."""
    used = 0
    for at, item in enumerate(rows):
        used += min(item.tokens, room)
        if at and used > room:
            return rows[:at], item.message.seq
    return rows, floor


def _counted(result: Settled | BaseException) -> Settled:
    if isinstance(result, Settled):
        return result
    log.error("a fold broke (%s); it is tried again", type(result).__name__)
    return Settled(failed=1)


def add(a: Settled, b: Settled) -> Settled:
    """The sum, field by field."""
    return Settled(
        folds=a.folds + b.folds,
        messages=a.messages + b.messages,
        offline=a.offline + b.offline,
        failed=a.failed + b.failed,
        left=a.left + b.left,
        mended=a.mended + b.mended,
        erased=a.erased + b.erased,
        expired=a.expired + b.expired,
        expired_facts=a.expired_facts + b.expired_facts,
    )
