"""`/v1/turns/open` and `/v1/turns/answer`: turns of agents with their own loop.

The open turn travels as a sealed token; nothing of it is kept here (see `nitka.holding`). Answering twice gives the
stored answer; after a forget it is 410; a token that is old or another's is one refusal, whatever is wrong with it.
"""

from __future__ import annotations

import base64
from datetime import datetime
from typing import Any

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ConfigDict, Field

from nitka import holding
from nitka.holding import BadToken, Held
from nitka.server import answers
from nitka.server.access import USER, Turns, routes, unpacked
from nitka.server.errors import Refusal
from nitka.server.native import Asking, Told, asked_by, told
from nitka.server.people import person_of
from nitka.server.service import Service, Shared
from nitka.server.told import Json
from nitka.turn import Turn, TurnBlock

PREFIX = "nt_"
MAX_TOOLS = 1_000
MAX_TRAFFIC = 5_000

router = routes()


class OpenBody(Asking):
    """A request of `/v1/turns/open`."""

    tools: list[dict[str, Any]] = Field(
        default_factory=list, max_length=MAX_TOOLS, description="The definitions your loop sends: they are counted."
    )
    traffic: list[dict[str, Any]] = Field(
        default_factory=list,
        max_length=MAX_TRAFFIC,
        description="Your loop's own messages after the question; open again with the same key to have them packed.",
    )


class Opened(BaseModel):
    """An open turn: what to send to the model, and the token to answer with. Of a turn that was answered before (by
    its key) there is only the answer.
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]]
    max_tokens: int
    receipt: dict[str, Any] | None
    token: str | None
    expires: datetime | None
    answered: Told | None = None


class AnswerBody(BaseModel):
    """A request of `/v1/turns/answer`."""

    model_config = ConfigDict(extra="forbid")

    token: str
    answer: str
    interrupted: bool = Field(default=False, description="It was cut off: this is what was handed out.")


@router.post("/v1/turns/open", tags=["Turns"], response_model=Opened)
async def open_turn(body: OpenBody, request: Request, caller: Turns, shared: Shared) -> Response:
    """Opens a turn of a loop of your own: gives the messages for the model, and a token for the answer."""
    person, session = await asked_by(body, request, caller)
    turns = shared.nitka._turns
    ask = turns.ask(person, session, tools=body.tools, **body.arguments(request))
    turn = await turns.open(ask)
    if turn.stored:
        return Json(_answered(turn))
    packed = turn.refit([*turn.request.messages, *body.traffic]) if body.traffic else turn.request
    token = await holding.hold(turns, ask, turn)
    value = {
        "messages": [dict(message) for message in packed.messages],
        "tools": body.tools,
        "max_tokens": packed.max_tokens,
        "receipt": answers.full(packed.receipt),
        "token": PREFIX + base64.urlsafe_b64encode(token).rstrip(b"=").decode("ascii"),
        "expires": shared.clock() + holding.LIFE,
        "answered": None,
    }
    return Json(value)


@router.post("/v1/turns/answer", tags=["Turns"], response_model=Told)
async def answer_turn(body: AnswerBody, request: Request, caller: Turns, shared: Shared) -> Response:
    """Answers an open turn: its two rows are written. Answered before, it gives what was stored. A header that names
    another person than the token's is refused.
    """
    held = await _resumed(shared, caller.tenant, body.token)
    if USER in request.headers and not held.ask.private and await person_of(request, caller) != held.ask.user:
        raise _bad_token()
    async with TurnBlock(lambda: _itself(held), lambda turn, text: shared.nitka._turns.write(held.ask, turn, text)) as (
        turn
    ):
        if body.interrupted:
            turn.piece(body.answer)
        else:
            turn.answer(body.answer)
    return Json(told(turn.text or "", turn))


async def _itself(held: Held) -> Turn:
    return held.turn


async def _resumed(shared: Service, tenant: str, token: str) -> Held:
    """The open turn of a token. Raises `Refusal` (400), `Forgotten`."""
    try:
        sealed = unpacked(token.removeprefix(PREFIX)) if token.startswith(PREFIX) else b""
        return await holding.resume(shared.nitka._turns, tenant, sealed)
    except (BadToken, ValueError) as error:
        raise _bad_token() from error


def _bad_token() -> Refusal:
    return Refusal(str(BadToken()), code="bad_token", param="token")


def _answered(turn: Turn) -> dict[str, Any]:
    nothing = {"messages": [], "tools": [], "max_tokens": 0, "receipt": None, "token": None, "expires": None}
    return {**nothing, "answered": told(turn.text or "", turn)}
