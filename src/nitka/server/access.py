"""Who asks, and what they may do.

Rules:
* Every route but the open ones (health, documents) has `require(scope, ...)` among its dependencies; a test goes
  through all of them with every kind of wrong key.
* A key is found by its hash, and the hash compared in constant time. What it grants is remembered for
  `Options.key_seconds`: that long a revoked key may still work.
* The tenant is the key's. No header and no body names one.
* A widget's key speaks only for visitors it made: the visitor's token, sealed with the server's key and bound to the
  API key, is the user. Or for whom a user token names, which the host signed (`nitka.server.user_tokens`): then for
  that user and no other, whatever else the request holds. And only from its origins, which is looked at first: without
  leave a page cannot even read why it was refused.
* A user token that is not good is refused wherever it comes along, before the body is read; with a key that has no
  signing secret, each of them is.
"""

from __future__ import annotations

import base64
import binascii
import hmac
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Request, Response, Security
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from nitka.errors import Damaged
from nitka.server import keys, user_tokens
from nitka.server.errors import Refusal
from nitka.server.keys import Grant, KeyKind
from nitka.server.rates import Rates
from nitka.server.user_tokens import UserToken
from nitka.store.port import Store
from nitka.types import User
from nitka.vault.keychain import Keychain
from nitka.vault.seal import Kind, Place, SealKey
from nitka.world import Clock

USER = "x-nitka-user"
VISITOR = "x-nitka-visitor"
USER_TOKEN = "x-nitka-user-token"
SUBSCRIPTION = "ocp-apim-subscription-key"  # where clients of the watch's wire form put their key
VISITOR_PREFIX = "nv_"
VISITOR_TURNS = 20  # turns a minute of one visitor: each asks a model
VISITOR_RATE = 120  # requests a minute of one visitor, turns among them
TURNS = "/v1/turns"
KEPT_KEYS = 1_000

_bearer = HTTPBearer(auto_error=False, description="An API key: `nitka keys create`.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Whoever holds the key of this request."""

    tenant: str
    scopes: frozenset[str]
    kind: KeyKind
    key_id: str  # what the key is called where it must not be told
    hash: bytes
    origins: tuple[str, ...] = ()
    signing: str = field(default="", repr=False)  # of a widget: what its host signs user tokens with

    @property
    def is_widget(self) -> bool:
        return self.kind == "widget"


class Access:
    """API keys as the store has them, some of them remembered, and how often each may ask. `clock` says the present,
    `ticks` gives seconds that only grow; a key is remembered for `seconds`.
    """

    def __init__(
        self,
        store: Store,
        keychain: Keychain,
        *,
        clock: Clock,
        ticks: Callable[[], float],
        rates: Rates,
        seconds: float,
    ) -> None:
        self._store = store
        self._keychain = keychain
        self._clock = clock
        self._ticks = ticks
        self._rates = rates
        self._seconds = seconds
        self._known: OrderedDict[bytes, tuple[float, Grant]] = OrderedDict()

    async def caller(self, secret: str) -> Caller | None:
        """The holder of a key; None for a key that is none."""
        hash = keys.hash_of(secret)
        grant = self._remembered(hash) or await self._read(hash)
        if grant is None or 0 < grant.until <= self._clock().timestamp() * 1000:
            return None
        return Caller(
            tenant=grant.tenant,
            scopes=frozenset(grant.scopes),
            kind=grant.kind,
            key_id=keys.id_of(hash),
            hash=hash,
            origins=grant.origins,
            signing=grant.signing,
        )

    def limit(self, caller: Caller, visitor: str = "", *, is_turn: bool = False) -> None:
        """Counts one request. Raises `Refusal` (429) where there were too many."""
        grant = self._remembered(caller.hash)
        waits = [self._rates.wait(caller.key_id, grant.rate)] if grant else []
        if visitor:
            waits.append(self._rates.wait(visitor, VISITOR_RATE))
        if visitor and is_turn:
            waits.append(self._rates.wait(f"turns of {visitor}", VISITOR_TURNS))
        if any(waits):
            after = {"Retry-After": str(int(max(waits)) + 1)}
            raise Refusal("Too many requests.", status=429, code="rate_limit_exceeded", headers=after)

    async def origins(self) -> frozenset[str]:
        """The origins of all widgets' keys: a preflight request (Fetch, 4.8) carries no key."""
        key = await self._keychain.system_key()
        return frozenset(site for row in await self._store.api_keys() for site in keys.unseal(key, row).origins)

    async def make_visitor(self, caller: Caller, randomness: bytes) -> tuple[str, str]:
        """A new visitor of a widget: his id, and the token that stands for him."""
        body = base64.urlsafe_b64encode(randomness).rstrip(b"=")
        key = await self._keychain.system_key()
        sealed = key.seal(body, _visitor_place(caller))
        return _visitor_id(body), VISITOR_PREFIX + base64.urlsafe_b64encode(sealed).rstrip(b"=").decode()

    async def visitor(self, caller: Caller, token: str) -> str:
        """The id of the visitor that a token of this key stands for. Raises `Refusal` (401) for any other."""
        key = await self._keychain.system_key()
        try:
            return _visitor_id(_opened(key, token, _visitor_place(caller)))
        except (Damaged, ValueError):
            raise Refusal("This is no visitor of this key.", status=401, code="invalid_visitor") from None

    def _remembered(self, hash: bytes) -> Grant | None:
        until, grant = self._known.get(hash, (0.0, None))
        return grant if until > self._ticks() else None

    async def _read(self, hash: bytes) -> Grant | None:
        row = await self._store.api_key(hash)
        if row is None or not hmac.compare_digest(row.hash, hash):
            return None
        grant = keys.unseal(await self._keychain.system_key(), row)
        self._known[hash] = (self._ticks() + self._seconds, grant)
        self._known.move_to_end(hash)
        while len(self._known) > KEPT_KEYS:
            self._known.popitem(last=False)
        return grant


Check = Callable[..., Awaitable[Caller]]
_SCOPES: dict[Check, tuple[str, ...]] = {}


def require(*scopes: str) -> Check:
    """A dependency that yields the `Caller`, who must have one of the scopes: `caller: Annotated[Caller,
    Depends(require("turns"))]`. Refuses with 401, 403 or 429; on a `Guarded` route, before the body is read.
    """

    async def check(
        request: Request, credentials: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)]
    ) -> Caller:
        return await _admitted(request, scopes)

    _SCOPES[check] = scopes
    return check


class Guarded(APIRoute):
    """A route that asks for the key before it reads a body: strangers get nothing parsed."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        needed = [_SCOPES[part.call] for part in self.dependant.dependencies if part.call in _SCOPES]

        async def guarded(request: Request) -> Response:
            for scopes in needed:
                await _admitted(request, scopes)
            return await handle(request)

        return guarded


async def _admitted(request: Request, scopes: tuple[str, ...]) -> Caller:
    """The caller of a request, once for all who ask. Raises `Refusal`."""
    caller: Caller | None = getattr(request.state, "caller", None)
    if caller is None:
        caller = await _identified(request)
        request.state.caller, request.state.key_id = caller, caller.key_id
        if caller.is_widget:
            _from_its_pages(request, caller)
        request.state.user_token = said = _user_token(request, caller)
        speaker = f"{caller.tenant}/{said.user}" if said else request.headers.get(VISITOR, "")
        is_turn = request.method == "POST" and request.scope["path"].startswith(TURNS)
        request.app.state.service.access.limit(caller, speaker if caller.is_widget else "", is_turn=is_turn)
    if caller.scopes.isdisjoint(scopes):
        raise Refusal(f"This needs a key with the scope {' or '.join(scopes)}.", status=403, code="missing_scope")
    return caller


async def _identified(request: Request) -> Caller:
    bearer = await _bearer(request)
    given = bearer.credentials if bearer else request.headers.get(SUBSCRIPTION)
    caller = await request.app.state.service.access.caller(given) if given else None
    if caller is None:
        told = "The API key is not known." if given else "An API key is needed: Authorization: Bearer nk_..."
        raise Refusal(told, status=401, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})
    return cast(Caller, caller)


def routes() -> APIRouter:
    """A router for a module's routes."""
    return APIRouter(route_class=Guarded)


async def user_of(request: Request, caller: Caller, named: str | None = None) -> User:
    """The user a request is about: of a widget its visitor, else who `X-Nitka-User` or the body (`named`) names.
    Raises `Refusal`; `BadId` comes later, from the call that uses it.
    """
    header = header_text(request, USER)
    if caller.is_widget:
        if header is not None or named is not None:
            raise Refusal("A widget's key speaks for its visitors alone.", status=403, code="visitor_only")
        said: UserToken | None = request.state.user_token
        return User(said.user if said else await visitor_of(request, caller), caller.tenant)
    if header is not None and named is not None and header != named:
        raise Refusal("X-Nitka-User and the body name different users.", code="two_users", param="user")
    user = header if header is not None else named
    if user is None:
        raise Refusal("The user is missing: send X-Nitka-User, or the field user.", code="missing_user", param="user")
    return User(user, caller.tenant)


async def visitor_of(request: Request, caller: Caller) -> str:
    """The id of the visitor whose token came along. Raises `Refusal`."""
    token = request.headers.get(VISITOR)
    if not token:
        raise Refusal("A widget's key needs X-Nitka-Visitor.", status=401, code="invalid_visitor")
    id: str = await request.app.state.service.access.visitor(caller, token)
    return id


def header_text(request: Request, name: str) -> str | None:
    """A header as UTF-8 text; None where there is none. Raises `Refusal` for other bytes."""
    value = request.headers.get(name)
    if value is None or value.isascii():
        return value
    try:
        return value.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        raise Refusal(f"The header {name} is not UTF-8.", code="bad_header", param=name) from None


def _user_token(request: Request, caller: Caller) -> UserToken | None:
    """What the user token of a request says; None where there is none. Raises `Refusal`."""
    token = request.headers.get(USER_TOKEN)
    return None if token is None else user_tokens.read(token, caller.signing, request.app.state.service.clock())


def _from_its_pages(request: Request, caller: Caller) -> None:
    site = request.headers.get("origin") or _own_site(request, caller)
    if site not in caller.origins:
        raise Refusal("This key does not work from here.", status=403, code="wrong_origin")
    request.state.allow_origin = site


def _own_site(request: Request, caller: Caller) -> str | None:
    """The origin of a page that this server itself serves: browsers name none with a GET to where the page is from
    (Fetch, 3.2), but say that it is so (`Sec-Fetch-Site`, which no script can set).
    """
    if request.headers.get("sec-fetch-site") != "same-origin":
        return None
    host = request.headers.get("host", "")
    return next((site for site in caller.origins if site.partition("://")[2] == host), None)


def _visitor_place(caller: Caller) -> Place:
    return Place(Kind.VISITOR, caller.hash[:16], caller.hash[16:])


def _visitor_id(body: bytes) -> str:
    return f"{user_tokens.VISITOR}{body.decode()}"


def _opened(key: SealKey, token: str, place: Place) -> bytes:
    """What a token holds. Raises `Damaged`, `ValueError`."""
    if not token.startswith(VISITOR_PREFIX) or len(token) > 500:
        raise Damaged
    return key.open(unpacked(token.removeprefix(VISITOR_PREFIX)), place)


def unpacked(text: str) -> bytes:
    """Bytes from base64url without padding (RFC 4648, 5). Raises `ValueError`."""
    data = text.encode("ascii")
    try:
        return base64.b64decode(data + b"=" * (-len(data) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError from error


Turns = Annotated[Caller, Depends(require("turns"))]
Read = Annotated[Caller, Depends(require("read"))]
Admin = Annotated[Caller, Depends(require("admin"))]
Parse = Annotated[Caller, Depends(require("parse"))]
Widget = Annotated[Caller, Depends(require("widget"))]
TurnsOrWidget = Annotated[Caller, Depends(require("turns", "widget"))]
