"""Who is at the inspector's pages, what a form of theirs holds, and how what goes wrong is told there.

* A visit is signed in by the cookie of `tickets`; its API key is looked up anew each time, so one that was revoked
  opens nothing any more; nor does a cookie that was signed out (`nitka.server.inspector.ended`). The
  tenant is the key's.
* A form is taken from our own pages alone: it repeats the token of the cookie it was shown with, and a browser that
  says where a request comes from (Fetch Metadata) must not name another site.
* Errors are pages, with the statuses of `nitka.server.errors`.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import parse_qsl, urlsplit

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse, Response
from fastapi.routing import APIRoute

from nitka.errors import NitkaError
from nitka.server import keys
from nitka.server.errors import Refusal, refusal_of
from nitka.server.inspector import render, tickets
from nitka.server.inspector.ended import is_ended
from nitka.server.inspector.tickets import HOURS, Purpose, SignIn, Ticket
from nitka.server.keys import Grant
from nitka.server.service import Service
from nitka.types import Person
from nitka.vault.seal import SealKey
from nitka.world import random_bytes

BEGIN = "/inspector"
FORM = "application/x-www-form-urlencoded"
MOST_FIELDS = 100
OURS = ("same-origin", "none")  # of Sec-Fetch-Site
LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(slots=True)
class Visit:
    """One request to a page. `changed` says that the browser has to be given the cookie."""

    request: Request
    shared: Service
    key: SealKey
    sign_in: SignIn
    grant: Grant | None = None
    changed: bool = False
    frames: str = render.NOBODY

    @property
    def language(self) -> str:
        if self.sign_in.language in render.LANGUAGES:
            return self.sign_in.language
        return render.language_of(self.request.headers.get("accept-language", ""))

    @property
    def key_id(self) -> str:
        return keys.id_of(bytes.fromhex(self.sign_in.key))

    @property
    def tenant(self) -> str:
        assert self.grant is not None
        return self.grant.tenant

    def page(self, template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
        """A page of ours."""
        known = {"sign_in": self.sign_in, "grant": self.grant, "here": self._here(), "view": ""}
        return render.page(template, self.language, {**known, **values}, status=status, frames=self.frames)

    def _here(self) -> str:
        """Where a switch of language comes back to: this page if it can be asked for again."""
        url = self.request.url
        if self.request.method != "GET":
            return f"{BEGIN}/parse" if url.path == f"{BEGIN}/parse" else BEGIN
        return url.path + (f"?{url.query}" if url.query else "")

    def ticket(self, purpose: Purpose, person: Person, session: str = "") -> str:
        """A name for an address, good for this sign-in."""
        channel = getattr(person, "channel", "")
        return tickets.ticket_of(
            self.key, self.sign_in, purpose, Ticket(id=person.id, channel=channel, session=session)
        )

    def read(self, purpose: Purpose, text: str) -> Ticket:
        """What a ticket stands for. Raises `Refusal`."""
        found = tickets.read_ticket(self.key, self.sign_in, purpose, text)
        if found is None:
            raise Refusal("This address belongs to another sign-in.", status=404, code="stale_address")
        return found

    def become(self, sign_in: SignIn, grant: Grant | None) -> None:
        self.sign_in, self.grant, self.changed = sign_in, grant, True

    def new(self, **more: Any) -> SignIn:
        """A cookie's worth of nothing but a token."""
        until = int(self.shared.clock().timestamp()) + HOURS * 3600
        return SignIn(**{"token": random_bytes(16).hex(), "until": until, "language": self.sign_in.language, **more})


async def visit_of(request: Request) -> Visit:
    """The visit that a request is part of. The key of its cookie is looked up anew."""
    shared: Service = request.app.state.service
    key = await shared.vault.keychain.system_key()
    found = tickets.sign_in_of(key, request.cookies.get(cookie_name(key), ""), shared.clock().timestamp())
    frames = getattr(request.app.state, "inspector_frames", render.NOBODY)
    visit = Visit(request, shared, key, found or SignIn(token=""), frames=frames)
    if found is None:
        visit.become(visit.new(), None)
    elif found.key:
        visit.grant = None if await is_ended(shared, found) else await standing(shared, key, bytes.fromhex(found.key))
        if visit.grant is None:
            visit.become(visit.new(), None)
        else:
            request.state.key_id = visit.key_id
    return visit


async def standing(shared: Service, key: SealKey, hash: bytes) -> Grant | None:
    """What a key may do, if there is one of that hash, it is not over, and it may look at people's data."""
    row = await shared.vault.store.api_key(hash)
    if row is None or not hmac.compare_digest(row.hash, hash):
        return None
    grant = keys.unseal(key, row)
    over = 0 < grant.until <= shared.clock().timestamp() * 1000
    return None if over or "admin" not in grant.scopes else grant


class Paged(APIRoute):
    """A route whose errors are pages, and whose answers give the browser its cookie."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def paged(request: Request) -> Response:
            visit = request.state.visit = await visit_of(request)
            try:
                response = await handle(request)
            except NitkaError as error:
                response = _refused(visit, refusal_of(error))
            except RequestValidationError:  # of an address: only forms have bodies, and those are read here
                response = _refused(visit, Refusal("There is nothing at this address.", status=404, code="not_found"))
            if visit.changed:
                give(response, visit)
            return response

        return paged


def _refused(visit: Visit, refusal: Refusal) -> Response:
    template = "sign_in.html" if visit.grant is None else "error.html"
    if template == "error.html" and refusal.code == "no_session" and visit.frames == render.OURSELVES:
        template = "demo_empty.html"  # of the demonstration: who forgot the example has done nothing wrong
    return visit.page(
        template,
        status=refusal.status,
        code=refusal.code or "",
        status_code=refusal.status,
    )


def cookie_name(key: SealKey) -> str:
    """The cookie of this server: several may listen on one machine, and cookies do not tell ports apart."""
    return f"nitka-inspector-{key.id.hex()}"


def give(response: Response, visit: Visit) -> None:
    """Gives the browser its cookie."""
    host, over = visit.request.url.hostname or "", visit.request.headers.get("x-forwarded-proto", "http")
    response.set_cookie(
        cookie_name(visit.key),
        tickets.cookie_of(visit.key, visit.sign_in),
        max_age=HOURS * 3600,
        path=BEGIN,
        httponly=True,
        samesite="strict",
        secure=host not in LOOPBACK or over == "https",
    )


async def visiting(request: Request) -> Visit:
    """A dependency: the visit, signed in or not."""
    visit: Visit = request.state.visit
    return visit


async def signed_in(request: Request) -> Visit:
    """A dependency: a visit that is signed in. Raises `Refusal`."""
    visit: Visit = request.state.visit
    if visit.grant is None:
        raise Refusal("Sign in first.", status=401, code="signed_out")
    return visit


async def form(request: Request) -> Mapping[str, str]:
    """A dependency: the fields of a form of ours. Raises `Refusal`."""
    visit: Visit = request.state.visit
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != FORM:
        raise Refusal("Forms alone are taken here.", status=415, code="no_form")
    try:
        body = (await request.body()).decode("ascii")
        fields = dict(parse_qsl(body, keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS))
    except ValueError:
        raise Refusal("The form could not be read.", code="bad_form") from None
    if not (
        _from_here(request) and hmac.compare_digest(fields.get("token", "").encode(), visit.sign_in.token.encode())
    ):
        raise Refusal("This form is not one of ours.", status=403, code="foreign_form")
    return fields


def _from_here(request: Request) -> bool:
    """Whether nothing says that another site sent this. Our pages tell no referrer, so their forms have no origin."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin", "null")
    if site is not None:
        return site in OURS
    return origin == "null" or urlsplit(origin).netloc == request.headers.get("host")


def see(address: str) -> RedirectResponse:
    """The answer to a form: a page to be asked for."""
    return RedirectResponse(address, status_code=303, headers=render.headers())


Anybody = Annotated[Visit, Depends(visiting)]
Signed = Annotated[Visit, Depends(signed_in)]
Form = Annotated[Mapping[str, str], Depends(form)]
