"""Deliveries that come again without a key of their own.

OpenAI's clients send a request again by themselves, without an idempotency key, but they count (`x-stainless-retry-
count`). A first delivery gets a random turn key, remembered for ten minutes under a hash of who asked what where; a
later one gets that key again. Each worker process remembers its own; what another one remembers is found in the
conversation itself, where the last turn asks the same (`nitka.server.dealing`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from nitka.types import User

SECONDS = 600.0
KEPT = 20_000


class Retries:
    """Turn keys of the last ten minutes. `clock` gives seconds, `new_key` a random key."""

    def __init__(self, clock: Callable[[], float], new_key: Callable[[], str]) -> None:
        self._clock = clock
        self._new_key = new_key
        self._keys: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    def first(self, name: bytes) -> str:
        """The key of a first delivery."""
        self._drop()
        self._keys.pop(name, None)
        self._keys[name] = (self._clock() + SECONDS, self._new_key())
        return self._keys[name][1]

    def again(self, name: bytes) -> str | None:
        """The key that the delivery before had; None where it is not known here."""
        self._drop()
        return self._keys[name][1] if name in self._keys else None

    def _drop(self) -> None:
        now = self._clock()
        while self._keys and (len(self._keys) >= KEPT or next(iter(self._keys.values()))[0] <= now):
            self._keys.popitem(last=False)


def name_of(key_id: str, user: User, session: str, text: str) -> bytes:
    """Who asked what where, as 32 bytes that say nothing."""
    hashed = hashlib.sha256()
    for part in (key_id, user.tenant, user.id, session, text):
        data = part.encode("utf-8", "replace")
        hashed.update(len(data).to_bytes(8) + data)
    return hashed.digest()
