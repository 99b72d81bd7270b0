"""What the offline summariser writes while there is room, and that it copies exact strings letter for letter."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.models.extract import propose
from nitka.models.extract.lexicon import lexicon
from nitka.types import Line
from tests.unit.test_extract import LAW, folded, talk

PLAIN = {
    "en": [
        "I bake the cake.",
        "It has three layers with cherries.",
        "Boris brings the music.",
        "The cake must be ready by noon.",
        "Vera likes jazz.",
        "Our landlord is selling the flat.",
        "I work as a nurse.",
        "The garden is behind the house.",
    ],
    "ru": [
        "Я пеку торт.",
        "В нём три слоя с вишней.",
        "Борис принесёт музыку.",
        "Торт должен быть готов к полудню.",
        "Вера любит джаз.",
        "Хозяин продаёт квартиру.",
        "Я работаю медсестрой.",
        "Сад за домом.",
    ],
}
ANSWER = {"en": "I note it.", "ru": "Записал."}


def turns(language: str, *said: str) -> list[str]:
    return [text for one in said for text in (one, ANSWER[language])]


@pytest.mark.parametrize("language", ["en", "ru"])
@pytest.mark.parametrize("together", [False, True])
def test_every_plain_statement_earns_a_line_while_there_is_room(language: str, together: bool) -> None:
    """Each sentence stands whole in the summary, whether said alone or all in one message."""
    said = PLAIN[language]
    summary = folded(*turns(language, *([" ".join(said)] if together else said)))
    assert [line.full for line in summary.lines] == [text.rstrip(".") for text in said]


@pytest.mark.parametrize(
    ("language", "said"),
    [
        (
            "en",
            ["That sounds good.", "haha that is funny", "I see what you mean", "nice to meet you", "tell me a joke"],
        ),
        ("en", ["you are right", "let me think", "test test 123", "Write a poem about rain", "sounds like a plan"]),
        ("ru", ["Звучит хорошо.", "ха-ха, смешно", "понимаю, о чём ты", "приятно познакомиться", "расскажи анекдот"]),
        ("ru", ["ты прав", "дай подумать", "тест тест 123", "Напиши стихи о дожде", "звучит как план"]),
    ],
)
def test_talk_about_the_talk_and_requests_are_no_statements(language: str, said: list[str]) -> None:
    assert folded(*turns(language, *said)).lines == ()


@pytest.mark.parametrize("language", ["en", "ru"])
def test_a_filling_summary_takes_no_plain_statement(language: str) -> None:
    """What is exact is still written, what is plain no longer."""
    present = [Line(full=f"QX-{n} {'of the red boat ' * 3}", gist=f"QX-{n}", first=0, last=0) for n in range(100, 112)]
    new = talk(PLAIN[language][4], ANSWER[language], "QX-88210 12.05.2025, 14 900 €", start=9)
    assert [line.full for line in propose(present, new, cap=150).add] == ["QX-88210 12.05.2025, 14 900 €"]


@pytest.mark.parametrize("language", ["en", "ru", "de", "fr", "es", "pt", "zh"])
def test_the_marks_of_a_condensed_text_are_no_statement(language: str) -> None:
    texts = lexicon(language).texts
    shortened = f"{texts['open_mark'].format(count=3030810)}\nKX-4410\n{texts['close_mark']}\n"
    assert [line.full for line in propose((), talk(shortened), cap=300).add] == ["KX-4410"]


CODED = st.from_regex(
    r"[a-z]{2,6}_[a-z]{2,6}|~/\.[a-z]{2,6}\.toml|[1-9]\.[0-9]{2}\.[0-9]-rc[1-9]|[a-z]{2,5}/[a-z]{2,5}/[a-z]{2,5}\.py"
    r"|--[a-z]{3,6}|#[a-z]{3,5}-[a-z]{3,5}|[A-Z]{3,5}_[A-Z]{2,4}=[1-9]|[1-9]{2}[ \u00a0]?%"
    r"|[1-9]-[1-9]0|[1-9]{2}–[1-9]{3}"
    r"|[€$][1-9]{2}|[1-9]{2} €|`[a-z]{3,5} -[a-z]`|[a-z]{2,5}_[a-z]{2,5}\(\)",
    fullmatch=True,
)


@LAW
@given(CODED, st.sampled_from(["The pump setting is now {} for Marta.", "Настройка насоса теперь {} у Марты."]))
def test_what_looks_like_code_or_an_amount_is_copied_letter_for_letter(code: str, said: str) -> None:
    """In the full line and in the gist."""
    lines = propose((), talk(said.format(code)), cap=300).add
    for text in (" ".join(line.full for line in lines), " ".join(line.gist for line in lines)):
        assert code in text


def test_a_change_of_mind_after_a_no_is_written() -> None:
    """It gives no name and no number, only what now holds."""
    lines = propose((), talk("Нет, передумали: стены будут серыми."), cap=300).add
    assert [line.full for line in lines] == ["стены будут серыми"]
