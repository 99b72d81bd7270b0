"""The pure parts: reading a request, an answer, a key, a rate."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import BadInput, Damaged
from nitka.server import answers, keys
from nitka.server.asked import ChatBody, forwarded, read
from nitka.server.errors import Refusal, path_of, refusal_of
from nitka.server.items import ResponseBody, messages_of, options_of
from nitka.server.rates import Rates
from nitka.server.response_ids import Link, open_link, seal_link
from nitka.server.retries import SECONDS, Retries, name_of
from nitka.types import User
from nitka.vault.seal import SealKey

TEXTS = st.text(min_size=1, max_size=20).filter(lambda text: text.strip() and text.isprintable())
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
ROLES = st.sampled_from(("system", "developer", "user", "assistant", "tool"))
MESSAGES = st.lists(st.fixed_dictionaries({"role": ROLES, "content": TEXTS}), min_size=1, max_size=12)


@given(MESSAGES)
def test_every_message_is_used_or_counted(messages: list[dict[str, Any]]) -> None:
    """System messages before the question, the question, what follows it, and the ignored are all there is."""
    if not any(message["role"] == "user" for message in messages):
        with pytest.raises(Refusal):
            read(messages)
        return
    turn = read(messages)
    last = max(at for at, message in enumerate(messages) if message["role"] == "user")
    assert turn.traffic == tuple(messages[last + 1 :])
    lead = [m["content"] for m in messages[:last] if m["role"] in ("system", "developer")]
    assert turn.system == "\n\n".join(lead)
    run = [m for m in messages[: last + 1] if m["role"] not in ("system", "developer")]
    joined: list[str] = []
    while run and run[-1]["role"] == "user":
        joined.insert(0, run.pop()["content"])
    assert turn.text == "\n\n".join(joined)
    assert turn.ignored == len(run)


@given(MESSAGES, MESSAGES)
def test_what_stands_before_the_question_does_not_change_it(
    before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    """A client that resends its history asks the same as one that does not."""
    history = [message for message in before if message["role"] not in ("system", "developer")]
    question = [{"role": "assistant", "content": "."}, {"role": "user", "content": "q"}]
    tail = [message for message in after if message["role"] != "user"]
    assert read([*history, *question, *tail]).text == read([*question[1:], *tail]).text == "q"
    assert read([*history, *question, *tail]).traffic == tuple(tail)


@given(
    st.lists(st.one_of(JSON, st.dictionaries(st.sampled_from(("role", "content", "text", "type")), JSON)), max_size=5)
)
def test_any_messages_are_read_or_refused(messages: list[Any]) -> None:
    """Never any other error than the one that names the place."""
    body = [message for message in messages if isinstance(message, dict)]
    try:
        turn = read(body)
    except Refusal as refusal:
        assert refusal.status == 400
        assert refusal.param
    else:
        assert isinstance(turn.text, str)


@given(st.dictionaries(st.text(min_size=1, max_size=12), JSON, max_size=6))
def test_whatever_else_a_client_sends_goes_on_unchanged(options: dict[str, Any]) -> None:
    known = set(ChatBody.model_fields)
    options = {name: value for name, value in options.items() if name not in known}
    body = ChatBody.model_validate({"messages": [{"role": "user", "content": "q"}], **options})
    sent = forwarded(body, [], model="m")
    assert json.dumps(sent, sort_keys=True) == json.dumps({**options, "model": "m", "messages": []}, sort_keys=True)


@given(
    st.lists(st.text(max_size=12)), st.booleans(), st.sampled_from(("stop", "length", "tool_calls", "content_filter"))
)
def test_an_answer_in_chunks_says_what_it_says_whole(pieces: list[str], calls: bool, finish: str) -> None:
    tools = {"tool_calls": [{"id": "c"}]} if calls else {}
    whole, heard = answers.Heard(), answers.Heard()
    message = {"role": "assistant", "content": "".join(pieces), **tools}
    whole.whole({"choices": [{"message": message, "finish_reason": finish}]})
    for piece in pieces:
        heard.chunk({"choices": [{"delta": {"content": piece}, "finish_reason": None}]})
    heard.chunk({"choices": [{"delta": tools, "finish_reason": finish}]})
    assert whole == heard
    assert whole.is_kept <= (not calls and finish in ("stop", "length"))


@given(JSON)
def test_any_value_is_heard_without_an_error(value: Any) -> None:
    for inner in (value, {"choices": value}, {"choices": [value]}, {"choices": [{"message": value, "delta": value}]}):
        heard = answers.Heard()
        heard.whole(inner if isinstance(inner, dict) else {})
        heard.chunk(inner if isinstance(inner, dict) else {})
        assert isinstance(heard.text, str)


@given(st.lists(JSON, max_size=4), st.dictionaries(st.text(max_size=10), JSON, max_size=4))
def test_any_response_request_is_translated_or_refused(items: list[Any], options: dict[str, Any]) -> None:
    given = [item for item in items if isinstance(item, dict)]
    options = {name: value for name, value in options.items() if name not in ResponseBody.model_fields}
    body = ResponseBody.model_validate({"input": given, **options})
    try:
        messages_of(body)
        options_of(body, "max_tokens")
    except Refusal as refusal:
        assert refusal.status == 400


def test_instructions_come_first_and_reasoning_items_are_left_out() -> None:
    body = ResponseBody.model_validate(
        {
            "instructions": "Be brief.",
            "input": [
                {"type": "reasoning", "summary": []},
                {"role": "user", "content": [{"type": "input_text", "text": "q"}]},
            ],
        }
    )
    assert messages_of(body) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "q"}]},
    ]


KEY = SealKey(bytes(range(32)))


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_the_id_of_a_response_opens_for_its_user_alone(tenant: str, user: str, session: str, key: str) -> None:
    link = Link(session=session, key=key)
    id = seal_link(KEY, User(user, tenant), link)
    assert open_link(KEY, User(user, tenant), id) == link
    assert len(session) < 8 or session not in id
    for stranger in (User(user + "x", tenant), User(user, tenant + "x"), User(tenant + user, ""), User("", tenant)):
        if stranger != User(user, tenant):
            assert open_link(KEY, stranger, id) is None
    assert open_link(KEY, User(user, tenant), id[:-5] + "AAAAA") in (None, link)


@given(st.text(max_size=60))
def test_any_other_id_of_a_response_is_none(text: str) -> None:
    assert open_link(KEY, User("anna"), text) is None
    assert open_link(KEY, User("anna"), f"resp_{text}") is None


@given(st.sampled_from(("turns", "read", "admin", "parse")), TEXTS, st.integers(1, 1000), st.integers(0, 1 << 40))
def test_a_key_opens_as_what_it_was_granted_and_nowhere_else(scope: str, tenant: str, rate: int, made: int) -> None:
    grant = keys.grant_of(scopes=(scope,), tenant=tenant, rate=rate)
    row = keys.seal(KEY, keys.hash_of("nk_1"), made, grant)
    assert keys.unseal(KEY, row) == grant
    for other in (row._replace(hash=keys.hash_of("nk_2")), row._replace(made=made + 1)):
        with pytest.raises(Damaged):
            keys.unseal(KEY, other)


@pytest.mark.parametrize(
    "wrong",
    [
        {"scopes": ()},
        {"scopes": ("everything",)},
        {"scopes": ("turns", "everything")},
        {"scopes": ("widget",)},
        {"scopes": ("widget", "turns"), "origins": ("https://a.example",)},
        {"scopes": ("turns",), "origins": ("https://a.example",)},
        {"scopes": ("turns",), "rate": 0},
        {"scopes": ("turns",), "tenant": "x" * 513},
        {"scopes": ("turns",), "name": "two\nlines"},
    ],
)
def test_a_grant_that_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        keys.grant_of(**wrong)


@pytest.mark.parametrize(
    ("written", "sent"),
    [
        ("https://shop.example", "https://shop.example"),
        ("https://Shop.Example:443/", "https://shop.example"),
        ("http://localhost:8080", "http://localhost:8080"),
        ("http://[::1]:80", "http://[::1]"),
    ],
)
def test_an_origin_is_kept_as_browsers_send_it(written: str, sent: str) -> None:
    assert keys.origin(written) == sent


@pytest.mark.parametrize(
    "wrong",
    ["", "*", "shop.example", "ftp://a", "https://", "https://*.a.example", "https://a/b", "https://u@a", "https://a:x",
     "https://a?q", "https://пример.рф", "null"],
)  # fmt: skip
def test_what_is_no_origin_is_refused(wrong: str) -> None:
    with pytest.raises(BadInput):
        keys.origin(wrong)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=60), st.integers(1, 600))
def test_no_window_holds_more_than_the_rate_and_a_burst(steps: list[float], rate: int) -> None:
    """In any stretch of time there are at most the burst and what the rate fills in meanwhile."""
    now = 0.0
    rates = Rates(lambda: now)
    taken: list[float] = []
    for step in steps:
        now += step
        if rates.wait("key", rate) == 0.0:
            taken.append(now)
    burst = max(1.0, min(60.0, rate))
    for first, begin in enumerate(taken):
        for last in range(first, len(taken)):
            assert last - first + 1 <= burst + (taken[last] - begin) * rate / 60 + 1e-6


@given(st.integers(1, 600), st.integers(1, 100))
def test_whoever_waits_as_long_as_told_gets_in(rate: int, calls: int) -> None:
    now = 0.0
    rates = Rates(lambda: now)
    for _ in range(calls):
        if (wait := rates.wait("key", rate)) > 0:
            now += wait
            assert rates.wait("key", rate) == 0.0


def test_full_buckets_are_forgotten() -> None:
    now = 0.0
    rates = Rates(lambda: now)
    for number in range(1_000):
        now += 1.0
        rates.wait(f"key {number}", 60)
    assert len(rates._empty_at) <= 2


def test_a_turn_key_is_remembered_for_ten_minutes() -> None:
    now = 0.0
    made = iter("abcdef")
    retries = Retries(lambda: now, lambda: next(made))
    one, two = name_of("k", User("anna"), "s", "yes"), name_of("k", User("anna"), "s", "no")
    assert retries.again(one) is None
    assert (retries.first(one), retries.first(two)) == ("a", "b")
    assert (retries.again(one), retries.again(two)) == ("a", "b")
    assert retries.first(one) == retries.again(one) == "c"
    now = SECONDS
    assert retries.again(one) is None
    assert not retries._keys


@given(st.lists(TEXTS, min_size=5, max_size=5, unique=True))
def test_names_of_deliveries_differ_by_every_part(parts: list[str]) -> None:
    key, tenant, user, session, text = parts
    names = {
        name_of(key, User(user, tenant), session, text),
        name_of(key + tenant, User(user, ""), session, text),
        name_of(key, User(user + session, tenant), "", text),
        name_of(key, User(user, tenant), session + text, ""),
    }
    assert len(names) == 4


@given(st.lists(st.text(max_size=50) | st.integers(0, 99), max_size=12))
def test_a_path_is_short_and_of_plain_words(steps: list[Any]) -> None:
    path = path_of(["body", *steps])
    assert len(path) < 300
    assert path.isprintable()


def test_every_error_of_nitka_has_a_status() -> None:
    from nitka import errors

    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.NitkaError) and kind is not errors.NitkaError:
            told = refusal_of(kind("(detail)"))
            assert told.code, name
            assert 400 <= told.status <= 599


def test_a_receipt_in_a_header_is_a_dictionary_of_numbers() -> None:
    from nitka.types import Entry, Receipt

    entries = (
        Entry(layer="history", outcome="sent", tokens=40, count=4),
        Entry(layer="history", outcome="compacted", tokens=0, count=6),
        Entry(layer="question", outcome="sent", tokens=9),
        Entry(layer="knowledge", outcome="left_out", tokens=0, count=2),
    )
    receipt = Receipt(budget=100, room=80, counter="c", entries=entries, head=10)
    expected = "used=49, room=80, head=10, cursor=0, history=40, compacted=6, question=9, left_out=2, ignored=3"
    assert answers.short(receipt, 3) == expected
    assert answers.full(receipt)["used"] == 49
