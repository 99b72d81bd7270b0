"""Alerts delivered to the operator: signed, from the outbox, tried again for a day.

The form is that of Standard Webhooks (standardwebhooks.com, 1.0), so that its libraries verify it: `webhook-id`, the
same at every attempt; `webhook-timestamp`, seconds since 1970; `webhook-signature`, "v1," and the base64 of
HMAC-SHA256 over id, timestamp and body, joined by dots, one for each secret in force. The body has ids, rule, severity
and ages, and no text.

* An answer of 2xx is the receipt; anything else, and silence of `TIMEOUT` seconds, has the alert tried again later.
  Redirects are not followed. It may come twice, never changed: whoever receives it knows it by its id.
* A row is looked at before it is sent: what was forgotten since is not told.
* Any number of processes deliver from one outbox; a lease keeps two of them off the same row.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import TracebackType
from typing import Any, Self

import httpx

from nitka.alerting import millis, unpacked
from nitka.config import web_url
from nitka.conversation import Vault
from nitka.errors import BadInput, Damaged, NitkaError
from nitka.server.told import dumped
from nitka.store.port import OutboxRow
from nitka.watching import Watching
from nitka.world import Clock

log = logging.getLogger("nitka.server.webhook")

SECRET_PREFIX = "whsec_"
TIMEOUT = 10.0
LEASE = 120_000  # milliseconds
AT_ONCE = 10
POLL = 10.0  # seconds between two looks into the outbox, for what other processes put there
HOUR = 3_600.0
DAY = 24 * 3600 * 1000
BACK_OFF = (5, 30, 120, 600, 1_800, 3_600)
"""Seconds after the first, second, ... failure; the last one ever after."""


@dataclass(frozen=True, slots=True)
class Hook:
    """Where alerts go. `secrets` sign them, several while one is being replaced."""

    url: str = field(repr=False)
    secrets: tuple[bytes, ...] = field(repr=False)

    @classmethod
    def of(cls, url: str, secrets: str) -> Hook:
        """From what an operator writes: secrets begin with `whsec_` and are joined by spaces. Raises `BadInput`."""
        if not web_url(url):
            raise BadInput("The webhook is no http or https URL.")
        found = tuple(map(_secret, secrets.split()))
        if not found:
            raise BadInput("The webhook has no secret: alerts are signed.")
        return cls(url, found)

    def headers(self, id: str, at: datetime, body: bytes) -> dict[str, str]:
        """What is sent along with a body."""
        stamp = str(int(at.timestamp()))
        signed = b".".join((id.encode(), stamp.encode(), body))
        signatures = (base64.b64encode(hmac.digest(secret, signed, "sha256")).decode() for secret in self.secrets)
        return {
            "content-type": "application/json",
            "webhook-id": id,
            "webhook-timestamp": stamp,
            "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
        }


def _secret(text: str) -> bytes:
    """24 to 64 bytes in base64 after the prefix. Raises `BadInput`."""
    try:
        secret = base64.b64decode(text.removeprefix(SECRET_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        secret = b""
    if not text.startswith(SECRET_PREFIX) or not 24 <= len(secret) <= 64:
        raise BadInput(f"A webhook's secret is {SECRET_PREFIX} and the base64 of 24 to 64 random bytes.")
    return secret


Counted = Callable[[str], None]
"""Is told of each attempt how it went: delivered, failed, dropped."""


class Courier:
    """Delivers what is in the outbox, in the background: `async with Courier(...)`. Without a hook it only throws away
    what waited for one for more than a day.
    """

    def __init__(
        self,
        vault: Vault,
        watching: Watching,
        hook: Hook | None,
        clock: Clock,
        *,
        counted: Counted = lambda _: None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        self._vault = vault
        self._watching = watching
        self._hook = hook
        self._clock = clock
        self._counted = counted
        self._client = client or httpx.AsyncClient(timeout=TIMEOUT, follow_redirects=False)
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._watching.delivers = self._hook is not None
        self._watching.news = self._news.set
        self._task = asyncio.create_task(self._forever(), name="nitka-webhook")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._task is not None
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task
        await self._client.aclose()

    async def round(self) -> int:
        """Delivers what is due now; returns how many rows were looked at."""
        now = millis(self._clock())
        limit = AT_ONCE if self._hook else 0
        rows = await self._vault.store.take_outbox(now=now, until=now + LEASE, limit=limit, oldest=now - DAY)
        await asyncio.gather(*map(self._deliver, rows))
        return len(rows)

    async def _forever(self) -> None:
        while True:
            try:
                while await self.round():
                    pass
            except NitkaError as error:
                log.warning("the outbox cannot be read (%s); it is tried again", type(error).__name__)
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL if self._hook else HOUR):
                    await self._news.wait()
            self._news.clear()

    async def _deliver(self, row: OutboxRow) -> None:
        try:
            told = await self._told(row)
        except Damaged:
            log.warning("an alert does not open; it is dropped")
            told = None
        failure = None if told is None else await self._send(told)
        if failure is None:
            self._counted("dropped" if told is None else "delivered")
            await self._vault.store.remove_outbox(row.owner, row.id)
            return
        self._counted("failed")
        wait = BACK_OFF[min(max(row.attempts, 0), len(BACK_OFF) - 1)]
        log.warning("an alert was not taken (%s); it is tried again in %d seconds", failure, wait)
        retry_at = millis(self._clock()) + wait * 1000
        await self._vault.store.put_back_outbox(row.owner, row.id, retry_at=retry_at)

    async def _told(self, row: OutboxRow) -> dict[str, Any] | None:
        """What to send; None where there is nothing to tell any more."""
        owner = await self._vault.keychain.find(row.owner)
        if owner is None:
            return None
        try:
            return await unpacked(self._vault, owner, row)
        except Damaged:  # by a key that was opened before a forget? look again
            self._vault.keychain.drop(row.owner)
            owner = await self._vault.keychain.find(row.owner)
            return await unpacked(self._vault, owner, row) if owner is not None else None

    async def _send(self, told: dict[str, Any]) -> str | None:
        """Sends it; what went wrong, in words that quote nothing."""
        assert self._hook is not None
        body = dumped({"type": "alert.raised", "timestamp": told["raised"], "data": told})
        headers = self._hook.headers(told["id"], self._clock(), body)
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                self._client.stream("POST", self._hook.url, content=body, headers=headers) as response,
            ):
                return None if response.is_success else f"HTTP {response.status_code}"
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            return type(error).__name__
