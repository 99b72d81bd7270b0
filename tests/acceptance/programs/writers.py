"""Eight threads that take turns on one database, as one process of several. Run by test_many_writers.py.

writers.py FOLDER NAME SECONDS together|apart

"together": all threads share one nitka. "apart": each has an event loop and a nitka of its own. Prints one line of
JSON: how many turns were acknowledged per session, the longest turn in seconds, and the names of errors.
"""

from __future__ import annotations

import asyncio
import json
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nitka import Limits, Nitka, NitkaError
from nitka.testing import FakeModel

THREADS = 8
LIMITS = Limits(wait_seconds=10)
USERS = ("anna", "boris", "vera")


class Report:
    """What the threads saw."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}
        self.longest = 0.0
        self.errors: list[str] = []
        self._lock = threading.Lock()

    def add(self, session: str, seconds: float) -> None:
        with self._lock:
            self.done[session] = self.done.get(session, 0) + 1
            self.longest = max(self.longest, seconds)


def opened(folder: Path) -> Nitka:
    url, keys = f"sqlite:///{folder / 'nitka.db'}", folder.parent / "keys.json"
    return Nitka.open(url, model=FakeModel(), fold_model="offline", keys=keys, limits=LIMITS)


async def take_turns(nitka: Nitka, name: str, seconds: float, report: Report) -> None:
    """Turns of one thread in a session of its own, of a user that others write for too."""
    session, turn = name, 0
    end = time.monotonic() + seconds  # from when it is open
    user = USERS[hash_of(name) % len(USERS)]
    while time.monotonic() < end:
        began = time.monotonic()
        try:
            await nitka.say(user, session, text=f"{name} turn {turn}")
        except NitkaError as error:
            report.errors.append(type(error).__name__)
            return
        report.add(f"{user}/{session}", time.monotonic() - began)
        turn += 1


def hash_of(name: str) -> int:
    return sum(name.encode())


def together(folder: Path, name: str, seconds: float, report: Report) -> None:
    """One event loop with one nitka, and eight threads that call into it."""

    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with opened(folder) as nitka:

            def thread(at: int) -> None:
                asyncio.run_coroutine_threadsafe(take_turns(nitka, f"{name}-{at}", seconds, report), loop).result()

            with ThreadPoolExecutor(THREADS) as pool:
                await asyncio.gather(*(loop.run_in_executor(pool, thread, at) for at in range(THREADS)))

    asyncio.run(main())


def apart(folder: Path, name: str, seconds: float, report: Report) -> None:
    """Eight event loops with a nitka each: eight writers that know nothing of each other."""

    async def main(at: int) -> None:
        async with opened(folder) as nitka:
            await take_turns(nitka, f"{name}-{at}", seconds, report)

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(lambda at: asyncio.run(main(at)), at) for at in range(THREADS)]:
            done.result()


if __name__ == "__main__":
    place, who, seconds, how = sys.argv[1:]
    report = Report()
    sys.stdin.read()  # all processes start together
    {"together": together, "apart": apart}[how](Path(place), who, float(seconds), report)
    sys.stdout.write(json.dumps({"done": report.done, "longest": report.longest, "errors": report.errors}) + "\n")
