"""What callers hand in, made safe or refused before anything else sees it. Pure.

Texts: NUL and lone surrogates become U+FFFD (two surrogates that make a character become that character); blank
ones and ones over the limit are refused. Ids are opaque and never repaired; `vault.keychain.id_bytes` refuses those
that cannot be used. Times are aware.
"""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

from nitka.errors import BadInput, BadText
from nitka.types import Handle, Person, User

YEARS = range(1000, 9000)
"""In which the time of a turn may lie."""

OFFSET = re.compile(r"([+-])([0-9]{2}):([0-5][0-9])")


def clean_text(text: object, *, limit: int, what: str) -> str:
    """The text as it may be kept. `limit` is in bytes of UTF-8. Raises `BadText`, naming `what` and never the text."""
    if not isinstance(text, str):
        raise BadText(f"The {what} is a {type(text).__name__}, not a string.")
    clean = sound(text)
    size = len(clean.encode("utf-8"))
    if size > limit:
        raise BadText(f"The {what} has {size:,} bytes; the limit is {limit:,}.")
    if is_blank(clean):
        raise BadText(f"The {what} is blank.")
    return clean


def sound(text: str) -> str:
    """The text with NUL and lone surrogates replaced by U+FFFD; two surrogates that make a character become it."""
    if not text.isascii() and _has_surrogates(text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text.replace("\0", "\ufffd")


def cut(text: str, limit: int) -> str:
    """The beginning of the text that has at most `limit` bytes of UTF-8, whole characters only."""
    data = sound(text).encode("utf-8")
    return data[:limit].decode("utf-8", "ignore")


def is_blank(text: str) -> bool:
    """Nothing to be seen: white space, control and format characters only."""
    if text[:1].isalnum():  # nearly every text
        return False
    return not text.strip() or all(c.isspace() or unicodedata.category(c) in ("Cc", "Cf") for c in text)


def _has_surrogates(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return True
    return False


def as_user(user: object) -> Person:
    """Whom a caller means: by a string, a `User`, or a `Handle`. Raises `BadInput`."""
    if isinstance(user, str):
        return User(user)
    if isinstance(user, User | Handle):
        return user
    raise BadInput(f"A user is a string, a User or a Handle, not a {type(user).__name__}.")


def as_moment(at: datetime | None, now: datetime) -> datetime:
    """The time a turn happened, in UTC. Raises `BadInput` for what is no time, has no zone, or lies in no year of
    `YEARS`: beside a conversation's time there must be room for what is said in it ("tomorrow", "in twenty years").
    """
    if at is None:
        return now
    if not isinstance(at, datetime):
        raise BadInput(f"A time is an aware datetime, not a {type(at).__name__}.")
    if at.tzinfo is None or at.utcoffset() is None:
        raise BadInput("The time has no zone; pass an aware datetime.")
    if at.year not in YEARS:
        raise BadInput(f"The time lies beyond the years {YEARS[0]} to {YEARS[-1]}.")
    return at.astimezone(UTC)


def as_text(value: object, what: str) -> str:
    """A string that names or asks something. Raises `BadInput` for anything else."""
    if not isinstance(value, str):
        raise BadInput(f"The {what} is a string, not a {type(value).__name__}.")
    return value


def as_count(value: object, what: str) -> int:
    """A whole number from 1. Raises `BadInput` for anything else."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise BadInput(f"The {what} is a whole number from 1.")
    return value


def as_zone(zone: str, at: datetime | None) -> str:
    """The speaker's zone: an IANA name or an offset like "+03:00"; by default that of `at`. Raises `BadInput`."""
    if not zone:
        offset = at.utcoffset() if at is not None else None
        return _offset_name(offset) if offset else ""
    if zone_of(zone) is None:
        raise BadInput("The zone is neither an IANA name such as Europe/Moscow nor an offset such as +03:00.")
    return zone


def zone_of(zone: str) -> timezone | ZoneInfo | None:
    """The zone of that name, or None where there is no such zone."""
    try:
        found = OFFSET.fullmatch(zone)
        if found is None:
            return ZoneInfo(zone)
        offset = timedelta(hours=int(found[2]), minutes=int(found[3]))
        return timezone(offset if found[1] == "+" else -offset)
    except (ValueError, KeyError, OSError):
        return None


def _offset_name(offset: timedelta) -> str:
    minutes = int(offset.total_seconds() // 60)
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02}:{abs(minutes) % 60:02}"
