"""What is written into the log: a turn, and the tombstones of forgotten ones.

Each is one `change` of the store; what it writes is decided by a pure step under the owner's lock, where `seq` and
`n` are given out. Here the layers meet: a turn that is forgotten takes along what was made from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Protocol

from nitka.conversation import FACTS, FAR, MEND, SUMMARY, WATCH, Thread, Vault, open_rows, read_summary, seal_summary
from nitka.errors import Damaged, Forgotten, KeyReused
from nitka.layers import summary as summaries
from nitka.store.port import Change, FoldRow, Locked, Look, OutboxRow
from nitka.types import Alert, Message, Sealed, Summary, Tag
from nitka.vault import codec
from nitka.vault.codec import Stored
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A turn that is about to be written."""

    question: str
    answer: str
    asked: datetime
    answered: datetime
    key: bytes
    zone: str = ""
    channel: str = ""
    interrupted: bool = False
    replaces: int | None = None  # the turn with this row and all after it are forgotten


class Watched(NamedTuple):
    """What reading along came to: the watch's next row if there is one, whether the messages were read, what was
    raised, and what of it has to be delivered.
    """

    row: FoldRow | None = None
    read: bool = False
    alerts: tuple[Alert, ...] = ()
    outbox: tuple[OutboxRow, ...] = ()


class Watcher(Protocol):
    """What reads along as turns are written; see `nitka.watching`."""

    def advance(self, thread: Thread, row: FoldRow | None, first: int, messages: Sequence[Message]) -> Watched: ...


class Along(NamedTuple):
    """What goes in the same transaction with rows that are forgotten: made from the state of one version of a
    person's folds, and written only if it `stands` under the lock.
    """

    kinds: tuple[str, ...] = ()  # of the person's folds, to read under the lock
    stands: Callable[[Locked], bool] = lambda _: True
    change: Change = Change()
    facts: int = 0  # how many go


def _with_along(change: Change, along: Along) -> Change:
    more = along.change
    return replace(
        change,
        put_pieces=more.put_pieces,
        drop_pieces=more.drop_pieces,
        folds=(*change.folds, *more.folds),
        person_due=(*change.person_due, *more.person_due),
    )


class Appended(NamedTuple):
    """The answer as it is stored now, whether work became due, and what the watcher raised."""

    answer: Stored
    due: bool = False
    alerts: tuple[Alert, ...] = ()


async def append(
    vault: Vault,
    thread: Thread,
    draft: Draft,
    *,
    lag: int,
    watcher: Watcher | None = None,
    along: Along | None = None,
) -> Appended | None:
    """Adds the two rows of a turn; where another turn got the key first, gives that one's answer.

    `lag` is how many unfolded rows there may be before the summary is due. `along` goes with the rows that the draft
    replaces; None, and nothing is written, where it does not stand any more. Raises `KeyReused`, `Forgotten`.
    """
    tag = codec.key_tag(thread.owner, thread.tag, draft.key)
    rows = None if draft.replaces is None else (draft.replaces, FAR)
    scope = thread.scope(SUMMARY, WATCH, turn_key=tag, rows=rows)
    if along is not None:
        scope = replace(scope, person_folds=along.kinds)
    written: list[Appended | None] = []

    def step(locked: Locked) -> Change | None:
        if locked.known is not None:
            return None
        if along is not None and not along.stands(locked):
            written[:] = [None]
            return None
        pair = _pair(vault, thread.owner, draft, tag, locked)
        change = _appended(vault, thread, pair, locked, lag)
        if along is not None:
            change = _with_along(change, along)
        change, alerts = _with_watch(thread, change, locked, pair, watcher)
        written[:] = [Appended(pair[1], bool(change.due or change.person_due), alerts)]
        return change

    await vault.store.change(scope, step)
    return written[0] if written else Appended((await _earlier(vault, thread, tag, draft.question))[1])


def _appended(vault: Vault, thread: Thread, pair: list[Stored], locked: Locked, lag: int) -> Change:
    rows = tuple(codec.seal_message(thread.owner, thread.incarnation, item) for item in pair)
    head = locked.head + len(rows)
    forgotten = locked.rows
    row = locked.folds.get(SUMMARY)
    folds, due = _without(vault, thread, row, forgotten[0].seq) if forgotten else ((), ())
    if head - (row.cursor if row else 0) > lag:
        due = (SUMMARY, *due)
    assert locked.session is not None
    info = codec.open_session(thread.owner, locked.session)
    living = info.messages - sum(item.body is not None for item in forgotten) + len(rows)
    at = pair[1].message.at
    oldest = min(info.oldest or info.started, pair[0].message.at)  # a turn of long ago may come late
    info = replace(info, messages=living, last=max(at, info.last or at), oldest=oldest)
    return Change(
        append=rows,
        session_body=codec.seal_session(thread.owner, thread.incarnation, head, info),
        turn_key=pair[0].turn_key,
        forget=(forgotten[0].seq, locked.head) if forgotten else None,
        folds=folds,
        due=due,
        person_due=(FACTS,),
    )


def _with_watch(
    thread: Thread, change: Change, locked: Locked, pair: list[Stored], watcher: Watcher | None
) -> tuple[Change, tuple[Alert, ...]]:
    """The change with the watch's next row. What a forgotten turn taught it goes; what was said before it began is
    not read.
    """
    row = locked.folds.get(WATCH)
    begin = locked.rows if row else watcher
    if begin:
        row = _unwatched(thread, row, locked.head)
    seen = Watched()
    if watcher is not None:
        seen = watcher.advance(thread, row, locked.head, [item.message for item in pair])
        change = change if seen.read else replace(change, due=(*change.due, WATCH))
    after = seen.row or (row if begin else None)
    if after is not None:
        change = replace(change, folds=(*change.folds, after), outbox=(*change.outbox, *seen.outbox))
    return change, seen.alerts


def _unwatched(thread: Thread, row: FoldRow | None, head: int) -> FoldRow:
    """The watch's row with nothing in it: what was forgotten may have been in it, and cannot be told apart."""
    blank = FoldRow(thread.tag, WATCH, head, row.version + 1 if row else 1, Sealed(b""))
    return codec.seal_fold(thread.owner, thread.incarnation, Kind.WATCH, blank, {"memory": {}, "alerts": []})


def _without(
    vault: Vault, thread: Thread, row: FoldRow | None, first: int, last: int = FAR
) -> tuple[tuple[FoldRow, ...], tuple[str, ...]]:
    """The summary without what rests on the rows `first..last`, and the work that leaves. It is written even where no
    line goes: a fold that has read those rows and is thinking about them must find another version.
    """
    after = summaries.forget(read_summary(thread, row), first, last, count=vault.count)
    return (seal_summary(thread, after),), (MEND,) if after.gaps else ()


def _pair(vault: Vault, owner: Owner, draft: Draft, tag: Tag, locked: Locked) -> list[Stored]:
    question = Message(
        seq=locked.head,
        n=locked.n,
        role="user",
        text=draft.question,
        at=draft.asked,
        zone=draft.zone,
        channel=draft.channel,
    )
    answer = Message(
        seq=locked.head + 1,
        n=locked.n + 1,
        role="assistant",
        text=draft.answer,
        at=draft.answered,
        zone=draft.zone,
        channel=draft.channel,
        interrupted=draft.interrupted,
    )
    count = owner.recent.counting(vault.count)  # the question's size is known since the request was packed
    return [Stored(message, tag, vault.counter, count(message.text)) for message in (question, answer)]


async def _earlier(vault: Vault, thread: Thread, tag: Tag, question: str) -> tuple[Stored, Stored]:
    look = Look(owner=thread.owner.id, session=thread.tag, turn_key=tag)
    view = await vault.store.view(look)
    return same_turn(open_rows(thread, view.pair), tag, question)


def same_turn(pair: tuple[Stored, ...], tag: Tag, question: str) -> tuple[Stored, Stored]:
    """The pair of this key. Raises `Forgotten` when only numbers remain, `KeyReused` for another text, `Damaged`."""
    if len(pair) != 2:
        raise Forgotten("The turn with this key.")
    if any(item.turn_key != tag for item in pair):
        raise Damaged(f"(message {pair[0].message.seq})")
    if pair[0].message.text != question:
        raise KeyReused()
    return pair[0], pair[1]


class RowsGone(NamedTuple):
    """How many rows and lines of the summary went."""

    rows: int = 0
    lines: int = 0


class Expire(NamedTuple):
    """How rows go by age: what becomes of the summary, and the time of the oldest row that is left."""

    shrink: Callable[[Summary], Summary]
    oldest: datetime


async def forget_rows(
    vault: Vault, thread: Thread, first: int, end: int, along: Along, *, expire: Expire | None = None
) -> RowsGone | None:
    """Turns the rows `[first, end)` into tombstones, with the summary lines that rest on them and the watch's memory,
    and with what goes along; None, and nothing is written, where that does not stand any more.

    Rows that go by age take only those lines along that `expire` shrinks away, and leave the watch's memory, in which
    everything has a life of its own.
    """
    went: list[RowsGone | None] = [RowsGone()]

    def step(locked: Locked) -> Change | None:
        living = sum(row.body is not None for row in locked.rows)
        if not living:
            return None
        if not along.stands(locked):
            went[:] = [None]
            return None
        change, lines = _rows_gone(vault, thread, locked, (first, min(end, locked.head)), expire)
        went[:] = [RowsGone(living, lines)]
        return _with_along(change, along)

    scope = replace(thread.scope(SUMMARY, WATCH, rows=(first, end)), person_folds=along.kinds)
    await vault.store.change(scope, step)
    return went[0]


def _rows_gone(
    vault: Vault, thread: Thread, locked: Locked, rows: tuple[int, int], expire: Expire | None
) -> tuple[Change, int]:
    row, watch = locked.folds.get(SUMMARY), locked.folds.get(WATCH)
    if expire is None:
        folds, due = _without(vault, thread, row, rows[0], rows[1] - 1)
        folds = (*folds, _unwatched(thread, watch, locked.head)) if watch else folds
    else:
        folds, due = (seal_summary(thread, expire.shrink(read_summary(thread, row))),), ()
    lines = len(read_summary(thread, row).lines) - len(read_summary(thread, folds[0]).lines)
    assert locked.session is not None
    info = codec.open_session(thread.owner, locked.session)
    info = replace(info, messages=info.messages - sum(row.body is not None for row in locked.rows))
    info = replace(info, oldest=expire.oldest) if expire is not None else info
    change = Change(
        session_body=codec.seal_session(thread.owner, thread.incarnation, locked.head, info),
        forget=rows,
        folds=folds,
        due=due,
    )
    return change, lines
