"""Everything that is held about a user, as plain JSON values: what was said, and what was made from it.

What does not open is marked in its place, and the rest is given all the same: an export leaves nothing out in silence.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from nitka import editing, facts, watching
from nitka.acts import PAGE, info_of, session_rows, summary_of
from nitka.conversation import PROFILE, Thread, Vault, find_owner
from nitka.errors import Damaged
from nitka.profiling import read_profile
from nitka.store.port import HandleRow, Look, Row, SessionRow
from nitka.types import Message, Person, Sealed, SessionInfo, Summary
from nitka.vault import codec, handles
from nitka.vault.keychain import Owner

GONE = Sealed(b"")  # stands for a row that is missing, and opens as little


async def export(
    vault: Vault, user: Person, *, derived: Callable[[Summary], dict[str, Any]] | None
) -> AsyncIterator[dict[str, Any]]:
    """Records of each session, oldest message first; with `derived` also what was made from it, after what is held of
    the person beside all sessions: linked handles, profile, facts with their past values.

    What does not open is marked in its place: a message {"seq", "damaged"}, a session {"session": None, "damaged"}
    before its messages, whatever else {"summary": None, "damaged"}.
    """
    owner = await find_owner(vault, user)
    if owner is None:
        return
    if derived is not None:
        async for record in _person(vault, owner):
            yield record
    rows = [row async for row in session_rows(vault, owner)]
    infos = [(info_of(owner, row), row) for row in rows]
    for info, row in sorted(infos, key=lambda item: (item[0].damaged, item[0].started)):
        async for record in _session(vault, owner, info, row, derived):
            yield record


async def _session(
    vault: Vault, owner: Owner, info: SessionInfo, row: SessionRow, derived: Callable[[Summary], dict[str, Any]] | None
) -> AsyncIterator[dict[str, Any]]:
    name = {"session": None if info.damaged else info.id}
    if info.damaged:
        yield {**name, "damaged": True}
    thread = Thread(owner, row.session, row.incarnation)
    async for record in _messages(vault, thread, 0 if info.damaged else row.head):
        yield {**name, **record}
    if derived is not None:
        async for record in _derived(vault, thread, derived):
            yield {**name, **record}


async def _person(vault: Vault, owner: Owner) -> AsyncIterator[dict[str, Any]]:
    """What is held of a person beside all sessions."""
    for linked in await vault.store.handles(owner.id):
        yield _link(owner, linked)
    view = await vault.store.view(Look(owner=owner.id, person_folds=(PROFILE,)))
    try:
        if profile := read_profile(owner, view.person_folds.get(PROFILE)).text:
            yield {"profile": profile}
    except Damaged:
        yield {"profile": None, "damaged": True}
    async for record in _facts(vault, owner):
        yield record


async def _facts(vault: Vault, owner: Owner) -> AsyncIterator[dict[str, Any]]:
    whole = True
    try:
        known = await facts.load(vault, owner)
    except Damaged:
        whole = False
    try:
        known = await facts.load(vault, owner, whole=False)
    except Damaged:  # not even the fold's own row opens
        yield {"fact": None, "damaged": True}
        return
    for fact in editing.listed(known, None, past=True):
        yield {"fact": _plain(asdict(fact))}
    for _ in known.broken if known.broken else () if whole else (None,):
        yield {"fact": None, "damaged": True}


def _plain(value: Any) -> Any:
    """Times as text; what is empty is left out."""
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items() if item not in (None, "", (), [])}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


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
        yield {"summary": derived(await summary_of(vault, thread))}
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
