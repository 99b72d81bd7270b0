"""`/v1/visitors`: a widget's own people. A page gets a token once, keeps it, and sends it as `X-Nitka-Visitor`.

A visitor who signs in at the host's is joined to the user he is, on a token signed by the host that names both: the
user, and the visitor in the claim `visitor`. Whoever sends it must hold the visitor's own token too. So neither a page
alone nor a host's token in wrong hands moves anybody's conversation.
"""

from __future__ import annotations

from dataclasses import asdict

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel

from nitka.server.access import Widget, routes, visitor_of
from nitka.server.errors import Refusal
from nitka.server.service import Shared
from nitka.server.told import Json
from nitka.server.user_tokens import UserToken
from nitka.types import User
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


@router.post("/v1/visitors/adopt", tags=["Widget"])
async def adopt(request: Request, caller: Widget, shared: Shared) -> Response:
    """Makes what is remembered of a visitor the user's who signed in; then the visitor is forgotten. Needs both
    `X-Nitka-User-Token`, with the claim `visitor`, and `X-Nitka-Visitor`. Again, it finds nothing more to move.
    """
    said: UserToken | None = request.state.user_token
    if said is None:
        raise Refusal("This needs X-Nitka-User-Token.", status=401, code="invalid_user_token")
    visitor = await visitor_of(request, caller)
    if said.visitor != visitor:
        raise Refusal("The user token does not name this visitor.", status=403, code="other_visitor")
    return Json(asdict(await shared.nitka.adopt(User(visitor, caller.tenant), User(said.user, caller.tenant))))
