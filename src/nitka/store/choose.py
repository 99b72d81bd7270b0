"""A store from its URL."""

from __future__ import annotations

import os
from importlib import import_module
from urllib.parse import unquote_to_bytes

from nitka.errors import BadInput
from nitka.store.port import Store
from nitka.store.sqlite import SqliteStore

SQLITE = "sqlite:///"
POSTGRES = ("postgresql://", "postgres://")
CONNECTIONS = 10  # of one process to PostgreSQL for the data, and as many for the keys


def choose_store(url: str | Store, *, wait: float, keys: str = "", size: int = CONNECTIONS) -> Store:
    """The store at `url`: "sqlite:///relative.db", "sqlite:////absolute.db" or "postgresql://user@host/database"; a
    store is given back as it is.

    The path of a file may be percent-encoded, and has to be where it holds a percent sign. With PostgreSQL, `keys` is
    the URL of the database for the wrapped keys, by default the same, and `size` the number of connections. Several
    hosts, "postgresql://one,two/database", are a primary and its standbys, in any order.

    `wait` is in seconds, for a locked store. Raises `BadInput`, which never repeats the URL: it may hold a password.
    """
    if not isinstance(url, str):
        return url
    if url.startswith(SQLITE) and len(url) > len(SQLITE):
        path = os.fsdecode(unquote_to_bytes(os.fsencode(url.removeprefix(SQLITE))))
        if "\0" in path:
            raise BadInput("A path holds no NUL.")
        return SqliteStore(path, wait=wait)
    if url.startswith(POSTGRES):
        return _postgres(url, keys, wait, size)
    raise BadInput("A store is sqlite:///relative.db, sqlite:////absolute.db or postgresql://user@host/database.")


def _postgres(url: str, keys: str, wait: float, size: int) -> Store:
    """Loaded only where it is wanted: its driver is an extra. Raises `BadInput` where that is not installed."""
    try:
        module = import_module("nitka.store.postgres")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("psycopg", "psycopg_pool"):
            raise
        raise BadInput('PostgreSQL needs an extra: pip install "nitka[postgres]".') from error
    store: Store = module.PostgresStore(url, keys_url=keys, wait=wait, size=size)
    return store
