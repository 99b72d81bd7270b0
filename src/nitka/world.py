"""Where the world comes in: the wall clock, a clock that only runs forward, and the operating system's randomness.

Everything else takes these as arguments. `config.py` is the like door for the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from datetime import UTC, datetime

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
