"""OpenTelemetry spans of requests and model calls, with the GenAI semantic conventions and no content.

Spans have route templates, names of models and counts: no path, no query, no id of a user or a session, no words of an
error. Of what a client sends along only `traceparent` is taken (W3C Trace Context); its free fields are not.

Without the extra `otel` there is nothing to trace with, and every span is one that does nothing. With it, spans go
where the process's tracer provider sends them; `start` makes one that exports by OTLP.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any, Protocol

try:
    from opentelemetry import context, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    AVAILABLE = True
except ImportError:  # the extra is not installed
    AVAILABLE = False

NAME = "nitka"


class Span(Protocol):
    """What is told of one piece of work."""

    def set(self, name: str, value: str | int | float | list[str]) -> None: ...

    def rename(self, name: str) -> None: ...

    def fail(self, kind: str) -> None:
        """It ended in an error of this kind."""
        ...

    def end(self) -> None: ...


class NoSpan:
    def set(self, name: str, value: str | int | float | list[str]) -> None:
        pass

    def rename(self, name: str) -> None:
        pass

    def fail(self, kind: str) -> None:
        pass

    def end(self) -> None:
        pass


class OtelSpan:
    def __init__(self, span: trace.Span) -> None:
        self._span = span

    def set(self, name: str, value: str | int | float | list[str]) -> None:
        self._span.set_attribute(name, value)

    def rename(self, name: str) -> None:
        self._span.update_name(name)

    def fail(self, kind: str) -> None:
        self._span.set_attribute("error.type", kind)
        self._span.set_status(trace.Status(trace.StatusCode.ERROR))

    def end(self) -> None:
        self._span.end()


class Tracer:
    """Makes spans, where there is something to make them with. `provider` is one of OpenTelemetry's, by default that of
    the process.
    """

    def __init__(self, provider: Any = None) -> None:
        self._tracer: trace.Tracer | None = None
        if AVAILABLE:
            self._tracer = trace.get_tracer(NAME, version("nitka"), provider)

    def model_call(self, name: str, attributes: Mapping[str, Any]) -> Span:
        """A span under the present one, to be ended by whoever asks for it: a stream may end in another context."""
        if self._tracer is None:
            return NoSpan()
        return OtelSpan(self._tracer.start_span(name, kind=trace.SpanKind.CLIENT, attributes=dict(attributes)))

    @contextmanager
    def request(self, name: str, traceparent: str) -> Iterator[Span]:
        """The span of a request to this server, which is the present one inside the block."""
        if self._tracer is None:
            yield NoSpan()
            return
        parent = TraceContextTextMapPropagator().extract({"traceparent": traceparent} if traceparent else {})
        span = self._tracer.start_span(name, context=parent, kind=trace.SpanKind.SERVER)
        token = context.attach(trace.set_span_in_context(span, parent))
        try:
            yield OtelSpan(span)
        finally:
            context.detach(token)
            span.end()


def start() -> bool:
    """Has spans exported by OTLP over HTTP, as OpenTelemetry's own variables say. False where the extra is missing."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        return False
    provider = TracerProvider(resource=Resource.create({"service.name": NAME}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    return True
