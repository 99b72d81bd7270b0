"""What is read of a user's conversations besides talking: list, read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from nitka import watching
from nitka.conversation import SUMMARY, Thread, Vault, find_owner, find_thread, open_rows, read_summary
from nitka.errors import BadInput, Damaged
from nitka.store.port import Look, SessionRow
from nitka.types import Message, Person, Sealed, SessionInfo, Summary, Tag
from nitka.vault import codec
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
    infos = [info_of(owner, row) async for row in session_rows(vault, owner)]
    return [info for info in infos if info.messages or info.damaged]


def info_of(owner: Owner, row: SessionRow) -> SessionInfo:
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
    return await summary_of(vault, found[0]) if found else Summary()


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


async def summary_of(vault: Vault, thread: Thread) -> Summary:
    view = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, folds=(SUMMARY,)))
    return read_summary(thread, view.folds.get(SUMMARY))


async def lines_of(vault: Vault, thread: Thread) -> int:
    """How many lines are about to go; a summary that does not open is forgotten like any other, uncounted."""
    try:
        return len((await summary_of(vault, thread)).lines)
    except Damaged:
        return 0
