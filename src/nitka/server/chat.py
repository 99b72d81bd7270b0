"""`/v1/chat/completions` and `/v1/models`: any OpenAI client, with a memory behind it."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from typing import Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from nitka.errors import NitkaError
from nitka.server import answers, asked
from nitka.server.access import Caller, Turns, header_text, routes, user_of
from nitka.server.asked import ChatBody
from nitka.server.dealing import Deal, Manner, private_of
from nitka.server.errors import Refusal, refusal_of
from nitka.server.errors import body_of as error_body
from nitka.server.retries import name_of
from nitka.server.service import Service, Shared
from nitka.server.stream import DONE, EventStream, event
from nitka.server.upstream import Chunk, encoded, room_of
from nitka.types import User

SESSION = "x-nitka-session"
REPLACE = "x-nitka-replace"
PRIVATE = "x-nitka-private"
MEMORY = "x-nitka-memory"
RECEIPT = "x-nitka-receipt"
REPLAYED = "x-nitka-replayed"
KEY = "idempotency-key"
COUNT = "x-stainless-retry-count"

router = routes()


@router.post("/v1/chat/completions", tags=["OpenAI"], response_model=None)
async def chat_completions(body: ChatBody, request: Request, caller: Turns, shared: Shared) -> Response:
    """OpenAI's chat completions, with the conversation kept here."""
    if body.n is not None and body.n != 1:
        raise Refusal("n: one answer is one turn; only n=1 can be kept.", code="unsupported_value", param="n")
    session = session_of(request, (body.metadata or {}).get("session_id"))
    if shared.options.anonymous and (session is None or not _names_user(request, body)):
        return await _passed(body, shared)
    user = await user_of(request, caller, body.user)
    if session is None:
        raise _no_session()
    turn = asked.read(body.messages)
    deal = Deal(
        shared=shared,
        user=user,
        session=session,
        asked=turn,
        manner=manner_of(request, shared, caller, user, session, turn.text),
        forward=lambda messages: asked.forwarded(body, messages, model=shared.upstream.model),
        model=body.model or shared.upstream.model,
        room=room_of({"max_tokens": body.max_tokens, "max_completion_tokens": body.max_completion_tokens}),
        tools=tuple(body.tools or ()),
    )
    wants_receipt = body.nitka is not None and body.nitka.receipt
    return await (_streamed(deal, wants_receipt) if body.stream else _whole(deal, wants_receipt))


@router.get("/v1/models", tags=["OpenAI"])
async def models(caller: Turns, shared: Shared) -> dict[str, Any]:
    """The upstream's models."""
    return {"object": "list", "data": await shared.upstream.models()}


async def _whole(deal: Deal, wants_receipt: bool) -> Response:
    value = await deal.whole()
    if wants_receipt and deal.receipt is not None:
        value = {**value, "nitka": answers.full(deal.receipt, deal.asked.ignored)}
    return Json(value, headers=headers_of(deal))


async def _streamed(deal: Deal, wants_receipt: bool) -> Response:
    flow = deal.flow()
    first = await anext(flow, None)
    receipt = answers.full(deal.receipt, deal.asked.ignored) if wants_receipt and deal.receipt else None
    return EventStream(_events(first, flow, receipt), source=flow, headers=headers_of(deal))


async def _events(
    first: Chunk | None, flow: AsyncGenerator[Chunk, None], receipt: dict[str, Any] | None
) -> AsyncGenerator[bytes, None]:
    """A stream as the client gets it; the receipt goes with the last chunk of the answer."""
    try:
        if first is not None:
            yield _told(first, receipt)
        async for chunk in flow:
            yield _told(chunk, receipt)
        yield DONE
    except NitkaError as error:
        told = refusal_of(error)
        yield event(error_body(str(told), kind=told.kind, code=told.code, param=told.param))


def _told(chunk: Chunk, receipt: dict[str, Any] | None) -> bytes:
    choices = chunk.value.get("choices") if receipt is not None else None
    is_last = isinstance(choices, list) and any(isinstance(c, dict) and c.get("finish_reason") for c in choices)
    return event({**chunk.value, "nitka": receipt}) if is_last else chunk.raw


async def _passed(body: ChatBody, shared: Service) -> Response:
    """The request as it is, to the upstream: nothing is read and nothing written."""
    value = asked.forwarded(body, body.messages, model=shared.upstream.model)
    headers = {MEMORY: "none"}
    if not body.stream:
        return Json(await shared.upstream.complete(value), headers=headers)
    flow = shared.upstream.stream(value)
    first = await anext(flow, None)
    return EventStream(_events(first, flow, None), source=flow, headers=headers)


class Json(JSONResponse):
    """JSON as it came; a lone surrogate inside becomes U+FFFD."""

    def render(self, content: Any) -> bytes:
        return encoded(content)


def headers_of(deal: Deal) -> dict[str, str]:
    """What a client is told of a turn beside the answer."""
    headers = {MEMORY: "private" if deal.manner.private else "kept"}
    if deal.receipt is not None:
        headers[RECEIPT] = answers.short(deal.receipt, deal.asked.ignored)
    if deal.replayed:
        headers[REPLAYED] = "true"
    return headers


def session_of(request: Request, named: object = None) -> str | None:
    """The session that the header or the body names."""
    header = header_text(request, SESSION)
    if named is not None and not isinstance(named, str):
        raise Refusal("metadata.session_id: not a string.", code="invalid_value", param="metadata.session_id")
    if header is not None and named is not None and header != named:
        raise Refusal("X-Nitka-Session and the body name different sessions.", code="two_sessions", param="metadata")
    return header if header is not None else named


def manner_of(request: Request, shared: Service, caller: Caller, user: User, session: str, text: str) -> Manner:
    """How the headers want the turn to be held, and its key. Raises `Refusal`, `BadInput`."""
    replace = request.headers.get(REPLACE)
    if replace not in (None, "last"):
        raise Refusal("X-Nitka-Replace is last.", code="bad_header", param=REPLACE)
    private = private_of(request.headers.get(PRIVATE))
    given = header_text(request, KEY)
    key, is_again = f"idempotency:{given}" if given is not None else None, False
    if key is None:
        name = name_of(caller.key_id, user, session, text)
        again = re.fullmatch("0*[1-9][0-9]*", request.headers.get(COUNT, "")) is not None
        key = shared.retries.again(name) if again else None
        is_again = again and key is None
        key = key or shared.retries.first(name)
    return Manner(key=key, is_again=is_again, replace_last=replace == "last", private=private)


def _names_user(request: Request, body: ChatBody) -> bool:
    return body.user is not None or request.headers.get("x-nitka-user") is not None


def _no_session() -> Refusal:
    return Refusal(
        "The session is missing: send X-Nitka-Session, or metadata.session_id.",
        code="missing_session",
        param="metadata",
    )
