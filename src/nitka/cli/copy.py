"""`nitka copy`: moves a store to another place, to grow from one machine to several or to come back."""

from __future__ import annotations

import asyncio
from typing import Annotated

import typer

from nitka.cli.door import Door, paths_of
from nitka.cli.keep import progress
from nitka.store.choose import choose_store
from nitka.store.transfer import Movable, move
from nitka.types import Limits

app = typer.Typer()

KEYS = "the database of the wrapped keys, where it is another than that of the data; only for PostgreSQL."


@app.command()
def copy(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="SRC", help="The store to copy, as --store takes it.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The store to copy to; it must hold nothing.")],
    *,
    source_keys: Annotated[str, typer.Option("--source-keys", metavar="URL", help=f"Of SRC: {KEYS}")] = "",
    target_keys: Annotated[str, typer.Option("--target-keys", metavar="URL", help=f"Of DST: {KEYS}")] = "",
) -> None:
    """Copy a store into an empty one.

    From SQLite to PostgreSQL, back, or to its own kind. Stop what uses it first: what is written meanwhile is not in
    the copy. The root keys stay where they are.
    """
    door: Door = ctx.obj
    old, new = (
        choose_store(url, wait=Limits().wait_seconds, keys=keys)
        for url, keys in ((source, source_keys), (target, target_keys))
    )
    if not all(path.exists() for path in paths_of(old)[:1]):
        door.stop(door.texts.no_store)
    assert isinstance(old, Movable) and isinstance(new, Movable)  # those that have a URL are
    with progress(door, door.texts.copying) as report:
        count = asyncio.run(move(old, new, progress=lambda done: report(done, None)))
    door.say(door.texts.copied.format(count=count))
