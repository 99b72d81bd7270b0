"""What every store promises about due work: it is taken by lease, put back, rebuilt, and never doubled."""

from __future__ import annotations

import asyncio

import pytest

from nitka.store.port import NOBODY, Change, Due, FoldRow, Locked, Row, Scope, SessionRow, Store
from nitka.types import Sealed, Tag

pytestmark = pytest.mark.anyio

ANNA, BORIS = b"a" * 16, b"b" * 16
LIFE, BORN = b"1" * 16, b"s" * 16
HOME, WORK = Tag(b"h" * 16), Tag(b"w" * 16)


async def make(store: Store, owner: bytes = ANNA, tag: Tag = HOME, *, due: tuple[str, ...] = ("summary",)) -> None:
    await store.create(owner, LIFE, SessionRow(tag, BORN, 0, Sealed(b"body")))
    await change(store, Change(due=due), owner, tag)


async def change(store: Store, wanted: Change, owner: bytes = ANNA, tag: Tag = HOME) -> None:
    scope = Scope(owner=owner, incarnation=LIFE, session=tag, session_incarnation=BORN if tag != NOBODY else None)
    await store.change(scope, lambda locked: wanted)


async def names(store: Store, now: int, **more: object) -> list[tuple[bytes, Tag, str]]:
    taken = await store.lease(now=now, until=now + 10, limit=99, **more)  # type: ignore[arg-type]
    return sorted((due.owner, due.session, due.kind) for due in taken)


async def test_a_lease_ends_by_itself_and_counts_its_attempts(store: Store) -> None:
    await make(store)
    first = await store.lease(now=0, until=100, limit=9)
    assert list(await store.lease(now=99, until=200, limit=9)) == []
    second = await store.lease(now=100, until=200, limit=9)
    assert [[due.attempts for due in taken] for taken in (first, second)] == [[0], [1]]
    assert first[0] == Due(ANNA, HOME, "summary", 0)


async def test_sessions_with_work_are_counted_once_whether_leased_or_not(store: Store) -> None:
    assert await store.due_sessions() == 0
    await make(store, due=("summary", "watch"))
    await make(store, BORIS)
    await store.lease(now=0, until=100, limit=1)
    assert await store.due_sessions() == 2
    await change(store, Change(done=("summary", "watch")))
    assert await store.due_sessions() == 1


async def test_work_that_is_due_already_is_not_doubled_and_keeps_its_lease(store: Store) -> None:
    await make(store)
    await store.lease(now=0, until=100, limit=9)
    await change(store, Change(due=("summary",)))
    assert await names(store, 50) == []
    assert await names(store, 100) == [(ANNA, HOME, "summary")]


async def test_done_work_is_gone_and_may_be_due_again_in_the_same_change(store: Store) -> None:
    await make(store)
    await store.lease(now=0, until=100, limit=9)
    await change(store, Change(done=("summary",), due=("summary",)))
    taken = await store.lease(now=1, until=100, limit=9)
    assert [due.attempts for due in taken] == [0], "new work, free at once"
    await change(store, Change(done=("summary",)))
    assert await names(store, 500) == []


async def test_work_that_failed_waits_unless_it_is_wanted_early(store: Store) -> None:
    await make(store)
    (due,) = await store.lease(now=0, until=100, limit=9)
    await store.put_back(due, retry_at=1000)
    assert await names(store, 999) == []
    assert await names(store, 999, early=True) == [(ANNA, HOME, "summary")]
    await store.put_back(due, retry_at=1000)
    assert await names(store, 1000) == [(ANNA, HOME, "summary")]


async def test_early_does_not_break_a_lease(store: Store) -> None:
    await make(store)
    await store.lease(now=0, until=100, limit=9)
    assert await names(store, 50, early=True) == []


async def test_putting_back_what_is_done_changes_nothing(store: Store) -> None:
    await make(store)
    (due,) = await store.lease(now=0, until=100, limit=9)
    await change(store, Change(done=("summary",)))
    await store.put_back(due, retry_at=0)
    assert await names(store, 500) == []


async def test_a_lease_takes_at_most_its_limit_and_then_the_rest(store: Store) -> None:
    for at in range(5):
        await make(store, tag=Tag(bytes([at + 1]) * 16))
    sizes = [len(await store.lease(now=0, until=10, limit=2)) for _ in range(4)]
    assert sizes == [2, 2, 1, 0]


async def test_a_lease_may_be_of_one_owner_or_of_one_session(store: Store) -> None:
    for owner in (ANNA, BORIS):
        for tag in (HOME, WORK):
            await make(store, owner, tag, due=("summary", "mend"))
    assert await names(store, 0, only=(ANNA, HOME)) == [(ANNA, HOME, "mend"), (ANNA, HOME, "summary")]
    assert await names(store, 0, only=(ANNA, None)) == [(ANNA, WORK, "mend"), (ANNA, WORK, "summary")]
    assert {owner for owner, _, _ in await names(store, 0)} == {BORIS}


async def test_of_many_workers_each_entry_is_leased_to_one(store: Store) -> None:
    for at in range(20):
        await make(store, tag=Tag(bytes([at + 1]) * 16))
    taken = await asyncio.gather(*(store.lease(now=0, until=10, limit=3) for _ in range(10)))
    sessions = [due.session for some in taken for due in some]
    assert len(sessions) == len(set(sessions)) == 20


async def test_work_of_the_person_is_due_under_no_session(store: Store) -> None:
    await store.create(ANNA, LIFE)
    await change(store, Change(due=("facts",)), tag=NOBODY)
    assert await names(store, 0) == [(ANNA, NOBODY, "facts")]


async def test_work_of_a_person_is_taken_with_his_other_work_and_not_with_a_session(store: Store) -> None:
    await make(store)
    await make(store, BORIS)
    for owner in (ANNA, BORIS):
        await change(store, Change(person_due=("facts", "profile")), owner)
    assert await names(store, 0, only=(ANNA, HOME)) == [(ANNA, HOME, "summary")]
    assert await names(store, 0, only=(ANNA, None)) == [(ANNA, NOBODY, "facts"), (ANNA, NOBODY, "profile")]
    assert {owner for owner, _, _ in await names(store, 0)} == {BORIS}


async def test_work_of_a_person_is_done_from_any_of_his_sessions(store: Store) -> None:
    await make(store)
    await change(store, Change(person_due=("facts", "profile")))
    await change(store, Change(person_done=("facts",)))
    await store.lease(now=0, until=100, limit=9)
    await change(store, Change(person_done=("profile",), person_due=("profile",)), tag=NOBODY)
    assert await names(store, 0) == [(ANNA, NOBODY, "profile")], "new work, free at once"


async def test_what_is_due_for_a_person_counts_as_one_more_session(store: Store) -> None:
    await make(store)
    await change(store, Change(person_due=("facts", "profile")))
    assert await store.due_sessions() == 2


async def test_a_rescan_finds_work_of_persons(store: Store) -> None:
    """Due is who has more than `lag` rows above the fold's cursor, over all sessions together."""
    for owner in (ANNA, BORIS):
        for tag in (HOME, WORK):
            await make(store, owner, tag, due=())
            await fill(store, tag, 3, 0, owner)
    await change(store, Change(folds=(FoldRow(NOBODY, "facts", 2, 1, Sealed(b"fold")),)), BORIS, NOBODY)
    assert await store.rescan(kind="facts", lag=6, person=True) == 0
    assert await store.rescan(kind="facts", lag=5, person=True) == 1
    assert await store.rescan(kind="facts", lag=3, person=True) == 1
    assert await store.rescan(kind="facts", lag=3, person=True) == 0
    assert await names(store, 0) == [(ANNA, NOBODY, "facts"), (BORIS, NOBODY, "facts")]


async def test_a_rescan_finds_what_the_index_lost(store: Store) -> None:
    """Due is what has more than `lag` rows above its cursor; what is listed already is not counted."""
    for tag, rows, cursor, listed in ((HOME, 6, 0, False), (WORK, 6, 2, False), (Tag(b"x" * 16), 8, 0, True)):
        await make(store, tag=tag, due=("summary",) if listed else ())
        await fill(store, tag, rows, cursor)
    assert await store.rescan(kind="summary", lag=4) == 1
    assert await store.rescan(kind="summary", lag=4) == 0
    assert {tag for _, tag, _ in await names(store, 0)} == {HOME, Tag(b"x" * 16)}


async def fill(store: Store, tag: Tag, rows: int, cursor: int, owner: bytes = ANNA) -> None:
    def step(locked: Locked) -> Change:
        new = tuple(Row(locked.head + at, locked.n + at, Sealed(b"row")) for at in range(rows))
        folds = (FoldRow(tag, "summary", cursor, 1, Sealed(b"fold")),) if cursor else ()
        return Change(append=new, session_body=Sealed(b"body"), folds=folds)

    scope = Scope(owner=owner, incarnation=LIFE, session=tag, session_incarnation=BORN)
    await store.change(scope, step)


async def test_spending_adds_up_by_day(store: Store) -> None:
    assert [await store.spend(10, 5), await store.spend(10, 7), await store.spend(11, 1)] == [5, 12, 1]
    assert await store.spend(10, 0) == 12
