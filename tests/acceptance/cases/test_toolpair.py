"""TOOLPAIR: a tool call and its result are never torn apart. Tool traffic lives in its turn and is never stored."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from nitka import Budget, Nitka, OverBudget
from nitka.tokens import MESSAGE_TOKENS, count_messages, exact
from nitka.types import ChatMessage
from tests.acceptance.cases.stage import Stage, asked, check_valid, lay, said, whole

pytestmark = pytest.mark.anyio

EXACT = exact()


def calls(*names: str, text: str | None = None) -> ChatMessage:
    made = [{"id": name, "type": "function", "function": {"name": "look", "arguments": "{}"}} for name in names]
    return {"role": "assistant", "content": text, "tool_calls": made}


def result(name: str, text: str) -> ChatMessage:
    return {"role": "tool", "tool_call_id": name, "content": text}


def user(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


def bot(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def ids(messages: Sequence[ChatMessage]) -> tuple[list[str], list[str]]:
    """The calls and the results of a list."""
    made = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    return made, [message["tool_call_id"] for message in messages if message["role"] == "tool"]


async def every_budget(nitka: Nitka, question: str, traffic: Sequence[ChatMessage], *, step: int = 1) -> int:
    """Packs one turn at every budget up to where all fits: at each it is valid, fits, and has the question and all
    calls with their results, or there is a typed error. Returns how many budgets were enough.
    """
    await nitka.settle()
    block = nitka.turn("anna", "s", text=question, budget=Budget(total=1_000_000))
    turn = await block.__aenter__()
    full = turn.refit([*turn.request.messages, *traffic]).messages
    size, packed = count_messages(EXACT, full) + MESSAGE_TOKENS, 0  # kept for a summary's message
    turn.discard()
    await block.__aexit__(None, None, None)
    for total in [*range(1, size, step), size]:
        try:
            async with nitka.turn("anna", "s", text=question, budget=Budget(total=total)) as turn:
                turn.discard()
                request = turn.refit([*turn.request.messages, *traffic])
        except OverBudget:
            assert not packed, "more room is never worse"
            continue
        packed += 1
        check_valid(request.messages)
        assert count_messages(EXACT, request.messages) <= total
        assert asked(request.messages)[-1] == question
        made, answered = ids(request.messages)
        assert made == answered == ids(traffic)[0], "nothing of this turn's traffic gives way"
    assert said(request.messages) == said(full)
    return packed


async def test_tp_1_the_window_never_starts_with_a_tool_result(memory: Stage) -> None:
    """Whatever the budget cuts off, no result stands without its call, and the newest question is kept."""
    async with memory.open(counter=EXACT) as nitka:
        await nitka.record("anna", "s", text="How warm is it in Lund?", answer="It is 12 C. " * 9)
        await nitka.record("anna", "s", text="thanks", answer="Anything else?")
        traffic = [calls("c1"), result("c1", "12 C"), calls("c2", text="And now"), result("c2", "13 C")]
        assert await every_budget(nitka, "no, only that", traffic) > 20


async def test_tp_2_a_call_without_its_result_is_closed_and_the_visible_text_stays(stage: Stage) -> None:
    """The turn after one with tools has the visible texts and nothing of the tools; a lost result gets a stub."""
    async with stage.open(counter=EXACT) as nitka:
        async with nitka.turn("anna", "s", text="find my order 4417") as turn:
            made = [calls("c1", text="Let me look."), result("c1", "shipped")]
            turn.refit([*turn.request.messages, *made])
            turn.answer("It is shipped.")
        async with nitka.turn("anna", "s", text="and the invoice?") as turn:
            sent = turn.request.messages
            assert [m["content"] for m in sent] == ["find my order 4417", "It is shipped.", "and the invoice?"]
            assert not any("tool" in key or "tool" in m["role"] for m in sent for key in m)
            torn = turn.refit([*sent, calls("c1", text="I look it up."), bot("It comes tomorrow.")])
            check_valid(torn.messages)
            assert [m["content"] for m in torn.messages[-3:]][::2] == ["I look it up.", "It comes tomorrow."]
            assert turn.receipt is not None
            assert [entry.why for entry in turn.receipt.layer("traffic")] == ["1 interrupted calls closed"]
            turn.answer("It comes tomorrow.")
        assert "c1" not in str(await nitka.history("anna", "s"))


async def test_tp_3_parallel_calls_and_their_results_move_together(memory: Stage) -> None:
    """Two calls of one message, the first result larger than the limit: at each budget both results are there, or
    there is a typed error; never one of them.
    """
    async with memory.open(counter=EXACT) as nitka:
        await lay(nitka, "anna", "s", 3)
        large = " ".join(f"code {at * 7919}" for at in range(400))
        traffic = [calls("c1", "c2"), result("c1", large), result("c2", "code " * 40)]
        assert await every_budget(nitka, "make two codes", traffic, step=23) > 1


CRASH = """
import asyncio, sys
from nitka import Nitka

async def main(url, keys):
    async with Nitka.open(url, keys=keys) as nitka:
        await nitka.record("anna", "s", text="good evening", answer="Good evening!")
        async with nitka.turn("anna", "s", text="book a table for two") as turn:
            call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": "{}"}}
            turn.refit([*turn.request.messages, {"role": "assistant", "content": "One moment.", "tool_calls": [call]}])
            print("calling", flush=True)
            await asyncio.sleep(600)

asyncio.run(main(*sys.argv[1:]))
"""


async def test_tp_4_a_crash_between_call_and_result_leaves_a_conversation_that_goes_on(tmp_path: Any) -> None:
    """A process killed while its tool runs leaves nothing of the turn, and the next turns work, after restarts too."""
    url, keys = f"sqlite:///{tmp_path / 'x.db'}", tmp_path / "keys.json"
    process = subprocess.Popen([sys.executable, "-c", CRASH, url, str(keys)], stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline() == b"calling\n"
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    for at in range(2):
        async with Nitka.open(url, keys=keys, fold_model="offline") as nitka:
            async with nitka.turn("anna", "s", text=f"hello? {at}") as turn:
                check_valid(turn.request.messages)
                assert "c1" not in said(turn.request.messages)
                turn.answer(f"Here I am. {at}")
            turns = await whole(nitka, "anna", "s")
            assert turns == [
                ("good evening", "Good evening!"),
                *((f"hello? {n}", f"Here I am. {n}") for n in range(at + 1)),
            ]


async def test_tp_5_a_call_that_waits_for_a_human_is_not_compacted_away(stage: Stage) -> None:
    """The chat goes on and is folded while a call waits for its approval; the approval still finds its call."""
    async with stage.open() as nitka:
        async with nitka.turn("anna", "s", text="delete the report") as turn:
            pending = turn.refit([*turn.request.messages, calls("c1")])
            check_valid(pending.messages, waiting=1)
            await lay(nitka, "anna", "s", 12)
            await nitka.settle()
            assert (await nitka.summary("anna", "s")).cursor == 20
            still = turn.refit(pending.messages)
            check_valid(still.messages, waiting=1)
            approved = turn.refit([*still.messages, result("c1", "approved")])
            check_valid(approved.messages)
            assert ids(approved.messages) == (["c1"], ["c1"])
            turn.answer("It is deleted.")
        assert (await whole(nitka, "anna", "s"))[-1] == ("delete the report", "It is deleted.")


async def test_tp_6_a_hole_in_the_middle_is_mended_like_one_at_the_edge(memory: Stage) -> None:
    """Whichever messages of a loop's list are missing, and in whichever order they come, what is sent is valid."""
    loop = [bot("a"), calls("c1", "c2"), user("wait"), result("c1", "1"), bot("b"), result("c2", "2")]
    async with memory.open() as nitka:
        async with nitka.turn("anna", "s", text="question") as turn:
            sent = turn.request.messages
            for size in range(len(loop) + 1):
                for kept in itertools.permutations(loop, size):
                    mended = turn.refit([*sent, *kept]).messages
                    made, answered = ids(mended)
                    open_calls = len(made) - len(answered)
                    check_valid(mended, waiting=open_calls)
                    assert open_calls == 0 or mended[-1].get("tool_calls") or mended[-2].get("tool_calls")
                    assert [m["content"] for m in kept if m["content"] in ("a", "wait", "b")] == [
                        m["content"] for m in mended[1:] if m["content"] in ("a", "wait", "b")
                    ], "visible texts stay, in order"
            turn.answer("done")
