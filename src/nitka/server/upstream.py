"""The model behind the server, in OpenAI's own words: whole bodies go in, whole answers or their chunks come out.

Two adapters: any OpenAI-compatible server, forwarded to word for word, and any `ChatModel` of ours, which knows texts
only. Rules:

* Nothing is asked again here: the client's library does that, and both would make it a square.
* What the upstream says of an error is reduced to status, type, code and parameter: its words may quote the user. A
  refusal of OUR key is no business of the client's: a 502.
* Nothing of a request is kept.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from nitka.config import OPENAI, Settings
from nitka.errors import ModelError
from nitka.models import wire
from nitka.models.ports import ChatModel
from nitka.server.errors import Refusal
from nitka.world import Clock, random_bytes

ANSWER_BYTES = 20 << 20
"""The most that is read of one answer, in bytes."""

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
    """An OpenAI-compatible server at a base URL. `timeout` is the longest silence, in seconds."""

    def __init__(
        self, model: str, *, base_url: str, api_key: str = "", timeout: float = 60.0, connections: int = 1_000
    ) -> None:
        self.model = model
        self.limit = "max_completion_tokens" if base_url == OPENAI else "max_tokens"
        self._base, auth = _apart(base_url)
        limits = httpx.Limits(max_connections=connections, max_keepalive_connections=100)
        headers = {"Authorization": f"Bearer {api_key}"} if api_key and not auth else {}
        self._client = httpx.AsyncClient(timeout=timeout, limits=limits, headers=headers, auth=auth)
        self._url = f"{self._base}/chat/completions"

    @classmethod
    def of(cls, name: str, settings: Settings) -> HttpUpstream:
        return cls(name, base_url=settings.base_url, api_key=settings.api_key, timeout=settings.timeout)

    async def complete(self, body: Body) -> dict[str, Any]:
        try:
            async with self._ask(body) as response:
                return await _answer(response)
        except httpx.HTTPError as error:
            raise _lost(error) from None

    async def stream(self, body: Body) -> AsyncGenerator[Chunk, None]:
        try:
            async with self._ask(body) as response:
                if "json" in response.headers.get("content-type", ""):  # an error, or a server that cannot stream
                    for chunk in _as_chunks(await _answer(response)):
                        yield chunk
                    return
                if response.status_code != httpx.codes.OK:
                    raise _refused(response, await _read(response))
                async with aclosing(_chunks(response)) as chunks:
                    async for chunk in chunks:
                        yield chunk
        except httpx.HTTPError as error:
            raise _lost(error) from None

    async def models(self) -> list[Body]:
        try:
            async with self._client.stream("GET", f"{self._base}/models") as response:
                data = (await _answer(response)).get("data")
        except httpx.HTTPError as error:
            raise _lost(error) from None
        return [item for item in data if isinstance(item, Mapping)] if isinstance(data, list) else []

    async def close(self) -> None:
        await self._client.aclose()

    def _ask(self, body: Body) -> Any:
        return self._client.stream(
            "POST", self._url, content=encoded(body), headers={"Content-Type": "application/json"}
        )


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


def _apart(base_url: str) -> tuple[str, tuple[str, str] | None]:
    """The address, and the user and password that stood in it: an address may end in a log, they must not."""
    parts = urlsplit(base_url)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2], path=parts.path.rstrip("/"))), auth


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


async def _answer(response: httpx.Response) -> dict[str, Any]:
    data = await _read(response)
    if response.status_code != httpx.codes.OK:
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


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > ANSWER_BYTES:
            raise _bad("The upstream's answer is over 20 MB.")
    return bytes(body)


async def _chunks(response: httpx.Response) -> AsyncGenerator[Chunk, None]:
    async with aclosing(_lines(response)) as lines:
        async for line in lines:
            if not line.startswith(b"data:"):
                continue  # a comment, a name, an empty line: chat completions put each value in one line
            data = line[5:].strip()
            if data == b"[DONE]":
                return
            yield _parsed(response, data)
    raise Refusal("The upstream's stream broke off before its end.", status=502, code="upstream_broke_off")


def _parsed(response: httpx.Response, data: bytes) -> Chunk:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise _bad("A chunk of the upstream's stream is not JSON.") from None
    if not isinstance(value, dict):
        raise _bad("A chunk of the upstream's stream is not a JSON object.")
    if value.get("error"):
        raise _refused(response, data)
    return Chunk(b"data: " + data + b"\n\n", value)


async def _lines(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    held, size = b"", 0
    async for piece in response.aiter_bytes():
        size += len(piece)
        if size > ANSWER_BYTES:
            raise _bad("The upstream's answer is over 20 MB.")
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            yield line.rstrip(b"\r")
    if held:
        yield held.rstrip(b"\r")


def _refused(response: httpx.Response, data: bytes) -> Refusal:
    """What the upstream refused with, by status, type, code and parameter. An error in the dress of an answer is a
    502, unless it says its status.
    """
    complaint = wire.Complaint.read(data[: 1 << 16])
    status = response.status_code if response.status_code >= 400 else complaint.status or 502
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


def _lost(error: httpx.HTTPError) -> Refusal:
    """A failure of the network; the library's own words may quote the server, so only the kind is told."""
    status = 504 if isinstance(error, httpx.TimeoutException) else 502
    return Refusal(
        f"The upstream cannot be reached ({type(error).__name__}).", status=status, code="upstream_unreachable"
    )


def _bad(message: str) -> Refusal:
    return Refusal(message, status=502, code="upstream_error")
