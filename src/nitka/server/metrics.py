"""What is counted for Prometheus, and the middleware that counts requests and traces them.

Labels are route templates, statuses, names of our own: no path, no id, no tenant, no key; the name of a model only
where it is the configured one. With one process the numbers are in it. With several each keeps its own in a file of a
shared folder, and whichever is asked adds them up (prometheus-client's multiprocess mode): counters of workers that
died still count, requests in progress are those of the living.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
    multiprocess,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nitka.server.tracing import Span, Tracer

UNKNOWN = "-"  # no route has this address
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)


class Meter:
    """The numbers of one application. `folder` is the one that processes share, None for a process of its own."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._registry = registry = CollectorRegistry()
        if folder is None:
            ProcessCollector(registry=registry)
        self._requests = Counter(
            "nitka_requests", "Requests answered.", ("method", "route", "status"), registry=registry
        )
        self._seconds = Histogram(
            "nitka_request_seconds",
            "From the first byte of a request to the last of its answer.",
            ("method", "route"),
            buckets=SECONDS,
            registry=registry,
        )
        self._open = Gauge(
            "nitka_requests_in_progress", "Requests being answered.", registry=registry, multiprocess_mode="livesum"
        )
        self._calls = Counter("nitka_model_calls", "Calls of a model.", ("model", "outcome"), registry=registry)
        self._thinking = Histogram(
            "nitka_model_seconds", "Of a call of a model.", ("model",), buckets=SECONDS, registry=registry
        )
        self._tokens = Counter(
            "nitka_model_tokens", "Tokens, as the model's server counts them.", ("model", "kind"), registry=registry
        )
        self._deliveries = Counter(
            "nitka_webhook_deliveries", "Attempts to deliver an alert.", ("outcome",), registry=registry
        )

    def began(self) -> None:
        self._open.inc()

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        self._open.dec()
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(method, route).observe(seconds)

    def called(self, model: str, outcome: str, seconds: float) -> None:
        self._calls.labels(model, outcome).inc()
        self._thinking.labels(model).observe(seconds)

    def used(self, model: str, kind: str, tokens: int) -> None:
        self._tokens.labels(model, kind).inc(tokens)

    def delivery(self, outcome: str) -> None:
        self._deliveries.labels(outcome).inc()

    def exposition(self, due: int) -> bytes:
        """All numbers in Prometheus' text format. `due` is how many conversations and persons have work waiting."""
        registry = self._registry
        if self._folder is not None:
            registry = CollectorRegistry()
            multiprocess.MultiProcessCollector(registry, path=str(self._folder))  # type: ignore[no-untyped-call]
        waiting = CollectorRegistry()
        waiting.register(_Due(due))
        return generate_latest(registry) + generate_latest(waiting)

    def close(self) -> None:
        """This process counts no more."""
        if self._folder is not None:
            multiprocess.mark_process_dead(os.getpid(), path=str(self._folder))  # type: ignore[no-untyped-call]


class _Due(Collector):
    def __init__(self, due: int) -> None:
        self._due = due

    def collect(self) -> Iterator[Any]:
        yield GaugeMetricFamily("nitka_due", "Conversations and persons with folds that wait.", value=self._due)


class Metered:
    """The outermost ASGI layer: counts a request and traces it, whoever answers it. `ticks` gives seconds."""

    def __init__(self, app: ASGIApp, *, meter: Meter, tracer: Tracer, ticks: Callable[[], float]) -> None:
        self._app = app
        self._meter = meter
        self._tracer = tracer
        self._ticks = ticks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method = scope["method"] if scope["method"] in METHODS else UNKNOWN
        status = 500
        began = self._ticks()

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._meter.began()
        with self._tracer.request(method, _traceparent(scope)) as span:
            try:
                await self._app(scope, receive, sending)
            finally:
                route = getattr(scope.get("route"), "path", UNKNOWN)
                self._meter.answered(method, route, status, self._ticks() - began)
                _tell(span, method, route, status)


def _tell(span: Span, method: str, route: str, status: int) -> None:
    """The attributes of OpenTelemetry's HTTP conventions that hold nothing of a person's."""
    span.rename(f"{method} {route}")
    span.set("http.request.method", method)
    span.set("http.route", route)
    span.set("http.response.status_code", status)
    if status >= 500:
        span.fail(str(status))


def _traceparent(scope: Scope) -> str:
    found = (value for name, value in scope["headers"] if name == b"traceparent")
    return next(found, b"").decode("latin-1")
