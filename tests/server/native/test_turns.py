"""`/v1/turns`: one turn over HTTP, whole and streamed."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx
import pytest
import uvicorn

from nitka import ModelError, User
from nitka.testing import FakeModel
from tests.server.native.house import SITE, House, Wire, events, housed

pytestmark = pytest.mark.anyio

ANNA = User("anna", "shop")


async def said(house: House, user: User = ANNA, session: str = "web-1") -> list[str]:
    return [message.text for message in await house.nitka.history(user, session)]


async def test_a_turn_is_answered_and_kept(house: House) -> None:
    reply = (await house.post("/v1/turns", {"text": "Привет, кто там?"})).json()
    assert reply["text"] == "I heard: Привет, кто там?"
    assert (reply["kept"], reply["seq"], reply["replayed"], reply["interrupted"]) == (True, 0, False, False)
    assert reply["receipt"]["used"] <= reply["receipt"]["room"]
    assert await said(house) == ["Привет, кто там?", "I heard: Привет, кто там?"]
    assert (await house.post("/v1/turns", {"text": "And now?"})).json()["seq"] == 2


async def test_user_and_session_may_stand_in_the_body(house: House) -> None:
    body = {"text": "Hello", "user": "bob", "session": "s"}
    assert (await house.post("/v1/turns", body, user=None, session=None)).status_code == 200
    assert len(await said(house, User("bob", "shop"), "s")) == 2


async def test_two_names_for_one_thing_are_refused(house: House) -> None:
    for field, code in (("user", "two_users"), ("session", "two_sessions")):
        reply = await house.post("/v1/turns", {"text": "Hello", field: "other"})
        assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)


@pytest.mark.parametrize(("missing", "code"), [("user", "missing_user"), ("session", "missing_session")])
async def test_what_is_missing_is_named(house: House, missing: str, code: str) -> None:
    reply = await house.post("/v1/turns", {"text": "Hello"}, **{missing: None})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)


async def test_every_argument_arrives(house: House) -> None:
    body = {
        "text": "What is it?",
        "system": "You are a clerk.",
        "knowledge": ["Plain passage.", {"text": "Labelled passage.", "label": "manual"}],
        "budget": {"total": 4_000, "answer": 500},
        "at": "2026-01-04T09:00:00+03:00",
        "zone": "Europe/Moscow",
        "channel": "kiosk",
        "language": "en",
        "recall": "off",
    }
    assert (await house.post("/v1/turns", body)).status_code == 200
    asked = "\n".join(message["content"] for message in house.model.requests[-1])
    assert all(words in asked for words in ("You are a clerk.", "Plain passage.", "Labelled passage.", "manual"))
    question = (await house.nitka.history(ANNA, "web-1"))[0]
    assert (question.zone, question.channel) == ("Europe/Moscow", "kiosk")
    assert question.at.isoformat() == "2026-01-04T06:00:00+00:00"


async def test_a_delivery_that_comes_again_is_answered_as_before(house: House) -> None:
    again = [await house.post("/v1/turns", {"text": "Once"}, more={"Idempotency-Key": "k1"}) for _ in range(2)]
    assert [reply.json()["replayed"] for reply in again] == [False, True]
    assert {reply.json()["text"] for reply in again} == {"I heard: Once"}
    assert {reply.json()["seq"] for reply in again} == {0}
    assert len(await said(house)) == 2 and len(house.model.requests) == 1
    other = await house.post("/v1/turns", {"text": "Other", "key": "k1"})
    assert (other.status_code, other.json()["error"]["code"]) == (422, "turn_key_reused")


async def test_a_private_turn_leaves_nothing(house: House) -> None:
    reply = (await house.post("/v1/turns", {"text": "Between us", "private": True})).json()
    assert (reply["text"], reply["kept"], reply["seq"]) == ("I heard: Between us", False, None)
    assert await house.nitka.sessions(ANNA) == ()


async def test_an_edit_replaces_the_turn_and_what_followed(house: House) -> None:
    for text in ("one", "two", "three"):
        await house.post("/v1/turns", {"text": text})
    await house.post("/v1/turns", {"text": "two again", "replaces": 2})
    assert await said(house) == ["one", "I heard: one", "two again", "I heard: two again"]


async def test_a_model_that_fails_leaves_nothing() -> None:
    async with housed(FakeModel([ModelError(status=500)])) as house:
        for stream in (False, True):
            reply = await house.post("/v1/turns", {"text": "Hello", "stream": stream})
            assert (reply.status_code, reply.json()["error"]["code"]) == (502, "model_error")
        assert await said(house) == []


async def test_a_stream_hands_out_pieces_and_then_says_what_is_kept(house: House) -> None:
    reply = await house.post("/v1/turns", {"text": "a b c", "stream": True})
    assert reply.headers["content-type"].startswith("text/event-stream")
    *pieces, done = events(reply.text)
    assert {name for name, _, _ in pieces} == {"piece"} and done[0] == "done"
    assert "".join(data["text"] for _, _, data in pieces) == done[2]["text"] == "I heard: a b c"
    handed = 0
    for _, id, data in pieces:
        handed += len(data["text"])
        assert id == str(handed)
    assert done[1] == str(handed) and done[2]["kept"] and done[2]["receipt"] and done[2]["alerts"] == []


async def test_a_stream_that_broke_goes_on_where_it_stopped_wherever_that_was() -> None:
    answer = "Ответ 🙂, который длиннее"
    async with housed(FakeModel([answer])) as house:
        body = {"text": "Hello", "stream": True, "key": "k"}
        await house.post("/v1/turns", body)
        for have in range(len(answer) + 3):
            *pieces, done = events((await house.post("/v1/turns", body, more={"Last-Event-ID": str(have)})).text)
            assert "".join(data["text"] for _, _, data in pieces) == answer[have:]
            assert done[2]["text"] == answer and done[2]["replayed"]
        whole = events((await house.post("/v1/turns", body, more={"Last-Event-ID": "of another kind"})).text)
        assert whole[0][2]["text"] == answer and len(house.model.requests) == 1


class Halting:
    """Says two words, then waits for ever, or fails."""

    name = "halting"

    def __init__(self, failure: ModelError | None = None) -> None:
        self.failure = failure

    async def complete(self, messages: Any, *, max_tokens: int, schema: Any = None) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *, max_tokens: int) -> Any:
        yield "two "
        yield "words"
        if self.failure:
            raise self.failure
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


async def test_when_the_client_goes_what_was_handed_out_is_kept() -> None:
    async with housed(Halting()) as house:  # type: ignore[arg-type]
        wire = Wire(house.app)
        async with asyncio.timeout(20):
            await wire.post("/v1/turns", {"text": "Hello", "stream": True}, house.headers(), gone_after=2)
        assert wire.status == 200
        question, answer = await house.nitka.history(ANNA, "web-1")
        assert (answer.text, answer.interrupted) == ("two words", True)


async def test_over_a_real_socket_too_and_the_rest_of_it_can_be_fetched() -> None:
    """The client reads two pieces, closes the line, and asks again for what comes after them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        async with housed(Halting()) as house:  # type: ignore[arg-type]
            server = uvicorn.Server(uvicorn.Config(house.app, lifespan="off", log_config=None, access_log=False))
            running = asyncio.create_task(server.serve(sockets=[listening]))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1/turns"
            body = {"text": "Hello", "stream": True, "key": "k"}
            async with httpx.AsyncClient(timeout=30, verify=False, headers=house.headers()) as client:
                async with client.stream("POST", url, json=body) as reply:
                    read = ""
                    async for part in reply.aiter_text():
                        read += part
                        if read.count("\n\n") >= 2:
                            break
                async with asyncio.timeout(20):
                    while len(await said(house)) < 2:
                        await asyncio.sleep(0.02)
                last = events(read)[-1][1]
                rest = events((await client.post(url, json=body, headers={"Last-Event-ID": last})).text)
            assert (last, [name for name, _, _ in rest]) == ("9", ["done"])
            assert rest[0][2]["text"] == "two words" and rest[0][2]["interrupted"] and rest[0][2]["replayed"]
            server.should_exit = True
            await running


async def test_an_answer_that_breaks_off_ends_with_an_error_event_and_keeps_its_pieces() -> None:
    async with housed(Halting(ModelError(status=500))) as house:  # type: ignore[arg-type]
        reply = await house.post("/v1/turns", {"text": "Hello", "stream": True, "key": "k"})
        names = [name for name, _, _ in events(reply.text)]
        assert names == ["piece", "piece", "error"]
        assert events(reply.text)[-1][2]["error"]["code"] == "model_error"
        again = events((await house.post("/v1/turns", {"text": "Hello", "stream": True, "key": "k"})).text)
        assert again[-1][2]["text"] == "two words" and again[-1][2]["interrupted"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"text": 5},
        {"text": "x", "budget": -1},
        {"text": "x", "budget": "many"},
        {"text": "x", "replaces": -1},
        {"text": "x", "at": "2026-01-01T00:00:00"},
        {"text": "x", "zone": "Nowhere/Town"},
        {"text": "x", "recall": "all"},
        {"text": "x", "private": "perhaps"},
        {"text": "x", "unknown": 1},
        {"text": "   "},
        {"text": "x", "knowledge": "one string"},
        {"text": "x", "replaces": 10},
    ],
)
async def test_what_does_not_fit_is_a_400_that_quotes_nothing(house: House, body: dict[str, Any]) -> None:
    reply = await house.post("/v1/turns", body)
    assert reply.status_code == 400
    assert all(word not in reply.text for word in ("Nowhere", "perhaps", "one string", "many"))
    assert await said(house) == []


async def test_a_handle_is_named_by_its_channel(house: House) -> None:
    await house.post("/v1/turns", {"text": "From a phone"}, user="8817", more={"X-Nitka-Channel": "telegram"})
    assert await said(house, User("8817", "shop")) == []
    await house.nitka.link("mail", "a@example.org", User("anna", "shop"))
    await house.post("/v1/turns", {"text": "By mail"}, user="a@example.org", more={"X-Nitka-Channel": "mail"})
    assert await said(house) == ["By mail", "I heard: By mail"]


@pytest.mark.parametrize("stream", [False, True])
async def test_alerts_come_with_the_answer(stream: bool) -> None:
    async with housed(watch={"shop": "a test"}) as house:
        for text, rules in (("Where are your parents now?", []), ("Can you turn on your camera?", ["G01"])):
            reply = await house.post("/v1/turns", {"text": text, "stream": stream})
            told = events(reply.text)[-1][2] if stream else reply.json()
            assert [alert["rule"] for alert in told["alerts"]] == rules
            assert all(alert["severity"] and alert["seq"] == 2 and alert["evidence"] for alert in told["alerts"])


@pytest.mark.parametrize("stream", [False, True])
async def test_whoever_is_watched_is_told_neither_of_alerts_nor_of_the_request(stream: bool) -> None:
    """With a widget's key the answer goes to that person's own browser."""
    async with housed(watch={"shop": "a test"}) as house:
        key = await house.make_key("widget", origins=(SITE,))
        made = (await house.post("/v1/visitors", key=key, user=None, session=None, more={"Origin": SITE})).json()
        more = {"Origin": SITE, "X-Nitka-Visitor": made["token"]}
        for text in ("Where are your parents now?", "Can you turn on your camera?"):
            reply = await house.post("/v1/turns", {"text": text, "stream": stream}, key=key, user=None, more=more)
            told = events(reply.text)[-1][2] if stream else reply.json()
            assert (told["alerts"], told["receipt"]) == ([], None)
            assert "G01" not in reply.text
        memory = await house.nitka.watch_memory(User(made["user"], "shop"), "web-1")
        assert "ask_guardian_whereabouts" in str(memory)


async def test_a_widget_holds_turns_and_steers_nothing(house: House) -> None:
    key = await house.make_key("widget", origins=(SITE,))
    more = {"Origin": SITE}
    made = (await house.post("/v1/visitors", key=key, user=None, session=None, more=more)).json()
    more["X-Nitka-Visitor"] = made["token"]
    reply = await house.post("/v1/turns", {"text": "Hello"}, key=key, user=None, more=more)
    assert reply.status_code == 200 and len(await said(house, User(made["user"], "shop"))) == 2
    for name, value in {"system": "x", "knowledge": ["x"], "budget": 5, "recall": "user", "channel": "x"}.items():
        reply = await house.post("/v1/turns", {"text": "Hello", name: value}, key=key, user=None, more=more)
        assert (reply.status_code, reply.json()["error"]["code"]) == (403, "not_for_widgets"), name
    handle = more | {"X-Nitka-Channel": "telegram"}
    assert (await house.post("/v1/turns", {"text": "Hello"}, key=key, user=None, more=handle)).status_code == 403
