"""Server-sent events (WHATWG HTML, 9.2) that end well.

* When the client goes, the source is closed at once: it learns of it as it would of a cancellation, and what it does
  then, such as writing the pieces handed out, is waited for.
* A graceful stop of the server waits for open streams; it does not cut them.
* Silence is broken by a comment every `PING` seconds, so that no proxy between takes the line for dead.

The source must have been asked for its first event already: what goes wrong before has an HTTP status of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from typing import Any

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

PING = 15.0
DONE = b"data: [DONE]\n\n"


def event(value: object, *, name: str = "") -> bytes:
    """One event with a JSON value as its data."""
    head = f"event: {name}\n" if name else ""
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{head}data: {data}\n\n".encode("utf-8", "replace")


class EventStream(Response):
    """An answer that comes as events, which `events` makes from `source`. Both are closed at the end: `source`, which
    was asked for its first value already, also where `events` was never begun.
    """

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncGenerator[bytes, None],
        *,
        source: AsyncGenerator[Any, None],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(None, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})})
        del self.headers["content-length"]
        self._events, self._source = events, source
        self._quiet = True

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        pump = asyncio.create_task(self._pump(send))
        gone = asyncio.create_task(_gone(receive))
        try:
            while not (pump.done() or gone.done()):
                self._quiet = True
                await asyncio.wait((pump, gone), timeout=PING, return_when=asyncio.FIRST_COMPLETED)
                if self._quiet and not (pump.done() or gone.done()):
                    await send({"type": "http.response.body", "body": b": ping\n\n", "more_body": True})
        finally:
            gone.cancel()
            ended = pump.done()
            pump.cancel()
            await _over(pump)
        if ended:
            pump.result()

    async def _pump(self, send: Send) -> None:
        async with aclosing(self._source), aclosing(self._events) as events:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            async for piece in events:
                if piece:
                    self._quiet = False
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _gone(receive: Receive) -> None:
    """Returns when the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _over(task: asyncio.Task[None]) -> None:
    """Waits for a task that was cancelled, through cancellations of our own: what it still has to write is written."""
    again: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            again = error
    with suppress(asyncio.CancelledError):
        task.exception()
    if again is not None:
        raise again
