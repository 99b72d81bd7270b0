"""What one turn costs beside the physical floor, and whether it stays the same as the conversation grows.

    python benchmarks/turn.py --floor PATH [--turns N] [--sizes 100,1000,...]

One turn = open (read, unseal, pack the request), and commit (two sealed rows, durable). The model answers at once and
costs nothing. The conversation is laid out beforehand at the given length, folded up to the window. `fsync` counts
the calls of the whole process while the turns run, by a preloaded shim where a C compiler is at hand.

The floor is run between the rounds, in the same process on a database of its own, and "above" is our CPU less the
floor's of those very seconds: on a machine that others use too, only such a difference can be compared. Without folds
nothing runs in the background, and the question is not looked for in what the window has left (`recall="off"`).
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import ModuleType

from rich.console import Console
from rich.table import Table

from benchmarks.lay import lay
from benchmarks.syncs import Syncs
from nitka import Limits, Nitka
from nitka.remembering import Reach
from nitka.testing import memory_ring

MOST_LAID = 10_000  # messages of each of sixteen conversations: more would only be laid out longer
ROUND = 2  # turns of each session between two folds off the clock: twelve to fourteen rows are read
TEXT = ("What did we decide about the cake, and who brings the candles on Saturday? " * 4)[:300]


FLOOR_TURNS = 16  # between two rounds


class Floor:
    """The bare floor's turns, on a database of their own."""

    def __init__(self, script: str, folder: str) -> None:
        spec = importlib.util.spec_from_file_location("floor", script)
        assert spec is not None and spec.loader is not None
        self._module: ModuleType = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self._module)
        self._db = sqlite3.connect(Path(folder) / "floor.db", isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=full")
        if not self._db.execute("select 1 from sqlite_master").fetchone():
            self._db.executescript(self._module.SCHEMA)

    def cpu(self) -> float:
        """Seconds of CPU that one turn took, on average of a few; of this thread, for folds may run in others."""
        start = time.thread_time()
        for _ in range(FLOOR_TURNS):
            self._module.turn(self._db)
        return (time.thread_time() - start) / FLOOR_TURNS


async def turns(nitka: Nitka, session: str, count: int, *, recall: Reach = "off") -> list[float]:
    """Wall time of each turn, in milliseconds."""
    wall = []
    for _ in range(count):
        start = time.perf_counter()
        async with nitka.turn(session, session, text=TEXT, recall=recall) as turn:
            turn.answer(TEXT)
        wall.append((time.perf_counter() - start) * 1e3)
    return wall


async def measure(
    folder: str, floor: Floor, *, messages: int, sessions: int, count: int, folds: bool
) -> dict[str, float]:
    """Runs `count` turns in rounds; between them, off the clock, the window is folded to twelve unless `folds`."""
    path = Path(folder) / f"turn-{messages}-{sessions}-{folds}.db"
    limits = Limits() if folds else Limits(slack=1_000_000, backlog=2_000_000)  # a slack that no run uses up
    names = [f"s{at}" for at in range(sessions)]
    wall: list[float] = []
    elapsed = cpu = syncs = bare = 0.0
    recall: Reach = "session" if folds else "off"
    async with Nitka.open(f"sqlite:///{path}", keys=memory_ring(), limits=limits) as nitka:
        if not folds:
            await nitka._folder.stop(limits.close_seconds)
        for name in names:
            await lay(nitka, name, name, messages)
        for number in range(count // (sessions * ROUND)):
            if not folds:
                await asyncio.gather(*(lay(nitka, name, name, 0) for name in names))
            before = Syncs.count(), time.process_time(), time.perf_counter()
            rounds = await asyncio.gather(*(turns(nitka, name, ROUND, recall=recall) for name in names))
            if number:  # the first warms up
                elapsed += time.perf_counter() - before[2]
                cpu += time.process_time() - before[1]
                syncs += Syncs.count() - before[0]
                bare += floor.cpu() * sessions * ROUND
                wall += sum(rounds, [])
    wall.sort()
    done = len(wall)
    return {
        "median": wall[done // 2],
        "p95": wall[int(done * 0.95)],
        "cpu": cpu / done * 1e3,
        "above": (cpu - bare) / done * 1e3,
        "rate": done / elapsed,
        "fsync": syncs / done,
    }


def alone(path: str, count: int) -> str:
    """What the bare floor says of itself in the same minutes."""
    run = subprocess.run([sys.executable, path, str(count)], capture_output=True, text=True, check=True)
    return next(line for line in run.stdout.splitlines() if "synchronous=full" in line)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--floor", required=True, help="the floor script")
    options.add_argument("--turns", type=int, default=2_000)
    options.add_argument("--sizes", default="100,1000,10000,100000")
    chosen = options.parse_args()
    Syncs.preload()
    table = Table(
        "messages", "sessions", "median ms", "p95 ms", "CPU ms/turn", "above", "turns/s", "fsync/turn", "rate x CPU"
    )
    with tempfile.TemporaryDirectory(dir=os.environ.get("FLOOR_DIR")) as folder:
        print("floor alone:", alone(chosen.floor, chosen.turns))
        floor = Floor(chosen.floor, folder)
        sizes = [int(size) for size in chosen.sizes.split(",")]
        rows = [(size, 1, False) for size in sizes] + [(size, 16, False) for size in sizes if size <= MOST_LAID]
        for messages, sessions, folds in [*rows, (1_000, 1, True), (1_000, 16, True)]:
            run = measure(folder, floor, messages=messages, sessions=sessions, count=chosen.turns, folds=folds)
            got = asyncio.run(run)
            share = got["rate"] * got["cpu"] / 1e3
            label = f"{messages:,}" + (" with offline folds" if folds else "")
            cells = [f"{got[name]:.3f}" for name in ("median", "p95", "cpu", "above")]
            table.add_row(label, str(sessions), *cells, f"{got['rate']:,.0f}", f"{got['fsync']:.2f}", f"{share:.2f}")
        print("floor alone:", alone(chosen.floor, chosen.turns))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
