"""`/v1/turns`: one turn in nitka's own words, answered by nitka's model, whole or as server-sent events.

* The events of a streamed answer are `piece` ({"text"}), then `done` with what a whole answer would be, or `error`.
  The pieces are what was handed out; the `text` of `done` is what is kept, and counts.
* An event's id is the number of characters (code points) handed out so far. A delivery that comes again, with the same
  key, gets the stored answer; with `Last-Event-ID` only what comes after that many characters, and `done`.
* A widget's key is in everybody's hands: the arguments that steer the model or its cost are not for it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Annotated, Any, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from nitka import alerting
from nitka.errors import NitkaError
from nitka.server import answers
from nitka.server.access import Caller, TurnsOrWidget, routes
from nitka.server.errors import Refusal, body_of, refusal_of
from nitka.server.people import named, person_of
from nitka.server.service import Shared
from nitka.server.stream import EventStream
from nitka.server.told import Json, event
from nitka.turn import Stream
from nitka.types import Budget, Passage, Person, Receipt

KEY = "idempotency-key"
LAST_EVENT = "last-event-id"
MAX_PASSAGES = 1_000
STEERING = ("system", "knowledge", "budget", "tools", "traffic", "recall", "at", "channel")
"""Arguments that a widget's key may not give."""

router = routes()


class Knowledge(BaseModel):
    """A passage of the caller's, best first."""

    model_config = ConfigDict(extra="forbid", strict=True)

    text: str
    label: str = Field(default="", description="A source or a date, shown before the text.")


class Room(BaseModel):
    """Tokens of a request."""

    model_config = ConfigDict(extra="forbid", strict=True)

    total: int = Field(ge=0, le=10_000_000)
    answer: int = Field(default=0, ge=0, le=10_000_000, description="Kept free for the answer.")
    condense_question: bool = True


class Asking(BaseModel):
    """What one turn is asked with."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(description="What the user said.")
    user: str | None = Field(default=None, description="Whose conversation it is; or the header X-Nitka-User.")
    session: str | None = Field(default=None, description="Which conversation; or the header X-Nitka-Session.")
    system: str = ""
    knowledge: list[str | Knowledge] = Field(default_factory=list, max_length=MAX_PASSAGES)
    budget: Annotated[int, Field(strict=True, ge=0, le=10_000_000)] | Room | None = None
    key: str | None = Field(default=None, description="The delivery's own id; or the header Idempotency-Key.")
    private: bool | Literal["reads"] = False
    channel: str = ""
    at: AwareDatetime | None = None
    zone: str = ""
    replaces: Annotated[int, Field(strict=True, ge=0, le=1 << 53)] | None = None
    language: str = Field(default="", max_length=64)
    recall: Literal["session", "user", "off"] = "session"

    def arguments(self, request: Request) -> dict[str, Any]:
        """For `Nitka.say`, `Nitka.turn`."""
        return {
            "text": self.text,
            "system": self.system,
            "knowledge": [
                one if isinstance(one, str) else Passage(one.text, label=one.label) for one in self.knowledge
            ],
            "budget": self.budget if not isinstance(self.budget, Room) else Budget(**self.budget.model_dump()),
            "key": named(request, KEY, self.key, what="key"),
            "private": self.private,
            "channel": self.channel,
            "at": self.at,
            "zone": self.zone,
            "replaces": self.replaces,
            "language": self.language,
            "recall": self.recall,
        }


class TurnBody(Asking):
    """A request of `/v1/turns`."""

    stream: bool = False


class Told(BaseModel):
    """A turn as it was answered. `seq` is the number of its first row, `kept` whether it has one."""

    text: str
    kept: bool
    seq: int | None
    interrupted: bool = False
    replayed: bool = Field(default=False, description="It had been answered before; no model was asked.")
    alerts: list[dict[str, Any]] = Field(default_factory=list, description="Not for a widget's key: always empty.")
    receipt: dict[str, Any] | None = Field(default=None, description="Not for a widget's key.")


@router.post("/v1/turns", tags=["Turns"], response_model=Told)
async def turns(body: TurnBody, request: Request, caller: TurnsOrWidget, shared: Shared) -> Response:
    """One turn: the question in, the answer out, both kept. With `stream` it comes as server-sent events."""
    refuse_steering(body, caller)
    person, session = await asked_by(body, request, caller)
    arguments = body.arguments(request)
    if body.stream:
        stream = shared.nitka.say(person, session, stream=True, **arguments)
        first, flow = await _begun(stream, last_event(request), for_operator=not caller.is_widget)
        return EventStream(_events(first, flow), source=flow)
    reply = await shared.nitka.say(person, session, **arguments)
    return Json(told(reply.text, reply, for_operator=not caller.is_widget))


async def asked_by(body: Asking, request: Request, caller: Caller) -> tuple[Person, str]:
    """Who asks, and in which session. Raises `Refusal`."""
    person = await person_of(request, caller, body.user)
    session = named(request, "x-nitka-session", body.session, what="session")
    if session is None:
        raise Refusal(
            "The session is missing: send X-Nitka-Session, or the field session.",
            code="missing_session",
            param="session",
        )
    return person, session


def refuse_steering(body: BaseModel, caller: Caller) -> None:
    """Raises `Refusal` where a public key gives what only the operator may."""
    steering = next((name for name in STEERING if name in body.model_fields_set), None)
    if caller.is_widget and steering:
        raise Refusal(f"{steering}: not for a widget's key.", status=403, code="not_for_widgets", param=steering)


def last_event(request: Request) -> int:
    """The characters that the client has already, by `Last-Event-ID`; 0 where it is none of ours."""
    given = request.headers.get(LAST_EVENT, "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else 0


def told(text: str, turn: Any, *, for_operator: bool = True) -> dict[str, Any]:
    """A turn's answer as JSON. `turn` is a `Reply`, a `Stream` or a `Turn` that is over. Alerts and receipt are for the
    operator alone: what a widget is told stands in the browser of the very person who is watched.
    """
    receipt: Receipt | None = turn.receipt if for_operator else None
    return {
        "text": text,
        "kept": turn.seq is not None,
        "seq": turn.seq,
        "interrupted": turn.interrupted,
        "replayed": getattr(turn, "replayed", False) or getattr(turn, "stored", False),
        "alerts": alerting.plain(turn.alerts) if for_operator else [],
        "receipt": answers.full(receipt) if receipt else None,
    }


Item = tuple[int, str | dict[str, Any]]
"""A piece, or at last what `done` says; with the number of characters handed out up to its end."""


async def _begun(stream: Stream, have: int, *, for_operator: bool) -> tuple[Item | None, AsyncGenerator[Item, None]]:
    """The first thing of a streamed answer: what goes wrong before it has an HTTP status of its own."""
    flow = _flow(stream, have, for_operator=for_operator)
    return await anext(flow, None), flow


async def _flow(stream: Stream, have: int, *, for_operator: bool) -> AsyncGenerator[Item, None]:
    handed = 0
    async with stream as pieces:
        async for piece in pieces:
            known = max(0, have - handed) if stream.replayed else 0
            handed += len(piece)
            if piece[known:]:
                yield handed, piece[known:]
    yield handed, told(stream.text, stream, for_operator=for_operator)


async def _events(first: Item | None, flow: AsyncGenerator[Item, None]) -> AsyncGenerator[bytes, None]:
    try:
        if first is not None:
            yield _event(*first)
        async for item in flow:
            yield _event(*item)
    except NitkaError as error:
        refusal = refusal_of(error)
        yield event(body_of(str(refusal), kind=refusal.kind, code=refusal.code, param=refusal.param), name="error")


def _event(handed: int, said: str | dict[str, Any]) -> bytes:
    if isinstance(said, str):
        return event({"text": said}, name="piece", id=str(handed))
    return event(said, name="done", id=str(handed))
