"""The extension `x` of a memory as a short string: bits, written in base 64.

Everything has a fixed width, so that the size is bounded: ages take as many bits as the flag's life needs, flags and
rules are named by their fixed numbers (0 to 127). Layout of version 2: speakers, message ids, rules fired, alerts of
those messages, flags. Where very many flags stand, first sightings and strengths are left out.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from nitka.watch.errors import WatchError
from nitka.watch.types import BITS, NORMAL, ROLES, SPEAKERS, Span, Speaker

VERSION = 2
READABLE = (1, 2)  # version 1 has no strengths
CROWD = 72  # flags standing beyond which first sightings are only "long ago"
TAG_BITS = 20
ID_BITS = 24
IDS = 8
RECENT = 16  # alerts of the last eight messages that a replay can give again
NOTHING = "AAAAAA=="  # an extension that holds nothing, as most do
_AGES = ("", "adult", "minor")


class Extension(NamedTuple):
    """What `x` holds. `spans`: flag number -> speaker ("" unknown, "!" the caller, else a tag) -> ages. `ids`:
    message hash -> how many messages with an id came after it. `fired`: rule number -> severity. `recent`: (message
    hash, rule number, severity) of those ids.
    """

    spans: Mapping[int, Mapping[str, Span]] = {}
    known: Mapping[str, Speaker] = {}
    fired: Mapping[int, int] = {}
    ids: Mapping[int, int] = {}
    recent: frozenset[tuple[int, int, int]] = frozenset()


EMPTY = Extension()


class _Reader:
    def __init__(self, text: str) -> None:
        self.value, self.size = int.from_bytes(base64.b64decode(text, validate=True), "little"), 0

    def get(self, bits: int) -> int:
        number = (self.value >> self.size) & ((1 << bits) - 1)
        self.size += bits
        return number


Fields = list[tuple[int, int]]  # (number, bits)


def pack(ext: Extension, lives: Mapping[int, str]) -> str:
    """The string; `lives` gives each flag number's life."""
    if not (ext.spans or ext.known or ext.ids or ext.fired):
        return NOTHING
    tags = sorted(ext.known)[:SPEAKERS]
    ids = sorted(ext.ids)[:IDS]
    fields: Fields = [(len(tags), 4), *((_speaker_number(ext.known[tag]), TAG_BITS + 5) for tag in tags)]
    fields.append((len(ids), 4))
    fields += [(identity | ext.ids[identity] << ID_BITS, ID_BITS + 3) for identity in ids]
    fields += _rule_fields(ext, ids)
    fields += _span_fields(ext, ["", "!", *tags], lives)
    value = size = 0
    for number, bits in fields:
        if number:
            value |= number << size
        size += bits
    return base64.b64encode(value.to_bytes((size + 7) // 8, "little")).decode("ascii")


def _speaker_number(speaker: Speaker) -> int:
    return int(speaker.tag, 16) | _AGES.index(speaker.age) << TAG_BITS | ROLES.index(speaker.role) << TAG_BITS + 2


def _rule_fields(ext: Extension, ids: list[int]) -> Fields:
    fields = [*_set_fields(ext.fired), *((ext.fired[number], 2) for number in sorted(ext.fired))]
    recent = sorted(ext.recent)[:RECENT]
    return [*fields, (len(recent), 7), *((ids.index(i) | n << 3 | s << 10, 12) for i, n, s in recent)]


def _set_fields(numbers: Collection[int]) -> Fields:
    width = max(numbers, default=-1) + 1
    return [(width, 8), (_bitmap(numbers), width)]


def _bitmap(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _span_fields(ext: Extension, who: list[str], lives: Mapping[int, str]) -> Fields:
    old = len(ext.spans) > CROWD
    fields: Fields = [*_set_fields(ext.spans), (old, 1)]
    place = {tag: index for index, tag in enumerate(who)}
    for number in sorted(ext.spans):
        spans, bits = ext.spans[number], BITS[lives[number]]
        if len(spans) == 1 and "" in spans:
            fields.append((0, 1))
        else:
            fields.append((1 | _bitmap(place[tag] for tag in spans) << 1, len(who) + 1))
        for tag in sorted(spans, key=place.__getitem__):
            first, last, strength = spans[tag]
            fields.append((last, bits) if old else (first | last << bits | strength << 2 * bits, 2 * bits + 2))
    return fields


def unpack(text: str, lives: Mapping[int, str], path: str, *, version: int = VERSION) -> Extension:
    """Read the string back. Raises `WatchError` if it is not one of ours; a flag that has since been removed ends the
    reading.
    """
    if text == NOTHING:
        return EMPTY
    try:
        read = _Reader(text)
        tags = [_speaker(read) for _ in range(read.get(4))]
        ids = [(read.get(ID_BITS), read.get(3)) for _ in range(read.get(4))]
        fired = {n: read.get(2) for n in _set(read.get(read.get(8)))}
        recent = frozenset((ids[read.get(3)][0], read.get(7), read.get(2)) for _ in range(read.get(7)))
        spans = _spans(read, ["", "!", *(s.tag for s in tags)], lives, 2 if version > 1 else 0)
    except (ValueError, IndexError, binascii.Error):
        raise WatchError(path, "a damaged extension", "the x of a memory as it was returned, or none") from None
    return Extension(spans, {s.tag: s for s in tags}, fired, dict(ids), recent)


def _speaker(read: _Reader) -> Speaker:
    tag = f"{read.get(TAG_BITS):05x}"
    return Speaker(tag, _AGES[read.get(2)], ROLES[read.get(3)])


def _set(bits: int) -> list[int]:
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


def _spans(read: _Reader, who: list[str], lives: Mapping[int, str], width: int) -> dict[int, dict[str, Span]]:
    spans: dict[int, dict[str, Span]] = {}
    numbers = _set(read.get(read.get(8)))
    old = read.get(1)
    value, size, people = read.value, read.size, len(who)  # the busiest loop of reading: no calls
    for number in numbers:
        if number not in lives:
            return spans
        bits = BITS[lives[number]]
        mask = (1 << bits) - 1
        present = value >> size + 1 & (1 << people) - 1 if value >> size & 1 else 1
        size += 1 + people if value >> size & 1 else 1
        found = spans[number] = {}
        for index in _set(present):
            first = mask if old else value >> size & mask
            size += 0 if old else bits
            last = value >> size & mask
            size += bits
            strength = value >> size & 3 if width and not old else NORMAL
            size += 0 if old else width
            found[who[index]] = Span(first if first > last else last, last, strength or NORMAL)
    return spans
