"""Turns that are being written at this moment, in this process.

Someone who presses stop and sends the next message at once must find the stopped turn in its context: the write that
the stop caused may still be under way when the next turn is opened. So the next one of the same session waits for it.
A turn that is still being answered is not waited for, and neither is another process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from nitka.types import Person


class Writing:
    """Which sessions are being written. An entry lives as long as its write."""

    def __init__(self) -> None:
        self._ends: dict[tuple[Person, str], set[asyncio.Future[None]]] = {}

    def now(self, user: Person, session: str, work: Coroutine[Any, Any, None]) -> Coroutine[Any, Any, None]:
        """The same work, known to `over` from now on; it has to be awaited."""
        end = asyncio.get_running_loop().create_future()
        ends = self._ends.setdefault((user, session), set())
        ends.add(end)

        async def run() -> None:
            try:
                await work
            finally:
                end.set_result(None)
                ends.discard(end)
                if not ends:
                    self._ends.pop((user, session), None)

        return run()

    async def all_over(self) -> None:
        """Returns when whatever is being written now, in any session, has been written, or has failed."""
        if ends := [end for ends in self._ends.values() for end in ends]:
            await asyncio.wait(ends)

    async def over(self, user: Person, session: str) -> None:
        """Returns when what is being written in this session now has been written, or has failed."""
        if ends := self._ends.get((user, session)):
            await asyncio.wait(set(ends))
