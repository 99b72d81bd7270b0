"""One SQLite file and the two threads that work on it.

* The writer takes every waiting write, in the order they came, and commits them together: one transaction, one
  fsync, each write a savepoint, so that one that fails undoes only itself.
* Processes queue on a blocking lock on a file beside the database, instead of polling SQLite's own lock. That one is
  only ever held by programs that are not nitka.
* The reader gives every waiting read the same snapshot, taken after the last of them came.

WAL and synchronous FULL: what is acknowledged is on disk. `secure_delete` and `temp_store=MEMORY`: what is deleted
is overwritten, and nothing is written anywhere else, but for the passing copy that `scrub` makes.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from collections.abc import Sequence
from typing import cast

from nitka.errors import StoreBusy, StoreError
from nitka.store.batches import BatchThread, Claims, Job, T, Work
from nitka.store.file_lock import FileLock
from nitka.store.port import Effort
from nitka.store.sql import Migration

PRAGMAS: tuple[str, ...] = (
    "journal_mode=wal",
    "synchronous=full",
    "fullfsync=on",  # macOS: a plain fsync there does not reach the disk
    "checkpoint_fullfsync=on",
    "secure_delete=on",
    "temp_store=memory",
    "foreign_keys=off",
    "cache_size=-8000",
)
BUSY_MILLISECONDS = 50  # between looks at whether anybody still waits, while another program holds the database
SHORT_BYTES = 32 << 20  # of a file that is built anew while a caller waits; about a second
NETWORK_FILE_SYSTEMS = frozenset(
    "nfs nfs4 cifs smb3 smbfs afs ncpfs ceph glusterfs lustre beegfs gpfs davfs".split()
    + "fuse.sshfs fuse.glusterfs fuse.s3fs fuse.rclone".split()
)
HINTS = {
    "SQLITE_FULL": "The disk is full; nothing was written.",
    "SQLITE_CORRUPT": "The file is damaged; restore it from a backup.",
    "SQLITE_NOTADB": "The file is not a nitka database.",
    "SQLITE_CANTOPEN": "The file cannot be opened; check that its folder exists and may be written.",
    "SQLITE_READONLY": "The file cannot be written; check its permissions.",
    "SQLITE_IOERR": "Reading or writing the file failed; is the disk full or gone?",
}
# After these SQLite may have undone the whole transaction, not only the statement.
FATAL = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOMEM", "SQLITE_INTERRUPT")


def explain(error: sqlite3.Error) -> StoreError:
    """Our error for one of SQLite's, whose texts may quote values and are therefore not repeated."""
    name = _name(error)
    if _busy(error):
        return StoreBusy()
    hint = next((text for prefix, text in HINTS.items() if name.startswith(prefix)), "")
    return StoreError(f"{hint} ({name})".strip())


def refuse_network_file_system(path: str, mounts: str = "/proc/self/mounts") -> None:
    """SQLite's locks cannot be trusted on network file systems. Where the mounts cannot be read (not Linux) nothing
    is refused.
    """
    try:
        with open(mounts, encoding="utf-8", errors="replace") as file:
            points = [fields[1:3] for line in file if len(fields := line.split()) > 2]
    except OSError:
        return
    folder = os.path.dirname(os.path.realpath(path)) + "/"
    kind, longest = "", -1
    for point, its_kind in points:
        point = _plain(point).rstrip("/") + "/"
        if folder.startswith(point) and len(point) >= longest:  # of two on one point the later hides the earlier
            kind, longest = its_kind, len(point)
    if kind in NETWORK_FILE_SYSTEMS:
        raise StoreError("A SQLite store must not lie on a network file system; use a local disk, or PostgreSQL.")


def _plain(point: str) -> str:
    """A mount point without the octal escapes that the kernel writes for white space and backslashes."""
    for escaped, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        point = point.replace(escaped, char)
    return point


class SqliteFile:
    """A database file with its migrations. `wait` is in seconds and holds for one write's time in the queue."""

    def __init__(self, path: str, migrations: Sequence[Migration], *, wait: float) -> None:
        self.path = os.path.realpath(path)  # whatever it is called, its locks lie beside it
        self._migrations = migrations
        self._wait = wait
        self._claims = Claims(wait)
        self._lock = FileLock(self.path + ".lock")
        self._write_db: sqlite3.Connection | None = None
        self._read_db: sqlite3.Connection | None = None
        self._writer: BatchThread | None = None
        self._reader: BatchThread | None = None

    def open(self) -> None:
        """Opens and migrates, in the calling thread. Raises `StoreError`, `StoreBusy`."""
        refuse_network_file_system(self.path)
        try:
            self._open()
        except sqlite3.Error as error:
            self._release()
            raise explain(error) from error
        except OSError as error:
            self._release()
            raise StoreError(f"The database file cannot be opened: {os.strerror(error.errno or 0)}.") from error
        except BaseException:
            self._release()
            raise
        self._writer = BatchThread("nitka-writer", self._write_batch, self._end_writer)
        self._reader = BatchThread("nitka-reader", self._read_batch, self._end_reader)

    def _open(self) -> None:
        self._lock.open()
        self._lock.acquire(self._wait)
        try:
            _make(self.path)
            db = self._write_db = self._connect()
            self._check(db)
            _prepare(db)
            self._migrate(db)
            db.execute(f"pragma busy_timeout={BUSY_MILLISECONDS}")
        finally:
            self._lock.release()
        self._read_db = self._connect()
        _prepare(self._read_db)
        self._read_db.execute("pragma query_only=on")

    def close(self) -> None:
        """Finishes what waits, then closes. Safe to call twice."""
        threads = (self._writer, self._reader)
        self._writer = self._reader = None
        for thread in threads:
            if thread is not None:
                thread.stop(self._wait)

    async def write(self, work: Work[T]) -> T:
        """Runs `work` in a transaction that is durable when this returns."""
        return cast(T, await self._queue(Job(work)))

    async def read(self, work: Work[T]) -> T:
        """Runs `work` in one snapshot."""
        job = Job(work)
        _running(self._reader).put(job)
        return cast(T, await job.future)

    async def scrub(self, effort: Effort = "short", *, attempts: int = 20) -> bool:
        """Makes removed bytes vanish from the file and its log; False while a reader holds an older snapshot, somebody
        the lock, or the file is too large for a "short" effort.

        `secure_delete` overwrites a deleted row where it lies, but not the copies that SQLite leaves in unused parts
        of pages when it moves rows from one page to another; only a file that is built anew is free of them.
        That takes as long as copying the file does, and writers wait meanwhile.
        """
        work = _truncate_log if effort == "log" else _rebuild
        if effort == "short" and os.path.getsize(self.path) > SHORT_BYTES:
            return False
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(0.01 * attempt)
            try:
                if await self._queue(Job(work, outside=True)):
                    return True
            except StoreBusy:
                return False
        return False

    async def _queue(self, job: Job) -> object:
        _running(self._writer).put(job)
        timer = self._claims.timer(job)
        try:
            return await job.future
        finally:
            timer.cancel()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(
            self.path, isolation_level=None, timeout=self._wait, check_same_thread=False, cached_statements=256
        )

    def _check(self, db: sqlite3.Connection) -> None:
        """Refuses what is not ours before anything in it is changed."""
        tables = {name for (name,) in db.execute("select name from sqlite_master where type = 'table'")}
        if not tables:
            return
        if db.execute("select 1 from sqlite_master where type in ('trigger', 'view')").fetchone():
            raise StoreError("The file holds triggers or views; nitka makes none, and would run what they say.")
        if "migrations" not in tables:
            raise StoreError("The file is another program's database.")
        known = {number: name for number, name, _ in self._migrations}
        for number, name in db.execute("select number, name from migrations order by number"):
            if number in known and known[number] != name:
                raise StoreError("The file holds something else; were the files of data and keys mixed up?")
            if number not in known:
                raise StoreError("The database was written by a newer version of nitka; upgrade nitka.")

    def _migrate(self, db: sqlite3.Connection) -> None:
        """Applies what is missing, each migration with its record in one transaction."""
        db.execute("create table if not exists migrations (number integer primary key, name text not null)")
        applied = {number for (number,) in db.execute("select number from migrations")}
        for number, name, statements in self._migrations:
            if number not in applied:
                db.execute("begin immediate")
                for statement in statements:
                    db.execute(statement)
                db.execute("insert into migrations (number, name) values (?, ?)", (number, name))
                db.execute("commit")

    def _read_batch(self, jobs: list[Job]) -> None:
        db = self._read_db
        assert db is not None
        try:
            db.execute("begin")
            for job in jobs:
                _run(job, db)
            db.execute("commit")
        except sqlite3.Error as error:
            _undo(db, jobs, explain(error))

    def _write_batch(self, jobs: list[Job]) -> None:
        db = self._write_db
        assert db is not None
        writes = [job for job in jobs if not job.outside]
        with self._lock:
            try:
                if writes and _begin(db, writes):
                    _commit(db, self._claims.begin(writes))
            except sqlite3.Error as error:
                _undo(db, writes, explain(error))
            for job in self._claims.begin([job for job in jobs if job.outside]):
                job.result = job.work(db)

    def _end_writer(self) -> None:
        if self._write_db is not None:
            self._write_db.close()
        self._lock.close()

    def _end_reader(self) -> None:
        if self._read_db is not None:
            self._read_db.close()

    def _release(self) -> None:
        """Gives back what a failed `open` had taken."""
        self._end_reader()
        self._end_writer()


def _make(path: str) -> None:
    """Makes a private file if there is none. One that is there is not even opened: closing it would take away the
    locks that SQLite holds on it for other connections of this process.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


def _running(thread: BatchThread | None) -> BatchThread:
    if thread is None:
        raise StoreError("It is closed.")
    return thread


def _name(error: sqlite3.Error) -> str:
    return getattr(error, "sqlite_errorname", type(error).__name__)


def _busy(error: sqlite3.Error) -> bool:
    return _name(error).startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


def _prepare(db: sqlite3.Connection) -> None:
    for pragma in PRAGMAS:
        db.execute(f"pragma {pragma}")
    if db.execute("pragma journal_mode").fetchone() != ("wal",):
        raise StoreError("The file system cannot hold a write-ahead log.")


def _begin(db: sqlite3.Connection, jobs: list[Job]) -> bool:
    """Takes SQLite's own lock; False once nobody waits any more."""
    while any(job.live for job in jobs):
        try:
            db.execute("begin immediate")
        except sqlite3.OperationalError as error:
            if not _busy(error):
                raise
        else:
            return True
    return False


def _commit(db: sqlite3.Connection, jobs: list[Job]) -> None:
    if len(jobs) == 1:
        db.execute("commit" if _run(jobs[0], db, fatal=FATAL) else "rollback")
        return
    for job in jobs:
        db.execute("savepoint job")
        if not _run(job, db, fatal=FATAL):
            db.execute("rollback to job")
        db.execute("release job")
    db.execute("commit")


def _run(job: Job, db: sqlite3.Connection, *, fatal: tuple[str, ...] = ()) -> bool:
    try:
        job.result = job.work(db)
    except sqlite3.Error as error:
        if not db.in_transaction or _name(error).startswith(fatal):
            raise
        job.fail(explain(error))
    except BaseException as error:  # noqa: BLE001  # kept, and raised where the work was asked for
        job.fail(error)
    return job.error is None


def _undo(db: sqlite3.Connection, jobs: list[Job], error: StoreError) -> None:
    if db.in_transaction:
        with contextlib.suppress(sqlite3.Error):
            db.execute("rollback")
    for job in jobs:
        if job.error is None:
            job.fail(error)


def _rebuild(db: sqlite3.Connection) -> bool:
    if not _truncate_log(db):  # a reader is there: building anew would be in vain
        return False
    try:
        db.execute("pragma temp_store=file")  # sealed rows of the living only; a large file does not fit in memory
        db.execute("vacuum")
    except sqlite3.Error:
        return False
    finally:
        db.execute("pragma temp_store=memory")
    return _truncate_log(db)


def _truncate_log(db: sqlite3.Connection) -> bool:
    db.execute("pragma busy_timeout=0")  # a reader would hold up everybody's writes; the caller tries again
    try:
        busy, *_ = db.execute("pragma wal_checkpoint(truncate)").fetchone()
        return not busy
    except sqlite3.Error:
        return False
    finally:
        db.execute(f"pragma busy_timeout={BUSY_MILLISECONDS}")
