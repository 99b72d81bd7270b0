"""How often a key may ask: a token bucket each (the leaky bucket as a meter of ITU-T I.371).

A bucket holds a minute's worth of requests, at most `BURST`, and is filled evenly. Buckets that are full again are
forgotten, so that there are never more of them than keys that were used in the last minute. Each worker process has
its own.
"""

from __future__ import annotations

from collections.abc import Callable

BURST = 60.0
KEPT = 10_000


class Rates:
    """Buckets by name. `clock` gives seconds; `share` is the part of every rate that this process may use."""

    def __init__(self, clock: Callable[[], float], *, share: float = 1.0) -> None:
        self._clock = clock
        self._share = share
        self._empty_at: dict[str, float] = {}  # name -> when its bucket would be full again

    def wait(self, name: str, rate: int) -> float:
        """Takes one request of `rate` a minute; the seconds to wait where there is none left, else 0."""
        now = self._clock()
        every = 60.0 / (rate * self._share)
        depth = max(1.0, min(BURST, rate * self._share)) * every
        full = max(now, self._empty_at.get(name, now)) + every
        if full - now > depth + 1e-9:
            return full - now - depth
        self._empty_at.pop(name, None)  # so that the order is that of use
        self._empty_at[name] = full
        while len(self._empty_at) > KEPT or next(iter(self._empty_at.values())) <= now:
            del self._empty_at[next(iter(self._empty_at))]
        return 0.0
