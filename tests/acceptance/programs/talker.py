"""Takes turns until it is killed. Run by test_crash.py.

talker.py FOLDER SEED

Prints each turn that was acknowledged: session and number. Folds run in the background all the while; what they were
given can be read off the summary, one line a message.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from nitka import Limits, Nitka
from nitka.testing import FakeModel, FixedClock
from nitka.types import Line, Message, Proposal

TURNS = 1000
SESSIONS = 5
LIMITS = Limits(window=4, summary_tokens=10_000_000, slice_tokens=60, backlog=1_000_000)


class OneLineEach:
    """A line for each message it was given."""

    name = "one line each"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        await asyncio.sleep(0.002)  # as a model would, it takes its time
        add = [Line(full=f"{m.seq} {m.text}", gist=f"{m.seq} {m.text}", first=m.seq, last=m.seq) for m in messages]
        return Proposal(add=tuple(add))


def opened(folder: Path, *, later: int = 0) -> Nitka:
    """A nitka whose clock stands `later` minutes after the first one's, when leases of the dead have ended."""
    clock = FixedClock()
    clock.now += timedelta(minutes=later)
    return Nitka.open(
        f"sqlite:///{folder / 'nitka.db'}",
        model=FakeModel(lambda messages: f"answer to {messages[-1]['content']}"),
        fold_model=OneLineEach(),
        keys=folder / "keys.json",
        limits=LIMITS,
        clock=clock,
        counter=None,
    )


async def talk(nitka: Nitka, session: int, rng: random.Random) -> None:
    for turn in range(TURNS // SESSIONS):
        text = f"{session} {rng.random()} {turn}"
        await nitka.say("anna", f"s{session}", text=text)
        sys.stdout.write(f"s{session} {text}\n")
        sys.stdout.flush()


async def main(folder: Path, seed: int) -> None:
    async with opened(folder, later=10 * seed) as nitka:
        await asyncio.gather(*(talk(nitka, session, random.Random(seed)) for session in range(SESSIONS)))


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
