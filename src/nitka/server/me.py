"""`/v1/me`, what is kept of a person: sessions, a conversation, its summary and what the watch noticed in it, facts,
profile, recall, links, export.

The person is named by `X-Nitka-User` and the session by `X-Nitka-Session`, or in the body, and never in a path or a
query: those end in logs. Lists come newest first, a page at a time; `next` is what the next page is asked with. A
widget's key reads what is its visitor's own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any, Literal

from fastapi import Depends, Query, Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from nitka.server.access import Caller, Read, require, routes
from nitka.server.errors import Refusal
from nitka.server.people import named, person_of
from nitka.server.service import Shared
from nitka.server.told import Json, dumped, page
from nitka.types import SessionInfo

SESSION = "x-nitka-session"

Reader = Annotated[Caller, Depends(require("read", "widget"))]
Exporter = Annotated[Caller, Depends(require("admin", "widget"))]
Limit = Annotated[int, Query(ge=1, le=500, description="Items of a page.")]
Cursor = Annotated[str | None, Query(max_length=64, description="`next` of the page before.")]

router = routes()


class Page(BaseModel):
    """Some items, newest first; `next` asks for those after them, and is null at the end."""

    data: list[dict[str, Any]]
    next: str | int | None


class RecallBody(BaseModel):
    """A request of `/v1/me/recall`."""

    model_config = ConfigDict(extra="forbid")

    query: str = Field(max_length=100_000)
    user: str | None = None
    session: str | None = Field(default=None, description="Only in this conversation; else in all of them.")
    k: int = Field(default=10, ge=1, le=100)
    budget: int | None = Field(default=None, ge=1, le=10_000_000, description="Characters of all passages together.")


@router.get("/v1/me/sessions", tags=["Me"], response_model=Page)
async def sessions(
    request: Request, caller: Reader, shared: Shared, limit: Limit = 50, cursor: Cursor = None
) -> Response:
    """The conversations, the latest first."""
    person = await person_of(request, caller)
    found = page(await shared.nitka.sessions(person), _last, cursor=cursor, limit=limit)
    return Json({**found, "data": [_session(info) for info in found["data"]]})


@router.get("/v1/me/conversation", tags=["Me"], response_model=Page)
async def conversation(
    request: Request,
    caller: Reader,
    shared: Shared,
    limit: Limit = 50,
    before: Annotated[int | None, Query(ge=0, le=1 << 53, description="Messages before this row.")] = None,
) -> Response:
    """The messages of one conversation, the newest first."""
    person, session = await person_of(request, caller), _one_session(request)
    messages = await shared.nitka.history(person, session, before=before, limit=limit)
    whole = len(messages) == limit and messages[0].seq > 0
    return Json({"data": [asdict(one) for one in reversed(messages)], "next": messages[0].seq if whole else None})


@router.get("/v1/me/summary", tags=["Me"])
async def summary(request: Request, caller: Read, shared: Shared) -> Response:
    """The rolling summary of one conversation: it covers the rows before `cursor`."""
    person = await person_of(request, caller)
    found = await shared.nitka.summary(person, _one_session(request))
    lines = [{"text": line.text, **asdict(line)} for line in found.lines]
    return Json({"text": found.text, "lines": lines, "cursor": found.cursor, "tokens": found.tokens})


@router.get("/v1/me/watch", tags=["Me"])
async def watch(request: Request, caller: Read, shared: Shared) -> Response:
    """What the watch remembers of one conversation, as `/parse` takes it, and whether and for what purpose it is on.
    Where it is off now, `memory` is what is left of a time when it was on.
    """
    person = await person_of(request, caller)
    memory = await shared.nitka.watch_memory(person, _one_session(request))
    purpose = shared.nitka._turns.watching.purposes.get(person.tenant)
    return Json({"on": purpose is not None, "purpose": purpose, "memory": memory})


@router.get("/v1/me/facts", tags=["Me"], response_model=Page)
async def facts(
    request: Request,
    caller: Reader,
    shared: Shared,
    limit: Limit = 50,
    cursor: Cursor = None,
    include_past: Annotated[bool, Query(description="Also values that were superseded or taken back.")] = False,
) -> Response:
    """What is known of the person, and of others he named; what was said last first."""
    person = await person_of(request, caller)
    found = await shared.nitka.facts(person, include_past=include_past)
    shown = page(found, lambda fact: fact.last_seen, cursor=cursor, limit=limit)
    return Json({**shown, "data": [asdict(fact) for fact in shown["data"]]})


@router.get("/v1/me/profile", tags=["Me"])
async def profile(request: Request, caller: Reader, shared: Shared) -> Response:
    """A few lines of standing context about the person."""
    return Json(asdict(await shared.nitka.profile(await person_of(request, caller))))


@router.post("/v1/me/recall", tags=["Me"], response_model=Page)
async def recall(body: RecallBody, request: Request, caller: Read, shared: Shared) -> Response:
    """Passages of the conversations that bear on a query, best first, word for word."""
    person = await person_of(request, caller, body.user)
    session = named(request, SESSION, body.session, what="session")
    found = await shared.nitka.recall(person, body.query, session=session, k=body.k, budget=body.budget)
    return Json({"data": [asdict(one) for one in found], "next": None})


@router.get("/v1/me/links", tags=["Me"], response_model=Page)
async def links(request: Request, caller: Read, shared: Shared) -> Response:
    """The names by which channels know the person."""
    handles = await shared.nitka.links(await person_of(request, caller))
    return Json({"data": [{"channel": one.channel, "handle": one.id} for one in handles], "next": None})


@router.get(
    "/v1/me/export",
    tags=["Me"],
    response_class=Response,
    responses={200: {"content": {"application/x-ndjson": {}}, "description": "One JSON value a line."}},
)
async def export(
    request: Request, caller: Exporter, shared: Shared, what: Literal["conversation", "all"] = "conversation"
) -> Response:
    """Everything that was said, oldest first, as JSON Lines; "all" adds what was made from it. One that ends without
    its proper end is not whole.
    """
    records = shared.nitka.export(await person_of(request, caller), what=what)
    return JsonLines(await anext(records, None), records)


class JsonLines(Response):
    """Values as they come, one a line: the first, which was asked for already, and the rest."""

    media_type = "application/x-ndjson"

    def __init__(self, first: Any, rest: AsyncIterator[Any]) -> None:
        super().__init__(None, headers={"Content-Disposition": 'attachment; filename="export.jsonl"'})
        del self.headers["content-length"]
        self._lines = _lines(first, rest)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._lines) as lines:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            async for line in lines:
                await send({"type": "http.response.body", "body": line, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _lines(first: Any, rest: AsyncIterator[Any]) -> AsyncGenerator[bytes, None]:
    if first is not None:
        yield dumped(first) + b"\n"
        async for value in rest:
            yield dumped(value) + b"\n"


def _one_session(request: Request) -> str:
    session = named(request, SESSION, None, what="session")
    if session is None:
        raise Refusal("The session is missing: send X-Nitka-Session.", code="missing_session", param="session")
    return session


def _last(info: SessionInfo) -> datetime:
    return info.last or info.started


def _session(info: SessionInfo) -> dict[str, Any]:
    named = {"session": None if info.damaged else info.id, "channel": info.channel, "messages": info.messages}
    return {**named, "started": info.started, "last": info.last, "damaged": info.damaged}
