"""Lays out a conversation of any length quickly: through the store's own change, a few hundred rows at a time."""

from __future__ import annotations

from dataclasses import replace

from nitka import Nitka, SessionInfo, User
from nitka.conversation import SUMMARY, open_thread, read_summary, seal_summary
from nitka.store.port import Change, Locked, Scope
from nitka.types import Line, Message, Role, Tag
from nitka.vault import codec
from nitka.vault.codec import Stored
from nitka.world import system_clock

TEXT = ("Anna asked about the cake for Saturday, and Boris said that he would bring twelve candles at noon. " * 4)[:300]
WINDOW = 12
BATCH = 1_000


async def lay(nitka: Nitka, user: str, session: str, messages: int) -> None:
    """A session of that many messages, folded up to the window, with a summary near its cap."""
    vault, now = nitka._vault, system_clock()
    info = SessionInfo(id=session, channel="", messages=0, started=now, last=None)
    opened = await open_thread(vault, User(user), info, key=b"lay", before=None, limit=1)
    thread = opened.thread
    scope = Scope(
        owner=thread.owner.id,
        incarnation=thread.owner.incarnation,
        session=thread.tag,
        session_incarnation=thread.incarnation,
        folds=(SUMMARY,),
    )
    size = vault.count(TEXT)
    lines = tuple(
        Line(full=f"Boris brings twelve candles on day {at}", gist=f"Boris: 12 candles, day {at}", first=at, last=at)
        for at in range(24)
    )

    def step(locked: Locked, count: int) -> Change:
        rows = []
        for at in range(count):
            role: Role = "user" if at % 2 == 0 else "assistant"
            message = Message(seq=locked.head + at, n=locked.n + at, role=role, text=TEXT, at=now)
            stored = Stored(message, Tag(bytes(16)), vault.counter, size)
            rows.append(codec.seal_message(thread.owner, thread.incarnation, stored))
        head = locked.head + count
        assert locked.session is not None
        kept = codec.open_session(thread.owner, locked.session)
        summary = read_summary(thread, locked.folds.get(SUMMARY))
        summary = replace(
            summary, lines=lines, cursor=max(0, head - WINDOW), version=summary.version + 1, counter=vault.counter
        )
        body = codec.seal_session(thread.owner, thread.incarnation, head, replace(kept, messages=head, last=now))
        return Change(append=tuple(rows), session_body=body, folds=(seal_summary(thread, summary),))

    for start in range(0, max(1, messages), BATCH):
        count = min(BATCH, messages - start)
        await vault.store.change(scope, lambda locked, count=count: step(locked, count))  # type: ignore[misc]
