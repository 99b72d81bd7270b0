"""`parse`, `merge`, and the same in JSON (the wire contract of Tisane's `/parse`).

`parse` is a function: same text, settings and memory, same result, in any process. It is total: any string, lone
surrogates and NUL included, gives a result; only malformed settings or memory raise `WatchError`.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from nitka.watch import assign, engine, memory, settings, wire_memory
from nitka.watch.data import default
from nitka.watch.engine import Noticed, Watch
from nitka.watch.entities import entities
from nitka.watch.errors import TooLarge, WatchError, kind
from nitka.watch.explain import explain
from nitka.watch.normalise import utf16_at
from nitka.watch.settings import Settings
from nitka.watch.types import Alert, Entity, Finding

MOST_CONTENT = 1 << 20  # code points of one message over the wire
NEAREST = {  # our tags -> the nearest that other clients know
    "extortion_risk": "extortion",
    "money_laundering": "payment",
    "phishing": "credentials",
    "hacking": "credentials",
    "pressure": "threat",
    "overpayment": "payment",
    "advance_fee": "payment",
}


class Result(NamedTuple):
    """What one message gave. `alerts` come from combinations, `findings` from this message alone; `flags` are what it
    showed.
    """

    text: str
    language: str
    alerts: tuple[Alert, ...]
    findings: tuple[Finding, ...]
    entities: tuple[Entity, ...]
    sentences: tuple[tuple[int, int], ...]  # code points [from, to) of each
    flags: tuple[str, ...]
    explanations: tuple[str, ...]  # of the alerts, in order
    rules: str
    ignored_settings: tuple[str, ...]


class Parsed(NamedTuple):
    """A result and the memory for the next message, as JSON values."""

    result: Result
    memory: dict[str, Any]


def parse(
    text: str,
    *,
    language: str = "*",
    settings: Mapping[str, Any] | None = None,
    memory: Mapping[str, Any] | None = None,
    watch: Watch | None = None,
) -> Parsed:
    """Read one message with the memory of those before it.

    `language` is a code, several joined by `|`, or `*`. `memory` is what the last call returned, possibly edited; it
    goes before `settings["memory"]`. `watch` is a rule set made by `load`, the packaged one if absent. Raises
    `WatchError`.
    """
    watch = watch or default()
    if not isinstance(text, str):
        raise WatchError("text", kind(text), "a string")
    return _parse(watch, text, codes_of(language, watch), _settings(settings), memory, whole=True)


def _settings(value: object) -> Settings:
    return settings.read(value)


def _parse(watch: Watch, text: str, codes: tuple[str, ...], wanted: Settings, given: object, *, whole: bool) -> Parsed:
    before = wire_memory.load(wanted.memory if given is None else given, watch.kinds)
    noticed = engine.step(watch, text, codes, before, wanted.speaker, message_id=wanted.message_id, whole=whole)
    ignored = (*wanted.ignored, *assign.unknown(before.assign, watch.parents))
    dumped = wire_memory.dump(noticed.memory, watch.kinds)
    if noticed.seen is None and not noticed.alerts:
        quiet = Result(text, noticed.language, (), (), (), (), (), (), watch.version, ignored)
        return Parsed(quiet, dumped)
    return Parsed(_result(watch, text, noticed, wanted, ignored), dumped)


def _result(watch: Watch, text: str, noticed: Noticed, wanted: Settings, ignored: tuple[str, ...]) -> Result:
    region = wanted.region or ("RU" if noticed.language == "ru" else "")
    seen = noticed.seen
    named = entities(text, seen.reading, seen.sentences, region, plain=seen.plain) if seen and wanted.named else ()
    spans = [(a.start, a.end) for a in noticed.alerts] + [(e.start, e.end) for e in named]
    return Result(
        text=text,
        language=noticed.language,
        alerts=noticed.alerts,
        findings=_findings(watch, noticed, named) if noticed.sightings or named else (),
        entities=named,
        sentences=_covering([s.place for s in seen.sentences] if seen else [], spans, len(text)),
        flags=tuple(dict.fromkeys(s.flag for s in noticed.sightings)),
        explanations=tuple([explain(a, watch.kinds, wanted.explanation_language) for a in noticed.alerts]),
        rules=watch.version,
        ignored_settings=ignored,
    )


def codes_of(language: object, watch: Watch) -> tuple[str, ...]:
    """The lexicons that a language setting names. Raises `WatchError` with the list of those there are."""
    known = watch.codes.get(language) if isinstance(language, str) else None
    if known:
        return known
    have = tuple(watch.languages)
    if not isinstance(language, str):
        raise WatchError("language", kind(language), f"{' '.join(have)}, several joined by |, or *")
    if language == "*":
        return have
    codes = tuple(sorted({code.strip().lower() for code in language.split("|")}))
    if not set(codes) <= set(have):
        raise WatchError("language", "a language without a lexicon", f"{' '.join(have)}, several joined by |, or *")
    if len(watch.codes) < 64:
        watch.codes[language] = codes
    return codes


def _findings(watch: Watch, noticed: Noticed, named: Sequence[Entity]) -> tuple[Finding, ...]:
    found = [
        Finding(watch.kinds[s.flag].alone, "low", (), s.start, s.end, s.flag)
        for s in noticed.sightings
        if watch.kinds[s.flag].alone
    ]
    secret = ("credit_card", "bank_account")
    found += [Finding("data_leak", "low", ("pii", "payment"), e.start, e.end) for e in named if e.type[0] in secret]
    return tuple(found)


def _covering(
    places: Sequence[tuple[int, int]], spans: Sequence[tuple[int, int]], length: int
) -> tuple[tuple[int, int], ...]:
    """Sentences such that every span lies within one: neighbours that a span joins become one sentence."""
    if not places:
        return ((0, length),) if spans else ()
    starts = [start for start, _ in places]
    joined = [False] * len(places)
    reach = [list(place) for place in places]
    for start, end in spans:
        first = max(0, bisect_right(starts, start) - 1)
        last = max(first, bisect_right(starts, max(start, end - 1)) - 1)
        joined[first + 1 : last + 1] = [True] * (last - first)
        reach[first][0], reach[last][1] = min(reach[first][0], start), max(reach[last][1], end)
    merged: list[tuple[int, int]] = []
    for index, (start, end) in enumerate(reach):
        if joined[index]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def merge(memories: Iterable[Mapping[str, Any] | None], *, watch: Watch | None = None) -> dict[str, Any]:
    """Join memories of one target, for instance of several callers: the older first sighting and the younger last one
    of each flag.

    Associative, commutative and idempotent. Raises `WatchError` with the index of a malformed memory.
    """
    watch = watch or default()
    if isinstance(memories, (str, bytes, Mapping)) or not isinstance(memories, Iterable):
        raise WatchError("memories", kind(memories), "a list of memories")
    read = [wire_memory.load(m, watch.kinds, f"memories[{i}]") for i, m in enumerate(memories)]
    return wire_memory.dump(memory.join(read, watch.kinds), watch.kinds)


# JSON.


def parse_json(body: Mapping[str, Any], *, watch: Watch | None = None) -> dict[str, Any]:
    """Answer a `/parse` request. Raises `WatchError`; `error_json` makes its body."""
    watch = watch or default()
    if not isinstance(body, (dict, Mapping)):
        raise WatchError("body", kind(body), "an object")
    content = body.get("content")
    if not isinstance(content, str):
        raise WatchError("content", kind(content), "a string")
    if len(content) > MOST_CONTENT:
        raise TooLarge("content", f"{len(content)} characters", f"at most {MOST_CONTENT}")
    wanted = settings.read(body.get("settings"))
    parsed = _parse(watch, content, codes_of(body.get("language", "*"), watch), wanted, None, whole=wanted.sentences)
    return _response(parsed, wanted)


def _response(parsed: Parsed, wanted: Settings) -> dict[str, Any]:
    result = parsed.result
    answer: dict[str, Any] = {"text": result.text}
    if result.language:
        answer["language"] = result.language
    if result.sentences or wanted.sentences:
        answer |= _sections(result, wanted)
    if wanted.state:
        answer["memory"] = parsed.memory
    answer["rules"] = result.rules
    answer["ignored_settings"] = list(result.ignored_settings)
    return answer


def _sections(result: Result, wanted: Settings) -> dict[str, Any]:
    """What points at places in the text; a text without sentences has none."""
    places = _Places(result, wanted)
    answer: dict[str, Any] = {}
    if wanted.abuse and (result.alerts or result.findings):
        answer["abuse"] = [
            *(_alert(a, why, places, wanted) for a, why in zip(result.alerts, result.explanations, strict=True)),
            *(_finding(f, places, wanted) for f in result.findings),
        ]
    if wanted.entities and result.entities:
        answer["entities_summary"] = [_entity(e, places, wanted) for e in result.entities]
    if wanted.sentences:
        answer["sentence_list"] = places.sentence_list()
    return answer


class _Places:
    """Offsets as the contract has them: relative to the sentence, in the unit asked for."""

    def __init__(self, result: Result, wanted: Settings) -> None:
        self.text, self.sentences, self.wanted = result.text, result.sentences, wanted
        self.units = utf16_at(result.text) if wanted.utf16 else None
        self.starts = [start for start, _ in result.sentences]

    def unit(self, place: int) -> int:
        return place if self.units is None else self.units[place]

    def place(self, start: int, end: int) -> dict[str, int]:
        index = max(0, bisect_right(self.starts, start) - 1)
        base = self.unit(self.starts[index]) if self.starts else 0
        return {
            "offset": self.unit(start) - base,
            "length": self.unit(end) - self.unit(start),
            "sentence_index": index + self.wanted.sentence_index,
            "absolute_offset": self.unit(start) + self.wanted.offset,
        }

    def sentence_list(self) -> list[dict[str, Any]]:
        return [
            {
                "index": index + self.wanted.sentence_index,
                "offset": self.unit(start) + self.wanted.offset,
                "length": self.unit(end) - self.unit(start),
                "text": self.text[start:end],
            }
            for index, (start, end) in enumerate(self.sentences)
        ]


def _alert(alert: Alert, why: str, places: _Places, wanted: Settings) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": alert.type, "severity": alert.severity} | places.place(alert.start, alert.end)
    entry["tags"] = list(dict.fromkeys([*alert.tags, *(NEAREST[tag] for tag in alert.tags if tag in NEAREST)]))
    entry["rule"] = alert.rule
    if alert.speaker:
        entry["speaker"] = alert.speaker
    entry["evidence"] = [
        {"flag": e.flag, "messages_ago": e.messages_ago} | ({"speaker": e.speaker} if e.speaker else {})
        for e in alert.evidence
    ]
    if alert.replayed:
        entry["replayed"] = True
    if wanted.snippets:
        entry["text"] = places.text[alert.start : alert.end]
    if wanted.explain:
        entry["explanation"] = why
    return entry


def _finding(found: Finding, places: _Places, wanted: Settings) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": found.type, "severity": found.severity} | places.place(found.start, found.end)
    entry["tags"] = list(found.tags)
    if wanted.snippets:
        entry["text"] = places.text[found.start : found.end]
    if wanted.explain:
        entry["explanation"] = found.flag or found.type
    return entry


def _entity(one: Entity, places: _Places, wanted: Settings) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": one.type[0] if len(one.type) == 1 else list(one.type), "name": one.name}
    if one.subtypes:
        entry["subtype"], entry["subtypes"] = one.subtypes[0], list(one.subtypes)
    entry["mentions"] = [places.place(one.start, one.end)]
    if wanted.snippets:
        entry["mentions"][0]["text"] = places.text[one.start : one.end]
    return entry


def merge_json(body: Mapping[str, Any], *, watch: Watch | None = None) -> dict[str, Any]:
    """Answer `/memory/merge`: `{"memories": [...]}` in, `{"memory": {...}}` out."""
    if not isinstance(body, Mapping):
        raise WatchError("body", kind(body), 'an object {"memories": [...]}')
    if not isinstance(body.get("memories"), list):
        raise WatchError("memories", kind(body.get("memories")), "an array of memories")
    return {"memory": merge(body["memories"], watch=watch)}


def error_json(error: WatchError) -> dict[str, Any]:
    """Tisane's error body. It never quotes a value."""
    return {"statusCode": error.status, "message": str(error)}


NAMES = {
    "en": ("English", "English"),
    "ru": ("Russian", "русский"),
    "es": ("Spanish", "español"),
    "de": ("German", "Deutsch"),
    "fr": ("French", "français"),
}


def languages(*, watch: Watch | None = None) -> list[dict[str, Any]]:
    """The languages there are lexicons for, in the form of Tisane's `/languages`."""
    found = []
    for number, code in enumerate((watch or default()).languages, 1):
        english, native = NAMES.get(code, (code, code))
        found.append({"id": number, "isoCode": code, "englishName": english, "nativeName": native})
    return found
