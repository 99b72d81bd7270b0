"""The offline summariser as laws: pure, bounded, silent on small talk, exact in any language; and the two views
for one request.
"""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.estimate import count
from nitka.layers.summary import advance
from nitka.models.extract import OfflineSummariser, compact, condense, propose
from nitka.models.ports import Summariser
from nitka.types import Line, Message, Proposal, Summary

LAW = settings(max_examples=60, deadline=None)
AT = datetime(2025, 3, 1, tzinfo=UTC)
SAID = [
    "We meet Dr Amara Quill on 4 May at 10:30",
    "actually not Tuesday but Friday",
    "I'm allergic to nuts!",
    "Договорились: привезёт до двадцатого сентября, 12 400 рублей",
    "«Старая мельница» — не звоните после девяти",
    "我对花生过敏，3月5日去杭州。",
    "call 8-912-555-01-77, code KX-4410.",
    "haha ok",
    "?",
    "...",
    "“",
    "\u0000\u2028\ud800",
    "😀👍🏽",
    "1 2 3 4 5,6;7:8",
    "a@b.co https://x.y/z?q=1",
    "ул. Ленина, д. 5",
    "{[(<>)]}",
    "é́é",
    "not not no no",
    "May May May of May the May",
]
TEXT = st.lists(st.sampled_from(SAID) | st.text(max_size=12), max_size=6).map(" ".join)


def talk(*texts: str, start: int = 0) -> list[Message]:
    """Messages in turn of the user and the assistant."""
    return [
        Message(seq=start + i, n=start + i, role="assistant" if i % 2 else "user", text=text, at=AT)
        for i, text in enumerate(texts)
    ]


def folded(*texts: str, cap: int = 300) -> Summary:
    messages, summary = talk(*texts), Summary()
    while summary.cursor < len(messages):
        end = min(summary.cursor + 2, len(messages))
        proposal = propose(summary.lines, messages[summary.cursor : end], cap=cap)
        summary = advance(summary, proposal, cursor=end, cap=cap, count=count, counter="estimate")
    return summary


@LAW
@given(st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=6), st.integers(0, 400))
def test_any_messages_give_a_sound_proposal(texts: list[str], present: list[str], cap: int) -> None:
    """No error; lines of one line each, resting on rows of the slice, in order; positions that exist; the same
    again.
    """
    lines = tuple(Line(full=text, gist=text[:20], first=0, last=1) for text in present)
    messages = talk(*texts, start=7)
    found = propose(lines, messages, cap=cap)
    assert found == propose(lines, messages, cap=cap)
    assert set(found.replaced) <= set(range(len(lines)))
    assert not found.replaced or found.add
    for line in found.add:
        assert line.offline
        assert line.full.splitlines() == [line.full] and line.gist.splitlines() == [line.gist]
        assert 7 <= line.first <= line.last < 7 + len(texts)
        assert line.full.strip() and line.gist.strip() and len(line.gist) <= len(line.full)
    assert [line.first for line in found.add] == sorted(line.first for line in found.add)


@pytest.mark.parametrize(
    "texts",
    [
        ("Hi!", "Hello, how can I help you today?"),
        ("thanks, lol ok", "You're welcome! Have a nice day."),
        ("Haha, that is so funny", "Glad you liked it!"),
        ("Привет, как дела?", "Отлично, спасибо! А у вас?"),
        ("Спасибо большое, хорошего вам дня!", "И вам всего доброго!"),
        ("Ну ладно, понятно", "Обращайтесь!"),
        ("Danke, alles gut!", "Gern geschehen."),
        ("Merci beaucoup !", "Je vous en prie."),
        ("¡Gracias!", "De nada."),
        ("谢谢！", "不客气。"),
        ("test test 123, is it on?", "Loud and clear!"),
        ("Тест, тест, раз два три", "Вижу!"),
    ],
)
def test_small_talk_yields_nothing(texts: tuple[str, str]) -> None:
    assert propose((), talk(*texts), cap=300) == Proposal()


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Our plumber is called Tobias Wren and his number is 0161 496 0312.", ["Tobias Wren", "0161 496 0312"]),
        ("The meeting is on Tuesday the 4th of June at noon.", ["Tuesday the 4th of June", "noon"]),
        ("My daughter Petra is allergic to penicillin.", ["Petra", "penicillin"]),
        ("The order number is QX-88210, paid 149 dollars.", ["QX-88210", "149 dollars"]),
        ("Меня зовут Радмила, я живу на улице Речной, 14.", ["Радмила", "Речной", "14"]),
        ("Приём у Льва Осиповича двадцать третьего мая в девять утра.", ["Льва Осиповича", "23 мая"]),
        ("Залог тридцать две тысячи, вернуть обещали в пятницу.", ["32 тысячи", "в пятницу"]),
        ("Wir treffen Frau Hedwig Kolbe am 14. März um 9 Uhr.", ["Hedwig Kolbe", "14. März"]),
        ("Mon fils Basile est allergique aux noix.", ["Basile", "allergique aux noix"]),
        ("Mi hermano no puede comer gluten.", ["hermano", "no puede comer gluten"]),
        ("Minha irmã Inês mora em Braga.", ["Inês", "Braga"]),
        ("我妹妹叫林小溪，3月5日来杭州。", ["林小溪", "3月5日", "杭州"]),
        ("安娜さんは5月3日に来ます。", ["安娜さん", "5月3日"]),
    ],
)
def test_names_numbers_and_dates_stay_exact_in_every_language(text: str, kept: list[str]) -> None:
    """The gist, the shortest form, still holds them; number words may be written as figures."""
    gist = "\n".join(line.gist for line in propose((), talk(text), cap=300).add)
    assert [value for value in kept if value not in gist] == []


@pytest.mark.parametrize(
    ("texts", "gone", "there"),
    [
        (
            ("The budget is 7,000 euros.", "Noted.", "Actually the budget is 9,500 euros now.", "Fine."),
            "7,000",
            "9,500",
        ),
        (
            (
                "The fitter comes on Monday the 5th at ten.",
                "Good.",
                "He moved it to Thursday the 8th at ten.",
                "Noted.",
            ),
            "Monday",
            "Thursday the 8th",
        ),
        (
            ("Гостей будет двадцать пять.", "Записал.", "Гостей теперь будет тридцать, поправка.", "Исправил."),
            "25",
            "тридцать",
        ),
        (
            ("Встреча в среду, 4 июня, в десять.", "Ок.", "Встречу перенесли на пятницу, 6 июня.", "Понял."),
            "4 июня",
            "6 июня",
        ),
        (
            (
                "We have not decided on the band yet, Copper Lane or a DJ.",
                "Left open.",
                "The band is decided: Copper Lane.",
                "Great.",
            ),
            "not decided",
            "Copper Lane",
        ),
    ],
)
def test_a_later_value_replaces_the_earlier_line(texts: tuple[str, ...], gone: str, there: str) -> None:
    text = folded(*texts).text
    assert gone not in text
    assert there in text


def test_a_line_that_says_more_than_the_old_value_stays() -> None:
    """The code was not replaced, so the line that holds it is not removed with the date beside it."""
    text = folded("Visit on Monday the 5th, case CS-77120.", "Noted.", "Moved to Thursday the 8th.", "Noted.").text
    assert "CS-77120" in text
    assert "Thursday the 8th" in text


def test_a_negation_stays_with_what_it_bears_on() -> None:
    gists = [
        line.gist for line in propose((), talk("Менять школу нельзя.", "", "She must not eat chicken."), cap=300).add
    ]
    assert any("нельзя" in gist for gist in gists)
    assert all("not" in gist for gist in gists if "chicken" in gist)


def test_the_assistant_is_named_where_it_promises() -> None:
    (line,) = propose((), talk("ok", "I'll send the corrected invoice by Friday."), cap=300).add
    assert line.full.startswith("assistant: ")
    assert "Friday" in line.gist


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("I promised to bake the cake for Vera.", 'Noted. "I promised to bake the cake for Vera."'),
        ("I promised to bake the cake for Vera.", "You promised to bake the cake for Vera, noted."),
        ("Я обещала испечь торт для Веры.", "Записала: «я обещала испечь торт для Веры»."),
        ("Я обещала испечь торт для Веры.", "Хорошо, вы обещали испечь торт для Веры."),
    ],
)
def test_an_answer_that_says_again_what_the_user_said_adds_nothing(said: str, answer: str) -> None:
    (line,) = propose((), talk(said, answer), cap=300).add
    assert (line.first, line.last) == (0, 0)
    assert not line.full.startswith(("assistant", "ассистент"))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("Без орехов: у Веры аллергия.", ["Без орехов", "Веры", "аллергия"]),
        ("No nuts, because Vera has an allergy.", ["No nuts", "Vera", "allergy"]),
        ("Она согласна на сорок три пятьсот.", ["43 500", "согласна"]),
        ("Позвонила: Савелий свободен утром, с восьми до одиннадцати.", ["Савелий", "свободен", "с восьми до"]),
        ("Напоминай мне, пожалуйста, раз в неделю.", ["Напоминай", "раз в неделю"]),
        ("Антиплагиат у них не ниже 75 процентов.", ["не ниже 75"]),
        ("Рома с Элей не едут.", ["Элей", "не едут"]),
    ],
)
def test_a_gist_keeps_both_halves_of_what_was_said(text: str, kept: list[str]) -> None:
    """The reason with the ban, the verb with its negation, the value with what it is of."""
    gist = "\n".join(line.gist for line in propose((), talk(text), cap=300).add)
    assert [value for value in kept if value not in gist] == []


@pytest.mark.parametrize(
    ("texts", "gone", "there"),
    [
        (
            ("Хотим на Азоры, на десять дней.", "Прекрасно.", "Посчитали: летим на Мадейру.", "Хорошо."),
            "Азоры",
            "Мадейр",
        ),
        (
            ("We want to cruise to Wexcombe.", "Lovely.", "We're going to Ardley instead.", "Fine."),
            "Wexcombe",
            "Ardley",
        ),
        (
            ("Водитель Назар позвонит.", "Хорошо.", "Водитель теперь другой, Эльдар.", "Ясно."),
            "Назар",
            "Эльдар",
        ),
    ],
)
def test_another_name_in_the_same_place_replaces_the_former(texts: tuple[str, ...], gone: str, there: str) -> None:
    text = folded(*texts).text
    assert gone not in text
    assert there in text


def test_a_change_of_one_thing_leaves_its_neighbours() -> None:
    texts = ("Гостей тридцать восемь, бюджет четыреста тысяч, автобус на 45 мест.", "Ок.", "Гостей стало сорок один.")
    text = folded(*texts).text
    assert "тридцать восемь" not in text
    assert "38" not in text
    assert all(value in text for value in ("четыреста тысяч", "45 мест", "сорок один"))


def test_a_turn_summary_of_many_messages_reads_the_newest_and_the_most_telling() -> None:
    """Whatever is between, what was exact long ago and what was said last are both there."""
    small = ["so it goes, one day after another", "I see"] * 150
    messages = talk("My sister Nell has the code KX-4410.", "Noted.", *small, "Actually we meet on 4 May.", "Fine.")
    text = "\n".join(line.text for line in compact(messages, room=300, count=count))
    assert "KX-4410" in text
    assert "4 May" in text


def test_what_the_summary_holds_is_not_written_again() -> None:
    texts = ("My sister Nell lives in Porto.", "Noted.") * 5
    assert len(folded(*texts).lines) == 1


def test_it_stands_behind_the_port() -> None:
    offline: Summariser = OfflineSummariser()
    messages = talk("My sister Nell lives in Porto.")
    assert asyncio.run(offline.propose((), messages, cap=300)) == propose((), messages, cap=300)
    assert offline.name == "offline"


@LAW
@given(st.lists(TEXT, max_size=8), st.integers(0, 60))
def test_a_turn_summary_is_within_its_room_and_in_order(texts: list[str], room: int) -> None:
    lines = compact(talk(*texts), room=room, count=count)
    assert count("\n".join(line.text for line in lines)) <= room
    assert [line.first for line in lines] == sorted(line.first for line in lines)


@LAW
@given(TEXT, st.integers(0, 40), st.integers(1, 30))
def test_a_condensed_text_is_within_its_room(text: str, room: int, times: int) -> None:
    long = text * times
    short = condense(long, room=room, count=count)
    assert count(short) <= max(room, 0)
    assert short == long or count(long) > room


def test_head_and_tail_stay_verbatim_between_visible_marks() -> None:
    head, tail = "Dear all, this is how it begins. ", " And this is how it ends, yours Petra."
    middle = "Nothing of note was said. " * 300 + "Mr Osgood Finch owes us 4,400 pounds. " + "Again nothing. " * 300
    short = condense(head + middle + tail, room=200, count=count)
    first, opening, *said, closing, last = short.split("\n")
    assert first.startswith(head.strip())
    assert last.endswith(tail.strip())
    assert closing == "[… end of the condensed part …]"
    condensed = len(head + middle + tail) - len(first) - len(last)
    assert opening == f"[… condensed: {condensed} characters …]"
    assert any("Osgood Finch" in line and "4,400" in line for line in said)


def test_a_russian_text_is_condensed_in_russian() -> None:
    text = "Начало письма. " + "Ничего важного не было сказано. " * 400 + " Конец письма."
    short = condense(text, room=150, count=count)
    assert "[… сжато: " in short
    assert "[… конец сжатой части …]" in short


@pytest.mark.parametrize("piece", ["a", "слово и дело ", "Ann,", "1 ", "你好世界", "\n", "?", ". a", "😀"])
def test_a_text_of_one_piece_over_and_over_is_condensed_too(piece: str) -> None:
    text = piece * (200_000 // len(piece))
    short = condense(text, room=300, count=len)
    assert len(short) <= 300
    assert text.startswith(short.split("\n[…")[0].rstrip())
