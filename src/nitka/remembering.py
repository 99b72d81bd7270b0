"""What a turn is given of the person, beside the session's own layers: profile, facts, recalled passages.

None of it can hold up or spoil an answer: what does not open or is not there in time is left out, and the receipt
says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from nitka.conversation import PROFILE, Vault
from nitka.errors import Damaged
from nitka.layers.facts import Category
from nitka.profiling import read_profile
from nitka.recalling import Recalling
from nitka.store.port import FoldRow
from nitka.types import Passage
from nitka.vault.keychain import Owner

Reach = Literal["session", "user", "off"]
REACHES: tuple[Reach, ...] = ("session", "user", "off")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """The question, and what may be looked at: rows of the session below `before`, which the window has left, and
    with the reach "user" other sessions.
    """

    text: str
    session: str
    before: int
    now: datetime
    zone: str = ""
    recall: Reach = "session"


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What outlives the session, best first. `notes` are for the receipt and quote nobody."""

    profile: str = ""
    facts: tuple[Passage, ...] = ()
    recalled: tuple[Passage, ...] = ()
    notes: tuple[str, ...] = ()


async def remembered(
    vault: Vault,
    recalling: Recalling,
    owner: Owner,
    rows: Mapping[str, FoldRow],
    wanted: Wanted,
    excluded: frozenset[Category],
) -> Remembered:
    """What bears on the question. `rows` are the person's folds in the snapshot of the turn."""
    notes: list[str] = []
    profile = ""
    try:
        profile = read_profile(owner, rows.get(PROFILE)).text
    except Damaged:
        notes.append("the profile does not open")
    found = await recalling.recollect(vault, owner, rows, wanted, excluded)
    return Remembered(profile=profile, facts=found.facts, recalled=found.recalled, notes=(*notes, *found.notes))
