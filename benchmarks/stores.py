"""New stores for a run, gone with it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.contract.cluster import FAST, binaries, new_cluster

KINDS = ("sqlite", "postgres")


@contextmanager
def new_store(kind: str, folder: Path, *, durable: bool = True) -> Iterator[str]:
    """The URL of a new, empty store. PostgreSQL is a private server; without `durable` it lies in memory and does not
    wait for any disk.
    """
    if kind == "sqlite":
        yield f"sqlite:///{folder}/nitka.db"
        return
    found = binaries()
    assert found is not None, "no PostgreSQL server is installed"
    with new_cluster(found, Path(tempfile.gettempdir()) if durable else None) as cluster:
        cluster.init()
        cluster.start(**({} if durable else FAST))
        yield cluster.url()
