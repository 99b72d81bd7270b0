"""`/v1/visitors`: a widget's own people. A page gets a token once, keeps it, and sends it as `X-Nitka-Visitor`."""

from __future__ import annotations

from pydantic import BaseModel

from nitka.server.access import Widget, routes
from nitka.server.service import Shared
from nitka.world import random_bytes

router = routes()


class Visitor(BaseModel):
    """A visitor of a widget: his id as a user of the tenant, and the token that stands for him."""

    user: str
    token: str


@router.post("/v1/visitors", tags=["Widget"])
async def visitors(caller: Widget, shared: Shared) -> Visitor:
    """Makes a visitor. Nothing is kept of him before his first turn."""
    user, token = await shared.access.make_visitor(caller, random_bytes(16))
    return Visitor(user=user, token=token)
