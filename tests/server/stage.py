"""A running server and, behind it, a scripted upstream; both listen on this machine."""

from __future__ import annotations

import asyncio
import http.server
import json
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import httpx
import uvicorn
from fastapi import FastAPI

from nitka import Nitka
from nitka.models.ports import ChatModel
from nitka.server import keys
from nitka.server.app import create_app
from nitka.server.service import Options, Service
from nitka.server.upstream import HttpUpstream
from nitka.store.port import Store
from nitka.testing import FixedClock, MemoryStore, memory_ring
from nitka.types import Limits, Message, User
from nitka.vault.roots import RootKeys
from nitka.world import random_bytes

T = TypeVar("T")
Body = dict[str, Any]


def says(text: str | None, *, finish: str = "stop", **more: Any) -> Body:
    """A whole answer of the chat API."""
    message = {"role": "assistant", "content": text, **more}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
    return {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "choices": [choice], "usage": usage}


def calls(*names: str) -> Body:
    """An answer that asks for tools."""
    asked = [
        {"id": f"call_{name}", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in names
    ]
    return says(None, finish="tool_calls", tool_calls=asked)


@dataclass(frozen=True)
class Fails:
    """An answer that is an error."""

    status: int
    body: Body | str = field(default_factory=lambda: {"error": {"message": "no", "type": "t", "code": "c"}})
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Script:
    """What the upstream answers. `answer` is asked for each request, `chunk` characters go in each piece of a stream,
    with `pause` seconds between them; `breaks_after` pieces the line breaks; `hold` waits after as many until `go`.
    """

    answer: Callable[[Body], Body | Fails] = field(default=lambda body: says("All right."))
    chunk: int = 4
    pause: float = 0.0
    breaks_after: int | None = None
    hold: int | None = None
    go: threading.Event = field(default_factory=threading.Event)
    asked: list[Body] = field(default_factory=list)
    gone: threading.Event = field(default_factory=threading.Event)

    @property
    def last(self) -> Body:
        return self.asked[-1]

    def texts(self) -> list[tuple[str, Any]]:
        """Roles and contents of the last request."""
        return [(message["role"], message.get("content")) for message in self.last["messages"]]


def pieces(answer: Body, size: int) -> Iterator[Body]:
    """A whole answer as the deltas of its stream."""
    choice = answer["choices"][0]
    message = choice["message"]
    yield {"role": "assistant", "content": ""}
    text = message.get("content") or ""
    yield from ({"content": text[at : at + size]} for at in range(0, len(text), size))
    for number, call in enumerate(message.get("tool_calls", ())):
        yield {"tool_calls": [{"index": number, **call}]}


class Upstream(http.server.BaseHTTPRequestHandler):
    """One connection to the scripted upstream."""

    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.script.asked.append(body)
        answer = self.script.answer(body)
        if isinstance(answer, Fails):
            text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
            self._send(answer.status, text.encode(), headers=answer.headers)
        elif body.get("stream"):
            try:
                self._stream(answer, body)
            except OSError:
                self.script.gone.set()
        else:
            self._send(200, json.dumps({**answer, "model": body["model"]}).encode())

    def do_GET(self) -> None:
        models = [{"id": "scripted-1", "object": "model", "created": 1, "owned_by": "tests"}]
        self._send(200, json.dumps({"object": "list", "data": models}).encode())

    def _send(self, status: int, data: bytes, *, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, answer: Body, body: Body) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        for number, delta in enumerate(pieces(answer, self.script.chunk)):
            if number == self.script.breaks_after:
                return
            if number == self.script.hold:
                self.script.go.wait(30)
            threading.Event().wait(self.script.pause)
            self._event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        finish = answer["choices"][0]["finish_reason"]
        self._event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            self._event({**head, "choices": [], "usage": answer["usage"]})
        self.wfile.write(b"data: [DONE]\n\n")

    def _event(self, value: Body) -> None:
        self.wfile.write(f"data: {json.dumps(value)}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        pass


class Listening(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


@contextmanager
def upstream(script: Script) -> Iterator[str]:
    """The scripted upstream; gives its base URL."""
    with Listening(("127.0.0.1", 0), type("Scripted", (Upstream,), {"script": script})) as listening:
        thread = threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}/v1"
        finally:
            script.go.set()
            listening.shutdown()
            thread.join()


def http_client(**options: Any) -> httpx.Client:
    """A client for addresses without TLS: to load whom it may trust would take longer than most tests."""
    return httpx.Client(verify=False, **{"timeout": 30, **options})


@dataclass
class Stage:
    """A running server. `url` has no `/v1`."""

    url: str
    script: Script
    nitka: Nitka
    store: Store
    clock: FixedClock
    app: FastAPI
    running: Running
    behind: HttpUpstream
    clients: list[httpx.Client] = field(default_factory=list)
    users: set[User] = field(default_factory=lambda: {User("anna")})

    @cached_property
    def plain(self) -> httpx.Client:
        """An HTTP client without a key."""
        return http_client(base_url=self.url)

    def clear(self) -> None:
        """As if nothing had been said yet: for the next test."""
        for user in self.users:
            self.run(self.nitka.forget(user))
        self.service.retries._keys.clear()
        self.script.go.set()
        while self.clients:
            self.clients.pop().close()

    def idle(self) -> None:
        """Waits until the server has nothing to do."""
        until = time.monotonic() + 30
        while self.running.server.server_state.tasks and time.monotonic() < until:
            time.sleep(0.01)
        assert not self.running.server.server_state.tasks

    @property
    def service(self) -> Service:
        found: Service = self.app.state.service
        return found

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs something in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self.running.loop).result(30)

    def key(self, *scopes: str, tenant: str = "", **more: Any) -> str:
        """A new API key."""
        grant = keys.grant_of(scopes=scopes or ("turns",), tenant=tenant, **{"rate": 1_000_000, **more})
        secret = keys.secret_of(grant.kind, random_bytes(32))
        self.users.add(User("anna", tenant))

        async def add() -> None:
            key = await self.nitka._vault.keychain.system_key()
            await self.store.add_api_key(keys.seal(key, keys.hash_of(secret), 1, grant))

        self.run(add())
        return secret

    def client(self, *scopes: str, tenant: str = "", **headers: str) -> httpx.Client:
        """An HTTP client with a key."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        auth = {"Authorization": f"Bearer {self.key(*scopes, tenant=tenant)}"}
        self.clients.append(http_client(base_url=self.url, headers={**auth, **named}))
        return self.clients[-1]

    def rows(self, user: str = "anna", session: str = "s", tenant: str = "") -> list[tuple[str, str]]:
        """What is kept of a session."""
        self.users.add(User(user, tenant))
        found = self.run(self.nitka.history(User(user, tenant), session, limit=1000))
        return [(message.role, message.text) for message in found]

    def messages(self, user: str = "anna", session: str = "s") -> tuple[Message, ...]:
        return self.run(self.nitka.history(user, session, limit=1000))


class Running(threading.Thread):
    """uvicorn in a thread with an event loop of its own."""

    loop: asyncio.AbstractEventLoop

    def __init__(self, app: FastAPI, grace: int | None) -> None:
        super().__init__()
        config = uvicorn.Config(
            app, port=0, log_config=None, access_log=False, timeout_graceful_shutdown=grace, lifespan="on"
        )
        logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)
        self.server = uvicorn.Server(config)
        self._ready = threading.Event()

    def run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self.loop = asyncio.get_running_loop()
        task = asyncio.ensure_future(self.server.serve())
        while not self.server.started and not task.done():
            await asyncio.sleep(0.005)
        self._ready.set()
        await task

    def begin(self) -> str:
        """Starts, and gives the address once it listens."""
        self.start()
        assert self._ready.wait(30)
        return f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}"

    def end(self) -> None:
        self.server.should_exit = True
        self.join(60)


@contextmanager
def serving(
    script: Script,
    *,
    store: Store | None = None,
    keys: RootKeys | None = None,
    options: Options | None = None,
    limits: Limits | None = None,
    grace: int | None = 5,
    forward: bool = True,
    model: ChatModel | None = None,
) -> Iterator[Stage]:
    """The server over a store in memory, in a thread of its own. `model` answers native turns; folds are offline."""
    store = store or MemoryStore()
    clock = FixedClock()
    nitka = Nitka.open(
        store, model=model or "offline", fold_model="offline", keys=keys or memory_ring(), limits=limits, clock=clock
    )
    with upstream(script) as base:
        behind = HttpUpstream("scripted-1", base_url=base)
        app = create_app(nitka, upstream=behind if forward else None, options=options, clock=clock)
        running = Running(app, grace)
        stage = Stage(running.begin(), script, nitka, store, clock, app, running, behind)
        try:
            yield stage
        finally:
            if running.is_alive():
                stage.clear()
            stage.plain.close()
            running.end()
