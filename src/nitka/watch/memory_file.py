"""A memory in a file, for the command line. The rim.

Rules:
* Memory is personal data: a new file is for nobody but its owner (0600); one that was there keeps its mode. A link
  stays a link; what it leads to is replaced.
* One at a time: the file is locked from reading to writing, so no update of another process is lost. Where the system
  has no such locks, or the file system knows none, nothing guards against two at once.
* The new memory is written aside, then put in the old one's place: a crash leaves the one or the other, whole.
* An empty file is an empty memory. Every error is one line that names the file, never what stands in it.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

MOST = 1 << 20  # bytes; a memory has 2 KB, and what a caller keeps in it 16
ANEW = "mend it, or take it away to begin anew"


class Trouble(Exception):
    """Something that a person has to put right; its text names where it is and what to do."""


def reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else "it cannot be used"


def read_text(path: Path, most: int) -> str:
    """A file as text. Raises `Trouble` for one that is not there, is no ordinary file, too large or not UTF-8."""
    try:
        ordinary(path)
        with path.open("rb") as file:
            found = file.read(most + 1)
    except OSError as error:
        raise Trouble(f"{path}: {reason(error)}") from None
    return decoded(found, path, most)


def decoded(found: bytes, path: Path, most: int) -> str:
    if len(found) > most:
        raise Trouble(f"{path}: larger than {most} bytes")
    try:
        return found.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Trouble(f"{path}: not UTF-8 (byte {error.start}); save it as UTF-8") from None


def ordinary(path: Path) -> None:
    """Refuse what may never end (`/dev/zero`, a pipe). Raises `Trouble`, `OSError`."""
    mode = path.stat().st_mode
    if not stat.S_ISREG(mode):
        raise Trouble(f"{path}: {'a folder' if stat.S_ISDIR(mode) else 'no ordinary file'}; name a file")


class MemoryFile:
    """A locked memory file: `memory` is what it held, `put` replaces it."""

    def __init__(self, path: Path, place: Path, found: bytes, mode: os.stat_result) -> None:
        self._named, self._place, self._mode = path, place, mode
        self.memory = _memory(decoded(found, path, MOST), path)

    def put(self, memory: Mapping[str, Any]) -> None:
        """Write the new memory in the old one's place. Raises `Trouble`."""
        try:
            handle, aside = tempfile.mkstemp(dir=self._place.parent, prefix=".nitka-", suffix=".new")
            try:
                with open(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
                    file.write(json.dumps(memory, ensure_ascii=False) + "\n")
                    file.flush()
                    self._like_the_old(aside)
                    os.fsync(handle)
                os.replace(aside, self._place)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(aside)
                raise
        except OSError as error:
            raise Trouble(f"{self._named}: the new memory cannot be written beside it: {reason(error)}") from None

    def _like_the_old(self, aside: str) -> None:
        if hasattr(os, "chown"):
            with contextlib.suppress(OSError):  # another's file, and we are not root: it becomes ours
                os.chown(aside, self._mode.st_uid, self._mode.st_gid)
        os.chmod(aside, stat.S_IMODE(self._mode.st_mode))


@contextlib.contextmanager
def locked(path: Path) -> Iterator[MemoryFile]:
    """The memory file, made if it is not there, locked until the block ends. Raises `Trouble`."""
    place = Path(os.path.realpath(path))
    try:
        handle, made = _open(path, place)
    except OSError as error:
        raise Trouble(_unopened(path, place, error)) from None
    with open(handle, "rb") as file:
        try:
            yield MemoryFile(path, place, file.read(MOST + 1), os.fstat(handle))
        finally:
            if made and os.fstat(handle).st_nlink and not os.fstat(handle).st_size:  # nothing came of it
                with contextlib.suppress(OSError):
                    if os.path.samestat(os.fstat(handle), place.stat()):
                        place.unlink()


def _open(path: Path, place: Path) -> tuple[int, bool]:
    """The file that has the name once it is locked: while we waited, another may have put a new one in its place."""
    while True:
        made = not place.exists()
        if not made:
            _checked(path, place)
        handle = os.open(place, os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            _lock(handle)
            if place.exists() and os.path.samestat(os.fstat(handle), place.stat()):
                return handle, made
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _checked(path: Path, place: Path) -> None:
    try:
        ordinary(place)
    except Trouble as error:
        raise Trouble(str(error).replace(str(place), str(path), 1)) from None
    except FileNotFoundError:  # gone since
        return


def _lock(handle: int) -> None:
    try:
        import fcntl
    except ImportError:  # a system without such locks
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in (errno.ENOTSUP, errno.ENOSYS, errno.ENOLCK, errno.EINVAL):
            raise


def _unopened(path: Path, place: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError) and not place.parent.is_dir():
        return f"{path}: its folder does not exist; make it first"
    return f"{path}: {reason(error)}"


def _memory(text: str, path: Path) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        memory = json.loads(text)
    except json.JSONDecodeError as error:
        raise Trouble(f"{path}: not JSON (line {error.lineno}, column {error.colno}); {ANEW}") from None
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets in thousands
        raise Trouble(f"{path}: no JSON that a memory may hold; {ANEW}") from None
    if not isinstance(memory, dict):
        raise Trouble(f"{path}: a memory is a JSON object; {ANEW}")
    return memory
