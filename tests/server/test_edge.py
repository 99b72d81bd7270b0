"""The rim: size limits, request ids, and that neither logs nor errors ever hold what was sent."""

from __future__ import annotations

import base64
import json
import logging
import time
from collections.abc import Iterator
from typing import Any

import pytest

from nitka.server.service import Options
from nitka.types import User
from tests.server.stage import Fails, Script, Stage, serving

PATH = "/v1/chat/completions"
MARK = "MARKED-7f3a"
CHAT: Any = {"messages": [{"role": "user", "content": "q"}], "user": "anna", "metadata": {"session_id": "s"}}
FORMS = (MARK, MARK.encode().hex(), base64.b64encode(MARK.encode()).decode().rstrip("=")[:-1])


def test_a_body_over_the_limit_is_refused_however_it_comes(script: Script) -> None:
    """Told by its length, before it is read; without a length, as soon as it is over. A body at the limit is taken."""
    with serving(script, options=Options(body_bytes=2_000)) as stage:
        client = stage.client("turns")
        body = json.dumps({**CHAT, "pad": ""}).encode()
        whole = body.replace(b'"pad": ""', b'"pad": "' + b"x" * (2_000 - len(body)) + b'"')
        assert len(whole) == 2_000
        kind = {"Content-Type": "application/json"}
        assert client.post(PATH, content=whole, headers=kind).status_code == 200

        def pieces() -> Iterator[bytes]:
            yield whole
            yield b" "

        for content in (whole + b" ", pieces()):
            refused = client.post(PATH, content=content, headers=kind)
            assert (refused.status_code, refused.json()["error"]["code"]) == (413, "too_large")
            assert refused.headers["x-request-id"]
        assert client.post(PATH, json=CHAT).status_code == 200


def test_every_answer_has_an_id_of_our_own(stage: Stage) -> None:
    """One that the client sends is not taken over: it would stand in logs."""
    client = stage.client("turns")
    ids = [client.get(path, headers={"X-Request-Id": MARK}).headers["x-request-id"] for path in ("/v1/models", "/no")]
    assert len(set(ids)) == 2
    assert all(id.startswith("req_") for id in ids)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (MARK, None),
        (f'{{"messages": {MARK}', None),
        ("[" * 100_000, None),
        ('{"messages": 1e999999}', "messages"),
        (f'["{MARK}"]', None),
        (f'"{MARK}"', None),
        ("", None),
        (f'{{"messages": "{MARK}"}}', "messages"),
        (f'{{"messages": [{{"role": "{MARK}"}}]}}', "messages[0].role"),
        (f'{{"messages": [{{"role": "user", "content": "q"}}], "stream": "{MARK}"}}', "stream"),
        (f'{{"messages": [{{"role": "user", "content": "q"}}], "metadata": "{MARK}"}}', "metadata"),
        (f'{{"messages": [{{"role": "user", "content": "q"}}], "nitka": {{"{MARK}": 1}}}}', "nitka"),
        ('{"messages": [{"role": "user", "content": "q"}], "metadata": {"session_id": 5}}', "metadata.session_id"),
        ('{"messages": [{"role": "user", "content": "q"}], "seed": ' + "9" * 5_000 + "}", None),
    ],
)
def test_a_body_that_does_not_fit_is_told_by_place_and_kind(stage: Stage, body: str, param: str | None) -> None:
    client = stage.client("turns", X_Nitka_User="anna", X_Nitka_Session="s")
    refused = client.post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 400, refused.text
    error = refused.json()["error"]
    assert (error["param"] or "").startswith(param or "")
    assert error["message"]
    assert MARK not in refused.text
    assert stage.script.asked == []


def test_nothing_that_was_sent_stands_in_logs(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    """Not in the path, the query, a header, the body, an id; whether the request succeeds, is refused or fails.

    uvicorn's own access log is off, which pytest's handlers undo: that nothing of it is printed is seen in
    test_running.py.
    """
    caplog.set_level(logging.DEBUG)
    client = stage.client("turns", X_Nitka_User=MARK, X_Nitka_Session=MARK, User_Agent=MARK, Referer=MARK)
    stage.users.add(User(MARK))
    chat = {"messages": [{"role": "user", "content": MARK}], "model": MARK, "tools": [{MARK: MARK}]}
    for body in (chat, {**chat, "stream": True}, {**chat, "n": 2}, {"messages": MARK}):
        client.post(f"{PATH}?{MARK}={MARK}", json=body, headers={"Idempotency-Key": MARK})
    client.get(f"/{MARK}/{MARK}")
    client.get("/v1/models", headers={"Authorization": f"Bearer nk_{MARK}"})
    stage.script.answer = lambda body: Fails(500, MARK)
    client.post(PATH, json=chat)
    stage.run(stage.nitka.settle())
    ours = [record for record in caplog.records if record.name.split(".")[0] in ("nitka", "uvicorn", "aiohttp")]
    ours = [record for record in ours if record.name != "uvicorn.access"]
    assert len([record for record in ours if record.name == "nitka.server.access"]) == 7
    text = "\n".join(record.getMessage() + (record.exc_text or "") for record in ours)
    assert not [form for form in FORMS if form in text]


def test_the_access_log_tells_template_status_and_key(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    client = stage.client("turns")
    id = client.post(PATH, json=CHAT).headers["x-request-id"]
    client.get("/nowhere/secret")
    end = time.monotonic() + 30
    lines: list[str] = []
    while len(lines) < 2 and time.monotonic() < end:  # a line is written after its answer has gone out
        lines = [record.getMessage() for record in caplog.records if record.name == "nitka.server.access"]
    assert lines[0].startswith(f"POST {PATH} 200 ")
    assert f" {id} " in lines[0]
    assert lines[1].startswith("GET - 404 ")


def test_what_nobody_expected_is_told_by_its_type_and_place(
    stage: Stage, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a kind that is not ours may quote a user: its words are neither logged nor sent."""

    async def fails(*args: object, **more: object) -> object:
        raise RuntimeError(f"about {MARK}")

    monkeypatch.setattr(type(stage.service.nitka), "history", fails)
    broken = stage.client("turns").post(PATH, json=CHAT, headers={"X-Nitka-Replace": "last"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (500, "server_error")
    assert broken.headers["x-request-id"]
    assert MARK not in broken.text + caplog.text
    told = [record.getMessage() for record in caplog.records if record.name == "nitka.server.errors"]
    assert len(told) == 1
    assert "RuntimeError" in told[0]
    assert "dealing.py" in told[0]


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/nothing", 404), ("DELETE", PATH, 405)])
def test_what_is_not_there_is_told_in_the_same_form(stage: Stage, method: str, path: str, status: int) -> None:
    refused = stage.plain.request(method, path)
    assert refused.status_code == status
    assert set(refused.json()["error"]) == {"message", "type", "param", "code"}


def test_a_header_that_is_no_text_is_refused(stage: Stage) -> None:
    headers: Any = {"X-Nitka-User": b"\xff\xfe", "X-Nitka-Session": b"s"}
    refused = stage.client("turns").post(PATH, json=CHAT, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "bad_header")


@pytest.mark.parametrize("user", ["", "x" * 513, "a\0b", "\ud800"])
def test_an_id_that_cannot_be_one_is_refused_and_never_repaired(stage: Stage, user: str) -> None:
    body = json.dumps({**CHAT, "user": user})
    refused = stage.client("turns").post(PATH, content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code == 400
    assert stage.script.asked == []
