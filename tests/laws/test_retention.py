"""What goes by age, and nothing else: turns by their own time, lines with their last turn, facts by their last word."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka import BadInput, Limits, ModelError, Nitka
from nitka.store.port import Store
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring

pytestmark = pytest.mark.anyio

NOW = datetime.fromisoformat("2026-06-01T12:00:00+00:00")
KEEP = 30  # days


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store | str:
    return MemoryStore() if request.param == "memory" else f"sqlite:///{tmp_path / 'n.db'}"


def opened(store: Store | str, **limits: Any) -> Nitka:
    usual: dict[str, Any] = {"window": 4, "recall_wait": 30}
    return Nitka.open(
        store, model=FakeModel(), fold_model="offline", keys=memory_ring(), clock=FixedClock(NOW),
        limits=Limits(**(usual | limits)),
    )  # fmt: skip


@given(ages=st.lists(st.integers(0, 60), min_size=1, max_size=14))
@settings(max_examples=40, deadline=None)
def test_what_is_too_old_goes_and_what_is_not_stays(ages: list[int]) -> None:
    """In whatever order turns of whatever time were written."""

    async def run() -> None:
        async with opened(MemoryStore(), retain_days=KEEP) as nitka:
            for at, age in enumerate(ages):
                when = NOW - timedelta(days=age, minutes=-at)
                await nitka.record("anna", "web", text=f"Code {at} is QX{at}.", answer="ok", at=when)
            done = await nitka.settle()
            kept = [at for at, age in enumerate(ages) if age <= KEEP]
            assert done.expired == 2 * (len(ages) - len(kept))
            said = [m.text for m in await nitka.history("anna", "web") if m.role == "user"]
            assert said == [f"Code {at} is QX{at}." for at in kept]
            lines = (await nitka.summary("anna", "web")).text
            assert not any(
                f"QX{at}." in f"{lines}." for at in range(len(ages)) if at not in kept and at + 1 not in kept
            )
            assert [m.text for m in await nitka.history("anna", "web") if m.role == "user"] == said
            assert (await nitka.settle()).expired == 0
            assert bool(await nitka.sessions("anna")) == bool(kept)
            for passage in await nitka.recall("anna", "Which code is QX0?"):
                assert passage.seq // 2 in kept

    asyncio.run(run())


async def test_facts_outlive_the_turns_they_were_told_in(store: Store | str) -> None:
    async with opened(store, retain_days=KEEP) as nitka:
        await nitka.record("anna", "web", text="I live in Leeds.", answer="ok", at=NOW - timedelta(days=50))
        assert (await nitka.settle()).expired == 2
        assert [fact.value for fact in await nitka.facts("anna")] == ["Leeds"]
        assert await nitka.sessions("anna") == ()


async def test_only_the_one_who_is_named_is_looked_at(store: Store | str) -> None:
    async with opened(store, retain_days=KEEP) as nitka:
        for user in ("anna", "boris"):
            await nitka.record(user, "web", text="Hello.", answer="ok", at=NOW - timedelta(days=50))
        assert (await nitka.settle("anna")).expired == 2
        assert len(await nitka.history("boris", "web")) == 2
        assert (await nitka.settle()).expired == 2


@pytest.mark.parametrize("fold", ["add", "facts"])
async def test_rows_that_a_fold_has_yet_to_read_wait_for_it(store: Store | str, fold: str) -> None:
    """A model that is away writes no summary and learns nothing; until it has, nothing that it has to read goes."""
    ring, clock, broken = memory_ring(), FixedClock(NOW), FakeModel(folds={fold: [ModelError(retryable=True)]})
    limits = Limits(window=4, retain_days=KEEP)
    async with Nitka.open(store, model=FakeModel(), fold_model=broken, keys=ring, clock=clock, limits=limits) as nitka:
        for at in range(6):
            age = timedelta(days=50 if at < 3 else 1)
            await nitka.record("anna", "web", text=f"Code {at} is QX{at}. I live in Leeds.", answer="ok", at=NOW - age)
        done = await nitka.settle()
        assert (done.failed, done.expired) == (1, 0)
    if isinstance(store, str):
        async with Nitka.open(store, model="offline", keys=ring, clock=clock, limits=limits) as nitka:
            assert (await nitka.settle()).expired == 6
            assert [fact.confirmations for fact in await nitka.facts("anna")] == [6] * (fold == "facts")


async def test_a_user_whose_key_does_not_open_keeps_nobody_else_s_past(tmp_path: Path) -> None:
    path, ring = tmp_path / "n.db", memory_ring()

    def again() -> Nitka:
        clock, limits = FixedClock(NOW), Limits(retain_days=KEEP)
        return Nitka.open(f"sqlite:///{path}", model=FakeModel(), keys=ring, clock=clock, limits=limits)

    users = [f"u{at}" for at in range(6)]
    async with again() as nitka:
        for user in users:
            await nitka.record(user, "web", text="Hello.", answer="ok", at=NOW - timedelta(days=50))
    with closing(sqlite3.connect(f"{path}.keys")) as db, db:
        first = "(select min(owner) from user_keys)"
        db.execute(f"update user_keys set wrapped = zeroblob(200) where owner = {first}")
    async with again() as nitka:
        assert (await nitka.settle()).expired == 2 * (len(users) - 1)


@pytest.mark.parametrize("name", ["retain_days", "retain_facts_days"])
def test_a_negative_age_is_refused(name: str) -> None:
    with pytest.raises(BadInput, match="negative"):
        opened(MemoryStore(), **{name: -1})
