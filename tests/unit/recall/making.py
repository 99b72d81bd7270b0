"""Shared by the tests of recall: passages from plain texts, and an embedder that needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from hashlib import blake2b

import numpy as np

from nitka.layers.recall import Index, Lemmas, Vocabulary, index, installed, passages, segment, with_vectors
from nitka.models.embed import Vectors, unit
from nitka.types import Message

START = datetime(2024, 3, 1, 9, 0, tzinfo=UTC)


def row(number: int, text: str, *, at: datetime | None = None, zone: str = "") -> Message:
    """A row; a text that begins with `assistant|` is the assistant's."""
    role, bar, said = text.partition("|")
    mine = not (bar and role == "assistant")
    return Message(
        seq=number,
        n=number,
        role="user" if mine else "assistant",
        text=text if mine else said,
        at=at or START + timedelta(minutes=number),
        zone=zone,
    )


def memory(texts: Sequence[str], *, lemmas: Lemmas | None = None, vectors: bool = False) -> Index:
    """An index of one session."""
    rows = [row(number, text) for number, text in enumerate(texts)]
    found = passages(rows, session="one")
    made = segment(found, Vocabulary(lemmas or installed()))
    return index([with_vectors(made, hashed([p.text for p in found]), "hashed") if vectors else made])


def hashed(texts: Sequence[str], dim: int = 64) -> Vectors:
    """A deterministic stand-in for an embedder: every three letters in a row point somewhere, a text is their sum."""
    rows = np.zeros((len(texts), dim))
    for place, text in enumerate(texts):
        low = f"  {text.lower()}  "
        for at in range(len(low) - 2):
            digest = blake2b(low[at : at + 3].encode("utf-8", "replace"), digest_size=4).digest()
            number = int.from_bytes(digest, "little")
            rows[place, number % dim] += 1 if number >> 31 else -1
    return unit(rows)
