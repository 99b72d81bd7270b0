"""SUMLOSS: summarising that fails, or is cut off half-way, destroys nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from nitka import Limits, Message, ModelError, NitkaError
from nitka.testing import FakeModel, FaultyStore
from nitka.types import Line, Proposal
from tests.acceptance.cases.stage import Stage, asked, lay, said, whole

pytestmark = pytest.mark.anyio

ERRORS: dict[str, Any] = {
    "rate limit": ModelError(status=429, retryable=True),
    "timed out": ModelError("Network: ReadTimeout.", retryable=True),
    "refused": ModelError(status=400),
    "nothing": "",
    "blank": " \n",
    "error as text": "Error: rate limit exceeded, please try again later",
    "error as json": '{"error": {"message": "rate limit exceeded", "code": 429}}',
    "another shape": '{"add": "rate limit exceeded"}',
    "null": '{"add": null, "replaced": null}',
    "empty lines": '{"add": [{"full": "", "gist": ""}], "replaced": [0, 1, 2]}',
    "cut off": '{"add": [{"full": "rate limit exc',
    "far too long": "rate limit " * 100_000,
}


@pytest.mark.parametrize("fault", ERRORS)
async def test_sl_1_a_failed_summary_call_never_becomes_the_summary(stage: Stage, fault: str) -> None:
    """Whatever the summary call ends in, turns are answered, history stays, the error is in no summary, and in the end
    every message was folded: by the model when it works again, else offline.
    """
    side = FakeModel(folds={"add": [ERRORS[fault]]})
    async with stage.open(fold_model=side, limits=Limits(window=4)) as nitka:
        for at in range(15):
            reply = await nitka.say("anna", "s", text=f"Please keep 4{at} boxes for Maria.")
            assert reply.text.startswith("answer to")
            await nitka.settle()
            summary = await nitka.summary("anna", "s")
            assert "rate limit" not in summary.text and "Error" not in summary.text
            assert len(await whole(nitka, "anna", "s")) == at + 1
            async with nitka.turn("anna", "s", text="ok?") as turn:
                covered = 2 * len(asked(turn.request.messages)) - 2 + summary.cursor
                assert covered == 2 * at + 2, "summary and history cover everything"
                turn.discard()
        for _ in range(4):
            await nitka.settle()
        summary = await nitka.summary("anna", "s")
        assert summary.cursor == 26
        assert all(line.offline for line in summary.lines)
        assert len(side.fold_requests["add"]) <= 3 * 13, "a slice is tried three times at most"


async def test_sl_1_the_model_is_asked_again_when_it_works_again(stage: Stage) -> None:
    """A passing failure is retried, and then the lines are the model's own."""
    good = '{"add": [{"full": "Maria gets boxes", "gist": "boxes", "first": 0, "last": 1}], "replaced": []}'
    side = FakeModel(folds={"add": [ModelError(status=429, retryable=True), good]})
    async with stage.open(fold_model="offline", limits=Limits(window=4)) as nitka:
        await lay(nitka, "anna", "s", 2)
    async with stage.open(fold_model=side, limits=Limits(window=4)) as nitka:
        await nitka.say("anna", "s", text="Please keep 40 boxes for Maria.")
        for _ in range(3):
            await nitka.settle()
        summary = await nitka.summary("anna", "s")
        assert [(line.full, line.offline) for line in summary.lines] == [("Maria gets boxes", False)]
        assert len(side.fold_requests["add"]) == 2


async def test_sl_1_a_summariser_that_breaks_its_contract_stops_nobody_else(stage: Stage) -> None:
    """An exception that no summariser should raise fails the fold it came from; the folds of others, and later ones in
    the background, go on.
    """

    class Broken:
        name = "broken"
        fails = True

        async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
            if self.fails and "bad" in messages[0].text:
                raise ConnectionResetError("private words")
            return await stage.tally.propose(lines, messages, cap=cap)

    broken = Broken()
    async with stage.open(fold_model=broken) as nitka:
        await lay(nitka, "anna", "s", 4, text="bad {}")
        await asyncio.sleep(0.05)
        await lay(nitka, "boris", "s", 4, text="good {}")
        for _ in range(100):
            if (await nitka.summary("boris", "s")).cursor == 4:
                break
            await asyncio.sleep(0.02)
        assert (await nitka.summary("boris", "s")).cursor == 4, "folded in the background"
        assert len(await whole(nitka, "anna", "s")) == 4
        broken.fails = False
        for _ in range(2):
            await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 4


@pytest.mark.parametrize("after", [False, True])
async def test_sl_2_a_failure_between_any_two_steps_leaves_the_old_or_the_new_state(stage: Stage, after: bool) -> None:
    """Each call of the store in a fold fails in turn, and the process ends there: what is found afterwards is complete,
    and folding it again gives each message once.
    """
    for at in range(40):
        session = f"s{at}"
        async with stage.open(limits=Limits(window=400, summary_tokens=100_000)) as nitka:
            await lay(nitka, "anna", session, 5)
        store = FaultyStore(stage.store(), at=10**9, after=after)
        async with stage.open(store) as nitka:
            await nitka.settle()
            await nitka._vault.store.rescan(kind="summary", lag=4)
            store._at = store.calls + at
            try:
                await nitka.settle("anna", session)
            except NitkaError:
                pass
            reached = store.calls > store._at
            store._at = 10**9
        async with stage.open() as nitka:
            summary = await nitka.summary("anna", session)
            assert [line.first for line in summary.lines] == list(range(summary.cursor))
            assert summary.cursor in (0, 6)
            assert len(await whole(nitka, "anna", session)) == 5
            stage.clock.advance(seconds=200)  # the lease of the process that ended is over
            await nitka.settle(rescan=True)
            summary = await nitka.summary("anna", session)
            assert [line.first for line in summary.lines] == list(range(6))
        if not reached:
            break
    assert at > 4 and not reached


@pytest.mark.parametrize("what", ["session", "user"])
async def test_sl_3_messages_that_arrive_during_the_call_survive(stage: Stage, what: str) -> None:
    """Turns added while the summariser thinks are all there; a conversation deleted meanwhile stays deleted."""
    async with stage.open() as nitka:
        stage.tally.gate.clear()
        await lay(nitka, "anna", "kept", 4)
        await asyncio.wait_for(stage.tally.waiting.wait(), 30)
        await lay(nitka, "anna", "kept", 2, start=4)
        stage.tally.gate.set()
        await nitka.settle()
        assert [question for question, _ in await whole(nitka, "anna", "kept")] == [f"turn {at}" for at in range(6)]
        lines = (await nitka.summary("anna", "kept")).lines
        assert [line.first for line in lines] == list(range(8))

        stage.tally.gate.clear()
        stage.tally.waiting.clear()
        await lay(nitka, "boris", "gone", 4)
        await asyncio.wait_for(stage.tally.waiting.wait(), 30)
        erased = await nitka.forget("boris", session="gone" if what == "session" else None)
        assert erased.messages == 8
        stage.tally.gate.set()
        await nitka.settle()
        assert await nitka.sessions("boris") == ()
        assert (await nitka.summary("boris", "gone")).lines == ()
        assert [record async for record in nitka.export("boris", what="all")] == []


@pytest.mark.parametrize(("turns", "window"), [(5, 4), (5, 6), (6, 12), (9, 2), (40, 12), (3, 6)])
async def test_sl_4_only_the_older_part_goes_into_the_summary(stage: Stage, turns: int, window: int) -> None:
    """The summary is of the rows before the window, the window is word for word and in order, nothing is missing."""
    async with stage.open(limits=Limits(window=window, summary_tokens=100_000, budget=100_000)) as nitka:
        await lay(nitka, "anna", "s", turns)
        await nitka.settle()
        cut = max(0, 2 * turns - window)
        summary = await nitka.summary("anna", "s")
        assert [line.first for line in summary.lines] == list(range(cut))
        async with nitka.turn("anna", "s", text="and?") as turn:
            rows = [message["content"] for message in turn.request.messages if message["role"] != "system"]
            everything = [text for at in range(turns) for text in (f"turn {at}", f"reply {at}")]
            assert rows == [*everything[cut:], "and?"]
            turn.discard()
        assert len(await whole(nitka, "anna", "s")) == turns, "nothing is removed from the log"


async def test_sl_5_the_summary_is_stored_with_the_messages_it_stands_for(stage: Stage) -> None:
    """After a restart, and in a second worker, the summary is there and in the request."""
    async with stage.open() as nitka:
        await nitka.record("anna", "s", text="my boat is called Heron", answer="A fine name.")
        await lay(nitka, "anna", "s", 4)
        await nitka.settle()
    async with stage.open() as one, stage.open() as two:
        for worker in (one, two):
            assert "Heron" in (await worker.summary("anna", "s")).text
            async with worker.turn("anna", "s", text="What is my boat called?") as turn:
                assert "Heron" in said(turn.request.messages)
                assert "my boat is called Heron" not in asked(turn.request.messages)
                turn.discard()
