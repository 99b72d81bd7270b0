"""Whatever is sent: an answer in our form, never a 500, never a traceback."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok

from nitka.server.service import Options
from tests.server.stage import Script, Stage, serving

pytestmark = pytest.mark.slow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
NAMES = st.sampled_from(
    "role content text type messages user metadata session_id tools stream n nitka receipt model input conversation "
    "previous_response_id instructions store image_url file filename tool_calls tool_call_id id function name "
    "arguments max_tokens call_id output parameters tool_choice".split()
)
NEAR = st.recursive(
    JSON
    | st.sampled_from(("user", "assistant", "system", "tool", "text", "image_url", "s", "anna", 1, True))
    | st.sampled_from(("function", "function_call", "function_call_output", "reasoning", "call_1")),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
BODIES = st.one_of(
    st.binary(max_size=60),
    JSON.map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.dictionaries(NAMES, NEAR, max_size=8).map(lambda value: json.dumps(value).encode("utf-8", "surrogatepass")),
    st.lists(st.dictionaries(NAMES, NEAR, max_size=5), max_size=4).map(
        lambda messages: json.dumps({"messages": messages, "input": messages}).encode("utf-8", "surrogatepass")
    ),
)


@pytest.mark.parametrize(
    ("path", "examples"), [("/v1/chat/completions", 120), ("/v1/responses", 150), ("/v1/conversations", 30)]
)
def test_any_body_is_answered_or_refused_with_a_place(stage: Stage, path: str, examples: int) -> None:
    client = stage.client("turns", X_Nitka_User="anna", X_Nitka_Session="s")

    @given(BODIES, st.sampled_from(("application/json", "text/plain", "application/x-www-form-urlencoded")))
    @settings(max_examples=examples, suppress_health_check=list(HealthCheck))
    def tried(body: bytes, kind: str) -> None:
        told = client.post(path, content=body, headers={"Content-Type": kind})
        assert told.status_code < 500, (told.text, body)
        if told.status_code >= 400:
            error = told.json()["error"]
            assert set(error) == {"message", "type", "param", "code"}
            assert "Traceback" not in told.text

    tried()


@pytest.mark.parametrize(
    "header", ["Authorization", "X-Nitka-User", "X-Nitka-Session", "X-Nitka-Replace", "X-Nitka-Private",
               "Idempotency-Key", "X-Stainless-Retry-Count", "Origin", "X-Nitka-Visitor"],
)  # fmt: skip
def test_any_header_is_taken_or_refused(stage: Stage, header: str) -> None:
    client = stage.client("turns", X_Nitka_User="anna", X_Nitka_Session="s")
    texts = st.binary(max_size=40).filter(lambda value: not set(value) & {0, 10, 13} and value == value.strip())

    @given(texts)
    @settings(max_examples=25, suppress_health_check=list(HealthCheck))
    def tried(value: bytes) -> None:
        body = {"messages": [{"role": "user", "content": "q"}]}
        headers: Any = {header: value}
        try:
            told = client.post("/v1/chat/completions", json=body, headers=headers)
        except httpx.LocalProtocolError:
            return  # no client could send it
        assert told.status_code < 500, told.text

    tried()


def test_no_request_that_the_schema_describes_ends_in_a_server_error(script: Script) -> None:
    """schemathesis: for every operation of the OpenAPI document, requests that fit it and requests that do not."""
    with serving(script, options=Options(anonymous=True)) as stage:
        secret = stage.key("turns", "read", "admin", "parse")
        headers = {"Authorization": f"Bearer {secret}", "X-Nitka-User": "anna", "X-Nitka-Session": "s"}
        schema = schemathesis.openapi.from_url(f"{stage.url}/openapi.json")
        tried = 0
        for found in schema.get_all_operations():
            assert isinstance(found, Ok)

            @given(found.ok().as_strategy())
            @settings(max_examples=12, suppress_health_check=list(HealthCheck), database=None)
            def ask(case: Any) -> None:
                case.call_and_validate(base_url=stage.url, headers=headers, checks=[not_a_server_error])

            ask()
            tried += 1
        assert tried >= len(schema.raw_schema["paths"])
