"""Facts as plain JSON values, and back. What is empty or usual is left out: most facts were said once."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from nitka.layers.facts.model import USER, Fact, Seen, When


def to_json(fact: Fact) -> dict[str, Any]:
    """The fact as JSON values. Times are ISO 8601 in UTC."""
    extras: dict[str, Any] = {"about": fact.about if fact.about != USER else "", "past": [_seen(p) for p in fact.past]}
    if fact.retracted is not None:
        at, n, place = fact.retracted
        extras["retracted"] = [_time(at), n, place]
    return {"slot": fact.slot, **_seen(fact), **{name: value for name, value in extras.items() if value}}


def from_json(data: Mapping[str, Any]) -> Fact:
    """The fact that `to_json` wrote. Raises `KeyError`, `ValueError`, `TypeError` for anything else."""
    retracted: When | None = None
    if (taken := data.get("retracted")) is not None:
        retracted = (_moment(taken[0]), int(taken[1]), int(taken[2]))
    past = tuple(Seen(**_fields(item)) for item in data.get("past", ()))
    return Fact(slot=data["slot"], about=data.get("about", USER), past=past, retracted=retracted, **_fields(data))


def _seen(seen: Seen) -> dict[str, Any]:
    data: dict[str, Any] = {"value": seen.value, "first": _time(seen.first_seen)}
    usual = {
        "statement": (seen.statement, seen.value),
        "quote": (seen.quote, ""),
        "last": (_time(seen.last_seen), data["first"]),
        "session": (seen.session, ""),
        "seq": (seen.seq, -1),
        "n": (seen.n, -1),
        "latest": (list(seen.latest), [-1, -1]),
        "rows": (list(seen.rows), []),
        "confirmations": (seen.confirmations, 1),
        "hand": (seen.hand, False),
    }
    return data | {name: value for name, (value, default) in usual.items() if value != default}


def _fields(data: Mapping[str, Any]) -> dict[str, Any]:
    latest = data.get("latest", (-1, -1))
    return {
        "value": data["value"],
        "statement": data.get("statement", data["value"]),
        "quote": data.get("quote", ""),
        "first_seen": _moment(data["first"]),
        "last_seen": _moment(data.get("last", data["first"])),
        "session": data.get("session", ""),
        "seq": data.get("seq", -1),
        "n": data.get("n", -1),
        "latest": (latest[0], latest[1]),
        "rows": tuple(data.get("rows", ())),
        "confirmations": data.get("confirmations", 1),
        "hand": data.get("hand", False),
    }


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat()


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text)
