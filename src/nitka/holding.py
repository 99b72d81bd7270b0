"""An open turn as a token in its caller's hands, so that a loop of his own may run anywhere and nothing is kept here.

Two seals, one in the other. The inner one, by the user's key, holds the turn: it dies with the user. The outer one, by
a key of the system's for this hour and bound to the tenant, says whose it is, in which life, and until when: so a token
of a user who was forgotten is told from one that was never ours. What is held is who and where, the two incarnations,
the question, the turn's key and its manner. The request is not: whoever holds the token was given it. A private turn
leaves nothing behind, so its token says no more than that.

A turn that is resumed is written as any other, by `Turns.write`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, NamedTuple, NoReturn

from nitka.conversation import Opened, Thread, Vault, open_rows
from nitka.errors import BadInput, Damaged, Forgotten
from nitka.log import same_turn
from nitka.store.port import Look
from nitka.turn import Turn
from nitka.turns import Ask, Turns
from nitka.types import Budget, Handle, Person, Sealed, Summary, User
from nitka.vault import codec
from nitka.vault.keychain import Owner
from nitka.vault.seal import Kind, Place, SealKey

LIFE = timedelta(hours=1)
_HEAD = 16 + 16 + 8  # owner, incarnation, microseconds


class BadToken(BadInput):
    """The token stands for no open turn: it is older than an hour, another tenant's, or none of ours."""


class Held(NamedTuple):
    """An open turn and what it was asked for."""

    ask: Ask
    turn: Turn


async def hold(turns: Turns, ask: Ask, turn: Turn) -> bytes:
    """The open turn as a token, good for an hour. Raises `BadInput` for one that is stored already."""
    if turn.stored:
        raise BadInput("This turn is stored; there is nothing to hold.")
    head, inner = bytes(32), b""
    if turn.opened is not None and not ask.private:
        thread = turn.opened.thread
        head = thread.owner.id + thread.owner.incarnation
        inner = thread.owner.key.seal.seal(codec.pack(_content(ask, thread)), _place(thread.owner))
    now = turns.clock()
    until = codec.micros(now + LIFE).to_bytes(8)
    key = await turns.vault.keychain.passing_key(_period(now))
    return key.seal(head + until + inner, _tenants(ask.user.tenant))


async def resume(turns: Turns, tenant: str, token: bytes) -> Held:
    """The open turn of a token; one that was written meanwhile comes with its answer, `stored`.

    Raises `BadToken`, `Forgotten` for what was forgotten since, `Damaged`, `StoreError`.
    """
    now = turns.clock()
    keys = [await turns.vault.keychain.passing_key(_period(at)) for at in (now, now - LIFE)]
    head, inner = _unwrapped(keys, tenant, token)
    if codec.micros(now) > int.from_bytes(head[32:]):
        raise BadToken
    if not inner:
        return _private(tenant, now)
    owner = await _owner(turns.vault, head[:16], head[16:32])
    try:
        content = codec.unpack(owner.key.seal.open(Sealed(inner), _place(owner)), "turn_token")
    except Damaged as error:
        raise BadToken from error
    return await _stands(turns, _thread(owner, content), _ask(content, tenant))


async def _owner(vault: Vault, owner_id: bytes, incarnation: bytes) -> Owner:
    owner = await vault.keychain.find(owner_id)
    if owner is not None and owner.incarnation != incarnation:
        vault.keychain.drop(owner_id)  # it may be from before a forget; look again
        owner = await vault.keychain.find(owner_id)
    if owner is None or owner.incarnation != incarnation:
        raise Forgotten("The user.")
    return owner


async def _stands(turns: Turns, thread: Thread, ask: Ask) -> Held:
    """The turn, if user and session still are those it was opened with."""
    vault, owner = turns.vault, thread.owner
    tag = codec.key_tag(owner, thread.tag, ask.key)
    view = await vault.store.view(Look(owner=owner.id, session=thread.tag, turn_key=tag))
    if view.incarnation != owner.incarnation:
        vault.keychain.drop(owner.id)
        raise Forgotten("The user.")
    if view.session is None or view.session.incarnation != thread.incarnation:
        raise Forgotten("The session.")
    opened = Opened(thread=thread, head=view.session.head, top=view.session.head, summary=Summary())
    if view.known is None:
        return Held(ask, Turn(None, opened=opened, refit=_no_request))
    _, answer = same_turn(open_rows(thread, view.pair) if view.pair else (), tag, turns.redacted(ask.text))
    turn = Turn(None, opened=opened, stored=answer.message.text, refit=_no_request)
    turn.seq, turn.interrupted = answer.message.seq - 1, answer.message.interrupted
    return Held(ask, turn)


def _content(ask: Ask, thread: Thread) -> dict[str, Any]:
    user = ask.user
    return {
        "user": [user.id] if isinstance(user, User) else [user.id, user.channel],
        "session": ask.session,
        "incarnation": thread.incarnation.hex(),
        "text": ask.text,
        "key": ask.key.hex(),
        "at": codec.micros(ask.at),
        "zone": ask.zone,
        "channel": ask.channel,
        "replaces": ask.replaces,
    }


def _thread(owner: Owner, content: dict[str, Any]) -> Thread:
    return Thread(owner, codec.session_tag(owner, content["session"]), bytes.fromhex(content["incarnation"]))


def _ask(content: dict[str, Any], tenant: str) -> Ask:
    return Ask(
        user=_person(content["user"], tenant),
        session=content["session"],
        text=content["text"],
        key=bytes.fromhex(content["key"]),
        at=codec.moment(content["at"]),
        zone=content["zone"],
        channel=content["channel"],
        replaces=content["replaces"],
        budget=Budget(total=0),
    )


def _person(names: list[str], tenant: str) -> Person:
    return User(names[0], tenant) if len(names) == 1 else Handle(names[1], names[0], tenant)


def _private(tenant: str, now: datetime) -> Held:
    """A turn of which nothing is kept, not even in its token."""
    ask = Ask(user=User("-", tenant), session="-", text="-", key=b"", at=now, budget=Budget(total=0), private=True)
    return Held(ask, Turn(None, opened=None, refit=_no_request, private=True))


def _period(at: datetime) -> int:
    return codec.micros(at) // (LIFE // codec.MICROSECOND)


def _unwrapped(keys: Iterable[SealKey], tenant: str, token: bytes) -> tuple[bytes, bytes]:
    """Whose it is and until when, and the inner seal. Raises `BadToken`."""
    for key in keys:
        try:
            content = key.open(Sealed(token), _tenants(tenant))
            return content[:_HEAD], content[_HEAD:]
        except Damaged:
            continue
    raise BadToken


def _tenants(tenant: str) -> Place:
    """Where the outer seal opens: for this tenant alone."""
    return Place(Kind.TURN_TOKEN, hashlib.sha256(tenant.encode("utf-8", "surrogatepass")).digest()[:16])


def _place(owner: Owner) -> Place:
    return Place(Kind.TURN_TOKEN, owner.incarnation)


def _no_request(_: object) -> NoReturn:
    raise BadInput("The request of a turn that is resumed is with whoever opened it.")
