"""Alerts that must be delivered elsewhere: a sealed row of the outbox each, written with the turn that raised it.

A row says which rule, how severe, and the ages of what led to it; where it happened, by the tag of the session and the
row's number; and who the person is, as the caller names him. No text. It is sealed with his key and goes with him.
Whoever delivers it looks first whether the message still stands: of what was forgotten since, nothing is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from nitka.conversation import Thread, Vault
from nitka.errors import Damaged
from nitka.store.port import Look, OutboxRow
from nitka.types import Alert, Handle, Person, Sealed, Tag
from nitka.vault import codec
from nitka.vault.codec import EPOCH
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind, Place

TOLD = ("type", "tags", "evidence")
"""What is told of an alert beside its rule and severity."""


def named(person: Person) -> dict[str, str]:
    """A person as he is written in sealed values and told elsewhere."""
    if isinstance(person, Handle):
        return {"tenant": person.tenant, "channel": person.channel, "handle": person.id}
    return {"tenant": person.tenant, "user": person.id}


def millis(at: datetime) -> int:
    """Milliseconds since 1970-01-01 UTC."""
    return int((at - EPOCH).total_seconds() * 1000)


def parcels(thread: Thread, person: Mapping[str, str], alerts: Iterable[Alert], now: datetime) -> tuple[OutboxRow, ...]:
    """The rows of the outbox for some alerts. The same alert on the same message is the same row."""
    return tuple(_parcel(thread, person, alert, now) for alert in alerts)


def _parcel(thread: Thread, person: Mapping[str, str], alert: Alert, now: datetime) -> OutboxRow:
    owner, seq = thread.owner, int(alert.detail["seq"])
    id = owner.key.tags.tag(b"alert", thread.tag, thread.incarnation, seq.to_bytes(8), alert.rule.encode())
    content = {
        "session": thread.tag.hex(),
        "incarnation": thread.incarnation.hex(),
        "seq": seq,
        "raised": codec.micros(now),
        "person": dict(person),
        "rule": alert.rule,
        "severity": alert.severity,
        **{name: alert.detail[name] for name in TOLD if name in alert.detail},
    }
    made = millis(now)
    return OutboxRow(owner.id, id, made, owner.key.seal.seal(codec.pack(content), _place(owner, id, made)))


async def unpacked(vault: Vault, owner: Owner, row: OutboxRow) -> dict[str, Any] | None:
    """What is to be told, as JSON; None where the message was forgotten since. Raises `Damaged`, `StoreError`."""
    place = _place(owner, row.id, row.made)
    content = codec.unpack(owner.key.seal.open(Sealed(row.body), place), place)
    try:
        tag, seq, life = Tag(bytes.fromhex(content["session"])), int(content["seq"]), content["incarnation"]
        raised = codec.moment(content["raised"]).isoformat()
        told = {key: content[key] for key in ("rule", "severity", *TOLD) if key in content}
        head = {"id": row.id.hex(), "raised": raised, **content["person"]}
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise Damaged(f"({place})") from error
    view = await vault.store.view(Look(owner=owner.id, session=tag, first=seq, end=seq + 1, limit=1))
    if view.incarnation != owner.incarnation or view.session is None or view.session.incarnation.hex() != life:
        return None
    if not any(one.seq == seq and one.body is not None for one in view.rows):
        return None
    try:
        name: str | None = codec.open_session(owner, view.session).id
    except Damaged:
        name = None  # the alert is told all the same
    return {**head, "session": name, "seq": seq, **told}


def _place(owner: Owner, id: Tag, made: int) -> Place:
    return Place(Kind.OUTBOX, owner.incarnation, id, made)


def plain(alerts: Sequence[Alert]) -> list[dict[str, Any]]:
    """Alerts as JSON values."""
    return [{"rule": alert.rule, "severity": alert.severity, **alert.detail} for alert in alerts]
