"""Tool traffic: whatever a loop has appended, what is sent is valid for a strict provider, and nothing goes in
silence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka.errors import BadInput
from nitka.request.labels import ENGLISH
from nitka.request.traffic import BROKEN, EMPTY, ORPHAN, REPEATED, after, mend
from nitka.types import ChatMessage, Receipt, Request


def call(*ids: str, text: str | None = None, arguments: str = "{}") -> ChatMessage:
    calls = [{"id": id, "type": "function", "function": {"name": "look", "arguments": arguments}} for id in ids]
    return {"role": "assistant", "content": text, "tool_calls": calls}


def result(id: str, text: Any = "12 C") -> ChatMessage:
    return {"role": "tool", "tool_call_id": id, "content": text}


def says(text: str) -> ChatMessage:
    return {"role": "assistant", "content": text}


def asks(text: str) -> ChatMessage:
    return {"role": "user", "content": text}


STUB = ENGLISH.no_result

ids = st.sampled_from(["a", "b", "c"])
blank = st.sampled_from(["", " ", "\n"])
words = st.one_of(blank, st.sampled_from(["yes", "ok \ud83d", "x\x00y"]))
messages = st.one_of(
    st.lists(ids, min_size=1, max_size=3).flatmap(
        lambda some: st.builds(
            lambda text, arguments: call(*some, text=text, arguments=arguments),
            words,
            st.sampled_from(["{}", '{"a": 1}', '{"a', "", "plain"]),
        )
    ),
    st.builds(result, ids, st.one_of(words, st.none(), st.just([]), st.just([{"type": "text", "text": " "}]))),
    st.builds(says, words),
    st.builds(asks, words),
)


def ids_of(message: ChatMessage) -> list[str]:
    return [called["id"] for called in message.get("tool_calls", ())]


def assert_valid(sent: Sequence[ChatMessage]) -> None:
    """What a strict provider asks: pairs, no blank content, arguments that parse, valid Unicode."""
    json.dumps(list(sent), ensure_ascii=False).encode()
    waiting: list[str] = []
    for message in sent:
        assert message.get("tool_calls") or message["content"]
        assert not isinstance(message["content"], str) or message["content"].strip()
        if message["role"] == "tool":
            assert message["tool_call_id"] in waiting
            waiting.remove(message["tool_call_id"])
            continue
        assert not waiting
        waiting = ids_of(message)
        assert len(set(waiting)) == len(waiting)
        for called in message.get("tool_calls", ()):
            json.loads(called["function"]["arguments"])


@given(st.lists(messages, max_size=10))
def test_any_traffic_becomes_valid_for_a_strict_provider(traffic: list[ChatMessage]) -> None:
    assert_valid(mend(traffic, ENGLISH).messages)


@given(st.lists(messages, max_size=10))
def test_mending_twice_changes_nothing_more(traffic: list[ChatMessage]) -> None:
    once = mend(traffic, ENGLISH)
    twice = mend(once.messages, ENGLISH)

    assert twice.messages == once.messages
    assert not twice.left_out and not twice.closed


@given(st.lists(messages, max_size=10))
def test_nothing_goes_in_silence(traffic: list[ChatMessage]) -> None:
    """Messages and calls that came in are sent, or counted by a reason."""
    mended = mend(traffic, ENGLISH)
    came = sum(len(ids_of(m)) if m.get("tool_calls") and not (m["content"] or "").strip() else 1 for m in traffic)
    came += sum(len(ids_of(m)) for m in traffic if m.get("tool_calls") and (m["content"] or "").strip())
    went = len(mended.messages) - mended.closed
    went += sum(len(ids_of(m)) - (not m["content"]) for m in mended.messages if m.get("tool_calls"))

    assert went + sum(mended.left_out.values()) == came


@given(st.lists(messages, max_size=10))
def test_traffic_that_is_valid_goes_out_as_it_came(traffic: list[ChatMessage]) -> None:
    valid = mend(traffic, ENGLISH).messages
    assert mend(valid, ENGLISH).messages == valid


CASES: Mapping[str, tuple[list[ChatMessage], list[ChatMessage], dict[str, int]]] = {
    "results of parallel calls move to their call, in its order": (
        [call("a", "b"), result("b", "second"), asks("and?"), result("a", "first")],
        [call("a", "b"), result("a", "first"), result("b", "second"), asks("and?")],
        {},
    ),
    "a hole in the middle is found": (
        [call("a"), result("a"), result("zz"), says("12 degrees"), result("yy")],
        [call("a"), result("a"), says("12 degrees")],
        {ORPHAN: 2},
    ),
    "a result before its call is an orphan": (
        [result("a", "early"), call("a"), result("a", "late")],
        [call("a"), result("a", "late")],
        {ORPHAN: 1},
    ),
    "an interrupted call is closed where something follows": (
        [call("a", "b"), result("a"), asks("hello?")],
        [call("a", "b"), result("a"), result("b", STUB), asks("hello?")],
        {},
    ),
    "a call that waits at the end is kept open": ([call("a", "b"), result("a")], [call("a", "b"), result("a")], {}),
    "the newest of two results of one call counts": (
        [call("a"), result("a", "pending"), result("a", "approved")],
        [call("a"), result("a", "approved")],
        {REPEATED: 1},
    ),
    "an id used again belongs to the newest call": (
        [call("a"), result("a", "one"), call("a"), result("a", "two")],
        [call("a"), result("a", "one"), call("a"), result("a", "two")],
        {},
    ),
    "a call cut off inside its arguments goes, the visible text stays": (
        [call("a", text="Let me look.", arguments='{"city": "Lu'), asks("hello?")],
        [says("Let me look."), asks("hello?")],
        {BROKEN: 1},
    ),
    "an answered call with arguments that are no JSON is made readable": (
        [call("a", arguments="Lund"), result("a", "bad arguments")],
        [call("a", arguments='{"text": "Lund"}'), result("a", "bad arguments")],
        {},
    ),
    "empty results get a placeholder": (
        [call("a", "b"), result("a", ""), result("b", [])],
        [call("a", "b"), result("a", ENGLISH.empty_result), result("b", ENGLISH.empty_result)],
        {},
    ),
    "empty messages and messages with only reasoning go": (
        [says(" "), {"role": "assistant", "content": None, "reasoning_content": "hm"}, asks("so?")],
        [asks("so?")],
        {EMPTY: 2},
    ),
    "half an emoji is replaced": (
        [call("a"), result("a", "ok \ud83d")],
        [call("a"), result("a", "ok \ufffd")],
        {},
    ),
    "a call without an id or a name goes": (
        [call("", text="hm"), {**call(), "tool_calls": [{"id": "a", "function": {}}]}],
        [says("hm")],
        {BROKEN: 2},
    ),
}


@pytest.mark.parametrize(("came", "sent", "left_out"), CASES.values(), ids=list(CASES))
def test_case(came: list[ChatMessage], sent: list[ChatMessage], left_out: dict[str, int]) -> None:
    mended = mend(came, ENGLISH)

    assert list(mended.messages) == sent
    assert mended.left_out == left_out


def test_waiting_and_closed_calls_are_counted() -> None:
    waits = mend([call("a", "b"), result("a")], ENGLISH)
    closed = mend([call("a", "b"), result("a"), says("done")], ENGLISH)

    assert (waits.waiting, waits.closed) == (1, 0)
    assert (closed.waiting, closed.closed) == (0, 1)


@pytest.mark.parametrize("role", ["function", "tool_result", None, ""])
def test_a_role_that_no_chat_api_has_is_refused(role: str | None) -> None:
    with pytest.raises(BadInput):
        mend([{"role": role, "content": "x"}], ENGLISH)


def request_of(*said: ChatMessage) -> Request:
    return Request(messages=list(said), receipt=Receipt(budget=0, room=0, counter="", entries=()), asked=len(said) - 1)


def test_what_follows_the_question_is_found_in_every_form_of_message() -> None:
    """Loops rebuild lists: the system message may be gone, and texts may have become lists of parts or library
    objects.
    """

    class Dumps:
        def model_dump(self, *, exclude_none: bool) -> dict[str, Any]:
            assert exclude_none
            return dict(call("a"))

    request = request_of({"role": "system", "content": "s"}, asks("yes"), says("fine"), asks("yes"))
    parts = {"role": "user", "content": [{"type": "text", "text": "yes"}]}

    assert after(request, "yes", [*request.messages, call("a")]) == (call("a"),)
    assert after(request, "yes", [asks("yes"), says("fine"), parts, Dumps()]) == (dict(call("a")),)


def test_a_condensed_question_is_found_though_it_is_condensed_further() -> None:
    whole = "Compare these two drafts: " + "text " * 200
    request = request_of(asks(whole))

    assert after(request, whole, [asks(whole[:40] + "[…]" + whole[-40:]), says("x")]) == (says("x"),)
    with pytest.raises(BadInput):
        after(request, whole, [asks("Another question"), says("x")])


@given(st.lists(messages, min_size=2, max_size=8))
def test_a_call_and_its_results_are_never_apart(traffic: list[ChatMessage]) -> None:
    for before, message in pairwise(mend(traffic, ENGLISH).messages):
        if message["role"] == "tool":
            assert before["role"] == "tool" or message["tool_call_id"] in ids_of(before)
