"""One SQLite file and the two threads that work on it.

* The writer takes every waiting write, in the order they came, and commits them together: one transaction, one
  fsync, each write a savepoint, so that one that fails undoes only itself.
* Processes queue on a blocking lock on a file beside the database, instead of polling SQLite's own lock.
* A write that has not begun when its wait is over is taken back and raises `StoreBusy`; one that has begun is
  waited for.
* Results of a batch come back to their event loop in one wake-up, which also keeps concurrent turns in step and
  their next commits together.

WAL and synchronous FULL: what is acknowledged is on disk. `secure_delete` and `temp_store=MEMORY`: what is deleted
is overwritten, and nothing is written anywhere else.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar, cast

from nitka.errors import StoreBusy, StoreError
from nitka.store.sql import migrations

T = TypeVar("T")
Work = Callable[[sqlite3.Connection], T]

PRAGMAS = (
    "journal_mode=wal",
    "synchronous=full",
    "secure_delete=on",
    "temp_store=memory",
    "foreign_keys=off",
    "cache_size=-8000",
)
NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ncpfs ceph glusterfs lustre beegfs gpfs davfs".split()
    + "fuse.sshfs fuse.glusterfs fuse.s3fs fuse.rclone".split()
)


def explain(error: sqlite3.Error) -> StoreError:
    """Our error for one of SQLite's, whose texts may quote values and are therefore not repeated."""
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return StoreBusy()
    hints = {
        "SQLITE_FULL": "The disk is full; nothing was written.",
        "SQLITE_CORRUPT": "The file is damaged; restore it from a backup.",
        "SQLITE_NOTADB": "The file is not a nitka database.",
        "SQLITE_CANTOPEN": "The file cannot be opened; check that its folder exists and may be written.",
        "SQLITE_READONLY": "The file cannot be written; check its permissions.",
        "SQLITE_IOERR": "Reading or writing the file failed.",
    }
    hint = next((text for prefix, text in hints.items() if name.startswith(prefix)), "")
    return StoreError(f"{hint} ({name})".strip())


def refuse_network_file_system(path: str, mounts: str = "/proc/self/mounts") -> None:
    """SQLite's locks cannot be trusted on network file systems. Where the mounts cannot be read (not Linux) nothing
    is refused.
    """
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            points = [line.split()[1:3] for line in file]
    except OSError:
        return
    folder = os.path.realpath(os.path.dirname(path) or ".")
    inside = [(len(point), kind) for point, kind in points if (folder + "/").startswith(point.rstrip("/") + "/")]
    if inside and max(inside)[1] in NETWORK_FILE_SYSTEMS:
        raise StoreError("A SQLite store must not lie on a network file system; use a local disk, or PostgreSQL.")


class _Job:
    """One piece of work and the event loop that waits for it. Without work: empty the write-ahead log."""

    __slots__ = ("error", "future", "loop", "result", "started", "work")

    def __init__(self, work: Work[Any] | None, loop: asyncio.AbstractEventLoop) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.started = False
        self.result: Any = None
        self.error: BaseException | None = None

    def deliver(self) -> None:
        if self.future.done():
            return
        if self.error is None:
            self.future.set_result(self.result)
        else:
            self.future.set_exception(self.error)


def _deliver(jobs: list[_Job]) -> None:
    for job in jobs:
        job.deliver()


class _Thread:
    """Takes whatever waits in its queue and runs it as one batch."""

    def __init__(self, name: str, run: Callable[[list[_Job]], None]) -> None:
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._run = run
        self._thread = threading.Thread(target=self._loop, name=name, daemon=True)
        self._thread.start()

    def put(self, job: _Job) -> None:
        self._queue.put(job)

    def stop(self) -> None:
        self._queue.put(None)
        self._thread.join()

    def _loop(self) -> None:
        while True:
            batch = [self._queue.get()]
            while not self._queue.empty():
                batch.append(self._queue.get())
            jobs = [job for job in batch if job is not None]
            if jobs:
                self._run(jobs)
                self._answer(jobs)
            if len(jobs) < len(batch):
                return

    @staticmethod
    def _answer(jobs: list[_Job]) -> None:
        for loop in {id(job.loop): job.loop for job in jobs}.values():
            mine = [job for job in jobs if job.loop is loop]
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, mine)


class SqliteFile:
    """A database file with its schema. `wait` is in seconds and holds for one write's time in the queue."""

    def __init__(self, path: str, schema: str, *, wait: float) -> None:
        self.path = path
        self._schema = schema
        self._wait = wait
        self._claim = threading.Lock()
        self._writer: _Thread | None = None
        self._reader: _Thread | None = None
        self._lock_file = -1

    def open(self) -> None:
        """Opens and migrates, in the calling thread. Raises `StoreError`."""
        refuse_network_file_system(self.path)
        try:
            self._lock_file = os.open(self.path + ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        except OSError as error:
            raise StoreError(f"The database file cannot be opened: {os.strerror(error.errno or 0)}.") from error
        try:
            with self.locked():
                self._write_db = self._connect()
                self._migrate(self._write_db)
            self._read_db = self._connect()
            self._read_db.execute("pragma query_only=on")
        except sqlite3.Error as error:
            raise explain(error) from error
        self._writer = _Thread("nitka-writer", self._write_batch)
        self._reader = _Thread("nitka-reader", self._read_batch)

    def close(self) -> None:
        """Finishes what waits, then closes. Safe to call twice."""
        if self._writer is None or self._reader is None:
            return
        self._writer.stop()
        self._reader.stop()
        self._writer = self._reader = None
        self._read_db.close()
        self._write_db.close()
        os.close(self._lock_file)

    async def write(self, work: Work[T]) -> T:
        """Runs `work` in a transaction that is durable when this returns."""
        job = self._job(work)
        timer = job.loop.call_later(self._wait, self._give_up, job)
        self._thread(self._writer).put(job)
        try:
            return cast(T, await job.future)
        finally:
            timer.cancel()

    async def read(self, work: Work[T]) -> T:
        """Runs `work` in one snapshot."""
        job = self._job(work)
        self._thread(self._reader).put(job)
        return cast(T, await job.future)

    async def scrub(self, attempts: int = 20) -> bool:
        """Moves the write-ahead log into the database and empties it; False while a reader holds an older snapshot."""
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(0.01 * attempt)
            if await self._checkpoint():
                return True
        return False

    async def _checkpoint(self) -> bool:
        job = _Job(None, asyncio.get_running_loop())
        self._thread(self._writer).put(job)
        return cast(bool, await job.future)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the file lock beside the database; blocks until it is free."""
        fcntl.flock(self._lock_file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(self._lock_file, fcntl.LOCK_UN)

    @staticmethod
    def _job(work: Work[T]) -> _Job:
        return _Job(work, asyncio.get_running_loop())

    @staticmethod
    def _thread(thread: _Thread | None) -> _Thread:
        if thread is None:
            raise StoreError("It is closed.")
        return thread

    def _give_up(self, job: _Job) -> None:
        with self._claim:
            if job.started:
                return
            job.error = StoreBusy(f"It waited {self._wait:g} s.")
        job.deliver()

    def _connect(self) -> sqlite3.Connection:
        db = sqlite3.connect(
            self.path, isolation_level=None, timeout=self._wait, check_same_thread=False, cached_statements=256
        )
        for pragma in PRAGMAS:
            db.execute(f"pragma {pragma}")
        return db

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Applies what is missing, each migration with its record in one transaction."""
        db.execute("create table if not exists migrations (number integer primary key, name text not null)")
        applied = {number for (number,) in db.execute("select number from migrations")}
        known = migrations("sqlite", self._schema)
        if applied - {number for number, _, _ in known}:
            raise StoreError("The database was written by a newer version of nitka; upgrade nitka.")
        for number, name, statements in known:
            if number not in applied:
                db.execute("begin immediate")
                for statement in statements:
                    db.execute(statement)
                db.execute("insert into migrations (number, name) values (?, ?)", (number, name))
                db.execute("commit")

    def _read_batch(self, jobs: list[_Job]) -> None:
        db = self._read_db
        try:
            db.execute("begin")
            for job in jobs:
                self._run(job, db)
            db.execute("commit")
        except sqlite3.Error as error:
            self._fail(jobs, explain(error), db)

    def _write_batch(self, jobs: list[_Job]) -> None:
        with self.locked():
            with self._claim:
                live = [job for job in jobs if job.error is None and not job.future.cancelled()]
                for job in live:
                    job.started = True
            writes = [job for job in live if job.work is not None]
            if writes:
                self._commit(writes)
            for job in live:
                if job.work is None:
                    job.result = self._truncate_log()

    def _truncate_log(self) -> bool:
        db = self._write_db
        db.execute("pragma busy_timeout=0")  # a reader would hold up everybody's writes; the caller tries again
        try:
            busy, *_ = db.execute("pragma wal_checkpoint(truncate)").fetchone()
            return not busy
        except sqlite3.OperationalError:
            return False
        finally:
            db.execute(f"pragma busy_timeout={int(self._wait * 1000)}")

    def _commit(self, jobs: list[_Job]) -> None:
        db = self._write_db
        try:
            db.execute("begin immediate")
            for job in jobs:
                db.execute("savepoint job")
                if not self._run(job, db):
                    db.execute("rollback to job")
                db.execute("release job")
            db.execute("commit")
        except sqlite3.Error as error:
            self._fail(jobs, explain(error), db)

    @staticmethod
    def _run(job: _Job, db: sqlite3.Connection) -> bool:
        try:
            job.result = job.work(db) if job.work else None
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CORRUPT")):
                raise  # SQLite may have undone the whole transaction
            job.error = explain(error)
        except BaseException as error:  # noqa: BLE001  # kept, and raised where the work was asked for
            job.error = error
        return job.error is None

    @staticmethod
    def _fail(jobs: list[_Job], error: StoreError, db: sqlite3.Connection) -> None:
        if db.in_transaction:
            db.execute("rollback")
        for job in jobs:
            job.result = None
            job.error = error
