"""Any server that speaks OpenAI's chat protocol: OpenAI itself, Ollama, vLLM, llama.cpp and the like.

Rules.
* What the model or the network did wrong is a `ModelError` with the status and the error's type and code. Never in it:
  the server's own words (they may quote the user), the key, the address.
* Asked again, with growing pauses: 408, 409, 429, 5xx, lost connections and time-outs, and only while nothing of the
  answer was handed out. A `Retry-After` is obeyed up to a minute; a longer one is an error that may be retried later.
* What servers call things differently is found out by asking: `max_tokens` or `max_completion_tokens`, a JSON Schema,
  a JSON object or words alone. A refusal (400, 422) is answered in the next dialect, which is then kept.
* Reasoning is not an answer. An answer that is empty, or nothing but reasoning, is an error, as is a stream that
  stops before it says that it is done, after its pieces.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx

from nitka.config import OPENAI, web_url
from nitka.errors import BadInput, ModelError
from nitka.models import wire
from nitka.models.ports import Answer
from nitka.models.think import ThinkFilter
from nitka.models.wire import Dialect, Failure
from nitka.types import ChatMessage

ANSWER_BYTES = 10 << 20
"""The most that is read of one answer, in bytes."""

LONGEST_WAIT = 60.0
"""Seconds between two attempts, at most."""

T = TypeVar("T")


def _middle() -> float:
    return 0.5


class OpenAIChat:
    """A chat model behind an OpenAI-compatible server; see `nitka.models.ports.ChatModel`.

    `base_url` includes the version (`http://localhost:11434/v1`) and may hold a user and a password, which then go in
    place of `api_key`. `timeout` is the longest silence in seconds, not the longest answer. `attempts` counts the
    first. `sleep` and `jitter` (0 to 1) are injected. A `client` that is given stays the giver's to close.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str = "",
        timeout: float = 60.0,
        attempts: int = 4,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = _middle,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if not model.strip():
            raise BadInput("A model has a name.")
        if not web_url(base_url):
            raise BadInput("The base URL of a model server begins with http:// or https:// and has a host.")
        if not (api_key.isascii() and api_key.isprintable()):
            raise BadInput("An API key is printable ASCII.")
        self.name = f"openai:{model}"
        self._model = model
        self._url, self._auth = _split(base_url)
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key and not self._auth else {}
        self._timeout = timeout
        self._attempts = max(1, attempts)
        self._sleep, self._jitter = sleep, jitter
        self._client, self._own = client, client is None
        self._dialect = Dialect(limit="max_completion_tokens" if base_url == OPENAI else "max_tokens")

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r})"

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        """The whole answer, at most `max_tokens` long; with `schema`, JSON. Raises `ModelError`."""

        async def ask() -> Answer:
            async with AsyncExitStack() as stack:
                response = await self._open(stack, messages, max_tokens, schema=schema)
                body = await _read(response, ANSWER_BYTES)
            text, usage = wire.answer(wire.parsed(body))
            return Answer(text=text if schema is None else wire.json_only(text), usage=usage)

        return await self._patiently(ask)

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncGenerator[str, None]:
        """Pieces of the answer as they come. Raises `ModelError`, after some pieces too when the rest does not come."""
        async with AsyncExitStack() as stack:

            async def begin() -> tuple[str, AsyncIterator[str]]:
                async with AsyncExitStack() as inner:
                    response = await self._open(inner, messages, max_tokens, schema=None, stream=True)
                    pieces = await inner.enter_async_context(aclosing(_pieces(response)))
                    first = await anext(pieces)
                    stack.push_async_exit(inner.pop_all())
                    return first, pieces

            first, rest = await self._patiently(begin)
            yield first
            try:
                async for piece in rest:
                    yield piece
            except Failure as failure:
                raise failure.error from None
            except httpx.HTTPError as error:
                raise _lost(error).error from None

    async def close(self) -> None:
        """Give back the connections, if they are ours."""
        if self._client is not None and self._own:
            await self._client.aclose()
            self._client = None

    async def _patiently(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask until it works, as long as it may help."""
        for attempt in range(self._attempts):
            try:
                return await ask()
            except Failure as caught:
                failure = caught
            except httpx.HTTPError as error:
                failure = _lost(error)
            wait = _pause(attempt, self._jitter(), failure.after)
            if not failure.again or wait > LONGEST_WAIT or attempt + 1 == self._attempts:
                break
            await self._sleep(wait)
        raise failure.error from None

    async def _open(
        self,
        stack: AsyncExitStack,
        messages: Sequence[ChatMessage],
        max_tokens: int,
        *,
        schema: Mapping[str, Any] | None,
        stream: bool = False,
    ) -> httpx.Response:
        """A response that begins well, in a dialect that the server takes."""
        dialect: Dialect | None = self._dialect
        while dialect is not None:
            body = wire.body(dialect, self._model, messages, max_tokens, schema=schema, stream=stream)
            response = await stack.enter_async_context(self._call(body))
            if response.status_code == httpx.codes.OK:
                self._dialect = dialect
                return response
            complaint = wire.Complaint.read(await _read(response, 1 << 16, cut=True))
            dialect = dialect.after(complaint, response.status_code, schema is not None)
        raise wire.refused(response.status_code, complaint, wire.retry_after(response.headers))

    def _call(self, body: bytes) -> AbstractAsyncContextManager[httpx.Response]:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout)
        headers = {"Content-Type": "application/json", **self._headers}
        return self._client.stream(
            "POST", self._url, content=body, headers=headers, auth=self._auth, timeout=self._timeout
        )


def _split(base_url: str) -> tuple[str, tuple[str, str] | None]:
    """The address to call, and the user and password that stood in it: an address may end in a log, they must not."""
    parts = urlsplit(base_url)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2], path=f"{parts.path.rstrip('/')}/chat/completions")
    return urlunsplit(bare), auth


def _pause(attempt: int, jitter: float, after: float | None) -> float:
    """Seconds until the next attempt: half a second doubling, half of it by chance, and never before the server's."""
    pause = min(30.0, 0.5 * 2.0**attempt) * (0.5 + jitter / 2)
    return pause if after is None else max(pause, after)


def _lost(error: httpx.HTTPError) -> Failure:
    """A failure of the network; the library's own words may quote the server, so only the kind is kept."""
    passing = isinstance(error, httpx.TimeoutException | httpx.NetworkError | httpx.RemoteProtocolError)
    return Failure(ModelError(f"Network: {type(error).__name__}.", retryable=passing), again=passing)


async def _read(response: httpx.Response, limit: int, *, cut: bool = False) -> bytes:
    """The body of a response up to a limit; over it a failure, or, if `cut`, what fits."""
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > limit:
            if cut:
                return bytes(body[:limit])
            raise Failure(ModelError("The answer is over 10 MB."))
    return bytes(body)


async def _pieces(response: httpx.Response) -> AsyncGenerator[str, None]:
    """The visible pieces of a streamed answer, to its proper end, none of them empty, the first not blank."""
    reading, seen, spoke = ThinkFilter(), wire.Seen(), False
    async with aclosing(_events(response)) as events:
        async for event in events:
            if event == "[DONE]":
                seen.done = True
                break
            piece = reading.feed(seen.take(wire.parsed(event)))
            piece = piece if spoke else piece.lstrip()
            if piece:
                spoke = True
                yield piece
    rest = reading.finish()
    rest = rest if spoke else rest.strip()
    if rest:
        yield rest
    seen.check(spoke or bool(rest))


async def _events(response: httpx.Response) -> AsyncGenerator[str, None]:
    """The data of server-sent events (WHATWG HTML, 9.2)."""
    data: list[str] = []
    async with aclosing(_lines(response)) as lines:
        async for line in lines:
            if line.startswith("data:"):
                data.append(line[5:].removeprefix(" "))
            elif not line and data:
                yield "\n".join(data)
                data = []
    if data:
        yield "\n".join(data)


async def _lines(response: httpx.Response) -> AsyncGenerator[str, None]:
    """Lines as server-sent events have them: they end in CR, LF or both, and in no other character of Unicode."""
    held, size = b"", 0
    async for chunk in response.aiter_bytes():
        size += len(chunk)
        if size > ANSWER_BYTES:
            raise Failure(ModelError("The answer is over 10 MB."))
        lines = (held + chunk).splitlines(keepends=True)
        held = b"" if lines[-1:] and lines[-1].endswith(b"\n") else b"".join(lines[-1:])
        for line in lines[: len(lines) - bool(held)]:
            yield line.rstrip(b"\r\n").decode("utf-8", "replace")
    if held:
        yield held.rstrip(b"\r\n").decode("utf-8", "replace")
