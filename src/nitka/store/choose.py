"""A store from its URL."""

from __future__ import annotations

import os
from urllib.parse import unquote_to_bytes

from nitka.errors import BadInput
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore

SQLITE = "sqlite:///"


def choose_store(url: str | Store, *, wait: float) -> Store:
    """The store at `url`: "sqlite:///relative.db" or "sqlite:////absolute.db"; a store is given back as it is.

    The path may be percent-encoded, and has to be where it holds a percent sign.

    `wait` is in seconds, for a locked store. Raises `BadInput`, which never repeats the URL: it may hold a password.
    """
    if not isinstance(url, str):
        return url
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        path = os.fsdecode(unquote_to_bytes(os.fsencode(url.removeprefix(SQLITE))))
        if "\0" in path:
            raise BadInput("A path holds no NUL.")
        return SqliteStore(path, wait=wait)
    raise BadInput("A store is sqlite:///relative.db or sqlite:////absolute.db.")
