"""Numbers in words, normal forms, slots, and what counts as a secret."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.layers.facts.canon import fold, one_line, value_key
from nitka.layers.facts.evidence import occurs
from nitka.layers.facts.numbers import number
from nitka.layers.facts.secrets import holds_secret, luhn
from nitka.layers.facts.slots import category_of, is_many, is_slot


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("eleven and a half thousand", 11_500),
        ("thirty-four", 34),
        ("6k", 6_000),
        ("6.5", 6.5),
        ("11,500", 11_500),
        ("38 тыщ", 38_000),
        ("тридцати восьми тыщ", 38_000),
        ("четырёх тысяч", 4_000),
        ("пятьдесят восемь", 58),
        ("two hundred and five", 205),
        ("seven thousand two hundred", 7_200),
        ("полтора", None),
        ("Biscuit", None),
    ],
)
def test_numbers_are_read_in_digits_and_words(text: str, value: float | None) -> None:
    assert number(text) == value


@given(st.integers(0, 999_999_999))
@settings(deadline=None)
def test_plain_digits_mean_themselves(value: int) -> None:
    assert number(str(value)) == value and number(f"{value:,}") == value


@given(st.text(max_size=80))
@settings(deadline=None)
def test_the_key_does_not_depend_on_form_or_white_space(text: str) -> None:
    assert value_key(f"  {text}\n") == value_key(text)
    assert fold(fold(text)) == fold(text)


@given(st.text(max_size=200), st.integers(1, 100))
@settings(deadline=None)
def test_one_line_is_one_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit and len(line.splitlines()) <= 1


def test_a_quote_is_found_through_forms_and_spaces_but_not_invented() -> None:
    assert occurs("café  in Porto", "the cafe\u0301\nin Porto")
    assert not occurs("cafe in Porto", "café in Porto")
    assert not occurs("", "anything")


@pytest.mark.parametrize(
    "text",
    [
        "My card is 4000 0000 0000 0002",
        "pin 1234",
        "my password is plum-47",
        "the alarm code is 4471",
        "my locker combination at the pool is 31-06-19",
        "пароль от вайфая kelp-2291",
        "пароль: слива",
        "код из СМС 48213",
        "пин-код 0042",
        "cvv 123",
        "key sk-abcdEFGH0123456789",
        "пароль для роутера: черника",
        "note пароль черника",
        "note the code is 771204",
        "код авторизации 98 76 54",
        "на замке велосипеда 5520",
        "the keypad downstairs is 8 0 3 1",
        "seed phrase lemon river stone glass",
        "my pin is seven two oh four",
        "four zero zero zero 0000 0000 0002 is my card",
        "четыре ноль ноль ноль 0000 0000 0002 моя карта",
        "my bitcoin seed is witch collapse practice feed shame open despair",
        "I always log in with plum-47",
        "my alarm is disarmed with 7788",
        "the shed opens with 4471",
        "my phone unlocks by typing 90817",
        "my bank's secret word is heron",
        "my memorable place at the bank is Whitby",
        "my mother's maiden name is Oakes",
        "482913 is what the bank texted me",
        "Google sent me 40817",
        "my SSN is 078-05-1120",
        "I am 078-05-1120",
        "my passport is C01X00T47",
        "national insurance number QQ 12 34 56 C",
        "the front door is 7741",
        "домофон 45к7788",
        "вход по слову Мяу-Мяу-44",
        "телефон разблокируется по 77120",
        "кодовое слово в банке Цапля",
        "контрольное слово: цапля",
        "банк прислал 482913",
        "пришло в смс 4829",
        "паспорт 4509 123456",
        "СНИЛС 112-233-445 95",
        "мой ИНН 7707083893",
        "номер карты четыре тысячи сто одиннадцать",
        "девичья фамилия матери Смирнова",
    ],
)
def test_secrets_are_known(text: str) -> None:
    assert holds_secret(text)


@pytest.mark.parametrize(
    "text",
    [
        "I forgot my password again",
        "order KX-40781",
        "my phone is 4000 0000 0000 0001",
        "забыл пароль от почты",
        "the password is wrong",
        "I moved here in 2019",
        "пиннинг 12 раз",
        "I use a password manager",
        "my zip code is 90210",
        "promo code 4829",
        "код города 8652",
        "the lock was changed in 2024",
        "новый сейф стоит 15000 рублей",
        "I write code 300 days a year",
        "I changed my password",
        "my bank is Sber",
        "my passport expires on 12.05.2031",
        "паспорт действует до 12.05.2031",
        "I log in with Google",
        "the shop opens at 9",
        "my mother kept her maiden name",
        "The bank asked for the secret word",
        "мама вернула девичью фамилию",
        "вход через Госуслуги",
        "банк прислал новую карту",
        "I get in by 9",
        "the seed of my tomatoes is old",
        "потеряла паспорт в 2019",
    ],
)
def test_talk_about_secrets_is_no_secret(text: str) -> None:
    assert not holds_secret(text)


@given(st.integers(10**11, 10**17))
@settings(deadline=None)
def test_exactly_one_check_digit_passes(body: int) -> None:
    assert sum(luhn(f"{body}{digit}") for digit in range(10)) == 1


@pytest.mark.parametrize(
    ("slot", "many", "category"),
    [
        ("home.city", False, "other"),
        ("home.address", False, "contact"),
        ("allergy.nut", True, "health"),
        ("pet.rex.kind", False, "other"),
        ("family.wife", False, "other"),
        ("family.son", True, "other"),
        ("budget.kitchen", False, "finance"),
        ("never.heard", True, "other"),
        ("pet.пломбир.kind", False, "other"),
        ("pet.faith.age", False, "other"),
        ("favourite.псалом", False, "belief"),
        ("favourite.tea", False, "other"),
    ],
)
def test_the_slot_table(slot: str, many: bool, category: str) -> None:
    assert is_slot(slot) and is_many(slot) is many and category_of(slot) == category


@pytest.mark.parametrize("slot", ["", "Home", "home city", "home.", ".city", "a" * 200, "home.ci\nty"])
def test_what_is_no_slot(slot: str) -> None:
    assert not is_slot(slot)


@pytest.mark.parametrize(
    ("value", "category"),
    [
        ("I came out to my parents", "orientation"),
        ("I take 5 mg of warfarin each evening", "health"),
        ("lisinopril every morning", "health"),
        ("каждый вечер принимаю 5 мг варфарина", "health"),
        ("аторвастатин на ночь", "health"),
        ("in april I swim", "other"),
        ("a mandarin a day", "other"),
        ("любимый псалом — пятидесятый", "belief"),
        ("мой брат гей", "orientation"),
        ("гейзеры на Камчатке", "other"),
        ("I am on antidepressants", "health"),
        ("принимаю антидепрессанты", "health"),
        ("I owe Bob 300 euros", "finance"),
        ("Боря должен мне 3 тысячи рублей", "finance"),
        ("I lent Ann 40 pounds", "finance"),
        ("a bi-weekly call", "other"),
        ("I pray at noon", "belief"),
        ("no sweets during Lent", "belief"),
        ("голосую за зелёных", "belief"),
        ("write to ann@example.org", "contact"),
        ("мой ник @annushka", "contact"),
        ("the cake is in the fridge", "other"),
        ("поливать фикус", "other"),
    ],
)
def test_a_note_has_the_category_its_words_speak_of(value: str, category: str) -> None:
    assert category_of("note", value) == category
