"""OVERFLOW: the context is too long in spite of trimming, or tokens are miscounted."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import BadText, Budget, Limits, Message, ModelError, Nitka, OverBudget, Request
from nitka.config import Settings
from nitka.testing import FakeModel
from nitka.tokens import Counter, count_message, count_messages, count_tools, estimate, exact
from nitka.types import Proposal
from tests.acceptance.cases.stage import Stage, asked, check_valid, echo, lay, said, whole

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EXACT = exact()
COUNTERS = [EXACT, estimate()]
named = pytest.mark.parametrize("counter", COUNTERS, ids=lambda counter: counter.name)
LOG_LINE = "2026-02-03 04:05:{:02} worker-{} INFO handled request /orders/{} in {} ms, 200 OK\n"


def real(request: Request, tools: Sequence[Any] = ()) -> int:
    """What a request takes of the model's window, by the real tokenizer, with the room kept for the answer."""
    return count_messages(EXACT, request.messages) + count_tools(EXACT, tools) + request.max_tokens


def log_of(tokens: int) -> str:
    text = "".join(LOG_LINE.format(at % 60, at % 7, at * 31, at % 90) for at in range(tokens // 20))
    assert EXACT.count(text) > tokens
    return text


@named
async def test_ov_1_fixed_prompt_alone_over_the_limit(memory: Stage, counter: Counter) -> None:
    """A system prompt over the budget is a typed error before any model call, and the conversation lives on."""
    model = echo()
    prompt = "Answer every question of the customer briefly. " * 300
    async with memory.open(model=model, counter=counter, limits=Limits(budget=2_000)) as nitka:
        await nitka.say("anna", "s", text="earlier")
        for _ in range(2):
            with pytest.raises(OverBudget) as told:
                await nitka.say("anna", "s", text="hi", system=prompt)
            assert "customer" not in str(told.value)
        assert len(model.requests) == 1
        reply = await nitka.say("anna", "s", text="hi again", system="Answer briefly.")
        assert reply.receipt is not None
        assert await whole(nitka, "anna", "s") == [("earlier", "answer to earlier"), ("hi again", "answer to hi again")]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(budget=st.integers(1, 4_000), words=st.integers(0, 3_000), rows=st.integers(0, 6))
async def test_ov_1_any_fixed_part_fits_or_says_so(budget: int, words: int, rows: int) -> None:
    """At any budget the newest question is in a request that fits, or there is a typed error."""
    async with Stage().open(counter=EXACT) as nitka:
        await lay(nitka, "anna", "s", rows)
        try:
            async with nitka.turn("anna", "s", text="hi", system="rule " * words, budget=budget) as turn:
                request = turn.request
                turn.answer("ok")
        except OverBudget:
            assert words + 30 > budget // 2, "there was room"
            assert len(await nitka.history("anna", "s")) == 2 * rows
        else:
            assert real(request) <= budget
            assert asked(request.messages)[-1] == "hi"


@named
async def test_ov_2_tool_definitions_and_system_prompt_are_counted(memory: Stage, counter: Counter) -> None:
    """Forty tools of 300 tokens each leave the whole request inside the window, however long the chat grows."""
    tools = [tool(at) for at in range(40)]
    assert 11_000 < count_tools(EXACT, tools) < 14_000
    budget = 16_000 if counter.margin == 0 else 24_000  # an estimate keeps its margin free
    async with memory.open(counter=counter, limits=Limits(budget=budget, window=40)) as nitka:
        for at in range(14):
            text = f"Question {at}: " + "what about the order and its invoice? " * 25
            async with nitka.turn("anna", "s", text=text, tools=tools, system="Help.") as turn:
                assert real(turn.request, tools) <= budget
                assert turn.receipt is not None
                assert sum(entry.count for entry in turn.receipt.layer("tools")) == 40
                turn.answer("Let me see what can be found in the books. " * 30)
        assert turn.receipt is not None
        assert any(entry.outcome == "compacted" for entry in turn.receipt.entries), "the chat outgrew the window"


def tool(at: int) -> dict[str, Any]:
    words = " ".join(f"Field {n} says how part {n} of order kind {at} is handled." for n in range(17))
    parameters = {"type": "object", "properties": {f"field_{at}": {"type": "string", "description": words}}}
    return {"type": "function", "function": {"name": f"tool_{at}", "description": "Does it.", "parameters": parameters}}


@pytest.mark.parametrize("where", ["question", "answer"])
async def test_ov_3_one_message_larger_than_the_threshold(stage: Stage, where: str) -> None:
    """A pasted log of 60k tokens costs a bounded number of summary calls, is condensed visibly, and later turns fit."""
    giant = log_of(60_000)
    side = FakeModel(folds={"add": lambda messages: summary_answer(messages)})
    async with stage.open(model=echo(), fold_model=side, counter=EXACT, limits=Limits(window=4)) as nitka:
        if where == "question":
            async with nitka.turn("anna", "s", text=f"Look at this:\n{giant}\nWhat is wrong?") as turn:
                question = asked(turn.request.messages)[-1]
                assert question.startswith("Look at this:") and question.endswith("What is wrong?")
                assert "condensed" in question, "the cut is visible"
                assert real(turn.request) <= 8_000
                turn.answer("Nothing.")
        else:
            await nitka.record("anna", "s", text="Show me the log", answer=giant)
        for at in range(10):
            async with nitka.turn("anna", "s", text=f"short {at}") as turn:
                assert real(turn.request) <= 8_000
                assert asked(turn.request.messages)[-1] == f"short {at}"
                turn.answer("ok")
            await nitka.settle()
        history = await nitka.history("anna", "s", limit=100)
        assert giant in history[0 if where == "question" else 1].text, "what was said is stored whole"
        assert (await nitka.summary("anna", "s")).cursor == len(history) - 4
    assert len(side.fold_requests["add"]) <= len(history) // 2
    assert max(count_messages(EXACT, request) for request in side.fold_requests["add"]) < 6_000


def summary_answer(messages: Sequence[Any]) -> str:
    rows = json.loads(messages[-1]["content"])["messages"]
    lines = [
        {"full": f"row {r['seq']} was said", "gist": f"row {r['seq']}", "first": r["seq"], "last": r["seq"]}
        for r in rows
    ]
    return json.dumps({"add": lines, "replaced": []})


GIANTS = {
    "text": "The quick report says nothing at all. " * 80_000,
    "base64": base64.b64encode(bytes(range(256)) * 1_500).decode(),
    "chinese": "会议记录显示没有任何问题需要处理。" * 10_000,
}


@pytest.mark.parametrize("kind", GIANTS)
async def test_ov_4_the_side_model_gets_a_bounded_input_and_a_final_refusal_is_not_retried(
    memory: Stage, kind: str
) -> None:
    """Up to three megabytes in one message make a bounded side request; a 400 is asked once, and the turn is well."""
    side = FakeModel(folds={"add": [ModelError("refused", status=400, retryable=False)]})
    limits = Limits(window=2, message_bytes=4 << 20)
    async with memory.open(fold_model=side, counter=EXACT, limits=limits) as nitka:
        await nitka.record("anna", "s", text=GIANTS[kind], answer="I see.")
        reply = await nitka.say("anna", "s", text="and now?")
        assert reply.text == "answer to and now?"
        done = await nitka.settle()
        await nitka.settle()
        asked_for = [rows_asked_for(request) for request in side.fold_requests["add"]]
        assert asked_for == [[0], [1]], "each slice once"
        assert EXACT.count(said(side.fold_requests["add"][0])) < 8_000
        summary = await nitka.summary("anna", "s")
        assert (summary.cursor, done.failed) == (2, 0), "the offline summariser did it"
        assert all(line.offline for line in summary.lines)


def rows_asked_for(request: Sequence[Any]) -> list[int]:
    return [row["seq"] for row in json.loads(request[-1]["content"])["messages"]]


async def test_ov_4_what_is_over_the_stated_limit_is_refused_at_the_door(memory: Stage) -> None:
    """A message over the limit is a typed error that says the limit, and nothing is stored."""
    async with memory.open() as nitka:
        with pytest.raises(BadText, match="1,048,576"):
            await nitka.say("anna", "s", text=GIANTS["text"])
        assert await nitka.sessions("anna") == ()


SCRIPTS = {
    "chinese": "我们决定周五把蛋糕送到河边的房子，请带十二支蜡烛。",
    "japanese": "金曜日にケーキを川辺の家へ届けることに決めました。ろうそくを十二本お願いします。",
    "korean": "금요일에 강가의 집으로 케이크를 보내기로 했습니다. 초 열두 자루를 가져오세요.",
    "russian": "Решили привезти торт в дом у реки в пятницу; захватите двенадцать свечей. ",
    "thai": "เราตกลงกันว่าจะส่งเค้กไปที่บ้านริมแม่น้ำในวันศุกร์ ",
    "arabic": "قررنا إرسال الكعكة إلى البيت عند النهر يوم الجمعة، أحضروا اثنتي عشرة شمعة. ",
    "emoji": "🎂🕯️👩‍👩‍👧🏳️‍🌈🇫🇮👍🏽",
    "json": '{"id":4417,"items":[{"sku":"A-9","qty":12}],"ok":true},',
    "base64": base64.b64encode(bytes((at * 37 + at // 7) % 256 for at in range(600))).decode(),
    "english": "We decided to bring the cake to the house by the river on Friday. ",
}


@pytest.mark.parametrize("script", SCRIPTS)
async def test_ov_5_the_budget_holds_in_every_script(memory: Stage, script: str) -> None:
    """The estimate is never below the real count by more than its margin, so a request fits whatever is written."""
    text = (SCRIPTS[script] * 200)[:2_000]
    counter = estimate()
    assert EXACT.count(text) <= counter.count(text) * (1 + counter.margin)
    async with memory.open(counter=counter, limits=Limits(budget=3_000, window=12), fold_model="offline") as nitka:
        for at in range(8):
            async with nitka.turn("anna", "s", text=f"{at} {text[: 250 * at + 100]}") as turn:
                assert real(turn.request) <= 3_000
                turn.answer(text[: 1_000 - 100 * at])
        await nitka.settle()
        summary = await nitka.summary("anna", "s")
        assert EXACT.count(summary.text) <= 300 * (1 + counter.margin)


PICTURE = base64.b64encode(bytes((at * 97) % 251 for at in range(300_000))).decode()
URL = f"data:image/png;base64,{PICTURE}"
FORMS: dict[str, Any] = {
    "image_url": {"type": "image_url", "image_url": {"url": URL}},
    "input_image": {"type": "input_image", "image_url": URL},
    "source": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
    "inline_data": {"inline_data": {"mime_type": "image/png", "data": PICTURE}},
}


@pytest.mark.parametrize("role", ["user", "tool"])
async def test_ov_6_a_picture_has_one_bounded_price_in_every_form(memory: Stage, role: str) -> None:
    """The same picture costs the same in each form, also inside a tool's result; no history goes for it, and its
    payload reaches neither the store nor the summary prompt.
    """
    side = FakeModel(folds={"add": lambda messages: summary_answer(messages)})
    prices = set()
    limits = Limits(window=2, budget=20_000)
    async with memory.open(fold_model=side, counter=EXACT, limits=limits) as nitka:
        for name, part in FORMS.items():
            await lay(nitka, "anna", name, 1)
            async with nitka.turn("anna", name, text="What is on my screen?") as turn:
                call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
                shown = {"role": role, "content": [{"type": "text", "text": "here"}, part]}
                if role == "tool":
                    shown["tool_call_id"] = "c1"
                made = [{"role": "assistant", "content": None, "tool_calls": [call]}] if role == "tool" else []
                request = turn.refit([*turn.request.messages, *made, shown])
                prices.add(count_message(EXACT, request.messages[-1]))
                assert asked(request.messages)[:2] == ["turn 0", "What is on my screen?"], "history stays word for word"
                turn.answer("A window.")
            await lay(nitka, "anna", name, 3, start=1)
            await nitka.settle()
    assert len(prices) == 1 and prices.pop() < 2_000
    assert side.fold_requests["add"]
    assert not any(PICTURE[:60] in said(request) for request in side.fold_requests["add"])
    assert not any(len(row.body or b"") > 1_000 for row in rows_of(memory))


def rows_of(memory: Stage) -> list[Any]:
    owners = memory._memory._owners.values()
    return [row for owner in owners for session in owner.sessions.values() for row in session.rows.values()]


async def test_ov_7_an_unknown_model_name_has_safe_defaults(memory: Stage, tmp_path: Any) -> None:
    """With a model nobody knows and no limit configured, folding happens and every request fits the stated default."""
    local = Settings(base_url="http://127.0.0.1:9/v1", key_file=tmp_path / "k", store="")
    opened = Nitka.open(
        memory.store(), model="openai:local-unknown-1", fold_model="offline", settings=local, keys=memory.ring
    )
    async with opened as nitka:
        for at in range(150):
            async with nitka.turn("anna", "s", text=f"Message {at} about the boat, its mast and its sails.") as turn:
                assert real(turn.request) <= 8_000
                turn.answer("The mast is fine. " * 10)
        await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 300 - 12


class Unused:
    name = "unused"

    async def propose(self, lines: Sequence[Any], messages: Sequence[Message], *, cap: int) -> Proposal:
        raise AssertionError


@pytest.mark.parametrize("total", [0, 1, 50])
async def test_ov_7_a_budget_that_holds_nothing_is_refused(memory: Stage, total: int) -> None:
    """A limit that cannot hold the question is a typed error, not a silent overflow."""
    async with memory.open(fold_model=Unused(), counter=EXACT) as nitka:
        with pytest.raises(OverBudget):
            await nitka.say("anna", "s", text="word " * 100, budget=Budget(total=total, condense_question=False))
        check_valid((await nitka.turn("anna", "s", text="hi", private=True).__aenter__()).request.messages)
