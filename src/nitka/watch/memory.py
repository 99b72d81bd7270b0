"""The memory: what travels with the caller, and how it is moved on, bounded and joined.

* `flags` says WHICH flags stand; the extension says when and by whom. A flag the extension does not know was put in
  by the caller and counts as seen just before this message; one that is missing from `flags` is gone.
* A flag lives for so many messages after its last sighting, separately for each speaker.
* Joining takes the older first and the younger last sighting. What must be left out to stay small is chosen by an
  order on keys alone (the smallest speaker tags stay, the others' sightings become an unknown speaker's), so joining
  is associative, commutative and idempotent, and no flag is ever lost. No counter is compared between two chains.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Set
from functools import partial
from typing import Any, NamedTuple

from nitka.watch.packing import CROWD, ID_BITS, IDS, RECENT, TAG_BITS, Extension
from nitka.watch.types import BITS, SPEAKERS, Kinds, Span, Speaker

ROOM = 2040  # bytes of flags, antecedents and x, as JSON without blanks
_FIXED = 75 + 140 + 175  # punctuation, antecedents, and what x holds beside the flags, each at its largest
_PAIR_BITS = 26
_span: Callable[[tuple[int, int, int]], Span] = partial(tuple.__new__, Span)  # the same as Span(*…), sooner
LATE = 8  # messages that a strong sighting lends its strength to a weak one after it


class Antecedent(NamedTuple):
    """The last person or thing mentioned: `kind` is person or thing, `concept` what it is, `form` f, m or pl, `ago`
    how many messages ago.

    `owner` says whose it is: the tag of the speaker who said "my", `~` and a tag after "your", empty when nobody
    knows.
    """

    kind: str
    concept: str
    form: str = ""
    owner: str = ""
    ago: int = 0


class Memory(NamedTuple):
    """The state of one chain. `seen`: flag -> speaker tag -> ages after the last message. `foreign` flags and
    `assign` are echoed.
    """

    seen: Mapping[str, Mapping[str, Span]] = {}
    known: Mapping[str, Speaker] = {}
    fired: Mapping[int, int] = {}
    ids: Mapping[int, int] = {}
    recent: frozenset[tuple[int, int, int]] = frozenset()
    language: str = ""
    antecedents: tuple[Antecedent, ...] = ()
    foreign: tuple[Any, ...] = ()
    assign: tuple[Any, ...] = ()
    mentions: tuple[Any, ...] = ()  # antecedents that another analyser wrote


def canonical(value: Any) -> str:
    """JSON with sorted keys: the order in which echoed values stand."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True)


def aged(memory: Memory, kinds: Kinds) -> Memory:
    """One message later: every age up by one, flags whose life is over gone."""
    if not memory.seen and not memory.antecedents:
        return memory
    seen, limits = {}, kinds.limits
    for flag, spans in memory.seen.items():
        life, top = limits[flag]
        alive = {}
        for who, (first, last, strength) in spans.items():
            if last < life:
                alive[who] = _span((first + 1 if first < top else top, last + 1 if last < top else top, strength))
        if alive:
            seen[flag] = alive
    antecedents = tuple([Antecedent(*a[:4], a.ago + 1) for a in memory.antecedents if a.ago < 6])
    return memory._replace(seen=seen, antecedents=antecedents)


def with_sightings(memory: Memory, flags: Mapping[str, int], who: str) -> Memory:
    """Note that `who` showed these flags, each so strongly, in the present message (age 0)."""
    seen = dict(memory.seen)
    for flag, strength in flags.items():
        spans = seen.get(flag, {})
        old = spans.get(who)
        if old is None:
            now = Span(0, 0, strength)
        else:
            now = Span(old.first, 0, max(strength, old.strength) if old.last <= LATE else strength)
        seen[flag] = {**spans, who: now}
    return memory._replace(seen=seen)


def bounded(memory: Memory, kinds: Kinds) -> Memory:
    """The same memory within its size: at most 8 speakers told apart, and as many (flag, speaker) pairs as there is
    room for.
    """
    if len(memory.seen) > CROWD:
        memory = memory._replace(
            seen={flag: _long_ago(spans, kinds.limits[flag][1]) for flag, spans in memory.seen.items()}
        )
    pairs_now = sum(map(len, memory.seen.values()))
    if pairs_now + len(memory.known) <= SPEAKERS:
        return _bounded_ids(memory)
    tags = {who for spans in memory.seen.values() for who in spans if who not in ("", "!")} | memory.known.keys()
    if len(tags) <= SPEAKERS and pairs_now <= 40:
        return _bounded_ids(memory)
    kept = set(sorted(tags)[:SPEAKERS])
    seen = {flag: _fold(spans, kept | {"!"}) for flag, spans in memory.seen.items()}
    pairs = sorted((who, flag) for flag, spans in seen.items() for who in spans if who)
    for who, flag in pairs[_pairs_room(seen, kinds) :]:
        seen[flag] = _fold(seen[flag], seen[flag].keys() - {who})
    known = {tag: s for tag, s in memory.known.items() if tag in kept}
    return _bounded_ids(memory._replace(seen=seen, known=known))


def _long_ago(spans: Mapping[str, Span], top: int) -> dict[str, Span]:
    """The oldest first sighting there is: in a crowd of flags only the last sightings are still told apart."""
    return {who: Span(top, span.last) for who, span in spans.items()}  # and nothing is weaker than another


def _fold(spans: Mapping[str, Span], kept: Set[str]) -> dict[str, Span]:
    """Give the sightings of speakers outside `kept` to the unknown speaker."""
    result: dict[str, Span] = {}
    for who, span in spans.items():
        name = who if who in kept else ""
        result[name] = _join(result[name], span) if name in result else span
    return result


def _join(one: Span, other: Span) -> Span:
    return Span(max(one.first, other.first), min(one.last, other.last), max(one.strength, other.strength))


def _pairs_room(seen: Mapping[str, Mapping[str, Span]], kinds: Kinds) -> int:
    """How many pairs beyond one unknown speaker a flag fit; falls as flags are added, which keeps joining
    associative.
    """
    names = sum(len(flag) + 3 for flag in seen)
    own = sum(3 + 2 * BITS[kinds[flag].life] for flag in seen)
    bits = (ROOM - _FIXED - names) * 3 * 8 // 4 - own
    return max(0, bits // _PAIR_BITS)


def _bounded_ids(memory: Memory) -> Memory:
    if not memory.ids and not memory.recent:
        return memory
    ids = dict(sorted(memory.ids.items(), key=lambda item: (item[1], item[0]))[:IDS])
    recent = frozenset(sorted(r for r in memory.recent if r[0] in ids)[:RECENT])
    if len(ids) == len(memory.ids) and len(recent) == len(memory.recent):
        return memory
    return memory._replace(ids=ids, recent=recent)


def extension(memory: Memory, kinds: Kinds) -> Extension:
    """What goes into `x`. Every speaker with a sighting is listed there, so that its tag can be written once."""
    known = dict(memory.known)
    for spans in memory.seen.values():
        for who in spans:
            if who not in ("", "!") and who not in known:
                known[who] = Speaker(who)
    numbers = kinds.numbers
    spans_by_number = {numbers[flag]: spans for flag, spans in memory.seen.items()}
    return Extension(spans_by_number, known, memory.fired, memory.ids, memory.recent)


def join(memories: Iterable[Memory], kinds: Kinds) -> Memory:
    """Join memories of one target. No memory at all joins to an empty one."""
    whole = Memory()
    for memory in memories:
        whole = _joined(whole, memory, kinds)
    return whole


def _joined(one: Memory, other: Memory, kinds: Kinds) -> Memory:
    seen = {flag: dict(spans) for flag, spans in one.seen.items()}
    for flag, spans in other.seen.items():
        into = seen.setdefault(flag, {})
        for who, span in spans.items():
            into[who] = _join(into[who], span) if who in into else span
    fired = {n: max(m.get(n, 0) for m in (one.fired, other.fired)) for n in one.fired.keys() | other.fired.keys()}
    ids = {i: min(m.get(i, 99) for m in (one.ids, other.ids)) for i in one.ids.keys() | other.ids.keys()}
    return bounded(
        Memory(
            seen=seen,
            known=_join_known(one.known, other.known),
            fired=fired,
            ids=ids,
            recent=one.recent | other.recent,
            language=min((m.language for m in (one, other) if m.language), default=""),
            antecedents=_join_antecedents((*one.antecedents, *other.antecedents)),
            foreign=_union(one.foreign, other.foreign),
            assign=_union(one.assign, other.assign),
            mentions=_union(one.mentions, other.mentions),
        ),
        kinds,
    )


def _join_known(one: Mapping[str, Speaker], other: Mapping[str, Speaker]) -> dict[str, Speaker]:
    joined = dict(one)
    for tag, speaker in other.items():
        mine = joined.get(tag, speaker)
        joined[tag] = Speaker(tag, max(mine.age, speaker.age), max(mine.role, speaker.role))
    return joined


def _join_antecedents(all_of_them: Iterable[Antecedent]) -> tuple[Antecedent, ...]:
    """The latest of each kind."""
    ordered = sorted(all_of_them, key=lambda a: (a.kind, a.ago, a.concept, a.form, a.owner))
    latest: dict[str, Antecedent] = {}
    for one in ordered:
        latest.setdefault(one.kind, one)
    return tuple(latest.values())


def _union(one: Iterable[Any], other: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(v for _, v in sorted({canonical(v): v for v in (*one, *other)}.items()))


def tag_of(digest: bytes) -> str:
    return f"{int.from_bytes(digest[:4], 'little') & ((1 << TAG_BITS) - 1):05x}"


def id_of(digest: bytes) -> int:
    return int.from_bytes(digest[:4], "little") & ((1 << ID_BITS) - 1)
