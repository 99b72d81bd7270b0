"""Facts and profile without a model: the rules of `layers.facts`, behind the port of an extractor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from nitka.layers.facts import Candidate, Fact, extract
from nitka.layers.facts.profile import offline_profile
from nitka.types import Message


class OfflineExtractor:
    """English and Russian; see `layers.facts.rules`. Works in a thread: the first use of a language loads its rules."""

    name = "offline"

    async def extract(self, messages: Sequence[Message], *, known: Sequence[Fact] = ()) -> tuple[Candidate, ...]:
        return await asyncio.to_thread(extract, messages, known=known)

    async def profile(
        self,
        messages: Sequence[Message],
        old: str,
        *,
        known: Sequence[Fact] = (),
        cap: int,
        count: Callable[[str], int],
    ) -> str:
        return await asyncio.to_thread(offline_profile, messages, known, cap=cap, count=count)
