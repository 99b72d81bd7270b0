"""Counters: the estimate is never too low by more than its margin, and a picture costs the same in every form."""

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka import estimate
from nitka.config import tiktoken_tables
from nitka.tokens import (
    MEDIA_TOKENS,
    MESSAGE_TOKENS,
    Counter,
    count_message,
    count_messages,
    count_tools,
    default_counter,
    exact,
)
from nitka.tokens import estimate as estimating

bpe_openai = pytest.importorskip("bpe_openai", reason="the counts are compared with a real tokenizer")
REAL: dict[str, Callable[[str], list[int]]] = {
    name: bpe_openai.get_encoding(name).encode_ordinary for name in ("o200k_base", "cl100k_base")
}
CORPUS = dict(
    part.split("\n", 1)
    for part in re.split(r"(?m)^== ", (Path(__file__).parent / "corpus" / "tokens.txt").read_text("utf-8"))[1:]
)
PROSE = [
    "english",
    "english chat",
    "russian",
    "russian chat",
    "german",
    "french",
    "polish",
    "chinese",
    "japanese",
    "korean",
]
COUNTERS = [exact(), estimating()]
NAMES = [counter.name for counter in COUNTERS]

ALPHABETS = {
    "ascii": "".join(map(chr, range(128))),
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
    "letters": "abcdefghijklmnopqrstuvwxyz",
    "russian": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя АБВГДЕЖЗИКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ",
    "digits": "0123456789 .,-:",
    "marks": "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ",
    "blanks": " \t\n\r",
    "mixed": "aZé9 \n,бЖ中あ가ש\u0301🎉\u200d👍🏽",
}


def real(text: str) -> int:
    return max(len(encode(text)) for encode in REAL.values())


def holds(text: str) -> bool:
    return real(text) <= estimate.count(text) * (1 + estimate.MARGIN)


def pieces() -> st.SearchStrategy[str]:
    """A piece of a text of the corpus, cut anywhere."""

    def piece(name: str, first: int, size: int) -> str:
        start = first % len(CORPUS[name])
        return CORPUS[name][start : start + size]

    return st.builds(piece, st.sampled_from(sorted(CORPUS)), st.integers(0, 10_000), st.integers(1, 200))


@pytest.mark.parametrize("name", sorted(CORPUS))
def test_the_estimate_holds_for_every_kind_of_text(name: str) -> None:
    """Whole, repeated to 2,000 characters, and without its line breaks."""
    text = CORPUS[name]
    assert holds(text)
    assert holds((text * 400)[:2000])
    assert holds(" ".join(text.split()))


@pytest.mark.parametrize("name", PROSE)
def test_the_estimate_is_not_absurd_on_plain_prose(name: str) -> None:
    """Under twice what o200k_base says, and within a third of the larger real count."""
    text = CORPUS[name] * 3
    assert estimate.count(text) < 2 * len(REAL["o200k_base"](text))
    assert estimate.count(text) < 1.34 * real(text)


@settings(max_examples=150)
@given(st.lists(pieces(), min_size=1, max_size=6), st.sampled_from(["", " ", "\n", ", "]))
def test_the_estimate_holds_for_pieces_of_all_kinds_in_any_order(parts: list[str], between: str) -> None:
    assert holds(between.join(parts))


@pytest.mark.parametrize("name", sorted(ALPHABETS))
@settings(max_examples=50)
@given(data=st.data())
def test_the_estimate_holds_for_random_characters_of_a_kind(name: str, data: st.DataObject) -> None:
    assert holds(data.draw(st.text(st.sampled_from(ALPHABETS[name]), max_size=200)))


@settings(max_examples=150)
@given(st.text(max_size=200))
def test_the_estimate_holds_for_any_text(text: str) -> None:
    assert holds(text)


@pytest.mark.parametrize("name", sorted(ALPHABETS))
def test_the_estimate_holds_for_evenly_random_characters_of_a_kind(name: str) -> None:
    """Hypothesis likes simple texts; these are as disorderly as a text can be."""
    chance = random.Random(name)
    texts = ["".join(chance.choices(ALPHABETS[name], k=size)) for size in (20, 100, 1000) for _ in range(20)]
    assert [text for text in texts if not holds(text)] == []


@given(
    st.binary(max_size=200), st.sampled_from(["latin-1", "cp1251", "koi8-r", "utf-8", "utf-16", "shift_jis", "gb18030"])
)
def test_the_estimate_holds_for_random_bytes_as_text(data: bytes, encoding: str) -> None:
    assert holds(data.decode(encoding, "replace"))


@given(st.characters(), st.integers(1, 500))
def test_the_estimate_holds_for_one_character_repeated(char: str, times: int) -> None:
    assert holds(char * times)


def test_no_character_is_priced_below_what_it_takes_alone() -> None:
    planes = [*range(0x80, 0x3400), *range(0x3400, 0xD800, 7), *range(0xF900, 0x10000), *range(0x10000, 0x110000, 97)]
    assert [code for code in planes if estimate.price(chr(code)) < real(chr(code))] == []


@given(st.text(max_size=300))
def test_the_exact_counter_is_the_real_tokenizer(text: str) -> None:
    assert exact().count(text) == len(REAL["o200k_base"](text))


def test_the_default_is_exact_when_a_tokenizer_is_installed() -> None:
    assert (default_counter().name, default_counter().margin) == ("o200k_base", 0.0)


@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
@given(st.text(st.characters(codec=None), max_size=60))
def test_any_string_is_counted_even_with_lone_surrogates(counter: Counter, text: str) -> None:
    assert counter.count(text) >= (1 if text else 0)


@given(st.integers(0, 10**6), st.floats(0, 2))
def test_room_leaves_the_margin(tokens: int, margin: float) -> None:
    room = Counter("x", margin, len).room(tokens)
    assert room * (1 + margin) <= tokens * (1 + 1e-9) < (room + 1) * (1 + margin) * (1 + 1e-9)


# Messages

PAYLOAD = "iVBORw0KGgoAAAANSUhEUgAAAAUA" * 4000
URL = f"data:image/png;base64,{PAYLOAD}"
IMAGES: dict[str, dict[str, Any]] = {
    "image_url": {"type": "image_url", "image_url": {"url": URL, "detail": "high"}},
    "image_url as a string": {"type": "image_url", "image_url": URL},
    "linked": {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
    "input_image": {"type": "input_image", "image_url": URL},
    "source.base64": {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PAYLOAD}},
    "inline_data": {"inline_data": {"mime_type": "image/png", "data": PAYLOAD}},
    "inlineData": {"inlineData": {"mimeType": "image/png", "data": PAYLOAD}},
    "mcp": {"type": "image", "data": PAYLOAD, "mimeType": "image/png"},
    "bytes": {"image": {"format": "png", "source": {"bytes": PAYLOAD.encode()}}},
    "file": {"type": "file", "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PAYLOAD}"}},
    "input_file": {"type": "input_file", "filename": "a.pdf", "file_data": PAYLOAD},
    "document": {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": PAYLOAD}},
    "audio": {"type": "input_audio", "input_audio": {"data": PAYLOAD, "format": "wav"}},
    "mcp resource": {"type": "resource", "resource": {"mimeType": "image/png", "blob": PAYLOAD}},
    "unheard of": {"type": "hologram_ref", "url": f"data:model/holo;base64,{PAYLOAD}"},
}


def price(*parts: object) -> int:
    return count_message(exact(), {"role": "user", "content": list(parts)})


@pytest.mark.parametrize("form", IMAGES)
def test_a_picture_or_file_costs_the_same_in_every_form(form: str) -> None:
    text = {"type": "text", "text": "What is on it?"}
    alone = price(text)
    plain = price(text, IMAGES["image_url"]) - alone
    extra = 10 if form in ("unheard of", "mcp resource") else 0
    assert MEDIA_TOKENS <= plain <= MEDIA_TOKENS + 1
    assert 0 <= price(text, IMAGES[form]) - alone - plain <= extra
    assert price(text, IMAGES[form], IMAGES[form]) - alone <= 2 * (MEDIA_TOKENS + 1 + extra)


@pytest.mark.parametrize("form", IMAGES)
@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
def test_a_payload_inside_a_tool_result_is_not_read_as_text(counter: Counter, form: str) -> None:
    nested = {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": [{"type": "text", "text": "ok"}, IMAGES[form]],
    }
    message = {"role": "user", "content": [nested]}
    assert MEDIA_TOKENS < count_message(counter, message) < MEDIA_TOKENS + 80
    by_tool = {"role": "tool", "tool_call_id": "call_1", "content": [IMAGES[form]]}
    assert MEDIA_TOKENS < count_message(counter, by_tool) < MEDIA_TOKENS + 80


def test_a_document_that_is_text_is_counted_as_text() -> None:
    words = "one two three " * 500
    part = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": words}}
    assert price(part) >= exact().count(words)


@given(st.text(max_size=80), st.sampled_from(["system", "user", "assistant", "tool"]))
def test_a_message_of_plain_text_costs_its_text_and_its_envelope(text: str, role: str) -> None:
    for counter in COUNTERS:
        assert count_message(counter, {"role": role, "content": text}) == MESSAGE_TOKENS + counter.count(text)


@given(st.lists(pieces(), min_size=1, max_size=5))
def test_parts_cost_at_least_their_texts(texts: list[str]) -> None:
    least = MESSAGE_TOKENS + sum(exact().count(text) for text in texts)
    assert least <= price(*({"type": "text", "text": text} for text in texts)) <= least + len(texts)


def test_a_payload_in_a_plain_string_is_text_because_it_is_sent_as_text() -> None:
    assert count_message(exact(), {"role": "tool", "content": URL}) > 10_000


def test_tool_calls_names_and_arguments_are_counted() -> None:
    call = {"id": "call_9", "type": "function", "function": {"name": "get_weather", "arguments": '{"city":"Тверь"}'}}
    bare = {"role": "assistant", "content": None}
    price_of_call = count_message(exact(), bare | {"tool_calls": [call]}) - count_message(exact(), bare)
    least = sum(exact().count(text) for text in ("get_weather", '{"city":"Тверь"}', "call_9"))
    assert least <= price_of_call <= least + 8
    assert count_message(exact(), bare | {"name": "anna"}) > count_message(exact(), bare)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)


def leaves(value: object) -> list[str]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in leaves(inner)]
    if isinstance(value, list):
        return [leaf for inner in value for leaf in leaves(inner)]
    return [value] if isinstance(value, str) else []


@given(JSON)
def test_whatever_json_a_message_holds_its_texts_are_counted(value: object) -> None:
    least = MESSAGE_TOKENS + sum(exact().count(text) for text in leaves(value))
    assert count_message(exact(), {"role": "tool", "content": {"wrapped": value}}) >= least


def test_deep_nesting_does_not_exhaust_the_stack() -> None:
    value: object = "leaf"
    for _ in range(20_000):
        value = [value]
    assert count_message(exact(), {"role": "user", "content": value}) > 20_000


@pytest.mark.parametrize("counter", COUNTERS, ids=NAMES)
def test_tool_definitions_are_counted_whole(counter: Counter) -> None:
    tools = [
        {
            "type": "function",
            "function": {"name": f"tool_{n}", "description": "Погода в городе", "parameters": {"type": "object"}},
        }
        for n in range(40)
    ]
    assert count_tools(counter, []) == 0
    assert (
        count_tools(counter, tools) > sum(counter.count(json.dumps(tool, ensure_ascii=False)) for tool in tools) * 0.8
    )
    assert count_tools(counter, tools) > count_tools(counter, tools[1:]) > 0


def test_a_list_of_messages_costs_their_sum_and_its_envelope() -> None:
    one = {"role": "user", "content": "Привет"}
    assert count_messages(exact(), [one] * 3) - count_messages(exact(), [one] * 2) == count_message(exact(), one)
    assert count_messages(exact(), []) > 0


def test_tiktoken_is_looked_for_where_it_keeps_its_tables() -> None:
    name = "fb374d419588a4632f3f557e76b4b70aebbca790"
    assert tiktoken_tables("o200k_base", {"TIKTOKEN_CACHE_DIR": "/t", "DATA_GYM_CACHE_DIR": "/d"}) == Path("/t") / name
    assert tiktoken_tables("o200k_base", {"DATA_GYM_CACHE_DIR": "/d"}) == Path("/d") / name
    assert tiktoken_tables("o200k_base", {}).parts[-2:] == ("data-gym-cache", name)
