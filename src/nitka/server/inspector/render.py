"""Pages: templates that escape whatever they are given, words in two languages, and headers that let nothing else run.

The policy (Content Security Policy Level 3) allows our own style sheet and our own module and nothing inline; nobody
frames the pages, nobody caches them, and no other site is told where one was.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi.responses import HTMLResponse, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

HERE = Path(__file__).parent
LANGUAGES = ("en", "ru")
ASSETS: Mapping[str, str] = {
    "inspector.css": "text/css; charset=utf-8",
    "inspector.js": "text/javascript; charset=utf-8",
    "inspector.svg": "image/svg+xml",
    "demo.css": "text/css; charset=utf-8",
    "demo.js": "text/javascript; charset=utf-8",
}
NOBODY, OURSELVES = "'none'", "'self'"  # who may frame a page
CLIPPED = 600  # characters of a message in a list

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors {frames}"
)
_CACHED = "public, max-age=31536000, immutable"  # their address has a hash of what they are


def page(
    template: str, language: str, values: Mapping[str, Any], *, status: int = 200, frames: str = NOBODY
) -> HTMLResponse:
    """A page in a language."""
    text = _environment().get_template(template).render(t=words(language), lang=language, **_help(language), **values)
    return HTMLResponse(text, status_code=status, headers=headers(frames))


def headers(frames: str = NOBODY) -> dict[str, str]:
    """What every page is sent with."""
    return {
        "Content-Security-Policy": _POLICY.format(frames=frames),
        "X-Frame-Options": "DENY" if frames == NOBODY else "SAMEORIGIN",
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }


def asset(name: str) -> Response:
    """The style sheet or the module."""
    kept = {
        "Cache-Control": _CACHED,
        "X-Content-Type-Options": "nosniff",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
    return Response(_asset(name), media_type=ASSETS[name], headers=kept)


@cache
def _asset(name: str) -> bytes:
    return (HERE / "assets" / name).read_bytes()


@cache
def words(language: str) -> Mapping[str, Any]:
    """All texts of a language."""
    return tomllib.loads((HERE / "words" / f"{language}.toml").read_text(encoding="utf-8"))


def language_of(accepted: str) -> str:
    """The language that an Accept-Language header (RFC 9110, 12.5.4) likes best among ours."""
    best, liked = LANGUAGES[0], 0.0
    for part in accepted.split(","):
        name, _, quality = part.partition(";")
        code = name.strip().lower().split("-")[0]
        weight = _weight(quality)
        if code in LANGUAGES and weight > liked:
            best, liked = code, weight
    return best


def _weight(quality: str) -> float:
    text = quality.strip().removeprefix("q=")
    try:
        return float(text) if text else 1.0
    except ValueError:
        return 0.0


@cache
def _environment() -> Environment:
    found = Environment(
        loader=FileSystemLoader(HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters |= {"clip": clip, "json": _json, "units": lambda value: f"{value:.2f}"}
    found.globals |= {"asset": _address}
    return found


def _address(name: str) -> str:
    return f"/inspector/assets/{name}?v={hashlib.sha256(_asset(name)).hexdigest()[:12]}"


def _help(language: str) -> dict[str, Any]:
    """How numbers and times are written."""
    return {
        "number": lambda value: number(value, language),
        "percent": lambda part, whole: percent(part, whole, language),
        "moment": moment,
        "span": span,
        "counted": lambda value, forms: f"{number(value, language)} {forms[_form(value, language)]}",
    }


def number(value: int, language: str) -> str:
    """A number with its thousands apart."""
    return f"{value:,}".replace(",", "," if language == "en" else "\N{NO-BREAK SPACE}")


def percent(part: int, whole: int, language: str) -> str:
    """A share with one place after the point, or after the comma, and a space that does not break."""
    share = f"{100 * part / whole:.1f}"
    return f"{share}%" if language == "en" else f"{share.replace('.', ',')}\N{NO-BREAK SPACE}%"


def moment(at: datetime | None) -> str:
    """A time to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC" if at is not None else "–"


def span(first: datetime, last: datetime | None) -> str:
    """From one time to another, as short as that can be said."""
    begin, end = moment(first), moment(last or first)
    if begin == end:
        return begin
    day = len("2026-05-04 ")
    return f"{begin.removesuffix(' UTC')} – {end[day:] if begin[:day] == end[:day] else end}"


def _form(count: int, language: str) -> int:
    """Which of the forms of a noun goes with a number: English has two, Russian three."""
    if language == "en":
        return int(count != 1)
    if count % 10 == 1 and count % 100 != 11:
        return 0
    return 1 if 2 <= count % 10 <= 4 and not 12 <= count % 100 <= 14 else 2


def clip(text: str, most: int = CLIPPED) -> str:
    """The beginning of a text, and a mark where more follows."""
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


def _json(value: object) -> str:
    """A value as indented JSON, to be looked at."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def pages_of(count: int, size: int) -> int:
    """How many pages so many things take, one at least."""
    return max(1, -(-count // size))


def spread(values: Sequence[Any], page: int, size: int) -> Sequence[Any]:
    """The things of one page, counted from 1."""
    return values[(page - 1) * size : page * size]
