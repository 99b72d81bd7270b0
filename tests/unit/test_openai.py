"""The client of OpenAI-compatible servers, against a real server on this machine that follows a script."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nitka.errors import BadInput, ModelError
from nitka.models.openai import ANSWER_BYTES, LONGEST_WAIT, OpenAIChat
from nitka.models.ports import ChatModel

ASK = [{"role": "user", "content": "Тайна: marker-7391"}]
KEY = "sk-secret-key"
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


@dataclass
class Step:
    """What the server does with one request. `body` pieces are sent one by one; `hang` keeps silent at the end; `cut`
    breaks the connection off in the middle of the answer."""

    status: int = 200
    body: Sequence[bytes] = ()
    headers: dict[str, str] = field(default_factory=dict)
    hang: bool = False
    cut: bool = False


@dataclass
class Server:
    steps: list[Step]
    port: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    gone: int = 0  # connections that the client closed before the answer's end

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._one(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            self.gone += 1
        finally:
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:] if line)}
        self.paths.append(lines[0].split(" ")[1])
        self.headers.append(headers)
        self.requests.append(json.loads(await reader.readexactly(int(headers["content-length"]))))
        step = self.steps.pop(0)
        size = sum(map(len, step.body)) + (10 if step.cut or step.hang else 0)
        told = {"content-length": str(size), "connection": "close", **step.headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
        writer.write(f"HTTP/1.1 {step.status} Scripted\r\n{head}\r\n".encode())
        for piece in step.body:
            writer.write(piece)
            await writer.drain()
            await asyncio.sleep(0)
        if step.hang:
            await reader.read()
            raise ConnectionError


@dataclass
class Talk:
    server: Server
    chat: OpenAIChat
    slept: list[float]


@asynccontextmanager
async def talk(*steps: Step, path: str = "/v1", **more: Any) -> AsyncIterator[Talk]:
    server, slept = Server(list(steps)), list[float]()

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listening.sockets[0].getsockname()[1]
    async with httpx.AsyncClient(trust_env=False, verify=False) as client:
        base = more.pop("base", "http://127.0.0.1:{port}").format(port=server.port)
        made: dict[str, Any] = {"api_key": KEY, "attempts": 3, "timeout": 5.0, "sleep": sleep, "client": client} | more
        yield Talk(server, OpenAIChat("small-1", base_url=base + path, **made), slept)
    listening.close()
    await listening.wait_closed()


def run(work: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(work(), 20))


def ok(content: object = "Hello", finish: str = "stop", **message: object) -> Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7, "completion_tokens_details": {"x": 1}}
    return Step(body=[json.dumps({"choices": [choice], "usage": usage}).encode()])


def fail(status: int, headers: dict[str, str] | None = None, **error: object) -> Step:
    told = {"message": "the user said marker-7391", "type": "some_error", **error}
    return Step(status, [json.dumps({"error": told}).encode()], headers or {})


def delta(content: str | None = None, finish: str | None = None, **more: object) -> bytes:
    return json.dumps({"choices": [{"delta": {"content": content, **more}, "finish_reason": finish}]}).encode()


def sse(*events: bytes, done: bool = True) -> bytes:
    return b"".join(b"data: " + event + b"\n\n" for event in (*events, *([b"[DONE]"] if done else [])))


async def fails(asked: Awaitable[object]) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await asked
    shown = f"{caught.value} {caught.value.__cause__!r} {caught.value.__context__!r}"
    assert not any(secret in shown for secret in ("marker-7391", KEY, "127.0.0.1", "pass-word"))
    return caught.value


async def collect(chat: OpenAIChat) -> list[str]:
    return [piece async for piece in chat.stream(ASK, max_tokens=64)]


def test_an_answer_comes_with_its_usage_and_the_request_is_as_asked() -> None:
    async def work() -> None:
        async with talk(ok("  Привет!\n")) as t:
            chat: ChatModel = t.chat
            answer = await chat.complete(ASK, max_tokens=64)
            assert answer.text == "Привет!"
            assert answer.usage == {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}
            assert t.server.requests == [{"model": "small-1", "messages": ASK, "max_tokens": 64}]
            assert t.server.paths == ["/v1/chat/completions"]
            assert t.server.headers[0]["authorization"] == f"Bearer {KEY}"

    run(work)


def test_a_list_of_parts_is_an_answer_too() -> None:
    async def work() -> None:
        async with talk(ok([{"type": "text", "text": "one "}, {"type": "text", "text": "two"}])) as t:
            assert (await t.chat.complete(ASK, max_tokens=9)).text == "one two"

    run(work)


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_what_may_pass_is_asked_again_with_growing_pauses(status: int) -> None:
    async def work() -> None:
        async with talk(fail(status), fail(status), ok()) as t:
            assert (await t.chat.complete(ASK, max_tokens=9)).text == "Hello"
            assert len(t.server.requests) == 3 and t.server.requests[0] == t.server.requests[2]
            assert 0 < t.slept[0] < t.slept[1]

    run(work)


@pytest.mark.parametrize("status", [301, 400, 401, 402, 403, 404, 413, 422])
def test_what_will_not_pass_is_not_asked_again(status: int) -> None:
    async def work() -> None:
        async with talk(fail(status, code="some.code")) as t:
            error = await fails(t.chat.complete(ASK, max_tokens=9))
            assert (error.status, error.retryable, t.slept) == (status, False, [])
            assert str(status) in str(error) and "some_error" in str(error) and "some.code" in str(error)

    run(work)


def test_attempts_end_and_the_last_error_is_told() -> None:
    async def work() -> None:
        async with talk(fail(500), fail(502), fail(503)) as t:
            error = await fails(t.chat.complete(ASK, max_tokens=9))
            assert (error.status, error.retryable, len(t.slept)) == (503, True, 2)

    run(work)


def test_a_spent_quota_is_not_asked_again() -> None:
    async def work() -> None:
        async with talk(fail(429, code="insufficient_quota")) as t:
            assert not (await fails(t.chat.complete(ASK, max_tokens=9))).retryable

    run(work)


DATES = {"retry-after": "Wed, 21 Oct 2026 07:28:07 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}


@pytest.mark.parametrize(
    ("headers", "least"),
    [({"retry-after": "7"}, 7.0), (DATES, 7.0), ({"retry-after": "0"}, 0.0), ({"retry-after": "soon"}, 0.0)],
)
def test_retry_after_is_obeyed_in_both_forms(headers: dict[str, str], least: float) -> None:
    async def work() -> None:
        async with talk(fail(429, headers), ok()) as t:
            await t.chat.complete(ASK, max_tokens=9)
            assert t.slept[0] >= least and t.slept[0] < least + 1

    run(work)


def test_a_very_long_retry_after_is_an_error_that_may_be_retried_later() -> None:
    async def work() -> None:
        async with talk(fail(429, {"retry-after": str(int(LONGEST_WAIT) + 1)})) as t:
            error = await fails(t.chat.complete(ASK, max_tokens=9))
            assert error.retryable and t.slept == []

    run(work)


@pytest.mark.parametrize("jitter", [0.0, 0.5, 1.0])
def test_chance_moves_a_pause_by_at_most_half(jitter: float) -> None:
    async def work() -> None:
        async with talk(fail(500), ok(), jitter=lambda: jitter) as t:
            await t.chat.complete(ASK, max_tokens=9)
            assert t.slept == [0.5 * (0.5 + jitter / 2)]

    run(work)


def test_a_lost_connection_and_a_silence_are_asked_again() -> None:
    async def work() -> None:
        async with talk(Step(body=[b'{"choices"'], cut=True), Step(hang=True), ok(), timeout=0.2) as t:
            assert (await t.chat.complete(ASK, max_tokens=9)).text == "Hello"

    run(work)


def test_no_server_at_all_is_a_retryable_error_without_an_address() -> None:
    async def work() -> None:
        async with talk(attempts=2) as t:
            chat = OpenAIChat("m", base_url="http://user:pass-word@127.0.0.1:9", attempts=1)
            error = await fails(chat.complete(ASK, max_tokens=9))
            assert error.retryable and error.status is None and "ConnectError" in str(error)
            assert "pass-word" not in repr(chat) and t.slept == []
            await chat.close()

    run(work)


def test_a_password_in_the_address_is_sent_as_such_and_the_key_is_not() -> None:
    async def work() -> None:
        async with talk(ok(), base="http://user:pass-word@127.0.0.1:{port}") as t:
            await t.chat.complete(ASK, max_tokens=9)
            assert t.server.headers[0]["authorization"].startswith("Basic ")

    run(work)


NOTHING = {
    "empty": ok(""),
    "blank": ok(" \n"),
    "none": ok(None),
    "no choices": Step(body=[b'{"choices": []}']),
    "not JSON": Step(body=[b"<html>marker-7391</html>"]),
    "not an object": Step(body=[b'["marker-7391"]']),
    "deep": Step(body=[b"[" * 100_000]),
    "an error as an answer": Step(body=[b'{"error": {"message": "marker-7391", "code": "overloaded"}}']),
    "only reasoning_content": ok("", reasoning_content="marker-7391"),
    "only reasoning": ok(None, reasoning="marker-7391"),
    "only <think>": ok("<think>marker-7391</think>\n"),
    "unclosed <think>": ok("<think>marker-7391"),
    "no room": ok("", finish="length"),
    "a refusal": ok(None, refusal="marker-7391"),
    "tool calls": ok(None, finish="tool_calls", tool_calls=[{"id": "1"}]),
}


@pytest.mark.parametrize("name", NOTHING)
def test_what_is_no_answer_is_an_error_and_never_a_text(name: str) -> None:
    async def work() -> None:
        async with talk(NOTHING[name]) as t:
            await fails(t.chat.complete(ASK, max_tokens=9))
            assert t.slept == []

    run(work)


def test_room_that_was_used_up_by_reasoning_is_named_and_not_retried() -> None:
    async def work() -> None:
        async with talk(ok("<think>long", finish="length")) as t:
            error = await fails(t.chat.complete(ASK, max_tokens=9))
            assert "room" in str(error) and not error.retryable

    run(work)


def test_reasoning_beside_an_answer_is_left_behind() -> None:
    async def work() -> None:
        async with talk(ok("<think>hm</think>\nYes", reasoning_content="hm")) as t:
            assert (await t.chat.complete(ASK, max_tokens=9)).text == "Yes"

    run(work)


def test_an_answer_over_the_limit_is_refused_while_it_is_read() -> None:
    async def work() -> None:
        endless = Step(body=[b"x" * (1 << 20)] * 14, headers={"content-length": str(ANSWER_BYTES * 9)})
        async with talk(endless) as t:
            assert "10 MB" in str(await fails(t.chat.complete(ASK, max_tokens=9)))
        async with talk(endless) as t:
            assert "10 MB" in str(await fails(collect(t.chat)))

    run(work)


# Dialects


def test_a_server_that_wants_max_completion_tokens_gets_it_from_then_on() -> None:
    async def work() -> None:
        no = fail(400, param="max_tokens", code="unsupported_parameter")
        async with talk(no, ok(), ok()) as t:
            await t.chat.complete(ASK, max_tokens=9)
            await t.chat.complete(ASK, max_tokens=9)
            limits = [{key for key in request if key.startswith("max_")} for request in t.server.requests]
            assert limits == [{"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}]
            assert t.slept == []

    run(work)


def test_a_schema_is_asked_for_in_ever_plainer_forms() -> None:
    async def work() -> None:
        async with talk(fail(400), fail(422), ok('```json\n{"a": "б"}\n```'), ok('{"a": "c"}')) as t:
            asked = [{"role": "system", "content": "Be brief."}, *ASK]
            assert (await t.chat.complete(asked, max_tokens=9, schema=SCHEMA)).text == '{"a": "б"}'
            assert (await t.chat.complete(asked, max_tokens=9, schema=SCHEMA)).text == '{"a": "c"}'
            forms = [request.get("response_format", {}).get("type") for request in t.server.requests]
            assert forms == ["json_schema", "json_object", None, None]
            assert t.server.requests[0]["response_format"]["json_schema"] == {
                "name": "answer",
                "schema": SCHEMA,
                "strict": True,
            }
            assert t.server.requests[0]["messages"] == asked
            for request in t.server.requests[1:]:
                assert [message["role"] for message in request["messages"]] == ["system", "user"]
                assert json.dumps(SCHEMA) in request["messages"][0]["content"]

    run(work)


@pytest.mark.parametrize("open_schema", [{**SCHEMA, "additionalProperties": True}, {**SCHEMA, "required": []}])
def test_an_open_schema_is_not_called_strict(open_schema: dict[str, Any]) -> None:
    async def work() -> None:
        async with talk(ok("{}")) as t:
            await t.chat.complete(ASK, max_tokens=9, schema=open_schema)
            assert t.server.requests[0]["response_format"]["json_schema"]["strict"] is False

    run(work)


def test_words_where_json_was_asked_for_are_an_error() -> None:
    async def work() -> None:
        async with talk(ok("Sure! marker-7391")) as t:
            assert (await fails(t.chat.complete(ASK, max_tokens=9, schema=SCHEMA))).retryable

    run(work)


def test_a_request_that_is_too_long_is_not_asked_again_in_another_dialect() -> None:
    async def work() -> None:
        async with talk(fail(400, code="context_length_exceeded", message="reduce max_tokens")) as t:
            assert "context_length_exceeded" in str(await fails(t.chat.complete(ASK, max_tokens=9, schema=SCHEMA)))
            assert len(t.server.requests) == 1

    run(work)


def test_lone_surrogates_do_not_break_a_request() -> None:
    async def work() -> None:
        async with talk(ok()) as t:
            await t.chat.complete([{"role": "user", "content": "a\ud800b\ud83d\ude00"}], max_tokens=9)
            assert t.server.requests[0]["messages"][0]["content"] == "a\ufffdb😀"

    run(work)


# Streams


def test_a_stream_gives_the_pieces_as_they_come() -> None:
    async def work() -> None:
        events = [
            delta("", role="assistant"),
            delta(None, reasoning_content="hm"),
            delta("Да"),
            delta(""),
            delta(", "),
            delta("ок"),
        ]
        async with talk(Step(body=[b": ping\n\nevent: x\n" + sse(*events, delta(finish="stop"))])) as t:
            assert await collect(t.chat) == ["Да", ", ", "ок"]
            assert t.server.requests[0]["stream"] is True

    run(work)


WORDS = st.lists(st.text(st.sampled_from("aб中🎉 \u2028\u0085\x0b"), max_size=5), max_size=6)


@settings(max_examples=40, deadline=None)
@given(WORDS, st.lists(st.integers(0, 2000), max_size=8), st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_a_stream_cut_anywhere_gives_the_same_text(words: list[str], places: list[int], end: bytes) -> None:
    """Whatever ends its lines, and whatever other line breaks of Unicode the text holds."""
    raw = sse(delta("S"), *(delta(word) for word in words), delta("E", finish="stop")).replace(b"\n", end)
    marks = [0, *sorted(place % len(raw) for place in places), len(raw)]

    async def work() -> None:
        async with talk(Step(body=[raw[a:b] for a, b in zip(marks, marks[1:], strict=False)])) as t:
            assert "".join(await collect(t.chat)) == "S" + "".join(words) + "E"

    run(work)


def test_reasoning_in_a_stream_is_not_handed_out() -> None:
    async def work() -> None:
        async with talk(Step(body=[sse(delta("<thi"), delta("nk>hm</th"), delta("ink>\n\nYe"), delta("s <b"))])) as t:
            assert "".join(await collect(t.chat)) == "Yes <b"

    run(work)


@pytest.mark.parametrize("end", [Step(cut=True), Step(), Step(hang=True)], ids=["cut", "closed", "silent"])
def test_a_stream_that_does_not_end_properly_is_an_error_after_its_pieces(end: Step) -> None:
    async def work() -> None:
        broken = Step(body=[sse(delta("half of"), delta(" it"), done=False)], cut=end.cut, hang=end.hang)
        async with talk(broken, timeout=0.3) as t:
            pieces = []
            with pytest.raises(ModelError) as caught:
                async for piece in t.chat.stream(ASK, max_tokens=9):
                    pieces.append(piece)
            assert pieces == ["half of", " it"] and caught.value.retryable
            assert len(t.server.requests) == 1 and t.slept == []

    run(work)


@pytest.mark.parametrize(
    "first", [fail(503), Step(hang=True), Step(cut=True), Step(body=[b": ping\n\n"], cut=True), Step()]
)
def test_a_stream_is_begun_again_while_nothing_was_handed_out(first: Step) -> None:
    async def work() -> None:
        async with talk(first, Step(body=[sse(delta("Yes"))]), timeout=0.3) as t:
            assert await collect(t.chat) == ["Yes"]
            assert len(t.slept) == 1

    run(work)


@pytest.mark.parametrize(
    "events",
    [
        [],
        [delta(" \n")],
        [delta("<think>marker-7391")],
        [delta(None, reasoning="marker-7391"), delta(finish="stop")],
        [delta("", finish="length")],
        [b"marker-7391"],
        [b'{"error": {"message": "marker-7391"}}'],
    ],
)
def test_a_stream_without_an_answer_is_an_error(events: list[bytes]) -> None:
    async def work() -> None:
        async with talk(Step(body=[sse(*events)])) as t:
            await fails(collect(t.chat))
            assert t.slept == []

    run(work)


def test_an_error_in_mid_stream_is_an_error_after_the_pieces() -> None:
    async def work() -> None:
        async with talk(Step(body=[sse(delta("half"), b'{"error": {"code": 500, "message": "marker-7391"}}')])) as t:
            await fails(collect(t.chat))

    run(work)


def test_a_finish_reason_is_an_end_also_without_a_done_mark() -> None:
    async def work() -> None:
        async with talk(Step(body=[sse(delta("Yes"), delta(finish="stop"), done=False)])) as t:
            assert await collect(t.chat) == ["Yes"]

    run(work)


def test_leaving_a_stream_early_closes_its_connection() -> None:
    async def work() -> None:
        async with talk(Step(body=[sse(delta("one"), delta("two"), done=False)], hang=True)) as t:
            stream = t.chat.stream(ASK, max_tokens=9)
            assert await anext(stream) == "one"
            await stream.aclose()
            for _ in range(100):
                if t.server.gone:
                    break
                await asyncio.sleep(0.01)
            assert t.server.gone == 1

    run(work)


def test_a_cancelled_call_is_cancelled_and_not_asked_again() -> None:
    async def work() -> None:
        async with talk(Step(hang=True)) as t:
            asked = asyncio.ensure_future(t.chat.complete(ASK, max_tokens=9))
            while not t.server.requests:
                await asyncio.sleep(0.01)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert len(t.server.requests) == 1

    run(work)


@pytest.mark.parametrize(
    "wrong", [{"base_url": "localhost:1"}, {"base_url": "ftp://h/"}, {"api_key": "ключ"}, {"api_key": "a\nb"}]
)
def test_a_useless_argument_is_refused_without_showing_it(wrong: dict[str, str]) -> None:
    with pytest.raises(BadInput) as caught:
        OpenAIChat("m", **wrong)  # type: ignore[arg-type]
    assert not any(value in str(caught.value) for value in wrong.values())
    with pytest.raises(BadInput):
        OpenAIChat(" ")
