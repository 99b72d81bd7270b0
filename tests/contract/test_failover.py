"""A primary with a synchronous standby is killed under load, and the standby takes over: every acknowledged turn is
there, once, and every message is folded once. The store knows both hosts and nothing else.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from nitka import Nitka, StoreError
from nitka.store.port import Store
from nitka.store.postgres import PostgresStore
from nitka.types import Line, Message, Proposal
from tests.contract.cluster import Cluster, binaries, new_cluster
from tests.contract.databases import WHY
from tests.laws.world import WIDE, Tally, World

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PEOPLE, TURNS = 6, 30
WINDOW = WIDE.window


@pytest.fixture
def pair() -> Iterator[tuple[Cluster, Cluster]]:
    """A primary that acknowledges nothing before its standby has it on disk, and the standby."""
    found = binaries()
    if found is None:
        pytest.skip(WHY)
    with new_cluster(found) as primary, new_cluster(found) as standby:
        primary.init()
        primary.start()
        standby.copy_of(primary, "second")
        standby.start()
        primary.execute("alter system set synchronous_standby_names = 'second'")
        primary.execute("select pg_reload_conf()")
        while primary.execute("select sync_state from pg_stat_replication") != [("sync",)]:
            time.sleep(0.05)
        yield primary, standby


class SlowTally(Tally):
    """It thinks a while; `busy` counts who waits for it."""

    busy = 0

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        self.busy += 1
        await asyncio.sleep(0.2)
        self.busy -= 1
        return await super().propose(lines, messages, cap=cap)


class Replicated(World):
    """A world on two servers; folds take their time, so that one is always under way where `slow`."""

    def __init__(self, pair: tuple[Cluster, Cluster], *, slow: bool) -> None:
        super().__init__()
        primary, standby = pair
        self.url = primary.url("postgres", standby)
        if slow:
            self.tally = SlowTally()

    def store(self) -> Store:
        return PostgresStore(self.url, wait=60, size=8, database_clock=False)


async def talk(nitka: Nitka, user: str, acknowledged: Counter[str]) -> None:
    """Says what a host would, with a key; after an error again with the same."""
    for number in range(TURNS):
        text = f"{user} {number}"
        while text not in acknowledged:
            try:
                reply = await nitka.say(user, "s", text=text, key=text)
                assert reply.text == f"answer to {text}"
                acknowledged[text] += 1
            except StoreError:
                await asyncio.sleep(0.1)
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("slow", [False, True], ids=["under load", "during folds"])
async def test_every_acknowledged_turn_outlives_the_primary(pair: tuple[Cluster, Cluster], slow: bool) -> None:
    world, acknowledged = Replicated(pair, slow=slow), Counter[str]()
    primary, standby = pair
    people = [f"u{at}" for at in range(PEOPLE)]
    async with world.open() as nitka:
        load = asyncio.gather(*(talk(nitka, user, acknowledged) for user in people))
        while acknowledged.total() < PEOPLE * TURNS // 3 or not getattr(world.tally, "busy", True):
            await asyncio.sleep(0.01)
        await asyncio.to_thread(primary.kill)
        before = acknowledged.total()
        await asyncio.to_thread(standby.promote)
        await load
        assert before < PEOPLE * TURNS, "it was killed under load"
        world.clock.advance(hours=1)  # what folds had leased when the primary died is free again
        await nitka.settle(rescan=True)
        for user in people:
            await check(nitka, user)
    async with world.open() as nitka:
        for user in people:
            await check(nitka, user)


async def check(nitka: Nitka, user: str) -> None:
    """All that was said, in order and once; each message outside the window folded once."""
    rows = await nitka.history(user, "s", limit=10_000)
    said = [text for number in range(TURNS) for text in (f"{user} {number}", f"answer to {user} {number}")]
    assert [row.text for row in rows] == said
    assert [row.seq for row in rows] == list(range(2 * TURNS))
    summary = await nitka.summary(user, "s")
    assert summary.cursor == 2 * TURNS - WINDOW
    firsts = [line.first for line in summary.lines if not line.offline]
    if len(firsts) == len(summary.lines):
        assert firsts == list(range(summary.cursor))
    else:  # a step that failed three times is written by the offline summariser, which knows what replaces what
        assert firsts == sorted(set(firsts))
