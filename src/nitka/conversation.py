"""A conversation as it stands: whose it is, which session, and what of it a turn opens.

Each act is one `view` of the store. What is written is in `nitka.log`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from nitka.errors import Damaged, Forgotten
from nitka.layers import summary as summaries
from nitka.store.port import FoldRow, Look, Row, Scope, SessionRow, Store, View
from nitka.types import Message, Person, Sealed, SessionInfo, Summary, Tag
from nitka.vault import codec, handles
from nitka.vault.codec import Stored
from nitka.vault.keychain import Keychain, Owner
from nitka.vault.seal import Kind
from nitka.world import random_bytes

log = logging.getLogger("nitka")

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


class Said(NamedTuple):
    """A living row: the message, and the tag and name of its session."""

    message: Message
    tag: Tag
    session: str


def said(owner: Owner, view: View) -> dict[int, Said]:
    """The living rows of a view, by n; those that do not open are not among them."""
    names: dict[Tag, str] = {}
    found: dict[int, Said] = {}
    for tag, row in view.person_rows:
        try:
            session = view.person_sessions[tag]
            stored = codec.open_message(owner, session.incarnation, row)
            if stored is not None and tag not in names:
                names[tag] = codec.open_session(owner, session).id
        except Damaged:
            log.warning("a message does not open; what is made of a person's messages goes on without it")
            continue
        if stored is not None:
            found[row.n] = Said(stored.message, tag, names[tag])
    return found
