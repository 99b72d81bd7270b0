"""ABORT: the user stops an answer, the connection drops, the caller fails in the middle."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from nitka import Nitka
from nitka.store.port import Change, Locked, Scope, Step
from tests.acceptance.cases.stage import Measured, SlowModel, Stage, asked, check_valid, lay, said, whole

pytestmark = pytest.mark.anyio

WORDS = [f"word{at}" for at in range(200)]
HALF = " ".join(WORDS[:40])


class Dropped(Exception):
    """A connection that is gone."""


async def stop(nitka: Nitka, model: SlowModel, how: str) -> None:
    """Forty of two hundred words reach the user, then it stops."""
    if how == "cancelled":
        task = asyncio.create_task(_listen(nitka, 1_000))
        await _until(lambda: model.waiting)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    elif how == "left":
        await _listen(nitka, 40)
    else:
        with pytest.raises(Dropped):
            async with nitka.say("anna", "s", text="tell me", stream=True) as pieces:
                await _take(pieces, 40)
                raise Dropped


async def _listen(nitka: Nitka, words: int) -> None:
    async with nitka.say("anna", "s", text="tell me", stream=True) as pieces:
        await _take(pieces, words)


async def _take(pieces: Any, words: int) -> None:
    for _ in range(words):
        await anext(pieces)


async def _until(true: Any) -> None:
    while not true():
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("how", ["cancelled", "left", "dropped"])
async def test_ab_1_a_stopped_answer_is_kept_as_far_as_it_came(stage: Stage, how: str) -> None:
    """The pieces handed out are stored and marked as unfinished, and the next turn sees them so; after restart too."""
    model = SlowModel(" ".join(WORDS), pause=40)
    async with stage.open(model=model) as nitka:
        await stop(nitka, model, how)
        question, answer = await nitka.history("anna", "s")
        assert (question.text, question.interrupted) == ("tell me", False)
        assert (answer.text, answer.interrupted) == (HALF, True)
    async with stage.open() as nitka:
        async with nitka.turn("anna", "s", text="go on") as turn:
            check_valid(turn.request.messages)
            sent = [message["content"] for message in turn.request.messages]
            assert sent[0] == "tell me" and sent[1].startswith(HALF) and "interrupted" in sent[1][len(HALF) :]
            turn.answer("word40")


@pytest.mark.parametrize("times", [1, 3])
async def test_ab_1_the_write_survives_repeated_cancelling(stage: Stage, times: int) -> None:
    """Whoever stops, and stops again while the half answer is being written, still has it written, and only once."""
    model = SlowModel(" ".join(WORDS), pause=40)
    async with stage.open(Slow(stage.store()), model=model) as nitka:
        task = asyncio.create_task(_listen(nitka, 1_000))
        await _until(lambda: model.waiting)
        for _ in range(times):
            task.cancel()
            await asyncio.sleep(0.01)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await whole(nitka, "anna", "s") == [("tell me", HALF)]


class Slow(Measured):
    """A store whose writes take a while, as on a busy disk."""

    async def change(self, scope: Scope, step: Step) -> tuple[Locked, Change | None]:
        await asyncio.sleep(0.05)
        return await super().change(scope, step)


BEFORE = [
    [],
    [""],
    [" "],
    ["\n", "\n"],
    ["\u200b"],
    ["<think>"],
    ["<think>I should", " say"],
    ["<think>a</think>", "\n"],
]


@pytest.mark.parametrize("pieces", BEFORE, ids=ascii)
@pytest.mark.parametrize("error", [asyncio.CancelledError, Dropped])
async def test_ab_2_cut_off_before_anything_was_seen(
    stage: Stage, pieces: list[str], error: type[BaseException]
) -> None:
    """Cut off before a first visible piece, or inside reasoning, nothing is stored, the cause is what the caller gets,
    and the same delivery can come again.
    """
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 1)
        with pytest.raises(error):
            async with nitka.turn("anna", "s", text="tell me", key="k") as turn:
                for piece in pieces:
                    turn.piece(piece)
                raise error
        assert len(await whole(nitka, "anna", "s")) == 1
        assert (await nitka.say("anna", "s", text="tell me", key="k")).text == "answer to tell me"
        check_valid(nitka._model.requests[-1])  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", ["", "{", '{"city": "Lu', '{"a": 1}'])
@pytest.mark.parametrize("shown", [[], ["One moment", " please"], ["One moment<think>which city"]])
async def test_ab_2_cut_off_inside_a_tool_call(stage: Stage, arguments: str, shown: Sequence[str]) -> None:
    """Cut off inside a call's arguments, only the visible text is kept, and the next message works."""
    call = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}
    async with stage.open() as nitka:
        with pytest.raises(asyncio.CancelledError):
            async with nitka.turn("anna", "s", text="how warm is it?") as turn:
                for piece in shown:
                    turn.piece(piece)
                half = {"role": "assistant", "content": "".join(shown) or None, "tool_calls": [call]}
                turn.refit([*turn.request.messages, half])
                raise asyncio.CancelledError
        kept = await nitka.history("anna", "s")
        assert [m.text for m in kept[1:]] == (["One moment" + (" please" if len(shown) > 1 else "")] if shown else [])
        async with nitka.turn("anna", "s", text="hello?") as turn:
            check_valid(turn.request.messages)
            assert "c1" not in said(turn.request.messages) and "which city" not in said(turn.request.messages)
            turn.answer("Hello.")
        assert (await whole(nitka, "anna", "s"))[-1] == ("hello?", "Hello.")


@pytest.mark.parametrize("handed_out", [True, False])
async def test_ab_3_a_refused_answer_is_not_replayed(stage: Stage, handed_out: bool) -> None:
    """A guard discards the turn, and nothing of it is in history, summary or the next request; or it answers in the
    model's place, and only its words are.
    """
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 1)
        async with nitka.turn("anna", "s", text="tell me something bad", key="k") as turn:
            if handed_out:
                turn.piece("something forbidden")
            turn.answer("something forbidden")
            turn.discard()
        assert len(await whole(nitka, "anna", "s")) == 1
        async with nitka.turn("anna", "s", text="tell me something bad", key="k") as turn:
            if handed_out:
                turn.piece("something forbidden")
            turn.answer("I will not say that.")
        await lay(nitka, "anna", "s", 4, start=1)
        await nitka.settle()
        async with nitka.turn("anna", "s", text="and now?") as turn:
            found = [said(turn.request.messages), (await nitka.summary("anna", "s")).text]
            found.append(str(await nitka.history("anna", "s")))
            assert not any("forbidden" in text for text in found)
            assert any("I will not say that." in text for text in found)
            turn.discard()


@pytest.mark.parametrize("slow_disk", [False, True])
@pytest.mark.parametrize("after", [0, 0.005])
async def test_ab_4_stop_and_send_at_once(stage: Stage, slow_disk: bool, after: float) -> None:
    """A message sent right after stop follows the stopped turn and has all of it in its context."""
    store = Slow(stage.store()) if slow_disk else stage.store()
    model = SlowModel(" ".join(WORDS), pause=40)
    async with stage.open(store, model=model) as nitka:
        await lay(nitka, "anna", "s", 1)
        task = asyncio.create_task(_listen(nitka, 1_000))
        await _until(lambda: model.waiting)
        task.cancel()
        await asyncio.sleep(after)
        async with nitka.turn("anna", "s", text="no, something else") as turn:
            assert asked(turn.request.messages) == ["turn 0", "tell me", "no, something else"]
            assert HALF in said(turn.request.messages)
            turn.answer("As you like.")
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await whole(nitka, "anna", "s") == [
            ("turn 0", "reply 0"),
            ("tell me", HALF),
            ("no, something else", "As you like."),
        ]
