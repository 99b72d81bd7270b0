"""The settings of a request: what is served, what is accepted and ignored, and what is refused with its path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from nitka.watch.engine import Who, who
from nitka.watch.errors import WatchError, kind
from nitka.watch.types import ROLES

FORMATS = ("review", "dialogue", "shortpost", "longform", "proofread", "alias", "search")
SWITCHES = {
    "state": False,
    "abuse": True,
    "entities": True,
    "snippets": False,
    "explain": False,
    "words": False,
    "parses": False,
}
DEFAULTS_NOT_SERVED = ("sentiment", "topics")
SERVED = {
    *SWITCHES,
    "memory",
    "format",
    "offset",
    "sentence_index",
    "speaker",
    "message_id",
    "region",
    "offset_unit",
    "explanation_language",
}


class Settings(NamedTuple):
    """One request's settings, checked."""

    state: bool = False
    abuse: bool = True
    entities: bool = True
    snippets: bool = False
    explain: bool = False
    sentences: bool = False
    explanation_language: str = "en"
    offset: int = 0
    sentence_index: int = 0
    speaker: Who = Who()
    message_id: str = ""
    region: str = ""
    utf16: bool = False
    memory: object = None
    ignored: tuple[str, ...] = DEFAULTS_NOT_SERVED

    @property
    def named(self) -> bool:
        """Whether anybody asks what the message names: to list it, or for the findings that come of it."""
        return self.entities or self.abuse


NOBODY = Who()
OLDEST = 129
MOST_COUNT = (1 << 53) - 1  # what every client's numbers hold
_OF_SPEAKER = {"id", "age", "role"}
_USUAL = {"state", "memory", "speaker"}  # what nearly every request holds, and no more


def read(value: object, path: str = "settings") -> Settings:
    """Check the settings. Raises `WatchError` naming path, kind found and what is allowed."""
    if value is None:
        value = {}
    if not isinstance(value, (dict, Mapping)):  # asking a class costs a tenth of asking a protocol
        raise WatchError(path, kind(value), "an object")
    if value.keys() <= _USUAL:
        state = "state" in value and _switch(value, "state", path)
        told = value.get("speaker")
        speaker = NOBODY if told is None else _speaker(told, f"{path}.speaker")
        return Settings(state=state, speaker=speaker, memory=value.get("memory"))
    on = SWITCHES | {name: _switch(value, name, path) for name in value if name in SWITCHES}
    _choice(value, "format", FORMATS, path)
    return Settings(
        state=on["state"],
        abuse=on["abuse"],
        entities=on["entities"],
        snippets=on["snippets"],
        explain=on["explain"],
        sentences=on["words"] or on["parses"],
        explanation_language=_choice(value, "explanation_language", ("en", "ru"), path) or "en",
        offset=_count(value, "offset", path),
        sentence_index=_count(value, "sentence_index", path),
        speaker=_speaker(value.get("speaker"), f"{path}.speaker"),
        message_id=_string(value, "message_id", path),
        region=_string(value, "region", path).upper(),
        utf16=_choice(value, "offset_unit", ("code_points", "utf16"), path) == "utf16",
        memory=value.get("memory"),
        ignored=_ignored(value),
    )


def _ignored(value: Mapping[str, Any]) -> tuple[str, ...]:
    if value.keys() <= SERVED:
        return DEFAULTS_NOT_SERVED
    defaults = [name for name in DEFAULTS_NOT_SERVED if value.get(name, True) is not False]
    others = sorted(str(name)[:64] for name in value if name not in SERVED and name not in DEFAULTS_NOT_SERVED)
    return (*defaults, *others)


def _switch(value: Mapping[str, Any], name: str, path: str) -> bool:
    found = value[name]
    if not isinstance(found, bool):
        raise WatchError(f"{path}.{name}", kind(found), "true or false")
    return found


def _choice(value: Mapping[str, Any], name: str, allowed: tuple[str, ...], path: str) -> str:
    found = value.get(name)
    if found is None:
        return ""
    if found not in allowed:
        raise WatchError(f"{path}.{name}", kind(found), " ".join(allowed))
    return str(found)


def _count(value: Mapping[str, Any], name: str, path: str) -> int:
    found = value.get(name, 0)
    if isinstance(found, bool) or not isinstance(found, int) or not 0 <= found <= MOST_COUNT:
        raise WatchError(f"{path}.{name}", kind(found), f"a whole number from 0 to {MOST_COUNT}")
    return found


def _string(value: Mapping[str, Any], name: str, path: str) -> str:
    found = value.get(name)
    if found is None:
        return ""
    if not isinstance(found, str) or len(found) > 512:
        raise WatchError(f"{path}.{name}", kind(found), "a string of at most 512 characters")
    return found


def _speaker(value: object, path: str) -> Who:
    if value is None:
        return NOBODY
    if isinstance(value, str):
        if len(value) > 512:
            raise WatchError(f"{path}.id", kind(value), "a string of at most 512 characters")
        return who(value)
    if not isinstance(value, Mapping):
        raise WatchError(path, kind(value), 'a string or {"id", "age", "role"}')
    if not value.keys() <= _OF_SPEAKER:
        raise WatchError(path, "an unknown key", " ".join(sorted(_OF_SPEAKER)))
    identity = _string(value, "id", path)
    age, role = value.get("age"), value.get("role") or ""
    if age is not None and (isinstance(age, bool) or not isinstance(age, int) or not 0 <= age <= OLDEST):
        raise WatchError(f"{path}.age", kind(age), f"a whole number of years from 0 to {OLDEST}")
    if role not in ROLES:
        raise WatchError(f"{path}.role", kind(role), " ".join(ROLES).strip())
    return who(identity, age=age, role=role)
