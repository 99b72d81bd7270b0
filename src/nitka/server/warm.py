"""Loads what the first turns would wait for: the offline rules take seconds of processor time, once, and threads that
met them at the same moment would each do it.
"""

from __future__ import annotations

from nitka.models.offline_facts import OfflineExtractor
from nitka.types import Message
from nitka.world import Clock

SAID = ("My name is Anna and I live in Riga.", "Меня зовут Анна, я живу в Риге.")


async def warm(clock: Clock) -> None:
    """Reads a sentence of each language, and keeps nothing of it."""
    offline = OfflineExtractor()
    rows = [Message(seq=n, n=n, role="user", text=text, at=clock()) for n, text in enumerate(SAID)]
    await offline.extract(rows)
    await offline.profile(rows, "", cap=60, count=len)
