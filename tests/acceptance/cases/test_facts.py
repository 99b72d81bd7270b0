"""FACTS: no duplicate, contradictory, stale or wrongly merged facts, by the offline rules and by a model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka.testing import FakeModel
from tests.acceptance.cases.stage import Stage, beside, fact, known, reader, tell

pytestmark = pytest.mark.anyio

RULES = "offline"
LOVES, HATES, AGAIN = "I love grilled aubergine.", "Actually I hate aubergine now.", "I love aubergine again."
MODEL = reader(
    fact("likes", "grilled aubergine", LOVES, statement="loves grilled aubergine"),
    fact("dislikes", "aubergine", HATES, statement="hates aubergine"),
    fact("likes", "aubergine", AGAIN, statement="loves aubergine"),
)
LIKING = {
    "rules": (RULES, "aubergine", LOVES, HATES, AGAIN),
    "rules-ru": (RULES, "баклажаны", "Я люблю баклажаны.", "Теперь я ненавижу баклажаны.", "Я снова люблю баклажаны."),
    "model": (MODEL, "aubergine", LOVES, HATES, AGAIN),
}


@pytest.mark.parametrize("how", LIKING)
async def test_fa_1_a_contradiction_keeps_the_new_and_remembers_the_old(stage: Stage, how: str) -> None:
    """From liking to disliking and back there is one fact in force, the newest; the others are history, and a request
    holds what is in force alone.
    """
    fold, what, *texts = LIKING[how]
    async with stage.open(fold_model=fold) as nitka:
        for text, slot in zip(texts, ("likes", "dislikes", "likes"), strict=True):
            await tell(nitka, stage.clock, text)
            (now,) = [one for one in await nitka.facts("anna") if what in one.value]
            assert now.slot == slot
            past = [one for one in await nitka.facts("anna", include_past=True) if not one.current]
            sent = await beside(nitka, f"{what}?")
            assert f"| {now.statement}\\n" in sent
            assert not any(f"| {one.statement}\\n" in sent for one in past)
        assert past, "history, not gone"


MOVED = "Porto is home now, I don't live in Leeds any more."
OLD = {"op": "retract", "quote": "I don't live in Leeds any more"}
ANSWERS = {
    "the old one taken back, then the new": [
        fact("home.city", "Leeds", **OLD),
        fact("home.city", "Porto", "Porto is home now"),
    ],
    "the new one, then the old taken back": [
        fact("home.city", "Porto", "Porto is home now"),
        fact("home.city", "Leeds", **OLD),
    ],
    "all of the slot taken back by the same words": [
        fact("home.city", "", MOVED[:17], op="retract"),
        fact("home.city", "Porto", MOVED[:17]),
    ],
    "by its id": [fact("home.city", "", MOVED, op="retract", fact=0), fact("home.city", "Porto", MOVED, fact=0)],
    "the new one alone": [fact("home.city", "Porto", MOVED)],
}


@pytest.mark.parametrize("answer", ANSWERS)
async def test_fa_1_an_updater_that_also_deletes_the_old_value_does_not_lose_the_new(
    memory: Stage, answer: str
) -> None:
    """In whatever order and by whatever words the model takes back what it replaces, the new value is there and the
    old one is its past.
    """
    model = reader(fact("home.city", "Leeds", "I live in Leeds."), *ANSWERS[answer])
    async with memory.open(fold_model=model) as nitka:
        await tell(nitka, memory.clock, "I live in Leeds.", MOVED, "Nothing else today.")
        (home,) = await nitka.facts("anna", include_past=True)
        assert (home.value, home.current, [old.value for old in home.past]) == ("Porto", True, ["Leeds"])


TEA = {
    "en": (
        "My favourite tea is jasmine.",
        "These days my favourite tea is rooibos.",
        "Which tea should I buy for myself?",
    ),
    "ru": ("Мой любимый чай — жасминовый.", "Теперь мой любимый чай — ройбуш.", "Какой чай мне себе купить?"),
}


@pytest.mark.parametrize("language", TEA)
@pytest.mark.parametrize("others", [0, 60])
async def test_fa_2_only_the_newest_value_of_a_slot_is_active(stage: Stage, language: str, others: int) -> None:
    """The old favourite is history with its time; the question that needs it is given the new one and never the old,
    among few facts and among many.
    """
    first, second, question = TEA[language]
    async with stage.open(fold_model=RULES) as nitka:
        await tell(nitka, stage.clock, first, second)
        for at in range(others):
            await nitka.set_fact("anna", f"note.n{at}", f"the shelf of box {at} is number {at + 100}")
        (now,) = [one for one in await nitka.facts("anna", include_past=True) if one.slot.startswith("favourite")]
        (old,) = now.past
        assert (now.value, old.value) in (("rooibos", "jasmine"), ("ройбуш", "жасминовый"))
        assert old.last_seen < now.first_seen
        sent = await beside(nitka, question)
        assert now.value in sent and old.value not in sent


RELATED = (
    "I work as a bookkeeper at Alder Foods.",
    "I also run the chess club at Alder Foods.",
    "My manager asked me for a stock report.",
)
ALL_THREE = reader(
    fact("work.role", "bookkeeper at Alder Foods", RELATED[0]),
    fact("work.runs", "the chess club at Alder Foods", RELATED[1]),
    fact("plan", "stock report for the manager at Alder Foods", RELATED[2]),
)


@pytest.mark.parametrize("fold", [RULES, ALL_THREE], ids=["rules", "model"])
async def test_fa_3_a_related_fact_retires_nothing(memory: Stage, fold: Any) -> None:
    """After each message whatever was known before is still known, word for word; nothing has become past."""
    async with memory.open(fold_model=fold) as nitka:
        before: set[tuple[str, str, str]] = set()
        for text in RELATED:
            await tell(nitka, memory.clock, text)
            facts = await nitka.facts("anna", include_past=True)
            after = {(one.slot, one.value, one.quote) for one in facts}
            assert before <= after and all(one.current and not one.past for one in facts)
            before = after
        assert {"work.role", "work.runs"} <= {slot for slot, _, _ in before}


REWORDED = {
    "en": ("I run 10 km every week.", "Ten kilometres a week is what I run.", "A weekly 10k is run by me."),
    "ru": (
        "Я бегаю 10 км каждую неделю.",
        "Десять километров в неделю — столько я бегаю.",
        "Бегаю по 10 километров в неделю.",
    ),
}
VALUES = {
    "en": ("run 10 km every week", "Ten kilometres a week is what I run", "a weekly 10k run"),
    "ru": ("бег, 10 км каждую неделю", "десять километров бега в неделю", "бег по 10 километров еженедельно"),
}


@pytest.mark.parametrize("fold", [RULES, "model"])
@pytest.mark.parametrize("language", REWORDED)
async def test_fa_4_a_rewording_confirms(memory: Stage, language: str, fold: str) -> None:
    """Passive, turned round, in figures or in words: one fact without a past, whose last time moves with each."""
    told = [fact("hobby", value, text) for text, value in zip(REWORDED[language], VALUES[language], strict=True)]
    model = reader(*told) if fold == "model" else fold
    async with memory.open(fold_model=model) as nitka:
        for times, text in enumerate(REWORDED[language], 1):
            said_at = memory.clock.now
            await tell(nitka, memory.clock, text)
            (one,) = await nitka.facts("anna", include_past=True)
            assert (one.confirmations, one.last_seen, one.past) == (times, said_at, ())


@pytest.mark.parametrize(
    ("fold", "text"),
    [
        (RULES, "My bicycle is green."),
        (RULES, "Мою сестру зовут Мирослава."),
        (reader(fact("vehicle", "green bicycle", "My bicycle is green.")), "My bicycle is green."),
    ],
    ids=["rules", "rules-ru", "model"],
)
async def test_fa_5_saying_it_again_never_removes_it(stage: Stage, fold: Any, text: str) -> None:
    """One fact after each repeat: in one message, at once, days later, in another session."""
    async with stage.open(fold_model=fold) as nitka:
        for said, session in ((text, "s"), (text, "s"), (text, "t"), (f"{text} {text}", "t")):
            await tell(nitka, stage.clock, said, session=session)
            (one,) = await nitka.facts("anna", include_past=True)
            assert one.current
        assert one.confirmations == 4


TOPICS = {
    "I played volleyball at school.": ("hobby", "played volleyball at school"),
    "I swam at university.": ("hobby", "swam at university"),
    "I eat 90 g of protein a day.": ("habit", "eats 90 g of protein a day"),
    "I swim on Sundays.": ("hobby", "swims on Sundays"),
    "My dog swims too.": ("pet.dog.hobby", "swims"),
}


@given(order=st.permutations(list(TOPICS)), repeats=st.integers(1, 2))
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_fa_6_facts_that_only_resemble_each_other_stay_apart(order: list[str], repeats: int) -> None:
    """In any order, once or again, each topic stays one fact of its own with its own words."""
    stage = Stage()
    model = reader(*(fact(slot, value, text) for text, (slot, value) in TOPICS.items()))
    async with stage.open(fold_model=model) as nitka:
        await tell(nitka, stage.clock, *order * repeats)
        facts = await nitka.facts("anna", include_past=True)
        assert {one.quote: (one.slot, one.value) for one in facts} == TOPICS
        assert all(one.current and one.confirmations == repeats for one in facts)


async def test_fa_6_the_rules_join_no_topics(memory: Stage) -> None:
    """No fact holds the words of two messages, and what the dog does is not what the user does."""
    async with memory.open(model=FakeModel(), fold_model=RULES) as nitka:
        await tell(nitka, memory.clock, *TOPICS)
        facts = await known(nitka)
        words = ("volleyball", "university", "protein", "Sundays", "dog")
        for value in facts.values():
            assert all(sum(word in part for word in words) <= 1 for part in value.split(" | "))
        assert "Sundays" in facts["user", "hobby"] and facts["user", "pet.dog.hobby"] == "swims"
