"""`/v1/me`: what is kept of a person is read page by page, changed by hand, taken along and forgotten."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nitka import Handle, User
from nitka.server.errors import Refusal
from nitka.server.told import page
from tests.server.native.house import SITE, House

pytestmark = pytest.mark.anyio

ANNA = User("anna", "shop")
MONDAY = datetime(2026, 1, 5, 9, tzinfo=UTC)


async def told(house: House, *texts: str, session: str = "web-1", user: str = "anna") -> None:
    for text in texts:
        house.clock.advance(minutes=1)
        reply = await house.post("/v1/turns", {"text": text}, session=session, user=user)
        assert reply.status_code == 200
    await house.nitka.settle()


async def ok(reply: Any) -> Any:
    assert reply.status_code == 200, reply.text
    return reply.json()


async def every(house: House, path: str, limit: int, **who: Any) -> list[Any]:
    """All pages of a list, joined."""
    found: list[Any] = []
    mark = "before" if "conversation" in path else "cursor"
    following: Any = ""
    while following is not None:
        ask = f"{path}?limit={limit}" + (f"&{mark}={following}" if following != "" else "")
        value = await ok(await house.get(ask, **who))
        assert len(value["data"]) <= limit
        found += value["data"]
        following = value["next"]
    return found


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 500])
async def test_sessions_come_newest_first_whatever_the_page(house: House, limit: int) -> None:
    for name in ("a", "b", "с пробелом", "d"):
        await told(house, "Hello", session=name)
    await told(house, "Again", session="b")
    found = await every(house, "/v1/me/sessions", limit)
    assert [one["session"] for one in found] == ["b", "d", "с пробелом", "a"]
    assert found[0]["messages"] == 4 and found[0]["damaged"] is False and found[0]["last"] > found[1]["last"]


@given(
    times=st.lists(st.integers(0, 5), max_size=20),
    limit=st.integers(1, 6),
    later=st.lists(st.integers(6, 9), max_size=5),
)
def test_pages_show_each_item_once_and_newer_ones_disturb_nothing(
    times: list[int], limit: int, later: list[int]
) -> None:
    items = [(at, n) for n, at in enumerate(times)]
    seen, cursor, arriving = list[Any](), None, list(later)
    while True:
        found = page(items, lambda item: MONDAY + timedelta(seconds=item[0]), cursor=cursor, limit=limit)
        seen += found["data"]
        cursor = found["next"]
        if cursor is None:
            break
        if arriving:
            items = [(arriving.pop(), 100 + len(items)), *items]
    old = [item for item in seen if item[0] < 6]
    assert old == sorted(((at, n) for n, at in enumerate(times)), key=lambda item: -item[0])


@given(st.text(st.characters(codec=None), max_size=45))
def test_a_cursor_of_somebody_elses_is_refused_or_harmless(text: str) -> None:
    try:
        page([1], lambda _: MONDAY, cursor=text, limit=5)
    except Refusal as refusal:
        assert refusal.status == 400 and (len(text) < 8 or text not in str(refusal))


@pytest.mark.parametrize("limit", [1, 2, 5, 500])
async def test_a_conversation_is_read_backwards(house: House, limit: int) -> None:
    await told(house, "one", "two", "three")
    await house.nitka.forget(ANNA, session="web-1", turn=2)
    found = await every(house, "/v1/me/conversation", limit)
    assert [(one["seq"], one["text"]) for one in found] == [
        (5, "I heard: three"),
        (4, "three"),
        (1, "I heard: one"),
        (0, "one"),
    ]
    assert {one["role"] for one in found} == {"user", "assistant"}


async def test_who_nothing_is_known_of_is_nobody_and_not_an_error(house: House) -> None:
    assert await every(house, "/v1/me/sessions", 5, user="nobody") == []
    assert await every(house, "/v1/me/conversation", 5, user="nobody") == []
    assert await every(house, "/v1/me/facts", 5, user="nobody") == []
    assert (await ok(await house.get("/v1/me/profile", user="nobody")))["text"] == ""
    assert (await ok(await house.get("/v1/me/links", user="nobody")))["data"] == []
    assert (await ok(await house.post("/v1/me/recall", {"query": "cake"}, user="nobody")))["data"] == []
    assert (await house.get("/v1/me/export", user="nobody")).content == b""
    assert (await ok(await house.delete("/v1/me", user="nobody", session=None)))["users"] == 0
    assert await house.store.owners() == []


async def test_the_summary_tells_its_lines(house: House) -> None:
    await told(house, *(f"My dog number {n} is called Rex{n}." for n in range(6)))
    found = await ok(await house.get("/v1/me/summary"))
    assert found["cursor"] > 0 and found["lines"]
    assert found["text"] == "\n".join(line["text"] for line in found["lines"])


async def test_facts_are_learnt_listed_set_and_taken_back(house: House) -> None:
    await told(house, "I live in Riga.")
    (fact,) = await every(house, "/v1/me/facts", 1)
    assert (fact["slot"], fact["value"], fact["session"], fact["seq"]) == ("home.city", "Riga", "web-1", 0)
    mine = await ok(await house.post("/v1/me/facts", {"slot": "home.city", "value": "Осло"}))
    assert mine["by_hand"] and mine["id"] == fact["id"]
    await ok(await house.post("/v1/me/facts", {"slot": "pet.name", "value": "Rex", "user": "anna"}))
    house.clock.advance(minutes=1)
    assert {one["value"] for one in await every(house, "/v1/me/facts", 1)} == {"Осло", "Rex"}
    assert (await ok(await house.post("/v1/me/facts/retract", {"fact": fact["id"]})))["retracted"] is True
    assert (await ok(await house.post("/v1/me/facts/retract", {"fact": fact["id"]})))["retracted"] is False
    assert [one["value"] for one in await every(house, "/v1/me/facts", 5)] == ["Rex"]
    past = (await ok(await house.get("/v1/me/facts?include_past=true")))["data"]
    assert {"Riga"} <= {value["value"] for one in past for value in one["past"]}


async def test_a_forgotten_fact_says_how_many_turns_still_tell_it(house: House) -> None:
    await told(house, "I live in Riga.", "What is the weather?")
    (fact,) = await every(house, "/v1/me/facts", 5)
    erased = await ok(await house.post("/v1/me/forget", {"fact": fact["id"]}))
    assert (erased["facts"], erased["still_said"], erased["messages"]) == (1, 1, 0)
    await told(house, "I live in Oslo.", "And now?")
    (fact,) = await every(house, "/v1/me/facts", 5)
    erased = await ok(await house.post("/v1/me/forget", {"fact": fact["id"], "with_turns": True}))
    assert (erased["facts"], erased["messages"]) == (1, 2)


async def test_recall_finds_the_words_again(house: House) -> None:
    await told(house, "The cake was with poppy seed.", *(f"Something else, number {n}." for n in range(12)))
    found = (await ok(await house.post("/v1/me/recall", {"query": "poppy seed cake", "k": 3}, session=None)))["data"]
    assert found and "poppy seed" in found[0]["text"] and found[0]["session"] == "web-1" and len(found) <= 3
    other = await ok(await house.post("/v1/me/recall", {"query": "poppy seed", "session": "other"}, session=None))
    assert other["data"] == []


async def test_links_make_names_of_a_person(house: House) -> None:
    body = {"channel": "telegram", "handle": "8817"}
    await told(house, "Hello")
    assert await ok(await house.post("/v1/me/links", body)) == body
    assert (await ok(await house.get("/v1/me/links")))["data"] == [body]
    phone = await house.get("/v1/me/sessions", user="8817", more={"X-Nitka-Channel": "telegram"})
    assert len((await ok(phone))["data"]) == 1
    assert (await ok(await house.post("/v1/me/links/remove", body)))["removed"] is True
    assert (await ok(await house.post("/v1/me/links/remove", body)))["removed"] is False
    assert await house.nitka.sessions(Handle("telegram", "8817", "shop")) == ()


async def test_a_handle_with_memory_of_its_own_is_refused_with_counts(house: House) -> None:
    await house.nitka.record(Handle("mail", "b", "shop"), "s", text="Hi", answer="Ho")
    reply = await house.post("/v1/me/links", {"channel": "mail", "handle": "b"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "already_known")
    assert "1 sessions, 2 messages" in reply.json()["error"]["message"]


async def test_a_visitor_becomes_the_person_he_is(house: House) -> None:
    key = await house.make_key("widget", origins=(SITE,))
    made = await ok(await house.post("/v1/visitors", key=key, user=None, session=None, more={"Origin": SITE}))
    more = {"Origin": SITE, "X-Nitka-Visitor": made["token"]}
    await house.post("/v1/turns", {"text": "From the page"}, key=key, user=None, more=more)
    assert (await ok(await house.post("/v1/me/adopt", {"visitor": made["user"]})))["messages"] == 2
    assert [one["text"] for one in await every(house, "/v1/me/conversation", 5)][-1] == "From the page"
    assert (await house.post("/v1/me/adopt", {"visitor": "bob"})).status_code == 400


@pytest.mark.parametrize("what", ["conversation", "all"])
async def test_an_export_is_one_value_a_line_and_what_the_library_gives(house: House, what: str) -> None:
    await told(house, *(f"I live in town {n}.\n" for n in range(8)))
    reply = await house.get(f"/v1/me/export?what={what}")
    assert reply.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in reply.content.decode().splitlines()]
    library = [record async for record in house.nitka.export(ANNA, what=what)]  # type: ignore[arg-type]
    assert lines == json.loads(json.dumps(library)) and len(lines) >= 16
    assert all(line.get("session") in ("web-1", None) for line in lines)


@pytest.fixture
async def talked(house: House) -> AsyncIterator[House]:
    await told(house, "one", "two")
    await told(house, "three", session="web-2")
    await told(house, "mine", user="bob")
    yield house


async def left(house: House) -> list[tuple[str, int]]:
    return sorted((info.id, info.messages) for info in await house.nitka.sessions(ANNA))


@pytest.mark.parametrize(
    ("body", "messages", "remain"),
    [
        ({"session": "web-1", "turn": 3}, 2, [("web-1", 2), ("web-2", 2)]),
        ({"session": "web-1"}, 4, [("web-2", 2)]),
        ({"session": "unknown"}, 0, [("web-1", 4), ("web-2", 2)]),
        ({"everything": True}, 6, []),
    ],
)
async def test_forgetting_takes_what_is_named_and_counts_it(
    talked: House, body: dict[str, Any], messages: int, remain: list[Any]
) -> None:
    erased = await ok(await talked.post("/v1/me/forget", body))
    assert (erased["messages"], erased["erasure"]) == (messages, "complete")
    assert await left(talked) == remain
    assert len(await talked.nitka.sessions(User("bob", "shop"))) == 1


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"everything": False},
        {"turn": 0},
        {"everything": True, "session": "web-1"},
        {"session": "web-1", "fact": "x"},
        {"session": "web-1", "with_turns": True},
        {"session": ""},
        {"all": True},
    ],
)
async def test_nothing_is_forgotten_by_a_slip(talked: House, body: dict[str, Any]) -> None:
    """An empty body, half a name, two things at once: refused, though the session's header is there."""
    assert (await talked.post("/v1/me/forget", body)).status_code == 400
    assert await left(talked) == [("web-1", 4), ("web-2", 2)]


async def test_delete_is_the_whole_person_and_says_so(talked: House) -> None:
    assert (await talked.delete("/v1/me", session="web-1")).status_code == 400
    assert len(await left(talked)) == 2
    erased = await ok(await talked.delete("/v1/me", session=None))
    assert (erased["users"], erased["sessions"], erased["messages"]) == (1, 2, 6)
    assert await left(talked) == []
    assert (await ok(await talked.delete("/v1/me", session=None)))["messages"] == 0


async def test_a_widgets_visitor_sees_and_forgets_what_is_his_own(house: House) -> None:
    key = await house.make_key("widget", origins=(SITE,))
    more = {"Origin": SITE}
    made = await ok(await house.post("/v1/visitors", key=key, user=None, session=None, more=more))
    more["X-Nitka-Visitor"] = made["token"]
    who: dict[str, Any] = {"key": key, "user": None, "more": more}
    await house.post("/v1/turns", {"text": "I live in Riga."}, **who)
    await house.nitka.settle()
    await told(house, "Not yours.")
    seen = (await ok(await house.get("/v1/me/conversation", **who)))["data"]
    assert [one["text"] for one in seen] == ["I heard: I live in Riga.", "I live in Riga."]
    (fact,) = (await ok(await house.get("/v1/me/facts", **who)))["data"]
    for path, body in (
        ("/v1/me/facts", {"slot": "a.b", "value": "c"}),
        ("/v1/me/links", {"channel": "a", "handle": "b"}),
    ):
        assert (await house.post(path, body, **who)).status_code == 403
    named: tuple[dict[str, Any], ...] = ({"fact": fact["id"], "user": "anna"}, {"everything": True, "user": "anna"})
    for body in named:
        assert (await house.post("/v1/me/forget", body, **who)).status_code == 403
    assert (await ok(await house.post("/v1/me/forget", {"fact": fact["id"]}, **who)))["facts"] == 1
    assert (await ok(await house.post("/v1/me/forget", {"everything": True}, **who)))["messages"] == 2
    assert await left(house) == [("web-1", 2)]
