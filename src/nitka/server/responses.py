"""`/v1/responses`: the conversations that OpenAI's Responses API keeps on its side, kept on this one.

`conversation` names the session. Without it a session of its own is begun, and the id of a response, given back as
`previous_response_id`, continues it (`nitka.server.response_ids` has what such an id holds). A conversation is one
line: an answer that is not its last can be continued only by replacing what came after it (`X-Nitka-Replace`).
`store: false` keeps nothing.

A loop of functions is one turn: while the answer asks for them nothing is written, and the two rows come with the last
answer. A response that is asked for again by its id is told from its two rows: what they do not hold is null.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, Field

from nitka import conversation
from nitka.errors import NitkaError
from nitka.models.think import ThinkFilter, strip_think
from nitka.server import asked, response_ids
from nitka.server.access import Turns, routes, user_of
from nitka.server.answers import Heard, message_of
from nitka.server.chat import Json, headers_of, manner_of, session_of
from nitka.server.dealing import Deal, Manner
from nitka.server.errors import Refusal, refusal_of
from nitka.server.items import ResponseBody, goes_on, items_of, messages_of, options_of, tools_of
from nitka.server.replies import Answer, Events, Frame
from nitka.server.response_ids import Link, Loop, open_link, seal_link
from nitka.server.service import Service, Shared
from nitka.server.stream import EventStream
from nitka.server.upstream import Chunk
from nitka.store.port import Look
from nitka.turns import Private
from nitka.types import ChatMessage, Message, User
from nitka.vault import codec
from nitka.vault.seal import SealKey
from nitka.world import random_bytes

FOUND = "/v1/responses/{response_id}"

router = routes()


class ConversationBody(BaseModel):
    """A conversation to begin. Items come with responses, never one by one."""

    items: list[Any] | None = Field(default=None, max_length=0)
    metadata: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where a response begins: the session, whether the client named it, and the row from which on it replaces; of a
    loop that goes on, what it has come to.
    """

    session: str
    named: bool = True
    replaces: int | None = None
    follows: bool = False  # a response named by its id
    loop: Loop | None = None
    link: Link | None = None
    life: bytes = b""


@dataclass(slots=True, kw_only=True)
class Talk:
    """One request for a response: the turn, the form of its answer, and what is sealed of it."""

    deal: Deal
    frame: Frame
    link: Link
    key: SealKey
    turn: list[ChatMessage]  # without the instructions

    def hold(self, answer: Answer) -> None:
        """Puts the open turn into the first call of an answer that asks for functions: from there the loop goes on.
        Clients that keep nothing here, or send everything again, need none.
        """
        if not answer.calls or self.frame.body.store is False or self.resends:
            return
        called = [call.as_traffic() for call in answer.calls]
        loop = Loop(
            [*self.turn, {"role": "assistant", "content": answer.text or None, "tool_calls": called}],
            self.deal.manner.replaces,
        )
        private = self.deal.manner.private
        link = replace(self.link, item=answer.calls[0].id, private=private)
        held = response_ids.hold(link, loop, None if private else self.deal.thread, self.deal.shared.clock())
        answer.calls[0].shown = seal_link(self.key, self.deal.user, held)

    @property
    def resends(self) -> bool:
        """Whether the client sends calls along with their outputs."""
        return any(item.get("type") == "function_call" for item in items_of(self.frame.body))


@router.post("/v1/conversations", tags=["OpenAI"])
async def conversations(body: ConversationBody, caller: Turns, shared: Shared) -> dict[str, Any]:
    """A name for a conversation. Nothing is kept before its first turn."""
    made = int(shared.clock().timestamp())
    return {"id": _new_session(), "object": "conversation", "created_at": made, "metadata": body.metadata or {}}


@router.post("/v1/responses", tags=["OpenAI"], response_model=None)
async def responses(body: ResponseBody, request: Request, caller: Turns, shared: Shared) -> Response:
    """OpenAI's responses: text turns and functions, with the conversation kept here."""
    user = await user_of(request, caller, body.user)
    options, tools = options_of(body, shared.upstream.limit), tuple(tools_of(body))
    key = await shared.vault.keychain.system_key()
    opened = _calls(key, user, body)
    start = await _resumed(shared, request, user, body, opened) or await _start(shared, request, user, body, key)
    held = start.loop.messages if start.loop else ()
    messages = messages_of(body, held, {id: link.item for id, link in opened.items()})
    turn = asked.read(messages)
    manner = _manner(manner_of(request, shared, caller, user, start.session, turn.text), start, body)
    deal = Deal(
        shared=shared,
        user=user,
        session=start.session,
        asked=turn,
        manner=manner,
        forward=lambda sent: _forwarded(body, options, sent, shared),
        model=body.model or shared.upstream.model,
        room=body.max_output_tokens or 0,
        tools=tools,
        life=start.life,
    )
    item = f"msg_{random_bytes(16).hex()}"
    link = Link(session=start.session, key=manner.key or "", model=deal.model, item=item)
    frame = Frame(
        id=seal_link(key, user, link),
        item=item,
        at=int(shared.clock().timestamp()),
        model=deal.model,
        conversation=_conversation(body),
        previous=body.previous_response_id,
        body=body,
    )
    talk = Talk(deal=deal, frame=frame, link=link, key=key, turn=messages[bool(body.instructions) :])
    return await (_streamed(talk) if body.stream else _whole(talk))


@router.get(FOUND, tags=["OpenAI"])
async def retrieve(
    response_id: str, request: Request, caller: Turns, shared: Shared, stream: bool = False
) -> dict[str, Any]:
    """A response that is kept, as its two rows tell it: text, times, model. What they do not hold is null."""
    if stream:
        raise Refusal("stream: a response that is kept comes whole.", code="unsupported_parameter", param="stream")
    link, question, answer = await _kept(shared, await user_of(request, caller), response_id)
    said = Answer(link.item)
    said.say(answer.text)
    frame = Frame(
        id=response_id,
        item=link.item,
        at=int(question.at.timestamp()),
        model=link.model,
        conversation=link.session,
        previous=None,
        body=ResponseBody(input=""),
    )
    return frame.response(said, status="incomplete" if answer.interrupted else "completed")


@router.get(f"{FOUND}/input_items", tags=["OpenAI"])
async def input_items(response_id: str, request: Request, caller: Turns, shared: Shared) -> dict[str, Any]:
    """What was asked, as it is kept: the user's words, in one message."""
    _, question, _ = await _kept(shared, await user_of(request, caller), response_id)
    id = f"msg_{question.seq}"
    content = [{"type": "input_text", "text": question.text}]
    item = {"type": "message", "id": id, "status": "completed", "role": "user", "content": content}
    return {"object": "list", "data": [item], "first_id": id, "last_id": id, "has_more": False}


@router.delete(FOUND, tags=["OpenAI"])
async def delete(response_id: str, request: Request, caller: Turns, shared: Shared) -> dict[str, Any]:
    """Forgets the turn of a response, with everything made from it; what was said before and after it stays."""
    user = await user_of(request, caller)
    link, question, _ = await _kept(shared, user, response_id)
    await shared.nitka.forget(user, session=link.session, turn=question.seq)
    return {"id": response_id, "object": "response", "deleted": True}


def _manner(manner: Manner, start: Start, body: ResponseBody) -> Manner:
    """How the turn is held. One that follows a response replaces what came after that, and nothing else; one that goes
    on is the turn it was, and as private.
    """
    if start.follows:
        manner = replace(manner, replace_last=False, replaces=start.replaces)
    if start.link is not None:
        manner = replace(manner, key=start.link.key, private=_stricter(manner.private, start.link.private))
    if body.store is False:
        manner = replace(manner, private=_stricter(manner.private, "reads" if start.named else True))
    return manner


def _stricter(one: Private, other: Private) -> Private:
    return True if True in (one, other) else one or other


def _forwarded(
    body: ResponseBody, options: dict[str, Any], messages: list[ChatMessage], shared: Service
) -> dict[str, Any]:
    streamed = {"stream": True, "stream_options": {"include_usage": True}} if body.stream else {}
    return {"model": body.model or shared.upstream.model, **options, **streamed, "messages": messages}


async def _whole(talk: Talk) -> Response:
    value = await talk.deal.whole()
    heard, answer = Heard(), Answer(talk.frame.item)
    heard.whole(value)
    if text := strip_think(heard.text):
        answer.say(text)
    answer.call(message_of(value).get("tool_calls"))
    talk.hold(answer)
    body = talk.frame.response(answer, status="completed", finish=heard.finish, usage=value.get("usage"))
    return Json(body, headers=headers_of(talk.deal))


async def _streamed(talk: Talk) -> Response:
    flow = talk.deal.flow()
    first = await anext(flow, None)
    return EventStream(_events(first, flow, Saying(talk)), source=flow, headers=headers_of(talk.deal))


class Saying:
    """What a stream says as it comes, without reasoning, as events."""

    def __init__(self, talk: Talk) -> None:
        self.events = Events(talk.frame)
        self._talk = talk
        self._heard, self._reading = Heard(), ThinkFilter()
        self._usage: object = None

    def take(self, chunk: Chunk) -> bytes:
        """A chunk of the chat API; what it adds, if anything."""
        self._usage = chunk.value.get("usage") or self._usage
        self.events.answer.call(message_of(chunk.value, "delta").get("tool_calls"))
        return self._speak(self._reading.feed(self._heard.chunk(chunk.value)))

    def end(self) -> bytes:
        """What was held back, and the end."""
        rest = self._speak(self._reading.finish())
        self._talk.hold(self.events.answer)
        return rest + self.events.end(finish=self._heard.finish, usage=self._usage)

    def _speak(self, piece: str) -> bytes:
        piece = piece if self.events.answer.text else piece.lstrip()
        return self.events.words(piece) if piece else b""


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


def _calls(key: SealKey, user: User, body: ResponseBody) -> dict[str, Link]:
    """The calls of the input whose ids hold an open turn of this user's."""
    ids = {str(item.get("call_id")) for item in items_of(body) if "call_id" in item}
    opened = {id: open_link(key, user, id, response_ids.CALL) for id in ids}
    return {id: link for id, link in opened.items() if link is not None}


async def _resumed(
    shared: Service, request: Request, user: User, body: ResponseBody, opened: dict[str, Link]
) -> Start | None:
    """The loop that goes on with the input's outputs; None where none does, or it is over. Raises `Refusal`."""
    link = next(iter(opened.values()), None)
    if link is None or goes_on(items_of(body)) is None:
        return None
    resumed = await response_ids.resume(shared.vault, user, link, shared.clock())
    if resumed is None:
        return None
    if session_of(request, _conversation(body)) not in (None, link.session):
        raise Refusal("The function was called in another session.", code="two_sessions", param="conversation")
    if body.previous_response_id is not None:
        before = open_link(await shared.vault.keychain.system_key(), user, body.previous_response_id)
        if before is None or (before.session, before.key) != (link.session, link.key):
            raise _unknown("previous_response_not_found", "previous_response_id")
    loop, life = resumed
    return Start(session=link.session, follows=True, replaces=loop.replaces, loop=loop, link=link, life=life)


async def _start(shared: Service, request: Request, user: User, body: ResponseBody, key: SealKey) -> Start:
    """Where a new turn begins. Raises `Refusal`."""
    named = session_of(request, _conversation(body))
    if body.previous_response_id is None:
        return Start(session=named) if named is not None else Start(session=_new_session(), named=False)
    if named is not None:
        raise Refusal(
            "previous_response_id and a conversation cannot be named together.",
            code="two_sessions",
            param="previous_response_id",
        )
    start = await _followed(shared, request, user, open_link(key, user, body.previous_response_id))
    if start is None:
        raise _unknown("previous_response_not_found", "previous_response_id")
    return start


async def _followed(shared: Service, request: Request, user: User, link: Link | None) -> Start | None:
    """A turn after one that is kept; None where that is not. Raises `Refusal` where it is not the last."""
    place = await _place(shared, user, link) if link else None
    if link is None or place is None:
        return None
    seq, head = place
    if seq + 2 == head or await _is_last(shared, user, link.session, seq):
        return Start(session=link.session, follows=True)
    if request.headers.get("x-nitka-replace") is None:
        raise Refusal(
            "This response is not the last of its conversation.", code="response_not_last", param="previous_response_id"
        )
    return Start(session=link.session, follows=True, replaces=seq + 2)


async def _is_last(shared: Service, user: User, session: str, seq: int) -> bool:
    """Whether nothing that came after the turn is kept any more."""
    newest = await shared.nitka.history(user, session, limit=1)
    return bool(newest) and newest[-1].seq == seq + 1


async def _kept(shared: Service, user: User, id: str) -> tuple[Link, Message, Message]:
    """What an id says, and the two rows of its turn. Raises `Refusal` (404)."""
    link = open_link(await shared.vault.keychain.system_key(), user, id)
    place = await _place(shared, user, link) if link else None
    rows = await shared.nitka.history(user, link.session, before=place[0] + 2, limit=2) if link and place else ()
    if link is None or len(rows) < 2 or place is None or rows[0].seq != place[0]:
        raise _unknown("response_not_found", "response_id")
    return link, rows[0], rows[1]


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


def _unknown(code: str, param: str) -> Refusal:
    return Refusal("There is no such response.", status=404, code=code, param=param)


def _new_session() -> str:
    return f"conv_{random_bytes(16).hex()}"
