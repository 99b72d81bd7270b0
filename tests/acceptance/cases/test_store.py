"""STORE: a locked database, a long model call, many streams at once. More processes: see ../test_many_writers.py."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from nitka import Limits, Nitka, StoreBusy, StoreError
from nitka.store.sqlite import SqliteStore
from nitka.testing import FaultyStore
from tests.acceptance.cases.stage import SlowModel, Stage, lay, whole

pytestmark = pytest.mark.anyio


@contextmanager
def another_program(stage: Stage, *statements: str, keys: bool = False) -> Iterator[sqlite3.Connection]:
    """Somebody else who has the file open and does what the statements say."""
    db = sqlite3.connect(f"{stage.path}{'.keys' if keys else ''}", isolation_level=None, timeout=5)
    try:
        for statement in statements:
            db.execute(statement).fetchall()
        yield db
    finally:
        db.close()


READS = ("begin", "select count(*) from messages")


async def test_st_1_a_reader_never_makes_a_write_fail(sqlite: Stage) -> None:
    """While another program holds a read transaction, turns, folds and forgets go on and none is lost."""
    async with sqlite.open() as nitka, sqlite.open() as other:
        with another_program(sqlite, *READS):
            await asyncio.gather(
                *(nitka.say(f"user-{at % 4}", "s", text=f"turn {at}") for at in range(20)),
                *(other.say(f"user-{at % 4}", "s", text=f"turn {at}") for at in range(20, 40)),
                *(nitka.history(f"user-{at % 4}", "s") for at in range(20)),
            )
            assert (await other.settle()).failed == 0
            assert (await nitka.forget("user-3")).messages == 20
        for user in range(3):
            assert len(await whole(other, f"user-{user}", "s")) == 10


@pytest.mark.parametrize("held", [0.0, 0.4])
async def test_st_1_a_writer_that_holds_the_lock_for_a_while_is_waited_for(sqlite: Stage, held: float) -> None:
    """A lock held shorter than the stated wait costs time and nothing else."""
    async with sqlite.open() as nitka:
        await lay(nitka, "anna", "s", 1)
        with another_program(sqlite, "begin exclusive") as db:
            waiting = asyncio.gather(*(nitka.say("anna", "s", text=f"turn {at}") for at in range(5)))
            await asyncio.sleep(held)
            db.execute("commit")
            await waiting
        assert len(await whole(nitka, "anna", "s")) == 6


async def test_st_2_a_lock_that_stays_is_a_clear_error_after_the_stated_wait(sqlite: Stage) -> None:
    """Beyond the wait there is `StoreBusy` and nothing is written; afterwards everything works, the folds too."""
    store = SqliteStore(str(sqlite.path), wait=0.3)
    async with sqlite.open(store, limits=Limits(window=4, wait_seconds=0.3)) as nitka:
        await lay(nitka, "anna", "s", 4)
        await nitka.settle()
        with another_program(sqlite, "begin immediate"):
            for _ in range(2):
                began = time.monotonic()
                with pytest.raises(StoreBusy):
                    await nitka.say("anna", "s", text="is anybody there?")
                assert 0.2 < time.monotonic() - began < 4
            with pytest.raises(StoreBusy):
                await nitka.forget("anna", session="s", turn=0)
            assert len(await nitka.history("anna", "s")) == 8, "reading does not wait"
        assert len(await whole(nitka, "anna", "s")) == 4
        await lay(nitka, "anna", "s", 2, start=4)
        await nitka.settle()
        assert len(await whole(nitka, "anna", "s")) == 6
        assert (await nitka.summary("anna", "s")).cursor == 8


@pytest.mark.parametrize("after", [False, True])
async def test_st_3_a_connection_that_dies_while_the_model_thinks_loses_no_turn(stage: Stage, after: bool) -> None:
    """Whichever call of the store breaks between question and answer, before or after it took effect, the turn is
    written once.
    """
    for at in range(6):
        store = FaultyStore(stage.store(), at=10**9, after=after)
        async with stage.open(store) as nitka:
            async with nitka.turn("anna", f"s{at}", text="a long question") as turn:
                await asyncio.sleep(0)
                store._at = store.calls + at
                turn.answer("a long answer")
            store._at = 10**9
            assert await whole(nitka, "anna", f"s{at}") == [("a long question", "a long answer")]


async def test_st_3_when_the_store_stays_away_the_caller_knows_and_can_send_again(stage: Stage) -> None:
    """A store that fails again is an error, never a silent success; the same delivery later is one turn."""

    class Away(FaultyStore):
        def wrap(self, method, name):
            return self._fails if self.calls == 1 and name == "change" else super().wrap(method, name)

        async def _fails(self, *_: object) -> None:
            raise StoreError("It is away.")

    store = Away(stage.store(), at=10**9)
    async with stage.open(store) as nitka:
        with pytest.raises(StoreError):
            async with nitka.turn("anna", "s", text="hello", key="k") as turn:
                turn.answer("hi")
                store.calls = 1
        store.calls = 10
        assert await nitka.history("anna", "s") == ()
        await nitka.say("anna", "s", text="hello", key="k")
        assert await whole(nitka, "anna", "s") == [("hello", "answer to hello")]


async def test_st_4_nothing_is_held_while_forty_answers_stream(sqlite: Stage) -> None:
    """Forty conversations are in the middle of their answers; another program can take the whole database meanwhile,
    other turns are written, and all forty finish.
    """
    model = SlowModel("one two three four", pause=2)
    async with sqlite.open(model=model) as nitka:

        async def stream(at: int) -> str:
            async with nitka.say(f"user-{at % 7}", f"s{at}", text="tell me", stream=True) as pieces:
                return "".join([piece async for piece in pieces])

        streams = [asyncio.create_task(stream(at)) for at in range(40)]
        while model.waiting < 40:
            await asyncio.sleep(0.005)
        for keys in (False, True):
            with another_program(sqlite, "begin exclusive", "rollback", keys=keys):
                pass
        await asyncio.wait_for(lay(nitka, "anna", "s", 2), 5)
        model.gate.set()
        assert await asyncio.wait_for(asyncio.gather(*streams), 20) == ["one two three four"] * 40
        for at in range(40):
            assert await whole(nitka, f"user-{at % 7}", f"s{at}") == [("tell me", "one two three four")]


async def test_st_4_turns_left_open_do_not_use_up_the_store(stage: Stage) -> None:
    """Hundreds of turns that are open at once and never end leave the store as usable as before."""
    async with stage.open() as nitka:
        blocks = [nitka.turn("anna", f"s{at}", text="thinking") for at in range(200)]
        for block in blocks:
            await block.__aenter__()
        await asyncio.wait_for(_goes_on(nitka), 10)
    async with stage.open() as nitka:
        assert [info.id for info in await nitka.sessions("anna")] == ["other"]


async def _goes_on(nitka: Nitka) -> None:
    await lay(nitka, "anna", "other", 5)
    await nitka.settle()
    assert (await nitka.summary("anna", "other")).cursor == 6
