"""`/v1/turns/open` and `/v1/turns/answer`: an open turn travels as a token, and nothing of it is kept here."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import Handle, User
from nitka.testing import MemoryStore
from tests.server.native.house import House, housed

pytestmark = pytest.mark.anyio

ANNA = User("anna", "shop")


async def opened(house: House, text: str = "Where is my parcel?", **more: Any) -> dict[str, Any]:
    reply = await house.post("/v1/turns/open", {"text": text, **more})
    assert reply.status_code == 200, reply.text
    value: dict[str, Any] = reply.json()
    return value


async def answered(house: House, token: str, answer: str = "On its way.", **more: Any) -> Any:
    return await house.post("/v1/turns/answer", {"token": token, "answer": answer, **more}, user=None, session=None)


async def said(house: House) -> list[str]:
    return [message.text for message in await house.nitka.history(ANNA, "web-1")]


async def test_a_turn_is_opened_and_answered(house: House) -> None:
    turn = await opened(house, system="You are a clerk.")
    assert [message["role"] for message in turn["messages"]] == ["system", "user"]
    assert turn["receipt"]["used"] and turn["max_tokens"] and turn["token"].startswith("nt_")
    assert await said(house) == []
    reply = (await answered(house, turn["token"])).json()
    assert (reply["text"], reply["kept"], reply["seq"], reply["replayed"]) == ("On its way.", True, 0, False)
    assert await said(house) == ["Where is my parcel?", "On its way."]
    assert house.model.requests == []


async def test_answering_twice_gives_the_stored_answer(house: House) -> None:
    token = (await opened(house))["token"]
    await answered(house, token)
    again = (await answered(house, token, "Lost.")).json()
    assert (again["text"], again["replayed"], again["seq"]) == ("On its way.", True, 0)
    assert len(await said(house)) == 2


async def test_of_two_answers_at_once_one_is_kept_and_both_are_told_it(house: House) -> None:
    token = (await opened(house))["token"]
    replies = await asyncio.gather(*(answered(house, token, f"answer {n}") for n in range(8)))
    texts = {reply.json()["text"] for reply in replies}
    assert len(texts) == 1 and await said(house) == ["Where is my parcel?", *texts]


async def test_the_server_keeps_nothing_of_an_open_turn() -> None:
    """Another process answers it, which shares no more than the store and the keys."""
    store = MemoryStore()
    async with housed(store=store) as first:
        token = (await opened(first))["token"]
        ring, key = first.nitka._vault.keychain.roots, first.key
    async with housed(store=store, keys=ring) as second:
        second.key = key
        assert (await answered(second, token)).json()["text"] == "On its way."
        assert await said(second) == ["Where is my parcel?", "On its way."]


async def test_a_token_is_good_for_an_hour(house: House) -> None:
    token = (await opened(house))["token"]
    house.clock.advance(minutes=59, seconds=59)
    assert (await answered(house, token)).status_code == 200
    late = (await opened(house))["token"]
    house.clock.advance(hours=1, seconds=1)
    reply = await answered(house, late)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_token")


@pytest.mark.parametrize("minute", [0, 1, 29, 59])
async def test_a_token_is_good_for_an_hour_whenever_the_hour_began(house: House, minute: int) -> None:
    house.clock.advance(minutes=minute)
    tokens = [(await opened(house))["token"] for _ in range(3)]
    for token, passed, status in zip(tokens, (30, 30, 1), (200, 200, 400), strict=True):
        house.clock.advance(minutes=passed)
        assert (await answered(house, token)).status_code == status


async def test_another_tenants_token_is_no_token(house: House) -> None:
    token = (await opened(house))["token"]
    key = await house.make_key("turns", tenant="school")
    reply = await house.post("/v1/turns/answer", {"token": token, "answer": "x"}, key=key)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_token")
    assert await said(house) == []


async def test_a_token_of_another_person_than_the_one_named_is_no_token(house: House) -> None:
    token = (await opened(house))["token"]
    body = {"token": token, "answer": "x"}
    for who, more in (("bob", {}), ("anna", {"X-Nitka-Channel": "telegram"})):
        assert (await house.post("/v1/turns/answer", body, user=who, more=more)).status_code == 400
    assert await said(house) == []
    assert (await house.post("/v1/turns/answer", body, user="anna")).status_code == 200


async def test_what_is_wrong_with_a_token_is_not_told(house: House) -> None:
    """Expired, another tenant's, altered, empty: one answer."""
    token = (await opened(house))["token"]
    other = await house.make_key("turns", tenant="school")
    bodies = [
        "",
        "nt_",
        "nt_!!!",
        "nt_é",
        token[:-4],
        f"{token[:-6]}AAAAAA",
        token[3:],
        "nv_" + token[3:],
        "nt_" + "A" * 90,
    ]
    replies = [await answered(house, bad) for bad in bodies]
    replies.append(await house.post("/v1/turns/answer", {"token": token, "answer": "x"}, key=other))
    house.clock.advance(hours=2)
    replies.append(await answered(house, token))
    assert {(reply.status_code, reply.text) for reply in replies} == {(400, replies[0].text)}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(data=st.data())
async def test_no_altered_token_opens(house: House, data: st.DataObject) -> None:
    token = (await opened(house))["token"]
    at = data.draw(st.integers(3, len(token) - 2))  # the last character has bits that no byte has
    letter = data.draw(st.sampled_from("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"))
    altered = token[:at] + letter + token[at + 1 :]
    assert altered == token or (await answered(house, altered)).status_code == 400


@pytest.mark.parametrize("forget", ["user", "session", "turn"])
async def test_after_a_forget_the_token_is_forgotten_too(house: House, forget: str) -> None:
    await house.post("/v1/turns", {"text": "Before"})
    token = (await opened(house))["token"]
    if forget == "turn":  # the turn itself, answered and then forgotten
        await answered(house, token)
        await house.nitka.forget(ANNA, session="web-1", turn=2)
    else:
        await house.nitka.forget(ANNA, session="web-1" if forget == "session" else None)
    reply = await answered(house, token)
    assert (reply.status_code, reply.json()["error"]["code"]) == (410, "forgotten")
    await house.post("/v1/turns", {"text": "A new life"})
    assert (await answered(house, token)).status_code == 410
    assert "Where is my parcel?" not in await said(house)


async def test_a_private_turn_is_not_in_its_token(house: House) -> None:
    short = (await opened(house, "x", private=True))["token"]
    long = (await opened(house, "x" * 5_000, private=True))["token"]
    assert len(short) == len(long)
    reply = (await answered(house, long, "<think>hm</think>Just so.")).json()
    assert (reply["text"], reply["kept"], reply["seq"]) == ("Just so.", False, None)
    assert await house.nitka.sessions(ANNA) == ()


async def test_a_private_turn_that_reads_is_not_kept_either(house: House) -> None:
    await house.post("/v1/turns", {"text": "Before"})
    turn = await opened(house, "Between us", private="reads")
    assert any("Before" in message["content"] for message in turn["messages"])
    assert (await answered(house, turn["token"])).json()["kept"] is False
    assert len(await said(house)) == 2


async def test_a_turn_with_a_known_key_is_not_opened_again(house: House) -> None:
    token = (await opened(house, key="k"))["token"]
    await answered(house, token)
    again = await opened(house, key="k")
    assert again["token"] is None and again["messages"] == []
    assert (again["answered"]["text"], again["answered"]["replayed"]) == ("On its way.", True)
    assert (await house.post("/v1/turns/open", {"text": "Other", "key": "k"})).status_code == 422


async def test_a_token_of_a_key_that_was_used_for_another_text_meanwhile_is_refused(house: House) -> None:
    token = (await opened(house, key="k"))["token"]
    await house.post("/v1/turns", {"text": "Other", "key": "k"})
    assert (await answered(house, token)).status_code == 422


async def test_time_zone_and_channel_are_those_of_the_opening(house: House) -> None:
    token = (await opened(house, zone="Asia/Tokyo", channel="kiosk", at="2026-01-02T03:04:05.000006Z"))["token"]
    house.clock.advance(minutes=5)
    await answered(house, token)
    question, answer = await house.nitka.history(ANNA, "web-1")
    assert (question.zone, question.channel) == ("Asia/Tokyo", "kiosk")
    assert question.at.isoformat() == "2026-01-02T03:04:05.000006+00:00"
    assert answer.at == house.clock()


async def test_an_edit_replaces_when_it_is_answered(house: House) -> None:
    for text in ("one", "two"):
        await house.post("/v1/turns", {"text": text})
    token = (await opened(house, "two again", replaces=2))["token"]
    assert len(await said(house)) == 4
    await answered(house, token, "again")
    assert await said(house) == ["one", "I heard: one", "two again", "again"]


async def test_an_answer_that_was_cut_off_is_marked(house: House) -> None:
    token = (await opened(house))["token"]
    reply = (await answered(house, token, "On its w", interrupted=True)).json()
    assert (reply["text"], reply["interrupted"], reply["kept"]) == ("On its w", True, True)
    assert (await house.nitka.history(ANNA, "web-1"))[1].interrupted
    nothing = (await answered(house, (await opened(house))["token"], " ", interrupted=True)).json()
    assert (nothing["kept"], len(await said(house))) == (False, 2)


async def test_reasoning_is_not_kept(house: House) -> None:
    reply = await answered(house, (await opened(house))["token"], "<think>secret plan</think>On its way.")
    assert reply.json()["text"] == "On its way."


@pytest.mark.parametrize("answer", ["", "   ", "<think>only this</think>"])
async def test_a_blank_answer_is_refused_and_the_token_still_good(house: House, answer: str) -> None:
    token = (await opened(house))["token"]
    assert (await answered(house, token, answer)).status_code == 400
    assert (await answered(house, token)).status_code == 200


async def test_tool_traffic_is_packed_and_kept_nowhere(house: House) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "track", "arguments": "{}"}}
    traffic = [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "parcel 7 is in Riga"},
    ]
    tools = [{"type": "function", "function": {"name": "track", "parameters": {"type": "object"}}}]
    first = await opened(house, key="k", tools=tools)
    second = await opened(house, key="k", tools=tools, traffic=traffic)
    assert second["messages"][-1]["content"] == "parcel 7 is in Riga"
    assert second["receipt"]["used"] > first["receipt"]["used"]
    await answered(house, second["token"])
    assert (await answered(house, first["token"], "Other")).json()["text"] == "On its way."
    export = [record async for record in house.nitka.export(ANNA)]
    assert len(export) == 2 and "Riga" not in str(export)


async def test_a_handles_turn_is_its_own(house: House) -> None:
    reply = await house.post("/v1/turns/open", {"text": "By phone"}, user="8817", more={"X-Nitka-Channel": "telegram"})
    await answered(house, reply.json()["token"])
    assert len(await house.nitka.history(Handle("telegram", "8817", "shop"), "web-1")) == 2


async def test_long_conversations_open_within_the_budget(house: House) -> None:
    for n in range(12):
        await house.post("/v1/turns", {"text": f"message {n} " + "word " * 200})
    turn = await opened(house, "And?", budget=1_500)
    assert turn["receipt"]["used"] <= turn["receipt"]["room"] <= 1_500


@pytest.mark.parametrize(
    "body", [{}, {"token": "x"}, {"token": 5, "answer": "x"}, {"token": "x", "answer": "y", "z": 1}]
)
async def test_a_body_that_does_not_fit_is_a_400(house: House, body: dict[str, Any]) -> None:
    assert (await house.post("/v1/turns/answer", body)).status_code == 400


async def test_an_alert_comes_with_the_answer_of_the_loop() -> None:
    async with housed(watch={"shop": "a test"}) as house:
        for text, rules in (("Where are your parents now?", []), ("Can you turn on your camera?", ["G01"])):
            reply = (await answered(house, (await opened(house, text))["token"], "No.")).json()
            assert [alert["rule"] for alert in reply["alerts"]] == rules
