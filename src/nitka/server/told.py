"""What the native routes say: JSON, events, pages. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from fastapi.responses import JSONResponse

from nitka.server.errors import Refusal
from nitka.vault.codec import micros

T = TypeVar("T")


class Json(JSONResponse):
    """Values as JSON. A lone surrogate, which UTF-8 cannot carry, makes the whole of it ASCII: `\\ud800`."""

    def render(self, content: Any) -> bytes:
        return dumped(content)


def dumped(content: Any) -> bytes:
    """A value as compact JSON."""
    try:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=_plain).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(content, separators=(",", ":"), default=_plain).encode("ascii")


def event(value: Any, *, name: str, id: str = "") -> bytes:
    """One server-sent event with a JSON value as its data."""
    head = f"id: {id}\nevent: {name}\n" if id else f"event: {name}\n"
    return head.encode("ascii") + b"data: " + dumped(value) + b"\n\n"


class Place(NamedTuple):
    """Where a page begins in a list that is ordered by time, newest first: after `taken` of the items of that time."""

    at: int  # microseconds
    taken: int

    @classmethod
    def read(cls, text: str | None) -> Place | None:
        """Raises `Refusal` for what is no cursor of ours."""
        if text is None:
            return None
        at, dot, taken = text.partition(".")
        if not (dot and taken.isascii() and taken.isdigit() and at.removeprefix("-").isascii()):
            raise _bad_cursor()
        if not at.removeprefix("-").isdigit() or len(text) > 40:
            raise _bad_cursor()
        return cls(int(at), int(taken))

    def __str__(self) -> str:
        return f"{self.at}.{self.taken}"


def page(items: Sequence[T], at: Callable[[T], datetime], *, cursor: str | None, limit: int) -> dict[str, Any]:
    """The items of one page, newest first, and the cursor of the next, None at the end. Items that are new since the
    first page come before it and are not seen; none is seen twice.
    """
    start = Place.read(cursor)
    ordered = sorted(items, key=at, reverse=True)
    times = [micros(at(item)) for item in ordered]
    begin = 0
    if start is not None:
        begin = sum(time > start.at for time in times) + min(start.taken, times.count(start.at))
    end = min(begin + limit, len(ordered))
    if end >= len(ordered) or end <= begin:
        return {"data": ordered[begin:end], "next": None}
    last = times[end - 1]
    taken = sum(time == last for time in times[:end])
    return {"data": ordered[begin:end], "next": str(Place(last, taken))}


def _plain(value: object) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.hex()
    raise TypeError(type(value).__name__)


def _bad_cursor() -> Refusal:
    return Refusal("cursor: not one of ours.", code="invalid_value", param="cursor")
