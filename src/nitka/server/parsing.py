"""`/parse`, `/memory/merge`, `/languages`: the watch over HTTP, in the wire form of Tisane's API.

A function of its request: nothing is read, kept or logged, and the memory travels with the caller. The analysis runs
beside the event loop, so that a long text holds up nobody's stream. Errors have `statusCode` and `message`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from fastapi import Request
from fastapi.responses import Response

from nitka.server.access import Parse, routes
from nitka.server.errors import Refusal
from nitka.server.service import Service, Shared
from nitka.server.told import Json
from nitka.watch import WatchError, languages, merge_json, parse_json

NOT_SERVED = ("/transform", "/detectLanguage", "/similarity", "/compare/entities", "/helper/extract_text")

router = routes()

_TEXT = {"type": "string"}
_OBJECT = {"type": "object"}
_PARSE = {
    "type": "object",
    "required": ["content"],
    "properties": {
        "language": {**_TEXT, "default": "*", "description": "A code, several joined by |, or *."},
        "content": _TEXT,
        "settings": _OBJECT,
    },
}
_MERGE = {
    "type": "object",
    "required": ["memories"],
    "properties": {"memories": {"type": "array", "items": {"type": ["object", "null"]}}},
}


def _body(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The description of a body that is read here and not by the framework: its errors are the watch's."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@router.post("/parse", tags=["Watch"], openapi_extra=_body(_PARSE))
async def parse(request: Request, caller: Parse, shared: Shared) -> Response:
    """Reads one message with the memory of those before it. `docs/watch.md` has settings and answer."""
    return Json(await _beside(shared, parse_json, await _read(request)))


@router.post("/memory/merge", tags=["Watch"], openapi_extra=_body(_MERGE))
async def merge(request: Request, caller: Parse, shared: Shared) -> Response:
    """Joins memories of one person who is talked to by several."""
    return Json(await _beside(shared, merge_json, await _read(request)))


@router.get("/languages", tags=["Watch"])
async def known_languages(caller: Parse, shared: Shared) -> Response:
    """The languages there are word lists for."""
    return Json(await _beside(shared, lambda _: languages(), {}))


async def _not_served(caller: Parse) -> NoReturn:
    """A method of Tisane's that is not served."""
    raise Refusal("This method is not served here; POST /parse is.", status=501, code="not_served")


for _path in NOT_SERVED:
    router.post(_path, tags=["Watch"], include_in_schema=False, response_model=None)(_not_served)


async def _read(request: Request) -> Any:
    """The body. Raises `Refusal`."""
    try:
        return json.loads(await request.body(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise Refusal("body: found something that is not JSON; allowed: an object", code="invalid_value") from None


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


async def _beside(shared: Service, work: Callable[[Any], Any], body: Any) -> Any:
    """What the watch answers. Raises `Refusal` with its words, which quote nothing."""
    async with shared.parsing:
        try:
            return await asyncio.to_thread(work, body)
        except WatchError as error:
            raise Refusal(str(error), status=error.status, code="invalid_value") from None
