"""RACE: concurrent turns, retries and redelivery must not lose, double or disorder messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import KeyReused, Limits, Message, ModelError, Nitka, Reply
from nitka.models.openai import OpenAIChat
from nitka.testing import FakeModel
from nitka.types import ChatMessage, Line, Proposal
from tests.acceptance.cases.stage import (
    SMALL,
    SlowModel,
    Stage,
    asked,
    check_valid,
    echo,
    fact,
    known,
    lay,
    pairs,
    reader,
    whole,
)

pytestmark = pytest.mark.anyio


def used_tools(messages: Any, name: str) -> list[ChatMessage]:
    call = {"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}}
    result = {"role": "tool", "tool_call_id": name, "content": "42"}
    return [*messages, {"role": "assistant", "content": None, "tool_calls": [call]}, result]


async def test_rc_1_two_runs_write_one_conversation(stage: Stage) -> None:
    """Two workers that use tools at the same time leave whole turns, each in one piece."""

    async def run(nitka: Nitka, name: str) -> None:
        for at in range(25):
            async with nitka.turn("anna", "s", text=f"{name} {at}") as turn:
                await asyncio.sleep(0)
                check_valid(turn.refit(used_tools(turn.request.messages, name)).messages)
                await asyncio.sleep(0.001 * (at % 3))
                turn.answer(f"{name} answers {at}")

    limits = replace(SMALL, backlog=1_000)
    async with stage.open(limits=limits) as one, stage.open(limits=limits) as two:
        await asyncio.gather(run(one, "a"), run(two, "b"), run(one, "c"), run(two, "d"))
        for worker in (one, two, one):  # what one of them has leased is the other's to finish
            await worker.settle()
        turns = await whole(one, "anna", "s")
        assert len(turns) == 100
        assert all(answer == question.replace(" ", " answers ") for question, answer in turns)
        for name in "abcd":
            assert [q for q, _ in turns if q[0] == name] == [f"{name} {at}" for at in range(25)]
        folded = [line.first for line in (await one.summary("anna", "s")).lines]
        assert folded == list(range(196)), "each message was folded once"


async def test_rc_2_check_then_insert_around_a_slow_model(stage: Stage) -> None:
    """First turns of one new user in one new session, begun in two workers before any has ended, share one session."""
    model = SlowModel("ok", pause=0)
    async with stage.open(model=model) as one, stage.open(model=model) as two:
        begun = [asyncio.create_task(_say(nitka, f"I like coffee {at}")) for at in range(10) for nitka in (one, two)]
        while model.waiting < 20:
            await asyncio.sleep(0.001)
        model.gate.set()
        await asyncio.gather(*begun)
        for nitka in (one, two):
            assert [info.messages for info in await nitka.sessions("anna")] == [40]
            assert len(await whole(nitka, "anna", "s")) == 20


async def _say(nitka: Nitka, text: str, **more: Any) -> str:
    reply: Reply = await nitka.say("anna", "s", text=text, **more)
    return reply.text


@pytest.mark.parametrize("way", ["forgotten", "edited"])
@pytest.mark.parametrize("folded", [0, 4])
async def test_rc_3_what_is_taken_back_while_a_fold_thinks_stays_so(stage: Stage, way: str, folded: int) -> None:
    """A turn that a fold has read, and that is forgotten or edited before the fold writes, gets into no summary."""
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", folded)
        await nitka.settle()
        stage.tally.gate.clear()
        stage.tally.waiting.clear()
        await lay(nitka, "anna", "s", 5, start=folded, text="secret {}")
        await asyncio.wait_for(stage.tally.waiting.wait(), 30)
        if way == "forgotten":
            for turn in range(5):
                await nitka.forget("anna", session="s", turn=2 * (folded + turn))
        else:
            await nitka.say("anna", "s", text="edited", replaces=2 * folded)
        stage.tally.gate.set()
        for _ in range(2):
            await nitka.settle()
        assert "secret" not in (await nitka.summary("anna", "s")).text
        assert "secret" not in str(await nitka.history("anna", "s"))


async def test_rc_3_background_tidy_up_does_not_overwrite_newer_writes(stage: Stage) -> None:
    """While a fold waits for its model a turn is added, one edited and one forgotten; all three stand afterwards."""
    async with stage.open() as nitka:
        stage.tally.gate.clear()
        await lay(nitka, "anna", "s", 8, text="topic {}")
        await asyncio.wait_for(stage.tally.waiting.wait(), 30)
        await nitka.forget("anna", session="s", turn=2)
        await nitka.say("anna", "s", text="edited", replaces=12)
        await nitka.say("anna", "s", text="added")
        stage.tally.gate.set()
        await nitka.settle()
        questions = [question for question, _ in await whole(nitka, "anna", "s")]
        assert questions == ["topic 0", "topic 2", "topic 3", "topic 4", "topic 5", "edited", "added"]
        summary = await nitka.summary("anna", "s")
        assert [line.first for line in summary.lines] == [0, 1, 4, 5, 6, 7, 8, 9, 10, 11], (
            "folded at once, and only what lives"
        )
        for gone in ("topic 1", "topic 6", "topic 7"):
            assert gone not in summary.text


async def test_rc_4_background_compaction_never_makes_a_message_fail(stage: Stage) -> None:
    """A fold that ends between the opening of a turn and its writing does not matter to the turn."""
    async with stage.open() as nitka:
        stage.tally.gate.clear()
        await lay(nitka, "anna", "s", 6)
        for at in range(6, 10):
            async with nitka.turn("anna", "s", text=f"turn {at}") as turn:
                stage.tally.gate.set()
                assert (await nitka.settle()).failed == 0
                assert (await nitka.summary("anna", "s")).cursor == 2 * at - 4
                turn.answer(f"reply {at}")
        assert [question for question, _ in await whole(nitka, "anna", "s")] == [f"turn {at}" for at in range(10)]


async def test_rc_4_two_appends_in_the_same_moment(stage: Stage) -> None:
    """The clock stands still, and turns that end at the same moment are all kept, in the order they were written."""
    async with stage.open() as nitka:
        await asyncio.gather(*(_say(nitka, f"turn {at}") for at in range(30)))
        history = await nitka.history("anna", "s", limit=100)
        assert len({message.at for message in history}) == 1
        assert sorted(question for question, _ in pairs(history)) == sorted(f"turn {at}" for at in range(30))


async def test_rc_5_at_least_once_delivery(stage: Stage) -> None:
    """One message id is one turn with one answer: delivered in a row, at the same moment, and after a restart."""
    model = FakeModel([f"answer {at}" for at in range(20)])
    async with stage.open(model=model) as nitka:
        first = await _say(nitka, "yes", key="m1")
        assert [await _say(nitka, "yes", key="m1") for _ in range(2)] == [first] * 2
        assert len(model.requests) == 1, "a replay asks no model"
        at_once = await asyncio.gather(*(_say(nitka, "yes", key="m2") for _ in range(3)))
        assert len(set(at_once)) == 1 and at_once[0] != first
    async with stage.open(model=model) as nitka, stage.open(model=model) as other:
        asked_before = len(model.requests)
        assert await _say(nitka, "yes", key="m1") == first
        assert await _say(other, "yes", key="m2") == at_once[0]
        assert len(model.requests) == asked_before
        both = await asyncio.gather(_say(nitka, "yes", key="m3"), _say(other, "yes", key="m3"))
        assert len(set(both)) == 1
        assert await whole(nitka, "anna", "s") == [("yes", first), ("yes", at_once[0]), ("yes", both[0])]
        with pytest.raises(KeyReused):
            await _say(nitka, "no", key="m1")


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.lists(st.sampled_from("abcd"), max_size=12), cuts=st.sets(st.integers(0, 12)))
async def test_rc_5_any_redelivery_anywhere(keys: list[str], cuts: set[int]) -> None:
    """However deliveries repeat, with restarts in between, there is one turn for each id, in order of first arrival."""
    stage = Stage()
    got: dict[str, str] = {}
    nitka = await stage.open().__aenter__()
    for at, key in enumerate(keys):
        if at in cuts:
            await nitka.close()
            nitka = await stage.open(model=echo(f"{at} ")).__aenter__()
        text = await _say(nitka, "yes", key=key)
        assert got.setdefault(key, text) == text
    assert [answer for _, answer in await whole(nitka, "anna", "s")] == list(got.values())
    await nitka.close()


class Provider:
    """A model server that answers with the given status codes, then well; `bodies` is what it got."""

    def __init__(self, *codes: int) -> None:
        self.codes = list(codes)
        self.bodies: list[Any] = []

    def chat(self) -> OpenAIChat:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self._answer))
        return OpenAIChat("m", base_url="http://127.0.0.1/v1", client=client, sleep=self._sleep)

    def _answer(self, request: httpx.Request) -> httpx.Response:
        self.bodies.append(httpx.Response(200, content=request.content).json())
        code = self.codes.pop(0) if self.codes else 200
        return httpx.Response(code, json={"choices": [{"message": {"content": "fine"}, "finish_reason": "stop"}]})

    async def _sleep(self, seconds: float) -> None:
        pass


async def test_rc_6_retry_after_a_provider_error(stage: Stage) -> None:
    """The model fails twice with 429 and then answers: each request has the question once, and it is stored once."""
    provider = Provider(429, 429)
    async with stage.open(model=provider.chat()) as nitka:
        assert await _say(nitka, "where is it?") == "fine"
        assert [asked(body["messages"]) for body in provider.bodies] == [["where is it?"]] * 3
        assert await whole(nitka, "anna", "s") == [("where is it?", "fine")]


@pytest.mark.parametrize("key", [None, "m1"])
@pytest.mark.parametrize("stream", [False, True])
async def test_rc_6_the_user_presses_retry_after_a_final_failure(stage: Stage, key: str | None, stream: bool) -> None:
    """A turn whose model failed for good leaves nothing; the same question again, with the same id, is one turn."""
    model = FakeModel([ModelError(status=400), ModelError(retryable=True), "fine"])
    async with stage.open(model=model) as nitka:
        for _ in range(2):
            with pytest.raises(ModelError):
                await _ask(nitka, stream, key)
            assert await nitka.history("anna", "s") == ()
        await _ask(nitka, stream, key)
        assert asked(model.requests[-1]) == ["where is it?"]
        assert await whole(nitka, "anna", "s") == [("where is it?", "fine")]


async def _ask(nitka: Nitka, stream: bool, key: str | None) -> None:
    if not stream:
        await nitka.say("anna", "s", text="where is it?", key=key)
        return
    async with nitka.say("anna", "s", text="where is it?", key=key, stream=True) as pieces:
        async for _ in pieces:
            pass


class Silent:
    """A summariser with nothing to say."""

    name = "silent"

    async def propose(self, lines: Sequence[Line], messages: Sequence[Message], *, cap: int) -> Proposal:
        return Proposal()


STEPS: dict[str, Callable[[int], float]] = {
    "still": lambda at: 0.0,
    "back 50 ms": lambda at: -0.05 if at == 50 else 0.001,
    "back an hour": lambda at: -3600.0 if at == 50 else 0.001,
    "backwards": lambda at: -1.0,
}


@pytest.mark.parametrize("steps", STEPS)
async def test_rc_7_messages_keep_their_order(stage: Stage, steps: str) -> None:
    """Read order is the order of writing, as fast as can be and whatever the clock does, in every way of reading."""
    turns = 1_000 if steps == "still" and not stage.path else 100
    async with stage.open(limits=Limits(window=4), fold_model=Silent()) as nitka:
        for at in range(turns):
            await nitka.record("anna", "s", text=f"{at}", answer=f"{-at}")
            stage.clock.now += timedelta(seconds=STEPS[steps](at))
        wanted = [f"{at}" for at in range(turns)]
        assert [question for question, _ in await whole(nitka, "anna", "s")] == wanted
        said = [record["text"] async for record in nitka.export("anna") if record["role"] == "user"]
        assert said == wanted
        async with nitka.turn("anna", "s", text="and now?") as turn:
            sent = asked(turn.request.messages)
            assert sent == [*wanted[-len(sent) + 1 :], "and now?"]
            turn.answer("now")


class Thinking(FakeModel):
    """A model whose extraction takes as long as the test wants, and then finds what `reader` would."""

    def __init__(self, *told: dict[str, Any]) -> None:
        super().__init__()
        self._reads = reader(*told)
        self.began, self.go = asyncio.Event(), asyncio.Event()
        self.calls = 0

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Any:
        if schema is None or "facts" not in schema["properties"]:
            return await super().complete(messages, max_tokens=max_tokens, schema=schema)
        self.calls += 1
        self.began.set()
        answer = await self._reads.complete(messages, max_tokens=max_tokens, schema=schema)
        await self.go.wait()
        return answer


COFFEE = fact("likes", "coffee", "I like coffee")


async def test_rc_2_two_extractions_at_once_make_one_fact(stage: Stage) -> None:
    """Two workers, the lease of the first long over while it still thinks, both find that one likes coffee: one fact,
    confirmed once for each time it was said.
    """
    one, two = Thinking(COFFEE), Thinking(COFFEE)
    async with stage.open(fold_model=one) as first, stage.open(fold_model=two) as second:
        await first.record("anna", "s", text="I like coffee", answer="ok")
        await asyncio.wait_for(one.began.wait(), 30)
        stage.clock.advance(seconds=1_000)
        await second.record("anna", "t", text="I like coffee", answer="ok")
        settling = asyncio.create_task(second.settle())
        await asyncio.wait_for(two.began.wait(), 30)
        two.go.set()
        one.go.set()
        await settling
        for worker in (first, second, first):
            await worker.settle()
        for worker in (first, second):
            (coffee,) = await worker.facts("anna", include_past=True)
            assert (coffee.value, coffee.confirmations) == ("coffee", 2)
    assert one.calls and two.calls


async def test_rc_3_an_extraction_under_way_overwrites_no_edit(stage: Stage) -> None:
    """While the model thinks about a message that speaks of all three, a fact is added by hand, one is edited and one
    forgotten: the first is there, the second has the hand's value, the third stays away.
    """
    text = "I like coffee, I live in Leeds and my hobby is rowing"
    told = [COFFEE, fact("home.city", "Leeds", "I live in Leeds"), fact("hobby", "rowing", "my hobby is rowing")]
    model = Thinking(*told)
    async with stage.open(fold_model=model) as nitka:
        await nitka.set_fact("anna", "home.city", "York")
        gone = await nitka.set_fact("anna", "hobby", "rowing")
        await nitka.record("anna", "s", text=text, answer="ok", at=stage.clock.now)
        await asyncio.wait_for(model.began.wait(), 30)
        stage.clock.advance(minutes=1)
        await nitka.set_fact("anna", "name", "Tom")
        await nitka.set_fact("anna", "home.city", "Porto")
        assert (await nitka.forget("anna", fact=gone.id)).facts == 1
        model.go.set()
        for _ in range(2):
            await nitka.settle()
        assert await known(nitka) == {
            ("user", "name"): "Tom",
            ("user", "home.city"): "Porto",
            ("user", "likes"): "coffee",
        }
        home = next(one for one in await nitka.facts("anna", include_past=True) if one.slot == "home.city")
        assert [old.value for old in home.past] == ["Leeds", "York"]
        assert model.calls == 1, "the model is not asked again"


async def test_rc_4_folds_of_a_person_never_make_a_message_fail(stage: Stage) -> None:
    """Facts, profile and index written between the opening of a turn and its writing do not matter to the turn."""
    limits = replace(SMALL, window=2, recall_slack=0, profile_every=1)
    async with stage.open(fold_model=reader(COFFEE), limits=limits) as nitka:
        for at in range(6):
            async with nitka.turn("anna", "s", text=f"I like coffee {at}") as turn:
                await nitka.record("anna", "t", text=f"I like coffee too {at}", answer="ok")
                await nitka.set_fact("anna", "note.n", f"{at}")
                assert (await nitka.settle()).failed == 0
                turn.answer("ok")
        await nitka.settle()
        assert len(await whole(nitka, "anna", "s")) == 6
        assert (await known(nitka))["user", "likes"] == "coffee"
