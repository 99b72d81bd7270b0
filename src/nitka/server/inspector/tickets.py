"""The cookie of a sign-in, and the names that stand in addresses: sealed values, that is, which open for nobody else.

* The cookie holds the hash of the API key, never the key, and ends after some hours. Before a sign-in it holds no hash:
  then it only ties a form to the browser it was shown in.
* A ticket stands for a person or a conversation in an address, where ids would end in access logs and histories. It
  opens only for the key and within the sign-in it was made in, so an address that got out opens nothing.
"""

from __future__ import annotations

import base64
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from nitka.errors import Damaged
from nitka.server.access import unpacked
from nitka.types import Handle, Person, User
from nitka.vault.seal import NOWHERE, Kind, Place, SealKey

HOURS = 8
MOST = 12_000  # characters of a sealed value: three names of 512 bytes, all of them escaped, and no more

Purpose = Literal["person", "door", "session"]
"""What a ticket is for: a person's list, a conversation that may be opened, one that has been."""

_NUMBER: dict[Purpose, int] = {"person": 2, "door": 3, "session": 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """What the cookie holds. `key` is the hash of the API key, in hex, "" before a sign-in; `token` is asked of every
    form; `until` in seconds since 1970.
    """

    token: str
    key: str = ""
    until: int = 0
    language: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticket:
    """Who, and which conversation, in the tenant of the key."""

    id: str
    channel: str = ""  # of a handle
    session: str = ""

    def person(self, tenant: str) -> Person:
        return Handle(self.channel, self.id, tenant) if self.channel else User(self.id, tenant)


def cookie_of(key: SealKey, sign_in: SignIn) -> str:
    return _sealed(key, asdict(sign_in), Place(Kind.INSPECTOR, NOWHERE, NOWHERE, 1))


def sign_in_of(key: SealKey, cookie: str, now: float) -> SignIn | None:
    """What a cookie holds; None for one that is none of ours, or too old."""
    try:
        sign_in = SignIn(**_opened(key, cookie, Place(Kind.INSPECTOR, NOWHERE, NOWHERE, 1)))
    except (Damaged, ValueError, TypeError):
        return None
    return sign_in if now < sign_in.until else None


def ticket_of(key: SealKey, sign_in: SignIn, purpose: Purpose, ticket: Ticket) -> str:
    content = {**asdict(ticket), "by": sign_in.token}
    return _sealed(key, content, _place(sign_in, purpose))


def read_ticket(key: SealKey, sign_in: SignIn, purpose: Purpose, text: str) -> Ticket | None:
    """What a ticket stands for; None for one of another purpose, key or sign-in."""
    try:
        content = _opened(key, text, _place(sign_in, purpose))
        by = content.pop("by")
        return Ticket(**content) if by == sign_in.token else None
    except (Damaged, ValueError, TypeError, KeyError):
        return None


def _place(sign_in: SignIn, purpose: Purpose) -> Place:
    hash = bytes.fromhex(sign_in.key)
    return Place(Kind.INSPECTOR, hash[:16], hash[16:], _NUMBER[purpose])


def _sealed(key: SealKey, content: dict[str, Any], place: Place) -> str:
    data = key.seal(json.dumps(content, ensure_ascii=False).encode("utf-8"), place)
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _opened(key: SealKey, text: str, place: Place) -> dict[str, Any]:
    """Raises `Damaged`, `ValueError`."""
    if len(text) > MOST:
        raise Damaged
    content: dict[str, Any] = json.loads(key.open(unpacked(text), place))
    return content
