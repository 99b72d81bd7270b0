"""The application: what its routes share, made once, and the routes.

A route module has a `router` and is added to `ROUTERS`; what it needs it takes from `nitka.server.service` (`Shared`)
and `nitka.server.access` (`Turns`, `Read`, ... or `require`).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from fastapi import APIRouter, FastAPI

from nitka.app import Nitka
from nitka.server import chat, errors, loops, me, mine, native, parsing, responses, visitors
from nitka.server.access import Access
from nitka.server.edge import Edge
from nitka.server.rates import Rates
from nitka.server.retries import Retries
from nitka.server.service import Options, Service
from nitka.server.upstream import ModelUpstream, Upstream
from nitka.world import Clock, monotonic, random_bytes, system_clock

ROUTERS: tuple[APIRouter, ...] = (
    chat.router,
    responses.router,
    visitors.router,
    native.router,
    loops.router,
    parsing.router,
    me.router,
    mine.router,
)


def create_app(
    nitka: Nitka,
    *,
    upstream: Upstream | None = None,
    options: Options | None = None,
    clock: Clock = system_clock,
    ticks: Callable[[], float] = monotonic,
) -> FastAPI:
    """The application over a nitka that is not open yet: it is opened and closed with the application.

    `upstream` answers the OpenAI-compatible routes, and is closed too; by default nitka's own model does. `clock` says
    the present, `ticks` gives seconds that only grow.
    """
    options = options or Options()
    vault = nitka._turns.vault  # the server is ours: it seals its tokens with the same keys
    rates = Rates(ticks, share=1 / options.workers)
    access = Access(vault.store, vault.keychain, clock=clock, ticks=ticks, rates=rates, seconds=options.key_seconds)
    limits = nitka._turns.limits
    upstream = upstream or ModelUpstream(nitka._model, clock, room=limits.answer_tokens)
    shared = Service(
        nitka=nitka,
        vault=vault,
        access=access,
        upstream=upstream,
        retries=Retries(ticks, _turn_key),
        options=options,
        limits=limits,
        clock=clock,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(shared.upstream.close)
            await stack.enter_async_context(nitka)
            yield

    app = FastAPI(
        title="nitka",
        summary="Conversation state for models that remember nothing",
        version="1",
        lifespan=lifespan,
        docs_url="/docs" if options.docs else None,
        redoc_url=None,
        openapi_url="/openapi.json" if options.docs else None,
        redirect_slashes=False,
    )
    app.state.service = shared
    errors.handle(app)
    app.add_middleware(Edge, max_body=options.body_bytes, clock=ticks, new_id=_request_id, access=access)
    for router in ROUTERS:
        app.include_router(router)
    return app


def _request_id() -> str:
    return f"req_{random_bytes(12).hex()}"


def _turn_key() -> str:
    return f"delivery:{random_bytes(16).hex()}"
