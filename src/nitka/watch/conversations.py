"""Conversations in text files: what shows a rule, what must stay silent. Read by lint and tests, never by the
engine.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from nitka.watch import engine, memory
from nitka.watch.engine import Watch, Who, who
from nitka.watch.errors import RuleError
from nitka.watch.types import ROLES, Alert

_LINE = re.compile(r"([A-Za-z][\w-]{0,30})(?:\(([^)]*)\))?:\s?(.*)\Z")
_HEADS = ("language", "shows", "twin of", "apart", "silent", "why")


@dataclass(slots=True)
class Conversation:
    """One conversation: `shows` are rules that must fire, `twin_of` rules whose themes it has without any of them
    being loud.
    """

    name: str
    where: str
    language: str = "*"
    shows: tuple[str, ...] = ()
    twin_of: tuple[str, ...] = ()
    apart: str = ""
    turns: list[tuple[Who, str]] = field(default_factory=list)


def read(name: str, text: str) -> list[Conversation]:
    """Read a file of conversations. Raises `RuleError` with file and line."""
    found: list[Conversation] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{name}:{number}"
        if line.startswith("## "):
            found.append(Conversation(line[3:].strip(), where))
        elif line.strip() and not line.startswith("#"):
            if not found:
                continue  # an introduction
            _take(found[-1], line.rstrip(), where)
    return found


def _take(conversation: Conversation, line: str, where: str) -> None:
    head, colon, rest = line.partition(":")
    if colon and head in _HEADS:
        value = rest.strip()
        if head == "language":
            conversation.language = value
        elif head == "shows":
            conversation.shows = tuple(value.split())
        elif head == "twin of":
            conversation.twin_of = tuple(value.split())
        elif head == "apart":
            conversation.apart = value
        return
    match = _LINE.match(line)
    if not match:
        raise RuleError(where, "a line that is neither head nor turn", "speaker: text")
    identity, about, said = match.groups()
    conversation.turns.append((_speaker(identity, about or "", where), said))


def _speaker(identity: str, about: str, where: str) -> Who:
    age, role = None, ""
    for word in about.split():
        if word.isdigit():
            age = int(word)
        elif word in ROLES:
            role = word
        else:
            raise RuleError(where, "an unknown role", " ".join(ROLES).strip())
    return who("" if identity == "_" else identity, age=age, role=role)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of one conversation gave: alerts with the index of their message, flags message by message."""

    alerts: tuple[tuple[int, Alert], ...]
    flags: tuple[tuple[str, ...], ...]

    @property
    def rules(self) -> frozenset[str]:
        return frozenset(alert.rule for _, alert in self.alerts)

    @property
    def loud(self) -> tuple[str, ...]:
        return tuple(alert.rule for _, alert in self.alerts if alert.severity != "low")


def run(watch: Watch, conversation: Conversation, codes: tuple[str, ...]) -> Outcome:
    """Feed the turns one by one through the memory."""
    state, alerts, flags = memory.Memory(), [], []
    for index, (speaker, said) in enumerate(conversation.turns):
        noticed = engine.step(watch, said, codes, state, speaker)
        state = noticed.memory
        alerts += [(index, alert) for alert in noticed.alerts]
        flags.append(tuple(dict.fromkeys(s.flag for s in noticed.sightings)))
    return Outcome(tuple(alerts), tuple(flags))


def failures(watch: Watch, conversation: Conversation, codes: tuple[str, ...]) -> Iterator[str]:
    """What is wrong with how a conversation came out; nothing when it is right."""
    outcome = run(watch, conversation, codes)
    missing = sorted(set(conversation.shows) - outcome.rules)
    if missing:
        fired = " ".join(sorted(outcome.rules)) or "nothing"
        yield f"{conversation.where}: {' '.join(missing)} did not fire (fired: {fired})"
    if not conversation.shows and outcome.loud:
        yield f"{conversation.where}: should be silent, fired {' '.join(sorted(set(outcome.loud)))}"
