"""What the law tests share: a summariser whose lines can be counted, and a nitka on a store that outlives it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from nitka import Limits, Nitka
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import Line, Message, Proposal
from nitka.vault.roots import KeyRing

WIDE = Limits(summary_tokens=1_000_000, window=4, slack=0, backlog=40, budget=1_000_000)


class Tally:
    """Writes one line a message, with its number: what was folded can be read off the summary."""

    name = "tally"

    def __init__(self) -> None:
        self.given: list[int] = []

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        self.given += [message.seq for message in messages]
        add = [Line(full=f"row {m.seq}: {m.text}", gist=f"row {m.seq}", first=m.seq, last=m.seq) for m in messages]
        return Proposal(add=tuple(add))


class World:
    """A place where nitkas live and die: the store's medium and the key ring stay."""

    def __init__(self, folder: Path | None = None) -> None:
        self.path = folder / "laws.db" if folder else None
        self.ring: KeyRing = memory_ring()
        self.clock = FixedClock()
        self.tally = Tally()
        self._memory = MemoryStore()

    def store(self) -> Store:
        return SqliteStore(str(self.path)) if self.path else self._memory

    def open(
        self,
        store: Store | None = None,
        *,
        model: FakeModel | None = None,
        limits: Limits = WIDE,
        watch: Mapping[str, str] | None = None,
    ) -> Nitka:
        return Nitka.open(
            store or self.store(),
            model=model or FakeModel(lambda messages: f"answer to {messages[-1]['content']}"),
            fold_model=self.tally,
            keys=self.ring,
            limits=limits,
            clock=self.clock,
            watch=watch,
        )
