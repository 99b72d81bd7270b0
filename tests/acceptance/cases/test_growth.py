"""GROWTH: a turn costs the same in a long conversation as in a short one, and memory does not slow the answer."""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from benchmarks.lay import lay as lay_out
from nitka import Limits, Message, ModelError
from nitka.layers.facts import CATEGORIES
from nitka.testing import FakeModel
from nitka.tokens import exact
from nitka.types import Line, Proposal
from tests.acceptance.cases.stage import Measured, Stage, asked, fact, facts_shown, known, lay, reader, said, whole

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

PLAIN = Limits(window=12)


class Brief:
    """A summariser that adds one short line."""

    name = "brief"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        first, last = messages[0].seq, messages[-1].seq
        return Proposal(add=(Line(full=f"they spoke of day {first}", gist=f"day {first}", first=first, last=last),))


async def cost_of_turns(stage: Stage, messages: int) -> tuple[int, int, int, int]:
    """What four turns and their folds take: calls, rows and bytes read, bytes written."""
    async with stage.open(limits=PLAIN, fold_model=Brief(), exclude=CATEGORIES) as nitka:  # facts of fillers cost time
        await lay_out(nitka, f"{messages}", "s", messages)
        await nitka.say(f"{messages}", "s", text="read all of it")
        await nitka.settle()
    store = Measured(stage.store())
    limits = replace(PLAIN, recall_slack=0, recall_wait=30)  # every fold has something to do after each turn
    async with stage.open(store, limits=limits, fold_model=Brief(), background=False) as nitka:
        await nitka.say(f"{messages}", "s", text="warm up")
        await nitka.settle()
        store.reset()
        for at in range(4):
            await nitka.say(f"{messages}", "s", text=f"a question, number {at}")
            await nitka.settle()
        return store.calls, store.rows_read, store.bytes_read, store.bytes_written


async def test_gr_1_a_turn_reads_and_writes_the_same_however_long_the_history(stage: Stage) -> None:
    """Opening, committing and folding take the same calls, rows and bytes at ten thousand messages as at a hundred."""
    calls, rows, read, written = await cost_of_turns(stage, 100)
    for messages in (1_000, 10_000):
        cost = await cost_of_turns(stage, messages)
        assert cost[0] <= calls + 4 and cost[1] <= rows + 8, "but for segments of the index that are joined"
        assert cost[2] <= 1.1 * read and cost[3] <= 1.4 * written, "a list of segments, which is bounded"
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
        assert max(most[50:]) <= 400 and max(most[100:]) <= 1.25 * max(most[20:100])


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
    side = FakeModel()
    async with memory.open(
        limits=Limits(window=4), fold_model=side, exclude=CATEGORIES
    ) as nitka:  # see `cost_of_turns`
        for at in range(60):
            await nitka.say("anna", "s", text=f"turn {at} " + "word " * 50)
            await nitka.settle()
        sizes = [len(said(request)) for request in side.fold_requests["add"]]
        assert len(sizes) <= 60
        assert max(sizes[30:]) <= 1.2 * max(sizes[:30])


async def test_gr_3_rows_and_facts_go_by_age_while_chats_go_on(sqlite: Stage) -> None:
    """A year of traffic with a retention of thirty days for turns and sixty for facts: what is older is gone, with the
    facts nobody confirmed; what is in use is whole, and the file stops growing.
    """
    limits = Limits(window=4, retain_days=30, retain_facts_days=60, recall_wait=30)
    told = [fact("note", f"week {week} at the lake", f"week {week},") for week in range(53)]
    model = reader(fact("home.city", "Leeds", "I live in Leeds"), *told)
    sizes: list[int] = []
    async with sqlite.open(limits=limits, fold_model=model) as nitka:
        for week in range(52):
            text = f"I live in Leeds. It is week {week}, " + "and the lake was calm " * 40
            await lay(nitka, "anna", f"week {week}", 2, text=text)
            cleaning = asyncio.create_task(nitka.settle())
            await nitka.say("anna", "every week", text=f"week {week}, as ever")
            await cleaning
            sqlite.clock.advance(days=7)
            sizes.append(sum(os.path.getsize(path) for path in sqlite.files("", "-wal")))
        await nitka.settle()
        left = {info.id for info in await nitka.sessions("anna")}
        assert left == {"every week", *(f"week {week}" for week in range(48, 52))}
        facts = await known(nitka)
        assert facts["user", "home.city"] == "Leeds"
        weeks = {value.split()[1] for value in facts["user", "note"].split(" | ")}
        assert weeks == {str(week) for week in range(44, 52)}, "sixty days of them"
        assert "week 10," not in str([record async for record in nitka.export("anna", what="all")])
        assert await nitka.recall("anna", "What of week 10?", k=50) == () or all(
            "week 10," not in hit.text for hit in await nitka.recall("anna", "What of week 10?", k=50)
        )
    assert max(sizes[30:]) <= 1.3 * max(sizes[12:20])


class Thinking(FakeModel):
    """An extractor that thinks until it is let go on."""

    def __init__(self) -> None:
        super().__init__()
        self.go = asyncio.Event()

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Any:
        if schema is not None and "facts" in schema["properties"]:
            self.began = True
            await self.go.wait()
        return await super().complete(messages, max_tokens=max_tokens, schema=schema)


async def test_gr_5_the_answer_does_not_wait_for_the_extraction_of_facts(stage: Stage) -> None:
    """Forty turns are answered while the extractor thinks about the first; then it is given the rest in few calls of
    bounded size, each row once.
    """
    model = Thinking()
    async with stage.open(fold_model=model, limits=Limits(recall_wait=30)) as nitka:
        for at in range(40):
            await asyncio.wait_for(nitka.say("anna", "s", text=f"turn {at}, " + "word " * 200), 30)
        assert len(model.fold_requests["facts"]) == 0, "the first call has not come back yet"
        model.go.set()
        await nitka.settle()
        calls = model.fold_requests["facts"]
        assert len(calls) <= 12, "in slices, not turn by turn"
        assert max(exact().count(said(call)) for call in calls) <= 8_000
        turns = [
            row["text"].split(",")[0]
            for call in calls
            for row in facts_shown(call)["messages"]
            if row["role"] == "user"
        ]
        assert set(turns) == {f"turn {at}" for at in range(40)}
        assert len(turns) <= 40 + 4 * len(calls), "each once, but for the few that a slice begins with as context"


@pytest.mark.parametrize("ceiling", [0, 300, 100_000])
async def test_gr_5_the_ceiling_holds_for_facts_too(memory: Stage, ceiling: int) -> None:
    """What the extractor is given in a day stays below the ceiling; what is above it the offline rules read, so that no
    row stays unread and no turn fails.
    """
    model = reader()
    limits = Limits(fold_tokens_per_day=ceiling, recall_wait=30)
    async with memory.open(fold_model=model, limits=limits) as nitka:
        for at in range(12):
            await nitka.say("anna", "s", text=f"turn {at}: " + "the boat is blue " * 20)
            await nitka.settle()
        await nitka.say("anna", "s", text="I live in Leeds.")
        await nitka.settle()
        shown = [row["text"] for call in model.fold_requests["facts"] for row in facts_shown(call)["messages"]]
        assert sum(map(exact().count, shown)) <= 3 * ceiling, "what is new, and a little context"
        assert bool(shown) == (ceiling > 0)
        assert ("Leeds" in (await known(nitka)).values()) == (ceiling < 100_000), (
            "by the rules, where the model may not"
        )
