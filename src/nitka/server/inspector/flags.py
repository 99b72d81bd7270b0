"""The watch along a conversation, read again with the rules of today. Pure.

An alert says how many messages ago each of its flags was seen; here that becomes the row it was seen in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from nitka.types import Message
from nitka.watching import SPEAKERS

if TYPE_CHECKING:
    from nitka.watch import Watch


class Proof(NamedTuple):
    """A flag behind an alert, and the row it was seen in; None if that is not among the rows that were read."""

    flag: str
    seq: int | None
    words: str


class Raised(NamedTuple):
    """An alert, and what led to it, the oldest first."""

    seq: int
    rule: str
    type: str
    severity: str
    tags: tuple[str, ...]
    explanation: str
    proofs: tuple[Proof, ...]


class Noticed(NamedTuple):
    """What one row showed."""

    seq: int
    flags: tuple[tuple[str, str], ...]  # name, and in words
    alerts: tuple[Raised, ...]


class Along(NamedTuple):
    """A conversation read from `first` on, by rules of a version; rows in which nothing was seen are left out."""

    rules: str
    first: int
    read: int
    noticed: tuple[Noticed, ...]

    @property
    def alerts(self) -> tuple[Raised, ...]:
        return tuple(alert for row in self.noticed for alert in row.alerts)


def along(rows: Sequence[Message], watch: Watch, language: str, *, most: int) -> Along:
    """The newest rows that have no more than `most` characters together, read in their order."""
    from nitka.watch import parse  # here: its tables take half a second to load

    chosen = newest(rows, most)
    memory: dict[str, Any] = {}
    noticed: list[Noticed] = []
    for at, row in enumerate(chosen):
        settings = {
            "speaker": SPEAKERS[row.role],
            "entities": False,
            "explain": True,
            "explanation_language": language,
        }
        result, memory = parse(row.text, settings=settings, memory=memory, watch=watch)
        if result.flags or result.alerts:
            told = zip(result.alerts, result.explanations, strict=True)
            alerts = tuple(_raised(alert, words, chosen[: at + 1], watch, language) for alert, words in told)
            flags = tuple((flag, said(watch, flag, language)) for flag in result.flags)
            noticed.append(Noticed(row.seq, flags, alerts))
    return Along(watch.version, chosen[0].seq if chosen else 0, len(chosen), tuple(noticed))


def newest(rows: Sequence[Message], most: int) -> Sequence[Message]:
    """The newest rows that have no more than so many characters together."""
    for at in range(len(rows) - 1, -1, -1):
        most -= len(rows[at].text)
        if most < 0:
            return rows[at + 1 :]
    return rows


def _raised(alert: Any, words: str, read: Sequence[Message], watch: Watch, language: str) -> Raised:
    proofs = [
        Proof(one.flag, _seq(read, one, watch), said(watch, one.flag, language, now=one.messages_ago == 0))
        for one in sorted(alert.evidence, key=lambda one: -one.messages_ago)
    ]
    return Raised(read[-1].seq, alert.rule, alert.type, alert.severity, alert.tags, words, tuple(proofs))


def _seq(read: Sequence[Message], proof: Any, watch: Watch) -> int | None:
    """The row; None where the count stands still at its limit, which says only "so long ago, or longer"."""
    ago, (_, limit) = proof.messages_ago, watch.kinds.limits.get(proof.flag, ("", 0))
    return read[-1 - ago].seq if ago < len(read) and (ago < limit or ago == 0) else None


def said(watch: Watch, flag: str, language: str, *, now: bool = True) -> str:
    """A flag in words, as of what is said now or was said before; its name where it has none."""
    kind = watch.kinds.get(flag)
    words = kind.words.get(language) if kind else None
    return words[now] if words else flag
