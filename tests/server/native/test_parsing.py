"""`/parse`, `/memory/merge`, `/languages`: what the watch says over HTTP is what it says in Python."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nitka.server.service import Options
from nitka.watch import languages, merge_json, parse_json
from tests.server.native.house import House, housed

pytestmark = pytest.mark.anyio

STORY = {
    "en": ("Where are your parents now?", "Can you turn on your camera?"),
    "ru": ("Где сейчас твои родители?", "Ты можешь включить камеру?"),
}
ON = {"state": True, "explain": True, "snippets": True, "words": True}


@pytest.fixture(params=["Authorization", "Ocp-Apim-Subscription-Key"])
async def analyst(house: House, request: pytest.FixtureRequest) -> AsyncIterator[dict[str, str]]:
    """Headers of one who may analyse and nothing else."""
    key = await house.make_key("parse")
    yield {request.param: f"Bearer {key}" if request.param == "Authorization" else key}


async def asked(house: House, headers: dict[str, str], path: str, body: Any) -> Any:
    reply = await house.client.post(path, json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return reply.json()


@pytest.mark.parametrize("language", STORY)
async def test_the_memory_travels_with_the_caller(house: House, analyst: dict[str, str], language: str) -> None:
    first, then = STORY[language]
    before = await asked(
        house, analyst, "/parse", {"language": language, "content": first, "settings": {"state": True}}
    )
    assert "abuse" not in before
    body = {"language": language, "content": then, "settings": {**ON, "memory": before["memory"]}}
    after = await asked(house, analyst, "/parse", body)
    assert [entry["rule"] for entry in after["abuse"] if "rule" in entry]
    assert after == json.loads(json.dumps(parse_json(body)))


async def test_merging_and_languages_are_those_of_the_package(house: House, analyst: dict[str, str]) -> None:
    memories = [parse_json({"content": text, "settings": {"state": True}})["memory"] for text in STORY["en"]]
    body = {"memories": [*memories, None]}
    assert await asked(house, analyst, "/memory/merge", body) == json.loads(json.dumps(merge_json(body)))
    assert (await house.client.get("/languages", headers=analyst)).json() == languages()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(text=st.text(st.characters(codec=None), max_size=60))
async def test_any_string_is_read(house: House, text: str) -> None:
    """Half a surrogate pair, NUL and white space too."""
    reply = await house.post("/parse", {"content": text, "settings": ON}, user=None, session=None)
    assert reply.status_code == 200
    assert json.loads(reply.content)["text"] == text


async def test_errors_have_tisanes_form_wherever_they_come_from() -> None:
    async with housed(options=Options(body_bytes=4_096)) as house:
        other = await house.make_key("turns")
        slow = await house.make_key("parse", rate=1)
        body = {"content": "x"}
        replies = {
            400: await house.post("/parse", {"content": 5}),
            401: await house.client.post("/parse", json=body),
            403: await house.post("/parse", body, key=other),
            405: await house.get("/parse"),
            413: await house.post("/parse", {"content": "x" * 5_000}),
            429: [await house.post("/parse", body, key=slow) for _ in range(2)][-1],
            501: await house.post("/detectLanguage", body),
        }
        for status, reply in replies.items():
            assert reply.status_code == status
            assert reply.json().keys() == {"statusCode", "message"} and reply.json()["statusCode"] == status
        assert (await house.post("/detectLanguage", body, key=other)).status_code == 403


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b"", "body"),
        (b"{", "body"),
        (b"[" * 100_000, "body"),
        (b'{"content": NaN}', "body"),
        (b"\xff\xfe", "body"),
        (b"[]", "body"),
        (b"{}", "content"),
        (b'{"content": "Zauber", "language": "xx"}', "language"),
        (b'{"content": "Zauber", "settings": {"state": "Zauber"}}', "settings.state"),
        (b'{"content": "Zauber", "settings": {"memory": {"flags": [5]}}}', "settings.memory.flags"),
        (
            b'{"content": "Zauber", "settings": {"memory": {"assign": [{"if": {"regex": "Zauber("}}]}}}',
            "settings.memory.assign",
        ),
        (b'{"content": "Zauber", "settings": {"speaker": {"role": "Zauber"}}}', "settings.speaker.role"),
    ],
)
async def test_what_is_malformed_is_named_by_its_path_and_never_quoted(
    house: House, body: bytes, path: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        reply = await house.client.post("/parse", content=body, headers=house.headers())
    assert reply.status_code == 400
    assert path in reply.json()["message"]
    written = capfd.readouterr()
    assert "Zauber" not in reply.text + caplog.text + written.out + written.err


async def test_a_memory_that_is_too_large_is_a_413(house: House) -> None:
    flags = [f"caller_flag_{n}" for n in range(65)]
    reply = await house.post("/parse", {"content": "x", "settings": {"memory": {"flags": flags}}})
    assert (reply.status_code, reply.json()["statusCode"]) == (413, 413)
    assert (await house.post("/parse", {"content": "x" * ((1 << 20) + 1)})).status_code == 413


async def test_nothing_is_kept(house: House) -> None:
    for text in STORY["en"]:
        await house.post("/parse", {"content": text})
    assert await house.nitka.sessions("anna") == () and await house.store.owners() == []
