"""`/v1/me`, what is changed of a person: turns from elsewhere, facts by hand, what the watch remembers, links of
channels, taking over a visitor, forgetting.

What is forgotten is named in the body, all of it: no default, and no header that a client sends with every request,
ever widens what goes. The answer has the true counts. A widget's visitor may take back and forget what is his own.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from nitka.server.access import Admin, Caller, require, routes
from nitka.server.errors import Refusal
from nitka.server.people import named, person_of
from nitka.server.service import Shared
from nitka.server.told import Json
from nitka.types import User

VISITOR = "visitor:"

Owning = Annotated[Caller, Depends(require("admin", "widget"))]

router = routes()


class Body(BaseModel):
    """What every body of these routes may say."""

    model_config = ConfigDict(extra="forbid")

    user: str | None = Field(default=None, description="Whose it is; or the header X-Nitka-User.")


class RecordBody(Body):
    """A turn that happened elsewhere."""

    text: str = Field(description="What the user said.")
    answer: str = Field(description="What he was answered.")
    at: AwareDatetime = Field(description="When he said it.")
    session: str | None = Field(default=None, description="Which conversation; or the header X-Nitka-Session.")
    key: str | None = Field(default=None, description="The turn's own id; or the header Idempotency-Key.")
    zone: str = ""
    channel: str = ""


class WatchBody(Body):
    session: str | None = Field(default=None, description="Which conversation; or the header X-Nitka-Session.")
    memory: dict[str, Any] = Field(description="As `/parse` gives and takes it.")


class FactBody(Body):
    slot: str = Field(max_length=512, description="Dotted words, such as home.city.")
    value: str
    about: str = Field(default="user", max_length=512, description="The user, or the name of somebody else.")
    at: AwareDatetime | None = None


class OneFact(Body):
    fact: str = Field(max_length=512, description="Its id.")
    at: AwareDatetime | None = None


class HandleBody(Body):
    channel: str
    handle: str


class AdoptBody(Body):
    visitor: str = Field(description="The visitor's id, as it was made for a widget.")


class ForgetBody(Body):
    """What shall go: one of `everything`, `session` (and perhaps its `turn`), `fact`, `about`."""

    everything: bool = Field(default=False, description="The person, with all that is kept of him.")
    session: str | None = None
    turn: int | None = Field(default=None, ge=0, le=1 << 53, description="The number of either of its rows.")
    fact: str | None = Field(default=None, max_length=512)
    about: str | None = Field(default=None, max_length=512, description="All facts about a named other.")
    with_turns: bool = Field(default=False, description="With a fact or a name: the turns that say it too.")


@router.post("/v1/me/record", tags=["Me"])
async def record(body: RecordBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Writes a turn that happened elsewhere, with its time, at the end of a conversation: an import, oldest first. One
    whose key was recorded is not written again.
    """
    person, session = await person_of(request, caller, body.user), _session_of(request, body.session)
    key = named(request, "idempotency-key", body.key, what="key")
    words = {"text": body.text, "answer": body.answer, "zone": body.zone, "channel": body.channel}
    await shared.nitka.record(person, session, at=body.at, key=key, **words)
    return Json({"recorded": True})


@router.post("/v1/me/watch", tags=["Me"])
async def set_watch(body: WatchBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Puts another memory in the place of what the watch remembers of one conversation: context from outside comes in
    so, and a flag is taken back. A 409 where the watch is off: nobody would read it.
    """
    person, session = await person_of(request, caller, body.user), _session_of(request, body.session)
    if not shared.nitka._turns.watching.on(person.tenant):
        raise Refusal("The watch is off for this tenant: see nitka serve --watch.", status=409, code="watch_off")
    await shared.nitka.set_watch_memory(person, session, body.memory)
    return Json({"memory": await shared.nitka.watch_memory(person, session)})


@router.post("/v1/me/facts", tags=["Me"])
async def set_fact(body: FactBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Sets a fact by hand; only newer words of the person's override it."""
    person = await person_of(request, caller, body.user)
    fact = await shared.nitka.set_fact(person, body.slot, body.value, about=body.about, at=body.at)
    return Json(asdict(fact))


@router.post("/v1/me/facts/retract", tags=["Me"])
async def retract_fact(body: OneFact, request: Request, caller: Owning, shared: Shared) -> Response:
    """Switches a fact off: it stays as history, is given to no request, and no earlier message brings it back."""
    person = await person_of(request, caller, body.user)
    return Json({"retracted": await shared.nitka.retract_fact(person, body.fact, at=body.at)})


@router.post("/v1/me/links", tags=["Me"])
async def link(body: HandleBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Makes a handle of a channel one of the person's names. One that has memory of its own is a 409, with counts."""
    person = await person_of(request, caller, body.user)
    handle = await shared.nitka.link(body.channel, body.handle, person)
    return Json({"channel": handle.channel, "handle": handle.id})


@router.post("/v1/me/links/remove", tags=["Me"])
async def unlink(body: HandleBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Makes the handle a person of its own again; what was said stays."""
    person = await person_of(request, caller, body.user)
    return Json({"removed": await shared.nitka.unlink(body.channel, body.handle, person)})


@router.post("/v1/me/adopt", tags=["Me"])
async def adopt(body: AdoptBody, request: Request, caller: Admin, shared: Shared) -> Response:
    """Makes what is remembered of a widget's visitor the person's; then the visitor is forgotten. The caller vouches
    that they are one.
    """
    person = await person_of(request, caller, body.user)
    if not body.visitor.startswith(VISITOR):
        raise Refusal("visitor: not the id of a widget's visitor.", code="invalid_value", param="visitor")
    return Json(asdict(await shared.nitka.adopt(User(body.visitor, caller.tenant), person)))


@router.post("/v1/me/forget", tags=["Me"])
async def forget(body: ForgetBody, request: Request, caller: Owning, shared: Shared) -> Response:
    """Forgets what the body names, with everything made from it; says what really went."""
    person = await person_of(request, caller, body.user)
    if (body.everything, body.session, body.fact, body.about) == (False, None, None, None):
        raise Refusal("Name what shall go: everything, session, fact or about.", code="nothing_named")
    if body.everything and (body.session, body.turn, body.fact, body.about) != (None, None, None, None):
        raise Refusal("everything goes with nothing else.", code="invalid_value", param="everything")
    erased = await shared.nitka.forget(
        person,
        session=body.session,
        turn=body.turn,
        fact=body.fact,
        about=body.about,
        with_turns=body.with_turns,
    )
    return Json(asdict(erased))


@router.delete("/v1/me", tags=["Me"])
async def delete(request: Request, caller: Owning, shared: Shared) -> Response:
    """Forgets the person, with all that is kept of him; says what really went."""
    if "x-nitka-session" in request.headers:
        raise Refusal("DELETE /v1/me is the whole person. For a session: POST /v1/me/forget.", code="two_meanings")
    return Json(asdict(await shared.nitka.forget(await person_of(request, caller))))


def _session_of(request: Request, given: str | None) -> str:
    session = named(request, "x-nitka-session", given, what="session")
    if session is None:
        raise Refusal("The session is missing: send X-Nitka-Session.", code="missing_session", param="session")
    return session
