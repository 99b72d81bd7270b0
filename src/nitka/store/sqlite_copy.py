"""Copies and checks of SQLite files, beside the store that may be at work on them.

A copy is one snapshot, made through SQLite's backup API: a read transaction held over it keeps out what others commit
meanwhile. The data file is copied before the file of keys: a key is durable before the first row it seals, so no
row in the copy lacks its key.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from nitka.errors import StoreError
from nitka.store.sqlite_file import explain

PAGES = 1000  # copied between two reports of progress


def copy(sources: Iterable[str], folder: Path, *, progress: Callable[[int, int], None] | None = None) -> list[Path]:
    """Copies each file, in this order, into `folder`, which is made and must hold none of them yet.

    `progress` gets the pages done and the pages in all, file by file. Raises `StoreError`; what was begun is removed.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(f"The folder for the copy cannot be made: {os.strerror(error.errno or 0)}.") from error
    pairs = [(source, folder / Path(source).name) for source in sources]
    if any(target.exists() for _, target in pairs):
        raise StoreError("There is a copy in that folder already; name another one.")
    try:
        for source, target in pairs:
            _copy(source, target, progress)
    except BaseException as error:
        for _, target in pairs:
            target.unlink(missing_ok=True)
        if isinstance(error, sqlite3.Error):
            raise explain(error) from error
        raise
    return [target for _, target in pairs]


def _copy(source: str, target: Path, progress: Callable[[int, int], None] | None) -> None:
    def report(_: int, remaining: int, total: int) -> None:
        if progress is not None:
            progress(total - remaining, total)

    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise StoreError(f"The copy cannot be written: {os.strerror(error.errno or 0)}.") from error
    with closing(_reading(source)) as here, closing(sqlite3.connect(target)) as there:
        here.execute("begin")
        here.execute("select count(*) from sqlite_master").fetchone()  # the snapshot begins here
        here.backup(there, pages=PAGES, progress=report)


def is_sound(path: str) -> bool:
    """Whether SQLite finds the file whole. Raises `StoreError` for what is no database or cannot be read."""
    try:
        with closing(_reading(path)) as db:
            return bool(db.execute("pragma quick_check(1)").fetchone() == ("ok",))
    except sqlite3.Error as error:
        raise explain(error) from error


def _reading(path: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(os.path.abspath(path))}?mode=ro", uri=True, isolation_level=None)
