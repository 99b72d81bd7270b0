"""What a turn and its block promise to whoever uses them otherwise than the example shows."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from nitka import BadInput, Limits, ModelError, Nitka, StoreError
from nitka.models.ports import Answer
from nitka.store.port import Store
from nitka.testing import FakeModel, FixedClock, MemoryStore, memory_ring
from nitka.types import ChatMessage, Line, Message, Proposal
from tests.laws.world import World

pytestmark = pytest.mark.anyio


class Slow:
    """A model that hands out a piece and then takes its time; it knows whether its stream was given back."""

    name = "slow"

    def __init__(self) -> None:
        self.given_back = False
        self.closed = 0

    async def complete(
        self, messages: Sequence[ChatMessage], *, max_tokens: int, schema: Mapping[str, Any] | None = None
    ) -> Answer:
        return Answer(text="whole")

    async def stream(self, messages: Sequence[ChatMessage], *, max_tokens: int) -> AsyncIterator[str]:
        try:
            yield "first"
            await asyncio.sleep(60)
            yield "never"
        finally:
            await asyncio.sleep(0)
            self.given_back = True

    async def close(self) -> None:
        self.closed += 1


class Patient(MemoryStore):
    """A store on which a change takes a while; it refuses what comes after its closing, as every store does."""

    async def change(self, *args: Any, **kwargs: Any) -> Any:
        await asyncio.sleep(0.02)
        return await super().change(*args, **kwargs)


class Lines:
    """A summariser that fails in the way it is told, or adds nothing."""

    name = "lines"

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        if self.error:
            raise self.error
        return Proposal()


def opened(model: Any = None, store: Store | None = None, **more: Any) -> Nitka:
    given: dict[str, Any] = {"fold_model": "offline", "keys": memory_ring(), "clock": FixedClock()}
    return Nitka.open(store or MemoryStore(), model=model or FakeModel(), **(given | more))


async def test_waiting_for_a_piece_with_a_time_limit_ends_the_stream_and_what_is_kept_is_marked() -> None:
    """Some servers wait for the next piece for some seconds only, tell the client they live, and wait again."""
    async with opened(Slow()) as nitka:
        async with nitka.say("anna", "s", text="hello", stream=True) as pieces:
            got = [await anext(pieces)]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(pieces), 0.01)
            got += [piece async for piece in pieces]
        assert pieces.interrupted
        assert got == ["first"]
        stored = (await nitka.history("anna", "s"))[-1]
    assert (stored.text, stored.interrupted) == ("first", True)


async def test_a_stream_that_is_left_has_given_back_its_model_before_the_turn_is_written() -> None:
    model = Slow()

    class Look(MemoryStore):
        async def change(self, *args: Any, **kwargs: Any) -> Any:
            assert model.given_back
            return await super().change(*args, **kwargs)

    async with opened(model, Look()) as nitka:
        async with nitka.say("anna", "s", text="hello", stream=True) as pieces:
            await anext(pieces)
        assert pieces.interrupted


async def test_a_stream_without_its_block_says_how_it_is_used() -> None:
    async with opened() as nitka:
        with pytest.raises(BadInput, match="async with"):
            await anext(nitka.say("anna", "s", text="hello", stream=True))


async def test_a_replayed_answer_that_was_interrupted_says_so() -> None:
    async with opened(Slow()) as nitka:
        async with nitka.say("anna", "s", text="hello", stream=True, key="k") as pieces:
            await anext(pieces)
        reply = await nitka.say("anna", "s", text="hello", key="k")
    assert (reply.text, reply.replayed, reply.interrupted) == ("first", True, True)


async def test_of_two_deliveries_the_later_one_tells_how_the_first_one_ended() -> None:
    async with opened() as nitka:
        async with nitka.turn("anna", "s", text="hello", key="k") as late:
            late.piece("half of")
            async with nitka.turn("anna", "s", text="hello", key="k") as first:
                first.answer("the whole answer")
    assert (late.text, late.interrupted) == ("the whole answer", False)


@pytest.mark.parametrize("private", ["read", "yes", "", 2, None])
async def test_private_is_nothing_but_what_it_may_be(private: Any) -> None:
    async with opened() as nitka:
        with pytest.raises(BadInput, match="private"):
            nitka.turn("anna", "s", text="hello", private=private)


@pytest.mark.parametrize("knowledge", ["one text", [7], [{"text": "a"}], [None]])
async def test_knowledge_is_a_list_of_passages(knowledge: Any) -> None:
    async with opened() as nitka:
        with pytest.raises(BadInput, match="knowledge"):
            nitka.turn("anna", "s", text="hello", knowledge=knowledge)


async def test_a_private_turn_that_reads_leaves_no_gap_behind_a_backlog() -> None:
    """Law 2: the request covers every row from the summary's cursor on, also where folds did not keep up."""
    store, failing = MemoryStore(), {"keys": memory_ring(), "fold_model": Lines(ModelError(retryable=True))}
    async with opened(store=store, limits=Limits(window=2), **failing) as nitka:
        for number in range(4):
            await nitka.say("anna", "s", text=f"question {number}")
        await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 0
    async with opened(store=store, limits=Limits(window=2, backlog=4), **failing) as nitka:
        async with nitka.turn("anna", "s", text="now?", private="reads") as turn:
            receipt = turn.receipt
            turn.discard()
    assert receipt is not None
    rows = [(entry.first, entry.last) for entry in receipt.entries if entry.layer == "history"]
    assert rows == [(receipt.cursor, receipt.head - 1)]


async def test_a_redaction_that_gives_no_text_is_told_and_half_characters_are_put_right() -> None:
    nothing: Any = lambda text: None  # noqa: E731
    async with opened(redact=nothing) as nitka:
        with pytest.raises(BadInput, match="redact"):
            await nitka.say("anna", "s", text="hello")
    async with opened(redact=lambda text: text + "\ud800") as nitka:
        await nitka.say("anna", "s", text="hello")
        assert (await nitka.history("anna", "s"))[0].text == "hello\ufffd"


async def test_a_turn_that_is_being_written_when_nitka_closes_is_written() -> None:
    store, keys = Patient(), memory_ring()
    async with opened(Slow(), store, keys=keys) as nitka:

        async def chat() -> None:
            async with nitka.say("anna", "s", text="hello", stream=True) as pieces:
                async for _ in pieces:
                    pass

        task = asyncio.create_task(chat())
        await asyncio.sleep(0.02)
        task.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await task
    async with opened(store=store, keys=keys) as nitka:
        assert [message.text for message in await nitka.history("anna", "s")] == ["hello", "first"]


async def test_what_was_closed_can_be_opened_again_and_folds_again() -> None:
    nitka = opened(limits=Limits(window=2))
    async with nitka:
        with pytest.raises(BadInput, match="open already"):
            await nitka.__aenter__()
        await nitka.say("anna", "s", text="hello")
    async with nitka:
        for number in range(4):
            await nitka.say("anna", "s", text=f"question {number}")
        await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 8


async def test_another_event_loop_is_refused_and_not_left_waiting() -> None:
    """What waits in one loop cannot be woken from another."""
    async with opened() as nitka:

        async def elsewhere() -> None:
            await nitka.say("anna", "s", text="hello")

        with pytest.raises(BadInput, match="event loop"):
            await asyncio.to_thread(asyncio.run, elsewhere())
        await nitka.say("anna", "s", text="hello")


async def test_closing_closes_every_model_once_and_the_store_whatever_fails() -> None:
    class Broken(Slow):
        async def close(self) -> None:
            await super().close()
            raise OSError

    store, folds, chat = MemoryStore(), Slow(), Broken()
    with pytest.raises(OSError):
        async with opened(chat, store, fold_model=folds):
            pass
    assert (chat.closed, folds.closed) == (1, 1)
    same = Slow()
    async with opened(same, fold_model=same):
        pass
    assert same.closed == 1
    with pytest.raises(StoreError, match="closed"):
        await store.erasures()


async def test_a_closing_that_is_cancelled_closes_the_store_all_the_same() -> None:
    store = MemoryStore()
    nitka = opened(store=store, fold_model=Lines())
    await nitka.__aenter__()
    task = asyncio.create_task(nitka.close())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    with pytest.raises(StoreError, match="closed"):
        await store.erasures()


@pytest.mark.parametrize("limits", [Limits(slack=8, window=2, backlog=4), Limits(window=10, backlog=4)])
async def test_a_window_larger_than_the_backlog_is_sent_whole(limits: Limits) -> None:
    """An open reads the window, and does not wait for folds that are not due."""
    async with opened(limits=limits) as nitka:
        for number in range(5):
            await nitka.say("anna", "s", text=f"question {number}")
        async with asyncio.timeout(5), nitka.turn("anna", "s", text="now?") as turn:
            assert sum(entry.count for entry in turn.request.receipt.layer("history")) == 10
            turn.discard()


async def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(BadInput, match="negative"):
        opened(limits=Limits(window=-1))


async def test_a_session_alone_is_no_address_and_only_known_things_are_exported() -> None:
    async with opened() as nitka:
        with pytest.raises(BadInput, match="user"):
            await nitka.settle(session="s")
        what: Any = "everything"
        with pytest.raises(BadInput, match="exported"):
            nitka.export("anna", what=what)


async def test_an_edit_of_a_row_that_is_not_there_is_refused() -> None:
    async with World().open() as nitka:
        with pytest.raises(BadInput, match="no row 4"):
            await nitka.say("anna", "s", text="hi", replaces=5)
        await nitka.say("anna", "s", text="hi")
        with pytest.raises(BadInput, match="no row 2"):
            await nitka.say("anna", "s", text="hi", replaces=2)
        assert len(await nitka.history("anna", "s")) == 2
