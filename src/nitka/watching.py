"""The watch as one more fold of the chat: off until an operator switches it on for a tenant, for a stated purpose.

Its memory is sealed in the session and moves in the same transaction as the turn. If it fails, the turn is written
all the same, its cursor stays, and `settle` catches up. User and assistant are two speakers; the assistant's words
can be a target's or a context, never an offender's. An alert never changes, delays or hides an answer. Memory and
alerts are the person's data: exported with it, gone with it.

`nitka.watch` is imported where it is used: its patterns, lexicons and tables of languages take half a second to load,
and whoever has not switched it on does not wait for them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from nitka import alerting
from nitka.conversation import WATCH, Thread, Vault, open_rows
from nitka.errors import BadInput, Forgotten
from nitka.log import Watched
from nitka.store.port import Change, FoldRow, Locked, Look, OutboxRow, Step
from nitka.types import Alert, Message, Person, Sealed
from nitka.vault import codec
from nitka.vault.seal import Kind

if TYPE_CHECKING:
    from nitka.watch import Watch

log = logging.getLogger("nitka")

KEPT_ALERTS = 100
READ_AT_ONCE = 20_000  # characters of a turn, some tenths of a second; a longer one is read afterwards, by `catch_up`
SPEAKERS: Mapping[str, Mapping[str, str]] = {
    "user": {"id": "user"},
    "assistant": {"id": "assistant", "role": "assistant"},
}


class State(NamedTuple):
    """What the watch holds of one session: the memory for the next message, the newest alerts, and whose it is, for
    alerts that are raised later and delivered elsewhere.
    """

    memory: Mapping[str, Any] = {}
    alerts: tuple[Mapping[str, Any], ...] = ()
    person: Mapping[str, str] = {}


class Watching:
    """Which tenants are watched, and for what purpose; the rules are loaded once. `delivers` says that alerts go to the
    outbox too, `news` is called when one was written there.
    """

    def __init__(self, purposes: Mapping[str, str]) -> None:
        """`purposes` maps a tenant ("" where there are none) to the purpose the operator states. Raises `BadInput`."""
        if not all(isinstance(purpose, str) and purpose.strip() for purpose in purposes.values()):
            raise BadInput("The watch is switched on per tenant for a stated purpose: {tenant: purpose}.")
        self.purposes = dict(purposes)
        self.delivers = False
        self.news: Callable[[], None] = lambda: None
        self._rules: Watch | None = None

    def load(self) -> None:
        """Reads rules and lexicons, once in a process; takes some tenths of a second."""
        if self.purposes:
            from nitka.watch.data import default

            self._rules = default()

    def on(self, tenant: str) -> bool:
        return tenant in self.purposes

    def following(self, person: Person, now: datetime) -> Following | None:
        """What reads along in a turn of this person; None where his tenant is not watched."""
        return Following(self, person, now) if self.on(person.tenant) else None

    def read(self, before: State, messages: Sequence[Message]) -> tuple[State, tuple[Alert, ...]]:
        """The state after these messages, and the alerts they completed. Raises `WatchError`."""
        from nitka.watch import parse

        memory, raised = before.memory, list[Alert]()
        for message in messages:
            settings = {"speaker": SPEAKERS[message.role], "entities": False, "explain": True}
            parsed = parse(message.text, settings=settings, memory=memory, watch=self._rules)
            memory = parsed.memory
            for alert, words in zip(parsed.result.alerts, parsed.result.explanations, strict=False):
                evidence = [
                    {"flag": item.flag, "messages_ago": item.messages_ago, "speaker": item.speaker}
                    for item in alert.evidence
                ]
                detail = {"seq": message.seq, "type": alert.type, "tags": list(alert.tags), "evidence": evidence}
                raised.append(Alert(rule=alert.rule, severity=alert.severity, detail=detail | {"explanation": words}))
        kept = (*before.alerts, *alerting.plain(raised))[-KEPT_ALERTS:]
        return before._replace(memory=memory, alerts=kept), tuple(raised)

    def outbox(
        self, thread: Thread, person: Mapping[str, str], alerts: Sequence[Alert], now: datetime
    ) -> tuple[OutboxRow, ...]:
        """What has to be delivered of these alerts."""
        return alerting.parcels(thread, person, alerts, now) if self.delivers else ()

    def reads(self, row: FoldRow | None, first: int, messages: Sequence[Message]) -> bool:
        """Whether messages that begin at `first` can be read at once, as the next ones."""
        if self._rules is None or (row is not None and row.cursor != first):
            return False
        return sum(len(message.text) for message in messages) <= READ_AT_ONCE  # nobody else's write waits for a longer


class Following(NamedTuple):
    """The watch in one turn of one person."""

    watching: Watching
    person: Person
    now: datetime
    quiet: bool = False  # what was said elsewhere before is read, and nothing of it delivered again

    def advance(self, thread: Thread, row: FoldRow | None, first: int, messages: Sequence[Message]) -> Watched:
        """The fold's next row after `messages`, which begin at `first`. If it is behind, or failed, they are left for
        `catch_up`.
        """
        late = Watched()
        try:
            known = read_watched(thread, row)
            before = known._replace(person=alerting.named(self.person))
            if row is not None and before.person != known.person:
                late = Watched(next_row(thread, row, row.cursor, before))
            if not self.watching.reads(row, first, messages):
                return late
            state, alerts = self.watching.read(before, messages)
        except Exception as error:  # noqa: BLE001  # whatever ails the watch, the turn is written; settle tries again
            log.warning("the watch failed (%s); the turn is written without it", type(error).__name__)
            return late
        outbox = () if self.quiet else self.watching.outbox(thread, state.person, alerts, self.now)
        return Watched(next_row(thread, row, first + len(messages), state), True, alerts, outbox)


def read_watched(thread: Thread, row: FoldRow | None) -> State:
    """What the fold's row holds; an empty state where there is none."""
    if row is None:
        return State()
    state = codec.open_fold(thread.owner, thread.incarnation, Kind.WATCH, row)
    return State(state["memory"], tuple(state["alerts"]), state.get("person", {}))


def next_row(thread: Thread, row: FoldRow | None, cursor: int, state: State) -> FoldRow:
    """The fold's row with another state, one version on."""
    version = row.version + 1 if row else 1
    blank = FoldRow(thread.tag, WATCH, cursor, version, Sealed(b""))
    content = {"memory": state.memory, "alerts": list(state.alerts), "person": dict(state.person)}
    return codec.seal_fold(thread.owner, thread.incarnation, Kind.WATCH, blank, content)


async def watched(vault: Vault, thread: Thread) -> State:
    """What the watch holds of a session."""
    view = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, folds=(WATCH,)))
    return read_watched(thread, view.folds.get(WATCH))


async def set_memory(vault: Vault, thread: Thread, memory: Mapping[str, Any]) -> None:
    """Puts another memory in the place of the present one; what was said so far counts as read. Raises `BadInput`."""
    from nitka.watch import WatchError, parse

    try:
        parse("", memory=memory)
    except WatchError as error:
        raise BadInput(f"The watch's memory: {error}") from error

    def step(locked: Locked) -> Change:
        row = locked.folds.get(WATCH)
        state = read_watched(thread, row)._replace(memory=memory)
        return Change(folds=(next_row(thread, row, locked.head, state),), done=(WATCH,))

    await vault.store.change(thread.scope(WATCH), step)


def _late(before: FoldRow | None, after: FoldRow, outbox: tuple[OutboxRow, ...]) -> Step:
    """Writes the row that a late fold made; if somebody was faster, the work is free to be looked at anew."""

    def step(locked: Locked) -> Change | None:
        now = locked.folds.get(WATCH)
        if now != before:
            return Change(done=(WATCH,), due=(WATCH,) if locked.head > (now.cursor if now else 0) else ())
        due = (WATCH,) if locked.head > after.cursor else ()
        return Change(folds=(after,), done=(WATCH,), due=due, outbox=outbox)

    return step


async def catch_up(vault: Vault, watching: Watching, thread: Thread, *, rows: int, now: datetime) -> int:
    """Reads the next `rows` messages that the watch has not read; returns how many were. None where the watch was
    switched off since: then the work is not due any more.
    """
    if not watching.purposes:
        await vault.store.change(thread.scope(WATCH), lambda _: Change(done=(WATCH,)))
        return 0
    view = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, folds=(WATCH,)))
    if view.session is None:
        raise Forgotten("The session.")
    row = view.folds.get(WATCH)
    first = row.cursor if row else 0
    end = min(first + rows, view.session.head)
    page = await vault.store.view(Look(owner=thread.owner.id, session=thread.tag, first=first, end=end, limit=rows))
    messages = [item.message for item in open_rows(thread, page.rows)]
    state, alerts = await asyncio.to_thread(watching.read, read_watched(thread, row), messages)
    after, outbox = next_row(thread, row, end, state), watching.outbox(thread, state.person, alerts, now)
    _, change = await vault.store.change(thread.scope(WATCH), _late(row, after, outbox))
    if outbox:
        watching.news()
    return len(messages) if change is not None and change.folds else 0
