"""SILENT: nothing is lost without a word, and nothing irrelevant is recalled."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nitka import BadInput, BadText, Limits, ModelError, Nitka
from nitka.testing import FakeModel
from nitka.types import Settled
from tests.acceptance.cases.stage import Stage, beside, fact, known, lay

pytestmark = pytest.mark.anyio

LEEDS = {**fact("home.city", "Leeds", "I live in Leeds"), "row": 0}
TEA = {**fact("likes", "heron tea", "I like heron tea"), "row": 0}
SAID = "I live in Leeds and I like heron tea."
BOTH = {("user", "home.city"): "Leeds", ("user", "likes"): "heron tea"}
GOOD = json.dumps({"facts": [LEEDS, TEA]})
READABLE = {
    "in a code fence": f"```json\n{GOOD}\n```",
    "a sentence before": f"Here are the facts you asked for:\n{GOOD}",
    "a sentence after": f"{GOOD}\nLet me know if you need more!",
    "a bare list": json.dumps([LEEDS, TEA]),
    "cut off after whole facts": GOOD[:-2] + ', {"op": "assert", "slot": "na',
    "row as a string": json.dumps({"facts": [{**LEEDS, "row": "0"}, {**TEA, "row": None}]}),
    "one item useless": json.dumps({"facts": ["I live in Leeds", None, LEEDS, {}, TEA]}),
}
UNREADABLE = {
    "null": '{"facts": null}',
    "strings for objects": json.dumps({"facts": ["I live in Leeds", "I like heron tea"]}),
    "cut off in the first": GOOD[:60],
    "prose": "The user lives in Leeds.",
    "empty": "",
    "two hundred kilobytes": "[" * 200_000,
    "an error in words": '{"error": "overloaded"}',
}


@pytest.mark.parametrize("answer", READABLE)
async def test_si_1_what_can_be_read_of_an_answer_is_stored(memory: Stage, answer: str) -> None:
    """Fences, talk around it, a cut-off end or a bad item cost nothing of what is there."""
    async with memory.open(fold_model=FakeModel(folds={"facts": [READABLE[answer]]})) as nitka:
        await nitka.record("anna", "s", text=SAID, answer="ok")
        done = await nitka.settle()
        assert await known(nitka) == BOTH and (done.failed, done.offline) == (0, 0)


@pytest.mark.parametrize("answer", UNREADABLE)
async def test_si_1_what_cannot_be_read_is_told_and_read_again(
    stage: Stage, answer: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A bad answer is counted and logged by its kind, without a word of the user's; the messages stay due, and the next
    answer finds them, whatever was said meanwhile.
    """
    model = FakeModel(folds={"facts": [ModelError(retryable=True), UNREADABLE[answer], GOOD]})
    async with stage.open(fold_model=model, background=False) as nitka:
        await nitka.record("anna", "s", text=SAID, answer="ok")
        for _ in range(2):
            done = await nitka.settle()
            assert done.failed == 1 and await nitka.facts("anna") == ()
        assert "ModelError" in caplog.text and "Leeds" not in caplog.text and "heron" not in caplog.text
        done = await nitka.settle()
        assert await known(nitka) == BOTH and done.failed == 0
        assert len(model.fold_requests["facts"]) == 3


async def test_si_1_an_extractor_that_never_answers_is_stood_in_for(memory: Stage) -> None:
    """After three attempts the offline rules read the messages, and what `settle` did says so; nothing stays unread."""
    model = FakeModel(folds={"facts": ["no"]})
    async with memory.open(fold_model=model, background=False) as nitka:
        await nitka.record("anna", "s", text="I live in Leeds.", answer="ok")
        total = [await nitka.settle() for _ in range(4)]
        assert sum(done.offline for done in total) == 1
        assert await known(nitka) == {("user", "home.city"): "Leeds"}
        assert len(model.fold_requests["facts"]) <= 3 and await nitka.settle() == Settled()


IDS: list[Any] = [12, -1, 0, 0, "12", "b8a0c1de-0000-4000-8000-000000000000", 1.5, True, [], {}, None, 10**30]


@pytest.mark.parametrize("op", ["assert", "retract"])
async def test_si_2_an_id_that_does_not_exist_spoils_nothing(stage: Stage, op: str) -> None:
    """Ids out of range, negative, doubled, of another kind or of another user: that item is judged by its words alone,
    the others of the answer are applied, and what others have is as before.
    """
    async with stage.open(fold_model="offline") as nitka:
        theirs = await nitka.set_fact("boris", "home.city", "Oslo")
        await nitka.set_fact("anna", "name", "Tom")
        odd = [{**fact("likes", "heron tea", "I like heron tea", op=op, fact=id), "row": 0} for id in [*IDS, theirs.id]]
        before = await nitka.facts("boris", include_past=True)
    model = FakeModel(folds={"facts": [json.dumps({"facts": [*odd, LEEDS]})]})
    async with stage.open(fold_model=model) as nitka:
        await nitka.record("anna", "s", text=SAID, answer="ok")
        done = await nitka.settle()
        assert (done.failed, done.offline) == (0, 0)
        facts = await known(nitka)
        assert facts["user", "home.city"] == "Leeds" and facts.get(("user", "likes"), "heron tea") == "heron tea"
        assert await nitka.facts("boris", include_past=True) == before
        named_by_zero = {("user", "name")} if op == "retract" else set()
        assert set(facts) >= {*BOTH, ("user", "name")} - named_by_zero - (
            {("user", "likes")} if op == "retract" else set()
        )


async def test_si_2_an_id_from_outside_touches_only_the_callers_own(stage: Stage) -> None:
    """`forget` and `retract_fact` with the id of another user's fact, or with nonsense, change nothing and say so."""
    async with stage.open(fold_model="offline") as nitka:
        theirs = await nitka.set_fact("boris", "home.city", "Oslo")
        await nitka.set_fact("anna", "home.city", "Oslo")
        for id in (theirs.id, "", "0" * 32, "12", "' or 1=1 --", "é"):
            assert not await nitka.retract_fact("anna", id)
            assert (await nitka.forget("anna", fact=id)).facts == 0
        assert (await known(nitka, "anna")) == (await known(nitka, "boris")) == {("user", "home.city"): "Oslo"}


SHAPES: list[Any] = [
    b"hello",
    ["hello"],
    [{"type": "text", "text": "hello"}],
    {"role": "user", "content": "hello"},
    ("hello",),
    None,
    5,
    "",
    " \n\t",
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: ascii(shape)[:24])
async def test_si_3_what_is_no_text_is_an_error_and_never_a_success(memory: Stage, shape: Any) -> None:
    """Bytes, lists, parts, nothing and blanks are refused wherever a text is taken, by an error of ours, and nothing is
    written; a plain text is written whole.
    """
    async with memory.open(fold_model="offline") as nitka:
        for call in (
            lambda: nitka.say("anna", "s", text=shape),
            lambda: nitka.record("anna", "s", text=shape, answer="ok"),
            lambda: nitka.record("anna", "s", text="hello", answer=shape),
            lambda: _answered(nitka, shape),
            lambda: nitka.set_fact("anna", "home.city", shape),
        ):
            with pytest.raises(BadInput):
                await call()
        assert await nitka.sessions("anna") == () and await nitka.facts("anna") == ()
        await nitka.record("anna", "s", text="I live in Leeds.", answer="ok")
        assert [message.text for message in await nitka.history("anna", "s")] == ["I live in Leeds.", "ok"]


async def _answered(nitka: Nitka, answer: Any) -> None:
    async with nitka.turn("anna", "s", text="hello") as turn:
        turn.answer(answer)


@pytest.mark.parametrize("answer", ["", " \n"])
async def test_si_3_a_model_that_says_nothing_is_an_error(memory: Stage, answer: str) -> None:
    """An empty answer is told to the caller, and no half turn is stored."""
    async with memory.open(model=FakeModel([answer])) as nitka:
        with pytest.raises((ModelError, BadText)):
            await nitka.say("anna", "s", text="hello")
        assert await nitka.history("anna", "s") == ()


KITCHEN = {
    "likes": ["grilled peppers", "train journeys along the coast"],
    "habit": ["bakes rye bread on Saturdays", "packs one small rucksack"],
    "device": ["a cast-iron pan", "a folding kayak"],
}
BESIDE = ("Do I owe the library money?", "When is the tax return due?", "Кто починит принтер?")


@pytest.mark.parametrize("greeting", ["hello", "hi there!", "thanks, bye", "привет", "你好"])
async def test_si_4_a_greeting_finds_nothing(memory: Stage, greeting: str) -> None:
    """No passage is found for a greeting, and of many facts none is put beside it."""
    async with memory.open(fold_model="offline", limits=Limits(window=2, recall_slack=0, recall_wait=30)) as nitka:
        await stocked(nitka, boxes=30)
        assert await nitka.recall("anna", greeting) == ()
        assert await layers(nitka, greeting) == {"summary", "history", "question"}


@pytest.mark.parametrize("question", BESIDE)
async def test_si_4_what_bears_on_nothing_finds_nothing(memory: Stage, question: str) -> None:
    """A question about something else gets no hit, and of many facts none; the same memory answers another."""
    async with memory.open(fold_model="offline", limits=Limits(window=2, recall_slack=0, recall_wait=30)) as nitka:
        await stocked(nitka, boxes=30)
        assert await nitka.recall("anna", question) == ()
        assert await layers(nitka, question) == {"summary", "history", "question"}
        assert (await nitka.recall("anna", "Where is the kettle?"))[0].text == "The kettle hangs over the stove."
        assert await layers(nitka, "Which pan hangs by the kettle?") == {
            "summary",
            "history",
            "question",
            "facts",
            "recall",
        }


async def layers(nitka: Nitka, question: str) -> set[str]:
    """What a request to this question is made of."""
    async with nitka.turn("anna", "s", text=question) as turn:
        turn.discard()
        assert turn.receipt is not None
        return {entry.layer for entry in turn.receipt.entries}


async def stocked(nitka: Nitka, boxes: int = 0) -> None:
    """Six facts on cooking and travel, more on boxes, and some talk of both that the window has left."""
    for slot, values in KITCHEN.items():
        for value in values:
            await nitka.set_fact("anna", slot, value)
    for at in range(boxes):
        await nitka.set_fact("anna", f"note.box{at}", f"crate {at} stands in row {at + 100}")
    await nitka.record("anna", "s", text="The kettle hangs over the stove.", answer="Fine.")
    await nitka.record("anna", "s", text="We took the night train to the coast.", answer="Lovely.")
    await lay(nitka, "anna", "s", 2, text="noted {}")
    await nitka.settle()


async def test_si_4_what_the_facts_do_answer_is_given(memory: Stage) -> None:
    """The other side of it: the same facts are given to questions they bear on, so that silence is a choice."""
    async with memory.open(fold_model="offline") as nitka:
        await stocked(nitka, boxes=30)
        for question, value in (("What bread do I bake?", "rye bread"), ("Which pan have I?", "cast-iron pan")):
            sent = await beside(nitka, question)
            assert value in sent and "kayak" not in sent
