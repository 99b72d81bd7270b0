"""Models that are counted and traced: each call is a span by OpenTelemetry's GenAI conventions, without content.

A client may name any model; its name is told only where it is the configured one, else `OTHER`: what a client sends
ends in no label and no span.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from nitka.errors import NitkaError
from nitka.models.ports import Answer, ChatModel
from nitka.server.metrics import Meter
from nitka.server.tracing import Tracer
from nitka.server.upstream import Body, Chunk, Upstream, room_of
from nitka.turn import closing
from nitka.types import ChatMessage

OTHER = "_OTHER"
PROVIDER = "openai"  # the protocol; who really answers is not known here
_USAGE = {"prompt_tokens": "input", "completion_tokens": "output"}


class Probe:
    """What counts and traces calls. `ticks` gives seconds."""

    def __init__(self, meter: Meter, tracer: Tracer, ticks: Callable[[], float]) -> None:
        self.meter = meter
        self.tracer = tracer
        self.ticks = ticks


class Call:
    """One call of a model, from its beginning to `end`, which is called once whatever happens."""

    def __init__(self, probe: Probe, model: str, *, max_tokens: int, provider: str) -> None:
        self._probe, self._model = probe, model
        self._began = probe.ticks()
        self._outcome = "cut_off"
        attributes: dict[str, Any] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": model,
        }
        if max_tokens:
            attributes["gen_ai.request.max_tokens"] = max_tokens
        self._span = probe.tracer.model_call(f"chat {model}", attributes)

    def usage(self, counts: object) -> None:
        """The provider's own count of tokens, if it gave one."""
        for name, kind in _USAGE.items():
            tokens = counts.get(name) if isinstance(counts, Mapping) else None
            if isinstance(tokens, int) and 0 <= tokens < 1 << 53:
                self._span.set(f"gen_ai.usage.{kind}_tokens", tokens)
                self._probe.meter.used(self._model, kind, tokens)

    def answered(self) -> None:
        self._outcome = "answered"

    def failed(self, error: NitkaError) -> None:
        self._outcome = "failed"
        status = getattr(error, "status", None)
        self._span.fail(str(status) if status else type(error).__name__)

    def end(self) -> None:
        self._probe.meter.called(self._model, self._outcome, self._probe.ticks() - self._began)
        self._span.end()


class ObservedModel:
    """A chat model whose calls are counted and traced."""

    def __init__(self, inner: ChatModel, probe: Probe, *, provider: str = PROVIDER) -> None:
        self.name = inner.name
        self._inner, self._probe, self._provider = inner, probe, provider

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        call = self._call(max_tokens)
        try:
            answer = await self._inner.complete(messages, max_tokens=max_tokens, schema=schema)
            call.usage(answer.usage)
            call.answered()
            return answer
        except NitkaError as error:
            call.failed(error)
            raise
        finally:
            call.end()

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        call = self._call(max_tokens)
        try:
            async with closing(self._inner.stream(messages, max_tokens=max_tokens)) as pieces:
                async for piece in pieces:
                    yield piece
            call.answered()
        except NitkaError as error:
            call.failed(error)
            raise
        finally:
            call.end()

    async def close(self) -> None:
        await self._inner.close()

    def _call(self, max_tokens: int) -> Call:
        return Call(self._probe, self.name, max_tokens=max_tokens, provider=self._provider)


class ObservedUpstream:
    """An upstream whose calls are counted and traced."""

    def __init__(self, inner: Upstream, probe: Probe) -> None:
        self.model, self.limit = inner.model, inner.limit
        self._inner, self._probe = inner, probe

    async def complete(self, body: Body) -> dict[str, Any]:
        call = self._call(body)
        try:
            value = await self._inner.complete(body)
            call.usage(value.get("usage"))
            call.answered()
            return value
        except NitkaError as error:
            call.failed(error)
            raise
        finally:
            call.end()

    async def stream(self, body: Body) -> AsyncGenerator[Chunk, None]:
        call, usage = self._call(body), None
        try:
            async with aclosing(self._inner.stream(body)) as chunks:
                async for chunk in chunks:
                    usage = chunk.value.get("usage") or usage  # some servers tell it with every chunk, growing
                    yield chunk
            call.answered()
        except NitkaError as error:
            call.failed(error)
            raise
        finally:
            call.usage(usage)
            call.end()

    async def models(self) -> list[Body]:
        return await self._inner.models()

    async def close(self) -> None:
        await self._inner.close()

    def _call(self, body: Body) -> Call:
        model = self.model if body.get("model") == self.model else OTHER
        return Call(self._probe, model, max_tokens=room_of(body), provider=PROVIDER)
