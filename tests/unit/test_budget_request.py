"""Requests by example: order, labels, giants, errors, and the loop that packs again. The laws are in
test_request_laws.py.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from nitka.errors import BadInput, BadText, OverBudget
from nitka.models.extract import compact, condense
from nitka.request.assemble import pack, refit
from nitka.request.labels import ENGLISH, RUSSIAN
from nitka.request.parts import Means, Parts
from nitka.tokens import Counter, default_counter
from nitka.types import Budget, Line, Message, Passage, Summary

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
MEANS = Means(default_counter(), compact, condense)


def talk(first: int, end: int) -> tuple[Message, ...]:
    return tuple(
        Message(seq=seq, n=seq, role="assistant" if seq % 2 else "user", text=f"row {seq} " * 12, at=NOW)
        for seq in range(first, end)
    )


FULL = Parts(
    question="What did we decide about the cake? " * 8,
    system="You are a patient helper.",
    profile="Speaks English, likes short answers.",
    summary=Summary(
        lines=tuple(
            Line(full=f"Statement {at} in all its words", gist=f"St {at}", first=at, last=at) for at in range(4)
        ),
        cursor=4,
    ),
    history=talk(4, 16),
    facts=tuple(Passage(f"Fact number {at}") for at in range(4)),
    recalled=tuple(Passage(f"user: recalled {at}", label="3 May", first=at, last=at) for at in range(3)),
    knowledge=tuple(Passage(f"Passage {at}\n" + "word " * 20) for at in range(3)),
    traffic=(
        {"role": "assistant", "content": "", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c", "content": ""},
    ),
    head=16,
    cursor=4,
)


def test_when_everything_fits_nothing_gives_way() -> None:
    request = pack(FULL, Budget(total=10_000, answer=1_000), MEANS)

    assert {entry.outcome for entry in request.receipt.entries} == {"sent"}
    assert request.max_tokens == 1_000
    assert [message["role"] for message in request.messages] == (
        ["system"] + ["user", "assistant"] * 6 + ["system", "user", "assistant", "tool"]
    )


def test_the_order_of_a_request_is_what_changes_least_first() -> None:
    request = pack(FULL, Budget(total=400), MEANS)
    order = [block.layer for block in request.blocks]

    assert order == sorted(
        order, key="system profile summary turn_summary history facts question traffic".split().index
    )
    lead = request.messages[0]["content"]
    assert all(block.text in lead for block in request.blocks if block.layer in ("system", "profile", "summary"))


def test_blocks_are_the_exact_text_of_the_messages() -> None:
    request = pack(FULL, Budget(total=430), MEANS)
    by_layer: dict[str, list[str]] = {}
    for block in request.blocks:
        by_layer.setdefault(block.layer, []).append(block.text)
    lead = (
        by_layer["system"] + by_layer.get("profile", []) + ["\n".join(by_layer["summary"] + by_layer["turn_summary"])]
    )

    assert request.messages[0]["content"] == "\n\n".join(lead)
    assert [m["content"] for m in request.messages[1:]][: len(by_layer["history"])] == by_layer["history"]
    assert request.messages[request.asked]["content"] == by_layer["question"][0]
    assert [json.loads(text) for text in by_layer["traffic"]] == [
        dict(m) for m in request.messages[request.asked + 1 :]
    ]


def test_nothing_to_say_means_no_system_message() -> None:
    request = pack(Parts(question="hi"), Budget(total=100), MEANS)

    assert request.messages == [{"role": "user", "content": "hi"}]
    assert request.asked == 0


def test_a_system_prompt_that_changes_is_the_only_one_sent() -> None:
    """There is exactly one, the current one, in every request, compaction or not."""
    for total in (300, 500, 5_000):
        for prompt in ("You are P1.", "You are P2."):
            request = pack(replace(FULL, system=prompt), Budget(total=total), MEANS)
            text = "\n".join(str(message["content"]) for message in request.messages)
            assert text.count("You are P") == text.count(prompt) == 1


def test_a_fixed_prompt_over_the_limit_is_a_typed_error_with_sizes_and_without_text() -> None:
    parts = Parts(question="hi secret-word", system="private-prompt " * 2_300)
    with pytest.raises(OverBudget) as caught:
        pack(parts, Budget(total=2_000), MEANS)

    assert "room for 1997" in str(caught.value)
    assert "system prompt" in str(caught.value)
    assert "secret-word" not in str(caught.value) and "private-prompt" not in str(caught.value)


def test_a_question_that_may_not_be_condensed_is_an_error_when_it_does_not_fit() -> None:
    parts = Parts(question="pasted " * 5_000)
    with pytest.raises(OverBudget):
        pack(parts, Budget(total=2_000, condense_question=False), MEANS)

    request = pack(parts, Budget(total=2_000), MEANS)
    assert "[…" in request.messages[0]["content"]
    assert request.receipt.used > 1_000


def test_tool_definitions_are_counted() -> None:
    """Forty schemas of some three hundred tokens leave no room in a budget that the chat alone would fit."""
    tools = [{"type": "function", "function": {"name": f"t{at}", "description": "word " * 290}} for at in range(40)]
    with pytest.raises(OverBudget):
        pack(replace(FULL, tools=tools), Budget(total=8_000), MEANS)

    request = pack(replace(FULL, tools=tools), Budget(total=16_000), MEANS)
    assert request.receipt.layer("tools")[0].tokens > 11_000


def test_one_giant_row_is_compacted_and_the_rest_stays() -> None:
    """A pasted log in the history does not push the other layers out."""
    giant = replace(FULL.history[0], text="log line\n" * 60_000)
    parts = replace(FULL, history=(giant, *FULL.history[1:]))
    request = pack(parts, Budget(total=4_000), MEANS)

    assert [entry.count for entry in request.receipt.layer("history")] == [2, 10]
    assert not any(entry.outcome == "left_out" for entry in request.receipt.entries)


def test_a_giant_last_answer_is_compacted_and_facts_and_knowledge_stay() -> None:
    giant = replace(FULL.history[-1], text="log line\n" * 60_000)
    parts = replace(FULL, history=(*FULL.history[:-1], giant))
    request = pack(parts, Budget(total=4_000), MEANS)

    assert [entry.outcome for entry in request.receipt.layer("history")] == ["compacted"]
    assert not any(entry.outcome == "left_out" for entry in request.receipt.entries)


def test_a_passage_too_large_for_its_place_does_not_take_the_others_with_it() -> None:
    giant = Passage("reference " * 50_000)
    parts = replace(FULL, knowledge=(giant, *FULL.knowledge))
    request = pack(parts, Budget(total=4_000), MEANS)

    outcomes = [(entry.outcome, entry.count, entry.why) for entry in request.receipt.layer("knowledge")]
    assert outcomes == [("sent", 3, ""), ("left_out", 1, "too large")]
    data = request.messages[request.asked - 1]["content"]
    assert ENGLISH.left_out.format(count=1) in data
    assert "Reference passages:\n[2]\n| Passage 0" in data
    assert len(request.receipt.layer("history")) == 1


def test_an_interrupted_answer_is_replayed_with_a_mark_and_a_blank_row_with_a_placeholder() -> None:
    half = replace(FULL.history[-1], text="It is the", interrupted=True)
    blank = replace(FULL.history[-3], text=" \n")
    parts = replace(FULL, history=(*FULL.history[:-3], blank, FULL.history[-2], half))
    request = pack(parts, Budget(total=8_000), MEANS)
    said = [message["content"] for message in request.messages if message["role"] == "assistant" and message["content"]]

    assert said[-1] == f"It is the\n{ENGLISH.interrupted}"
    assert said[-2] == ENGLISH.empty


def test_labels_follow_the_language_of_the_question_or_the_caller() -> None:
    russian = replace(FULL, question="Что мы решили про торт?")
    assert RUSSIAN.summary in pack(russian, Budget(total=8_000), MEANS).messages[0]["content"]
    english = replace(russian, language="en")
    assert ENGLISH.summary in pack(english, Budget(total=8_000), MEANS).messages[0]["content"]


def test_rows_that_cannot_be_sent_are_not_read() -> None:
    """Of megabytes of history only what could fit is counted; of 100 large passages only the beginning."""
    read = 0

    def count(text: str) -> int:
        nonlocal read
        read += len(text)
        return len(text) // 4

    history = tuple(replace(row, text="word " * 200_000) for row in talk(0, 240))
    knowledge = tuple(Passage("word " * 50_000) for _ in range(100))
    parts = Parts(question="hi", history=history, knowledge=knowledge, head=240)
    lazy = Means(Counter("reads", 0.0, count), lambda messages, *, room, count: (), condense)
    request = pack(parts, Budget(total=8_000), lazy)

    assert request.receipt.layer("history")[0].count == 240
    assert read < 100 * 45_000 + 200_000


@pytest.mark.parametrize(
    "parts",
    [
        replace(FULL, cursor=6),
        replace(FULL, head=15),
        replace(FULL, history=FULL.history[::-1]),
        replace(FULL, history=FULL.history + FULL.history[-1:]),
        replace(FULL, summary=None, cursor=5),
    ],
    ids=["summary elsewhere", "beyond head", "disordered", "twice", "before cursor"],
)
def test_parts_that_contradict_law_two_are_refused(parts: Parts) -> None:
    with pytest.raises(BadInput):
        pack(parts, Budget(total=8_000), MEANS)


@pytest.mark.parametrize("question", ["", "  ", "\n\t"])
def test_a_blank_question_is_refused(question: str) -> None:
    with pytest.raises(BadText):
        pack(replace(FULL, question=question), Budget(total=8_000), MEANS)


CALL = {"role": "assistant", "content": None, "tool_calls": [{"id": "x", "function": {"name": "f", "arguments": "{}"}}]}
RESULT = {"role": "tool", "tool_call_id": "x", "content": "result " * 300}


def test_refit_puts_the_loops_traffic_after_the_question_and_history_gives_way_first() -> None:
    budget = Budget(total=1_100)
    parts = replace(FULL, traffic=())
    before = pack(parts, budget, MEANS)
    after = refit(parts, before, [*before.messages, CALL, RESULT], budget, MEANS)

    assert len(before.receipt.layer("history")) == 1
    assert [entry.outcome for entry in after.receipt.layer("history")][:1] == ["compacted"]
    assert after.messages[after.asked + 1 :] == [CALL, RESULT]


def test_refit_again_keeps_what_came_before() -> None:
    """A loop that goes on with the refitted messages can refit again, though the question gets ever more condensed."""
    budget = Budget(total=1_000)
    document = " ".join(f"Clause {at} names the sum {at * 7}." for at in range(900))
    parts = replace(FULL, traffic=(), question=f"Compare these two: {document}")
    first = pack(parts, budget, MEANS)
    loop = list(first.messages)
    for at in range(3):
        call = {**CALL, "tool_calls": [{"id": f"x{at}", "function": {"name": "f", "arguments": "{}"}}]}
        loop += [call, {"role": "tool", "tool_call_id": f"x{at}", "content": f"result {at} " * 20}]
        request = refit(parts, first, loop, budget, MEANS)
        loop = list(request.messages)

    results = [message["content"][:8] for message in loop if message["role"] == "tool"]
    assert results == ["result 0", "result 1", "result 2"]


def test_traffic_that_exceeds_the_budget_alone_is_a_typed_error() -> None:
    budget = Budget(total=500)
    parts = replace(FULL, traffic=())
    request = pack(parts, budget, MEANS)
    with pytest.raises(OverBudget):
        refit(
            parts,
            request,
            [*request.messages, CALL, {**RESULT, "content": "r " * 2_000}],
            budget,
            MEANS,
        )


def test_refit_without_the_question_is_refused() -> None:
    request = pack(FULL, Budget(total=8_000), MEANS)
    with pytest.raises(BadInput):
        refit(FULL, request, [{"role": "user", "content": "another"}], Budget(total=8_000), MEANS)


def test_a_question_asked_before_in_the_history_is_found_where_it_stands_now() -> None:
    history = (replace(FULL.history[0], text="yes"), *FULL.history[1:])
    parts = replace(FULL, history=history, question="yes", traffic=())
    request = pack(parts, Budget(total=8_000), MEANS)
    again = refit(parts, request, [*request.messages, CALL, RESULT], Budget(total=8_000), MEANS)

    assert again.messages[again.asked + 1 :] == [CALL, RESULT]
