"""A server of tests: the application over a store in memory, a model that is told what to say, and keys to it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from fastapi import FastAPI

from nitka import Limits, Nitka
from nitka.server import keys as api_keys
from nitka.server.app import create_app
from nitka.server.service import Options
from nitka.store.port import Store
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.vault.roots import RootKeys
from nitka.world import random_bytes

SITE = "https://shop.example"
LIMITS = Limits(window=4, wait_seconds=5)


def echo(messages: Any) -> str:
    return f"I heard: {messages[-1]['content']}"


@dataclass(kw_only=True)
class House:
    """A running server and the means to call it. `key` is one that may do everything for the tenant "shop"."""

    app: FastAPI
    nitka: Nitka
    clock: FixedClock
    model: FakeModel
    store: Store
    client: httpx.AsyncClient
    key: str = ""

    async def make_key(
        self, *scopes: str, tenant: str = "shop", origins: tuple[str, ...] = (), rate: int = 1_000_000
    ) -> str:
        grant = api_keys.grant_of(scopes=scopes, tenant=tenant, origins=origins, rate=rate)
        secret = api_keys.secret_of(grant.kind, random_bytes(api_keys.SECRET_BYTES))
        key = await self.nitka._vault.keychain.system_key()
        await self.store.add_api_key(api_keys.seal(key, api_keys.hash_of(secret), 0, grant))
        return secret

    def headers(
        self, user: str | None = "anna", session: str | None = "web-1", key: str | None = None
    ) -> dict[str, Any]:
        named = {"X-Nitka-User": user, "X-Nitka-Session": session, "Authorization": f"Bearer {key or self.key}"}
        return {name: value.encode("utf-8") for name, value in named.items() if value is not None}

    async def post(
        self, path: str, body: Any = None, *, more: Mapping[str, str] | None = None, **who: Any
    ) -> httpx.Response:
        headers = self.headers(**who) | {"Content-Type": "application/json"} | dict(more or {})
        return await self.client.post(path, content=json.dumps({} if body is None else body), headers=headers)

    async def get(self, path: str, *, more: Mapping[str, str] | None = None, **who: Any) -> httpx.Response:
        return await self.client.get(path, headers=self.headers(**who) | dict(more or {}))

    async def delete(self, path: str, **who: Any) -> httpx.Response:
        return await self.client.delete(path, headers=self.headers(**who))


@asynccontextmanager
async def housed(
    model: FakeModel | None = None,
    *,
    store: Store | None = None,
    limits: Limits = LIMITS,
    watch: Mapping[str, str] | None = None,
    options: Options | None = None,
    keys: RootKeys | None = None,
    **more: Any,
) -> AsyncIterator[House]:
    """A server while the block lasts. `more` goes to `create_app`."""
    model, store, clock = model or FakeModel(echo), store or MemoryStore(), FixedClock()
    nitka = Nitka.open(
        store, model=model, fold_model="offline", keys=keys or memory_ring(), limits=limits, clock=clock, watch=watch
    )
    app = create_app(nitka, options=options, clock=clock, **more)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://server", timeout=30) as client,
    ):
        house = House(app=app, nitka=nitka, clock=clock, model=model, store=store, client=client)
        house.key = await house.make_key("turns", "read", "admin", "parse")
        yield house


def events(text: str) -> list[tuple[str, str, Any]]:
    """Server-sent events as (event, id, data), comments left out."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            found.append((fields.get("event", "message"), fields.get("id", ""), json.loads(fields["data"])))
    return found


class Wire:
    """One request spoken as ASGI, whose client may go in the middle. `gone` says when, by what was sent so far."""

    def __init__(self, app: FastAPI) -> None:
        self.app = app
        self.status = 0
        self.body = b""

    async def post(self, path: str, body: Any, headers: Mapping[str, bytes], *, gone_after: int) -> None:
        import asyncio

        went = asyncio.Event()
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}
            await went.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
            else:
                self.body += message.get("body", b"")
                if self.body.count(b"\n\n") >= gone_after:
                    went.set()
                    await asyncio.sleep(0)

        raw = [(name.lower().encode(), value) for name, value in headers.items()]
        raw.append((b"content-type", b"application/json"))
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "root_path": "",
            "headers": raw,
            "client": ("127.0.0.1", 1),
            "server": ("server", 80),
        }
        await self.app(scope, receive, send)
