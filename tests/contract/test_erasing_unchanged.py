"""`erase_owner` on condition that nothing was written or forgotten since it was looked at."""

from __future__ import annotations

import pytest

from nitka.store.port import NOBODY, Change, Look, Piece, Store, Went
from nitka.types import Tag
from tests.contract.making import ANNA, HOME, LIFE, WORK, body, fold, scope, session, start, turn, write

pytestmark = pytest.mark.anyio

LOOK = Look(owner=ANNA, person_folds=("facts",), pieces=("fact",), ns=(0,))

LATER = {
    "a turn": (scope(), turn("late")),
    "a turn of another session": (scope(tag=WORK), turn("late")),
    "a forgotten turn": (scope(rows=(0, 2)), write(Change(session_body=body("less"), forget=(0, 2)))),
    "a fold": (scope(tag=NOBODY), write(Change(folds=(fold(2, 2, NOBODY, "facts"),)))),
    "a piece": (scope(tag=NOBODY), write(Change(put_pieces=(Piece("fact", Tag(b"f" * 16), body("fact")),)))),
}


async def furnish(store: Store) -> None:
    await start(store, turns=2)
    await store.create(ANNA, LIFE, session(WORK))
    await store.change(scope(tag=NOBODY), write(Change(folds=(fold(1, 1, NOBODY, "facts"),))))


async def test_who_is_unchanged_is_erased(store: Store) -> None:
    await furnish(store)
    went = await store.erase_owner(ANNA, LIFE, still=(LOOK, await store.view(LOOK)))
    assert went == Went(owners=1, sessions=2, messages=4, folds=1)
    assert (await store.view(LOOK)).incarnation is None


@pytest.mark.parametrize("what", LATER)
async def test_who_was_written_to_since_stays_whole(store: Store, what: str) -> None:
    await furnish(store)
    seen = await store.view(LOOK)
    await store.change(*LATER[what])
    now = await store.view(LOOK)
    assert now != seen
    assert await store.erase_owner(ANNA, LIFE, still=(LOOK, seen)) == Went()
    assert await store.view(LOOK) == now
    assert (await store.erase_owner(ANNA, LIFE, still=(LOOK, now))).owners == 1


async def test_a_session_that_was_erased_since_is_a_change(store: Store) -> None:
    await furnish(store)
    seen = await store.view(LOOK)
    await store.erase_session(scope(tag=HOME), write(Change()))
    assert await store.erase_owner(ANNA, LIFE, still=(LOOK, seen)) == Went()
    assert len(await store.sessions(ANNA)) == 1
