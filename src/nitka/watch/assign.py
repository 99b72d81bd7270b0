"""The caller's own meanings: `assign` entries that give matched words a concept, or the speaker a feature.

`if`: `regex` (RE2, at most 1,000 characters), `hypernym` or `family` (a concept of ours by name), `features`; all
must hold. `then`: `hypernym` or `family` name the concept that the matched words get; with `attribution` true, a
feature `minor`, `adult`, `guardian` or `staff` speaks of the speaker. Another analyser's numbers and features are
accepted; a condition on one never holds, a consequence of one does nothing, and both are listed by `unknown`.
Patterns are matched by RE2: linear in the text, and it writes nothing to the log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import re2

from nitka.watch.errors import WatchError, kind
from nitka.watch.lexicon import Found, Hit, add
from nitka.watch.tokens import Token

MOST_REGEX = 1_000
_SURROGATE = re.compile("[\ud800-\udfff]")
_ABOUT = ("minor", "adult", "guardian", "staff")


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 1 << 20
    return re2.compile(pattern, options)


def check(entries: Sequence[Any], path: str) -> None:
    """Refuse malformed entries with their path. Raises `WatchError`."""
    for place, entry in enumerate(entries):
        where = f"{path}[{place}]"
        if not isinstance(entry, Mapping):
            raise WatchError(where, kind(entry), "an object with if and then")
        for side in ("if", "then"):
            part = entry.get(side)
            if part is not None and not isinstance(part, Mapping):
                raise WatchError(f"{where}.{side}", kind(part), "an object")
        condition = entry.get("if") or {}
        if "regex" in condition:
            _check_regex(condition["regex"], f"{where}.if.regex")


def _check_regex(pattern: object, path: str) -> None:
    if not isinstance(pattern, str) or len(pattern) > MOST_REGEX:
        raise WatchError(path, kind(pattern), f"a string of at most {MOST_REGEX} characters")
    try:
        _compiled(pattern)
    except (re2.error, UnicodeError):
        raise WatchError(path, "a pattern that RE2 refuses", "RE2 syntax") from None


def unknown(entries: Sequence[Any], concepts: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths of the numbers and names in `entries` that mean nothing here."""
    found = []
    for place, entry in enumerate(entries):
        for side in ("if", "then"):
            for key in ("family", "hypernym"):
                value = (entry.get(side) or {}).get(key)
                if value is not None and value not in concepts:
                    found.append(f"memory.assign[{place}].{side}.{key}")
    return tuple(found)


def apply(
    entries: Sequence[Any], text: str, tokens: Sequence[Token], found: Found, parents: Mapping[str, Sequence[str]]
) -> None:
    """Add the concepts that the entries give to words of this message."""
    text = _SURROGATE.sub("\ufffd", text)
    for entry in entries:
        concept = _concept(entry.get("then") or {}, parents)
        if concept:
            for start, end in list(_places(entry.get("if") or {}, text, tokens, found, parents)):
                for name in (concept, *parents.get(concept, ())):
                    add(found, start, Hit(name, "", end - start))


def _concept(part: Mapping[str, Any], parents: Mapping[str, Sequence[str]]) -> str:
    for key in ("hypernym", "family"):
        if isinstance(part.get(key), str) and part[key] in parents:
            return str(part[key])
    return ""


def _places(
    condition: Mapping[str, Any],
    text: str,
    tokens: Sequence[Token],
    found: Found,
    parents: Mapping[str, Sequence[str]],
) -> Iterator[tuple[int, int]]:
    """Token spans at which every condition holds."""
    wanted = _concept(condition, parents)
    foreign = any(condition.get(key) is not None for key in ("family", "hypernym")) and not wanted
    if foreign or condition.get("features"):
        return
    spans = None
    if wanted:
        spans = [(i, i + h.width) for i, hits in enumerate(found.at) for h in hits if h.concept == wanted]
    if "regex" not in condition:
        yield from spans or ()
        return
    for match in _compiled(condition["regex"]).finditer(text):
        span = _tokens(tokens, *match.span())
        if span and (spans is None or any(s < span[1] and span[0] < e for s, e in spans)):
            yield span


def _tokens(tokens: Sequence[Token], start: int, end: int) -> tuple[int, int] | None:
    """The tokens that code points `[start, end)` touch."""
    touched = [i for i, t in enumerate(tokens) if t.start < end and start < t.end]
    return (touched[0], touched[-1] + 1) if touched else None


def about_speaker(entries: Sequence[Any], text: str, parents: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """What the entries that match this message say of its speaker: some of minor, adult, guardian, staff."""
    text = _SURROGATE.sub("\ufffd", text)
    found = []
    for entry in entries:
        then, condition = entry.get("then") or {}, entry.get("if") or {}
        if then.get("attribution") is True and set(condition) <= {"regex"}:
            if "regex" not in condition or _compiled(condition["regex"]).search(text):
                found += [name for name in map(_feature, _list(then.get("features"))) if name in _ABOUT]
    return tuple(found)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list | tuple) else ()


def _feature(value: object) -> str:
    name = value.get("value") if isinstance(value, Mapping) else value
    return name.lower() if isinstance(name, str) else ""


def with_features(speaker: Any, features: Sequence[str]) -> Any:
    """The speaker as the features describe them; what the caller said outright stays."""
    for name in features:
        if name in ("minor", "adult"):
            speaker = speaker._replace(age=speaker.age or name)
        else:
            speaker = speaker._replace(role=speaker.role or name)
    return speaker
