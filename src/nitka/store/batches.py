"""Threads that take whatever waits for them as one batch, and bring the results back to the event loops that asked.

* A job that has not begun when its wait is over is taken back and raises `StoreBusy`; one that has begun is waited
  for.
* Results of a batch come back to their event loop in one wake-up, which also keeps concurrent turns in step and
  their next commits together.
* Whatever goes wrong in a batch is raised where its jobs were asked for; the thread goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from nitka.errors import StoreBusy, StoreError

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]


class Job:
    """One piece of work and the event loop that waits for it. `outside` work runs after the batch's transaction."""

    __slots__ = ("error", "future", "loop", "outside", "result", "started", "work")

    def __init__(self, work: Work[Any], *, outside: bool = False) -> None:
        self.work = work
        self.outside = outside
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Any] = self.loop.create_future()
        self.started = False
        self.result: Any = None
        self.error: BaseException | None = None

    @property
    def live(self) -> bool:
        """Whether somebody still waits for it."""
        return self.error is None and not self.future.cancelled()

    def fail(self, error: BaseException) -> None:
        self.result, self.error = None, error

    def deliver(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


class Claims:
    """Decides between a job's beginning and its being given up: one of the two happens."""

    def __init__(self, wait: float) -> None:
        self._wait = wait
        self._lock = threading.Lock()

    def timer(self, job: Job) -> asyncio.TimerHandle:
        """Gives the job up after the wait, unless it has begun."""
        return job.loop.call_later(self._wait, self._give_up, job)

    def begin(self, jobs: Sequence[Job]) -> list[Job]:
        """Those that were not given up; from now on they cannot be."""
        with self._lock:
            live = [job for job in jobs if job.live]
            for job in live:
                job.started = True
        return live

    def _give_up(self, job: Job) -> None:
        with self._lock:
            if job.started:
                return
            job.fail(StoreBusy(f"It waited {self._wait:g} s."))
        job.deliver()


class BatchThread:
    """Runs `run` on whatever waits, and `end` once, after the last batch, in the same thread."""

    def __init__(self, name: str, run: Callable[[list[Job]], None], end: Callable[[], None]) -> None:
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._run = run
        self._end = end
        self._lock = threading.Lock()
        self._stopped = False
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def put(self, job: Job) -> None:
        """Raises `StoreError` once the thread was told to stop."""
        with self._lock:
            if self._stopped:
                raise StoreError("It is closed.")
            self._queue.put(job)

    def stop(self, wait: float) -> None:
        """Lets it finish what waits. If that takes longer than `wait` seconds (somebody holds the file lock), it
        ends by itself later.
        """
        with self._lock:
            if not self._stopped:
                self._queue.put(None)
            self._stopped = True
        self._thread.join(wait)

    def _loop(self) -> None:
        going = True
        while going:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            jobs = [job for job in batch if job is not None]
            going = len(jobs) == len(batch)
            if jobs:
                self._run_and_answer(jobs)
        self._end()

    def _run_and_answer(self, jobs: list[Job]) -> None:
        try:
            self._run(jobs)
        except BaseException as error:  # noqa: BLE001  # raised where the jobs were asked for; all others would hang
            for job in jobs:
                job.fail(error)
        for loop in {id(job.loop): job.loop for job in jobs}.values():
            mine = [job for job in jobs if job.loop is loop]
            with contextlib.suppress(RuntimeError):  # that loop is closed: nobody waits there
                loop.call_soon_threadsafe(_deliver, mine)


def _deliver(jobs: list[Job]) -> None:
    for job in jobs:
        job.deliver()
