"""API keys: what one is, how it is made, and how it lies in the store.

A key is a prefix that tells its kind and 256 random bits. The store has the SHA-256 of it, which needs no salt and no
stretching, since nothing is there to be guessed; beside it, sealed with the system's key and bound to that hash, the
tenant and what the key may do. The key itself is shown once and kept nowhere.

* `nk_`: secret, for a server of the tenant's.
* `pk_`: public, for a widget in a page: it speaks only for visitors it made itself, from the origins it names. With it
  comes a signing secret, `ws_`, for the server of those pages: what is signed with it speaks for a user. Unlike a key
  it must be there to be used, so it lies in what is sealed. A key from before there were any has none.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal
from urllib.parse import urlsplit

from nitka.errors import BadInput
from nitka.store.port import ApiKeyRow
from nitka.vault.keychain import id_bytes
from nitka.vault.seal import Kind, Place, SealKey

KeyKind = Literal["server", "widget"]

PREFIXES: dict[KeyKind, str] = {"server": "nk_", "widget": "pk_"}
SCOPES = ("turns", "read", "admin", "parse", "metrics", "widget")
"""turns: hold conversations. read: see what is kept. admin: change, export and forget it. parse: the watch. metrics:
the numbers of the whole server. widget: what a public key may do."""

SIGNING = "ws_"
RATE = 600
SECRET_BYTES = 32
MAX_NAME = 100
MAX_RATE = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """What a key stands for. `rate` is requests a minute."""

    tenant: str = ""
    scopes: tuple[str, ...]
    kind: KeyKind = "server"
    name: str = ""
    origins: tuple[str, ...] = ()  # of a widget: "https://shop.example"
    rate: int = RATE
    until: int = 0  # milliseconds since 1970; 0: it does not expire
    signing: str = field(default="", repr=False)  # of a widget: what its host signs user tokens with


def grant_of(
    *,
    scopes: Iterable[str],
    tenant: str = "",
    name: str = "",
    origins: Iterable[str] = (),
    rate: int = RATE,
    until: int = 0,
    signing: str = "",
) -> Grant:
    """A grant from what an operator writes; the scope "widget" makes it a public one, to which alone `signing` is
    given. Raises `BadInput`.
    """
    asked = tuple(scope for scope in SCOPES if scope in set(scopes))
    unknown = set(scopes) - set(SCOPES)
    if unknown or not asked:
        raise BadInput(f"Scopes are some of: {', '.join(SCOPES)}.")
    kind: KeyKind = "widget" if "widget" in asked else "server"
    if kind == "widget" and len(asked) > 1:
        raise BadInput("A widget's key is public: it has the scope widget and no other.")
    sites = tuple(dict.fromkeys(map(origin, origins)))
    if (kind == "widget") is not bool(sites):
        raise BadInput("A widget's key names the origins of the pages it is used on, and only a widget's key does.")
    if not 1 <= rate <= MAX_RATE:
        raise BadInput(f"A rate is 1 to {MAX_RATE:,} requests a minute.")
    if tenant:
        id_bytes(tenant, "tenant id")
    if len(name) > MAX_NAME or not (name.isprintable() or not name):
        raise BadInput(f"A name is one line of at most {MAX_NAME} characters.")
    signing = signing if kind == "widget" else ""
    return Grant(
        tenant=tenant, scopes=asked, kind=kind, name=name, origins=sites, rate=rate, until=until, signing=signing
    )


def origin(value: str) -> str:
    """An origin as browsers send it (RFC 6454, 6.2). Raises `BadInput`."""
    try:
        parts = urlsplit(value)
        port = parts.port
    except ValueError:
        raise BadInput("An origin is a scheme, a host and perhaps a port: https://shop.example") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/") or "@" in parts.netloc:
        raise BadInput("An origin is a scheme, a host and perhaps a port: https://shop.example")
    if parts.query or parts.fragment or not value.isascii() or "*" in value:
        raise BadInput("An origin is a scheme, a host and perhaps a port: https://shop.example")
    usual = {"http": 80, "https": 443}[parts.scheme]
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}" + (f":{port}" if port not in (None, usual) else "")


def secret_of(kind: KeyKind, randomness: bytes) -> str:
    """A key from 32 random bytes."""
    return PREFIXES[kind] + base64.urlsafe_b64encode(randomness).rstrip(b"=").decode()


def signing_of(randomness: bytes) -> str:
    """A signing secret from 32 random bytes."""
    return SIGNING + base64.urlsafe_b64encode(randomness).rstrip(b"=").decode()


def hash_of(secret: str) -> bytes:
    """What the store finds a key by."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).digest()


def id_of(hash: bytes) -> str:
    """What a key is called where it must not be told: in lists, logs and metrics."""
    return hash[:6].hex()


def seal(key: SealKey, hash: bytes, made: int, grant: Grant) -> ApiKeyRow:
    """The row of a key. `made` in milliseconds."""
    body = json.dumps(asdict(grant), ensure_ascii=False).encode()
    return ApiKeyRow(hash, made, key.seal(body, _place(hash, made)))


def unseal(key: SealKey, row: ApiKeyRow) -> Grant:
    """What the key of a row may do. Raises `Damaged`."""
    value = json.loads(key.open(row.body, _place(row.hash, row.made)))
    return Grant(**{**value, "scopes": tuple(value["scopes"]), "origins": tuple(value["origins"])})


def _place(hash: bytes, made: int) -> Place:
    return Place(Kind.API_KEY, hash[:16], hash[16:], made)
