"""A model that says what it is told, a clock that stands still, and keys that are nowhere on disk."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from nitka.models.ports import Answer
from nitka.types import ChatMessage
from nitka.vault.roots import KeyRing, Ring

Script = Callable[[Sequence[ChatMessage]], str | BaseException]


class FakeModel:
    """A chat model under a test's control.

    `script` gets the messages and gives the answer, or an exception to raise; a list is used up in order, its last
    item over and over. `requests` keeps what was asked. A stream comes in words.
    """

    name = "fake"

    def __init__(self, script: Script | Sequence[str | BaseException] = ("ok",)) -> None:
        self._script = script
        self.requests: list[Sequence[ChatMessage]] = []
        self.closed = False

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        return Answer(text=self._next(messages))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        text = self._next(messages)
        for at, word in enumerate(text.split(" ")):
            yield word if at == 0 else " " + word

    async def close(self) -> None:
        self.closed = True

    def _next(self, messages: Sequence[ChatMessage]) -> str:
        self.requests.append(messages)
        if callable(self._script):
            said = self._script(messages)
        else:
            said = self._script[min(len(self.requests), len(self._script)) - 1]
        if isinstance(said, BaseException):
            raise said
        return said


class FixedClock:
    """Gives the same time until `advance` or `set` moves it."""

    def __init__(self, now: datetime = datetime(2026, 1, 5, 9, tzinfo=UTC)) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def advance(self, **step: float) -> None:
        """Moves by a `timedelta(**step)`."""
        self.now += timedelta(**step)


def memory_ring() -> KeyRing:
    """A fresh ring of root keys that is nowhere on disk."""
    return KeyRing(Ring.new())
