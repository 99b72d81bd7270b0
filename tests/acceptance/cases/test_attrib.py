"""ATTRIB: what others say or are, what the assistant says, and what is no statement never become the user's facts."""

from __future__ import annotations

from typing import Any

import pytest

from nitka import Handle
from nitka.testing import FakeModel
from tests.acceptance.cases.stage import Stage, beside, echo, fact, greedy, known, lay, reader, said, tell

pytestmark = pytest.mark.anyio

RULES = "offline"
OTHERS = {
    "en": "My neighbour hates chess, but his father put him in a chess class. My aunt is vegan and lives in Porto.",
    "ru": "Мой сосед ненавидит шахматы, но отец отдал его в кружок. Моя тётя — веган и живёт в Порту.",
    "quoted": 'My aunt wrote: "I am vegan, I live in Porto and I hate chess."',
    "reported": "My aunt says she hates chess. She told me that she is vegan and that she has moved to Porto.",
}
READ = reader(
    fact("dislikes", "chess", "My neighbour hates chess", about="neighbour"),
    fact("diet", "vegan", "My aunt is vegan", about="aunt"),
    fact("home.city", "Porto", "lives in Porto", about="aunt"),
)


@pytest.mark.parametrize(("fold", "text"), [*((RULES, text) for text in OTHERS.values()), (READ, OTHERS["en"])])
async def test_at_1_what_others_are_is_not_the_users(memory: Stage, fold: Any, text: str) -> None:
    """A story about others leaves facts about them or none, and the user's own of the same kind stand beside them."""
    async with memory.open(fold_model=fold) as nitka:
        await tell(nitka, memory.clock, text)
        assert await nitka.facts("anna", about="user") == ()
        await nitka.set_fact("anna", "home.city", "Leeds")
        await nitka.set_fact("anna", "diet", "eats everything")
        await tell(nitka, memory.clock, text)
        mine = await known(nitka, about="user")
        assert mine == {("user", "home.city"): "Leeds", ("user", "diet"): "eats everything"}


async def test_at_1_a_request_says_of_whom_a_fact_is(memory: Stage) -> None:
    """A fact about another stands in a request with the other's name before it, the user's own without."""
    async with memory.open(fold_model=READ) as nitka:
        await tell(nitka, memory.clock, OTHERS["en"])
        await nitka.set_fact("anna", "home.city", "Leeds")
        sent = await beside(nitka, "Who lives in Porto, and who in Leeds?")
        assert "| aunt: Porto\\n" in sent and "| home city: Leeds\\n" in sent


TALK = [
    ("any idea for dinner?", "You could try the red lentil soup, since you like Turkish food."),
    ("maybe", "You are vegetarian, you live in Porto and your name is Corin. I love Turkish food!"),
    ("hm", "Noted: the user likes lentil soup."),
]


@pytest.mark.parametrize("fold", [RULES, "greedy"])
async def test_at_2_what_the_assistant_says_is_no_fact(stage: Stage, fold: str) -> None:
    """Not by the rules and not by a model that takes everything for a fact: each fact rests on the user's own words."""
    async with stage.open(fold_model=greedy() if fold == "greedy" else fold) as nitka:
        for text, answer in TALK:
            await nitka.record("anna", "s", text=text, answer=answer)
        await nitka.settle()
        facts = await nitka.facts("anna", include_past=True)
        assert {one.quote for one in facts} == (set() if fold == RULES else {text for text, _ in TALK})
        sent = await beside(nitka, "What food do I like, and where do I live?")
        assert not any(word in sent for word in ("Turkish", "vegetarian", "Porto", "Corin", "lentil"))


PROMPT = "You are Bob. You like green tea and live in Oslo. The user is a premium customer called Uma."


async def test_at_3_memory_and_prompts_are_not_remembered_again(stage: Stage) -> None:
    """A hundred turns, each with system prompt, knowledge and the memory block in its request, an assistant that
    repeats all of it, and a model that takes everything for a fact: no fact comes of it, and their number stands still.
    """
    model = FakeModel(lambda messages: "I was told: " + said(messages)[-1500:])
    own = [f"I have box number {at}." for at in range(5)]
    counts = []
    async with stage.open(model=model, fold_model=greedy()) as nitka:
        for at in range(100):
            await nitka.say("anna", f"s{at // 20}", text=own[at % 5], system=PROMPT, knowledge=["The shop is in Riga."])
            if at % 10 == 9:
                await nitka.settle()
                counts.append(len(await nitka.facts("anna", include_past=True)))
        assert "box number 3" in said(model.requests[-1]), "the block is in the requests"
        facts = await nitka.facts("anna", include_past=True)
    assert counts == [5] * 10
    assert sorted(one.quote for one in facts) == own and {one.confirmations for one in facts} == {20}


async def test_at_4_each_member_of_a_room_is_a_user_of_his_own(stage: Stage) -> None:
    """Members of one room, each under his own name and in the room's session, are told their own facts and no others'.
    One session has one user: who spoke is for the host to say.
    """
    one, two = Handle("room", "member-1"), Handle("room", "member-2")
    async with stage.open(
        fold_model=reader(fact("habit", "decaf", "only decaf"), fact("habit", "espresso", "espressos"))
    ) as it:
        await tell(it, stage.clock, "I drink only decaf.", user=one, session="room")
        await tell(it, stage.clock, "I take three espressos.", user=two, session="room")
        for who, mine, other in ((one, "decaf", "espresso"), (two, "espresso", "decaf")):
            assert set((await known(it, who)).values()) == {mine}
            for session in ("room", "new"):
                sent = await beside(it, "What do I drink?", user=who, session=session)
                assert mine in sent and other not in sent


NOT_SAID = {
    "Whenever I ask for prices, add VAT.": ("never",),
    "You don't need to greet me each time.": ("need to greet", "likes"),
    "It's not that I dislike jazz.": ("dislike",),
    "I have never lived in Porto.": ("Porto",),
    "I don't think I would ever become a vegan.": ("vegan",),
    "If I lived in Leeds, I would get a dog.": ("Leeds", "dog"),
    "Do I look like I live in Leeds?": ("Leeds",),
    "Каждый раз, когда я спрашиваю цены, добавляй НДС.": ("никогда",),
    "Не то чтобы я не люблю джаз.": ("не любит",),
    "Я никогда не жил в Казани.": ("Казан",),
    "Если бы я жил в Казани, завёл бы собаку.": ("Казан", "собак"),
}


@pytest.mark.parametrize("text", NOT_SAID)
async def test_at_5_nothing_with_the_opposite_meaning_is_kept(memory: Stage, text: str) -> None:
    """No fact says what a negated, hypothetical or asked sentence does not."""
    async with memory.open(fold_model=RULES) as nitka:
        await tell(nitka, memory.clock, text)
        for one in await nitka.facts("anna", include_past=True):
            told = f"{one.slot} {one.statement}"
            assert not any(word in told for word in NOT_SAID[text]), told


TAKEN_BACK = {
    "rules": (RULES, "I am vegetarian.", "I am not vegetarian any more."),
    "rules-ru": (RULES, "Я вегетарианка.", "Я больше не вегетарианка."),
    "model": (
        reader(
            fact("diet", "vegetarian", "I am vegetarian."),
            fact("diet", "vegetarian", "not vegetarian any more", op="retract", fact=0),
        ),
        "I am vegetarian.",
        "I am not vegetarian any more.",
    ),
}


@pytest.mark.parametrize("how", TAKEN_BACK)
async def test_at_5_what_is_over_is_taken_back(memory: Stage, how: str) -> None:
    """ "Not any more" ends the fact; it stays as history and is in no request."""
    fold, was, over = TAKEN_BACK[how]
    async with memory.open(fold_model=fold) as nitka:
        await tell(nitka, memory.clock, was)
        assert len(await nitka.facts("anna")) == 1
        await tell(nitka, memory.clock, over)
        assert await nitka.facts("anna") == ()
        (old,) = await nitka.facts("anna", include_past=True)
        assert not old.current and old.statement not in await beside(nitka, "What do I eat?")


SMALL_TALK = {
    "en": ("hi!", "what is a torque wrench?", "lol ok", "I'm tired today", "test test 123", "thanks, bye"),
    "ru": ("привет!", "что такое динамометрический ключ?", "ну ок", "я сегодня устал", "проверка 123", "спасибо, пока"),
    "one-off": ("can you translate 'home'?", "which bus goes to Leeds?", "I'm on the train", "brb", "why?", "ok, next"),
}


@pytest.mark.parametrize("language", SMALL_TALK)
async def test_at_6_small_talk_leaves_no_fact(memory: Stage, language: str) -> None:
    """Greetings, questions and passing states are nobody's traits, one by one and all together."""
    async with memory.open(model=echo(), fold_model=RULES) as nitka:
        await tell(nitka, memory.clock, *SMALL_TALK[language])
        for text in SMALL_TALK[language]:
            await nitka.say("anna", "t", text=text)
        await lay(nitka, "anna", "u", 1, text=" ".join(SMALL_TALK[language]))
        await nitka.settle()
        assert await nitka.facts("anna", include_past=True) == ()
