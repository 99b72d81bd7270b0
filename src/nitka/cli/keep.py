"""`nitka settle`, `nitka keys` and `nitka backup`: what keeps a store in order."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from nitka.cli.door import Door, ModelName, ModelTimeout, StoreUrl, paths_of
from nitka.config import Settings
from nitka.store.port import RootRow, Store
from nitka.store.sqlite_copy import copy
from nitka.types import Limits
from nitka.vault.keychain import Keychain
from nitka.vault.roots import KeyRing, Ring
from nitka.vault.rotate import Rotated
from nitka.vault.rotate import rotate as rotate_roots

app = typer.Typer()
keys = typer.Typer(help="Root keys, and the API keys of the server.", no_args_is_help=True)


@app.command()
def settle(
    ctx: typer.Context,
    *,
    user: Annotated[str | None, typer.Option("--user", metavar="ID", help="Only what is due for this user.")] = None,
    rescan: Annotated[
        bool, typer.Option("--rescan", help="First rebuild the list of due work from the conversations themselves.")
    ] = False,
    retain_days: Annotated[
        float | None,
        typer.Option("--retain-days", metavar="DAYS", min=1, help="Also forget turns that are older, for good."),
    ] = None,
    retain_facts_days: Annotated[
        float | None,
        typer.Option(
            "--retain-facts-days", metavar="DAYS", min=1, help="Also forget facts that nobody has confirmed since."
        ),
    ] = None,
    store: StoreUrl = None,
    model: ModelName = None,
    timeout: ModelTimeout = None,
) -> None:
    """Do what is due now.

    Brings summaries, facts, profiles and what is found again up to date, and finishes erasures.
    """
    door: Door = ctx.obj
    settings = door.settings(store, timeout=timeout)
    limits = Limits(retain_days=retain_days, retain_facts_days=retain_facts_days)
    with door.opened(settings, model=model or settings.model, limits=limits) as nitka, _busy(door, door.texts.settling):
        done = nitka.settle(user, rescan=rescan)
    counts = {"folds": done.folds, "messages": done.messages, "mended": done.mended, "erased": done.erased}
    door.say(door.texts.settled.format(**counts))
    if retain_days is not None or retain_facts_days is not None:
        door.say(door.texts.expired.format(messages=done.expired, facts=done.expired_facts))
    if done.failed:
        door.tell(door.texts.settle_failed.format(failed=done.failed))
        raise typer.Exit(1)
    if done.left:
        door.tell(door.texts.settle_left.format(left=done.left))


@keys.command()
def rotate(
    ctx: typer.Context,
    retire_old: Annotated[
        bool, typer.Option("--retire-old", help="Throw the old root keys away: older copies no longer open.")
    ] = False,
    store: StoreUrl = None,
) -> None:
    """Wrap all keys with a new root key.

    Cut off in between, run it again. Keys that do not open are left, counted and told.
    """
    door: Door = ctx.obj
    settings = door.settings(store)
    files = door.files(settings)
    ring = ring_of(settings)
    with progress(door, door.texts.rotating) as report:
        done = asyncio.run(_rotate(files, ring, retire_old=retire_old, report=lambda count: report(count, None)))
    texts = door.texts
    door.say(texts.rotated.format(root=done.active.hex(), count=done.rewrapped))
    if gone := [root for root in done.retired if root not in done.kept]:
        door.say(texts.retired.format(roots=_ids(gone)))
    if done.kept:
        door.say(texts.retired_kept.format(roots=_ids(done.kept), path=settings.key_file))
    if done.in_environment:
        door.say(texts.retired_environment)
    if not done.complete:
        door.say(texts.pending)
    if done.damaged:
        door.stop(texts.rotated_damaged.format(count=done.damaged, roots=_ids(done.needed)))


async def _rotate(files: Store, ring: KeyRing, *, retire_old: bool, report: Callable[[int], None]) -> Rotated:
    await files.start()
    try:
        keychain = Keychain(files.keys, ring, Limits())
        await keychain.prepare()
        return await rotate_roots(keychain, ring, retire_old=retire_old, progress=report)
    finally:
        await files.close()


def _ids(roots: Iterable[bytes]) -> str:
    return ", ".join(root.hex() for root in roots)


@keys.command()
def show(ctx: typer.Context, store: StoreUrl = None) -> None:
    """List the root keys by their ids.

    The keys themselves are never shown.
    """
    door: Door = ctx.obj
    settings = door.settings(store)
    ring = ring_of(settings)
    rows = asyncio.run(_roots(door.files(settings), ring))
    for row in rows:
        state = door.texts.key_active if row.active else door.texts.key_kept
        known = "" if row.root in ring.ring.roots else f", {door.texts.key_elsewhere}"
        door.say(f"{row.root.hex()}  {state}{known}")


async def _roots(files: Store, ring: KeyRing) -> list[RootRow]:
    await files.start()
    try:
        await Keychain(files.keys, ring, Limits()).prepare()
        return list(await files.keys.roots())
    finally:
        await files.close()


def ring_of(settings: Settings) -> KeyRing:
    """The root keys that the settings name."""
    if settings.root_keys:
        return KeyRing(Ring.from_text(settings.root_keys))
    return KeyRing(None, path=settings.key_file)


@app.command()
def backup(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Where to; it is made if it is not there.")],
    store: StoreUrl = None,
) -> None:
    """Copy the store, also while it is at work.

    The root keys are not in the copy.
    """
    door: Door = ctx.obj
    settings = door.settings(store)
    paths = paths_of(door.files(settings))
    if not paths:
        door.stop(door.texts.backup_elsewhere)
    with progress(door, door.texts.backing_up) as report:
        copies = copy(map(str, paths), folder, progress=report)
    url = f"sqlite:///{quote(str(copies[0].resolve()))}"
    door.say(door.texts.backed_up.format(path=folder, files=", ".join(path.name for path in copies), url=url))
    texts = door.texts
    door.say(texts.backup_environment if settings.root_keys else texts.backup_keys.format(path=settings.key_file))


@contextmanager
def _busy(door: Door, text: str) -> Iterator[None]:
    """Says on a terminal that something takes its time."""
    if door.err.is_terminal:
        with door.err.status(text):
            yield
    else:
        yield


@contextmanager
def progress(door: Door, text: str) -> Iterator[Callable[[int, int | None], None]]:
    """A bar on a terminal; gives what is told (done, in all)."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn  # only here: it is slow to load

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.completed:,}"))
    with Progress(*columns, console=door.err, disable=not door.err.is_terminal, transient=True) as shown:
        task = shown.add_task(text, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
