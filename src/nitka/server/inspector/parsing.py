"""The page on which `parse` can be tried: the messages travel in the form, and are read anew each time, in their order,
each with the memory of those before it. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nitka.server.inspector.flags import said as in_words

SPEAKERS = ("", "adult", "minor", "guardian", "staff", "assistant")
MOST = 40  # messages of one try
MOST_CHARS = 2_000  # of one message
MOST_NAME = 40


class Said(NamedTuple):
    """One message of a try. `role` is one of `SPEAKERS`."""

    speaker: str
    role: str
    text: str


def carried(form: Mapping[str, str]) -> tuple[tuple[Said, ...], str]:
    """The messages that a form carries, with the new one, and what is wrong if something is."""
    before = _before(form.get("carried", ""))
    if form.get("do") == "clear":
        return (), ""
    if form.get("do") == "keep":
        return before, ""
    if form.get("do") == "back":
        return before[:-1], ""
    text, speaker = form.get("text", ""), form.get("speaker", "").strip()
    role = form.get("role", "")
    if not text.strip():
        return before, "blank"
    if len(text) > MOST_CHARS or len(speaker) > MOST_NAME or role not in SPEAKERS:
        return before, "too_long"
    if len(before) >= MOST:
        return before, "too_many"
    return (*before, Said(speaker or "A", role, text)), ""


def _before(text: str) -> tuple[Said, ...]:
    """The messages a page carried; none if that was not ours."""
    try:
        found = tuple(Said(*map(str, entry)) for entry in json.loads(text or "[]"))
    except (ValueError, TypeError, RecursionError):
        return ()
    sound = all(len(one.text) <= MOST_CHARS and len(one.speaker) <= MOST_NAME and one.role in SPEAKERS for one in found)
    return found[:MOST] if sound else ()


def shown(said: Sequence[Said], language: str) -> dict[str, Any]:
    """What the page shows of these messages."""
    from nitka.watch import parse  # here: its tables take half a second to load
    from nitka.watch.data import default

    watch = default()
    memory: dict[str, Any] = {}
    steps = []
    for one in said:
        settings = {"speaker": _speaker(one), "explain": True, "explanation_language": language}
        result, after = parse(one.text, settings=settings, memory=memory, watch=watch)
        told = zip(result.alerts, result.explanations, strict=True)
        steps.append(
            {
                "said": one,
                "language": result.language,
                "flags": [(flag, in_words(watch, flag, language)) for flag in result.flags],
                "alerts": [{"rule": a.rule, "severity": a.severity, "type": a.type, "words": why} for a, why in told],
                "findings": [{"type": found.type, "severity": found.severity} for found in result.findings],
                "entities": [(" / ".join(entity.type), entity.name) for entity in result.entities],
                "memory": after,
                "bytes": len(json.dumps(after, separators=(",", ":"), ensure_ascii=False).encode()),
            }
        )
        memory = after
    return {
        "steps": steps,
        "carried": json.dumps([list(one) for one in said], ensure_ascii=False),
        "speakers": SPEAKERS,
        "rules": watch.version,
        "most_chars": MOST_CHARS,
        "next_speaker": _next(said),
    }


def _speaker(one: Said) -> dict[str, Any]:
    """A speaker as the settings of `parse` have him."""
    age = {"adult": 30, "minor": 12}.get(one.role)
    return {"id": one.speaker, **({"age": age} if age else {"role": one.role} if one.role else {})}


def _next(said: Sequence[Said]) -> str:
    """Whoever is likely to speak now: the one who spoke before the last, or B after A."""
    if len(said) > 1:
        return said[-2].speaker
    return "B" if said and said[0].speaker == "A" else "A"
