"""The offline stand-in answers from what the request holds, in the user's language, and says when it cannot."""

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka import Nitka
from nitka.config import Settings
from nitka.errors import BadInput, ModelError
from nitka.models.choose import choose_chat
from nitka.models.offline import ENGLISH, RUSSIAN, OfflineChat, reply
from nitka.models.openai import OpenAIChat
from nitka.models.ports import ChatModel
from nitka.testing import MemoryStore
from nitka.tokens import exact
from nitka.vault.roots import KeyRing, Ring

Messages = list[dict[str, Any]]
ROLES = {"u:": "user", "a:": "assistant", "s:": "system"}


def cases() -> list[Any]:
    """Each question of the corpus, with the messages above it and what its answer must and must not hold."""
    before: Messages = []
    asked: list[tuple[str, Messages, str, list[tuple[str, str]]]] = []
    name = ""
    for line in (Path(__file__).parent / "corpus" / "offline.txt").read_text("utf-8").splitlines():
        mark, _, text = line.partition(" ")
        if mark == "==":
            before, name = [], text
        elif mark in ROLES and name:
            before = [*before, {"role": ROLES[mark], "content": text.replace("\\n", "\n")}]
        elif mark == "?":
            asked.append((name, before, text, []))
        elif mark in ("=", "-", "0") and name:
            asked[-1][3].append((mark, text))
    return [pytest.param(messages, text, rules, id=f"{name}: {text}") for name, messages, text, rules in asked]


@pytest.mark.parametrize(("before", "text", "rules"), cases())
def test_a_question_is_answered_from_the_conversation(
    before: Messages, text: str, rules: list[tuple[str, str]]
) -> None:
    said = reply([*before, {"role": "user", "content": text}])
    assert rules
    for mark, words in rules:
        assert (words in said) if mark == "=" else (words not in said) if mark == "-" else is_none(said), said


def is_none(said: str) -> bool:
    return said.split("\n\n")[0] in (ENGLISH.none, RUSSIAN.none)


# Whole conversations, with the stand-in's own answers between the questions


def conversations() -> Iterator[Any]:
    """Each conversation of the two corpora as its lines: what is said, and what the answer must be like."""
    for file in ("offline_en.txt", "offline_ru.txt"):
        text = (Path(__file__).parent / "corpus" / file).read_text("utf-8")
        for part in text.split("\n== ")[1:]:
            name, *lines = part.splitlines()
            yield pytest.param([line for line in lines if line], id=name)


def held(lines: list[str]) -> Iterator[tuple[str, str, list[tuple[str, str]]]]:
    """What was said, what was answered, and the rules for that answer."""
    messages: Messages = []
    for said, rules in turns(lines):
        if said == "/new":
            messages = []
            continue
        messages.append(user(said))
        answer = reply(messages)
        messages.append({"role": "assistant", "content": answer})
        yield said, answer, rules


def turns(lines: list[str]) -> list[tuple[str, list[tuple[str, str]]]]:
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for line in lines:
        mark, _, text = line.partition(" ")
        if mark in ("?", "u:", "/new"):
            found.append((text or mark, []))
        else:
            found[-1][1].append((mark, text))
    return found


@pytest.mark.parametrize("lines", list(conversations()))
def test_a_whole_conversation_is_answered(lines: list[str]) -> None:
    asked = 0
    for said, answer, rules in held(lines):
        for mark, words in rules:
            asked += 1
            good = (words in answer) if mark == "=" else (words not in answer) if mark == "-" else is_none(answer)
            assert good, (said, answer)
    assert asked > 3


@pytest.mark.parametrize("lines", list(conversations()))
def test_no_answer_quotes_an_echo_or_says_its_notice_twice(lines: list[str]) -> None:
    leads = [lead for phrases in (ENGLISH, RUSSIAN) for lead in phrases.leads.values()]
    for said, answer, _ in held(lines):
        assert sum(answer.count(lead) for lead in leads) <= 1, (said, answer)
        assert not re.search('""|««|[«"]– ', answer), (said, answer)
        assert len(re.findall("stand-in|Автономный", answer)) <= 1, (said, answer)


@given(st.integers(0, 23), st.integers(0, 59), st.integers(1, 28))
def test_a_time_is_never_cut(hour: int, minute: int, day: int) -> None:
    clock = f"{hour}:{minute:02}"
    assert reply(dialogue(f"The train leaves at {clock}, on {day} May.", "What time does the train leave?")).startswith(
        f"at {clock}"
    )
    assert f"{day} мая в {clock}." in reply(dialogue(f"Поезд {day} мая в {clock}.", "Когда поезд?"))


@given(st.sampled_from(["euros", "kg", "guests", "roubles"]), st.integers(1, 99), st.integers(1, 999))
def test_an_amount_is_quoted_with_all_its_digits(unit: str, thousands: int, rest: int) -> None:
    amount = f"{thousands},{rest:03}"
    said = reply(dialogue(f"We expect {amount} {unit}.", f"How many {unit} do we expect?"))
    assert said.startswith(amount)


def test_what_the_assistant_alone_said_may_be_quoted_and_what_it_repeats_not() -> None:
    before: Messages = [
        user("The hall is painted green."),
        {"role": "assistant", "content": "Green it is: the hall is painted green. I suggest linseed oil for the door."},
    ]
    assert "You said" in reply([*before, user("What colour is the hall?")])
    assert "I said" in reply([*before, user("What did you suggest for the door?")])


EARLY = {
    "en": (
        ["My name is Priya.", "The flat costs 1450 euros a month.", "The movers come on 9 October at 8:30."],
        [("What is my name?", "Priya"), ("How much is the flat?", "1450"), ("When do the movers come?", "8:30")],
        "We saw house number {} today.",
    ),
    "ru": (
        ["Меня зовут Настя.", "Квартира стоит 45000 рублей в месяц.", "Грузчики приедут 9 октября в 8:30."],
        [("Как меня зовут?", "Настя"), ("Сколько стоит квартира?", "45000"), ("Когда приедут грузчики?", "8:30")],
        "Сегодня посмотрели дом номер {}.",
    ),
}


@pytest.mark.parametrize("language", EARLY)
def test_early_facts_are_known_when_only_the_summary_has_them(language: str) -> None:
    told, asked, between = EARLY[language]

    async def work() -> None:
        async with Nitka.open(MemoryStore(), keys=KeyRing(Ring.new())) as nitka:
            for text in (*told, *(between.format(number) for number in range(20))):
                await nitka.say("u", "s", text=text)
            await nitka.settle()
            for question, answer in asked:
                async with nitka.turn("u", "s", text=question) as turn:
                    history = [m for m in turn.request.messages if m["role"] != "system"]
                    assert all(answer not in str(message["content"]) for message in history)
                    said = reply(turn.request.messages)
                    turn.discard()
                assert answer in said, (question, said)

    asyncio.run(work())


NAMES = st.sampled_from("Anna Corin Oyelaran Мирон Зульфия Bartholomew Szczepan Ясень".split())
CHAT = st.lists(
    st.sampled_from(["Let us see.", "The weather is fine.", "Погода хорошая.", "Хлеб уже в печи."]), max_size=6
)


def dialogue(*texts: str) -> Messages:
    """The user's texts, each with an answer, the last one without."""
    messages = [message for text in texts for message in (user(text), {"role": "assistant", "content": "Noted."})]
    return messages[:-1]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@given(NAMES, NAMES, CHAT, CHAT)
def test_the_latest_of_two_statements_is_believed_wherever_they_stand(
    a: str, b: str, first: list[str], then: list[str]
) -> None:
    texts = [f"My name is {a}.", *first, f"My name is {b}.", *then]
    assert reply(dialogue(*texts, "What is my name?")).startswith(f"{b}.")
    texts = [f"Меня зовут {a}.", *first, f"Меня зовут {b}.", *then]
    assert reply(dialogue(*texts, "Как меня зовут?")).startswith(f"{b}.")


@given(st.integers(2, 999), CHAT)
def test_a_number_is_found_among_other_talk(number: int, other: list[str]) -> None:
    assert reply(dialogue(*other, f"The rent is {number} euros", *other, "How much is the rent?")).startswith(
        f"{number} euros."
    )
    assert reply(dialogue(*other, f"Аренда стоит {number} тысяч", *other, "Сколько стоит аренда?")).startswith(
        f"{number} тысяч."
    )


@given(st.text(max_size=80))
def test_nothing_is_answered_from_the_question_itself(text: str) -> None:
    """Without a history there is nothing to quote, whatever the question says."""
    said = reply([user(f"My name is Anna, {text} what is my name?")])
    assert "You said" not in said and "Вы сказали" not in said


@given(
    st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), st.text(max_size=40)), max_size=6),
    st.text(),
)
def test_any_request_with_a_text_gets_an_answer_and_the_same_one(before: list[tuple[str, str]], text: str) -> None:
    messages = [{"role": role, "content": content} for role, content in before] + [user("x" + text)]
    assert reply(messages).strip() and reply(messages) == reply(messages)


def test_what_it_is_stands_in_the_first_answer_and_not_in_every_one() -> None:
    assert ENGLISH.label in reply([user("My name is Anna")])
    assert RUSSIAN.label in reply([user("Меня зовут Анна")])
    assert ENGLISH.label not in reply(dialogue("My name is Anna", "I live in Leeds"))


@pytest.mark.parametrize("messages", [[], [{"role": "system", "content": "Be brief."}], [user(" \n")], [user("")]])
def test_a_request_without_a_user_s_text_is_an_error(messages: Messages) -> None:
    with pytest.raises(ModelError):
        reply(messages)


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "text", "text": "My name is Anna."}, {"type": "image_url", "image_url": {"url": "x"}}]
    assert reply([{"role": "user", "content": parts}, user("What is my name?")]).startswith("Anna.")


LONG = dialogue("The garden has " + ", ".join(f"tree {n}" for n in range(90)) + ".", "What does the garden have?")


@given(st.integers(12, 400))
def test_an_answer_stays_within_its_tokens_and_is_the_same_in_pieces(most: int) -> None:
    async def work() -> None:
        chat: ChatModel = OfflineChat()
        whole = (await chat.complete(LONG, max_tokens=most)).text
        pieces = [piece async for piece in chat.stream(LONG, max_tokens=most)]
        assert "".join(pieces) == whole and all(len(piece.split()) in (1, 2, 3) for piece in pieces)
        assert exact().count(whole) <= most
        await chat.close()

    asyncio.run(work())


def test_json_is_not_pretended() -> None:
    with pytest.raises(ModelError):
        asyncio.run(OfflineChat().complete([user("hi")], max_tokens=9, schema={"type": "object"}))


# Choosing a model


def env(**more: str) -> Settings:
    return Settings.read({"HOME": "/h", **more})


def test_a_model_is_chosen_by_name() -> None:
    assert choose_chat("offline", env()).name == "offline"
    assert choose_chat("openai:gpt-5-mini", env(OPENAI_API_KEY="sk-1")).name == "openai:gpt-5-mini"
    local = choose_chat("openai:qwen3:8b", env(OPENAI_BASE_URL="http://localhost:11434/v1"))
    assert isinstance(local, OpenAIChat) and local.name == "openai:qwen3:8b"
    own = OfflineChat()
    assert choose_chat(own, env()) is own


@pytest.mark.parametrize("spec", ["", "gpt-5", "openai", "openai:", "openai: ", "OFFLINE", "anthropic:x"])
def test_another_name_is_refused_with_what_is_allowed(spec: str) -> None:
    with pytest.raises(BadInput, match=r'"offline" or "openai:NAME"'):
        choose_chat(spec, env(OPENAI_API_KEY="sk-1"))


def test_openai_itself_needs_a_key() -> None:
    with pytest.raises(BadInput, match="OPENAI_API_KEY"):
        choose_chat("openai:gpt-5-mini", env())
