"""The extension `x` of a memory as a short string: bits, written in base 85.

Everything has a fixed width, so that the size is bounded: ages take as many bits as the flag's life needs, flags and rules are named by
their fixed numbers (0 to 127). Layout of version 1: speakers, message ids, rules fired, alerts of those messages, flags.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field

from nitka.watch.errors import WatchError
from nitka.watch.types import AGE_CAP, ROLES, SEVERITIES, SPEAKERS, Span, Speaker

VERSION = 1
TAG_BITS = 20
ID_BITS = 24
IDS = 8
RECENT = 64
_AGES = ("", "adult", "minor")
_BITS = {"P": 8, "L": 8, "M": 6, "S": 4}


@dataclass(frozen=True, slots=True)
class Extension:
    """What `x` holds. `spans`: flag number -> speaker ("" unknown, "!" the caller, else a tag) -> ages. `ids`: message hash -> how many
    messages with an id came after it. `fired`: rule number -> severity. `recent`: (message hash, rule number, severity) of those ids."""

    spans: Mapping[int, Mapping[str, Span]] = field(default_factory=dict)
    known: Mapping[str, Speaker] = field(default_factory=dict)
    fired: Mapping[int, int] = field(default_factory=dict)
    ids: Mapping[int, int] = field(default_factory=dict)
    recent: frozenset[tuple[int, int, int]] = frozenset()


class _Writer:
    def __init__(self) -> None:
        self.value, self.size = 0, 0

    def put(self, number: int, bits: int) -> None:
        self.value |= min(number, (1 << bits) - 1) << self.size
        self.size += bits

    def text(self) -> str:
        return base64.b85encode(self.value.to_bytes((self.size + 7) // 8, "little")).decode("ascii")


class _Reader:
    def __init__(self, text: str) -> None:
        self.value, self.size = int.from_bytes(base64.b85decode(text), "little"), 0

    def get(self, bits: int) -> int:
        number = (self.value >> self.size) & ((1 << bits) - 1)
        self.size += bits
        return number


def pack(ext: Extension, lives: Mapping[int, str]) -> str:
    """The string; `lives` gives each flag number's life."""
    out = _Writer()
    tags = sorted(ext.known)[:SPEAKERS]
    out.put(len(tags), 4)
    for tag in tags:
        speaker = ext.known[tag]
        out.put(int(tag, 16), TAG_BITS)
        out.put(_AGES.index(speaker.age), 2)
        out.put(ROLES.index(speaker.role), 3)
    ids = sorted(ext.ids)[:IDS]
    out.put(len(ids), 4)
    for identity in ids:
        out.put(identity, ID_BITS)
        out.put(ext.ids[identity], 3)
    _pack_rules(out, ext, ids)
    _pack_spans(out, ext, ["", "!", *tags], lives)
    return out.text()


def _pack_rules(out: _Writer, ext: Extension, ids: list[int]) -> None:
    out.put(sum(1 << n for n in ext.fired), 128)
    for number in sorted(ext.fired):
        out.put(ext.fired[number], 2)
    recent = sorted(ext.recent)[:RECENT]
    out.put(len(recent), 7)
    for identity, number, severity in recent:
        out.put(ids.index(identity), 3)
        out.put(number, 7)
        out.put(severity, 2)


def _pack_spans(out: _Writer, ext: Extension, who: list[str], lives: Mapping[int, str]) -> None:
    out.put(sum(1 << n for n in ext.spans), 128)
    for number in sorted(ext.spans):
        spans, bits = ext.spans[number], _BITS[lives[number]]
        if spans.keys() == {""}:
            out.put(0, 1)
        else:
            out.put(1, 1)
            out.put(sum(1 << i for i, tag in enumerate(who) if tag in spans), len(who))
        for tag in who:
            if tag in spans:
                out.put(spans[tag].first, bits)
                out.put(spans[tag].last, bits)


def unpack(text: str, lives: Mapping[int, str], path: str) -> Extension:
    """Read the string back. Raises `WatchError` if it is not one of ours; flags without a life (rules since removed) cannot be skipped
    and end the reading."""
    try:
        read = _Reader(text)
        tags = [_speaker(read) for _ in range(read.get(4))]
        ids = [(read.get(ID_BITS), read.get(3)) for _ in range(read.get(4))]
        fired = {n: read.get(2) for n in _set(read.get(128))}
        recent = frozenset((ids[read.get(3)][0], read.get(7), read.get(2)) for _ in range(read.get(7)))
        spans = _spans(read, ["", "!", *(s.tag for s in tags)], lives)
    except (ValueError, IndexError, binascii.Error):
        raise WatchError(path, "a damaged extension", "the x of a memory as it was returned, or none") from None
    return Extension(spans, {s.tag: s for s in tags}, fired, dict(ids), recent)


def _speaker(read: _Reader) -> Speaker:
    tag = f"{read.get(TAG_BITS):05x}"
    return Speaker(tag, _AGES[read.get(2)], ROLES[read.get(3)])


def _set(bits: int) -> list[int]:
    return [n for n in range(128) if bits >> n & 1] if bits else []


def _spans(read: _Reader, who: list[str], lives: Mapping[int, str]) -> dict[int, dict[str, Span]]:
    spans: dict[int, dict[str, Span]] = {}
    for number in _set(read.get(128)):
        if number not in lives:
            return spans
        bits = _BITS[lives[number]]
        present = read.get(len(who)) if read.get(1) else 1
        spans[number] = {}
        for index, tag in enumerate(who):
            if present >> index & 1:
                first, last = read.get(bits), read.get(bits)
                spans[number][tag] = Span(max(first, last), last)
    return spans


def cap(life: str) -> int:
    """The highest age that a flag of this life can have."""
    return min(AGE_CAP, (1 << _BITS[life]) - 1)


def severity_number(name: str) -> int:
    return SEVERITIES.index(name)
