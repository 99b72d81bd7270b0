"""Model calls per hundred turns: how many, and how large, with the default limits and with a slack of twelve.

    python benchmarks/calls.py [--turns 100]

A scripted model answers everything, so this counts what is asked and not how well it is answered. Turns are settled
one by one, as they are when a person talks slower than a model answers; sizes are tokens of the counter in force.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from nitka import Limits, Nitka
from nitka.models.ports import Answer
from nitka.testing import FakeModel, MemoryStore, memory_ring
from nitka.tokens import count_messages, default_counter
from nitka.types import ChatMessage

SAID = "Number {n}: I moved the appointment with my dentist to day {n}, it will cost {n}0 euros, and Vera comes along."
LINES = {"add": [{"full": "The user moved the dentist's appointment.", "gist": "Dentist moved."}], "replaced": []}


class Counted(FakeModel):
    """Keeps the size of whatever is asked, by kind."""

    def __init__(self) -> None:
        super().__init__(("Noted, and I have written it down for you.",), folds={"add": [json.dumps(LINES)]})
        self.sizes: dict[str, list[int]] = {}

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        names = {"add": "summary", "facts": "facts", "lines": "profile"}
        kind = "answer" if schema is None else next(names[name] for name in names if name in schema["properties"])
        self.sizes.setdefault(kind, []).append(count_messages(default_counter(), messages))
        return await super().complete(messages, max_tokens=max_tokens, schema=schema)


async def run(turns: int, slack: int) -> Mapping[str, list[int]]:
    model = Counted()
    async with Nitka.open(MemoryStore(), model=model, keys=memory_ring(), limits=Limits(slack=slack)) as nitka:
        for n in range(turns):
            await nitka.say("anna", "web-1", text=SAID.format(n=n))
            await nitka.settle("anna")
    return model.sizes


async def main(turns: int) -> None:
    table = Table("slack", "call", f"in {turns} turns", "tokens each", "at most", "tokens in all")
    for slack in (0, 12):
        for kind, sizes in sorted((await run(turns, slack)).items()):
            table.add_row(
                str(slack),
                kind,
                str(len(sizes)),
                f"{sum(sizes) / len(sizes):,.0f}",
                f"{max(sizes):,}",
                f"{sum(sizes):,}",
            )
    Console(width=100).print(table)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--turns", type=int, default=100)
    asyncio.run(main(parser.parse_args().turns))
