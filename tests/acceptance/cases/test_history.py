"""HISTORY: what is replayed is what the user sees: system prompts, edits, regenerated answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import Nitka
from nitka.types import ChatMessage
from tests.acceptance.cases.stage import SMALL, Stage, asked, beside, known, lay, said, tell, whole

pytestmark = pytest.mark.anyio


def system_of(messages: Sequence[ChatMessage]) -> list[str]:
    return [message["content"] for message in messages if message["role"] == "system"]


async def test_hi_1_each_request_has_the_current_system_prompt_once(stage: Stage) -> None:
    """The prompt handed in with a turn is sent first and once, with history, after a change, a restart and a fold; an
    earlier one is never sent, and none is stored.
    """
    async with stage.open() as nitka:
        for at in range(3):
            await check_prompt(nitka, f"You are P1, number {at}.", f"turn {at}")
    async with stage.open() as nitka:
        for at in range(3, 10):
            await check_prompt(nitka, "You are P2.", f"turn {at}")
            await nitka.settle()
        assert (await nitka.summary("anna", "s")).cursor == 16
        await check_prompt(nitka, "You are P3.", "after the fold")
        async with nitka.turn("anna", "s", text="without one") as turn:
            assert "You are" not in said(turn.request.messages)
            turn.discard()
        assert "You are" not in str(await nitka.history("anna", "s"))
        assert "You are" not in (await nitka.summary("anna", "s")).text


async def check_prompt(nitka: Nitka, prompt: str, text: str) -> None:
    async with nitka.turn("anna", "s", text=text, system=prompt) as turn:
        for messages in (turn.request.messages, turn.refit(turn.request.messages).messages):
            assert messages[0]["role"] == "system" and messages[0]["content"].startswith(prompt)
            assert said(messages).count("You are") == 1
        turn.answer("fine")


@pytest.mark.parametrize("folded", [False, True])
@pytest.mark.parametrize("filler", [0, 6])
async def test_hi_2_after_an_edit_the_old_branch_reaches_nobody(stage: Stage, folded: bool, filler: int) -> None:
    """Markers A and B stand before the edited turn and stay, C and the old wording are gone: from the request that
    edits, history, summary, export and later requests, whether the edited part was folded or not.
    """
    async with stage.open() as nitka:
        for text in ("marker-A", "one", "marker-B", "old wording"):
            await nitka.record("anna", "s", text=text, answer=f"noted {text}")
        for text in ("marker-C", *(f"filler {at}" for at in range(filler))):
            await nitka.record("anna", "s", text=text, answer=f"noted {text}")
        if folded:
            await nitka.settle()
        async with nitka.turn("anna", "s", text="which markers do you know?", replaces=6) as turn:
            await check_branch(said(turn.request.messages))
            assert asked(turn.request.messages)[-1] == "which markers do you know?"
            turn.answer("A and B")
        for _ in range(2):
            await nitka.settle()
        turns = await whole(nitka, "anna", "s")
        assert [question for question, _ in turns] == ["marker-A", "one", "marker-B", "which markers do you know?"]
        async with nitka.turn("anna", "s", text="and now?") as turn:
            await check_branch(said(turn.request.messages))
            turn.discard()
        found = (await nitka.summary("anna", "s")).text + str(turns)
        await check_branch(found + str([record async for record in nitka.export("anna", what="all")]))


async def check_branch(text: str) -> None:
    assert "marker-A" in text and "marker-B" in text
    assert "marker-C" not in text and "old wording" not in text and "filler" not in text


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 30), st.booleans()), max_size=8))
async def test_hi_2_any_run_of_edits(edits: list[tuple[int, bool]]) -> None:
    """However often and wherever is edited, with folds in between, history is one branch and so is each request."""
    branch: list[tuple[int, str]] = []
    head = 0
    async with Stage().open(limits=SMALL) as nitka:
        for number, (where, fold) in enumerate([(30, False)] * 4 + edits):
            seq = branch[where % len(branch)][0] if branch and where < 30 else None
            kept = branch if seq is None else [item for item in branch if item[0] < seq]
            async with nitka.turn("anna", "s", text=f"<{number}>", replaces=seq) as turn:
                request = said(turn.request.messages)
                known = {text for _, text in kept} | {f"<{number}>"}
                assert all((f"<{n}>" in request) == (f"<{n}>" in known) for n in range(number + 1))
                turn.answer(f"reply <{number}>")
            branch = [*kept, (head, f"<{number}>")]
            head += 2
            if fold:
                await nitka.settle()
        assert [(m.seq, m.text) for m in await nitka.history("anna", "s", limit=100) if m.role == "user"] == branch


@pytest.mark.parametrize("folded", [False, True])
async def test_hi_3_a_new_answer_is_made_without_the_rejected_one(stage: Stage, folded: bool) -> None:
    """The request for another answer ends with the question and does not hold the rejected answer, which enters neither
    history nor summary; a regenerated answer can be regenerated again.
    """
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 3)
        await nitka.record("anna", "s", text="Name a bird.", answer="rejected-0")
        for again in range(1, 3):
            if folded:
                await nitka.settle()
            seq = (await nitka.history("anna", "s"))[-1].seq
            async with nitka.turn("anna", "s", text="Name a bird.", replaces=seq) as turn:
                messages = turn.request.messages
                assert messages[-1] == {"role": "user", "content": "Name a bird."}
                assert asked(messages).count("Name a bird.") == 1
                assert "rejected" not in said(messages)
                turn.answer(f"rejected-{again}" if again < 2 else "A heron.")
        assert await whole(nitka, "anna", "s") == [
            *((f"turn {at}", f"reply {at}") for at in range(3)),
            ("Name a bird.", "A heron."),
        ]
        await lay(nitka, "anna", "s", 4, start=3)
        for _ in range(2):
            await nitka.settle()
        summary = await nitka.summary("anna", "s")
        assert "A heron." in summary.text and "rejected" not in summary.text
        assert not any("rejected" in m.text for call in stage.tally.calls[-3:] for m in call)


@pytest.mark.parametrize("end", ["failed", "cancelled", "discarded"])
async def test_hi_3_a_regeneration_that_comes_to_nothing_takes_nothing_away(stage: Stage, end: str) -> None:
    """When the new answer fails, the old one is still there."""
    async with stage.open() as nitka:
        await lay(nitka, "anna", "s", 4)
        before: Any = await nitka.history("anna", "s")
        block = nitka.turn("anna", "s", text="turn 3", replaces=7)
        turn = await block.__aenter__()
        if end == "discarded":
            turn.discard()
        error = {"failed": RuntimeError("gone"), "cancelled": None, "discarded": None}[end]
        if end == "cancelled":
            turn.discard()
        await block.__aexit__(type(error) if error else None, error, None)
        assert await nitka.history("anna", "s") == before


async def test_hi_2_facts_of_a_dropped_branch_are_withdrawn(stage: Stage) -> None:
    """What was learnt from the turns that an edit drops is gone with them, from the facts, the profile and later
    requests; what the kept turns say, and said before it was changed, holds again.
    """
    async with stage.open(fold_model="offline") as nitka:
        await tell(nitka, stage.clock, "I live in Leeds.", "My name is Tom.", "I live in Porto.", "I like heron tea.")
        assert (await known(nitka))["user", "home.city"] == "Porto"
        await nitka.say("anna", "s", text="which city do you know?", replaces=4)
        await nitka.settle()
        assert await known(nitka) == {("user", "home.city"): "Leeds", ("user", "name"): "Tom"}
        for text in [
            await beside(nitka, "Where do I live, and which tea?"),
            repr(await nitka.facts("anna", include_past=True)),
        ]:
            assert "Porto" not in text and "heron" not in text


async def test_hi_3_a_rejected_answer_teaches_nothing(stage: Stage) -> None:
    """Regenerated, a turn is learnt from once, whatever its first answer said, and is found once."""
    async with stage.open(fold_model="offline") as nitka:
        await nitka.record("anna", "s", text="I live in Leeds.", answer="Porto is the better city.")
        await nitka.settle()
        await nitka.say("anna", "s", text="I live in Leeds.", replaces=0)
        await nitka.settle()
        (home,) = await nitka.facts("anna", include_past=True)
        assert (home.value, home.confirmations, home.seq) == ("Leeds", 1, 2)
        hits = await nitka.recall("anna", "Leeds Porto", k=50)
        assert [hit.seq for hit in hits if hit.role == "user"] == [2] and not any("Porto" in hit.text for hit in hits)
