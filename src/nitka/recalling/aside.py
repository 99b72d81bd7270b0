"""Work that may be too long for the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

SHORT = 8_000  # characters to read, or passages to search: no more than the interpreter gives a thread at a time (5 ms)


async def aside(size: int, work: Callable[[], T]) -> T:
    """Done in a thread, or at once where it is short: handing it over would cost more than it takes, and the loop
    would get no turn in the middle of it all the same.
    """
    return work() if size <= SHORT else await asyncio.to_thread(work)
