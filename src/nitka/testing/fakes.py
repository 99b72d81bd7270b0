"""A model that says what it is told, a clock that stands still, and keys that are nowhere on disk."""

from __future__ import annotations

import json
from collections import defaultdict
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

    Folds ask for JSON of a schema: "add" is a property of a summary's, "facts" of facts', "lines" of a profile's.
    `folds` has a script of its own for each; one that has none is answered with the least that its schema allows.
    `fold_requests` keeps what they asked.
    """

    name = "fake"

    def __init__(
        self,
        script: Script | Sequence[str | BaseException] = ("ok",),
        *,
        folds: Mapping[str, Script | Sequence[str | BaseException]] | None = None,
    ) -> None:
        self._script = script
        self._folds = folds or {}
        self.requests: list[Sequence[ChatMessage]] = []
        self.fold_requests: dict[str, list[Sequence[ChatMessage]]] = defaultdict(list)
        self.closed = False

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        if schema is None:
            return Answer(text=_next(self._script, self.requests, messages))
        name = next((name for name in self._folds if name in schema["properties"]), next(iter(schema["properties"])))
        least = json.dumps({needed: [] for needed in schema["required"]})
        return Answer(text=_next(self._folds.get(name, [least]), self.fold_requests[name], messages))

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        text = _next(self._script, self.requests, messages)
        for at, word in enumerate(text.split(" ")):
            yield word if at == 0 else " " + word

    async def close(self) -> None:
        self.closed = True


def _next(
    script: Script | Sequence[str | BaseException],
    requests: list[Sequence[ChatMessage]],
    messages: Sequence[ChatMessage],
) -> str:
    requests.append(messages)
    said = script(messages) if callable(script) else script[min(len(requests), len(script)) - 1]
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
