"""What every store promises about what belongs to a person and not to one session."""

from __future__ import annotations

import asyncio

import pytest

from nitka.errors import Forgotten, StoreError
from nitka.store.port import NOBODY, Change, HandleRow, Locked, Look, OutboxRow, Piece, Row, Step, Store, View, Went
from nitka.types import Tag
from tests.contract.making import (
    ANNA,
    BORIS,
    HOME,
    LIFE,
    NEXT_LIFE,
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

MINE = scope(tag=NOBODY)


def tag(number: int) -> Tag:
    return Tag(number.to_bytes(16, "big"))


def piece(number: int, text: str = "", kind: str = "fact") -> Piece:
    return Piece(kind, tag(number), body(f"{kind} {number} {text}"))


async def pieces(store: Store, *kinds: str, owner: bytes = ANNA) -> list[Piece]:
    found = (await store.view(Look(owner=owner, pieces=kinds))).pieces
    return [one for kind in kinds for one in found.get(kind, ())]


# Pieces


async def test_pieces_are_written_whole_read_by_kind_in_the_order_of_ids_and_dropped(store: Store) -> None:
    await start(store)
    await store.change(MINE, write(Change(put_pieces=(piece(3), piece(1), piece(2, kind="segment"), piece(300)))))
    await store.change(scope(), write(Change(put_pieces=(piece(1, "anew"),))))
    view = await store.view(Look(owner=ANNA, pieces=("fact", "never there")))
    assert view == View(incarnation=LIFE, pieces={"fact": (piece(1, "anew"), piece(3), piece(300))})
    await store.change(MINE, write(Change(drop_pieces=(("fact", tag(3)), ("segment", tag(1)), ("fact", tag(9))))))
    assert await pieces(store, "segment", "fact") == [piece(2, kind="segment"), piece(1, "anew"), piece(300)]


async def test_what_one_change_drops_and_puts_is_there(store: Store) -> None:
    await start(store)
    await store.change(MINE, write(Change(put_pieces=(piece(1),), folds=(fold(1, tag=NOBODY, kind="facts"),))))
    anew = fold(2, 2, NOBODY, "facts")
    both = Change(
        drop_pieces=(("fact", tag(1)),),
        put_pieces=(piece(1, "anew"),),
        folds=(anew,),
    )
    await store.change(MINE, write(both))
    view = await store.view(Look(owner=ANNA, pieces=("fact",), person_folds=("facts",)))
    assert (view.pieces, view.person_folds) == ({"fact": (piece(1, "anew"),)}, {"facts": anew})


async def test_pieces_of_two_owners_do_not_meet(store: Store) -> None:
    for owner in (ANNA, BORIS):
        await start(store, owner)
        await store.change(scope(owner, NOBODY), write(Change(put_pieces=(piece(1, f"{owner!r}"),))))
    await store.change(MINE, write(Change(drop_pieces=(("fact", tag(1)),))))
    assert await pieces(store, "fact") == []
    assert await pieces(store, "fact", owner=BORIS) == [piece(1, f"{BORIS!r}")]


async def test_pieces_and_folds_of_a_person_move_together_or_not_at_all(store: Store) -> None:
    await start(store)

    def step(locked: Locked) -> Change:
        version = locked.person_folds["facts"].version + 1 if locked.person_folds else 1
        state = fold(version, version, NOBODY, "facts")
        return Change(folds=(state,), put_pieces=(piece(0, str(version)),))

    async def writer() -> None:
        await asyncio.gather(*(store.change(scope(tag=NOBODY, person_folds=("facts",)), step) for _ in range(30)))

    task = asyncio.create_task(writer())
    while not task.done():
        view = await store.view(Look(owner=ANNA, person_folds=("facts",), pieces=("fact",)))
        if view.person_folds:
            assert view.pieces["fact"] == (piece(0, str(view.person_folds["facts"].version)),)
        await asyncio.sleep(0)
    await task
    assert await pieces(store, "fact") == [piece(0, "30")]


# Numbers


async def test_a_view_gives_the_owners_next_number_always(store: Store) -> None:
    await start(store, turns=2)
    await start(store, tag=WORK, turns=1)
    for at in (HOME, WORK, NOBODY, tag(9)):
        assert (await store.view(Look(owner=ANNA, session=at))).n == 6


async def interleaved(store: Store) -> None:
    """Rows 0 to 11 of Anna: HOME, WORK, HOME, … by turns; of Boris too."""
    for owner in (ANNA, BORIS):
        for at in (HOME, WORK):
            await start(store, owner, at)
        for number in range(6):
            await store.change(scope(owner, (HOME, WORK)[number % 2]), turn(f"{owner!r} {number}"))


async def test_numbers_are_those_of_all_living_rows_of_the_range(store: Store) -> None:
    await interleaved(store)
    await store.change(scope(), write(Change(forget=(2, 4))))
    looks: tuple[dict[str, int], ...] = (
        {},
        {"first": 1},
        {"first": 1, "end": 5},
        {"first": 2, "end": 4},
        {"end": 99, "limit": 1},
    )
    found = [(await by_number(store, session=HOME, numbers=True, **look)).numbers for look in looks]
    assert found == [(0, 1, 8, 9), (1, 8, 9), (1, 8), (), (0, 1, 8, 9)]
    assert (await store.view(Look(owner=ANNA, session=WORK, numbers=True))).numbers == (2, 3, 6, 7, 10, 11)
    assert (await store.view(Look(owner=ANNA, session=HOME))).numbers == ()


# Rows by their number


async def by_number(store: Store, **look: object) -> View:
    return await store.view(Look(owner=ANNA, **look))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        ({"from_n": (0, 99)}, range(12)),
        ({"from_n": (5, 3)}, (5, 6, 7)),
        ({"from_n": (12, 3)}, ()),
        ({"from_n": (0, 0)}, ()),
        ({"ns": (7, 2, 2, 11)}, (2, 7, 11)),
        ({"ns": (12, -1, 1 << 70)}, ()),
        ({"from_n": (9, 2), "ns": (10, 0)}, (0, 9, 10)),
        ({}, ()),
    ],
)
async def test_rows_of_a_person_are_found_by_number(
    store: Store, look: dict[str, object], expected: tuple[int, ...]
) -> None:
    await interleaved(store)
    view = await by_number(store, **look)
    assert [found.row.n for found in view.person_rows] == list(expected)
    for at, found in zip(expected, view.person_rows, strict=True):
        number = at // 2
        assert found.session == (HOME, WORK)[number % 2]
        assert found.row == Row(2 * (number // 2) + at % 2, at, body(f"{ANNA!r} {number} {at % 2}"))
    assert view.person_sessions.keys() == {found.session for found in view.person_rows}
    for tag, row in view.person_sessions.items():
        assert (row.session, row.head) == (tag, 6)


async def test_tombstones_are_among_a_persons_rows_and_count(store: Store) -> None:
    await interleaved(store)
    await store.change(scope(), write(Change(forget=(0, 2))))
    view = await by_number(store, from_n=(0, 3))
    assert [(found.row.n, found.row.body is None) for found in view.person_rows] == [(0, True), (1, True), (2, False)]


async def test_rows_of_an_erased_session_are_no_more_found_by_number(store: Store) -> None:
    await interleaved(store)
    await store.erase_session(scope(), write(Change()))
    view = await by_number(store, from_n=(0, 99), ns=(0, 1, 2))
    assert [found.row.n for found in view.person_rows] == [2, 3, 6, 7, 10, 11]
    assert view.person_sessions.keys() == {WORK}


async def test_thousands_of_numbers_are_asked_for_at_once(store: Store) -> None:
    await start(store)
    for _ in range(3):
        await store.change(scope(), many(1000))
    view = await by_number(store, ns=tuple(range(40_000)))
    assert [found.row.n for found in view.person_rows] == list(range(3000))


def many(count: int) -> Step:
    def step(locked: Locked) -> Change:
        numbers = ((locked.head + at, locked.n + at) for at in range(count))
        return Change(append=rows(*numbers), session_body=body("s"))

    return step


# Erasing


async def furnish(store: Store, owner: bytes, *, handle: int) -> None:
    """Gives somebody one of everything, in two sessions."""
    await start(store, owner, turns=2)
    await start(store, owner, WORK, turns=1)
    everything = Change(
        folds=(fold(2), fold(4, tag=NOBODY, kind="facts"), fold(4, tag=NOBODY, kind="profile")),
        due=("summary",),
        person_due=("facts",),
        put_pieces=(piece(1), piece(2), piece(3, kind="segment")),
        outbox=(OutboxRow(owner, tag(1), 5, body("alert")),),
    )
    await store.change(scope(owner), write(everything))
    await store.add_handle(HandleRow(tag(handle), owner, body("name")), LIFE)


async def rest(store: Store, owner: bytes) -> tuple[object, ...]:
    """All that can be seen of somebody."""
    look = Look(
        owner=owner,
        session=HOME,
        folds=("summary",),
        person_folds=("facts", "profile"),
        pieces=("fact", "segment"),
        limit=99,
        from_n=(0, 99),
    )
    return await store.view(look), list(await store.sessions(owner)), list(await store.handles(owner))


async def test_an_erased_owner_takes_everything_along(store: Store) -> None:
    await furnish(store, ANNA, handle=1)
    await furnish(store, BORIS, handle=2)
    other = await rest(store, BORIS)
    went = await store.erase_owner(ANNA, LIFE)
    assert went == Went(owners=1, sessions=2, messages=6, folds=3, pieces=3, handles=1)
    assert await rest(store, ANNA) == (View(), [], [])
    assert await store.handle(tag(1)) is None
    assert await rest(store, BORIS) == other
    assert [row.owner for row in await store.take_outbox(now=9, until=10, limit=9, oldest=0)] == [BORIS]
    assert {due.owner for due in await store.lease(now=0, until=1, limit=9)} == {BORIS}


async def test_an_owner_who_comes_back_has_nothing_of_before(store: Store) -> None:
    await furnish(store, ANNA, handle=1)
    await store.erase_owner(ANNA, LIFE)
    await store.create(ANNA, NEXT_LIFE)
    assert await rest(store, ANNA) == (View(incarnation=NEXT_LIFE), [], [])


async def test_a_session_takes_along_what_its_step_says_in_the_same_transaction(store: Store) -> None:
    await furnish(store, ANNA, handle=1)
    state = fold(4, 2, NOBODY, "facts")
    wanted = Change(
        folds=(state,),
        drop_pieces=(("fact", tag(1)), ("fact", tag(99))),
        put_pieces=(piece(2, "anew"),),
        person_done=("facts",),
        person_due=("segments",),
        outbox=(OutboxRow(ANNA, tag(2), 6, body("alert")),),
    )
    seen: list[Locked] = []

    def step(locked: Locked) -> Change:
        seen.append(locked)
        return wanted

    asked = scope(folds=("summary",), person_folds=("facts",), rows=(0, 2))
    assert await store.erase_session(asked, step) == Went(sessions=1, messages=4, folds=1, pieces=1)
    (locked,) = seen
    assert (locked.n, locked.head, len(locked.rows)) == (6, 4, 2)
    assert (locked.folds, locked.person_folds) == ({"summary": fold(2)}, {"facts": fold(4, tag=NOBODY, kind="facts")})
    view, sessions, handles = await rest(store, ANNA)
    assert isinstance(view, View)
    assert (view.session, view.rows, view.person_folds) == (
        None,
        (),
        {"facts": state, "profile": fold(4, tag=NOBODY, kind="profile")},
    )
    assert view.pieces == {"fact": (piece(2, "anew"),), "segment": (piece(3, kind="segment"),)}
    assert [row.session for row in sessions] == [WORK] and len(handles) == 1  # type: ignore[attr-defined, arg-type]
    due = {(due.session, due.kind) for due in await store.lease(now=0, until=1, limit=9)}
    assert due == {(NOBODY, "segments")}
    assert [row.id for row in await store.take_outbox(now=9, until=10, limit=9, oldest=0)] == [tag(1), tag(2)]


async def test_a_session_stays_where_its_step_wants_nothing_or_raises(store: Store) -> None:
    await furnish(store, ANNA, handle=1)
    before = await rest(store, ANNA)
    assert await store.erase_session(scope(), write(None)) is None
    with pytest.raises(ZeroDivisionError):
        await store.erase_session(scope(), lambda locked: Change(due=("x",) * (1 // (locked.head - 4))))
    assert await rest(store, ANNA) == before
    assert len(await store.lease(now=0, until=1, limit=9)) == 2


UNSOUND = {
    "rows": Change(append=rows((4, 6), (5, 7)), session_body=body("s")),
    "a body": Change(session_body=body("s")),
    "a tombstone": Change(forget=(0, 2)),
    "a state": Change(folds=(fold(3, 2),)),
    "a state of another session": Change(folds=(fold(3, 2, WORK),)),
    "a dropped state": Change(drop_folds=("summary",)),
    "work": Change(due=("summary",)),
    "an outbox of somebody else": Change(outbox=(OutboxRow(BORIS, tag(1), 0, body("x")),)),
}


@pytest.mark.parametrize("what", UNSOUND)
async def test_nothing_is_written_to_a_session_that_is_being_erased(store: Store, what: str) -> None:
    await furnish(store, ANNA, handle=1)
    before = await rest(store, ANNA)
    with pytest.raises(StoreError):
        await store.erase_session(scope(), write(UNSOUND[what]))
    assert await rest(store, ANNA) == before


async def test_without_a_session_there_is_none_to_erase(store: Store) -> None:
    await furnish(store, ANNA, handle=1)
    before = await rest(store, ANNA)
    with pytest.raises(StoreError):
        await store.erase_session(MINE, write(Change()))
    assert await rest(store, ANNA) == before


# Owners


async def test_owners_come_in_the_order_of_their_ids_and_in_pages(store: Store) -> None:
    ids = [bytes(tag(at)) for at in range(1, 8)]
    for owner in reversed(ids):
        await store.create(owner, LIFE, session())
    found: list[bytes] = []
    while page := await store.owners(after=found[-1] if found else b"", limit=3):
        found += page
    assert found == ids


async def test_a_handle_is_linked_once_and_gives_what_stands(store: Store) -> None:
    for owner in (ANNA, BORIS):
        await store.create(owner, LIFE)
    first = HandleRow(tag(1), ANNA, body("first"))
    assert await store.handle(tag(1)) is None
    assert await store.add_handle(first, LIFE) == first
    assert await store.add_handle(HandleRow(tag(1), ANNA, body("late")), LIFE) == first
    assert await store.add_handle(HandleRow(tag(1), BORIS, body("late")), LIFE) == first
    second = HandleRow(tag(2), ANNA, body("second"))
    await store.add_handle(second, LIFE)
    assert await store.handle(tag(1)) == first
    assert list(await store.handles(ANNA)) == [first, second]
    assert list(await store.handles(BORIS)) == []


async def test_a_handle_is_linked_only_to_who_lives(store: Store) -> None:
    await store.create(ANNA, LIFE)
    for owner, life in ((ANNA, NEXT_LIFE), (BORIS, LIFE)):
        with pytest.raises(Forgotten):
            await store.add_handle(HandleRow(tag(1), owner, body("x")), life)
    assert await store.handle(tag(1)) is None


async def test_a_handle_is_removed_by_whose_it_is(store: Store) -> None:
    await store.create(ANNA, LIFE)
    await store.add_handle(HandleRow(tag(1), ANNA, body("x")), LIFE)
    removed = [await store.remove_handle(owner, tag(1)) for owner in (BORIS, ANNA, ANNA)]
    assert removed == [False, True, False]
    assert await store.handle(tag(1)) is None
