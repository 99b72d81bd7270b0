"""The file and its two threads: batches, locks, waits, and everything that can be wrong with a file."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nitka.errors import KeyMissing, NitkaError, StoreBusy, StoreError
from nitka.store.port import SessionRow
from nitka.store.sql import Migration
from nitka.store.sqlite import SqliteStore
from nitka.store.sqlite_file import SqliteFile, refuse_network_file_system
from nitka.types import Sealed, Tag

pytestmark = pytest.mark.anyio

STEPS: list[Migration] = [(1, "0001_test.sql", ["create table t (a integer primary key)"])]
WAIT = 0.3
SLACK = 1.5  # this machine may be busy; the wait itself is far below


@pytest.fixture
async def file(tmp_path: Path, anyio_backend: str) -> AsyncIterator[SqliteFile]:
    made = SqliteFile(str(tmp_path / "file.db"), STEPS, wait=WAIT)
    await asyncio.to_thread(made.open)
    yield made
    await asyncio.to_thread(made.close)


def insert(*values: int) -> Callable[[sqlite3.Connection], None]:
    def work(db: sqlite3.Connection) -> None:
        for value in values:
            db.execute("insert into t values (?)", (value,))

    return work


async def found(file: SqliteFile) -> list[int]:
    return [a for (a,) in await file.read(lambda db: db.execute("select a from t order by a").fetchall())]


@contextmanager
def file_lock_held(file: SqliteFile) -> Iterator[None]:
    """As if another process were writing."""
    handle = os.open(file.path + ".lock", os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(handle)


@contextmanager
def database_held(file: SqliteFile, how: str = "begin immediate") -> Iterator[sqlite3.Connection]:
    """As if a program that knows nothing of nitka were at work."""
    db = sqlite3.connect(file.path, isolation_level=None)
    db.execute(how)
    db.execute("select * from t").fetchall()
    try:
        yield db
    finally:
        db.close()


# Batches


async def test_writes_that_wait_together_are_committed_together(file: SqliteFile) -> None:
    """While a later job of the batch runs, nobody else sees what an earlier one wrote."""
    seen: list[int] = []

    def look(db: sqlite3.Connection) -> None:
        other = sqlite3.connect(file.path)
        seen.append(other.execute("select count(*) from t").fetchone()[0])
        other.close()
        seen.append(db.execute("select count(*) from t").fetchone()[0])

    with file_lock_held(file):
        jobs = [asyncio.ensure_future(file.write(insert(1)))]
        await asyncio.sleep(0.05)  # the first is alone in its batch, waiting for the lock; these make the second
        jobs += [asyncio.ensure_future(file.write(work)) for work in (insert(2), insert(3), look)]
        await asyncio.sleep(0.05)
    await asyncio.gather(*jobs)
    assert seen == [1, 3]


async def test_a_write_that_fails_undoes_only_itself(file: SqliteFile) -> None:
    class Broke(Exception):
        pass

    def breaks(db: sqlite3.Connection) -> None:
        insert(10, 11)(db)
        raise Broke

    with file_lock_held(file):
        works = (insert(1), breaks, insert(2), insert(20, 2), insert(3))
        jobs = [asyncio.ensure_future(file.write(work)) for work in works]
        await asyncio.sleep(0.05)
    results = await asyncio.gather(*jobs, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), Broke, type(None), StoreError, type(None)]
    assert await found(file) == [1, 2, 3]


async def test_a_read_sees_every_write_that_was_acknowledged(file: SqliteFile) -> None:
    for value in range(30):
        await file.write(insert(value))
        assert len(await found(file)) == value + 1


async def test_reads_that_fail_leave_the_others_alone(file: SqliteFile) -> None:
    await file.write(insert(1))
    results = await asyncio.gather(
        found(file), file.read(lambda db: db.execute("select * from nowhere")), found(file), return_exceptions=True
    )
    assert results[0] == results[2] == [1]
    assert isinstance(results[1], StoreError)


async def test_the_reader_cannot_write(file: SqliteFile) -> None:
    with pytest.raises(StoreError):
        await file.read(insert(1))
    assert await found(file) == []


async def test_event_loops_of_many_threads_share_one_file(file: SqliteFile) -> None:
    errors: list[BaseException] = []

    def work(first: int) -> None:
        async def run() -> None:
            for value in range(first, first + 20):
                await file.write(insert(value))

        try:
            asyncio.run(run())
        except BaseException as error:
            errors.append(error)
            raise

    threads = [threading.Thread(target=work, args=(at * 100,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert errors == []
    assert len(await found(file)) == 80


async def test_an_event_loop_that_ends_while_it_waits_harms_nobody(file: SqliteFile) -> None:
    with file_lock_held(file):

        async def leave() -> None:
            asyncio.ensure_future(file.write(insert(1)))  # left alone on purpose
            await asyncio.sleep(0.05)

        await asyncio.to_thread(lambda: asyncio.run(leave()))
    await file.write(insert(2))
    assert 2 in await found(file)


async def test_a_write_whose_caller_is_cancelled_before_it_began_is_not_done(file: SqliteFile) -> None:
    with file_lock_held(file):
        job = asyncio.ensure_future(file.write(insert(1)))
        await asyncio.sleep(0.05)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job
    await file.write(insert(2))
    assert await found(file) == [2]


# Waiting


async def busy(file: SqliteFile) -> None:
    began = time.monotonic()
    with pytest.raises(StoreBusy):
        await file.write(insert(1))
    assert WAIT * 0.9 <= time.monotonic() - began < WAIT + SLACK


async def test_a_write_waits_its_time_for_the_file_lock_and_is_then_never_done(file: SqliteFile) -> None:
    with file_lock_held(file):
        await busy(file)
        await busy(file)
    await file.write(insert(2))
    assert await found(file) == [2]


@pytest.mark.parametrize("how", ["begin immediate", "begin exclusive"])
async def test_a_write_waits_its_time_for_another_program(file: SqliteFile, how: str) -> None:
    with database_held(file, how):
        await busy(file)
        await busy(file)
    await file.write(insert(2))
    assert await found(file) == [2]


async def test_a_write_goes_on_when_the_other_program_ends_in_time(file: SqliteFile) -> None:
    with database_held(file):
        job = asyncio.ensure_future(file.write(insert(1)))
        await asyncio.sleep(WAIT / 3)
    await job
    assert await found(file) == [1]


async def test_a_reader_blocks_no_writer_and_keeps_its_snapshot(file: SqliteFile) -> None:
    await file.write(insert(1))
    with database_held(file, "begin") as reader:
        for value in range(2, 30):
            await file.write(insert(value))
        assert reader.execute("select count(*) from t").fetchone() == (1,)
    assert len(await found(file)) == 29


async def test_the_log_is_emptied_unless_a_reader_or_the_lock_prevents_it(file: SqliteFile) -> None:
    await file.write(insert(1))
    with database_held(file, "begin"):
        await file.write(insert(2))
        assert await file.scrub(attempts=2) is False
    with file_lock_held(file):
        assert await file.scrub() is False
    assert await file.scrub() is True
    assert os.path.getsize(file.path + "-wal") == 0


async def test_opening_waits_its_time_for_the_lock(file: SqliteFile) -> None:
    second = SqliteFile(file.path, STEPS, wait=WAIT)
    with file_lock_held(file), pytest.raises(StoreBusy):
        await asyncio.to_thread(second.open)


async def test_closing_does_not_hang_on_a_lock_that_another_holds(file: SqliteFile) -> None:
    with file_lock_held(file):
        job = asyncio.ensure_future(file.write(insert(1)))
        await asyncio.sleep(0.05)
        await asyncio.wait_for(asyncio.to_thread(file.close), WAIT + SLACK)
        with pytest.raises(StoreBusy):
            await job


async def test_what_waits_when_it_is_closed_is_finished_first(file: SqliteFile) -> None:
    jobs = [asyncio.ensure_future(file.write(insert(value))) for value in range(20)]
    await asyncio.sleep(0)
    await asyncio.to_thread(file.close)
    await asyncio.gather(*jobs)
    db = sqlite3.connect(file.path)
    assert db.execute("select count(*) from t").fetchone() == (20,)
    db.close()


async def test_closing_while_others_write_answers_each_of_them(file: SqliteFile) -> None:
    """Nobody is left waiting: each write is done or refused."""

    async def many() -> list[BaseException | None]:
        results: list[BaseException | None] = []
        for value in range(2000):
            results += await asyncio.gather(file.write(insert(value)), return_exceptions=True)
            if results[-1] is not None:
                break
        return results

    task = asyncio.create_task(many())
    await asyncio.sleep(0.03)
    await asyncio.to_thread(file.close)
    results = await asyncio.wait_for(task, 5)
    assert isinstance(results[-1], StoreError)
    db = sqlite3.connect(file.path)
    assert db.execute("select count(*) from t").fetchone() == (len(results) - 1,)
    db.close()


async def test_use_after_close_is_refused(file: SqliteFile) -> None:
    for _ in range(2):
        await asyncio.to_thread(file.close)
    for call in (file.write(insert(1)), file.read(insert(1)), file.scrub()):
        with pytest.raises(StoreError, match="closed"):
            await call


# Full disks and damaged files


async def test_a_full_file_writes_nothing_and_goes_on_when_there_is_room(file: SqliteFile) -> None:
    def limit(pages: int) -> Callable[[sqlite3.Connection], object]:
        return lambda db: db.execute(f"pragma max_page_count={pages}").fetchone()

    await file.write(insert(-1))
    await file.write(limit(4))
    with pytest.raises(StoreError, match="full"):
        await file.write(insert(*range(5000)))
    assert await found(file) == [-1]
    await file.write(insert(1))
    await file.write(limit(100_000))
    await file.write(insert(*range(2, 5000)))
    assert len(await found(file)) == 5000


FULL_DISK = """
    import asyncio, resource, sys
    from nitka.errors import StoreError
    from nitka.store.sqlite_file import SqliteFile

    async def main(path):
        file = SqliteFile(path, [(1, "0001_test.sql", ["create table t (a integer primary key, b blob)"])], wait=5)
        file.open()
        resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
        done = refused = 0
        for at in range(200):
            try:
                await file.write(lambda db: db.execute("insert into t values (?, zeroblob(20000))", (at,)) and None)
                done += 1
            except StoreError:
                refused += 1
        rows = await file.read(lambda db: db.execute("select count(*) from t").fetchone()[0])
        assert rows == done and refused > 0, (rows, done, refused)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.getrlimit(resource.RLIMIT_FSIZE)[1],) * 2)
        await file.write(lambda db: db.execute("insert into t values (1000, zeroblob(20000))") and None)
        assert await file.read(lambda db: db.execute("select count(*) from t").fetchone()[0]) == done + 1
        file.close()
        print(done, refused)

    asyncio.run(main(sys.argv[1]))
"""


def test_what_was_acknowledged_on_a_disk_that_fills_up_is_there_and_nothing_else(tmp_path: Path) -> None:
    path = str(tmp_path / "file.db")
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK), path], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    db = sqlite3.connect(path)
    assert db.execute("pragma integrity_check").fetchone() == ("ok",)
    assert db.execute("select count(*) from t").fetchone()[0] == int(run.stdout.split()[0]) + 1
    db.close()


def refused(path: Path, match: str) -> None:
    """Opening is refused with a clear error, leaves no file open, and does not change the file."""
    before = path.read_bytes() if path.is_file() else None
    handles = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    with pytest.raises(StoreError, match=match):
        SqliteFile(str(path), STEPS, wait=WAIT).open()
    if handles:
        assert set(os.listdir("/proc/self/fd")) <= handles
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_text_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file.db").write_text("Dear diary, this is no database. " * 200)
    refused(tmp_path / "file.db", "not a nitka database")


def test_another_programs_database_is_refused_as_it_is(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "file.db")
    db.execute("create table recipes (name)")
    db.close()
    refused(tmp_path / "file.db", "another program")


def test_a_newer_database_is_refused_as_it_is(tmp_path: Path) -> None:
    newer = SqliteFile(str(tmp_path / "file.db"), [*STEPS, (2, "0002_later.sql", ["create table u (b)"])], wait=WAIT)
    newer.open()
    newer.close()
    refused(tmp_path / "file.db", "newer version")


def test_a_folder_that_is_not_there_and_a_folder_in_the_files_place_are_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nowhere" / "file.db", "cannot be opened")
    (tmp_path / "file.db").mkdir()
    refused(tmp_path / "file.db", "cannot be opened")


async def test_a_damaged_page_is_told_and_what_does_not_lie_on_it_is_read(tmp_path: Path) -> None:
    steps: list[Migration] = [(1, "0001_test.sql", ["create table t (a integer primary key)", "create table u (b)"])]
    file = SqliteFile(str(tmp_path / "file.db"), steps, wait=WAIT)
    file.open()
    await file.write(lambda db: db.execute("insert into u values (7)") and None)
    await file.write(insert(*range(3000)))
    root = await file.read(lambda db: db.execute("select rootpage from sqlite_master where name='t'").fetchone()[0])
    await asyncio.to_thread(file.close)
    with open(tmp_path / "file.db", "r+b") as raw:
        raw.seek((root - 1) * 4096)
        raw.write(b"\xff" * 4096)
    await asyncio.to_thread(file.open)
    with pytest.raises(StoreError, match="damaged"):
        await found(file)
    with pytest.raises(StoreError, match="damaged"):
        await file.write(insert(5000))
    assert await file.read(lambda db: db.execute("select b from u").fetchall()) == [(7,)]
    await file.write(lambda db: db.execute("insert into u values (8)") and None)
    await asyncio.to_thread(file.close)


# Where it lies

MOUNTS = r"""
rootfs / ext4 rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sda2 /home/anna/local ext4 rw 0 0
//nas/share /mnt/my\040share cifs rw 0 0
tmpfs /data tmpfs rw 0 0
host /data fuse.sshfs rw 0 0
broken
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/var/lib/nitka.db", False),
        ("/home/nitka.db", True),
        ("/home/anna/nitka.db", True),
        ("/home/anna/local/nitka.db", False),
        ("/homework/nitka.db", False),
        ("/mnt/my share/nitka.db", True),
        ("/data/nitka.db", True),
    ],
)
def test_network_file_systems_are_refused(tmp_path: Path, path: str, network: bool) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(MOUNTS)
    if not network:
        refuse_network_file_system(path, str(mounts))
        return
    with pytest.raises(StoreError, match="network file system"):
        refuse_network_file_system(path, str(mounts))


def test_a_link_to_a_network_file_system_is_refused_and_no_list_of_mounts_is_no_reason(tmp_path: Path) -> None:
    mounts, link = tmp_path / "mounts", tmp_path / "nitka.db"
    mounts.write_text("server:/x /somewhere/remote nfs rw 0 0\n")
    link.symlink_to("/somewhere/remote/nitka.db")
    with pytest.raises(StoreError, match="network file system"):
        refuse_network_file_system(str(link), str(mounts))
    refuse_network_file_system(str(link), str(tmp_path / "nothing"))


async def test_a_file_with_two_names_has_one_lock(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "file.db")
    paths = {SqliteFile(str(tmp_path / name), STEPS, wait=WAIT).path for name in ("file.db", "link.db")}
    assert len(paths) == 1


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="needs /proc/locks")
async def test_opening_it_again_in_one_process_takes_away_no_lock(file: SqliteFile) -> None:
    """Closing any handle of a file takes away all locks a process has on it, SQLite's among them."""
    second = SqliteFile(file.path, STEPS, wait=WAIT)
    await asyncio.to_thread(second.open)
    inode = f":{os.stat(file.path).st_ino} "
    with open("/proc/locks", encoding="ascii") as locks:
        held = [line for line in locks if inode in line and "POSIX" in line]
    await asyncio.to_thread(second.close)
    assert held


async def test_all_its_files_are_private(file: SqliteFile) -> None:
    await file.write(insert(1))
    modes = {path.name: path.stat().st_mode & 0o777 for path in Path(file.path).parent.iterdir()}
    assert set(modes.values()) == {0o600}, modes
    assert {"file.db", "file.db-wal"} <= modes.keys()


# Data and keys belong together


async def used(path: Path) -> None:
    store = SqliteStore(str(path), wait=WAIT)
    await store.start()
    await store.create(b"a" * 16, b"1" * 16, SessionRow(Tag(b"s" * 16), b"2" * 16, 0, Sealed(b"body")))
    await store.close()


def drop(path: Path) -> None:
    for name in ("", "-wal", "-shm"):
        Path(f"{path}{name}").unlink(missing_ok=True)


async def opening(path: Path) -> NitkaError | None:
    store = SqliteStore(str(path), wait=WAIT)
    try:
        await store.start()
    except NitkaError as error:
        return error
    await store.close()
    return None


async def test_a_used_database_without_its_keys_is_refused_and_none_are_made(tmp_path: Path) -> None:
    await used(tmp_path / "a.db")
    keys = (tmp_path / "a.db.keys").read_bytes()
    drop(tmp_path / "a.db.keys")
    assert isinstance(await opening(tmp_path / "a.db"), KeyMissing)
    assert not (tmp_path / "a.db.keys").exists()
    (tmp_path / "a.db.keys").write_bytes(keys)
    assert await opening(tmp_path / "a.db") is None


async def test_an_empty_keys_file_in_the_place_of_the_lost_one_is_refused(tmp_path: Path) -> None:
    await used(tmp_path / "a.db")
    drop(tmp_path / "a.db.keys")
    (tmp_path / "a.db.keys").touch()
    for _ in range(2):
        assert isinstance(await opening(tmp_path / "a.db"), KeyMissing)


async def test_keys_of_another_store_are_refused(tmp_path: Path) -> None:
    for name in ("a.db", "b.db"):
        await used(tmp_path / name)
    drop(tmp_path / "a.db.keys")
    (tmp_path / "a.db.keys").write_bytes((tmp_path / "b.db.keys").read_bytes())
    error = await opening(tmp_path / "a.db")
    assert isinstance(error, StoreError)
    assert "another database" in str(error)


async def test_data_and_keys_mixed_up_are_refused(tmp_path: Path) -> None:
    await used(tmp_path / "a.db")
    error = await opening(tmp_path / "a.db.keys")
    assert isinstance(error, StoreError)
    assert "mixed up" in str(error)


async def test_two_processes_that_make_a_store_at_once_make_one(tmp_path: Path) -> None:
    stores = [SqliteStore(str(tmp_path / "a.db"), wait=5) for _ in range(6)]
    await asyncio.gather(*(store.start() for store in stores))
    assert len({await store.keys.store_id() for store in stores}) == 1
    for store in stores:
        await store.close()
