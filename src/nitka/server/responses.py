"""`/v1/responses`: the conversations that OpenAI's Responses API keeps on its side, kept on this one.

`conversation` names the session. Without it a session of its own is begun, and the id of a response, given back as
`previous_response_id`, continues it: session and turn are sealed in the id, bound to the user. A conversation is one
line: an answer that is not its last can be continued only by replacing what came after it (`X-Nitka-Replace`).
`store: false` keeps nothing.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from nitka import conversation
from nitka.errors import Damaged, NitkaError
from nitka.models.think import ThinkFilter, strip_think
from nitka.server import asked
from nitka.server.access import Turns, routes, unpacked, user_of
from nitka.server.answers import Heard
from nitka.server.chat import Json, headers_of, manner_of, session_of
from nitka.server.dealing import Deal
from nitka.server.errors import Refusal, refusal_of
from nitka.server.items import Events, Frame, ResponseBody, messages_of, options_of
from nitka.server.service import Service, Shared
from nitka.server.stream import EventStream
from nitka.server.upstream import Chunk
from nitka.store.port import Look
from nitka.types import ChatMessage, User
from nitka.vault import codec
from nitka.vault.seal import Kind, Place, SealKey
from nitka.world import random_bytes

PREFIX = "resp_"

router = routes()


class ConversationBody(BaseModel):
    """A conversation to begin. Items come with responses, never one by one."""

    items: list[Any] | None = Field(default=None, max_length=0)
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What a response's id says: the session, and the key of the turn."""

    session: str
    key: str


@router.post("/v1/conversations", tags=["OpenAI"])
async def conversations(body: ConversationBody, caller: Turns, shared: Shared) -> dict[str, Any]:
    """A name for a conversation. Nothing is kept before its first turn."""
    made = int(shared.clock().timestamp())
    return {"id": _new_session(), "object": "conversation", "created_at": made, "metadata": body.metadata or {}}


@router.post("/v1/responses", tags=["OpenAI"], response_model=None)
async def responses(body: ResponseBody, request: Request, caller: Turns, shared: Shared) -> Response:
    """OpenAI's responses, text turns, with the conversation kept here."""
    user = await user_of(request, caller, body.user)
    options = options_of(body, shared.upstream.limit)
    turn = asked.read(messages_of(body))
    key = await shared.vault.keychain.system_key()
    session, named = await _session(shared, request, user, body, key)
    manner = manner_of(request, shared, caller, user, session, turn.text)
    if body.store is False:
        manner = replace(manner, private="reads" if named else True)
    deal = Deal(
        shared=shared,
        user=user,
        session=session,
        asked=turn,
        manner=manner,
        forward=lambda messages: _forwarded(body, options, messages, shared),
        model=body.model or shared.upstream.model,
        room=body.max_output_tokens or 0,
    )
    frame = Frame(
        id=seal_link(key, user, Link(session=session, key=manner.key or "")),
        item=f"msg_{random_bytes(16).hex()}",
        at=int(shared.clock().timestamp()),
        model=deal.model,
        conversation=_conversation(body),
        previous=body.previous_response_id,
        body=body,
    )
    return await (_streamed(deal, frame) if body.stream else _whole(deal, frame))


def _forwarded(
    body: ResponseBody, options: dict[str, Any], messages: list[ChatMessage], shared: Service
) -> dict[str, Any]:
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if body.stream else {}
    return {"model": body.model or shared.upstream.model, **options, **streamed, "messages": messages}


async def _whole(deal: Deal, frame: Frame) -> Response:
    value = await deal.whole()
    heard = Heard()
    heard.whole(value)
    text = strip_think(heard.text)
    body = frame.response(text, status="completed", finish=heard.finish, usage=value.get("usage"))
    return Json(body, headers=headers_of(deal))


async def _streamed(deal: Deal, frame: Frame) -> Response:
    flow = deal.flow()
    first = await anext(flow, None)
    return EventStream(_events(first, flow, Saying(Events(frame))), source=flow, headers=headers_of(deal))


class Saying:
    """The words of a stream as they come, without reasoning, as events."""

    def __init__(self, events: Events) -> None:
        self.events = events
        self._heard, self._reading = Heard(), ThinkFilter()
        self._said: list[str] = []
        self._usage: object = None

    def take(self, chunk: Chunk) -> bytes:
        """A chunk of the chat API; what it adds, if anything."""
        self._usage = chunk.value.get("usage") or self._usage
        return self._speak(self._reading.feed(self._heard.chunk(chunk.value)))

    def end(self) -> bytes:
        """What was held back, and the end."""
        rest = self._speak(self._reading.finish())
        return rest + self.events.end("".join(self._said), finish=self._heard.finish, usage=self._usage)

    def _speak(self, piece: str) -> bytes:
        piece = piece if self._said else piece.lstrip()
        if not piece:
            return b""
        self._said.append(piece)
        return self.events.delta(piece)


async def _events(
    first: Chunk | None, flow: AsyncGenerator[Chunk, None], saying: Saying
) -> AsyncGenerator[bytes, None]:
    yield saying.events.begin()
    try:
        if first is not None:
            yield saying.take(first)
        async for chunk in flow:
            yield saying.take(chunk)
        yield saying.end()
    except NitkaError as error:
        yield saying.events.failed(refusal_of(error))


async def _session(shared: Service, request: Request, user: User, body: ResponseBody, key: SealKey) -> tuple[str, bool]:
    """The session, and whether the client named it. Raises `Refusal`."""
    named = session_of(request, _conversation(body))
    if body.previous_response_id is None:
        return (named, True) if named is not None else (_new_session(), False)
    if named is not None:
        raise Refusal(
            "previous_response_id and a conversation cannot be named together.",
            code="two_sessions",
            param="previous_response_id",
        )
    link = open_link(key, user, body.previous_response_id)
    place = await _place(shared, user, link) if link else None
    if link is None or place is None:
        raise Refusal(
            "There is no such response.", status=404, code="previous_response_not_found", param="previous_response_id"
        )
    seq, head = place
    if seq + 2 != head and request.headers.get("x-nitka-replace") is None:
        raise Refusal(
            "This response is not the last of its conversation.", code="response_not_last", param="previous_response_id"
        )
    return link.session, True


async def _place(shared: Service, user: User, link: Link) -> tuple[int, int] | None:
    """The first row of the turn and the head of its session; None where there is no such turn, or no more."""
    owner = await conversation.find_owner(shared.vault, user)
    found = await conversation.find_thread(shared.vault, owner, link.session) if owner else None
    if owner is None or found is None:
        return None
    tag = codec.key_tag(owner, found[0].tag, b"key:" + link.key.encode())
    view = await shared.vault.store.view(Look(owner=owner.id, session=found[0].tag, turn_key=tag))
    if view.known is None or view.session is None or any(row.body is None for row in view.pair):
        return None
    return view.known, view.session.head


def _conversation(body: ResponseBody) -> str | None:
    given = body.conversation.get("id") if isinstance(body.conversation, dict) else body.conversation
    if given is not None and not isinstance(given, str):
        raise Refusal("conversation.id: not a string.", code="invalid_value", param="conversation.id")
    return given


def _new_session() -> str:
    return f"conv_{random_bytes(16).hex()}"


def seal_link(key: SealKey, user: User, link: Link) -> str:
    """A response's id."""
    body = json.dumps([link.session, link.key], ensure_ascii=False).encode("utf-8", "replace")
    return PREFIX + base64.urlsafe_b64encode(key.seal(body, _place_of(user))).rstrip(b"=").decode()


def open_link(key: SealKey, user: User, id: str) -> Link | None:
    """What an id of this user's says; None for any other."""
    if not id.startswith(PREFIX):
        return None
    try:
        session, turn = json.loads(key.open(unpacked(id.removeprefix(PREFIX)), _place_of(user)))
    except (Damaged, ValueError):
        return None
    return Link(session=session, key=turn)


def _place_of(user: User) -> Place:
    """Binds an id to its user: one that another user sends does not open."""
    names = [name.encode("utf-8", "surrogatepass") for name in (user.tenant, user.id)]
    hashed = hashlib.sha256(b"".join(len(name).to_bytes(8) + name for name in names)).digest()
    return Place(Kind.TURN_TOKEN, hashed[:16], hashed[16:], 1)
