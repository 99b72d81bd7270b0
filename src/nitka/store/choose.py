"""A store from its URL."""

from __future__ import annotations

from urllib.parse import unquote

from nitka.errors import BadInput
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore

SQLITE = "sqlite:///"


def choose_store(url: str | Store, *, wait: float) -> Store:
    """The store at `url`: "sqlite:///relative.db" or "sqlite:////absolute.db"; a store is given back as it is.

    `wait` is in seconds, for a locked store. Raises `BadInput`, which never repeats the URL: it may hold a password.
    """
    if not isinstance(url, str):
        return url
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        return SqliteStore(unquote(url.removeprefix(SQLITE)), wait=wait)
    raise BadInput("A store is sqlite:///relative.db or sqlite:////absolute.db.")
