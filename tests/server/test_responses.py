"""`/v1/responses` through the official library: loops of functions, and responses that are told again or deleted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai import OpenAI

from nitka.types import User
from tests.server.stage import Body, Fails, Stage, calls, says

MARK = "MARKED-7714"
WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather of a place.",
    "strict": True,
    "parameters": {
        "type": "object",
        "properties": {"place": {"type": "string"}},
        "required": ["place"],
        "additionalProperties": False,
    },
}


def of(stage: Stage, user: str, tenant: str = "", **more: str) -> OpenAI:
    """The library for a user who names no session."""
    key = stage.key("turns", tenant=tenant)
    headers = {"X-Nitka-User": user, **more}
    return OpenAI(base_url=f"{stage.url}/v1", api_key=key, max_retries=0, default_headers=headers)


@pytest.fixture
def mine(stage: Stage) -> Iterator[OpenAI]:
    with of(stage, "anna") as made:
        yield made


def asks(*places: str, text: str | None = None) -> Body:
    """An answer that asks for the weather of places."""
    wanted = [
        {
            "id": f"call_{at}",
            "type": "function",
            "function": {"name": "weather", "arguments": json.dumps({"place": at})},
        }
        for at in places
    ]
    return says(text, finish="tool_calls", tool_calls=wanted)


def scripted(stage: Stage, *answers: Body | Fails) -> None:
    rest = iter(answers)
    stage.script.answer = lambda body: next(rest)


def outputs(response: Any, said: str = "sun") -> list[Any]:
    """What the client's own functions give for the calls of a response."""
    return [
        {"type": "function_call_output", "call_id": item.call_id, "output": said}
        for item in response.output
        if item.type == "function_call"
    ]


def kept(stage: Stage, user: str = "anna") -> list[tuple[str, str]]:
    """All that is kept of a user, session after session."""
    found = stage.run(stage.nitka.sessions(user))
    return [row for session in found for row in stage.rows(user, session.id)]


def seen(stage: Stage) -> list[Any]:
    """The messages of the last request, without what is remembered of the person."""
    return [message for message in stage.script.last["messages"] if "noted earlier" not in str(message["content"])]


def create(client: OpenAI, streamed: bool, **more: Any) -> Any:
    """A response, whole, or put together from its stream by the library."""
    if not streamed:
        return client.responses.create(model="m", **more)
    with client.responses.stream(model="m", **more) as stream:
        return stream.get_final_response()


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_a_loop_that_goes_on_by_id_is_one_turn(stage: Stage, mine: OpenAI, streamed: bool) -> None:
    """Two rounds, the first with two calls at once and a word before them; the model sees all of it, the rows none."""
    scripted(stage, asks("Riga", "Oslo", text="Let me see."), asks("Rome"), says("Sun, rain, sun."), says("So."))
    ask: dict[str, Any] = {"tools": [WEATHER], "instructions": "Be brief."}
    first = create(mine, streamed, input="Where is it warm?", **ask)
    assert [(item.type, getattr(item, "name", "")) for item in first.output] == [
        ("message", ""),
        ("function_call", "weather"),
        ("function_call", "weather"),
    ]
    assert [json.loads(item.arguments) for item in first.output[1:]] == [{"place": "Riga"}, {"place": "Oslo"}]
    assert kept(stage) == []
    second = create(mine, streamed, input=outputs(first, MARK), previous_response_id=first.id, **ask)
    assert kept(stage) == []
    third = create(mine, streamed, input=outputs(second), previous_response_id=second.id, **ask)
    assert third.output_text == "Sun, rain, sun."
    roles = [(message["role"], len(message.get("tool_calls", ()))) for message in seen(stage)]
    assert roles == [
        ("system", 0),
        ("user", 0),
        ("assistant", 2),
        ("tool", 0),
        ("tool", 0),
        ("assistant", 1),
        ("tool", 0),
    ]
    assert seen(stage)[2]["content"] == "Let me see."
    assert stage.script.last["tools"][0]["function"]["name"] == "weather"
    assert kept(stage) == [("user", "Where is it warm?"), ("assistant", "Sun, rain, sun.")]
    fourth = create(mine, streamed, input="And tomorrow?", previous_response_id=third.id)
    assert fourth.previous_response_id == third.id
    assert MARK not in str(stage.script.last)
    assert len(kept(stage)) == 4


def test_a_loop_of_a_client_that_sends_everything_again(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"), says("Sunny."))
    talk: list[Any] = [{"role": "user", "content": "Before"}, {"role": "assistant", "content": "Yes"}]
    talk.append({"role": "user", "content": "Outside?"})
    conversation = mine.conversations.create().id
    first = mine.responses.create(model="m", input=talk, tools=[WEATHER], conversation=conversation)
    talk += [item.model_dump(exclude_none=True) for item in first.output] + outputs(first)
    last = mine.responses.create(model="m", input=talk, tools=[WEATHER], conversation=conversation)
    assert last.output_text == "Sunny."
    assert [message["role"] for message in seen(stage)] == ["user", "assistant", "tool"]
    assert seen(stage)[2]["tool_call_id"] == "call_weather"
    assert stage.rows(session=conversation) == [("user", "Outside?"), ("assistant", "Sunny.")]


def test_a_call_streams_as_the_library_expects_it(stage: Stage, mine: OpenAI) -> None:
    """Calls come as items with their arguments; no message is begun where nothing was said."""
    scripted(stage, asks("Riga"))
    with mine.responses.stream(model="m", input="Warm?", tools=[WEATHER]) as stream:
        events = list(stream)
    assert [event.type for event in events] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))


@pytest.mark.parametrize("user", ["anna", "eve"])
def test_of_a_loop_that_was_forgotten_nothing_comes_back(stage: Stage, mine: OpenAI, user: str) -> None:
    """Nor can another go on with it."""
    scripted(stage, calls("weather"))
    first = mine.responses.create(model="m", input=f"Of {MARK}", tools=[WEATHER])
    if user == "anna":
        stage.run(stage.nitka.forget("anna"))
    with of(stage, user) as client, pytest.raises(openai.NotFoundError) as caught:
        client.responses.create(model="m", input=outputs(first), previous_response_id=first.id, tools=[WEATHER])
    assert caught.value.code == "previous_response_not_found"
    assert kept(stage, user) == []
    assert len(stage.script.asked) == 1


def test_a_loop_goes_on_for_an_hour(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"), says("Late."))
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER])
    more: Any = {"input": outputs(first), "previous_response_id": first.id, "tools": [WEATHER]}
    stage.clock.advance(minutes=61)
    with pytest.raises(openai.NotFoundError):
        mine.responses.create(model="m", **more)
    stage.clock.advance(minutes=-2)
    assert mine.responses.create(model="m", **more).output_text == "Late."


def test_a_loop_that_is_answered_twice_gives_the_first_answer(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"), says("Sunny."))
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER])
    more: Any = {"input": outputs(first), "previous_response_id": first.id, "tools": [WEATHER]}
    for _ in range(2):
        assert mine.responses.create(model="m", **more).output_text == "Sunny."
    assert len(stage.script.asked) == 2
    assert kept(stage) == [("user", "Warm?"), ("assistant", "Sunny.")]


def test_what_a_loop_holds_is_not_to_be_read_in_its_id(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"), calls("weather"))
    first = mine.responses.create(model="m", input=MARK, tools=[WEATHER])
    second = mine.responses.create(
        model="m", input=outputs(first, MARK), previous_response_id=first.id, tools=[WEATHER]
    )
    for response in (first, second):
        assert MARK not in response.model_dump_json()
        for method in (mine.responses.retrieve, mine.responses.delete):
            with pytest.raises(openai.NotFoundError):
                method(response.id)


def test_a_private_loop_is_private_to_its_end(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"), says("Sunny."))
    private = {"X-Nitka-Private": "yes"}
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER], extra_headers=private)
    last = mine.responses.create(model="m", input=outputs(first), previous_response_id=first.id, tools=[WEATHER])
    assert last.output_text == "Sunny."
    assert stage.run(stage.nitka.sessions("anna")) == ()


def test_a_loop_that_is_not_to_be_stored_is_not_continued_by_id(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather"))
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER], store=False)
    with pytest.raises(openai.NotFoundError):
        mine.responses.create(model="m", input=outputs(first), previous_response_id=first.id)


def test_a_loop_that_goes_on_in_its_conversation(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, calls("weather", "time"), says("Sunny."))
    conversation = mine.conversations.create().id
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER], conversation=conversation)
    mine.responses.create(model="m", input=outputs(first)[::-1], tools=[WEATHER], conversation=conversation)
    answered = {message["tool_call_id"] for message in seen(stage)[2:]}
    assert answered == {"call_time", "call_weather"}
    assert stage.rows(session=conversation) == [("user", "Warm?"), ("assistant", "Sunny.")]


def test_an_output_is_taken_where_its_call_was_made(stage: Stage, mine: OpenAI) -> None:
    """Not in another conversation, not after another response, and not where the call is nowhere."""
    scripted(stage, says("A"), calls("weather"))
    other = mine.responses.create(model="m", input="Other")
    first = mine.responses.create(model="m", input="Warm?", tools=[WEATHER])
    given: Any = outputs(first)
    lost: Any = [{"type": "function_call_output", "call_id": "call_1", "output": "x"}]
    more: Any
    for input, more, code in (
        (given, {"conversation": "conv_other"}, "two_sessions"),
        (given, {"previous_response_id": other.id}, "previous_response_not_found"),
        (lost, {"conversation": "conv_other"}, "unknown_call"),
        (lost, {"previous_response_id": other.id}, "unknown_call"),
    ):
        with pytest.raises(openai.APIStatusError) as caught:
            mine.responses.create(model="m", input=input, **more)
        assert caught.value.code == code
    assert kept(stage) == [("user", "Other"), ("assistant", "A")]


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("required", "required"),
        ({"type": "function", "name": "weather"}, {"type": "function", "function": {"name": "weather"}}),
        (
            {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "weather"}]},
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "weather"}}]},
            },
        ),
    ],
)
def test_how_functions_may_be_used_is_told_the_upstream(stage: Stage, mine: OpenAI, given: Any, sent: Any) -> None:
    mine.responses.create(model="m", input="Warm?", tools=[WEATHER], tool_choice=given, parallel_tool_calls=False)
    asked = stage.script.last
    assert (asked["tool_choice"], asked["parallel_tool_calls"]) == (sent, False)
    assert asked["tools"] == [{"type": "function", "function": {k: v for k, v in WEATHER.items() if k != "type"}}]


def test_a_loop_that_replaces_does_so_at_its_end(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, says("A"), says("B"), says("C"), calls("weather"), says("D"))
    first = mine.responses.create(model="m", input="a")
    second = mine.responses.create(model="m", input="b", previous_response_id=first.id)
    mine.responses.create(model="m", input="c", previous_response_id=second.id)
    again = {"X-Nitka-Replace": "last"}
    loop = mine.responses.create(
        model="m", input="d", previous_response_id=first.id, tools=[WEATHER], extra_headers=again
    )
    assert [text for _, text in kept(stage)] == ["a", "A", "b", "B", "c", "C"]
    mine.responses.create(model="m", input=outputs(loop), previous_response_id=loop.id, tools=[WEATHER])
    assert [text for _, text in kept(stage)] == ["a", "A", "d", "D"]
    assert [message["content"] for message in seen(stage)][:3] == ["a", "A", "d"]


def test_a_response_is_told_again_as_it_is_kept(stage: Stage, mine: OpenAI) -> None:
    stage.script.answer = lambda body: says("<think>hm</think>Три коржа.")
    made = mine.responses.create(model="m-7", input="Сколько?", metadata={"a": "b"})
    found = mine.responses.retrieve(made.id)
    same = ("id", "object", "model", "output", "output_text", "status", "created_at")
    assert [getattr(found, name) for name in same] == [getattr(made, name) for name in same]
    assert (found.usage, found.instructions, found.previous_response_id) == (None, None, None)
    listed: Any = mine.responses.input_items.list(made.id).to_dict()
    (item,) = listed["data"]
    assert (item["role"], item["content"]) == ("user", [{"type": "input_text", "text": "Сколько?"}])
    assert found.conversation is not None
    mine.responses.create(model="m", input="И?", conversation=found.conversation.id)
    assert [text for role, text in kept(stage) if role == "user"] == ["Сколько?", "И?"]


def test_a_response_that_was_cut_off_is_told_as_incomplete(stage: Stage, mine: OpenAI) -> None:
    stage.script.answer = lambda body: says("One two three four")
    stage.script.breaks_after = 3
    events = list(mine.responses.create(model="m", input="Count.", stream=True))
    assert events[0].type == "response.created"
    assert events[-1].type == "response.failed"
    found = mine.responses.retrieve(events[0].response.id)
    assert (found.status, found.output_text) == ("incomplete", "One two ")


def test_deleting_a_response_forgets_its_turn_and_no_other(stage: Stage, mine: OpenAI) -> None:
    scripted(stage, says("A"), says("B"), says("C"), says("D"))
    first = mine.responses.create(model="m", input="a")
    second = mine.responses.create(model="m", input="b", previous_response_id=first.id)
    third = mine.responses.create(model="m", input="c", previous_response_id=second.id)
    mine.responses.delete(second.id)
    assert [text for _, text in kept(stage)] == ["a", "A", "c", "C"]
    for method in (mine.responses.retrieve, mine.responses.delete):
        with pytest.raises(openai.NotFoundError):
            method(second.id)
    mine.responses.delete(third.id)
    mine.responses.create(model="m", input="d", previous_response_id=first.id)
    assert [message["content"] for message in seen(stage)] == ["a", "A", "d"]
    assert [text for _, text in kept(stage)] == ["a", "A", "d", "D"]


def test_anothers_response_is_no_response(stage: Stage, mine: OpenAI) -> None:
    """Of another user, another tenant, altered, cut, of another kind, or none: all the same 404, and all stays."""
    made = mine.responses.create(model="m", input="one")
    flipped = made.id[:60] + ("A" if made.id[60] != "A" else "B") + made.id[61:]
    with of(stage, "eve") as eve, of(stage, "anna", "other") as other:
        tries = [(eve, made.id), (other, made.id)]
        tries += [(mine, id) for id in (made.id[:-4], made.id + "AAAA", flipped, "resp_", "resp_1", "x", made.id[5:])]
        for client, id in tries:
            for method in (client.responses.retrieve, client.responses.delete, client.responses.input_items.list):
                with pytest.raises(openai.NotFoundError) as caught:
                    method(id)
                assert caught.value.code == "response_not_found"
    assert mine.responses.retrieve(made.id).output_text == "All right."
    assert stage.run(stage.nitka.sessions(User("anna", "other"))) == ()


def test_a_kept_response_is_found_without_a_session_and_needs_a_user(stage: Stage, mine: OpenAI) -> None:
    made = mine.responses.create(model="m", input="one")
    assert of(stage, "anna", **{"X-Nitka-Session": "another"}).responses.retrieve(made.id).id == made.id
    nobody = OpenAI(base_url=f"{stage.url}/v1", api_key=stage.key("turns"), max_retries=0)
    with pytest.raises(openai.BadRequestError) as caught:
        nobody.responses.retrieve(made.id)
    assert caught.value.code == "missing_user"
    with pytest.raises(openai.BadRequestError):
        mine.get(f"/responses/{made.id}?stream=true", cast_to=object)
