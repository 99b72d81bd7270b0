"""Names and short ways to write, for the tests of the contract."""

from __future__ import annotations

from dataclasses import replace

from nitka.store.port import NOBODY, Change, FoldRow, Locked, Row, Scope, SessionRow, Step, Store
from nitka.types import Sealed, Tag

ANNA, BORIS = b"a" * 16, b"b" * 16
LIFE, NEXT_LIFE = b"1" * 16, b"2" * 16
HOME, WORK = Tag(b"h" * 16), Tag(b"w" * 16)
BORN = b"s" * 16
KEY, OTHER_KEY = Tag(b"k" * 16), Tag(b"l" * 16)


def body(text: object) -> Sealed:
    return Sealed(f"sealed {text}".encode())


def session(tag: Tag = HOME, incarnation: bytes = BORN) -> SessionRow:
    return SessionRow(tag, incarnation, 0, body("session"))


def scope(owner: bytes = ANNA, tag: Tag = HOME, **more: object) -> Scope:
    born = BORN if tag != NOBODY else None
    made = Scope(owner=owner, incarnation=LIFE, session=tag, session_incarnation=born)
    return replace(made, **more)  # type: ignore[arg-type]


def turn(text: str, key: Tag | None = None, **more: object) -> Step:
    """Appends two rows with whatever numbers are next."""

    def step(locked: Locked) -> Change:
        rows = tuple(Row(locked.head + at, locked.n + at, body(f"{text} {at}")) for at in (0, 1))
        change = Change(append=rows, session_body=body(f"session after {text}"), turn_key=key)
        return replace(change, **more)  # type: ignore[arg-type]

    return step


def rows(*numbers: tuple[int, int]) -> tuple[Row, ...]:
    return tuple(Row(seq, n, body("x")) for seq, n in numbers)


def write(change: Change | None) -> Step:
    return lambda locked: change


def fold(cursor: int, version: int = 1, tag: Tag = HOME, kind: str = "summary") -> FoldRow:
    return FoldRow(tag, kind, cursor, version, body(f"{kind} {cursor}"))


async def start(store: Store, owner: bytes = ANNA, tag: Tag = HOME, turns: int = 0) -> None:
    await store.create(owner, LIFE, session(tag))
    for number in range(turns):
        await store.change(scope(owner, tag), turn(f"turn {number}"))
