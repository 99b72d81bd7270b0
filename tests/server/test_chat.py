"""`/v1/chat/completions` as any HTTP client sees it: what goes upstream, what comes back, what is kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from nitka.server.service import Options
from nitka.types import Limits
from tests.server.stage import Body, Fails, Script, Stage, calls, says, serving

PATH = "/v1/chat/completions"
TOOL = {"type": "function", "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}


def ask(client: httpx.Client, *texts: Any, session: str = "s", **more: Any) -> httpx.Response:
    """One call with messages of the user, or whole messages."""
    messages = [text if isinstance(text, dict) else {"role": "user", "content": text} for text in texts]
    headers = more.pop("headers", {})
    body = {"model": "m", "messages": messages, "user": "anna", "metadata": {"session_id": session}, **more}
    return client.post(PATH, json=body, headers=headers)


def told(response: httpx.Response) -> list[Body]:
    """The values of a stream, which must end with its mark."""
    events = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line.startswith("data: ")]
    assert events[-1] == "[DONE]", response.text
    return [json.loads(event) for event in events[:-1]]


def text_of(values: list[Body]) -> str:
    return "".join(choice["delta"].get("content") or "" for value in values for choice in value["choices"])


@pytest.fixture
def client(stage: Stage) -> httpx.Client:
    return stage.client("turns")


def test_a_turn_is_kept_and_stands_in_the_next_request(stage: Stage, client: httpx.Client) -> None:
    stage.script.answer = lambda body: says("Cherries.")
    first = ask(client, "What cake did we choose?")
    assert first.json()["choices"][0]["message"]["content"] == "Cherries."
    assert stage.rows() == [("user", "What cake did we choose?"), ("assistant", "Cherries.")]
    ask(client, "Really?")
    assert stage.script.texts() == [
        ("user", "What cake did we choose?"),
        ("assistant", "Cherries."),
        ("user", "Really?"),
    ]


def test_a_stream_is_handed_out_piece_by_piece_and_kept_whole(stage: Stage, client: httpx.Client) -> None:
    stage.script.answer = lambda body: says("Вишнёвый, три коржа.")
    values = told(ask(client, "Какой торт?", stream=True))
    assert text_of(values) == "Вишнёвый, три коржа."
    assert len(values) > 4
    assert values[-1]["choices"][0]["finish_reason"] == "stop"
    assert stage.rows() == [("user", "Какой торт?"), ("assistant", "Вишнёвый, три коржа.")]


def test_whoever_has_read_the_end_of_a_stream_finds_it_in_the_next_request(stage: Stage, client: httpx.Client) -> None:
    """The chunk that says why the answer ends comes after the rows are written."""
    with client.stream(
        "POST",
        PATH,
        json={"messages": [{"role": "user", "content": "q"}], "stream": True},
        headers={"X-Nitka-User": "anna", "X-Nitka-Session": "s"},
    ) as response:
        for line in response.iter_lines():
            if '"finish_reason": "stop"' in line:
                assert stage.rows() == [("user", "q"), ("assistant", "All right.")]
                return
    raise AssertionError("no end")


def test_a_client_that_resends_the_whole_history_gets_no_duplicates(stage: Stage, client: httpx.Client) -> None:
    history: list[Any] = []
    for number in range(4):
        history.append({"role": "user", "content": f"question {number}"})
        answer = ask(client, {"role": "system", "content": "Be brief."}, *history).json()
        history.append(answer["choices"][0]["message"])
    assert [text for role, text in stage.rows() if role == "user"] == [f"question {n}" for n in range(4)]
    assert stage.script.texts()[0] == ("system", "Be brief.")
    assert len(stage.script.last["messages"]) == 8


def test_what_the_client_resends_is_counted_as_ignored(client: httpx.Client) -> None:
    ask(client, "one")
    answer = ask(client, "one", {"role": "assistant", "content": "All right."}, "two")
    assert "ignored=2" in answer.headers["x-nitka-receipt"]


def test_several_trailing_messages_of_the_user_are_one_question(stage: Stage, client: httpx.Client) -> None:
    ask(client, "I have two things.", {"role": "system", "content": "Be kind."}, "First, the cake.")
    assert stage.rows()[0] == ("user", "I have two things.\n\nFirst, the cake.")
    assert stage.script.texts()[0] == ("system", "Be kind.")


def test_everything_else_is_passed_on_as_it_is(stage: Stage, client: httpx.Client) -> None:
    options: dict[str, Any] = {
        "temperature": 0.3,
        "response_format": {"type": "json_object"},
        "seed": 7,
        "logit_bias": {"50256": -100},
        "stop": ["\n"],
        "max_tokens": 99,
        "copy": 1,  # a field that a schema class has as a method
        "x_vendor": {"deep": [1, None, "ключ"]},
    }
    ask(client, "hello", tools=[TOOL], **options)
    sent = stage.script.last
    assert {name: sent[name] for name in options} == options
    assert sent["tools"] == [TOOL]
    assert sent["model"] == "m"
    assert set(sent) == {*options, "tools", "model", "messages"}


def test_who_the_user_is_does_not_go_upstream(stage: Stage, client: httpx.Client) -> None:
    ask(client, "hello", metadata={"session_id": "s", "team": "blue"})
    assert "user" not in stage.script.last
    assert stage.script.last["metadata"] == {"team": "blue"}


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_loop_over_several_calls_is_one_turn(stage: Stage, client: httpx.Client, stream: bool) -> None:
    """While the answer asks for tools nothing is written; of the traffic nothing ever is."""
    answers = iter([calls("weather"), calls("clock"), says("Sunny at noon.")])
    stage.script.answer = lambda body: next(answers)
    loop: list[Any] = ["What is it like outside?"]
    for name in ("weather", "clock"):
        ask(client, *loop, tools=[TOOL], stream=stream)
        assert stage.rows() == []
        loop.append(calls(name)["choices"][0]["message"])
        loop.append({"role": "tool", "tool_call_id": f"call_{name}", "content": f"result of {name}"})
    ask(client, *loop, tools=[TOOL], stream=stream)
    assert stage.rows() == [("user", "What is it like outside?"), ("assistant", "Sunny at noon.")]
    assert [message["role"] for message in stage.script.last["messages"]] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]


def test_words_before_a_tool_call_are_handed_out_and_not_kept(stage: Stage, client: httpx.Client) -> None:
    answer = calls("weather")
    answer["choices"][0]["message"]["content"] = "Let me look."
    stage.script.answer = lambda body: answer
    assert text_of(told(ask(client, "Outside?", tools=[TOOL], stream=True))) == "Let me look."
    assert stage.rows() == []


def test_pictures_and_files_go_on_and_their_names_are_kept(stage: Stage, client: httpx.Client) -> None:
    parts = [
        {"type": "text", "text": "Compare these."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
        {"type": "file", "file": {"filename": "план.pdf", "file_data": "data:application/pdf;base64,JVBERi0="}},
        {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
    ]
    ask(client, {"role": "user", "content": parts})
    assert stage.script.texts()[-1] == ("user", parts)
    assert stage.rows()[0] == ("user", "Compare these.\n[image]\n[file: план.pdf]\n[audio]")
    ask(client, "And now?")
    assert stage.script.texts()[0] == ("user", "Compare these.\n[image]\n[file: план.pdf]\n[audio]")


def test_a_picture_goes_along_with_a_question_that_had_to_be_condensed(script: Script) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with serving(script, limits=Limits(budget=4_000)) as stage:
        text = "A very long report. " * 3_000
        ask(stage.client("turns"), {"role": "user", "content": [{"type": "text", "text": text}, picture]})
        content = script.last["messages"][-1]["content"]
        assert content[-1] == picture
        assert len(content[0]["text"]) < len(text)
        assert stage.rows()[0][1].startswith(text)


@pytest.mark.parametrize("n", [0, 2, -1])
def test_more_than_one_answer_is_refused(stage: Stage, client: httpx.Client, n: int) -> None:
    refused = ask(client, "hello", n=n)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "n")
    assert stage.script.asked == []


def test_one_answer_may_be_asked_for(client: httpx.Client) -> None:
    assert ask(client, "hello", n=1).status_code == 200


@pytest.mark.parametrize(
    ("missing", "named"), [("user", "X-Nitka-User"), ("metadata", "X-Nitka-Session")], ids=["user", "session"]
)
def test_without_user_or_session_the_refusal_names_the_header(
    stage: Stage, client: httpx.Client, missing: str, named: str
) -> None:
    body = {"messages": [{"role": "user", "content": "q"}], "user": "anna", "metadata": {"session_id": "s"}}
    del body[missing]
    refused = client.post(PATH, json=body)
    assert refused.status_code == 400
    assert named in refused.json()["error"]["message"]
    assert stage.script.asked == []


def test_anonymous_requests_pass_through_where_the_operator_says_so(script: Script) -> None:
    with serving(script, options=Options(anonymous=True)) as stage:
        client = stage.client("turns")
        messages = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]
        for stream in (False, True):
            passed = client.post(PATH, json={"messages": [*messages, *messages], "stream": stream})
            assert passed.headers["x-nitka-memory"] == "none"
            assert "All right." in passed.text.replace('"}', "") or text_of(told(passed)) == "All right."
            assert script.last["messages"] == messages * 2
        assert stage.run(stage.nitka.settle()).folds == 0


def test_a_named_turn_is_kept_where_anonymous_ones_pass_through(script: Script) -> None:
    with serving(script, options=Options(anonymous=True)) as stage:
        assert ask(stage.client("turns"), "hello").headers["x-nitka-memory"] == "kept"
        assert len(stage.rows()) == 2


def test_headers_name_user_and_session_too_and_must_not_contradict(stage: Stage, client: httpx.Client) -> None:
    ids = {"X-Nitka-User": "анна".encode(), "X-Nitka-Session": "сессия/1".encode()}
    body = {"messages": [{"role": "user", "content": "q"}]}
    answer = client.post(PATH, json=body, headers=ids)  # type: ignore[arg-type]
    assert answer.status_code == 200
    assert len(stage.rows("анна", "сессия/1")) == 2
    refused = client.post(PATH, json={**body, "user": "eve"}, headers=ids)  # type: ignore[arg-type]
    assert refused.json()["error"]["code"] == "two_users"
    other = {"metadata": {"session_id": "other"}}
    refused = client.post(PATH, json={**body, **other}, headers=ids)  # type: ignore[arg-type]
    assert refused.json()["error"]["code"] == "two_sessions"


@pytest.mark.parametrize("stream", [False, True])
def test_a_delivery_with_the_same_key_is_answered_as_before(stage: Stage, client: httpx.Client, stream: bool) -> None:
    ask(client, "Pay the bill", headers={"Idempotency-Key": "k1"})
    again = ask(client, "Pay the bill", headers={"Idempotency-Key": "k1"}, stream=stream)
    assert again.headers["x-nitka-replayed"] == "true"
    answer = text_of(told(again)) if stream else again.json()["choices"][0]["message"]["content"]
    assert answer == "All right."
    assert len(stage.script.asked) == 1
    assert len(stage.rows()) == 2
    other = ask(client, "Pay another bill", headers={"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "turn_key_reused")


def test_of_two_deliveries_at_once_both_get_the_answer_that_was_kept(stage: Stage, client: httpx.Client) -> None:
    both = threading.Barrier(2)
    number = iter(range(10))

    def answer(body: Body) -> Body:
        both.wait(20)
        return says(f"Answer {next(number)}")

    stage.script.answer = answer
    got: list[str] = []

    def deliver() -> None:
        response = ask(stage.client("turns"), "Once", headers={"Idempotency-Key": "k"})
        got.append(response.json()["choices"][0]["message"]["content"])

    threads = [threading.Thread(target=deliver) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = stage.rows()
    assert len(rows) == 2
    assert got == [rows[1][1]] * 2


def test_a_retry_that_a_client_counts_is_the_same_turn(stage: Stage, client: httpx.Client) -> None:
    ask(client, "yes")
    ask(client, "yes", headers={"x-stainless-retry-count": "1"})
    assert len(stage.rows()) == 2
    ask(client, "yes", headers={"x-stainless-retry-count": "0"})
    assert len(stage.rows()) == 4


def test_a_retry_of_a_second_yes_is_not_the_first_one(stage: Stage, client: httpx.Client) -> None:
    """The first attempt of the second turn failed; its retry must be answered anew."""
    answers: Iterator[Body | Fails] = iter([says("First."), Fails(500), says("Second.")])
    stage.script.answer = lambda body: next(answers)
    ask(client, "yes")
    assert ask(client, "yes").status_code == 500
    answer = ask(client, "yes", headers={"x-stainless-retry-count": "1"}).json()
    assert answer["choices"][0]["message"]["content"] == "Second."
    assert [text for _, text in stage.rows()] == ["yes", "First.", "yes", "Second."]


def test_a_retry_that_reaches_another_process_finds_the_turn_in_the_conversation(script: Script) -> None:
    with serving(script) as stage:
        client = stage.client("turns")
        again = {"x-stainless-retry-count": "1"}
        ask(client, "hello")
        stage.service.retries._keys.clear()  # as in a process that has not seen the first delivery
        assert ask(client, "hello", headers=again).headers["x-nitka-replayed"] == "true"
        assert len(stage.rows()) == 2
        stage.clock.advance(seconds=601)
        stage.service.retries._keys.clear()
        ask(client, "hello", headers=again)
        assert len(stage.rows()) == 4


def test_replace_regenerates_and_edits_the_last_turn(stage: Stage, client: httpx.Client) -> None:
    number = iter(range(10))
    stage.script.answer = lambda body: says(f"Answer {next(number)}")
    ask(client, "one")
    ask(client, "two")
    ask(client, "two", headers={"X-Nitka-Replace": "last"})
    assert [text for _, text in stage.rows()] == ["one", "Answer 0", "two", "Answer 2"]
    assert stage.script.texts() == [("user", "one"), ("assistant", "Answer 0"), ("user", "two")]
    ask(client, "two, edited", headers={"X-Nitka-Replace": "last"})
    assert [text for _, text in stage.rows()] == ["one", "Answer 0", "two, edited", "Answer 3"]
    assert ask(client, "x", headers={"X-Nitka-Replace": "first"}).status_code == 400


def test_a_first_turn_replaces_nothing(stage: Stage, client: httpx.Client) -> None:
    assert ask(client, "one", headers={"X-Nitka-Replace": "last"}).status_code == 200
    assert len(stage.rows()) == 2


def test_a_private_turn_leaves_nothing(stage: Stage, client: httpx.Client) -> None:
    ask(client, "one")
    for how, seen in (("yes", 1), ("reads", 3)):
        answer = ask(client, "secret", headers={"X-Nitka-Private": how})
        assert answer.headers["x-nitka-memory"] == "private"
        assert len(stage.script.last["messages"]) == seen
    assert len(stage.rows()) == 2
    assert ask(client, "x", headers={"X-Nitka-Private": "maybe"}).status_code == 400


ERRORS = [
    (
        Fails(
            400, {"error": {"message": "quote: SECRET", "type": "invalid_request_error", "code": "bad", "param": "p"}}
        ),
        400,
    ),
    (Fails(404, {"error": {"message": "no model SECRET", "code": "model_not_found"}}), 404),
    (Fails(429, {"error": {"type": "requests", "code": "rate_limit_exceeded"}}, {"Retry-After": "3"}), 429),
    (Fails(500, "<html>SECRET</html>"), 500),
    (Fails(503, {"detail": "SECRET"}), 503),
    (Fails(401, {"error": {"message": "SECRET key", "code": "invalid_api_key"}}), 502),
    (Fails(403, {"error": {"message": "SECRET"}}), 502),
    (Fails(302, "SECRET"), 502),
    (Fails(200, "SECRET, no JSON"), 502),
    (Fails(200, "[1]"), 502),
    (Fails(200, {"error": {"message": "SECRET", "code": 429}}), 429),
]


@pytest.mark.parametrize(("answer", "status"), ERRORS, ids=[f"{e.status}-{n}" for n, (e, _) in enumerate(ERRORS)])
@pytest.mark.parametrize("stream", [False, True])
def test_an_upstream_error_is_told_without_its_words_and_nothing_is_written(
    stage: Stage, client: httpx.Client, answer: Fails, status: int, stream: bool
) -> None:
    stage.script.answer = lambda body: answer
    refused = ask(client, "hello", stream=stream)
    assert refused.status_code == status
    assert "SECRET" not in refused.text
    assert set(refused.json()["error"]) == {"message", "type", "param", "code"}
    assert refused.headers.get("retry-after") == answer.headers.get("Retry-After", refused.headers.get("retry-after"))
    assert stage.rows() == []


def test_an_upstream_that_is_not_there_is_a_bad_gateway(script: Script) -> None:
    with serving(script) as stage:
        stage.behind.base = "http://127.0.0.1:9/v1"
        refused = ask(stage.client("turns"), "hello")
        assert (refused.status_code, refused.json()["error"]["code"]) == (502, "upstream_unreachable")
        assert stage.rows() == []


@pytest.mark.parametrize("text", ["", "  ", "<think>only thoughts</think>", None])
def test_an_answer_that_says_nothing_is_passed_on_and_not_kept(
    stage: Stage, client: httpx.Client, text: str | None
) -> None:
    stage.script.answer = lambda body: says(text, refusal="I would rather not.")
    answer = ask(client, "hello")
    assert answer.json()["choices"][0]["message"]["refusal"] == "I would rather not."
    assert stage.rows() == []


def test_an_upstream_that_cannot_stream_is_streamed_for(script: Script) -> None:
    """The client asked for a stream and gets one, whatever the upstream can do."""
    with serving(script) as stage:
        script.answer = lambda body: Fails(200, says("All at once."))
        values = told(ask(stage.client("turns"), "hello", stream=True))
        assert text_of(values) == "All at once."
        assert values[-1]["choices"][0]["finish_reason"] == "stop"
        assert stage.rows()[1] == ("assistant", "All at once.")


def test_an_answer_that_a_filter_cut_off_is_not_kept(stage: Stage, client: httpx.Client) -> None:
    stage.script.answer = lambda body: says("Half of a ", finish="content_filter")
    assert ask(client, "hello").status_code == 200
    assert told(ask(client, "hello", stream=True))
    assert stage.rows() == []


def test_reasoning_is_handed_out_and_never_kept(stage: Stage, client: httpx.Client) -> None:
    said = "<think>She means the cake.</think>Cherries."
    stage.script.answer = lambda body: says(said, reasoning_content="hidden")
    assert ask(client, "one").json()["choices"][0]["message"]["reasoning_content"] == "hidden"
    assert text_of(told(ask(client, "two", stream=True))) == said
    assert [text for role, text in stage.rows() if role == "assistant"] == ["Cherries.", "Cherries."]


def test_the_receipt_comes_in_a_header_and_whole_on_request(client: httpx.Client) -> None:
    short = ask(client, "hello").headers["x-nitka-receipt"]
    numbers = dict(part.split("=") for part in short.split(", "))
    assert int(numbers["used"]) <= int(numbers["room"])
    whole = ask(client, "hello", nitka={"receipt": True}).json()["nitka"]
    assert whole["used"] == sum(entry["tokens"] for entry in whole["entries"])
    assert {entry["layer"] for entry in whole["entries"]} == {"history", "question"}
    streamed = told(ask(client, "hello", nitka={"receipt": True}, stream=True))
    assert [value["nitka"]["used"] > 0 for value in streamed if "nitka" in value] == [True]
    assert "nitka" not in ask(client, "hello").json()


def test_a_request_that_cannot_fit_is_refused_before_the_model_is_asked(script: Script) -> None:
    with serving(script, limits=Limits(budget=1_000)) as stage:
        system = {"role": "system", "content": "Obey the long law. " * 500}
        refused = ask(stage.client("turns"), system, "hi")
        assert (refused.status_code, refused.json()["error"]["code"]) == (400, "context_length_exceeded")
        assert script.asked == []


@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([], "messages"),
        ([{"role": "system", "content": "x"}], "messages"),
        ([{"role": "wizard", "content": "x"}], "messages[0].role"),
        ([{"content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        ([{"role": "user", "content": [7]}], "messages[0].content[0]"),
        ([{"role": "user"}], "messages[0].content"),
        (["hello"], "messages[0]"),
        ("hello", "messages"),
        (None, "messages"),
    ],
)
def test_what_does_not_fit_is_told_by_its_path(stage: Stage, client: httpx.Client, messages: Any, param: str) -> None:
    body = {"messages": messages, "user": "anna", "metadata": {"session_id": "s"}}
    refused = client.post(PATH, json=body)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, param)
    assert stage.script.asked == []


@pytest.mark.parametrize("text", ["broken \ud83d emoji", "NUL \0 inside", "\ud83d\ude00 whole"])
def test_a_text_with_broken_characters_is_kept_soundly(stage: Stage, client: httpx.Client, text: str) -> None:
    body = json.dumps({"messages": [{"role": "user", "content": text}], "user": "a", "metadata": {"session_id": "s"}})
    assert client.post(PATH, content=body, headers={"Content-Type": "application/json"}).status_code == 200
    assert stage.rows("a")[0][1].encode()
    assert "\0" not in stage.rows("a")[0][1]


def test_the_models_are_the_upstreams(client: httpx.Client) -> None:
    assert [model["id"] for model in client.get("/v1/models").json()["data"]] == ["scripted-1"]


def test_without_an_upstream_the_model_of_the_house_answers(script: Script) -> None:
    with serving(script, forward=False) as stage:
        client = stage.client("turns")
        ask(client, "My name is Anna.")
        assert "Anna" in ask(client, "What is my name?").json()["choices"][0]["message"]["content"]
        assert "Anna" in text_of(told(ask(client, "What is my name?", stream=True)))
        assert ask(client, "x", tools=[TOOL]).json()["error"]["param"] == "tools"
        assert len(client.get("/v1/models").json()["data"]) == 1
        assert len(stage.rows()) == 6
