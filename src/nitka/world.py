"""Where the world comes in: the wall clock, a clock that only runs forward, and the operating system's randomness.

Everything else takes these as arguments. `config.py` is the like door for the environment. And where a thread that
has long work lets the others in.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import TypeVar

T = TypeVar("T")

AT_ONCE = 8  # items, half a millisecond of work
PAUSE = 0.0001  # seconds: enough for a thread that waits for the interpreter to get it

Clock = Callable[[], datetime]
"""Gives the present as an aware datetime."""


def system_clock() -> datetime:
    """The present, in UTC."""
    return datetime.now(UTC)


def monotonic() -> float:
    """Seconds from some fixed moment; never steps back."""
    return time.monotonic()


def random_bytes(size: int) -> bytes:
    """Unpredictable bytes from the operating system."""
    return os.urandom(size)


def giving_way(items: Iterable[T]) -> Iterator[T]:
    """The items, with a moment for other threads now and then. Only one thread runs Python at a time, and one with
    long work lets go every five milliseconds only: an event loop beside it waits that long at each of its steps.
    """
    for at, item in enumerate(items, 1):
        if at % AT_ONCE == 0:
            time.sleep(PAUSE)
        yield item
