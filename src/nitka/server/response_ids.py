"""What ids of the Responses API say, sealed and bound to their user: whoever else sends one gets nothing for it.

* The id of a response says where its turn lies: the session and the key of the turn, by which its two rows are found;
  and what no row holds, the model's name and the id of the message.
* The id of a call of a function holds the open turn: its messages so far, the calls among them, sealed with the user's
  own key and bound to user and session as they live now. The loop goes on from it for an hour, and nothing of it is
  kept here. What was forgotten meanwhile does not open any more. (The response's own id cannot hold it: a stream tells
  it before the calls are known.)
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from nitka import conversation
from nitka.conversation import Thread, Vault
from nitka.errors import Damaged
from nitka.holding import LIFE
from nitka.server.access import unpacked
from nitka.turns import Private
from nitka.types import ChatMessage, Sealed, User
from nitka.vault import codec
from nitka.vault.seal import Kind, Place, SealKey

RESPONSE, CALL = "resp_", "call_"
MAX_MODEL = 200  # characters of a model's name that are worth keeping


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """Where a turn lies; of a call, with the open turn in `held`, which may be continued until then, in microseconds
    since 1970.
    """

    session: str
    key: str
    model: str = ""
    item: str = ""  # the id of the response's message; of a call, what the upstream calls it
    until: int = 0
    private: Private = False
    held: bytes = b""


class Loop(NamedTuple):
    """An open turn: its messages, the calls of the last answer among them, and the row from which it replaces."""

    messages: Sequence[ChatMessage]
    replaces: int | None = None


def seal_link(key: SealKey, user: User, link: Link) -> str:
    """The id of a response; of a call, where a turn is held."""
    head = [link.session, link.key, link.model[:MAX_MODEL], link.item, link.until, link.private]
    body = json.dumps(head, ensure_ascii=False).encode("utf-8", "replace") + b"\n" + link.held
    prefix = CALL if link.held else RESPONSE
    return prefix + base64.urlsafe_b64encode(key.seal(body, _place_of(user, prefix))).rstrip(b"=").decode()


def open_link(key: SealKey, user: User, id: str, prefix: str = RESPONSE) -> Link | None:
    """What an id of this user's says; None for any other."""
    if not id.startswith(prefix):
        return None
    try:
        head, _, held = key.open(unpacked(id.removeprefix(prefix)), _place_of(user, prefix)).partition(b"\n")
        names = ("session", "key", "model", "item", "until", "private")
        return Link(**dict(zip(names, json.loads(head), strict=False)), held=held)
    except (Damaged, ValueError):
        return None


def hold(link: Link, loop: Loop, thread: Thread | None, now: datetime) -> Link:
    """The link with an open turn in it. A private turn has no `thread`: nothing of it is anywhere, to be forgotten."""
    until = codec.micros(now + LIFE)
    body = zlib.compress(json.dumps(loop, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    held = thread.owner.key.seal.seal(body, _life(thread, until)) if thread else body
    return replace(link, until=until, held=held)


async def resume(vault: Vault, user: User, link: Link, now: datetime) -> tuple[Loop, bytes] | None:
    """The open turn of a link, and the incarnation of its session (b"" of a private turn); None for one that is too
    old, or forgotten.
    """
    if codec.micros(now) > link.until:
        return None
    if link.private:
        return _loop(link.held), b""
    owner = await conversation.find_owner(vault, user)
    found = await conversation.find_thread(vault, owner, link.session) if owner else None
    if found is None:
        return None
    thread, _ = found
    try:
        held = thread.owner.key.seal.open(Sealed(link.held), _life(thread, link.until))
    except Damaged:
        return None
    return _loop(held), thread.incarnation


def _loop(body: bytes) -> Loop:
    value: list[Any] = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
    return Loop(*value)


def _life(thread: Thread, until: int) -> Place:
    """Binds an open turn to the user and the session as they live now."""
    return Place(Kind.TURN_TOKEN, thread.owner.incarnation, thread.incarnation, until)


def _place_of(user: User, prefix: str) -> Place:
    """Binds an id to its kind and its user: one that another user sends does not open."""
    names = [name.encode("utf-8", "surrogatepass") for name in (user.tenant, user.id)]
    hashed = hashlib.sha256(b"".join(len(name).to_bytes(8) + name for name in names)).digest()
    return Place(Kind.TURN_TOKEN, hashed[:16], hashed[16:], 1 if prefix == RESPONSE else 2)
