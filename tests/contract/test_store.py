"""What every store promises about the log and the folds: the sentences of `nitka.store.port`, one by one."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from nitka.errors import Forgotten, StoreError
from nitka.store.port import (
    NOBODY,
    ApiKeyRow,
    Change,
    HandleRow,
    Locked,
    Look,
    OutboxRow,
    Piece,
    SessionRow,
    Step,
    Store,
    View,
    Went,
)
from nitka.types import Tag
from tests.contract.making import (
    ANNA,
    BORIS,
    BORN,
    HOME,
    KEY,
    LIFE,
    NEXT_LIFE,
    OTHER_KEY,
    WORK,
    body,
    fold,
    rows,
    scope,
    session,
    start,
    turn,
    write,
)

pytestmark = pytest.mark.anyio


async def everything(store: Store, owner: bytes = ANNA, tag: Tag = HOME) -> View:
    look = Look(
        owner=owner,
        session=tag,
        turn_key=KEY,
        folds=("summary", "watch"),
        person_folds=("facts",),
        pieces=("fact",),
        limit=1000,
    )
    return await store.view(look)


# Making and finding


async def test_nothing_is_there_at_first(store: Store) -> None:
    assert await everything(store) == View()
    assert list(await store.sessions(ANNA)) == []
    assert list(await store.erasures()) == []
    assert list(await store.lease(now=0, until=1, limit=9)) == []


async def test_create_makes_owner_and_session_once_and_gives_what_stands(store: Store) -> None:
    first = await store.create(ANNA, LIFE, session())
    second = await store.create(ANNA, LIFE, SessionRow(HOME, b"t" * 16, 0, body("late")))
    assert first == second == session()
    view = await everything(store)
    assert (view.incarnation, view.session) == (LIFE, session())


async def test_create_without_a_session_makes_the_owner_alone(store: Store) -> None:
    assert await store.create(ANNA, LIFE) is None
    assert await everything(store) == View(incarnation=LIFE)


async def test_create_in_another_incarnation_is_refused_and_changes_nothing(store: Store) -> None:
    await start(store, turns=1)
    before = await everything(store)
    with pytest.raises(Forgotten):
        await store.create(ANNA, NEXT_LIFE, session(WORK))
    assert await everything(store) == before
    assert [row.session for row in await store.sessions(ANNA)] == [HOME]


async def test_sessions_come_in_the_order_of_their_tags_and_in_pages(store: Store) -> None:
    tags = [Tag(bytes([at]) * 16) for at in range(1, 8)]
    for tag in reversed(tags):
        await store.create(ANNA, LIFE, session(tag))
    await start(store, BORIS)
    found: list[Tag] = []
    while page := await store.sessions(ANNA, after=found[-1] if found else None, limit=3):
        found += [row.session for row in page]
    assert found == tags


# Turns


async def test_a_turn_gets_the_next_numbers_of_session_and_owner(store: Store) -> None:
    await start(store, turns=2)
    await start(store, tag=WORK, turns=1)
    await store.change(scope(), turn("again"))
    view = await everything(store)
    assert [(row.seq, row.n) for row in view.rows] == [(0, 0), (1, 1), (2, 2), (3, 3), (4, 6), (5, 7)]
    assert view.rows[-1].body == body("again 1")
    assert view.session == SessionRow(HOME, BORN, 6, body("session after again"))


async def test_change_tells_what_stood_and_what_was_written(store: Store) -> None:
    await start(store, turns=1)
    await store.change(scope(), turn("keyed", KEY, folds=(fold(2), fold(5, tag=NOBODY, kind="facts"))))
    wanted = scope(turn_key=KEY, folds=("summary",), person_folds=("facts",), rows=(1, 3))
    locked, change = await store.change(wanted, write(None))
    assert change is None
    assert (locked.n, locked.head, locked.known) == (4, 4, 2)
    assert locked.session == SessionRow(HOME, BORN, 4, body("session after keyed"))
    assert locked.folds == {"summary": fold(2)}
    assert locked.person_folds == {"facts": fold(5, tag=NOBODY, kind="facts")}
    assert [row.seq for row in locked.rows] == [1, 2]


async def test_a_turn_key_leads_to_its_pair(store: Store) -> None:
    await start(store, turns=1)
    await store.change(scope(), turn("keyed", KEY))
    await store.change(scope(), turn("after"))
    view = await everything(store)
    assert view.known == 2
    assert [row.body for row in view.pair] == [body("keyed 0"), body("keyed 1")]
    unknown = await store.view(Look(owner=ANNA, session=HOME, turn_key=OTHER_KEY))
    assert (unknown.known, unknown.pair) == (None, ())


async def test_a_turn_key_belongs_to_one_turn_of_one_session(store: Store) -> None:
    await start(store)
    await start(store, tag=WORK)
    await store.change(scope(), turn("first", KEY))
    before = await everything(store)
    with pytest.raises(StoreError):
        await store.change(scope(), turn("second", KEY))
    assert await everything(store) == before
    await store.change(scope(tag=WORK), turn("elsewhere", KEY))


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        ({}, [0, 1, 2, 3, 4, 5]),
        ({"first": 2}, [2, 3, 4, 5]),
        ({"first": 2, "end": 4}, [2, 3]),
        ({"end": 99}, [0, 1, 2, 3, 4, 5]),
        ({"limit": 3}, [3, 4, 5]),
        ({"end": 4, "limit": 3}, [1, 2, 3]),
        ({"limit": 0}, []),
        ({"first": None, "folds": ("summary",)}, [3, 4, 5]),
        ({"first": None, "folds": ("summary",), "limit": 1}, [5]),
        ({"first": 4, "end": 4}, []),
    ],
)
async def test_a_view_reads_the_rows_it_was_asked_for(
    store: Store, look: dict[str, object], expected: list[int]
) -> None:
    await start(store, turns=3)
    await store.change(scope(), write(Change(folds=(fold(3),))))
    wanted: dict[str, object] = {"owner": ANNA, "session": HOME, "limit": 100, **look}
    view = await store.view(Look(**wanted))  # type: ignore[arg-type]
    assert [row.seq for row in view.rows] == expected


async def test_the_limit_counts_living_rows_and_tombstones_come_along(store: Store) -> None:
    await start(store, turns=4)
    await store.change(scope(), write(Change(forget=(4, 6))))
    view = await store.view(Look(owner=ANNA, session=HOME, limit=3))
    assert [(row.seq, row.body is None) for row in view.rows] == [
        (3, False),
        (4, True),
        (5, True),
        (6, False),
        (7, False),
    ]


async def test_forgotten_rows_keep_their_numbers_and_nothing_else(store: Store) -> None:
    await start(store, turns=2)
    await store.change(scope(), write(Change(forget=(0, 2))))
    view = await everything(store)
    assert [(row.seq, row.n, row.body) for row in view.rows[:2]] == [(0, 0, None), (1, 1, None)]
    assert all(row.body is not None for row in view.rows[2:])
    await store.change(scope(), turn("next"))
    assert [row.seq for row in (await everything(store)).rows] == [0, 1, 2, 3, 4, 5]


async def test_the_key_of_a_forgotten_turn_stays_known(store: Store) -> None:
    await start(store)
    await store.change(scope(), turn("keyed", KEY))
    await store.change(scope(), write(Change(forget=(0, 2))))
    view = await everything(store)
    assert (view.known, [row.body for row in view.pair]) == (0, [None, None])


async def test_one_change_forgets_and_appends(store: Store) -> None:
    await start(store, turns=2)
    await store.change(scope(), turn("instead", forget=(2, 4), folds=(fold(2),), drop_folds=("watch",)))
    view = await everything(store)
    assert [row.body is None for row in view.rows] == [False, False, True, True, False, False]
    assert view.folds == {"summary": fold(2)}


# Folds


async def test_folds_are_written_whole_and_dropped(store: Store) -> None:
    await start(store)
    await store.change(scope(), write(Change(folds=(fold(1), fold(2, kind="watch")))))
    await store.change(scope(), write(Change(folds=(fold(4, 2),))))
    assert (await everything(store)).folds == {"summary": fold(4, 2), "watch": fold(2, kind="watch")}
    await store.change(scope(), write(Change(drop_folds=("watch", "never there"))))
    assert (await everything(store)).folds == {"summary": fold(4, 2)}


async def test_a_fold_of_the_person_is_no_fold_of_a_session(store: Store) -> None:
    await start(store)
    await start(store, tag=WORK)
    mine = fold(7, tag=NOBODY, kind="facts")
    await store.change(scope(tag=NOBODY), write(Change(folds=(mine,))))
    for tag in (HOME, WORK, NOBODY):
        view = await store.view(Look(owner=ANNA, session=tag, folds=("facts",), person_folds=("facts",)))
        assert (dict(view.folds), dict(view.person_folds)) == ({}, {"facts": mine})


async def test_only_the_folds_that_were_asked_for_are_read(store: Store) -> None:
    await start(store)
    await store.change(scope(), write(Change(folds=(fold(1), fold(1, kind="watch")))))
    assert (await store.view(Look(owner=ANNA, session=HOME, folds=("watch",)))).folds.keys() == {"watch"}
    assert (await store.view(Look(owner=ANNA, session=HOME))).folds == {}


# All or nothing


class Broke(Exception):
    pass


def breaks(locked: Locked) -> Change:
    raise Broke


async def test_a_step_that_raises_changes_nothing_and_its_error_comes_through(store: Store) -> None:
    await start(store, turns=1)
    before = await everything(store)
    with pytest.raises(Broke):
        await store.change(scope(), breaks)
    assert await everything(store) == before
    await store.change(scope(), turn("goes on"))


UNSOUND = {
    "a gap in seq": Change(append=rows((3, 2), (4, 3)), session_body=body("s")),
    "a gap in n": Change(append=rows((2, 3), (3, 4)), session_body=body("s")),
    "a gap inside": Change(append=rows((2, 2), (4, 3)), session_body=body("s")),
    "a number twice": Change(append=rows((1, 1), (2, 2)), session_body=body("s")),
    "rows without the session's body": Change(append=rows((2, 2), (3, 3))),
    "a key without rows": Change(turn_key=KEY),
    "a state of another session": Change(folds=(fold(1, tag=WORK),)),
    "an outbox of somebody else": Change(outbox=(OutboxRow(BORIS, KEY, 0, body("x")),)),
}


@pytest.mark.parametrize("what", UNSOUND)
async def test_an_unsound_change_is_refused_whole(store: Store, what: str) -> None:
    await start(store, turns=1)
    await start(store, tag=WORK)
    before = await everything(store)
    unsound = replace(
        UNSOUND[what],
        forget=(0, 2),
        due=("summary",),
        drop_folds=("watch",),
        put_pieces=(Piece("fact", KEY, body("fact")),),
        person_due=("facts",),
    )
    with pytest.raises(StoreError):
        await store.change(scope(), write(unsound))
    assert await everything(store) == before
    assert list(await store.lease(now=0, until=1, limit=9)) == []


OF_A_SESSION = (
    turn("lost"),
    write(Change(session_body=body("lost"))),
    write(Change(forget=(0, 2))),
    write(Change(drop_folds=("summary",))),
)


@pytest.mark.parametrize("step", OF_A_SESSION)
async def test_what_is_of_a_session_is_refused_without_one(store: Store, step: Step) -> None:
    await start(store)
    with pytest.raises(StoreError):
        await store.change(scope(tag=NOBODY), step)


async def test_a_snapshot_is_whole_while_turns_are_written(store: Store) -> None:
    """Head, rows and the fold that moves with them always agree."""
    await start(store)

    async def writer() -> None:
        for number in range(40):
            await store.change(scope(), turn(f"{number}", folds=(fold(2 * number + 2, number + 1),)))

    task = asyncio.create_task(writer())
    while not task.done():
        view = await everything(store)
        assert view.session is not None
        assert view.session.head == len(view.rows) == (view.folds["summary"].cursor if view.folds else 0)
        await asyncio.sleep(0)
    await task


async def test_concurrent_turns_get_numbers_without_gaps_and_stay_pairs(store: Store) -> None:
    await start(store)
    await start(store, tag=WORK)
    tags = [HOME, WORK] * 20
    await asyncio.gather(*(store.change(scope(tag=tag), turn(f"{at}")) for at, tag in enumerate(tags)))
    used = []
    for tag in (HOME, WORK):
        found = (await everything(store, tag=tag)).rows
        assert [row.seq for row in found] == list(range(40))
        for question, answer in zip(found[::2], found[1::2], strict=True):
            assert question.body is not None and answer.body is not None
            assert question.body.split()[:2] == answer.body.split()[:2]
            assert answer.n == question.n + 1
        used += [row.n for row in found]
    assert sorted(used) == list(range(80))


# Forgotten


@pytest.mark.parametrize(
    "gone",
    [
        {"owner": BORIS},
        {"incarnation": NEXT_LIFE},
        {"session": WORK},
        {"session_incarnation": b"t" * 16},
        {"session_incarnation": None},
    ],
)
async def test_another_owner_session_or_incarnation_is_forgotten(store: Store, gone: dict[str, object]) -> None:
    await start(store, turns=1)
    before = await everything(store)
    called: list[Locked] = []
    with pytest.raises(Forgotten):
        await store.change(scope(**gone), lambda locked: called.append(locked))  # type: ignore[arg-type]
    assert not called
    assert await everything(store) == before


async def test_an_erased_session_is_gone_and_counted(store: Store) -> None:
    await start(store, turns=3)
    await start(store, tag=WORK, turns=1)
    await store.change(scope(), write(Change(forget=(0, 2), folds=(fold(2),), due=("summary",))))
    assert await store.erase_session(scope(), write(Change())) == Went(sessions=1, messages=4, folds=1)
    assert (await everything(store)).session is None
    assert list(await store.lease(now=0, until=1, limit=9)) == []
    assert len((await everything(store, tag=WORK)).rows) == 2
    with pytest.raises(Forgotten):
        await store.change(scope(), turn("late"))
    with pytest.raises(Forgotten):
        await store.erase_session(scope(), write(Change()))


async def test_the_same_session_again_is_a_new_one(store: Store) -> None:
    await start(store, turns=2)
    await store.change(scope(), turn("keyed", KEY, folds=(fold(2),)))
    await store.erase_session(scope(), write(Change()))
    again = SessionRow(HOME, b"t" * 16, 0, body("again"))
    assert await store.create(ANNA, LIFE, again) == again
    view = await everything(store)
    assert (view.session, view.rows, view.known, view.folds) == (again, (), None, {})
    with pytest.raises(Forgotten):
        await store.change(scope(), turn("late"))
    locked, _ = await store.change(scope(session_incarnation=b"t" * 16), turn("first"))
    assert (locked.head, locked.n) == (0, 6), "n is never used twice in one life of an owner"


async def test_an_erased_owner_is_gone_and_counted_and_others_stay(store: Store) -> None:
    for owner in (ANNA, BORIS):
        await start(store, owner, turns=2)
        await start(store, owner, WORK, turns=1)
        await store.change(scope(owner), write(Change(folds=(fold(1),), due=("summary",))))
        await store.change(scope(owner, NOBODY), write(Change(folds=(fold(1, tag=NOBODY, kind="facts"),))))
    other = await everything(store, BORIS)
    assert await store.erase_owner(ANNA, LIFE) == Went(owners=1, sessions=2, messages=6, folds=2)
    assert await everything(store) == View()
    assert list(await store.sessions(ANNA)) == []
    assert await everything(store, BORIS) == other
    assert [due.owner for due in await store.lease(now=0, until=1, limit=9)] == [BORIS]
    assert await store.erase_owner(ANNA, LIFE) == Went()


async def test_an_owner_of_another_incarnation_is_not_erased(store: Store) -> None:
    await start(store, turns=1)
    assert await store.erase_owner(ANNA, NEXT_LIFE) == Went()
    assert len((await everything(store)).rows) == 2


async def test_an_owner_is_erased_only_if_nothing_was_added_since_he_was_looked_at(store: Store) -> None:
    await start(store, turns=1)
    look = Look(owner=ANNA, session=HOME, from_n=(0, 9), limit=9)
    before = await store.view(look)
    await store.change(scope(), turn("meanwhile"))
    assert await store.erase_owner(ANNA, LIFE, still=(look, before)) == Went()
    now = await store.view(look)
    assert len(now.rows) == 4
    assert await store.erase_owner(ANNA, NEXT_LIFE, still=(look, now)) == Went()
    assert await store.erase_owner(ANNA, LIFE, still=(look, now)) == Went(owners=1, sessions=1, messages=4)


async def test_an_owner_who_comes_back_begins_anew(store: Store) -> None:
    await start(store, turns=2)
    await store.erase_owner(ANNA, LIFE)
    await store.create(ANNA, NEXT_LIFE, session())
    with pytest.raises(Forgotten):
        await store.change(scope(), turn("late"))
    locked, _ = await store.change(scope(incarnation=NEXT_LIFE), turn("first"))
    assert (locked.head, locked.n) == (0, 0)


async def test_unfinished_erasures_are_remembered_until_they_end(store: Store) -> None:
    for _ in range(2):
        await store.begin_erasure(ANNA, LIFE)
    await store.begin_erasure(ANNA, NEXT_LIFE)
    await store.end_erasure(BORIS, LIFE)
    assert sorted(await store.erasures()) == [(ANNA, LIFE), (ANNA, NEXT_LIFE)]
    await store.end_erasure(ANNA, LIFE)
    assert list(await store.erasures()) == [(ANNA, NEXT_LIFE)]
    assert await store.scrub() is True


# Owners never mix


async def test_owners_with_the_same_tags_never_meet(store: Store) -> None:
    for owner, turns in ((ANNA, 1), (BORIS, 2)):
        await start(store, owner, turns=turns)
        await store.change(scope(owner), turn(f"of {owner!r}", KEY, folds=(fold(len(owner) + turns),)))
    anna, boris = await everything(store), await everything(store, BORIS)
    assert (len(anna.rows), len(boris.rows)) == (4, 6)
    assert (anna.known, boris.known) == (2, 4)
    assert anna.folds["summary"].cursor != boris.folds["summary"].cursor
    await store.erase_session(scope(), write(Change()))
    assert await everything(store, BORIS) == boris


async def test_two_stores_have_two_ids_and_a_store_one(store: Store) -> None:
    first = await store.keys.store_id()
    assert len(first) == 16
    assert first == await store.keys.store_id()


async def test_a_closed_store_refuses_everything_and_closes_twice(store: Store) -> None:
    await start(store)
    await store.close()
    await store.close()
    for call in (
        store.view(Look(owner=ANNA)),
        store.sessions(ANNA),
        store.create(ANNA, LIFE),
        store.change(scope(), write(None)),
        store.scrub(),
        store.erase_session(scope(), write(Change())),
        store.erasures(),
        store.owners(),
        store.rescan(kind="facts", lag=0, person=True),
        store.handle(KEY),
        store.handles(ANNA),
        store.add_handle(HandleRow(KEY, ANNA, body("x")), LIFE),
        store.remove_handle(ANNA, KEY),
        store.api_key(b"hash"),
        store.api_keys(),
        store.add_api_key(ApiKeyRow(b"hash", 0, body("x"))),
        store.remove_api_key(b"hash"),
        store.take_outbox(now=0, until=1, limit=1, oldest=0),
        store.put_back_outbox(ANNA, KEY, retry_at=0),
        store.remove_outbox(ANNA, KEY),
        store.lease(now=0, until=1, limit=1),
        store.keys.roots(),
        store.keys.user_key(ANNA),
        store.keys.remove_user_key(ANNA, LIFE),
    ):
        with pytest.raises(StoreError):
            await call
