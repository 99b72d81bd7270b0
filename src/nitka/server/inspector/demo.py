"""The demonstration: a page that carries the widget, an example conversation already in it, and the inspector beside.

It is for one person at one machine. It listens on the loopback address alone and answers to no other name, so that no
page from elsewhere reaches it by a name of its own (DNS rebinding); it needs neither key nor network; and whoever opens
its page is signed in to the inspector, which shows nothing but the examples and what is written there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import RedirectResponse, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware

from nitka.app import Nitka
from nitka.server import keys
from nitka.server.access import Caller
from nitka.server.app import create_app
from nitka.server.inspector import render
from nitka.server.inspector.door import Visit, give
from nitka.server.inspector.tickets import HOURS, SignIn
from nitka.server.keys import Grant
from nitka.server.service import Options, Service
from nitka.types import User
from nitka.vault.seal import SealKey
from nitka.world import random_bytes

PURPOSE = "demonstration · показ"
HOSTS = ("127.0.0.1", "localhost")
PAUSE = timedelta(minutes=3)  # between two turns
DAYS = 12  # before now that the examples begin
RATE = 600  # requests a minute


class Said(NamedTuple):
    """One turn of an example, and how long after its beginning it was."""

    question: str
    answer: str
    after: timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class Guest:
    """The visitor of the widget in one language, who has said what the examples say."""

    id: str
    token: str
    session: str


@dataclass(slots=True)
class Demo:
    """What the pages of the demonstration know. It is filled in once the store is open."""

    sign_in: SignIn | None = None
    grant: Grant | None = None
    widget: str = ""
    guests: dict[str, Guest] | None = None


def examples(text: str) -> dict[str, list[Said]]:
    """The conversations of a file of examples, by name. Raises `ValueError` for one that is not as its head says."""
    found: dict[str, list[Said]] = {}
    name, question, at = "", "", timedelta()
    for line in text.splitlines():
        mark, _, rest = line.partition(" ")
        if mark == "=":
            name, at = rest.strip(), timedelta()
            found[name] = []
        elif mark == ">":
            question = rest
        elif mark == "<":
            found[name].append(Said(question, rest, at))
            at += PAUSE
        elif mark == "---":
            at = timedelta(days=at.days + 1)
        elif mark not in ("", "#"):
            raise ValueError("neither a name, nor a message, nor another day")
    return found


def demo_app(nitka: Nitka, port: int, ready: Callable[[], None]) -> FastAPI:
    """The application of the demonstration over a nitka that is not open yet; `ready` is called when it can be used."""
    demo = Demo()
    app = create_app(nitka, options=Options(docs=False, warm=True))
    app.state.inspector_frames = render.OURSELVES
    app.include_router(_router(demo))
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS))
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with inner(app):
            await prepare(app.state.service, demo, port)
            ready()
            yield

    app.router.lifespan_context = lifespan
    return app


async def prepare(shared: Service, demo: Demo, port: int) -> None:
    """Makes the keys and the visitors, and says what the examples say."""
    key = await shared.vault.keychain.system_key()
    admin = keys.grant_of(scopes=("admin", "parse"), name="demo")
    secret = await _add(shared, key, admin)
    sites = [f"http://{host}:{port}" for host in HOSTS]
    demo.widget = await _add(shared, key, keys.grant_of(scopes=("widget",), origins=sites, rate=RATE, name="demo"))
    until = int(shared.clock().timestamp()) + HOURS * 3600
    demo.sign_in = SignIn(token=random_bytes(16).hex(), key=keys.hash_of(secret).hex(), until=until)
    demo.grant = admin
    widget = await shared.access.caller(demo.widget)
    assert widget is not None
    guests = await asyncio.gather(*(_guest(shared, widget, language) for language in render.LANGUAGES))
    demo.guests = dict(zip(render.LANGUAGES, guests, strict=True))


async def _add(shared: Service, key: SealKey, grant: Grant) -> str:
    secret = keys.secret_of(grant.kind, random_bytes(keys.SECRET_BYTES))
    made = int(shared.clock().timestamp() * 1000)
    await shared.vault.store.add_api_key(keys.seal(key, keys.hash_of(secret), made, grant))
    return secret


async def _guest(shared: Service, widget: Caller, language: str) -> Guest:
    """A visitor who has said what the examples of a language say, folded turn by turn as in a chat."""
    user, token = await shared.access.make_visitor(widget, random_bytes(16))
    text = (render.HERE / "examples" / f"{language}.txt").read_text(encoding="utf-8")
    found = examples(text)
    begin = shared.clock() - timedelta(days=DAYS)
    for session, turns in found.items():
        for said in turns:
            at: datetime = begin + said.after
            await shared.nitka.record(user, session, text=said.question, answer=said.answer, at=at, channel="web")
            await shared.nitka.settle(user)
        begin += timedelta(days=DAYS // 2)
    return Guest(id=user, token=token, session=next(iter(found)))


def _router(demo: Demo) -> APIRouter:
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def begin(request: Request) -> Response:
        """The page in the language of the browser."""
        language = render.language_of(request.headers.get("accept-language", ""))
        return RedirectResponse(f"/{language}", status_code=303)

    @router.get("/en")
    async def english(request: Request) -> Response:
        """The page in English."""
        return await _page(request, demo, "en")

    @router.get("/ru")
    async def russian(request: Request) -> Response:
        """The page in Russian."""
        return await _page(request, demo, "ru")

    return router


async def _page(request: Request, demo: Demo, language: str) -> Response:
    shared: Service = request.app.state.service
    assert demo.sign_in is not None and demo.guests is not None
    guest = demo.guests[language]
    sign_in = SignIn(token=demo.sign_in.token, key=demo.sign_in.key, until=demo.sign_in.until, language=language)
    visit = Visit(request, shared, await shared.vault.keychain.system_key(), sign_in, demo.grant)
    ticket = visit.ticket("session", User(guest.id), guest.session)
    response = render.page("demo.html", language, {"guest": guest, "widget": demo.widget, "ticket": ticket})
    response.headers["Content-Security-Policy"] += "; frame-src 'self'; connect-src 'self'"
    give(response, visit)
    return response
