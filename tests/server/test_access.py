"""Who gets in: every endpoint with every kind of wrong key, tenants, widgets and their visitors, rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from nitka.server.app import ROUTERS
from nitka.server.keys import SCOPES, hash_of
from nitka.server.service import Options
from nitka.types import User
from tests.server.stage import Script, Stage, says, serving

PAGE = "https://shop.example"
OPEN = {"/healthz", "/readyz", "/metrics", "/widget.js"}
CHAT = {"messages": [{"role": "user", "content": "q"}], "user": "anna", "metadata": {"session_id": "s"}}


def routes() -> Iterator[tuple[str, str]]:
    """Method and path of every route that is not open by design."""
    for route in (route for router in ROUTERS for route in router.routes):
        assert isinstance(route, APIRoute)
        if route.path not in OPEN and not route.path.startswith("/inspector"):  # its sign-in: test_inspector.py
            yield from ((method, route.path) for method in route.methods or ())


def call(stage: Stage, method: str, path: str, **headers: str) -> httpx.Response:
    filled = path.replace("{", "").replace("}", "")
    named = {name: value.encode("latin-1") for name, value in headers.items()}
    body = None if method == "GET" else {"x": 1}
    return stage.plain.request(method, filled, headers=named, json=body)  # type: ignore[arg-type]


def bearer(secret: str) -> str:
    return f"Bearer {secret}"


def wrong_keys(stage: Stage) -> dict[str, str]:
    """Every kind of key that opens nothing."""
    revoked, gone = stage.key(*SCOPES[:-1]), stage.key(*SCOPES[:-1], until=1)
    stage.run(stage.store.remove_api_key(hash_of(revoked)))
    good = stage.key(*SCOPES[:-1])
    return {
        "none": "",
        "empty": "Bearer",
        "another scheme": f"Basic {good}",
        "no scheme": good,
        "unknown": bearer("nk_" + "A" * 43),
        "revoked": bearer(revoked),
        "expired": bearer(gone),
        "cut": bearer(good[:-1]),
        "longer": bearer(good + "A"),
        "of another kind": bearer("pk_" + good[3:]),
        "its hash": bearer(hash_of(good).hex()),
        "a wall of text": bearer("x" * 10_000),
        "no ascii": "Bearer \xff\xfe",
    }


def test_there_are_routes_to_try(stage: Stage) -> None:
    paths = {path for _, path in routes()}
    assert {"/v1/chat/completions", "/v1/models", "/v1/responses", "/v1/visitors"} <= paths
    assert paths | OPEN >= set(stage.app.openapi()["paths"])


def test_no_endpoint_opens_for_a_wrong_key(stage: Stage) -> None:
    """A table: endpoint by wrong key. All answer 401, before the body is read, and say the same."""
    keys = wrong_keys(stage)
    for method, path in routes():
        for name, value in keys.items():
            response = call(stage, method, path, **({"Authorization": value} if name != "none" else {}))
            assert response.status_code == 401, (method, path, name)
            assert not path.startswith("/v1/") or response.json()["error"]["code"] == "invalid_api_key"
            assert response.headers["www-authenticate"] == "Bearer"


def test_every_endpoint_asks_for_a_scope(stage: Stage) -> None:
    """A key with one scope opens some endpoints, and no scope opens all."""
    opened: dict[str, set[str]] = {}
    for scope in SCOPES[:-1]:
        key = bearer(stage.key(scope))
        opened[scope] = {
            f"{method} {path}"
            for method, path in routes()
            if call(stage, method, path, Authorization=key).status_code != 403
        }
    everything = {f"{method} {path}" for method, path in routes()}
    assert all(some < everything for some in opened.values())
    assert "POST /v1/chat/completions" in opened["turns"]
    assert "POST /v1/chat/completions" not in opened["read"] | opened["admin"] | opened["parse"]


def test_a_public_key_opens_only_what_widgets_need(stage: Stage) -> None:
    key = bearer(stage.key("widget", origins=(PAGE,)))
    opened = {
        path
        for method, path in routes()
        if call(stage, method, path, Authorization=key, Origin=PAGE).status_code not in (401, 403)
    }
    assert "/v1/visitors" in opened
    assert not {path for path in opened if path.startswith(("/v1/chat", "/v1/models", "/v1/responses", "/v1/conv"))}


@pytest.mark.parametrize("origin", ["", "https://evil.example", "null", "http://shop.example", PAGE + ".evil.example"])
def test_a_public_key_works_from_its_pages_alone(stage: Stage, origin: str) -> None:
    key = bearer(stage.key("widget", origins=(PAGE,)))
    refused = call(stage, "POST", "/v1/visitors", Authorization=key, **({"Origin": origin} if origin else {}))
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "wrong_origin")
    assert "access-control-allow-origin" not in refused.headers
    allowed = call(stage, "POST", "/v1/visitors", Authorization=key, Origin=PAGE)
    assert allowed.headers["access-control-allow-origin"] == PAGE


def test_a_secret_key_gives_no_page_leave_to_read(stage: Stage) -> None:
    answer = call(stage, "GET", "/v1/models", Authorization=bearer(stage.key("turns")), Origin=PAGE)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_a_preflight_is_allowed_for_the_pages_of_widgets_and_no_others(stage: Stage) -> None:
    stage.key("widget", origins=(PAGE,))
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization"}
    for origin, allowed in ((PAGE, PAGE), ("https://evil.example", None)):
        answer = stage.plain.options("/v1/visitors", headers={"Origin": origin, **ask})
        assert answer.status_code == 204
        assert answer.headers.get("access-control-allow-origin") == allowed
        assert answer.headers["vary"] == "Origin"


def test_a_visitor_is_his_makers_alone(stage: Stage) -> None:
    """A token opens with the key that made it; not with another widget's, another tenant's, or altered."""
    mine, other = stage.key("widget", origins=(PAGE,)), stage.key("widget", origins=(PAGE,), tenant="other")
    made = call(stage, "POST", "/v1/visitors", Authorization=bearer(mine), Origin=PAGE).json()
    access = stage.service.access

    async def opened(secret: str, token: str) -> str:
        caller = await access.caller(secret)
        assert caller is not None
        return await access.visitor(caller, token)

    assert stage.run(opened(mine, made["token"])) == made["user"]
    again = call(stage, "POST", "/v1/visitors", Authorization=bearer(mine), Origin=PAGE).json()
    assert again["user"] != made["user"]
    token = made["token"]
    flipped = token[:60] + ("A" if token[60] != "A" else "B") + token[61:]
    for secret, tried in ((other, token), (mine, flipped), (mine, token[:-4]), (mine, "nv_"), (mine, "nv_é" * 9)):
        with pytest.raises(Exception, match="no visitor"):
            stage.run(opened(secret, tried))


def test_a_tenant_cannot_name_anothers_user(stage: Stage) -> None:
    """The same ids under two tenants are two people; no id, however it is written, reaches across."""
    stage.script.answer = lambda body: says(f"{len(body['messages'])} messages")
    hostile = ["anna", "shop:anna", "shop/anna", "shop\x1fanna", "../anna", "shop\nanna", '{"tenant":"shop"}']
    shop, other = stage.client("turns", tenant="shop"), stage.client("turns", tenant="other")
    assert shop.post("/v1/chat/completions", json=CHAT).status_code == 200
    for user in hostile:
        answer = other.post("/v1/chat/completions", json={**CHAT, "user": user})
        assert answer.json()["choices"][0]["message"]["content"] == "1 messages", user
    assert len(stage.rows(tenant="shop")) == 2
    assert stage.run(stage.nitka.sessions(User("anna"))) == ()


@pytest.mark.parametrize("name", ["x-nitka-tenant", "tenant", "openai-organization", "openai-project"])
def test_no_header_names_a_tenant(stage: Stage, name: str) -> None:
    stage.client("turns", tenant="shop").post("/v1/chat/completions", json=CHAT)
    answer = stage.client("turns", tenant="other").post(
        "/v1/chat/completions", json={**CHAT, "tenant": "shop"}, headers={name: "shop"}
    )
    assert answer.status_code == 200
    assert len(stage.rows(tenant="shop")) == 2


def test_too_many_requests_are_told_when_to_come_again(script: Script) -> None:
    with serving(script) as stage:
        secret = stage.key("turns", rate=3)
        answers = [call(stage, "GET", "/v1/models", Authorization=bearer(secret)) for _ in range(5)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 60
        assert answers[-1].json()["error"]["code"] == "rate_limit_exceeded"
        other = call(stage, "GET", "/v1/models", Authorization=bearer(stage.key("turns", rate=3)))
        assert other.status_code == 200


def test_a_revoked_key_is_worthless_once_it_is_no_longer_remembered(script: Script) -> None:
    with serving(script, options=Options(key_seconds=0.0)) as stage:
        secret = stage.key("turns")
        assert call(stage, "GET", "/v1/models", Authorization=bearer(secret)).status_code == 200
        stage.run(stage.store.remove_api_key(hash_of(secret)))
        assert call(stage, "GET", "/v1/models", Authorization=bearer(secret)).status_code == 401


def test_an_expired_key_is_worthless_at_once(script: Script) -> None:
    with serving(script) as stage:
        until = int(stage.clock().timestamp() * 1000) + 1_000
        secret = stage.key("turns", until=until)
        assert call(stage, "GET", "/v1/models", Authorization=bearer(secret)).status_code == 200
        stage.clock.advance(seconds=1)
        assert call(stage, "GET", "/v1/models", Authorization=bearer(secret)).status_code == 401


def test_the_key_itself_is_kept_nowhere(stage: Stage) -> None:
    secret = stage.key("turns", tenant="a marked tenant", name="a marked name")
    rows: Any = stage.run(stage.store.api_keys())
    kept = b"".join(row.hash + row.body for row in rows)
    for text in (secret, secret[3:], "a marked tenant", "a marked name", "turns"):
        assert text.encode() not in kept


def test_a_row_that_was_moved_to_another_hash_does_not_open(stage: Stage) -> None:
    """Whoever can write to the database cannot make a key of his own out of another's row."""
    good, mine = stage.key("turns"), "nk_" + "B" * 43
    row = stage.run(stage.store.api_key(hash_of(good)))
    assert row is not None
    stage.run(stage.store.add_api_key(row._replace(hash=hash_of(mine))))
    answer = call(stage, "GET", "/v1/models", Authorization=bearer(mine))
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "damaged"
    stage.run(stage.store.remove_api_key(hash_of(mine)))
