"""User tokens: with one, a widget's host says who sits before the page. Pure.

A token is a JWT (RFC 7519) signed by the host's server with HMAC-SHA-256 and the signing secret of the widget's key.
Nothing else is read: no other algorithm, `none` least of all (RFC 8725, 3.1), and no key that the token itself names.

* `sub`: the user. Not one of a widget's visitors: those speak by tokens of their own.
* `exp`: when it ends, at most a day from now. A page that outlives it asks its server for another.
* `nbf`, if there: not before then, with a minute's grace for clocks that differ.
* `visitor`, if there: the id of the visitor who turned out to be the user; see `nitka.server.visitors`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple, TypeGuard

import jwt
from jwt.types import Options

from nitka.errors import BadId
from nitka.server.errors import Refusal
from nitka.vault.keychain import id_bytes

VISITOR = "visitor:"
"""What the ids of visitors begin with."""

LONGEST = 86_400  # seconds
GRACE = 60  # seconds
MAX_LENGTH = 4_096  # characters


class UserToken(NamedTuple):
    """What a token says."""

    user: str
    visitor: str | None


def read(token: str, secret: str, now: datetime) -> UserToken:
    """What a token says, if it is good. Raises `Refusal` (401), the same for whatever is wrong with it."""
    if not secret:
        raise _refusal("This key has no signing secret: make a new one with `nitka keys create --scope widget`.")
    claims = _signed(token, secret)
    user, visitor, ends, starts = (claims.get(name) for name in ("sub", "visitor", "exp", "nbf"))
    seconds = now.timestamp()
    if not (_is_time(ends) and seconds < ends <= seconds + LONGEST + GRACE):
        raise _refusal()
    if starts is not None and not (_is_time(starts) and starts <= seconds + GRACE):
        raise _refusal()
    if not _is_user(user) or not (visitor is None or isinstance(visitor, str)):
        raise _refusal()
    return UserToken(user, visitor)


def _signed(token: str, secret: str) -> dict[str, Any]:
    """The claims of a token whose signature is good. What they say is not looked at yet: the library's clock is not
    ours. A token for another audience is none for us.
    """
    if len(token) > MAX_LENGTH:
        raise _refusal()
    options: Options = {"verify_exp": False, "verify_nbf": False, "verify_iat": False, "verify_sub": False}
    try:
        return jwt.decode(token, secret, algorithms=["HS256"], options=options)
    except (jwt.InvalidTokenError, ValueError, RecursionError):  # what is no UTF-8 or no JSON in it may be either
        raise _refusal() from None


def _is_time(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_user(value: object) -> TypeGuard[str]:
    if not isinstance(value, str) or value.startswith(VISITOR):
        return False
    try:
        id_bytes(value, "user id")
    except BadId:
        return False
    return True


def _refusal(message: str = "The user token is not good, or no longer.") -> Refusal:
    return Refusal(message, status=401, code="invalid_user_token")
