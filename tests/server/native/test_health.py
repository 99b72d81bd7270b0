"""Health, numbers and spans: true, and without a path, an id or a word of anybody's."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from nitka import ModelError, StoreError, User
from nitka.server.metrics import Meter
from nitka.server.observing import Probe
from nitka.server.tracing import NoSpan, Tracer
from nitka.testing import FakeModel, MemoryStore, memory_ring
from nitka.world import monotonic
from tests.server.native.house import House, housed

pytestmark = pytest.mark.anyio


async def numbers(house: House) -> dict[tuple[str, ...], float]:
    """All samples by name and the values of their labels."""
    text = (await house.get("/metrics", key=await house.make_key("metrics"), user=None, session=None)).text
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}


async def test_a_server_that_runs_is_healthy_and_ready(house: House) -> None:
    for path, status in (("/healthz", "ok"), ("/readyz", "ready")):
        reply = await house.client.get(path)
        assert (reply.status_code, reply.json()) == (200, {"status": status})


async def test_it_is_not_ready_without_its_store_or_its_keys(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    chain = house.nitka._vault.keychain
    with monkeypatch.context() as patch:
        patch.setattr(chain, "roots", memory_ring())  # the ring of another store
        reply = await house.client.get("/readyz")
        assert (reply.status_code, reply.json()) == (503, {"status": "not ready", "why": "WrongKey"})
    await house.store.close()
    reply = await house.client.get("/readyz")
    assert (reply.status_code, reply.json()["why"]) == (503, StoreError.__name__)
    assert (await house.client.get("/healthz")).status_code == 200


async def test_numbers_need_their_own_key(house: House) -> None:
    assert (await house.client.get("/metrics")).status_code == 401
    assert (await house.get("/metrics")).status_code == 403  # turns, read, admin, parse


async def test_requests_are_counted_by_route_and_status(house: House) -> None:
    for _ in range(3):
        await house.post("/v1/turns", {"text": "Hello"})
    await house.post("/v1/turns", {})
    await house.client.get("/nowhere/anna?user=anna")
    found = await numbers(house)
    assert found["nitka_requests_total", "POST", "/v1/turns", "200"] == 3
    assert found["nitka_requests_total", "POST", "/v1/turns", "400"] == 1
    assert found["nitka_requests_total", "GET", "-", "404"] == 1
    assert found["nitka_request_seconds_count", "POST", "/v1/turns"] == 4
    assert found["nitka_requests_in_progress",] == 1  # the one that asks
    assert found["nitka_model_calls_total", "fake", "answered"] == 3
    assert found["nitka_due",] >= 0


async def test_a_failing_model_and_an_unknown_method_are_counted_too() -> None:
    async with housed(FakeModel([ModelError(status=500)])) as house:
        await house.post("/v1/turns", {"text": "Hello"})
        await house.post("/v1/turns", {"text": "Hello", "stream": True})
        await house.client.request("BREW", "/v1/turns")
        found = await numbers(house)
    assert found["nitka_model_calls_total", "fake", "failed"] == 2
    assert found["nitka_requests_total", "-", "/v1/turns", "405"] == 1


async def test_a_models_name_of_the_clients_making_is_no_label(house: House) -> None:
    body = {"model": "Zaubermodell", "messages": [{"role": "user", "content": "x"}], "metadata": {"session_id": "s"}}
    reply = await house.post("/v1/chat/completions", body, session=None)
    assert reply.status_code == 200
    text = (await house.get("/metrics", key=await house.make_key("metrics"))).text
    assert "Zauber" not in text


WORKER = """
import os, sys
from pathlib import Path
from nitka.server.metrics import Meter
meter = Meter(Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    meter.began()
    meter.answered("GET", "/healthz", 200, 0.01)
meter.began()
if sys.argv[3] == "stops":
    meter.close()
"""


def test_several_processes_count_together(tmp_path: Path) -> None:
    """Whoever is asked adds up: what a dead worker counted stays, what it was busy with does not."""
    environ = os.environ | {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for times in (2, 3):
        subprocess.run([sys.executable, "-c", WORKER, str(tmp_path), str(times), "stops"], check=True, env=environ)
    text = Meter(tmp_path).exposition(0).decode()
    found = {s.name: s.value for family in text_string_to_metric_families(text) for s in family.samples}
    assert found["nitka_requests_total"] == 5 and found.get("nitka_requests_in_progress", 0) == 0


EXPORTING = """
import http.server, os, threading
got = []

class Collector(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        got.append((self.path, self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Collector)
threading.Thread(target=server.serve_forever, daemon=True).start()
os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{server.server_port}"
from opentelemetry import trace
from nitka.server.tracing import Tracer, start

assert start()
with Tracer().request("POST /v1/turns", "") as span:
    span.set("http.route", "/v1/turns")
trace.get_tracer_provider().shutdown()
((path, body),) = got
assert path == "/v1/traces" and b"/v1/turns" in body and b"nitka" in body
"""


def test_spans_are_exported_as_opentelemetrys_variables_say() -> None:
    names = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    subprocess.run([sys.executable, "-c", EXPORTING], check=True, env=names, timeout=120)


@pytest.fixture
def spans() -> Iterator[tuple[Probe, InMemorySpanExporter]]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield Probe(Meter(), Tracer(provider), monotonic), exporter
    provider.shutdown()


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("stream", [False, True])
async def test_a_turn_is_a_span_with_the_model_call_below_it(
    spans: tuple[Probe, InMemorySpanExporter], stream: bool
) -> None:
    probe, exporter = spans
    async with housed(probe=probe) as house:
        parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        await house.post("/v1/turns", {"text": "Hello", "stream": stream}, more={"traceparent": parent})
    call, request = exporter.get_finished_spans()
    assert (call.name, request.name) == ("chat fake", "POST /v1/turns")
    assert call.parent is not None and call.parent.span_id == request.context.span_id
    assert f"{request.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    assert told(request) == {
        "http.request.method": "POST",
        "http.route": "/v1/turns",
        "http.response.status_code": 200,
    }
    assert told(call) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "nitka",
        "gen_ai.request.model": "fake",
        "gen_ai.request.max_tokens": 1024,
    }
    assert call.kind.name == "CLIENT" and request.kind.name == "SERVER"


async def test_errors_are_told_by_their_kind(spans: tuple[Probe, InMemorySpanExporter]) -> None:
    probe, exporter = spans
    async with housed(FakeModel([ModelError("Zauberwort", status=500)]), probe=probe) as house:
        await house.post("/v1/turns", {"text": "Hello"})
    call, request = exporter.get_finished_spans()
    assert (told(call)["error.type"], told(request)["error.type"]) == ("500", "502")
    assert not call.events and not request.events and "Zauber" not in call.to_json() + request.to_json()


async def test_no_span_holds_anything_of_a_clients(spans: tuple[Probe, InMemorySpanExporter]) -> None:
    probe, exporter = spans
    headers = {"baggage": "user=Zauber", "tracestate": "z=Zauber", "traceparent": "Zauber", "User-Agent": "Zauber"}
    async with housed(probe=probe) as house:
        body = {"model": "Zauber", "messages": [{"role": "user", "content": "Zauber"}]}
        for path, value in (("/v1/turns", {"text": "Zauber"}), ("/v1/chat/completions", body), ("/Zauber?Zauber", {})):
            await house.post(path, value, user="Zauber", session="Zauber", more=headers)
    found = exporter.get_finished_spans()
    assert len(found) == 5
    assert {told(span).get("gen_ai.request.model") for span in found} == {None, "fake"}
    assert not [span.name for span in found if "Zauber" in span.to_json()]


async def test_without_the_extra_every_span_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nitka.server.tracing.AVAILABLE", False)
    tracer = Tracer()
    assert isinstance(tracer.model_call("x", {}), NoSpan)
    async with housed(probe=Probe(Meter(), tracer, monotonic)) as house:
        assert (await house.post("/v1/turns", {"text": "Hello"})).status_code == 200


async def test_a_call_that_is_cut_off_ends_its_span(spans: tuple[Probe, InMemorySpanExporter]) -> None:
    probe, exporter = spans
    async with housed(probe=probe, store=MemoryStore()) as house:
        async with house.nitka.say(User("anna"), "s", text="one two three four", stream=True) as pieces:
            await anext(pieces)
        await asyncio.sleep(0)
    (call,) = exporter.get_finished_spans()
    assert call.name == "chat fake" and "error.type" not in told(call)


async def test_a_scrape_over_http_is_prometheus_own_format(house: House) -> None:
    reply: httpx.Response = await house.get("/metrics", key=await house.make_key("metrics"))
    assert reply.headers["content-type"].startswith("text/plain; version=")
    assert "# TYPE nitka_requests_total counter" in reply.text
