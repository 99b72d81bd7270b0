"""The ports to language models: a few verbs in our own words.

A chat model gets one self-contained list of messages and keeps nothing. A summariser is asked what to add to a
summary; it never rewrites one. Adapters raise `ModelError` and nothing else for what the model or the network did;
they never return an error as a text.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from nitka.layers.facts import Candidate, Fact
from nitka.types import ChatMessage, Line, Message, Proposal


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a chat model said. `text` is without reasoning; `usage` is the provider's own count, empty when it gave
    none.
    """

    text: str
    usage: Mapping[str, int] = field(default_factory=dict)


class ChatModel(Protocol):
    """One request in, one answer out."""

    name: str

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        """The whole answer. `schema` asks for JSON of that JSON Schema. Raises `ModelError`."""
        ...

    def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        """Pieces of the answer as they come, without reasoning, none of them empty. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


@runtime_checkable
class Summariser(Protocol):
    """Says what to add to a summary; our code appends and keeps the cap."""

    name: str

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        """Lines to add for `messages`, which just fell out of the window, and which of `lines` they replace.

        Raises `ModelError`.
        """
        ...


class Extractor(Protocol):
    """Says what the user's own words state; `layers.facts.reconcile` decides what becomes of it."""

    name: str

    async def extract(self, messages: Sequence[Message], *, known: Sequence[Fact] = ()) -> tuple[Candidate, ...]:
        """Proposals from the user's rows among `messages`, which are of one session and in order. Raises
        `ModelError`.
        """
        ...

    async def profile(
        self,
        messages: Sequence[Message],
        old: str,
        *,
        known: Sequence[Fact] = (),
        cap: int,
        count: Callable[[str], int],
    ) -> str:
        """A standing description of at most `cap` tokens by `count`. Raises `ModelError`."""
        ...
