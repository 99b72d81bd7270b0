"""The memory as JSON: reading what a caller sends back, with every error named by its path, and writing what goes
out.

`{"flags": [...], "antecedents": [...], "assign": [...], "x": {"v": 1, "l": "ru", "s": "..."}}`; absent, null and {}
are the same empty memory. Values of ours that are unknown here (another analyser's codes, families, features) are
echoed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nitka.watch.assign import check
from nitka.watch.errors import TooLarge, WatchError, kind
from nitka.watch.memory import Antecedent, Memory, canonical, extension
from nitka.watch.packing import EMPTY, READABLE, VERSION, Extension, pack, unpack
from nitka.watch.types import Kinds, Span

CODES = {
    "PEBD": "agents_of_bad_things",
    "BADANML": "bad_animal",
    "BULKMSG": "bulk_message",
    "DETHR": "death_related",
    "EARNMUCH": "make_money",
    "IDEP": "my_departure",
    "SECO": "sexually_conservative",
    "TRPA": "trusted_party",
    "WSTE": "waste",
    "WOPR": "won_prize",
    "WFH": "work_from_home",
    "ORG": "organization",
    "ROLE": "role",
}
CALLER_ONLY = ("aggressive_crime_scan", "game_violence_ok")  # without a code; only a caller puts them in
MOST_ENTRIES, MOST_BYTES = 64, 16 * 1024
_KEYS = ("flags", "antecedents", "assign", "x")
_KNOWN = frozenset(_KEYS)
CALLER = "!"


def load(value: object, kinds: Kinds, path: str = "settings.memory") -> Memory:
    """Read a memory. Raises `WatchError`; `TooLarge` when the echoed part is over 64 entries or 16 KB."""
    if isinstance(value, Memory):
        return value
    if not value and (value is None or isinstance(value, (dict, Mapping))):
        return Memory()
    if not isinstance(value, (dict, Mapping)):  # asking a class costs a tenth of asking a protocol
        raise WatchError(path, kind(value), "an object or null")
    if not value.keys() <= _KNOWN:
        raise WatchError(path, "an unknown key", " ".join(_KEYS))
    ext, language = _extension(value.get("x"), kinds, f"{path}.x")
    flags, told, assign = _list(value, "flags", path), _list(value, "antecedents", path), _list(value, "assign", path)
    if ext is EMPTY and not (flags or told or assign):
        return Memory(language=language)
    ours, foreign = _flags(flags, kinds, f"{path}.flags")
    mine, mentions = _antecedents(told, f"{path}.antecedents")
    if foreign or assign or mentions:
        check(assign, f"{path}.assign")
        _limit((*foreign, *assign, *mentions), path)
    return Memory(
        seen=_seen(ours, ext, kinds),
        known={t: s for t, s in ext.known.items() if s.age or s.role} if ext.known else {},
        fired=ext.fired,
        ids=ext.ids,
        recent=ext.recent,
        language=language,
        antecedents=mine,
        foreign=_sorted(foreign),
        assign=_sorted(assign),
        mentions=_sorted(mentions),
    )


def dump(memory: Memory, kinds: Kinds) -> dict[str, Any]:
    """Write a memory."""
    flags = sorted(memory.seen, key=kinds.numbers.__getitem__)
    x: dict[str, Any] = {"v": VERSION, "s": pack(extension(memory, kinds), kinds.widths)}
    if memory.language:
        x["l"] = memory.language
    return {
        "flags": [*flags, *memory.foreign] if memory.foreign else flags,
        "antecedents": [*[_mention(one) for one in memory.antecedents], *memory.mentions],
        "assign": list(memory.assign),
        "x": x,
    }


def flag_name(entry: object) -> str:
    """The name of a flag in either form; empty when it is in neither."""
    if isinstance(entry, str):
        return CODES.get(entry, entry)
    value = entry.get("value") if isinstance(entry, Mapping) else None
    return CODES.get(value, value) if isinstance(value, str) else ""


def _list(value: Mapping[str, Any], key: str, path: str) -> Sequence[Any]:
    found = value.get(key)
    if found is None:
        return []
    if not isinstance(found, (list, tuple)):  # a union type is made anew at every call
        raise WatchError(f"{path}.{key}", kind(found), "an array")
    return found


def _flags(entries: Sequence[Any], kinds: Kinds, path: str) -> tuple[set[str], list[Any]]:
    ours: set[str] = set()
    foreign = []
    for place, entry in enumerate(entries):
        if type(entry) is str and entry in kinds and entry not in CODES:  # as nearly all are
            ours.add(entry)
            continue
        name = flag_name(entry)
        if not name:
            raise WatchError(f"{path}[{place}]", kind(entry), 'a name, or {"index", "value"}')
        if name in kinds:
            ours.add(name)
        else:
            foreign.append(entry)
    return ours, foreign


def _seen(flags: set[str], ext: Extension, kinds: Kinds) -> dict[str, Mapping[str, Span]]:
    """What stands: flags of the list, with their ages from the extension, or as the caller's own, seen just now."""
    numbers, spans = kinds.numbers, ext.spans
    return {flag: spans.get(numbers[flag]) or {CALLER: Span(0, 0)} for flag in flags}


def _extension(value: object, kinds: Kinds, path: str) -> tuple[Extension, str]:
    if value is None or value == {}:
        return EMPTY, ""
    if not isinstance(value, (dict, Mapping)):
        raise WatchError(path, kind(value), "an object or null")
    version = value.get("v")
    if version not in READABLE:
        raise WatchError(f"{path}.v", "another version", " ".join(map(str, READABLE)))
    packed, language = value.get("s"), value.get("l", "")
    if not isinstance(packed, str) or len(packed) > 2048:
        raise WatchError(f"{path}.s", kind(packed), "a string of at most 2048 characters")
    if not isinstance(language, str) or len(language) > 8:
        raise WatchError(f"{path}.l", kind(language), "a language code")
    return unpack(packed, kinds.widths, f"{path}.s", version=version), language


def _antecedents(entries: Sequence[Any], path: str) -> tuple[tuple[Antecedent, ...], list[Any]]:
    mine: dict[str, Antecedent] = {}
    foreign = []
    for place, entry in enumerate(entries):
        if not isinstance(entry, (dict, Mapping)):
            raise WatchError(f"{path}[{place}]", kind(entry), "an object")
        read = _antecedent(entry)
        if read is None:
            foreign.append(entry)
        else:
            mine[read.kind] = read
    return tuple(mine[k] for k in sorted(mine)), foreign


def _antecedent(entry: Mapping[str, Any]) -> Antecedent | None:
    features = entry.get("features")
    if entry.get("family") != 0 or not isinstance(features, list) or len(features) != 5:
        return None
    who, concept, form, owner, ago = features
    if not (isinstance(who, str) and isinstance(concept, str) and isinstance(form, str) and isinstance(owner, str)):
        return None
    if max(len(concept), len(form), len(owner)) > 40 or who not in ("person", "thing"):
        return None
    if not isinstance(ago, int) or isinstance(ago, bool) or not 0 <= ago < 8:
        return None
    return Antecedent(who, concept, form, owner, ago)


def _mention(one: Antecedent) -> dict[str, Any]:
    return {"family": 0, "features": [one.kind, one.concept, one.form, one.owner, one.ago]}


def _sorted(values: Sequence[Any]) -> tuple[Any, ...]:
    if not values:
        return ()
    return tuple(v for _, v in sorted({canonical(v): v for v in values}.items()))


def _limit(echoed: tuple[Any, ...], path: str) -> None:
    if not echoed:
        return
    if len(echoed) > MOST_ENTRIES:
        raise TooLarge(path, f"{len(echoed)} flags and assignments of the caller", f"at most {MOST_ENTRIES}")
    try:
        size = len(canonical(list(echoed)))
    except (TypeError, ValueError, RecursionError):
        raise WatchError(path, "something that is not JSON", "JSON values") from None
    if size > MOST_BYTES:
        raise TooLarge(path, f"{size} bytes of flags and assignments of the caller", f"at most {MOST_BYTES}")
