"""What comes in from elsewhere: turns that were held by another system, and what the watch shall remember."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from nitka import User
from tests.server.native.house import House, housed

pytestmark = pytest.mark.anyio

ANNA = User("anna", "shop")
THEN = "2024-05-06T10:20:30+03:00"
TURN = {"text": "Мой пёс — Рекс.", "answer": "Запомнила.", "at": THEN}
FLAGS = {"flags": ["ask_guardian_whereabouts"]}


@pytest.fixture
async def watched() -> AsyncIterator[House]:
    """A server that watches one tenant's conversations."""
    async with housed(watch={"shop": "fraud towards our buyers"}) as house:
        yield house


async def ok(reply: Any) -> Any:
    assert reply.status_code == 200, reply.text
    return reply.json()


async def test_a_turn_from_elsewhere_keeps_its_time(house: House) -> None:
    assert await ok(await house.post("/v1/me/record", {**TURN, "channel": "mail"})) == {"recorded": True}
    rows = await house.nitka.history(ANNA, "web-1")
    then = datetime(2024, 5, 6, 7, 20, 30, tzinfo=UTC)
    assert [(row.role, row.text, row.at, row.channel) for row in rows] == [
        ("user", TURN["text"], then, "mail"),
        ("assistant", TURN["answer"], then, "mail"),
    ]
    assert house.model.requests == []
    (info,) = (await ok(await house.get("/v1/me/sessions")))["data"]
    assert info["last"] == then.isoformat()


async def test_an_imported_past_is_what_the_next_turn_reads(house: House) -> None:
    for number in range(20):
        turn = {"text": f"Q{number}", "answer": f"A{number}", "at": f"2024-05-06T10:{number:02}:00Z"}
        await ok(await house.post("/v1/me/record", turn))
    await house.nitka.settle()
    await ok(await house.post("/v1/turns", {"text": "And now?"}))
    sent = [message["content"] for message in house.model.requests[-1]]
    assert sent[-5:] == ["Q18", "A18", "Q19", "A19", "And now?"]
    assert (await house.nitka.summary(ANNA, "web-1")).cursor > 30


async def test_a_turn_with_a_key_is_recorded_once(house: House) -> None:
    for _ in range(2):
        await ok(await house.post("/v1/me/record", {**TURN, "key": "mail-1"}))
    await ok(await house.post("/v1/me/record", TURN, more={"Idempotency-Key": "mail-1"}))
    assert len(await house.nitka.history(ANNA, "web-1")) == 2
    reused = await house.post("/v1/me/record", {**TURN, "text": "Other", "key": "mail-1"})
    assert (reused.status_code, reused.json()["error"]["code"]) == (422, "turn_key_reused")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"text": "a", "answer": "b"}, "invalid_value"),
        ({**TURN, "at": "2024-05-06T10:20:30"}, "invalid_value"),
        ({**TURN, "answer": ""}, "bad_text"),
        ({**TURN, "text": " "}, "bad_text"),
        ({**TURN, "zone": "Nowhere/Else"}, "bad_input"),
        ({**TURN, "session": "another"}, "two_sessions"),
        ({**TURN, "more": 1}, "invalid_value"),
    ],
)
async def test_what_is_no_turn_is_refused_and_leaves_nothing(house: House, body: Any, code: str) -> None:
    reply = await house.post("/v1/me/record", body)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, code)
    assert await house.nitka.sessions(ANNA) == ()


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/me/record", TURN), ("/v1/me/watch", {"memory": {}})], ids=["record", "watch"]
)
async def test_the_session_must_be_named(house: House, path: str, body: Any) -> None:
    reply = await house.post(path, body, session=None)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "missing_session")


async def test_the_watch_goes_on_from_the_memory_that_is_put_in(watched: House) -> None:
    """A flag from outside and one message add up to an alert; taken back, they do not."""
    await ok(await watched.post("/v1/turns", {"text": "Hello."}))
    put = await ok(await watched.post("/v1/me/watch", {"memory": FLAGS}))
    found = await ok(await watched.get("/v1/me/watch"))
    assert found == {"on": True, "purpose": "fraud towards our buyers", "memory": put["memory"]}
    raised = await ok(await watched.post("/v1/turns", {"text": "Can you turn on your camera?"}))
    assert [alert["rule"] for alert in raised["alerts"]] == ["G01"]
    await ok(await watched.post("/v1/me/watch", {"memory": {}, "session": "web-1"}))
    quiet = await ok(await watched.post("/v1/turns", {"text": "Can you turn on your camera?"}))
    assert quiet["alerts"] == []


async def test_where_the_watch_is_off_it_says_so(house: House) -> None:
    await ok(await house.post("/v1/turns", {"text": "Hello."}))
    assert await ok(await house.get("/v1/me/watch")) == {"on": False, "purpose": None, "memory": {}}
    refused = await house.post("/v1/me/watch", {"memory": FLAGS})
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "watch_off")
    assert await house.nitka.watch_memory(ANNA, "web-1") == {}


async def test_the_watch_of_one_tenant_is_not_anothers(watched: House) -> None:
    key = await watched.make_key("read", "admin", "turns", tenant="school")
    await ok(await watched.post("/v1/turns", {"text": "Where are your parents now?"}))
    assert (await ok(await watched.get("/v1/me/watch")))["memory"] != {}
    await ok(await watched.post("/v1/turns", {"text": "Hello."}, key=key))
    assert await ok(await watched.get("/v1/me/watch", key=key)) == {"on": False, "purpose": None, "memory": {}}
    assert (await watched.post("/v1/me/watch", {"memory": FLAGS}, key=key)).status_code == 409


@pytest.mark.parametrize("memory", [{"flags": [5]}, {"flags": "x"}, {"flags": [f"x{n}" for n in range(65)]}])
async def test_a_malformed_memory_is_refused_and_the_old_one_stays(watched: House, memory: Any) -> None:
    await ok(await watched.post("/v1/turns", {"text": "Where are your parents now?"}))
    before = await ok(await watched.get("/v1/me/watch"))
    reply = await watched.post("/v1/me/watch", {"memory": memory})
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_input")
    assert await ok(await watched.get("/v1/me/watch")) == before


async def test_an_unknown_session_has_no_memory_to_replace(watched: House) -> None:
    reply = await watched.post("/v1/me/watch", {"memory": FLAGS}, session="never")
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_input")
    assert (await ok(await watched.get("/v1/me/watch", session="never")))["memory"] == {}
