"""`/healthz`, `/readyz` and `/metrics`: for whoever runs the server.

The first two are open, and say one word: no count, no version. The numbers need a key with the scope `metrics`, which
opens nothing else: they tell how much all tenants do.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from fastapi.responses import JSONResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from nitka.errors import NitkaError
from nitka.server.access import Caller, require, routes
from nitka.server.service import Shared
from nitka.store.port import NOBODY, Look

Metrics = Annotated[Caller, Depends(require("metrics"))]

router = routes()


@router.get("/healthz", tags=["Health"])
async def healthz() -> dict[str, str]:
    """The process answers."""
    return {"status": "ok"}


@router.get("/readyz", tags=["Health"], responses={503: {"description": "Not ready."}})
async def readyz(shared: Shared) -> Response:
    """The store can be read, and its keys are proved to be ours."""
    try:
        await shared.vault.store.view(Look(owner=NOBODY))
        await shared.vault.keychain.prove()
    except NitkaError as error:
        return JSONResponse({"status": "not ready", "why": type(error).__name__}, status_code=503)
    return JSONResponse({"status": "ready"})


@router.get(
    "/metrics",
    tags=["Health"],
    response_class=Response,
    responses={200: {"content": {"text/plain": {}}, "description": "Prometheus' text format."}},
)
async def metrics(caller: Metrics, shared: Shared) -> Response:
    """Numbers for Prometheus, of all processes of this server."""
    numbers = shared.meter.exposition(await shared.vault.store.due_sessions())
    return Response(numbers, headers={"Content-Type": CONTENT_TYPE_LATEST})
