"""Nothing crosses: between tenants, between users whose ids look alike, into logs, numbers, errors or files."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka import Handle, User
from nitka.server.app import ROUTERS
from nitka.store.sqlite import SqliteStore
from tests.laws.test_marker import MARKER, seen
from tests.server.native.house import House, housed

pytestmark = pytest.mark.anyio

SECRET = "Rotkehlchen"
OPEN = {("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/widget.js"), ("HEAD", "/widget.js")}
TURN = {"text": "And what did we say?"}
CHAT = {"messages": [{"role": "user", "content": "And what did we say?"}]}
CALLS: dict[tuple[str, str], Any] = {
    ("POST", "/v1/chat/completions"): CHAT,
    ("GET", "/v1/models"): None,
    ("POST", "/v1/responses"): {"input": "And what did we say?", "conversation": "web-1"},
    ("GET", "/v1/responses/{response_id}"): None,
    ("GET", "/v1/responses/{response_id}/input_items"): None,
    ("DELETE", "/v1/responses/{response_id}"): None,
    ("POST", "/v1/visitors"): {},
    ("POST", "/v1/turns"): TURN,
    ("POST", "/v1/turns/open"): TURN,
    ("POST", "/v1/turns/answer"): {"token": "{token}", "answer": "Nothing."},
    ("POST", "/parse"): {"content": "x", "settings": {"state": True}},
    ("POST", "/memory/merge"): {"memories": []},
    ("GET", "/languages"): None,
    ("GET", "/v1/me/sessions"): None,
    ("GET", "/v1/me/conversation"): None,
    ("GET", "/v1/me/summary"): None,
    ("GET", "/v1/me/facts"): None,
    ("GET", "/v1/me/profile"): None,
    ("POST", "/v1/me/recall"): {"query": SECRET},
    ("GET", "/v1/me/links"): None,
    ("GET", "/v1/me/export"): None,
    ("GET", "/v1/me/watch"): None,
    ("POST", "/v1/me/watch"): {"memory": {}},
    ("POST", "/v1/me/record"): {"text": "Once", "answer": "Then", "at": "2020-01-02T03:04:05Z"},
    ("POST", "/v1/me/facts"): {"slot": "pet.name", "value": "Rex"},
    ("POST", "/v1/me/facts/retract"): {"fact": "{fact}"},
    ("POST", "/v1/me/links"): {"channel": "telegram", "handle": "8817"},
    ("POST", "/v1/me/links/remove"): {"channel": "telegram", "handle": "8817"},
    ("POST", "/v1/me/adopt"): {"visitor": "visitor:anna"},
    ("POST", "/v1/me/forget"): {"fact": "{fact}"},
    ("DELETE", "/v1/me"): None,
    ("GET", "/metrics"): None,
    **{("POST", path): {} for path in ("/transform", "/detectLanguage", "/similarity")},
    **{("POST", path): {} for path in ("/compare/entities", "/helper/extract_text")},
}
ELSEWHERE = ("/v1/conversations", "/v1/visitors/adopt", "/inspector")
"""Routes whose own tests go through every kind of key: they hold items that are named by what a first call gave."""


def endpoints() -> set[tuple[str, str]]:
    routes = [route for router in ROUTERS for route in router.routes if isinstance(route, APIRoute)]
    return {(method, route.path) for route in routes for method in route.methods or ()} - OPEN


def test_the_table_has_every_endpoint() -> None:
    assert {one for one in endpoints() if not one[1].startswith(ELSEWHERE)} == set(CALLS)


@pytest.fixture
async def kept(house: House) -> AsyncIterator[tuple[House, dict[str, str]]]:
    """Anna of the shop has a past, with a fact, a handle and an open turn."""
    await house.post("/v1/turns", {"text": f"My name is {SECRET}. I live in {SECRET}."})
    await house.nitka.settle()
    await house.nitka.link("telegram", "8817", User("anna", "shop"))
    (fact, *_) = await house.nitka.facts(User("anna", "shop"))
    token = (await house.post("/v1/turns/open", {"text": f"Of {SECRET}"})).json()["token"]
    made = (await house.post("/v1/responses", {"input": f"A response for {SECRET}"}, session="web-2")).json()
    yield house, {"token": token, "fact": fact.id, "response_id": made["id"]}


async def called(house: House, method: str, path: str, names: dict[str, str], key: str, body: Any) -> Any:
    content = json.dumps(body)
    for name, value in names.items():
        content, path = content.replace("{" + name + "}", value), path.replace("{" + name + "}", value)
    headers: dict[str, Any] = house.headers(key=key) | {"Content-Type": b"application/json"}
    if path == "/v1/me":
        del headers["X-Nitka-Session"]
    return await house.client.request(method, path, headers=headers, content=content if body is not None else None)


async def whole(house: House) -> list[Any]:
    """All that is kept of Anna of the shop."""
    anna = User("anna", "shop")
    export = [record async for record in house.nitka.export(anna, what="all")]
    return [export, await house.nitka.facts(anna, include_past=True), await house.nitka.links(anna)]


@pytest.mark.parametrize("kind", ["none", "unknown", "another tenant's"])
async def test_with_another_key_nothing_of_a_persons_is_told_or_changed(
    kept: tuple[House, dict[str, str]], kind: str
) -> None:
    """Each endpoint, with the same ids, tokens and facts: read, change, forget."""
    house, names = kept
    before = await whole(house)
    scopes = ("turns", "read", "admin", "parse", "metrics")
    key = {"none": "", "unknown": "nk_" + "A" * 43}.get(kind) or await house.make_key(*scopes, tenant="school")
    for (method, path), body in CALLS.items():
        reply = await called(house, method, path, names, key if kind != "none" else " ", body)
        if kind != "another tenant's":
            assert reply.status_code == 401, path
        assert reply.status_code < 500 or reply.status_code == 501, (path, reply.text)
        assert SECRET not in reply.text.replace(SECRET, "", body is not None and str(body).count(SECRET)), path
        assert SECRET not in str(reply.headers)
    assert await whole(house) == before
    other = [record async for record in house.nitka.export(User("anna", "school"), what="all")]
    assert SECRET not in str(other)


async def test_each_endpoint_needs_the_right_scope(kept: tuple[House, dict[str, str]]) -> None:
    """A key with all scopes but one opens all but what that one opens, and changes nothing else."""
    house, names = kept
    scopes = ("turns", "read", "admin", "parse", "metrics")
    needs: dict[tuple[str, str], set[str]] = {}
    for missing in scopes:
        key = await house.make_key(*(scope for scope in scopes if scope != missing), tenant="school")
        for (method, path), body in CALLS.items():
            reply = await called(house, method, path, names, key, body)
            if reply.status_code == 403:
                needs.setdefault((method, path), set()).add(missing)
    assert all(len(found) == 1 for one, found in needs.items() if one != ("POST", "/v1/visitors"))
    assert set(needs) == set(CALLS)
    assert needs["DELETE", "/v1/me"] == needs["POST", "/v1/me/forget"] == needs["GET", "/v1/me/export"] == {"admin"}
    assert needs["GET", "/v1/me/facts"] == {"read"} and needs["POST", "/v1/turns/open"] == {"turns"}


HOSTILE = [
    "Anna",
    " anna",
    "anna ",
    "anna\n",
    "ann\u0430",  # Cyrillic
    "\u00e9",
    "e\u0301",
    "../../etc/passwd",
    "'; drop table messages; --",
    "%00",
    "user:anna",
    "visitor:anna",
    "anna\u202e",
    "🙂",
    "null",
    "0",
    "a" * 512,
    "\ud83d\ude42",
    "${jndi:ldap://x}",
]
REFUSED = ["", "a" * 513, "anna\0", "\ud800", "я" * 257]


async def test_ids_are_compared_as_they_are(house: House) -> None:
    """Each is a person, and a session, of its own."""
    for id in HOSTILE:
        body = {"text": f"I am {HOSTILE.index(id)}", "user": id, "session": id}
        reply = await house.post("/v1/turns", body, user=None, session=None)
        assert reply.status_code == 200, (id, reply.text)
        assert reply.json()["seq"] == (2 if id == "\ud83d\ude42" else 0)  # the same character as 🙂, when put together
    for id in set(HOSTILE) - {"\ud83d\ude42", "🙂"}:
        history = await house.nitka.history(User(id, "shop"), id)
        assert history[0].text == f"I am {HOSTILE.index(id)}" and len(history) == 2
    assert await house.nitka.sessions(User("anna", "shop")) == ()


@pytest.mark.parametrize("id", REFUSED)
@pytest.mark.parametrize("field", ["user", "session", "key"])
async def test_ids_that_cannot_be_are_refused_and_not_repaired(house: House, id: str, field: str) -> None:
    names = {"user": "anna", "session": "web-1", field: id}
    reply = await house.post("/v1/turns", {"text": "Hello", **names}, user=None, session=None)
    assert (reply.status_code, reply.json()["error"]["code"]) == (400, "bad_id")
    assert await house.nitka.sessions(User("anna", "shop")) == ()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(
    ids=st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12), min_size=2, max_size=2, unique=True)
)
async def test_two_ids_are_two_persons_whatever_they_are(house: House, ids: list[str]) -> None:
    one, other = ids
    for id in ids:
        reply = await house.post("/v1/turns", {"text": f"Of {ids.index(id)}", "user": id}, user=None, session="s")
        assert reply.status_code == (400 if "\0" in id else 200)
    if not any("\0" in id for id in ids):
        erased = await house.post("/v1/me/forget", {"everything": True, "user": one}, user=None, session=None)
        assert erased.json()["messages"] == 2
        assert len(await house.nitka.history(User(other, "shop"), "s")) == 2
        await house.nitka.forget(User(other, "shop"))


async def test_a_user_and_a_handle_of_the_same_name_are_two(house: House) -> None:
    await house.post("/v1/turns", {"text": "A user"})
    await house.post("/v1/turns", {"text": "A handle"}, more={"X-Nitka-Channel": "telegram"})
    for who, text in ((User("anna", "shop"), "A user"), (Handle("telegram", "anna", "shop"), "A handle")):
        assert (await house.nitka.history(who, "web-1"))[0].text == text


async def marked(house: House) -> list[Any]:
    """Every endpoint, with the marker wherever a client can put something, well and badly formed."""
    who: dict[str, Any] = {"user": f"user {MARKER}", "session": f"session {MARKER}"}
    replies = []
    for (method, path), body in CALLS.items():
        values = {
            "text": MARKER,
            "input": MARKER,
            "query": MARKER,
            "content": MARKER,
            "answer": MARKER,
            "value": MARKER,
        }
        good = {name: values.get(name, value) for name, value in (body or {}).items()}
        bad = [{**good, MARKER: MARKER}, {name: {MARKER: MARKER} for name in good or {"x": 1}}, [MARKER], MARKER]
        headers = house.headers(**who) | {"Content-Type": b"application/json", "Idempotency-Key": MARKER.encode()}
        for value in (good, *bad):
            content = json.dumps(value).encode()
            replies.append(await house.client.request(method, path, headers=headers, content=content))
        for content in (MARKER.encode(), f'{{"{MARKER}"'.encode(), b"\xff" + MARKER.encode()):
            replies.append(await house.client.request(method, path, headers=headers, content=content))
        replies.append(await house.client.request(method, f"{path}?limit={MARKER}&cursor={MARKER}", headers=headers))
        replies.append(await house.client.request(method, f"{path}/{MARKER}", headers=headers))
    return replies


async def test_the_marker_is_in_no_log_number_error_or_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="nitka"):
        async with housed(store=SqliteStore(str(tmp_path / "nitka.db")), watch={"shop": "a test"}) as house:
            for turn in range(6):
                await house.post(
                    "/v1/turns",
                    {"text": f"My name is {MARKER}, {turn}", "key": f"{MARKER}{turn}", "channel": MARKER},
                    user=f"user {MARKER}",
                    session=f"session {MARKER}",
                )
            replies = await marked(house)
            numbers = (await house.get("/metrics", key=await house.make_key("metrics"))).content
            files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    errors = [reply for reply in replies if reply.status_code >= 400]
    assert len(errors) > 100 and not [reply.text for reply in replies if reply.status_code in (500, 502, 503)]
    assert [(str(reply.request.url.path), seen(reply.content)) for reply in errors if seen(reply.content)] == []
    assert not [reply for reply in replies if seen(str(reply.headers).encode("utf-8", "backslashreplace"))]
    assert (seen(numbers), seen(files)) == ([], [])
    records = [record for record in caplog.records if record.name.startswith("nitka")]
    assert records and seen(repr([vars(record) for record in records]).encode("utf-8", "backslashreplace")) == []
    assert all(record.levelno < logging.ERROR for record in records)
