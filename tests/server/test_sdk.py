"""The official `openai` library against the running server: nothing is changed but its base URL."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI, OpenAI
from pydantic import BaseModel

from nitka.types import User
from tests.server.stage import Body, Fails, Stage, calls, says

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "weather",
        "strict": True,
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False, "required": []},
    },
}
WHO = {"X-Nitka-User": "anna", "X-Nitka-Session": "s"}


class Cake(BaseModel):
    """What a structured answer looks like here."""

    filling: str
    layers: int


@pytest.fixture
def client(stage: Stage) -> Iterator[OpenAI]:
    made = OpenAI(base_url=f"{stage.url}/v1", api_key=stage.key("turns"), max_retries=0, default_headers=WHO)
    with made:
        yield made


def of(stage: Stage, user: str, tenant: str = "") -> OpenAI:
    """The library for a user who names no session."""
    key = stage.key("turns", tenant=tenant)
    return OpenAI(base_url=f"{stage.url}/v1", api_key=key, max_retries=0, default_headers={"X-Nitka-User": user})


@pytest.fixture
def mine(stage: Stage) -> Iterator[OpenAI]:
    with of(stage, "anna") as made:
        yield made


def ask(client: OpenAI, *texts: Any, **more: Any) -> Any:
    messages: Any = [text if isinstance(text, dict) else {"role": "user", "content": text} for text in texts]
    return client.chat.completions.create(model="m", messages=messages, **more)


def test_the_names_of_user_and_session_go_in_the_librarys_own_fields(stage: Stage) -> None:
    with OpenAI(base_url=f"{stage.url}/v1", api_key=stage.key("turns")) as client:
        ask(client, "hello", user="anna", metadata={"session_id": "s"})
    assert len(stage.rows()) == 2


def test_streaming(stage: Stage, client: OpenAI) -> None:
    stage.script.answer = lambda body: says("Вишня и три коржа.")
    said = "".join(chunk.choices[0].delta.content or "" for chunk in ask(client, "Что в торте?", stream=True))
    assert said == stage.rows()[1][1] == "Вишня и три коржа."


def test_the_librarys_helper_for_streams(stage: Stage, client: OpenAI) -> None:
    with client.chat.completions.stream(model="m", messages=[{"role": "user", "content": "q"}]) as stream:
        final = stream.get_final_completion()
    assert final.choices[0].message.content == stage.rows()[1][1]


def test_usage_comes_where_it_is_asked_for(stage: Stage, client: OpenAI) -> None:
    last = list(ask(client, "q", stream=True, stream_options={"include_usage": True}))[-1]
    assert last.usage.total_tokens == 18
    assert ask(client, "q").usage.total_tokens == 18


def test_a_tool_loop(stage: Stage, client: OpenAI) -> None:
    answers = iter([calls("weather"), says("Sunny.")])
    stage.script.answer = lambda body: next(answers)
    messages: list[Any] = [{"role": "user", "content": "Outside?"}]
    first = ask(client, *messages, tools=[TOOL]).choices[0].message
    messages += [first, {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "sun"}]
    plain = [message if isinstance(message, dict) else message.model_dump(exclude_none=True) for message in messages]
    assert ask(client, *plain, tools=[TOOL]).choices[0].message.content == "Sunny."
    assert stage.rows() == [("user", "Outside?"), ("assistant", "Sunny.")]


def test_a_structured_answer(stage: Stage, client: OpenAI) -> None:
    stage.script.answer = lambda body: says('{"filling": "вишня", "layers": 3}')
    parsed = client.chat.completions.parse(
        model="m", messages=[{"role": "user", "content": "The cake?"}], response_format=Cake
    )
    assert parsed.choices[0].message.parsed == Cake(filling="вишня", layers=3)
    assert stage.script.last["response_format"]["json_schema"]["name"] == "Cake"


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (404, openai.NotFoundError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (503, openai.InternalServerError),
    ],
)
def test_upstream_errors_are_the_librarys_own(
    stage: Stage, client: OpenAI, status: int, error: type[openai.APIStatusError]
) -> None:
    stage.script.answer = lambda body: Fails(status, {"error": {"type": "kind", "code": "why", "message": "no"}})
    with pytest.raises(error) as caught:
        ask(client, "hello")
    assert (caught.value.code, caught.value.type) == ("why", "kind")
    assert caught.value.request_id
    assert caught.value.request_id.startswith("req_")


def test_our_errors_are_the_librarys_own(stage: Stage, client: OpenAI) -> None:
    with pytest.raises(openai.AuthenticationError):
        ask(client.with_options(api_key="nk_wrong"), "hello")
    with pytest.raises(openai.PermissionDeniedError):
        ask(client.with_options(api_key=stage.key("read")), "hello")
    with pytest.raises(openai.BadRequestError) as caught:
        ask(client, "hello", n=2)
    assert caught.value.param == "n"


def test_a_stream_that_breaks_off_raises_and_keeps_what_was_handed_out(stage: Stage, client: OpenAI) -> None:
    stage.script.answer = lambda body: says("One two three four")
    stage.script.breaks_after = 3
    said = ""
    with pytest.raises(openai.APIError):
        for chunk in ask(client, "count", stream=True):
            said += chunk.choices[0].delta.content or ""
    assert said == "One two "
    rows = stage.messages()
    assert [(row.text, row.interrupted) for row in rows] == [("count", False), ("One two ", True)]


def test_the_library_retries_and_the_question_is_kept_once(stage: Stage) -> None:
    answers: Iterator[Body | Fails] = iter([Fails(500), Fails(429, headers={"retry-after": "0"}), says("Yes.")])
    stage.script.answer = lambda body: next(answers)
    with OpenAI(base_url=f"{stage.url}/v1", api_key=stage.key("turns"), max_retries=3, default_headers=WHO) as client:
        assert ask(client, "hello").choices[0].message.content == "Yes."
    assert stage.rows() == [("user", "hello"), ("assistant", "Yes.")]


def test_a_time_out_that_the_library_retries_is_one_turn(stage: Stage) -> None:
    """The first delivery goes on after the client has given up; whichever ends first is kept, and once."""
    slow = threading.Event()

    def answer(body: Body) -> Body:
        is_first = len(stage.script.asked) == 1
        if is_first:
            slow.wait(30)
        return says("Late." if is_first else "In time.")

    stage.script.answer = answer
    with OpenAI(
        base_url=f"{stage.url}/v1", api_key=stage.key("turns"), max_retries=1, timeout=3, default_headers=WHO
    ) as client:
        assert ask(client, "hello").choices[0].message.content == "In time."
    slow.set()
    stage.idle()
    assert len(stage.script.asked) == 2
    assert stage.rows() == [("user", "hello"), ("assistant", "In time.")]


def test_models(client: OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["scripted-1"]


def test_responses_that_continue_each_other_by_id(stage: Stage, mine: OpenAI) -> None:
    first = mine.responses.create(model="m", input="One.", instructions="Be brief.")
    assert first.output_text == "All right."
    assert first.usage is not None
    assert first.usage.total_tokens == 18
    second = mine.responses.create(model="m", input="And two?", previous_response_id=first.id)
    assert stage.script.texts() == [
        ("user", "One."),
        ("assistant", "All right."),
        ("user", "And two?"),
    ]
    assert second.previous_response_id == first.id
    (session,) = stage.run(stage.nitka.sessions("anna"))
    assert session.messages == 4


def test_a_response_that_is_not_the_last_is_continued_only_by_replacing(stage: Stage, mine: OpenAI) -> None:
    first = mine.responses.create(model="m", input="one")
    mine.responses.create(model="m", input="two", previous_response_id=first.id)
    with pytest.raises(openai.BadRequestError) as caught:
        mine.responses.create(model="m", input="three", previous_response_id=first.id)
    assert caught.value.code == "response_not_last"
    replaced = {"X-Nitka-Replace": "last"}
    mine.responses.create(model="m", input="three", previous_response_id=first.id, extra_headers=replaced)
    (session,) = stage.run(stage.nitka.sessions("anna"))
    assert [row.text for row in stage.run(stage.nitka.history("anna", session.id))][::2] == ["one", "three"]


def test_responses_in_a_conversation(stage: Stage, mine: OpenAI) -> None:
    talk = mine.conversations.create()
    for text in ("one", "two"):
        answer = mine.responses.create(model="m", input=text, conversation=talk.id)
        assert answer.conversation is not None
        assert answer.conversation.id == talk.id
    assert [text for role, text in stage.rows(session=talk.id) if role == "user"] == ["one", "two"]


def test_a_streamed_response(stage: Stage, mine: OpenAI) -> None:
    stage.script.answer = lambda body: says("<think>hm</think>Три коржа.")
    with mine.responses.stream(model="m", input="Сколько?") as stream:
        said = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
        final = stream.get_final_response()
    assert said == final.output_text == "Три коржа."
    assert final.usage is not None
    assert final.usage.total_tokens == 18
    (session,) = stage.run(stage.nitka.sessions("anna"))
    assert stage.rows(session=session.id) == [("user", "Сколько?"), ("assistant", "Три коржа.")]
    mine.responses.create(model="m", input="Точно?", previous_response_id=final.id)


def test_a_structured_response(stage: Stage, client: OpenAI) -> None:
    stage.script.answer = lambda body: says('{"filling": "cherry", "layers": 3}')
    parsed = client.responses.parse(model="m", input="The cake?", text_format=Cake)
    assert parsed.output_parsed == Cake(filling="cherry", layers=3)
    assert stage.script.last["response_format"]["type"] == "json_schema"


def test_a_response_with_a_picture(stage: Stage, client: OpenAI) -> None:
    content: Any = [
        {"type": "input_text", "text": "Look."},
        {"type": "input_image", "image_url": "data:image/png;base64,AA"},
    ]
    client.responses.create(model="m", input=[{"role": "user", "content": content}])
    assert stage.script.texts()[-1][1][1]["image_url"]["url"] == "data:image/png;base64,AA"
    assert stage.rows()[0] == ("user", "Look.\n[image]")


def test_a_response_that_is_not_to_be_stored_leaves_nothing(stage: Stage, mine: OpenAI) -> None:
    lost = mine.responses.create(model="m", input="secret", store=False)
    assert stage.run(stage.nitka.sessions("anna")) == ()
    with pytest.raises(openai.NotFoundError):
        mine.responses.create(model="m", input="and?", previous_response_id=lost.id)


def test_a_response_that_was_cut_short_says_so(stage: Stage, client: OpenAI) -> None:
    stage.script.answer = lambda body: says("Too lo", finish="length")
    answer = client.responses.create(model="m", input="Tell me.", max_output_tokens=16)
    assert answer.status == "incomplete"
    assert answer.incomplete_details is not None
    assert answer.incomplete_details.reason == "max_output_tokens"
    assert stage.script.last["max_tokens"] == 16


@pytest.mark.parametrize(
    "options",
    [
        {"tools": [{"type": "web_search"}]},
        {"background": True},
        {"extra_body": {"prompt": {"id": "p"}}},
        {"tools": [{"type": "custom", "name": "c"}]},
        {"input": [{"type": "item_reference", "id": "msg_1"}]},
        {"input": [{"type": "computer_call_output", "call_id": "c", "output": {}}]},
    ],
)
def test_what_no_turn_can_do_is_refused_and_not_dropped(stage: Stage, client: OpenAI, options: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.responses.create(**{"model": "m", "input": "hi", **options})
    assert caught.value.code in ("unsupported_parameter", "unsupported_item")
    assert stage.script.asked == []


def test_another_user_and_another_tenant_cannot_continue_a_response(stage: Stage, mine: OpenAI) -> None:
    first = mine.responses.create(model="m", input="one")
    with of(stage, "eve") as eve, of(stage, "anna", "other") as other:
        for stranger in (eve, other):
            with pytest.raises(openai.NotFoundError):
                stranger.responses.create(model="m", input="and?", previous_response_id=first.id)
    stage.run(stage.nitka.forget("anna"))
    with pytest.raises(openai.NotFoundError):
        mine.responses.create(model="m", input="and?", previous_response_id=first.id)
    assert stage.run(stage.nitka.sessions(User("anna", "other"))) == ()


@pytest.mark.anyio
async def test_the_asynchronous_library_with_many_users_at_once(stage: Stage) -> None:
    stage.script.answer = lambda body: says(f"You said {body['messages'][-1]['content']}")
    async with AsyncOpenAI(base_url=f"{stage.url}/v1", api_key=stage.key("turns")) as client:

        async def talk(number: int) -> None:
            for turn in range(3):
                question: Any = [{"role": "user", "content": f"{number}.{turn}"}]
                answer = await client.chat.completions.create(
                    model="m", messages=question, user=f"many-{number}", metadata={"session_id": "s"}
                )
                assert answer.choices[0].message.content == f"You said {number}.{turn}"

        await asyncio.gather(*(talk(number) for number in range(12)))
    for number in range(12):
        expected = [f"{number}.{turn}" for turn in range(3)]
        assert [text for role, text in stage.rows(f"many-{number}") if role == "user"] == expected
