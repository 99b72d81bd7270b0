"""The model behind the server, in OpenAI's own words: whole bodies go in, whole answers or their chunks come out.

Two adapters: any OpenAI-compatible server, forwarded to word for word, and any `ChatModel` of ours, which knows texts
only. Rules:

* Nothing is asked again here: the client's library does that, and both would make it a square.
* What the upstream says of an error is reduced to status, type, code and parameter: its words may quote the user. A
  refusal of OUR key is no business of the client's: a 502.
* Nothing of a request is kept.
"""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

import aiohttp

from nitka.config import OPENAI, Settings
from nitka.errors import ModelError
from nitka.models import wire
from nitka.models.ports import ChatModel
from nitka.server.errors import Refusal
from nitka.world import Clock, random_bytes

ANSWER_BYTES = 20 << 20
"""The most that is read of one answer, in bytes."""

CONNECT = 10.0
"""Seconds that a connection may take to open."""

OK = 200

Body = Mapping[str, Any]


class Chunk(NamedTuple):
    """One chunk of a streamed answer: the event as it came, and what it says."""

    raw: bytes
    value: Body


class Upstream(Protocol):
    """Asked in the form of the chat API. Raises `Refusal` for whatever the upstream or the network did."""

    model: str  # what is asked where the client names none
    limit: str  # what it calls the length of an answer

    async def complete(self, body: Body) -> dict[str, Any]:
        """A whole answer."""
        ...

    def stream(self, body: Body) -> AsyncGenerator[Chunk, None]:
        """Its chunks, without the closing mark. Ends early, without an error, only where the upstream said that it
        was done.
        """
        ...

    async def models(self) -> list[Body]: ...

    async def close(self) -> None: ...


class HttpUpstream:
    """An OpenAI-compatible server at a base URL. `timeout` is the longest silence, in seconds.

    The client is aiohttp's: of the processor time of a forwarded turn httpx took the larger half, aiohttp a tenth of
    that.
    """

    def __init__(
        self, model: str, *, base_url: str, api_key: str = "", timeout: float = 60.0, connections: int = 1_000
    ) -> None:
        self.model = model
        self.limit = "max_completion_tokens" if base_url == OPENAI else "max_tokens"
        self.base, auth = _apart(base_url)
        self._key = {"Authorization": auth or f"Bearer {api_key}"} if auth or api_key else {}
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(timeout, CONNECT), sock_read=timeout)
        self._connections = connections
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    def of(cls, name: str, settings: Settings) -> HttpUpstream:
        return cls(name, base_url=settings.base_url, api_key=settings.api_key, timeout=settings.timeout)

    async def complete(self, body: Body) -> dict[str, Any]:
        async with self._asked("POST", "/chat/completions", encoded(body)) as response:
            return await _answer(response)

    async def stream(self, body: Body) -> AsyncGenerator[Chunk, None]:
        async with self._asked("POST", "/chat/completions", encoded(body)) as response:
            if "json" in response.headers.get("content-type", ""):  # an error, or a server that cannot stream
                for chunk in _as_chunks(await _answer(response)):
                    yield chunk
                return
            if response.status != OK:
                raise _refused(response, await _read(response))
            async with aclosing(_chunks(response)) as chunks:
                async for chunk in chunks:
                    yield chunk

    async def models(self) -> list[Body]:
        async with self._asked("GET", "/models") as response:
            data = (await _answer(response)).get("data")
        return [item for item in data if isinstance(item, Mapping)] if isinstance(data, list) else []

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    @asynccontextmanager
    async def _asked(self, method: str, path: str, body: bytes | None = None) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response, and every failure of the network as a `Refusal`. A connection that the upstream closed while it
        was idle is tried anew, once.
        """
        session = self._opened()
        try:
            try:
                response = await session.request(method, self.base + path, data=body, allow_redirects=False)
            except aiohttp.ServerDisconnectedError:
                response = await session.request(method, self.base + path, data=body, allow_redirects=False)
            async with response:
                yield response
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _lost(error) from None

    def _opened(self) -> aiohttp.ClientSession:
        """The client, made in the event loop that uses it."""
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"Content-Type": "application/json", **self._key},
                timeout=self._timeout,
            )
        return self._session


class ModelUpstream:
    """A chat model of ours, dressed as an upstream: one text in, one text out."""

    def __init__(self, model: ChatModel, clock: Clock, *, room: int) -> None:
        self.model = model.name
        self.limit = "max_tokens"
        self._chat = model
        self._clock = clock
        self._room = room

    async def complete(self, body: Body) -> dict[str, Any]:
        _only_text(body)
        try:
            answer = await self._chat.complete(body["messages"], max_tokens=room_of(body) or self._room)
        except ModelError as error:
            raise _failed(error) from None
        message = {"role": "assistant", "content": answer.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head(body, "chat.completion"), "choices": [choice], "usage": _usage(answer.usage)}

    async def stream(self, body: Body) -> AsyncGenerator[Chunk, None]:
        _only_text(body)
        head = self._head(body, "chat.completion.chunk")
        deltas: AsyncIterator[str] = self._chat.stream(body["messages"], max_tokens=room_of(body) or self._room)
        try:
            yield _chunk(head, {"role": "assistant", "content": ""})
            async for piece in deltas:
                yield _chunk(head, {"content": piece})
        except ModelError as error:
            raise _failed(error) from None
        finally:
            if (close := getattr(deltas, "aclose", None)) is not None:
                await close()
        yield _chunk(head, {}, "stop")

    async def models(self) -> list[Body]:
        made = int(self._clock().timestamp())
        return [{"id": self.model, "object": "model", "created": made, "owned_by": "nitka"}]

    async def close(self) -> None:
        """The model is nitka's to close."""

    def _head(self, body: Body, kind: str) -> dict[str, Any]:
        return head_of(kind, model=str(body.get("model") or self.model), at=int(self._clock().timestamp()))


def head_of(kind: str, *, model: str, at: int) -> dict[str, Any]:
    """The outer fields of an answer, or of a chunk, that we make ourselves."""
    return {"id": f"chatcmpl-{random_bytes(12).hex()}", "object": kind, "created": at, "model": model}


def room_of(body: Body) -> int:
    """The tokens the client keeps for the answer; 0 where it does not say."""
    asked = body.get("max_completion_tokens") or body.get("max_tokens")
    return asked if isinstance(asked, int) and asked > 0 else 0


def encoded(body: Body) -> bytes:
    """A body as it goes upstream. Lone surrogates become U+FFFD. Raises `Refusal` for what JSON cannot say."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (ValueError, RecursionError):
        raise Refusal("The body holds what JSON cannot say.", code="invalid_value") from None
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _apart(base_url: str) -> tuple[str, str]:
    """The address, and the user and password that stood in it as they are sent (RFC 7617): an address may end in a log,
    they must not.
    """
    parts = urlsplit(base_url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/")))
    if not parts.username:
        return bare, ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return bare, f"Basic {base64.b64encode(pair.encode()).decode()}"


def _chunk(head: Body, delta: Body, finish: str | None = None) -> Chunk:
    value = {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]}
    return Chunk(b"data: " + encoded(value) + b"\n\n", value)


def _usage(counts: Mapping[str, int]) -> dict[str, int]:
    asked, said = counts.get("prompt_tokens", 0), counts.get("completion_tokens", 0)
    return {"prompt_tokens": asked, "completion_tokens": said, "total_tokens": asked + said}


def _only_text(body: Body) -> None:
    if body.get("tools") or body.get("functions"):
        raise Refusal("This server's model takes no tools.", code="unsupported_parameter", param="tools")


def _as_chunks(value: Body) -> list[Chunk]:
    """A whole answer as the chunks of a stream: what it says, and why it ends."""
    choices = value.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else {}
    head = {**value, "object": "chat.completion.chunk", "usage": None}
    finish = first.get("finish_reason")
    return [_chunk(head, first.get("message") or {}), _chunk(head, {}, finish if isinstance(finish, str) else "stop")]


async def _answer(response: aiohttp.ClientResponse) -> dict[str, Any]:
    data = await _read(response)
    if response.status != OK:
        raise _refused(response, data)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad("The upstream's answer is not JSON.") from None
    if not isinstance(value, dict):
        raise _bad("The upstream's answer is not a JSON object.")
    if value.get("error"):
        raise _refused(response, data)
    return value


async def _read(response: aiohttp.ClientResponse) -> bytes:
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > ANSWER_BYTES:
            raise _bad("The upstream's answer is over 20 MB.")
    return bytes(body)


async def _chunks(response: aiohttp.ClientResponse) -> AsyncGenerator[Chunk, None]:
    async with aclosing(_lines(response)) as lines:
        async for line in lines:
            if not line.startswith(b"data:"):
                continue  # a comment, a name, an empty line: chat completions put each value in one line
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            yield _parsed(response, data)
    raise Refusal("The upstream's stream broke off before its end.", status=502, code="upstream_broke_off")


def _parsed(response: aiohttp.ClientResponse, data: bytes) -> Chunk:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad("A chunk of the upstream's stream is not JSON.") from None
    if not isinstance(value, dict):
        raise _bad("A chunk of the upstream's stream is not a JSON object.")
    if value.get("error"):
        raise _refused(response, data)
    return Chunk(b"data: " + data + b"\n\n", value)


async def _lines(response: aiohttp.ClientResponse) -> AsyncGenerator[bytes, None]:
    held, size = b"", 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > ANSWER_BYTES:
            raise _bad("The upstream's answer is over 20 MB.")
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    if held:
        yield held.rstrip(b"\r")


def _refused(response: aiohttp.ClientResponse, data: bytes) -> Refusal:
    """What the upstream refused with, by status, type, code and parameter. An error in the dress of an answer is a
    502, unless it says its status.
    """
    complaint = wire.Complaint.read(data[: 1 << 16])
    status = response.status if response.status >= 400 else complaint.status or 502
    told = ", ".join(word for word in (f"HTTP {status}", complaint.type, complaint.code) if word)
    if status in (401, 403) or status < 400 or status > 599:
        return _bad(f"The upstream refused this server ({told}).")
    after = response.headers.get("retry-after", "")
    return Refusal(
        f"The upstream refused: {told}.",
        status=status,
        code=complaint.code or None,
        param=complaint.param or None,
        kind=complaint.type,
        headers={"Retry-After": after} if after.isascii() and after.isprintable() and after else {},
    )


def _failed(error: ModelError) -> Refusal:
    status = error.status if error.status is not None and error.status >= 400 else 502
    return Refusal(str(error), status=502 if status in (401, 403) else status, code="model_error")


def _lost(error: aiohttp.ClientError | TimeoutError) -> Refusal:
    """A failure of the network; the library's own words may quote the server, so only the kind is told."""
    status = 504 if isinstance(error, TimeoutError) else 502
    return Refusal(
        f"The upstream cannot be reached ({type(error).__name__}).", status=status, code="upstream_unreachable"
    )


def _bad(message: str) -> Refusal:
    return Refusal(message, status=502, code="upstream_error")
