"""The log of a conversation: opening it, adding a turn, forgetting turns.

Each act is one `view` or one `change` of the store; what a change writes is decided by a pure step under the
owner's lock, where `seq` and `n` are given out. Here the layers meet: a turn that is forgotten takes the summary
lines that speak of it along.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple, Protocol

from nitka.errors import Damaged, Forgotten, KeyReused
from nitka.layers import summary as summaries
from nitka.store.port import Change, FoldRow, Locked, Look, OutboxRow, Row, Scope, SessionRow, Store, View
from nitka.types import Alert, Message, Person, Sealed, SessionInfo, Summary, Tag
from nitka.vault import codec, handles
from nitka.vault.codec import Stored
from nitka.vault.keychain import Keychain, Owner
from nitka.vault.seal import Kind
from nitka.world import random_bytes

SUMMARY = "summary"
MEND = "mend"
WATCH = "watch"
FACTS = "facts"
RECALL = "recall"
VECTORS = "vectors"
PROFILE = "profile"
PERSON = (FACTS, PROFILE, RECALL)
"""Folds of a person whose state a turn reads."""
FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class Vault:
    """Where sealed rows lie and who can open them. Holds nobody's data: the owner is an argument of every call."""

    store: Store
    keychain: Keychain
    count: Callable[[str], int]
    counter: str

    async def owner_id(self, user: Person, *, leaving: bool = False) -> bytes:
        """The owner who is meant, asked of the store on every call; see `vault.handles`. Raises `BadId`, `Damaged`."""
        return await handles.owner_id(self.store, self.keychain, user, leaving=leaving)

    def scope(self, owner: Owner, *person_folds: str) -> Scope:
        """What a change of a person's state locks and reads."""
        return Scope(owner=owner.id, incarnation=owner.incarnation, person_folds=person_folds)


@dataclass(frozen=True, slots=True)
class Thread:
    """One session of one owner, in this incarnation."""

    owner: Owner
    tag: Tag
    incarnation: bytes

    def scope(self, *folds: str, turn_key: Tag | None = None, rows: tuple[int, int] | None = None) -> Scope:
        """What a change of this session locks and reads."""
        return Scope(
            owner=self.owner.id,
            incarnation=self.owner.incarnation,
            session=self.tag,
            session_incarnation=self.incarnation,
            turn_key=turn_key,
            folds=folds,
            rows=rows,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A conversation as it stood in one snapshot. `history` holds the living rows of `[cursor, head)`, oldest
    first, at most the newest of the backlog limit; `behind` says that older unfolded ones were left out.
    """

    thread: Thread
    head: int
    top: int  # the number of the session's next row; `head` is lower where an edit leaves rows out
    summary: Summary
    history: tuple[Message, ...] = ()
    sizes: Mapping[int, int] = field(default_factory=dict)  # tokens of a row's text, by the counter in force
    behind: bool = False
    pair: tuple[Stored, ...] = ()  # the rows of the turn that already has this key
    known: bool = False
    person: Mapping[str, FoldRow] = field(default_factory=dict)  # the owner's folds in the same snapshot


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


async def find_owner(vault: Vault, user: Person) -> Owner | None:
    """The owner if the user is known and his rows belong to the key at hand."""
    return await known_owner(vault, await vault.owner_id(user))


async def known_owner(vault: Vault, owner_id: bytes) -> Owner | None:
    """The owner of that id if he has rows and they belong to the key at hand."""
    for _ in range(2):
        owner = await vault.keychain.find(owner_id)
        if owner is None:
            return None
        view = await vault.store.view(Look(owner=owner_id))
        if view.incarnation == owner.incarnation:
            return owner
        vault.keychain.drop(owner_id)  # it was opened before a forget; look again
    return None


async def make_owner(vault: Vault, user: Person) -> Owner:
    """The owner, with his key and his row, made if he is new."""
    while True:
        owner_id = await vault.owner_id(user)
        owner = await vault.keychain.find(owner_id) or await vault.keychain.make(owner_id)
        view = await vault.store.view(Look(owner=owner_id))
        if view.incarnation == owner.incarnation:
            return owner
        await create(vault, await _renewed(vault, owner_id, view.incarnation))


async def find_thread(vault: Vault, owner: Owner, session: str) -> tuple[Thread, SessionRow] | None:
    """One of the owner's sessions, if there is one of that name."""
    tag = codec.session_tag(owner, session)
    view = await vault.store.view(Look(owner=owner.id, session=tag))
    if view.session is None or view.incarnation != owner.incarnation:
        return None
    return Thread(owner, tag, view.session.incarnation), view.session


async def peek(vault: Vault, user: Person, session: str, *, limit: int) -> Opened | None:
    """What a turn that leaves nothing behind may read; None if there is no such session. Nothing is made."""
    owner = await find_owner(vault, user)
    if owner is None:
        return None
    tag = codec.session_tag(owner, session)
    look = Look(owner=owner.id, session=tag, folds=(SUMMARY,), person_folds=PERSON, first=None, limit=limit)
    view = await vault.store.view(look)
    known = view.session is not None and view.incarnation == owner.incarnation
    return opened(vault, owner, view, limit=limit) if known else None


async def open_thread(
    vault: Vault, user: Person, info: SessionInfo, *, key: bytes, before: int | None, limit: int
) -> Opened:
    """Opens a session for a turn; user and session are made if they are new. A handle that was linked while they were
    made is its user's: who links it looks after that for rows of its own, so one of the two sees the other.

    `info` names the session, and is kept if it is new. `before` leaves out the rows from that number on, as an edit
    wants it.
    """
    owner_id = await vault.owner_id(user)
    owner = await vault.keychain.find(owner_id) or await vault.keychain.make(owner_id)
    view = await _look(vault, owner, info.id, key=key, before=before, limit=limit)
    while view.session is None or view.incarnation != owner.incarnation:
        if view.incarnation != owner.incarnation:
            owner = await _renewed(vault, owner_id, view.incarnation)
        await create(vault, owner, info)
        if await vault.owner_id(user) != owner_id:
            return await open_thread(vault, user, info, key=key, before=before, limit=limit)
        view = await _look(vault, owner, info.id, key=key, before=before, limit=limit)
    return opened(vault, owner, view, before=before, limit=limit)


async def _look(vault: Vault, owner: Owner, session: str, *, key: bytes, before: int | None, limit: int) -> View:
    tag = codec.session_tag(owner, session)
    turn_key = codec.key_tag(owner, tag, key)
    look = Look(
        owner=owner.id,
        session=tag,
        turn_key=turn_key,
        folds=(SUMMARY,),
        person_folds=PERSON if limit else (),
        first=None,
        end=before,
        limit=limit,
    )
    return await vault.store.view(look)


async def _renewed(vault: Vault, owner_id: bytes, seen: bytes | None) -> Owner:
    """The owner by the key that stands now. A key is made before the rows it seals, so rows of another incarnation
    that were `seen` before the key was read belong to a life that was forgotten; what is left of them goes.
    """
    vault.keychain.drop(owner_id)
    owner = await vault.keychain.find(owner_id) or await vault.keychain.make(owner_id)
    if seen is not None and seen != owner.incarnation:
        await vault.store.erase_owner(owner_id, seen)
    return owner


async def create(vault: Vault, owner: Owner, info: SessionInfo | None = None) -> None:
    """Makes the rows of owner and, if given, session. If the owner was forgotten since his key was read, they are taken
    back: whoever forgets removes the key first and the rows then, so one of the two sees the other.
    """
    row: SessionRow | None = None
    if info is not None:
        incarnation = random_bytes(16)
        body = codec.seal_session(owner, incarnation, 0, info)
        row = SessionRow(codec.session_tag(owner, info.id), incarnation, 0, body)
    with contextlib.suppress(Forgotten):  # somebody made him anew meanwhile; the caller looks again
        await vault.store.create(owner.id, owner.incarnation, row)
    if not await vault.keychain.stands(owner):
        vault.keychain.drop(owner.id)
        await vault.store.erase_owner(owner.id, owner.incarnation)


def opened(vault: Vault, owner: Owner, view: View, *, before: int | None = None, limit: int) -> Opened:
    """What a view of an existing session says, unsealed. Raises `Damaged`, also where rows are missing."""
    assert view.session is not None
    info = codec.open_session(owner, view.session)
    thread = Thread(owner, view.session.session, view.session.incarnation)
    summary = read_summary(thread, view.folds.get(SUMMARY))
    end = view.session.head if before is None else min(before, view.session.head)
    if before is not None and before < summary.cursor:
        summary = replace(summaries.forget(summary, before, FAR, count=vault.count), cursor=before)
    whole = sum(row.body is not None for row in view.rows) < limit
    stored = open_rows(thread, view.rows, first=summary.cursor if whole else None, end=end if limit else None)
    if whole and before is None and not 0 <= info.messages - len(stored) <= summary.cursor:
        raise Damaged(f"(session {end})")  # rows were emptied, and not by forgetting, which keeps count
    return Opened(
        thread=thread,
        head=end,
        top=view.session.head,
        summary=summary,
        history=tuple(item.message for item in stored),
        sizes={item.message.seq: item.tokens for item in stored if item.counter == vault.counter},
        behind=bool(view.rows) and view.rows[0].seq > summary.cursor,
        known=view.known is not None,
        pair=open_rows(thread, view.pair) if view.pair else (),
        person=view.person_folds,
    )


def open_rows(
    thread: Thread, rows: tuple[Row, ...], *, first: int | None = None, end: int | None = None
) -> tuple[Stored, ...]:
    """The living ones of consecutive rows, all of `[first, end)` where given; a missing one is as bad as a closed."""
    begin = first if first is not None else rows[0].seq if rows else max(0, (end or 0) - 1)
    last = end if end is not None else begin + len(rows)
    if (missing := next(codec.missing_rows(rows, begin, last), None)) is not None:
        raise Damaged(f"(message {missing} is missing)")
    stored = (codec.open_message(thread.owner, thread.incarnation, row) for row in rows)
    return tuple(item for item in stored if item is not None)


def read_summary(thread: Thread, row: FoldRow | None) -> Summary:
    """The summary in a fold row. Its cursor and version are the row's, to which the seal is bound."""
    if row is None:
        return Summary()
    kept: Summary | None = thread.owner.recent.get((thread.incarnation, SUMMARY), row)
    if kept is None:
        state = codec.open_fold(thread.owner, thread.incarnation, Kind.SUMMARY, row)
        kept = replace(summaries.from_json(state), cursor=row.cursor, version=row.version)
        thread.owner.recent.keep((thread.incarnation, SUMMARY), row, kept)
    return kept


def seal_summary(thread: Thread, summary: Summary) -> FoldRow:
    row = FoldRow(thread.tag, SUMMARY, summary.cursor, summary.version, Sealed(b""))
    row = codec.seal_fold(thread.owner, thread.incarnation, Kind.SUMMARY, row, summaries.to_json(summary))
    thread.owner.recent.keep((thread.incarnation, SUMMARY), row, summary)
    return row


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
        pair = _pair(vault, draft, tag, locked)
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


def _pair(vault: Vault, draft: Draft, tag: Tag, locked: Locked) -> list[Stored]:
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
    return [Stored(message, tag, vault.counter, vault.count(message.text)) for message in (question, answer)]


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
