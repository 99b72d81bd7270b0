"""What is read of a user's conversations besides talking: list, read, export."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from nitka import watching
from nitka.conversation import SUMMARY, Thread, Vault, find_owner, find_thread, open_rows, read_summary
from nitka.errors import BadInput, Damaged
from nitka.store.port import HandleRow, Look, Row, SessionRow
from nitka.types import Message, Person, Sealed, SessionInfo, Summary, Tag
from nitka.vault import codec, handles
from nitka.vault.keychain import Owner

PAGE = 500
GONE = Sealed(b"")  # stands for a row that is missing, and opens as little


async def address(vault: Vault, user: Person, session: str | None) -> tuple[bytes, Tag | None] | None:
    """Where due work of a user (and session) lies; None if there is no such user."""
    owner = await find_owner(vault, user)
    if owner is None:
        return None
    return owner.id, codec.session_tag(owner, session) if session is not None else None


async def sessions(vault: Vault, user: Person) -> tuple[SessionInfo, ...]:
    """The conversations that hold messages, the latest first; those that do not open come last, marked."""
    owner = await find_owner(vault, user)
    if owner is None:
        return ()
    return tuple(sorted(await infos_of(vault, owner), key=lambda info: info.last or info.started, reverse=True))


async def infos_of(vault: Vault, owner: Owner) -> list[SessionInfo]:
    """The owner's conversations that hold messages, in no order."""
    infos = [_info(owner, row) async for row in session_rows(vault, owner)]
    return [info for info in infos if info.messages or info.damaged]


def _info(owner: Owner, row: SessionRow) -> SessionInfo:
    """What a session's row says of it. One that does not open must hide neither itself nor the others."""
    try:
        return codec.open_session(owner, row)
    except Damaged:
        return SessionInfo(id="", channel="", messages=row.head, started=codec.EPOCH, last=None, damaged=True)


async def history(vault: Vault, user: Person, session: str, *, before: int | None, limit: int) -> tuple[Message, ...]:
    """The newest `limit` living messages before a row, oldest first."""
    found = await _readable(vault, user, session)
    if found is None or limit <= 0:
        return ()
    thread, row = found
    end = row.head if before is None else max(0, min(before, row.head))
    look = Look(owner=thread.owner.id, session=thread.tag, first=0, end=end, limit=limit)
    rows = (await vault.store.view(look)).rows
    living = sum(row.body is not None for row in rows)
    if living < limit and end == row.head and living != codec.open_session(thread.owner, row).messages:
        raise Damaged(f"(session {end})")  # rows were emptied, and not by forgetting, which keeps count
    return tuple(item.message for item in open_rows(thread, rows, first=0 if living < limit else None, end=end))


async def summary(vault: Vault, user: Person, session: str) -> Summary:
    """The rolling summary; an empty one where there is none."""
    found = await _readable(vault, user, session)
    return await _summary(vault, found[0]) if found else Summary()


async def watch_memory(vault: Vault, user: Person, session: str) -> Mapping[str, Any]:
    """The watch's memory of a session; empty where there is none."""
    found = await _readable(vault, user, session)
    return (await watching.watched(vault, found[0])).memory if found else {}


async def set_watch_memory(vault: Vault, user: Person, session: str, memory: Mapping[str, Any]) -> None:
    """Replaces the watch's memory of a session. Raises `BadInput` for an unknown session."""
    found = await found_session(vault, user, session)
    if found is None:
        raise BadInput("There is no such session.")
    await watching.set_memory(vault, found[0], memory)


async def export(
    vault: Vault, user: Person, *, derived: Callable[[Summary], dict[str, Any]] | None
) -> AsyncIterator[dict[str, Any]]:
    """Records of each session, oldest message first; with `derived` also what was made from it, after the handles that
    are linked to the user.

    What does not open is marked in its place: a message {"seq", "damaged"}, a session {"session": None, "damaged"}
    before its messages, what was made from it {"summary": None, "damaged"}, a handle {"link": None, "damaged"}.
    """
    owner = await find_owner(vault, user)
    if owner is None:
        return
    for linked in await vault.store.handles(owner.id) if derived is not None else ():
        yield _link(owner, linked)
    rows = [row async for row in session_rows(vault, owner)]
    infos = [(_info(owner, row), row) for row in rows]
    for info, row in sorted(infos, key=lambda item: (item[0].damaged, item[0].started)):
        name = {"session": None if info.damaged else info.id}
        if info.damaged:
            yield {**name, "damaged": True}
        thread = Thread(owner, row.session, row.incarnation)
        async for record in _messages(vault, thread, 0 if info.damaged else row.head):
            yield {**name, **record}
        if derived is not None:
            async for record in _derived(vault, thread, derived):
                yield {**name, **record}


def _link(owner: Owner, row: HandleRow) -> dict[str, Any]:
    try:
        handle = handles.open_handle(owner, row)
    except Damaged:
        return {"link": None, "damaged": True}
    return {"link": {"channel": handle.channel, "id": handle.id}}


async def _derived(
    vault: Vault, thread: Thread, derived: Callable[[Summary], dict[str, Any]]
) -> AsyncIterator[dict[str, Any]]:
    """What was made from a session."""
    try:
        yield {"summary": derived(await _summary(vault, thread))}
    except Damaged:
        yield {"summary": None, "damaged": True}
    try:
        watched = await watching.watched(vault, thread)
        if watched.memory or watched.alerts:
            yield {"watch": {"memory": watched.memory, "alerts": list(watched.alerts)}}
    except Damaged:
        yield {"watch": None, "damaged": True}


async def _messages(vault: Vault, thread: Thread, head: int) -> AsyncIterator[dict[str, Any]]:
    """The records of the rows `[0, head)`, of the missing ones too, and of what else is found after them."""
    first = 0
    while True:
        look = Look(owner=thread.owner.id, session=thread.tag, first=first, end=first + PAGE, limit=PAGE)
        rows = (await vault.store.view(look)).rows
        if not rows and first >= head:
            return
        missing = codec.missing_rows(rows, first, min(first + PAGE, head))
        for row in sorted([*rows, *(Row(seq, 0, GONE) for seq in missing)], key=lambda row: row.seq):
            record = _row_record(thread, row)
            if record is not None:
                yield record
        first += PAGE


def _row_record(thread: Thread, row: Row) -> dict[str, Any] | None:
    """The record of a row; None for a tombstone."""
    try:
        stored = codec.open_message(thread.owner, thread.incarnation, row)
    except Damaged:
        return {"seq": row.seq, "damaged": True}
    return _record(stored.message) if stored is not None else None


def _record(message: Message) -> dict[str, Any]:
    record: dict[str, Any] = {"seq": message.seq, "role": message.role, "text": message.text}
    record["at"] = message.at.isoformat()
    extras = {"zone": message.zone, "channel": message.channel, "interrupted": message.interrupted}
    return record | {name: value for name, value in extras.items() if value}


async def found_session(vault: Vault, user: Person, session: str) -> tuple[Thread, SessionRow] | None:
    """One of the user's sessions, if there is one of that name."""
    owner = await find_owner(vault, user)
    return await find_thread(vault, owner, session) if owner is not None else None


async def _readable(vault: Vault, user: Person, session: str) -> tuple[Thread, SessionRow] | None:
    """The session, if its row opens: else its numbers may be anything, and its rows another session's. Raises
    `Damaged`.
    """
    found = await found_session(vault, user, session)
    if found is not None:
        codec.open_session(found[0].owner, found[1])
    return found


async def session_rows(vault: Vault, owner: Owner) -> AsyncIterator[SessionRow]:
    """All of the owner's sessions."""
    after: Tag | None = None
    while rows := await vault.store.sessions(owner.id, after=after, limit=PAGE):
        for row in rows:
            yield row
        after = rows[-1].session


async def _summary(vault: Vault, thread: Thread) -> Summary:
    view = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, folds=(SUMMARY,)))
    return read_summary(thread, view.folds.get(SUMMARY))


async def lines_of(vault: Vault, thread: Thread) -> int:
    """How many lines are about to go; a summary that does not open is forgotten like any other, uncounted."""
    try:
        return len((await _summary(vault, thread)).lines)
    except Damaged:
        return 0
