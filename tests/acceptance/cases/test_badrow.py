"""BADROW: one bad row, text or id must not make a conversation unusable."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import BadId, BadText, Damaged, Limits, ModelError, Nitka, Passage, User
from nitka.conversation import SUMMARY, find_owner, find_thread
from nitka.models.openai import OpenAIChat
from nitka.models.summariser import ModelSummariser
from nitka.store.port import Change, FoldRow, Locked, Row, Scope
from nitka.testing import FakeModel
from nitka.types import Sealed
from nitka.vault.seal import Kind, Place
from tests.acceptance.cases.stage import Stage, check_valid, lay, said, whole

pytestmark = pytest.mark.anyio

HALVES = ["ok \ud83d", "\udc4d ok", "a\udfffb\ud800", "\udc4d\ud83d"]
half_texts = st.text(st.one_of(st.characters(), st.sampled_from("\ud83d\udc4d\0")), min_size=1, max_size=12)


async def check_alive(nitka: Nitka, session: str = "s", *, raw: bool = False) -> None:
    """Turns, folds, summary, export and listing work, and nothing that comes out fails to encode; `raw` rows, which
    came in by another way, are read as they are.
    """
    for at in range(4):
        async with nitka.turn("anna", session, text=f"later {at}") as turn:
            check_valid(turn.request.messages)
            said(turn.request.messages).encode()
            turn.answer("fine")
    done = await nitka.settle()
    assert done.failed == 0
    summary = await nitka.summary("anna", session)
    history = await nitka.history("anna", session, limit=100)
    assert summary.cursor >= len(history) - 4
    records = [record async for record in nitka.export("anna", what="all")]
    assert len(records) > len(history)
    json.dumps([summary.text, *([] if raw else [records, [m.text for m in history]])], ensure_ascii=False).encode()


@pytest.mark.parametrize("half", HALVES, ids=ascii)
async def test_br_1_half_an_emoji_blocks_nothing(stage: Stage, half: str) -> None:
    """Half a surrogate pair is replaced wherever it comes in, and everything goes on."""
    async with stage.open(model=FakeModel([half])) as nitka:
        await nitka.say("anna", "s", text=half)
        async with nitka.say("anna", "s", text="streamed", stream=True) as pieces:
            assert "".join([piece async for piece in pieces])
        tool = {"role": "tool", "tool_call_id": half, "content": half}
        call = {"id": half, "type": "function", "function": {"name": "look", "arguments": json.dumps({"a": half})}}
        async with nitka.turn("anna", "s", text=half, system=half, knowledge=[half, Passage(half, label=half)]) as turn:
            made = {"role": "assistant", "content": half, "tool_calls": [call]}
            sent = turn.refit([*turn.request.messages, made, tool]).messages
            check_valid(sent)
            assert "\\ud83d" not in json.dumps([m["content"] for m in sent]).replace("\\ud83d\\udc4d", "")
            turn.answer(half)
        texts = [m.text for m in await nitka.history("anna", "s")]
        assert all("\ufffd" in text or "👍" in text for text in texts if text != "streamed")
        await check_alive(nitka)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(question=half_texts, answer=half_texts)
async def test_br_1_any_text_is_taken_or_refused_at_once(question: str, answer: str) -> None:
    """Whatever a text holds, it is stored so that it can be read and sent, or there is a typed error and no row."""
    async with Stage().open(fold_model="offline") as nitka:
        try:
            await nitka.record("anna", "s", text=question, answer=answer)
        except BadText:
            assert await nitka.history("anna", "s") == ()
        else:
            for text, row in zip((question, answer), await nitka.history("anna", "s"), strict=True):
                kept = [char for char in text if char not in "\0" and not "\ud800" <= char <= "\udfff"]
                assert [char for char in row.text if char in kept] == kept or "👍" in row.text
        await check_alive(nitka)


async def put_row(nitka: Nitka, content: dict[str, Any] | None, *, extra: dict[str, Any] | None = None) -> None:
    """Writes a turn whose first row is as some other version, or a fault, might have sealed it; None: not sealed."""
    owner = await find_owner(nitka._vault, User("anna"))
    assert owner is not None
    found = await find_thread(nitka._vault, owner, "s")
    assert found is not None
    thread, _ = found

    def seal(seq: int, n: int, value: dict[str, Any]) -> Row:
        place = Place(Kind.MESSAGE, owner.incarnation, thread.incarnation, seq, n)
        return Row(seq, n, owner.key.seal.seal(json.dumps(value).encode(), place))

    def step(locked: Locked) -> Change:
        usual = {"role": "user", "text": "as ever", "at": 0, "key": "00" * 16, "size": ["", 0]}
        answer = {**usual, "role": "assistant", "text": "fine"}
        first = seal(locked.head, locked.n, {**usual, **(content or {})})
        if content is None:
            first = first._replace(body=Sealed(first.body[:-1] + b"?" if first.body else b""))
        session = locked.session
        assert session is not None
        state = {"id": "s", "channel": "", "messages": locked.head + 2, "started": 0, "last": 0, **(extra or {})}
        place = Place(Kind.SESSION, owner.incarnation, thread.incarnation, locked.head + 2)
        body = owner.key.seal.seal(json.dumps(state).encode(), place)
        return Change(append=(first, seal(locked.head + 1, locked.n + 1, answer)), session_body=body)

    scope = Scope(
        owner=owner.id, incarnation=owner.incarnation, session=thread.tag, session_incarnation=thread.incarnation
    )
    await nitka._vault.store.change(scope, step)


@pytest.mark.parametrize("text", [*HALVES, "page\0one", "\0"], ids=ascii)
@pytest.mark.parametrize("folded_by", ["tally", "offline", "model"])
async def test_br_1_a_row_that_is_already_bad_is_read(memory: Stage, text: str, folded_by: str) -> None:
    """A row with half a pair or NUL that lies in the store is read, sent, folded and exported without failing."""
    writers: dict[str, Any] = {"tally": memory.tally, "offline": "offline", "model": asking()}
    async with memory.open(fold_model=writers[folded_by]) as nitka:
        await lay(nitka, "anna", "s", 1)
        await put_row(nitka, {"text": text})
        await check_alive(nitka, raw=True)


def asking() -> ModelSummariser:
    """The summariser behind a real client, whose server answers that there is nothing to add."""

    def answer(request: httpx.Request) -> httpx.Response:
        json.loads(request.content.decode())
        message = {"content": '{"add": [], "replaced": []}'}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
    return ModelSummariser(OpenAIChat("m", base_url="http://127.0.0.1/v1", client=client))


async def test_br_2_a_nul_byte_loses_no_message(stage: Stage) -> None:
    """NUL in a text is replaced and the rest of it kept; in an id it is refused, and nothing is made."""
    async with stage.open(model=FakeModel(["answer\0with nul"])) as nitka:
        await nitka.say("anna", "s", text="page\0one", channel="we\0b")
        assert await whole(nitka, "anna", "s") == [("page\ufffdone", "answer\ufffdwith nul")]
        for user, session, key in (("an\0na", "s", "k"), ("anna", "s\0", "k"), ("anna", "s", "k\0")):
            with pytest.raises(BadId):
                await nitka.say(user, session, text="hi", key=key)
        with pytest.raises(BadId):
            await nitka.say(User("anna", "ten\0ant"), "s", text="hi")
        assert [info.id for info in await nitka.sessions("anna")] == ["s"]
        arguments = json.dumps({"page": "one\0two"})
        async with nitka.turn("anna", "s", text="next\0") as turn:
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
            made = [{"role": "assistant", "content": None, "tool_calls": [call]}]
            sent = turn.refit([*turn.request.messages, *made, {"role": "tool", "tool_call_id": "c", "content": "\0"}])
            check_valid(sent.messages)
            assert "\0" not in "".join(str(m["content"]) for m in sent.messages)
            turn.answer("ok")
        await check_alive(nitka)


BLANK = ["", "  ", "\n", "\u200b", "\ufeff\n", "\u00ad"]
REASONING = ["<think>secret plan</think>", "<think>never closed", "<think>a</think>\n\n", "\n<thinking>b</thinking> "]


@pytest.mark.parametrize("blank", BLANK, ids=ascii)
async def test_br_3_an_empty_message_is_refused_at_the_door(stage: Stage, blank: str) -> None:
    """A blank question is a `BadText`, a model that says nothing a `ModelError`; neither leaves a row."""
    async with stage.open(model=FakeModel([blank])) as nitka:
        await lay(nitka, "anna", "s", 1)
        with pytest.raises(BadText):
            await nitka.say("anna", "s", text=blank)
        with pytest.raises(ModelError):
            await nitka.say("anna", "s", text="hello")
        with pytest.raises(ModelError):
            await streamed(nitka)
        with pytest.raises(BadText):
            await nitka.record("anna", "s", text="hello", answer=blank)
        assert len(await whole(nitka, "anna", "s")) == 1
        await check_alive(nitka)


async def streamed(nitka: Nitka) -> str:
    async with nitka.say("anna", "s", text="hello", stream=True) as pieces:
        return "".join([piece async for piece in pieces])


@pytest.mark.parametrize("answer", REASONING, ids=ascii)
async def test_br_3_an_answer_that_is_only_reasoning_says_nothing(stage: Stage, answer: str) -> None:
    """A model that only reasons has not answered: an error, no row, and the reasoning is nowhere."""
    async with stage.open(model=FakeModel([answer])) as nitka:
        await lay(nitka, "anna", "s", 1)
        for asking in (nitka.say("anna", "s", text="hello"), streamed(nitka)):
            with pytest.raises(ModelError):
                await asking
        with pytest.raises((BadText, ModelError)):
            async with nitka.turn("anna", "s", text="hello") as turn:
                turn.answer(answer)
        assert await whole(nitka, "anna", "s") == [("turn 0", "reply 0")]


async def test_br_3_a_blank_tool_result_gets_a_placeholder(memory: Stage) -> None:
    """A tool that returns nothing leaves its pair whole and no empty block."""
    async with memory.open() as nitka:
        async with nitka.turn("anna", "s", text="look") as turn:
            call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
            for blank in (*BLANK[:3], None, [], [{"type": "text", "text": ""}]):
                made = [{"role": "assistant", "content": "", "tool_calls": [call]}]
                result = {"role": "tool", "tool_call_id": "c", "content": blank}
                sent = turn.refit([*turn.request.messages[:1], *made, result]).messages
                check_valid(sent)
                assert len(sent) == 3 and sent[-1]["content"]
            turn.answer("nothing there")


async def test_br_3_a_row_that_is_already_blank_is_replayed_with_a_mark(memory: Stage) -> None:
    """An empty row that lies in the store is sent as something, in its place."""
    async with memory.open(fold_model="offline") as nitka:
        await lay(nitka, "anna", "s", 1)
        await put_row(nitka, {"text": " \n"})
        async with nitka.turn("anna", "s", text="and now?") as turn:
            check_valid(turn.request.messages)
            assert [m["role"] for m in turn.request.messages] == ["user", "assistant", "user", "assistant", "user"]
            turn.answer("ok")
        await check_alive(nitka)


async def test_br_3_a_redaction_that_leaves_nothing_poisons_nothing(stage: Stage) -> None:
    """A text that is redacted away whole does not make later requests invalid."""
    async with stage.open(redact=lambda text: "" if "secret" in text else text) as nitka:
        await nitka.say("anna", "s", text="my secret")
        await check_alive(nitka)
        assert "secret" not in str(await nitka.history("anna", "s", limit=100))


async def test_br_4_rows_of_another_version_load(stage: Stage) -> None:
    """Fields that this version does not know, in messages, sessions and summaries, are passed over."""
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 1)
        await put_row(nitka, {"mood": "fine", "parts": [{"kind": "voice"}]}, extra={"pinned": True, "tags": ["x"]})
        vault = nitka._vault
        owner = await find_owner(vault, User("anna"))
        assert owner is not None
        found = await find_thread(vault, owner, "s")
        assert found is not None
        thread = found[0]
        line = {"full": "an old line", "gist": "old", "first": 0, "last": 0, "weight": 3}
        state = {"lines": [line], "cursor": 2, "version": 1, "counter": "x", "tokens": 3, "moods": []}
        place = Place(Kind.SUMMARY, owner.incarnation, thread.incarnation, 2, 1)
        body = owner.key.seal.seal(json.dumps(state).encode(), place)
        scope = Scope(
            owner=owner.id, incarnation=owner.incarnation, session=thread.tag, session_incarnation=thread.incarnation
        )
        fold = FoldRow(thread.tag, SUMMARY, 2, 1, body)
        await vault.store.change(scope, lambda _: Change(folds=(fold, replace(fold, kind="mood"))))
        assert (await nitka.summary("anna", "s")).text == "an old line"
        assert ("as ever", "fine") in await whole(nitka, "anna", "s")
        await check_alive(nitka)
        assert (await nitka.summary("anna", "s")).lines[0].full == "an old line"


async def test_br_4_a_damaged_row_is_named_and_the_rest_is_readable(stage: Stage) -> None:
    """A row that does not open is a typed error with its number; other rows, sessions and the export are there, and
    forgetting the turn makes the conversation whole.
    """
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 1)
        await put_row(nitka, None)
        await lay(nitka, "anna", "other", 1)
        with pytest.raises(Damaged, match="2"):
            await nitka.history("anna", "s")
        with pytest.raises(Damaged, match="2"):
            await nitka.say("anna", "s", text="hello")
        assert len(await nitka.history("anna", "s", limit=1)) == 1
        records = [record async for record in nitka.export("anna")]
        assert [record["seq"] for record in records if record["session"] == "s"] == [0, 1, 2, 3]
        assert [record["seq"] for record in records if record.get("damaged")] == [2]
        assert len(await whole(nitka, "anna", "other")) == 1
        assert (await nitka.forget("anna", session="s", turn=2)).messages == 2
        await check_alive(nitka)


async def test_br_4_a_row_that_cannot_be_folded_does_not_stop_the_folds_of_others(stage: Stage) -> None:
    """One bad conversation fails by itself; the others are folded."""
    async with stage.open(limits=Limits(window=2, summary_tokens=10_000)) as nitka:
        await lay(nitka, "anna", "s", 1)
        await put_row(nitka, None)
        for user in ("boris", "vera"):
            await lay(nitka, user, "s", 4)
        for _ in range(2):
            await nitka.settle(rescan=True)
        for user in ("boris", "vera"):
            assert (await nitka.summary(user, "s")).cursor == 6
