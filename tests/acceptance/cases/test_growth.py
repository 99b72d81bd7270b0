"""GROWTH: a turn costs the same in a long conversation as in a short one, and memory does not slow the answer."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from datetime import timedelta

import pytest

from benchmarks.lay import lay as lay_out
from nitka import Limits, Message, ModelError
from nitka.testing import FakeModel
from nitka.tokens import exact
from nitka.types import Line, Proposal
from tests.acceptance.cases.stage import Measured, Stage, asked, lay, said, whole

pytestmark = pytest.mark.anyio

PLAIN = Limits(window=12)


class Brief:
    """A summariser that adds one short line."""

    name = "brief"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        first, last = messages[0].seq, messages[-1].seq
        return Proposal(add=(Line(full=f"they spoke of day {first}", gist=f"day {first}", first=first, last=last),))


async def cost_of_turns(stage: Stage, messages: int) -> tuple[int, int, int, int]:
    """What four turns and their folds take: calls, rows and bytes read, bytes written."""
    store = Measured(stage.store())
    async with stage.open(store, limits=PLAIN, fold_model=Brief()) as nitka:
        await lay_out(nitka, "anna", f"{messages}", messages)
        await nitka.say("anna", f"{messages}", text="warm up")
        await nitka.settle()
        store.reset()
        for at in range(4):
            await nitka.say("anna", f"{messages}", text=f"a question, number {at}")
            await nitka.settle()
        return store.calls, store.rows_read, store.bytes_read, store.bytes_written


async def test_gr_1_a_turn_reads_and_writes_the_same_however_long_the_history(stage: Stage) -> None:
    """Opening, committing and folding take the same calls, rows and bytes at ten thousand messages as at a hundred."""
    calls, rows, read, written = await cost_of_turns(stage, 100)
    for messages in (1_000, 10_000):
        cost = await cost_of_turns(stage, messages)
        assert cost[:2] == (calls, rows)
        assert cost[2] <= 1.1 * read and cost[3] <= 1.1 * written
    assert rows < 4 * 100


async def test_gr_1_nor_when_no_fold_ever_works(memory: Stage) -> None:
    """A summariser that always fails leaves the cost of a turn bounded by the backlog."""
    store = Measured(memory.store())
    model = FakeModel([ModelError(retryable=True)])
    async with memory.open(store, limits=Limits(window=4, backlog=40), fold_model=model) as nitka:
        most = []
        for at in range(150):
            store.reset()
            await nitka.say("anna", "s", text=f"turn {at}")
            most.append(store.rows_read)
        assert max(most[50:]) <= 400 and max(most[100:]) <= max(most[20:100])


@pytest.mark.parametrize("messages", [101, 250, 5_000])
@pytest.mark.parametrize("folds", ["working", "failing"])
async def test_gr_2_the_newest_is_always_present(memory: Stage, messages: int, folds: str) -> None:
    """After any number of messages, folded or not, the last ones are in the request, the history and the export."""
    async with memory.open(limits=PLAIN, fold_model=Brief()) as nitka:
        await lay_out(nitka, "anna", "s", messages - messages % 2)
    writer = Brief() if folds == "working" else FakeModel(folds={"add": [ModelError(retryable=True)]})
    async with memory.open(limits=PLAIN, fold_model=writer) as nitka:
        for at in range(60 if messages < 1_000 else 3):
            await nitka.say("anna", "s", text=f"my locker is number {at}")
        async with nitka.turn("anna", "s", text="What is my locker's number?") as turn:
            assert asked(turn.request.messages)[-2:] == [f"my locker is number {at}", "What is my locker's number?"]
            turn.discard()
        assert (await nitka.history("anna", "s", limit=2))[0].text == f"my locker is number {at}"
        assert [m.text for m in await nitka.history("anna", "s")][-2] == f"my locker is number {at}"
        texts = [record["text"] async for record in nitka.export("anna")]
        assert texts[-2] == f"my locker is number {at}"


async def test_gr_3_old_conversations_can_go_while_others_go_on(sqlite: Stage) -> None:
    """Sessions say when they were last used; forgetting the old ones leaves those in use intact, and the file stops
    growing.
    """
    sizes = []
    async with sqlite.open(limits=Limits(window=4), fold_model=Brief()) as nitka:
        for day in range(40):
            await lay(nitka, "anna", f"day {day}", 3, text="a long message " * 40 + "{}")
            await lay(nitka, "anna", "every day", 1, start=day)
            sqlite.clock.now += timedelta(days=1)
            await nitka.settle()
            for info in await nitka.sessions("anna"):
                if info.last is not None and sqlite.clock.now - info.last > timedelta(days=8):
                    erased = await nitka.forget("anna", session=info.id)
                    assert (erased.sessions, erased.messages, erased.lines > 0) == (1, 6, True)
            sizes.append(sum(os.path.getsize(path) for path in sqlite.files("", "-wal")))
        kept = {info.id for info in await nitka.sessions("anna")}
        assert kept == {"every day", *(f"day {day}" for day in range(32, 40))}
        assert len(await whole(nitka, "anna", "every day")) == 40
        assert len({name for name, rows in sqlite.everything().items() if len(rows) > 300}) == 0
    assert max(sizes[25:]) <= 1.3 * max(sizes[9:15])


async def test_gr_4_pictures_are_not_written_with_every_turn(stage: Stage) -> None:
    """Sixteen pictures of 2 MB that loops have looked at are in no row, and later turns write as little as ever."""
    picture = base64.b64encode(bytes(1_500_000)).decode()
    part = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}}
    store = Measured(stage.store())
    async with stage.open(store, limits=PLAIN, fold_model=Brief()) as nitka:
        await lay(nitka, "anna", "s", 1)
        store.reset()
        for at in range(16):
            async with nitka.turn("anna", "s", text=f"look at picture {at}") as turn:
                shown = {"role": "user", "content": [{"type": "text", "text": "here it is"}, part]}
                assert turn.refit([*turn.request.messages, shown]).messages[-1]["content"][1] == part
                turn.answer("A cat.")
        await nitka.settle()
        assert store.bytes_written < 16 * 8_000
        store.reset()
        for at in range(20):
            await nitka.say("anna", "s", text=f"and now {at}?")
        await nitka.settle()
        assert store.bytes_written < 20 * 8_000


async def test_gr_5_the_answer_does_not_wait_for_the_memory(stage: Stage) -> None:
    """Forty turns are answered while the summariser thinks about the first slice; then calls are few and bounded."""
    async with stage.open(limits=Limits(window=4, backlog=1_000, summary_tokens=100_000)) as nitka:
        stage.tally.gate.clear()
        for at in range(40):
            reply = await asyncio.wait_for(nitka.say("anna", "s", text=f"turn {at} " + "word " * 200), 5)
            assert reply.text.startswith("answer")
        assert len(stage.tally.calls) == 1, "one call at a time"
        stage.tally.gate.set()
        await nitka.settle()
        assert stage.tally.given == list(range(76)), "each message once"
        assert len(stage.tally.calls) <= 10, "in slices, not one by one"
        tokens = [sum(exact().count(m.text) for m in call) for call in stage.tally.calls]
        assert max(tokens) <= 3_000


@pytest.mark.parametrize("ceiling", [0, 500, 2_000])
async def test_gr_5_a_daily_ceiling_stops_model_folds_and_not_the_turns(stage: Stage, ceiling: int) -> None:
    """What the model is given in a day stays below the ceiling, the rest is folded offline; the next day it goes on."""
    limits = Limits(window=2, fold_tokens_per_day=ceiling)
    async with stage.open(limits=limits, fold_model=stage.tally) as nitka:
        for day in range(2):
            before = len(stage.tally.calls)
            for at in range(15):
                await nitka.say("anna", "s", text=f"day {day} turn {at}: " + "the boat is blue " * 20)
                await nitka.settle()
            calls = stage.tally.calls[before:]
            assert sum(exact().count(m.text) for call in calls for m in call) <= ceiling
            assert bool(calls) == (ceiling > 0)
            stage.clock.now += timedelta(days=1)
        assert (await nitka.summary("anna", "s")).cursor == 58
        assert len(await whole(nitka, "anna", "s")) == 30


async def test_gr_5_a_side_call_never_holds_the_whole_history(memory: Stage) -> None:
    """The text given to the summariser over a conversation's life is linear in its length."""
    async with memory.open(limits=Limits(window=4), fold_model=(side := FakeModel())) as nitka:
        for at in range(60):
            await nitka.say("anna", "s", text=f"turn {at} " + "word " * 50)
            await nitka.settle()
        sizes = [len(said(request)) for request in side.fold_requests["add"]]
        assert len(sizes) <= 60
        assert max(sizes[30:]) <= 1.2 * max(sizes[:30])
