"""The application: what its routes share, made once, and the routes.

A route module has a `router` and is added to `ROUTERS`; what it needs it takes from `nitka.server.service` (`Shared`)
and `nitka.server.access` (`Turns`, `Read`, ... or `require`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial

from fastapi import APIRouter, FastAPI

from nitka.app import Nitka
from nitka.server import chat, errors, health, inspector, loops, me, mine, native, parsing, responses, visitors, widget
from nitka.server.access import Access
from nitka.server.edge import Edge
from nitka.server.metrics import Meter, Metered
from nitka.server.observing import ObservedModel, ObservedUpstream, Probe
from nitka.server.rates import Rates
from nitka.server.retries import Retries
from nitka.server.service import Options, Service
from nitka.server.tracing import Tracer
from nitka.server.upstream import ModelUpstream, Upstream
from nitka.server.warm import warm
from nitka.server.webhook import Courier
from nitka.world import Clock, monotonic, random_bytes, system_clock

ROUTERS: tuple[APIRouter, ...] = (
    chat.router,
    responses.router,
    visitors.router,
    widget.router,
    native.router,
    loops.router,
    parsing.router,
    me.router,
    mine.router,
    health.router,
    inspector.router,
)


def create_app(
    nitka: Nitka,
    *,
    upstream: Upstream | None = None,
    options: Options | None = None,
    clock: Clock = system_clock,
    ticks: Callable[[], float] = monotonic,
    probe: Probe | None = None,
) -> FastAPI:
    """The application over a nitka that is not open yet: it is opened and closed with the application.

    `upstream` answers the OpenAI-compatible routes, and is closed too; by default nitka's own model does. `clock` says
    the present, `ticks` gives seconds that only grow. `probe` counts and traces what is asked of models and of us.
    """
    options = options or Options()
    probe = probe or Probe(Meter(), Tracer(), ticks)
    shared = _service(nitka, upstream, options, clock, probe)

    app = FastAPI(
        title="nitka",
        summary="Conversation state for models that remember nothing",
        version="1",
        lifespan=partial(_lifespan, shared),
        docs_url="/docs" if options.docs else None,
        redoc_url=None,
        openapi_url="/openapi.json" if options.docs else None,
        redirect_slashes=False,
    )
    app.state.service = shared
    errors.handle(app)
    app.add_middleware(Edge, max_body=options.body_bytes, clock=ticks, new_id=_request_id, access=shared.access)
    app.add_middleware(Metered, meter=probe.meter, tracer=probe.tracer, ticks=ticks)
    for router in ROUTERS:
        app.include_router(router)
    return app


@asynccontextmanager
async def _lifespan(shared: Service, app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        stack.callback(shared.meter.close)
        stack.push_async_callback(shared.upstream.close)
        await stack.enter_async_context(shared.nitka)
        if shared.options.warm:
            await warm(shared.clock)
        watching = shared.nitka._turns.watching
        courier = Courier(shared.vault, watching, shared.options.hook, shared.clock, counted=shared.meter.delivery)
        await stack.enter_async_context(courier)
        yield


def _service(nitka: Nitka, upstream: Upstream | None, options: Options, clock: Clock, probe: Probe) -> Service:
    """What the routes share."""
    vault = nitka._turns.vault  # the server is ours: it seals its tokens with the same keys
    limits = nitka._turns.limits
    if not isinstance(nitka._model, ObservedModel):
        nitka._model = ObservedModel(nitka._model, probe, provider="nitka")
    own = ModelUpstream(nitka._model, clock, room=limits.answer_tokens)
    rates = Rates(probe.ticks, share=1 / options.workers)
    return Service(
        nitka=nitka,
        vault=vault,
        access=Access(
            vault.store, vault.keychain, clock=clock, ticks=probe.ticks, rates=rates, seconds=options.key_seconds
        ),
        upstream=ObservedUpstream(upstream, probe) if upstream else own,
        retries=Retries(probe.ticks, _turn_key),
        options=options,
        limits=limits,
        clock=clock,
        meter=probe.meter,
    )


def _request_id() -> str:
    return f"req_{random_bytes(12).hex()}"


def _turn_key() -> str:
    return f"delivery:{random_bytes(16).hex()}"
