"""`/widget.js`: the chat widget, one JavaScript module that any page may load.

It is the same for everybody and holds no secret, so it is open: a page of any origin may load it (module scripts are
fetched with CORS, Fetch 3.2). What a page may then do is for its key to say. Browsers keep it for ten minutes and ask
by its ETag whether it is still the same (RFC 9110, 8.8.3); it is sent packed to whoever takes that. Comments that have
lines of their own are for whoever reads the source, and stay here.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

KEPT = "public, max-age=600, stale-while-revalidate=86400"
_COMMENTS = re.compile(rb"^[ \t]*(?://.*|/\*[\s\S]*?\*/[ \t]*)?\n", re.M)  # and lines with nothing at all

router = APIRouter()


class Script(NamedTuple):
    """A script as it is sent, plain and packed, and a name for what is in it."""

    plain: bytes
    packed: bytes
    etag: str


@cache
def script() -> Script:
    """The widget. It comes with the package, and does not change while a process runs."""
    plain = _COMMENTS.sub(b"", files("nitka.server").joinpath("web", "widget.js").read_bytes())
    return Script(plain, gzip.compress(plain, 9, mtime=0), hashlib.sha256(plain).hexdigest()[:20])


@router.api_route("/widget.js", methods=["GET", "HEAD"], include_in_schema=False)
async def widget(request: Request) -> Response:
    """The chat widget."""
    found = script()
    is_packed = _takes_gzip(request.headers.get("accept-encoding", ""))
    etag = f'"{found.etag}{"-gz" if is_packed else ""}"'  # a strong one names the bytes that are sent
    headers = {
        "ETag": etag,
        "Cache-Control": KEPT,
        "Vary": "Accept-Encoding",
        "Access-Control-Allow-Origin": "*",
        "Cross-Origin-Resource-Policy": "cross-origin",
        "X-Content-Type-Options": "nosniff",
        **({"Content-Encoding": "gzip"} if is_packed else {}),
    }
    if _has(request.headers.get("if-none-match", ""), found.etag):
        return Response(
            status_code=304, headers={name: headers[name] for name in headers if name != "Content-Encoding"}
        )
    data = found.packed if is_packed else found.plain
    return Response(data, headers=headers, media_type="text/javascript")


def _takes_gzip(accepted: str) -> bool:
    """Whether `Accept-Encoding` has gzip, and not with the weight of nothing (RFC 9110, 12.5.3)."""
    for part in accepted.lower().split(","):
        name, _, weight = part.partition(";")
        if name.strip() == "gzip":
            return weight.replace(" ", "").rstrip("0.") != "q="
    return False


def _has(names: str, etag: str) -> bool:
    """Whether `If-None-Match` names this script, packed or not, weakly or not (proxies weaken it)."""
    known = {f'"{etag}"', f'"{etag}-gz"'}
    return any(name.strip().removeprefix("W/") in known for name in names.split(","))
