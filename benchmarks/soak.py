"""Ten minutes of everything at once on a real server; then the laws are checked on what it left.

    python -m benchmarks.soak [--store sqlite,postgres] [--minutes N] [--people N] [--pause SECONDS] [--workers N]

`nitka serve` runs as an operator starts it, with folds by the offline rules, in front of an upstream that answers at
once and streams for half a second. People talk: turns, streams, streams cut off, reads, the same delivery again; they
forget a turn, a fact, a session, everything. All the while a worker process is ended, by SIGTERM and by SIGKILL in
turns, and the supervisor begins another. What a broken line left unanswered is sent again with its key.

In the end the server is stopped, and the store opened here: two rows a turn, every acknowledged turn once and in order,
no forgotten one, no gap and no overlap at any cursor, nothing left due; some people are forgotten, and nothing is left
of them. Memory is the resident size of the supervisor and the workers that were never ended, by least squares over what
comes after the third minute (of a shorter run it is told, and not judged).

Whoever finds an assertion here has found a fault: the run ends with it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import httpx
from rich.console import Console

from benchmarks.server import free_port, process
from benchmarks.soak_people import Person, check, gone, line_of
from benchmarks.stores import KINDS, new_store
from nitka import Nitka
from nitka.config import Settings

SETTLED = 180.0  # seconds after which memory must not grow any more
GROWTH = 1.0  # MB a minute
STREAM = "0.5"  # seconds of a stream
ENDS = (signal.SIGTERM, signal.SIGKILL)  # in turns
AGAIN = 120.0  # seconds in which a worker must have been begun again in place of one that was ended
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Plan:
    """How long, how many, how often. `kill` is seconds between two ends of a worker."""

    seconds: float = 600.0
    people: int = 16
    workers: int = 2
    pause: float = 0.4
    kill: float = 15.0
    seed: int = 1


@dataclass
class Outcome:
    """What came of a run. `growth` is in MB a minute after the third minute, None of a run that was too short."""

    done: Counter[str]
    kept: Counter[str]
    ended: Counter[str]
    memory: list[tuple[float, float]]  # seconds since the start, MB
    log: str = field(repr=False)

    @property
    def growth(self) -> float | None:
        late = [(at, size) for at, size in self.memory if at > SETTLED]
        return slope(late) * 60 if late and late[-1][0] - late[0][0] >= 60 else None


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line that fits the points best, by least squares."""
    middle = sum(x for x, _ in points) / len(points)
    height = sum(y for _, y in points) / len(points)
    return sum((x - middle) * (y - height) for x, y in points) / sum((x - middle) ** 2 for x, _ in points)


class Server:
    """`nitka serve` and its worker processes."""

    def __init__(self, env: dict[str, str], workers: int, log: Path) -> None:
        self.port = free_port()
        words = ["serve", "--port", str(self.port), "--workers", str(workers), "--grace", "10"]
        with log.open("w") as stderr:
            self.process = subprocess.Popen([sys.executable, "-m", "nitka.cli", *words], env=env, stderr=stderr)
        self._workers = workers
        self.log = log
        until = time.monotonic() + 120
        while len(self.workers()) < workers or not self._answers():
            assert self.process.poll() is None and time.monotonic() < until, log.read_text()
            time.sleep(0.2)
        self.kept = self.workers()[:1]  # never ended, so that its memory can be watched

    def workers(self) -> list[int]:
        """The process ids of the workers, oldest first."""
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                parent = int(stat.read_text().rpartition(")")[2].split()[1])
                command = (stat.parent / "cmdline").read_bytes()
            except OSError:
                continue
            if parent == self.process.pid and command and b"resource_tracker" not in command:  # one that died has none
                found.append(int(stat.parent.name))
        return sorted(found)

    def memory(self) -> float:
        """MB of the processes that live as long as the server."""
        pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in (self.process.pid, *self.kept)]
        return sum(pages) * PAGE / 1e6

    def end_one(self, how: signal.Signals, chance: random.Random) -> bool:
        """Ends a worker; False where only those are left that are watched."""
        others = [pid for pid in self.workers() if pid not in self.kept]
        if others:
            os.kill(chance.choice(others), how)
        return bool(others)

    def stop(self) -> None:
        """A graceful stop of all its processes, as a service manager's. The supervisor of uvicorn may be waiting for a
        sign of life from a worker that was killed in that moment, for as long as it would for one that is starting:
        when no worker is left it has nothing to do any more.
        """
        for pid in (self.process.pid, *self.workers()):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        end = time.monotonic() + 60
        while (left := self.workers()) and self.process.poll() is None:
            assert time.monotonic() < end, f"{len(left)} workers did not stop"
            time.sleep(0.1)
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0


def environment(folder: Path, url: str, upstream: int) -> dict[str, str]:
    keep = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
    own = {"HOME": str(folder), "LANG": "C.UTF-8", "NITKA_STORE": url, "NITKA_MODEL": "openai:m"}
    own |= {"OPENAI_BASE_URL": f"http://127.0.0.1:{upstream}/v1", "NITKA_FOLD_MODEL": "offline"}
    return {name: os.environ[name] for name in keep if name in os.environ} | own


def soak(plan: Plan, kind: str) -> Outcome:
    """One run on one kind of store. Raises `AssertionError` for the first law that does not hold."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(new_store(kind, folder, durable=False))
        upstream = free_port()
        stack.enter_context(process("instant", str(upstream), STREAM, port=upstream))
        env = environment(folder, url, upstream)
        scopes = ["--scope", "turns,read,admin", "--rate", "1000000"]
        made = subprocess.run(
            [sys.executable, "-m", "nitka.cli", "keys", "create", *scopes], env=env, capture_output=True, text=True
        )
        assert made.returncode == 0, made.stderr
        server = Server(env, plan.workers, folder / "log")
        stack.callback(server.process.kill)
        return asyncio.run(_soak(plan, server, Settings.read(env), made.stdout.strip()))


async def _soak(plan: Plan, server: Server, settings: Settings, key: str) -> Outcome:
    done: Counter[str] = Counter()
    ended: Counter[str] = Counter()
    memory: list[tuple[float, float]] = []
    over = asyncio.Event()
    headers = {"Authorization": f"Bearer {key}"}
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=4 * plan.workers)
    base = f"http://127.0.0.1:{server.port}"
    async with httpx.AsyncClient(base_url=base, headers=headers, limits=limits, timeout=60) as http:
        people = [
            Person(f"p{number}", http, done, pause=plan.pause, seed=plan.seed * 1_000 + number)
            for number in range(plan.people)
        ]
        async with asyncio.TaskGroup() as group:
            for person in people:
                group.create_task(person.live(over))
            group.create_task(_ending(plan, server, ended, over))
            group.create_task(_watching(server, memory, over))
            await asyncio.sleep(plan.seconds)
            await _each_way(ended)
            over.set()
    await asyncio.to_thread(server.stop)
    log = server.log.read_text()
    assert "Traceback" not in log, log[-3_000:]
    return Outcome(done, await _checked(settings, people), ended, memory, log)


async def _ending(plan: Plan, server: Server, ended: Counter[str], over: asyncio.Event) -> None:
    """Ends a worker now and then, gently and not."""
    chance = random.Random(plan.seed)
    while not over.is_set():
        how = ENDS[ended.total() % len(ENDS)]
        await asyncio.sleep(min(plan.kill, plan.seconds / 3))
        if not over.is_set() and server.end_one(how, chance):
            ended[how.name] += 1


async def _each_way(ended: Counter[str]) -> None:
    """Until a worker was ended in each way: on a slow machine a short run is over before the second one is up again."""
    async with asyncio.timeout(AGAIN):
        while len(ended) < len(ENDS):
            await asyncio.sleep(0.1)


async def _watching(server: Server, memory: list[tuple[float, float]], over: asyncio.Event) -> None:
    begin = time.monotonic()
    while not over.is_set():
        assert server.process.poll() is None, "the server ended"
        assert set(server.kept) <= set(server.workers()), "a worker ended that nobody told to"
        memory.append((time.monotonic() - begin, server.memory()))
        await asyncio.sleep(1)


async def _checked(settings: Settings, people: list[Person]) -> Counter[str]:
    """The laws, with the server gone; every second person is forgotten in the end."""
    kept: Counter[str] = Counter()
    async with Nitka.open(settings.store, settings=settings, background=False) as nitka:
        settled = await nitka.settle(rescan=True)
        assert settled.failed == 0
        kept["folds left for the end"] = settled.folds
        for person in people:
            kept += await check(nitka, person)
        for person in people[::2]:
            await nitka.forget(person.name)
            assert await gone(nitka, person.name)
        for person in people[1::2]:
            await check(nitka, person)
        owners = len(await nitka._vault.store.owners())
        assert owners <= len(people) - len(people[::2]), f"{owners} owners are left"
    return kept


def told(kind: str, plan: Plan, outcome: Outcome, console: Console) -> None:
    """What a run was, in a few lines."""
    first, last = outcome.memory[0][1], outcome.memory[-1][1]
    grown = "not judged" if outcome.growth is None else f"{outcome.growth:+.2f} MB a minute after the third"
    console.print(f"[bold]{kind}[/bold]: {plan.seconds:g} s, {plan.people} people, {plan.workers} workers")
    console.print(f"  done: {line_of(outcome.done)}")
    console.print(f"  workers ended: {line_of(outcome.ended)}")
    console.print(f"  kept, and checked: {line_of(outcome.kept)}")
    console.print(f"  memory: {first:.0f} MB at first, {last:.0f} MB at last, {grown}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--store", type=lambda text: text.split(","), default=list(KINDS))
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--people", type=int, default=Plan.people)
    parser.add_argument("--pause", type=float, default=Plan.pause)
    parser.add_argument("--workers", type=int, default=Plan.workers)
    parser.add_argument("--seed", type=int, default=Plan.seed)
    args = parser.parse_args()
    plan = Plan(args.minutes * 60, args.people, args.workers, args.pause, seed=args.seed)
    console = Console(width=120, soft_wrap=True)
    for kind in args.store:
        outcome = soak(plan, kind)
        told(kind, plan, outcome, console)
        assert outcome.growth is None or outcome.growth < GROWTH, "memory grows"


if __name__ == "__main__":
    main()
