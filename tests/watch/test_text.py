"""How a text is read: folding with places kept, tokens, clauses, acts, ages, entities."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.watch import engine, parse
from nitka.watch.data import default
from nitka.watch.entities import luhn
from nitka.watch.memory import Memory
from nitka.watch.normalise import clean
from nitka.watch.observe import clause_keys
from nitka.watch.tokens import tokenise


def keys(text: str, codes: tuple[str, ...] = ("en", "ru")) -> list[set[str]]:
    """The keys of each clause."""
    (reading, sentences, _), _ = engine.read(default(), text, default().lexicon(codes), Memory())
    return [set(clause_keys(reading, clause, "")[0]) for s in sentences for clause in s.clauses]


@given(st.text(alphabet=st.characters(codec=None, exclude_categories=()), max_size=200))
def test_every_character_of_the_clean_text_knows_its_place(text):
    folded = clean(text)
    places = [folded.span(i, i + 1) for i in range(len(folded.text))]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert places == sorted(places)


@given(st.text(max_size=200))
def test_tokens_follow_one_another_and_lie_within_the_message(text):
    """Two may share a character that stands for several, such as ¼."""
    before = 0
    for token in tokenise(clean(text)):
        assert before <= token.start < token.end <= len(text)
        before = token.start


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("w.h.a.t.s", ["whats"]),
        ("к о д ы", ["коды"]),
        ("ка\u200bмера", ["камера"]),
        ("и\u0306", ["й"]),
        ("ｃａｍｅｒａ", ["camera"]),
        ("кaмepa", ["камера"]),  # Latin a, e and p inside a Russian word
        ("кто-нибудь ещё", ["кто", "нибудь", "еще"]),
    ],
)
def test_disguised_words_are_read(text, words):
    assert [token.form for token in tokenise(clean(text))] == words


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("send it", "ask:send"),
        ("can you please just send it", "ask:send"),
        ("I need you to send it", "ask:send"),
        ("why don't you send it", "ask:send"),
        ("would you mind sending it", "ask:send"),
        ("you have to send it", "ask:send"),
        ("don't send it", "forbid:send"),
        ("you don't have to send it", "noneed:send"),
        ("I will send it", "offer:send"),
        ("I won't send it", "refuse:send"),
        ("I sent it", "did1:send"),
        ("they send it", "third:send"),
        ("if you send it", "cond:send"),
        ("let's meet", "joint:meet"),
        ("do you wanna meet", "invite:meet"),
        ("can I see you", "want:see"),
        ("пришли фото", "ask:send"),
        ("фото пришли, пожалуйста", "ask:send"),
        ("можешь прислать фото?", "ask:send"),
        ("надо прислать фото", "ask:send"),
        ("не скинешь фотку?", "ask:send"),
        ("хочу, чтобы ты прислала фото", "ask:send"),
        ("не присылай фото", "forbid:send"),
        ("присылать не надо", "noneed:send"),
        ("я пришлю фото", "offer:send"),
        ("не пришлю", "refuse:send"),
        ("я прислала фото", "did1:send"),
        ("если пришлешь фото", "cond:send"),
        ("давай встретимся", "joint:meet"),
        ("хочешь встретиться?", "invite:meet"),
        ("хочу посмотреть", "want:see"),
    ],
)
def test_acts(text, key):
    """Who is to do what a verb says, in either language and any order of words."""
    found = set().union(*keys(text))
    assert key in found
    assert not {k for k in found if k.endswith(key.split(":")[1]) and ":" in k} - {key}


@pytest.mark.parametrize(
    "text",
    [
        "they asked me to turn on the camera",
        'the message says "turn on your camera right now please"',
        "I got this: turn on your camera",
        "мне написали: включи камеру",
        "просили назвать код из смс",
        "if you turn on your camera",
        "you don't have to turn on the camera",
    ],
)
def test_what_is_retold_denied_or_conditional_shows_nothing(text):
    assert not {"ask_camera", "ask_code"} & set(parse(text).result.flags)


@pytest.mark.parametrize(
    ("text", "flag"),
    [
        ("I'm 12", "minor_self_age"),
        ("im thirteen lol", "minor_self_age"),
        ("мне двенадцать", "minor_self_age"),
        ("мне вообще-то тридцать семь", "adult_self_claim"),
        ("I am thirty seven years old", "adult_self_claim"),
        ("I'm 12 minutes away", ""),
        ("мне 12 рублей не хватает", ""),
        ("my brother is 12", ""),
        ("ты 12 раз звонил", ""),
    ],
)
def test_ages(text, flag):
    assert {"minor_self_age", "adult_self_claim"} & set(parse(text).result.flags) == ({flag} if flag else set())


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("call +7 (916) 123-45-67", "phone", "+79161234567"),
        ("звони 8 916 123-45-67 вечером", "phone", "+79161234567"),
        ("pay to 4111 1111 1111 1111", "credit_card", "4111111111111111"),
        ("DE89 3704 0044 0532 0130 00", "bank_account", "DE89370400440532013000"),
        ("mail me at someone@example.com", "email", ""),
        ("see https://example.com/a?b=c.", "website", ""),
        ("from 192.168.0.12", "ip_address", ""),
        ("send $500 now", "amount_of_money", ""),
        ("это 5 000 рублей", "amount_of_money", ""),
        ("bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq", "crypto", ""),
        ("at 5pm", "time", ""),
        ("on 12.03.2024", "date", ""),
        ("I am twelve years old", "age", "12"),
        ("hi @some_name", "username", ""),
        ("so #happy", "hashtag", ""),
    ],
)
def test_entities(text, kind, value):
    found = [e for e in parse(text).result.entities if kind in e.type]
    assert [e.value for e in found] == [value]
    assert all(text[e.start : e.end] == e.name for e in found)


@pytest.mark.parametrize("digits", ["4111111111111112", "0000000000000000", "1234567890123456"])
def test_digits_without_a_right_check_digit_are_no_card(digits):
    assert not luhn(digits)
    assert not [e for e in parse(f"card {digits}").result.entities if "credit_card" in e.type]
