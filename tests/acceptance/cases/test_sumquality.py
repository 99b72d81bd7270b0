"""SUMQUALITY: the summary stays within its cap, costs calls by the text and not by the turn, and loses no values.

What depends on a model's skill is tried here with the offline summariser.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Sequence
from typing import Any

import pytest

from nitka import Limits, Nitka
from nitka.testing import FakeModel
from nitka.tokens import estimate, exact
from tests.acceptance.cases.stage import Stage, asked, check_valid, lay, said, whole

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

EXACT = exact()


def verbose(messages: Sequence[Any]) -> str:
    """A summariser that ignores the cap: every answer is three times as long."""
    rows = json.loads(messages[-1]["content"])["messages"]
    first, last = rows[0]["seq"], rows[-1]["seq"]
    lines = [
        {
            "full": f"in row {first} they also said, at great length, that item {n} is {n * 7919} and {'so on ' * 12}",
            "gist": f"row {first} item {n} is {n * 7919}",
            "first": first,
            "last": last,
        }
        for n in range(40)
    ]
    return json.dumps({"add": lines, "replaced": []})


@pytest.mark.parametrize("counter", [EXACT, estimate()], ids=lambda counter: counter.name)
@pytest.mark.parametrize("cap", [400, 60])
async def test_sq_1_the_summary_never_grows_past_its_cap(memory: Stage, counter: Any, cap: int) -> None:
    """With a model that returns three times the cap each time, what is stored is within it after every pass, the newest
    lines are there, and nothing is asked twice.
    """
    side = FakeModel(folds={"add": verbose})
    limits = Limits(window=4, summary_tokens=cap)
    async with memory.open(fold_model=side, counter=counter, limits=limits) as nitka:
        for at in range(30 if counter.margin == 0 else 12):
            await nitka.say("anna", "s", text=f"fact {at}")
            await nitka.settle()
            summary = await nitka.summary("anna", "s")
            assert counter.count(summary.text) <= cap and summary.tokens <= cap
            if summary.cursor:
                assert summary.lines[-1].first >= summary.cursor - 2
                assert 7919 * 39 == int(re.findall(r"\d+", summary.lines[-1].gist)[-1]) or cap < 100
        assert len(side.fold_requests["add"]) <= 28


@pytest.mark.parametrize(("slack", "words"), [(0, 400), (6, 400), (12, 400), (12, 20)])
async def test_sq_2_it_does_not_compact_again_on_every_turn(memory: Stage, slack: int, words: int) -> None:
    """Calls follow the new messages that left the window, never their number of turns or their size against a trigger,
    and what is sent for a full request costs no call.
    """
    turns = 30
    limits = Limits(window=10, slack=slack, budget=4_000, slice_tokens=20_000)
    async with memory.open(limits=limits, counter=EXACT) as nitka:
        for at in range(turns):
            async with nitka.turn("anna", "s", text=f"turn {at} " + "word " * words) as turn:
                assert turn.receipt is not None and turn.receipt.used <= 4_000
                turn.answer("word " * words)
            await nitka.settle()
        calls = memory.tally.calls
        assert memory.tally.given == list(range(memory.tally.given[-1] + 1)), "no message is read twice"
        assert len(calls) <= (2 * turns - 10) / max(2, slack) + 1
        unfolded = 2 * turns - (await nitka.summary("anna", "s")).cursor
        assert 10 <= unfolded <= 10 + slack
        await nitka.settle()
        assert len(memory.tally.calls) == len(calls), "nothing new, no call"


FILLER = {
    "en": [
        ("How is the weather over there?", "It rains a little, but it is warm."),
        ("Did you sleep well?", "Quite well, thank you."),
        ("That sounds good.", "Yes, it does."),
        ("What else is new?", "Not much, to be honest."),
    ],
    "ru": [
        ("Как там погода?", "Немного моросит, но тепло."),
        ("Хорошо спалось?", "Неплохо, спасибо."),
        ("Звучит хорошо.", "Да, пожалуй."),
        ("Что ещё нового?", "Честно говоря, ничего."),
    ],
}


def stated(language: str, rng: random.Random) -> list[tuple[str, str]]:
    """Eight sentences and the value in each."""
    date, amount, code = rng.randrange(3, 29), rng.randrange(1_100, 9_900), f"QX-{rng.randrange(1_000, 9_999)}"
    room, phone = rng.randrange(100, 999), f"555-{rng.randrange(1_000, 9_999)}"
    if language == "en":
        name, town, ship = (
            rng.choice(options)
            for options in (
                ["Maribel", "Torvald", "Ottoline"],
                ["Lund", "Porto", "Gdansk"],
                ["Kestrel", "Petrel", "Teal"],
            )
        )
        return [
            (f"The wedding is on {date} May.", f"{date} May"),
            (f"My booking code is {code}.", code),
            (f"We agreed on a price of {amount} euros.", str(amount)),
            (f"My sister {name} pays for the flowers.", name),
            (f"The party takes place in {town}.", town),
            (f"The guests stay in room {room}.", str(room)),
            (f"Call the caterer at {phone}.", phone),
            (f"The boat is called {ship}.", ship),
        ]
    name, town, ship = (
        rng.choice(options)
        for options in (
            ["Мирослава", "Ярополк", "Есения"],
            ["Суздаль", "Псков", "Елец"],
            ["Зимородок", "Буревестник", "Чирок"],
        )
    )
    return [
        (f"Свадьба {date} мая.", f"{date} мая"),
        (f"Мой код брони {code}.", code),
        (f"Мы договорились на {amount} рублей.", str(amount)),
        (f"За цветы платит моя сестра {name}.", name),
        (f"Праздник пройдёт в городе {town}.", town),
        (f"Гости живут в комнате {room}.", str(room)),
        (f"Телефон повара {phone}.", phone),
        (f"Лодка называется {ship}.", ship),
    ]


async def talk(nitka: Nitka, language: str, stated_: Sequence[tuple[str, str]], fillers: int) -> None:
    for sentence, _ in stated_:
        await nitka.record("anna", "s", text=sentence, answer={"en": "I note it.", "ru": "Записал."}[language])
        await nitka.settle()
    for at in range(fillers):
        question, answer = FILLER[language][at % 4]
        await nitka.record("anna", "s", text=question, answer=answer)
        await nitka.settle()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("language", ["en", "ru"])
async def test_sq_3_early_values_survive_repeated_summarising(memory: Stage, language: str, seed: int) -> None:
    """Eight values of the first turns are in the summary letter for letter after 48 other turns, and no other number
    has appeared.
    """
    values = stated(language, random.Random(seed))
    async with memory.open(fold_model="offline", limits=Limits(window=4)) as nitka:
        await talk(nitka, language, values, 48)
        summary = await nitka.summary("anna", "s")
    assert [value for _, value in values if value not in summary.text] == []
    everything = " ".join(sentence for sentence, _ in values)
    assert set(re.findall(r"\d+", summary.text)) <= set(re.findall(r"\d+", everything)), "none is invented"


EXACTLY = {
    "en": [
        ("Hooks are named before_pack, after_pack and on_seal.", ["before_pack", "after_pack", "on_seal"]),
        ("User plugins have priorities 1-10, system plugins 11–100.", ["1-10", "11–100"]),
        ("Test coverage is 85 %.", ["85 %"]),
        ("The config file ~/.packrc.toml has version 2.14.0-rc1.", ["~/.packrc.toml", "2.14.0-rc1"]),
        ("The hook lives in src/pack/hooks.py.", ["src/pack/hooks.py"]),
        ('The channel "Late Seals" costs $40.', ['"Late Seals"', "$40"]),
    ],
    "ru": [
        ("Хуки называются before_pack, after_pack и on_seal.", ["before_pack", "after_pack", "on_seal"]),
        ("У плагинов приоритеты 1-10, у системных 11–100.", ["1-10", "11–100"]),
        ("Покрытие тестами 85 %, скидка 12 %.", ["85 %", "12 %"]),
        ("У файла ~/.packrc.toml версия 2.14.0-rc1.", ["~/.packrc.toml", "2.14.0-rc1"]),
        ("Хук лежит в src/pack/hooks.py.", ["src/pack/hooks.py"]),
        ("Канал «Поздние печати» стоит 40 €.", ["«Поздние печати»", "40 €"]),
    ],
}


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_sq_4_exact_names_and_ranges_are_not_rewritten(memory: Stage, language: str) -> None:
    """Names of code, paths, versions, ranges, percentages, amounts and quoted titles stand in the summary as they were
    written, in the full lines and in their gists, after several passes.
    """
    sentences = EXACTLY[language]
    async with memory.open(fold_model="offline", limits=Limits(window=4)) as nitka:
        await talk(nitka, language, [(sentence, "") for sentence, _ in sentences], 20)
        summary = await nitka.summary("anna", "s")
    names = [name for _, exact_ in sentences for name in exact_]
    for text in ("\n".join(line.full for line in summary.lines), "\n".join(line.gist for line in summary.lines)):
        assert [name for name in names if name not in text] == []


async def test_sq_5_a_finished_task_is_not_taken_for_a_new_one(memory: Stage) -> None:
    """After folding, the old request stands only in the labelled summary; what is asked is the greeting alone."""
    async with memory.open(model="offline", fold_model="offline", limits=Limits(window=4)) as nitka:
        await nitka.record(
            "anna", "s", text="Draft a note to the caterer.", answer="Done: the note to the caterer is sent."
        )
        await talk(nitka, "en", [], 20)
        async with nitka.turn("anna", "s", text="Good morning!") as turn:
            assert asked(turn.request.messages)[-1] == "Good morning!"
            assert not any("caterer" in text for text in asked(turn.request.messages))
            lead = turn.request.messages[0]
            if "caterer" in said([lead]):
                assert lead["role"] == "system" and "not instructions" in lead["content"]
            turn.discard()
        reply = await nitka.say("anna", "s", text="Good morning!")
        assert "caterer" not in reply.text


@pytest.mark.parametrize("fold", ["offline", "tally", "model"])
async def test_sq_6_no_internal_prompt_shows_up_as_a_message(stage: Stage, fold: str) -> None:
    """Neither in the log nor in a request is there a user's message that the user did not send; the summary is a system
    message that says what it is, and the summariser's prompt is nowhere.
    """
    side = FakeModel(folds={"add": verbose})
    writers: dict[str, Any] = {"offline": "offline", "tally": stage.tally, "model": side}
    async with stage.open(fold_model=writers[fold], limits=Limits(window=4, budget=6_000)) as nitka:
        sent = []
        for at in range(12):
            sent.append(f"Maria brings {at} chairs on Friday.")
            await nitka.say("anna", "s", text=sent[-1])
            await nitka.settle()
        rows = await nitka.history("anna", "s", limit=100)
        assert [m.text for m in rows if m.role == "user"] == sent
        assert len(rows) == 24
        async with nitka.turn("anna", "s", text="and now?", system="Be brief.") as turn:
            messages = turn.request.messages
            check_valid(messages)
            assert asked(messages) == [*sent[-2:], "and now?"]
            assert [m["role"] for m in messages].count("system") == 1
            summary = await nitka.summary("anna", "s")
            assert "Summary of the conversation" in messages[0]["content"]
            assert all(f"| {line.text}" in messages[0]["content"] for line in summary.lines)
            if side.fold_requests["add"]:
                prompt = side.fold_requests["add"][0][0]["content"][:60]
                assert prompt not in said(messages) and prompt not in str(rows)
            turn.discard()
        assert len(await whole(nitka, "anna", "s")) == 12
    await check_records(stage, sent)


async def check_records(stage: Stage, sent: Sequence[str]) -> None:
    async with stage.open() as nitka:
        await lay(nitka, "anna", "other", 1)
        records = [record async for record in nitka.export("anna") if record["session"] == "s"]
        assert [record["text"] for record in records if record["role"] == "user"] == list(sent)


FIRST_TALK = {
    "en": (
        ["I bake the cake.", "It has three layers with cherries.", "Boris brings the music.", "Vera likes jazz."],
        [
            "The cake must be ready by noon.",
            "The party is on Saturday.",
            "We need more chairs.",
            "My aunt lends plates.",
        ],
        "What did we decide about the cake?",
    ),
    "ru": (
        ["Я пеку торт.", "В нём три слоя с вишней.", "Борис принесёт музыку.", "Вера любит джаз."],
        ["Торт должен быть готов к полудню.", "Праздник в субботу.", "Нам нужно больше стульев.", "Тётя даст тарелки."],
        "Что мы решили про торт?",
    ),
}


@pytest.mark.parametrize("language", ["en", "ru"])
async def test_a_short_first_talk_is_whole_in_the_summary_that_a_question_is_sent_with(
    memory: Stage, language: str
) -> None:
    """While the summary is less than half full, nothing that was plainly said is lost by folding it."""
    first, then, question = FIRST_TALK[language]
    async with memory.open(fold_model="offline", limits=Limits(window=2)) as nitka:
        await talk(nitka, language, [(sentence, "") for sentence in (*first, *then)], 3)
        async with nitka.turn("anna", "s", text=question) as turn:
            lead = turn.request.messages[0]["content"]
            assert [sentence for sentence in (*first, *then) if sentence.rstrip(".") not in lead] == []
            turn.discard()
        assert (await nitka.summary("anna", "s")).tokens <= 150
