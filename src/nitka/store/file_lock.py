"""A lock between processes, on two files beside the database.

Waiters block in the kernel instead of polling. `flock` alone wakes all who wait and lets the quickest win, which is
often the one that has just let go. So there are two locks: whoever holds the first, the turnstile, waits for the
second, and gives the first back once he has it. Who lets go cannot come back before the one in the turnstile had
his turn. The kernel gives locks back when a process dies.
"""

from __future__ import annotations

import fcntl
import os
import time

from nitka.errors import StoreBusy
from nitka.world import monotonic

POLL_SECONDS = 0.01


class FileLock:
    """Use it as `with lock:`. One thread at a time; another object on the same path is another waiter."""

    def __init__(self, path: str) -> None:
        self._paths = (path + ".turn", path + ".lock")
        self._files: list[int] = []

    def open(self) -> None:
        """Makes the files if need be. Raises `OSError`."""
        for path in self._paths:
            self._files.append(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def close(self) -> None:
        while self._files:
            os.close(self._files.pop())

    def __enter__(self) -> None:
        turn, lock = self._files
        fcntl.flock(turn, fcntl.LOCK_EX)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        finally:
            fcntl.flock(turn, fcntl.LOCK_UN)

    def __exit__(self, *_: object) -> None:
        fcntl.flock(self._files[1], fcntl.LOCK_UN)

    def acquire(self, wait: float) -> None:
        """Takes the lock within `wait` seconds, by polling: for the rare caller that must not block for ever. Raises
        `StoreBusy`.
        """
        end = monotonic() + wait
        while True:
            try:
                fcntl.flock(self._files[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if monotonic() > end:
                    raise StoreBusy(f"It waited {wait:g} s.") from error
                time.sleep(POLL_SECONDS)
            else:
                return

    def release(self) -> None:
        self.__exit__()
