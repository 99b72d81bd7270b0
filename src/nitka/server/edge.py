"""The outermost layer, a plain ASGI middleware: request ids, size limits, CORS for widgets, the access log, and what
nobody expected.

* The access log has the method, the ROUTE TEMPLATE (never the path), the status, the milliseconds, the request's id
  and the key's id. It replaces uvicorn's, which logs paths and queries.
* An error that nobody expected is told by its type and its place in the code. Its own words may quote a user, so they
  are neither logged nor sent.
* CORS (Fetch standard, 3.2) is for widgets: an answer names the page's origin only after the key has allowed it; a
  preflight, which carries no key, is allowed for the origins of all widgets.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Any

from fastapi.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nitka.server.access import Access
from nitka.server.errors import Refusal, response_of

log = logging.getLogger("nitka.server.access")
errors = logging.getLogger("nitka.server.errors")

UNKNOWN = "-"  # in place of a template: no route has this address
ALLOWED_HEADERS = (
    "authorization, content-type, idempotency-key, last-event-id, x-nitka-session, x-nitka-visitor, x-nitka-user-token"
)
EXPOSED_HEADERS = "x-request-id, x-nitka-receipt, retry-after"
PREFLIGHT_SECONDS = 600


class Edge:
    """Wraps the application. `clock` gives seconds, `new_id` a request's id."""

    def __init__(
        self, app: ASGIApp, *, max_body: int, clock: Callable[[], float], new_id: Callable[[], str], access: Access
    ) -> None:
        self._app = app
        self._max_body = max_body
        self._clock = clock
        self._new_id = new_id
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._new_id(), self._max_body)
        began = self._clock()
        try:
            await self._serve(exchange)
        finally:
            exchange.log(self._clock() - began)

    async def _serve(self, exchange: _Exchange) -> None:
        try:
            exchange.refuse_length()
            if exchange.is_preflight:
                await self._preflight(exchange)
            else:
                await self._app(exchange.scope, exchange.receive, exchange.send)
        except Refusal as refusal:
            await exchange.answer(response_of(refusal, exchange.scope["path"]))
        except Exception as error:  # noqa: BLE001  # the one place of the server that ends what nobody expected
            tell_unexpected(error, exchange.id)
            failed = Refusal("Something failed here.", status=500, code="server_error")
            await exchange.answer(response_of(failed, exchange.scope["path"]))

    async def _preflight(self, exchange: _Exchange) -> None:
        site = exchange.header(b"origin")
        headers = {"Vary": "Origin"}
        if site in await self._access.origins():
            headers |= {
                "Access-Control-Allow-Origin": site,
                "Access-Control-Allow-Methods": "GET, POST, DELETE, PATCH, PUT",
                "Access-Control-Allow-Headers": ALLOWED_HEADERS,
                "Access-Control-Max-Age": str(PREFLIGHT_SECONDS),
            }
        await exchange.answer(Response(status_code=204, headers=headers))


class _Exchange:
    """One request and its answer, as they pass."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, id: str, max_body: int) -> None:
        self.scope = scope
        self.id = id
        self._receive, self._send = receive, send
        self._max_body, self._read = max_body, 0
        self._status = 0
        self._over = self._done = False
        scope.setdefault("state", {})["request_id"] = id

    def header(self, name: bytes) -> str:
        return next((value.decode("latin-1") for key, value in self.scope["headers"] if key == name), "")

    @property
    def is_preflight(self) -> bool:
        return self.scope["method"] == "OPTIONS" and bool(self.header(b"access-control-request-method"))

    def refuse_length(self) -> None:
        """Raises `Refusal` for a body that says itself that it is too large."""
        length = self.header(b"content-length")
        if length.isdecimal() and int(length) > self._max_body:
            raise self._too_large()

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._read += len(message.get("body", b""))
            if self._read > self._max_body:
                self._over = True  # whoever reads the body may turn what is raised here into an error of its own
                raise self._too_large()
        return message

    async def send(self, message: Message) -> None:
        if self._over and not self._status:
            self._over = False
            await self.answer(response_of(self._too_large(), self.scope["path"]))
            self._done = True
        if self._done:
            return
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers: list[Any] = list(message.get("headers", ()))
            headers.append((b"x-request-id", self.id.encode()))
            if site := self.scope["state"].get("allow_origin"):
                headers += [
                    (b"access-control-allow-origin", site.encode("latin-1")),
                    (b"access-control-expose-headers", EXPOSED_HEADERS.encode()),
                    (b"vary", b"Origin"),
                ]
            message = {**message, "headers": headers}
        await self._send(message)

    async def answer(self, response: Response) -> None:
        """Sends a whole answer, unless one was begun: then the connection ends without its proper end, which tells
        the client.
        """
        if self._status == 0:
            await response(self.scope, self._receive, self.send)

    def log(self, seconds: float) -> None:
        route = getattr(self.scope.get("route"), "path", UNKNOWN)
        state = self.scope["state"]
        log.info(
            "%s %s %d %.1fms %s %s",
            self.scope["method"] if self.scope["method"].isalpha() else UNKNOWN,
            route,
            self._status,
            seconds * 1000,
            self.id,
            state.get("key_id", UNKNOWN),
        )

    def _too_large(self) -> Refusal:
        return Refusal(f"The body has more than {self._max_body:,} bytes.", status=413, code="too_large")


def tell_unexpected(error: BaseException, id: str) -> None:
    """Logs the type of an error and where in the code it happened, without its words."""
    places = "".join(traceback.format_tb(error.__traceback__))
    errors.error("%s in request %s\n%s", type(error).__name__, id, places)
