"""Counts what SQLite asks of the operating system, and says which acknowledgements came too early. Run by
test_durability.py.

syncs.py FOLDER [PRAGMA]

A VFS of our own stands before SQLite's: it notes every write to and every sync of a write-ahead log and passes them
on. The store notes when a change was decided (inside its transaction) and when it was acknowledged. An
acknowledgement is sound if the log was written after the decision, and synced after that, before it came. PRAGMA
(such as "synchronous=off") is put in by hand, to see that the count would tell. Prints one line of JSON. Ends with 77
where SQLite is built into Python so that it cannot be reached.
"""

from __future__ import annotations

import _sqlite3
import asyncio
import ctypes
import json
import sys
from pathlib import Path
from typing import Any

from nitka import Nitka
from nitka.store import sqlite_file
from nitka.store.port import Change, Locked, Scope, Step
from nitka.store.sqlite import SqliteStore
from nitka.testing import FakeModel

SKIPPED = 77
WAL = 0x00080000
Event = tuple[str, str]
events: list[Event] = []

POINTER, INT = ctypes.c_void_p, ctypes.c_int
OPEN = ctypes.CFUNCTYPE(INT, POINTER, POINTER, POINTER, INT, POINTER)  # SQLite keeps the name's pointer: pass it on
WRITE = ctypes.CFUNCTYPE(INT, POINTER, POINTER, INT, ctypes.c_int64)
SYNC = ctypes.CFUNCTYPE(INT, POINTER, INT)
kept: list[Any] = []  # what C points to must not be collected


class Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3."""

    _fields_ = [
        ("version", INT),
        ("file_size", INT),
        ("max_path", INT),
        ("next", POINTER),
        ("name", ctypes.c_char_p),
        ("data", POINTER),
        ("open", POINTER),
        ("others", POINTER * 15),
    ]


class Methods(ctypes.Structure):
    """sqlite3_io_methods, version 3."""

    _fields_ = [
        ("version", INT),
        ("close", POINTER),
        ("read", POINTER),
        ("write", POINTER),
        ("truncate", POINTER),
        ("sync", POINTER),
        ("others", POINTER * 12),
    ]


def watch() -> None:
    """Puts our VFS before SQLite's, for every connection opened from now on."""
    try:
        library = ctypes.CDLL(getattr(_sqlite3, "__file__", None))
        find, register = library.sqlite3_vfs_find, library.sqlite3_vfs_register
    except (AttributeError, OSError):
        sys.exit(SKIPPED)
    find.restype, find.argtypes = POINTER, [ctypes.c_char_p]
    register.restype, register.argtypes = INT, [POINTER, INT]
    original = find(None)
    vfs = Vfs.from_buffer_copy(ctypes.string_at(original, ctypes.sizeof(Vfs)))
    pass_on = OPEN(vfs.open)

    def opened(_: int, name: int | None, file: int, flags: int, out: int) -> int:
        code: int = pass_on(original, name, file, flags, out)
        if code == 0 and name and flags & WAL:
            note_writes(file, Path(ctypes.string_at(name).decode()).name)
        return code

    callback = OPEN(opened)
    vfs.name, vfs.next, vfs.open = b"watched", None, ctypes.cast(callback, POINTER)
    kept.extend((vfs, callback, pass_on))
    assert register(ctypes.addressof(vfs), 1) == 0


def note_writes(file: int, name: str) -> None:
    """Puts our functions before the file's own."""
    place = ctypes.cast(file, ctypes.POINTER(POINTER))
    address = place[0]
    assert address is not None
    methods = Methods.from_buffer_copy(ctypes.string_at(address, ctypes.sizeof(Methods)))
    write, sync = WRITE(methods.write), SYNC(methods.sync)

    def written(its: int, data: int, size: int, at: int) -> int:
        events.append(("write", name))
        code: int = write(its, data, size, at)
        return code

    def synced(its: int, flags: int) -> int:
        code: int = sync(its, flags)
        events.append(("sync", name))
        return code

    callbacks = WRITE(written), SYNC(synced)
    methods.write, methods.sync = (ctypes.cast(callback, POINTER) for callback in callbacks)
    kept.extend((methods, callbacks, write, sync))
    place[0] = ctypes.addressof(methods)


class Noting(SqliteStore):
    """Notes when a change was decided and when it was acknowledged."""

    changes = 0

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        Noting.changes += 1
        number = str(Noting.changes)

        def decide(locked: Locked) -> Change | None:
            events.append(("decided", number))
            return step(locked)

        result = await super().change(scope, decide)
        if result[1] is not None:
            events.append(("acknowledged", number))
        return result


def too_early(log: str) -> int:
    """How many acknowledgements were not covered by a sync."""
    state: dict[str, int] = {}  # 0 decided, 1 written, 2 synced
    early = 0
    for what, name in events:
        if what == "decided":
            state[name] = 0
        elif what == "acknowledged":
            early += state.pop(name) < 2
        elif name == log:
            before, after = (0, 1) if what == "write" else (1, 2)
            state = {number: after if done == before else done for number, done in state.items()}
    return early


def dirty() -> list[str]:
    """The logs whose newest write is not synced."""
    return sorted(name for name, what in {name: what for what, name in events}.items() if what == "write")


async def alone(nitka: Nitka, turns: int) -> int:
    """One after the other: at each acknowledgement both logs, that of the keys too, are on disk. Returns how often
    they were not.
    """
    early = 0
    for turn in range(turns):
        await nitka.record(f"user {turn}", "s", text="question", answer="answer")
        early += dirty() != []
    return early


async def main(folder: Path) -> dict[str, Any]:
    store = Noting(str(folder / "nitka.db"), wait=30)
    keys = folder / "keys.json"  # and no folds: each change is a turn
    async with Nitka.open(store, model=FakeModel(), keys=keys, background=False) as nitka:
        early = await alone(nitka, 40)
        first = len(events)

        async def talk(session: int) -> None:
            for _ in range(20):
                await nitka.say("anna", f"s{session}", text="question")

        await asyncio.gather(*(talk(session) for session in range(16)))
    log = "nitka.db-wal"
    syncs = sum(event == ("sync", log) for event in events[first:])
    turns = sum(what == "acknowledged" for what, _ in events)
    return {"early_alone": early, "early": too_early(log), "turns": turns, "syncs_per_turn_of_sixteen": syncs / 320}


if __name__ == "__main__":
    watch()
    sqlite_file.PRAGMAS = (*sqlite_file.PRAGMAS, *sys.argv[2:])
    sys.stdout.write(json.dumps(asyncio.run(main(Path(sys.argv[1])))) + "\n")
