"""Between values and sealed rows: messages, sessions, summaries.

A sealed value is compact JSON. Whoever reads one takes the fields he knows and leaves the rest, so that an older
nitka can read what a newer one wrote, as long as the version byte of the seal is the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from nitka.door import sound
from nitka.errors import Damaged
from nitka.store.port import NOBODY, FoldRow, Piece, Row, SessionRow
from nitka.types import Message, Sealed, SessionInfo, Tag
from nitka.vault.keychain import VALUE_BYTES, Owner, id_bytes
from nitka.vault.seal import Kind, Place

# Without the layers of `json.loads` and `json.dumps`: a turn opens some fifteen rows.
_decode = json.JSONDecoder().raw_decode
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

KEPT_BYTES = 8_192  # of a sealed row whose text stays in memory for the next turn
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)


class Stored(NamedTuple):
    """A message as it lies in its row: with its turn's key and its size by the counter that was in force."""

    message: Message
    turn_key: Tag
    counter: str = ""
    tokens: int = 0


def micros(at: datetime) -> int:
    """Microseconds since 1970-01-01 UTC of an aware datetime."""
    return (at - EPOCH) // MICROSECOND


def moment(at: int) -> datetime:
    """The inverse, exact for every datetime: a double would round the last of them into a year that cannot be."""
    return EPOCH + timedelta(microseconds=at)


def session_tag(owner: Owner, session: str) -> Tag:
    """The tag of one of the owner's sessions. Raises `BadId`."""
    return owner.key.tags.tag(b"session", id_bytes(session, "session id"))


def key_tag(owner: Owner, session: Tag, key: bytes) -> Tag:
    """The tag of a turn's key within its session."""
    return owner.key.tags.tag(b"turn", session, key)


def seal_message(owner: Owner, session_incarnation: bytes, stored: Stored) -> Row:
    message = stored.message
    content: dict[str, Any] = {
        "role": message.role,
        "text": message.text,
        "at": micros(message.at),
        "key": stored.turn_key.hex(),
        "size": [stored.counter, stored.tokens],
    }
    if message.zone:
        content["zone"] = message.zone
    if message.channel:
        content["channel"] = message.channel
    if message.interrupted:
        content["interrupted"] = True
    place = Place(Kind.MESSAGE, owner.incarnation, session_incarnation, message.seq, message.n)
    row = Row(message.seq, message.n, owner.key.seal.seal(pack(content), place))
    _keep(owner, session_incarnation, row, stored)
    return row


def open_message(owner: Owner, session_incarnation: bytes, row: Row) -> Stored | None:
    """None for a tombstone. Raises `Damaged`, naming the row's number."""
    if row.body is None:
        return None
    kept: Stored | None = owner.recent.get((session_incarnation, row.seq), row)
    if kept is not None:
        return kept
    place = Place(Kind.MESSAGE, owner.incarnation, session_incarnation, row.seq, row.n)
    content = unpack(owner.key.seal.open(row.body, place), place)
    counter, tokens = content.get("size", ("", 0))
    message = Message(
        seq=row.seq,
        n=row.n,
        role=content["role"],
        text=sound(content["text"]),  # what was written before a rule was made is read by that rule
        at=moment(content["at"]),
        zone=content.get("zone", ""),
        channel=content.get("channel", ""),
        interrupted=content.get("interrupted", False),
    )
    stored = Stored(message, Tag(bytes.fromhex(content["key"])), counter, tokens)
    _keep(owner, session_incarnation, row, stored)
    return stored


def missing_rows(rows: Sequence[Row], first: int, end: int) -> Iterator[int]:
    """The numbers of `[first, end)` that no row has: forgetting leaves rows without a body, and takes none away."""
    here = {row.seq for row in rows}
    return (seq for seq in range(first, end) if seq not in here)


def _keep(owner: Owner, session_incarnation: bytes, row: Row, stored: Stored) -> None:
    if row.body is not None and len(row.body) <= KEPT_BYTES:
        owner.recent.keep((session_incarnation, row.seq), row, stored, size=VALUE_BYTES + 2 * len(row.body))


def seal_session(owner: Owner, incarnation: bytes, head: int, info: SessionInfo) -> Sealed:
    """What the caller called it, and its counts, bound to the session's head."""
    content = {
        "id": info.id,
        "channel": info.channel,
        "messages": info.messages,
        "started": micros(info.started),
        "last": micros(info.last) if info.last else None,
        "oldest": micros(info.oldest) if info.oldest else None,
    }
    body = owner.key.seal.seal(pack(content), Place(Kind.SESSION, owner.incarnation, incarnation, head))
    owner.recent.keep((incarnation, Kind.SESSION), (session_tag(owner, info.id), head, body), info)
    return body


def open_session(owner: Owner, row: SessionRow) -> SessionInfo:
    """What the caller called it, and its counts. Raises `Damaged`, also for one that stands under another's tag."""
    where, row_itself = (row.incarnation, Kind.SESSION), (row.session, row.head, row.body)
    kept: SessionInfo | None = owner.recent.get(where, row_itself)
    if kept is not None:
        return kept
    place = Place(Kind.SESSION, owner.incarnation, row.incarnation, row.head)
    content = unpack(owner.key.seal.open(row.body, place), place)
    if session_tag(owner, content["id"]) != row.session:
        raise Damaged(f"({place})")
    info = SessionInfo(
        id=content["id"],
        channel=content["channel"],
        messages=content["messages"],
        started=moment(content["started"]),
        last=moment(content["last"]) if content["last"] is not None else None,
        oldest=moment(content["oldest"]) if content.get("oldest") is not None else None,
    )
    owner.recent.keep(where, row_itself, info)
    return info


def seal_fold(owner: Owner, session_incarnation: bytes, kind: Kind, fold: FoldRow, state: Mapping[str, Any]) -> FoldRow:
    """The row with its body sealed, bound to cursor and version."""
    place = Place(kind, owner.incarnation, session_incarnation, fold.cursor, fold.version)
    return FoldRow(fold.session, fold.kind, fold.cursor, fold.version, owner.key.seal.seal(pack(state), place))


def open_fold(owner: Owner, session_incarnation: bytes, kind: Kind, fold: FoldRow) -> dict[str, Any]:
    place = Place(kind, owner.incarnation, session_incarnation, fold.cursor, fold.version)
    return unpack(owner.key.seal.open(fold.body, place), place)


def seal_person_fold(owner: Owner, kind: Kind, fold: FoldRow, state: Mapping[str, Any]) -> FoldRow:
    """The row of a person's fold with its body sealed, bound to cursor and version."""
    return seal_fold(owner, NOBODY, kind, fold, state)


def open_person_fold(owner: Owner, kind: Kind, fold: FoldRow) -> dict[str, Any]:
    return open_fold(owner, NOBODY, kind, fold)


def seal_piece(owner: Owner, kind: Kind, piece: Piece, content: bytes) -> Piece:
    """The piece with its body sealed, bound to its id. That it is the newest of this id is for `piece_mark` to show."""
    return piece._replace(body=owner.key.seal.seal(content, Place(kind, owner.incarnation, piece.id)))


def open_piece(owner: Owner, kind: Kind, piece: Piece) -> bytes:
    """Raises `Damaged`."""
    return owner.key.seal.open(piece.body, Place(kind, owner.incarnation, piece.id))


def piece_mark(owner: Owner, piece: Piece) -> int:
    """A keyed hash of a sealed piece. A fold keeps the exclusive or of its pieces' marks beside its cursor: then none
    of them can be left out, brought back or put in unnoticed by whoever lacks the key.
    """
    return int.from_bytes(owner.key.tags.tag(b"piece", piece.kind.encode(), piece.id, piece.body))


def pack(content: Mapping[str, Any]) -> bytes:
    """Values as they are sealed: compact JSON."""
    return _encode(content).encode("utf-8")


def unpack(content: bytes, place: Place | str) -> dict[str, Any]:
    """Raises `Damaged`, naming the place."""
    try:
        data, _ = _decode(content.decode("utf-8"))
    except ValueError as error:
        raise Damaged(f"({place})") from error
    if not isinstance(data, dict):
        raise Damaged(f"({place})")
    return data
