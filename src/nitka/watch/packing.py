"""The extension `x` of a memory as a short string: bits, written in base 64.

Everything has a fixed width, so that the size is bounded: ages take as many bits as the flag's life needs, flags and
rules are named by their fixed numbers (0 to 127). Layout of version 2: speakers, message ids, rules fired, alerts of
those messages, flags. Where very many flags stand, first sightings and strengths are left out.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from nitka.watch.errors import WatchError
from nitka.watch.types import NORMAL, ROLES, SPEAKERS, Span, Speaker

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
_span: Callable[[tuple[int, int, int]], Span] = partial(tuple.__new__, Span)  # the same as Span(*…), sooner


class _Reader:
    def __init__(self, text: str) -> None:
        self.value, self.size = int.from_bytes(binascii.a2b_base64(text, strict_mode=True), "little"), 0

    def get(self, bits: int) -> int:
        number = (self.value >> self.size) & ((1 << bits) - 1)
        self.size += bits
        return number


Fields = list[tuple[int, int]]  # (number, bits)


def pack(ext: Extension, widths: Mapping[int, int]) -> str:
    """The string; `widths` gives the bits that an age of each flag number takes."""
    if not (ext.spans or ext.known or ext.ids or ext.fired):
        return NOTHING
    tags = sorted(ext.known)[:SPEAKERS]
    value, size = len(tags), 4
    for tag in tags:
        value |= _speaker_number(ext.known[tag]) << size
        size += TAG_BITS + 5
    if ext.ids or ext.fired:
        value, size = _put(value, size, _rule_fields(ext))
    else:
        size += 4 + 8 + 7  # no ids, no rules fired, no alerts of late
    value, size = _put_spans(value, size, ext.spans, ("", "!", *tags), widths)
    return binascii.b2a_base64(value.to_bytes((size + 7) // 8, "little"), newline=False).decode("ascii")


def _put(value: int, size: int, fields: Fields) -> tuple[int, int]:
    for number, bits in fields:
        value |= number << size
        size += bits
    return value, size


def _speaker_number(speaker: Speaker) -> int:
    tag = int(speaker.tag, 16)
    if not speaker.age and not speaker.role:
        return tag
    return tag | _AGES.index(speaker.age) << TAG_BITS | ROLES.index(speaker.role) << TAG_BITS + 2


def _rule_fields(ext: Extension) -> Fields:
    ids = sorted(ext.ids)[:IDS]
    fields = [(len(ids), 4), *((identity | ext.ids[identity] << ID_BITS, ID_BITS + 3) for identity in ids)]
    width = max(ext.fired, default=-1) + 1
    fields += [(width, 8), (_bitmap(ext.fired), width), *((ext.fired[number], 2) for number in sorted(ext.fired))]
    recent = sorted(ext.recent)[:RECENT]
    return [*fields, (len(recent), 7), *((ids.index(i) | n << 3 | s << 10, 12) for i, n, s in recent)]


def _bitmap(numbers: Iterable[int]) -> int:
    bits = 0
    for number in numbers:
        bits |= 1 << number
    return bits


def _put_spans(
    value: int, size: int, spans: Mapping[int, Mapping[str, Span]], who: tuple[str, ...], widths: Mapping[int, int]
) -> tuple[int, int]:
    old, numbers = len(spans) > CROWD, sorted(spans)
    top = numbers[-1] + 1 if numbers else 0
    value |= (top | _bitmap(numbers) << 8 | old << 8 + top) << size
    size += 8 + top + 1
    place, people = {tag: index for index, tag in enumerate(who)}, len(who)
    for number in numbers:
        found, bits = spans[number], widths[number]
        if len(found) == 1 and "" in found:
            size += 1
        else:
            value |= (1 | _bitmap([place[tag] for tag in found]) << 1) << size
            size += people + 1
        for tag in found if len(found) == 1 else sorted(found, key=place.__getitem__):
            first, last, strength = found[tag]
            value |= (last if old else first | last << bits | strength << 2 * bits) << size
            size += bits if old else 2 * bits + 2
    return value, size


def unpack(text: str, widths: Mapping[int, int], path: str, *, version: int = VERSION) -> Extension:
    """Read the string back. Raises `WatchError` if it is not one of ours; a flag that has since been removed ends the
    reading.
    """
    if text == NOTHING:
        return EMPTY
    try:
        read = _Reader(text)
        known = {s.tag: s for s in [_speaker(read.get(TAG_BITS + 5)) for _ in range(read.get(4))]}
        ids, fired, recent = _rules(read)
        spans = _spans(read, ("", "!", *known), widths, 2 if version > 1 else 0)
    except (ValueError, IndexError, binascii.Error):
        raise WatchError(path, "a damaged extension", "the x of a memory as it was returned, or none") from None
    return Extension(spans, known, fired, ids, recent)


def _speaker(number: int) -> Speaker:
    tag = f"{number & (1 << TAG_BITS) - 1:05x}"
    if number < 1 << TAG_BITS:
        return Speaker(tag)
    return Speaker(tag, _AGES[number >> TAG_BITS & 3], ROLES[number >> TAG_BITS + 2])


def _rules(read: _Reader) -> tuple[dict[int, int], dict[int, int], frozenset[tuple[int, int, int]]]:
    """Ids, rules fired, and alerts of late; mostly there are none of the first and the last."""
    if read.value >> read.size & (1 << 4 + 8 + 7) - 1 == 0:
        read.size += 4 + 8 + 7
        return {}, {}, frozenset()
    ids = [(read.get(ID_BITS), read.get(3)) for _ in range(read.get(4))]
    fired = {n: read.get(2) for n in _set(read.get(read.get(8)))}
    recent = frozenset((ids[read.get(3)][0], read.get(7), read.get(2)) for _ in range(read.get(7)))
    return dict(ids), fired, recent


def _set(bits: int) -> list[int]:
    numbers = []
    while bits:
        lowest = bits & -bits
        numbers.append(lowest.bit_length() - 1)
        bits ^= lowest
    return numbers


def _spans(read: _Reader, who: tuple[str, ...], widths: Mapping[int, int], width: int) -> dict[int, dict[str, Span]]:
    spans: dict[int, dict[str, Span]] = {}
    numbers = _set(read.get(read.get(8)))
    old = read.get(1)
    value, people = (
        read.value >> read.size,
        len(who),
    )  # the busiest loop of reading: no calls, and what is read falls off
    for number in numbers:
        if number not in widths:
            return spans
        bits = widths[number]
        mask = (1 << bits) - 1
        present, value = (value >> 1 & (1 << people) - 1, value >> people + 1) if value & 1 else (1, value >> 1)
        found = spans[number] = {}
        for name in who if present else ():
            here, present = present & 1, present >> 1
            if not here:
                continue
            first = mask if old else value & mask
            value >>= 0 if old else bits
            last = value & mask
            value >>= bits
            strength = value & 3 if width and not old else NORMAL
            value >>= 0 if old else width
            found[name] = _span((first if first > last else last, last, strength or NORMAL))
    return spans
