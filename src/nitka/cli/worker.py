"""`nitka worker`: does what is due, apart from the processes that answer.

A store that cannot be used when it starts is told and ends it, as with every command. One that goes away later is
waited for, with longer and longer breaks, and once a minute it is said that it is away; nothing is lost, since what is
due stands in the store.
"""

from __future__ import annotations

import logging
import time
from dataclasses import replace
from typing import Annotated, NoReturn

import typer

from nitka import sync
from nitka.cli.chat import leaving_properly
from nitka.cli.door import Door, FoldModel, ModelName, ModelTimeout, StoreUrl
from nitka.errors import StoreBusy, StoreError
from nitka.types import Limits
from nitka.world import monotonic

app = typer.Typer()

POLL = 1.0  # seconds between looks for due work
SETTLE = 600.0  # seconds between looks for what only `settle` does: erasures to finish, what goes by age
BREAKS = (1.0, 30.0)  # seconds between tries of a store that is away: the first, the longest
SAY = 60.0  # seconds between two lines that say so
AWAY = ((StoreError.__name__,), (StoreBusy.__name__,))


@app.command()
def worker(
    ctx: typer.Context,
    *,
    store: StoreUrl = None,
    model: ModelName = None,
    fold_model: FoldModel = None,
    timeout: ModelTimeout = None,
    retain_days: Annotated[
        float | None, typer.Option("--retain-days", metavar="DAYS", min=1, help="Forget turns that are older.")
    ] = None,
    retain_facts_days: Annotated[
        float | None,
        typer.Option(
            "--retain-facts-days", metavar="DAYS", min=1, help="Forget facts that nobody has confirmed since."
        ),
    ] = None,
) -> None:
    """Bring memory up to date, until told to stop.

    Summaries, facts, profiles and what is found again, for processes that leave it to others
    (`nitka serve --no-folds`); any number of workers may run. It finishes erasures too.
    """
    door: Door = ctx.obj
    settings = door.settings(store, timeout=timeout)
    door.files(settings)
    if not door.debug:
        logging.getLogger("psycopg").addHandler(logging.NullHandler())  # it says the same at every try
    limits = replace(Limits(), poll_seconds=POLL, retain_days=retain_days, retain_facts_days=retain_facts_days)
    writer = fold_model or settings.serving.fold_model or model or settings.model
    with (
        leaving_properly(),
        sync.Nitka.open(
            settings.store, model=writer, watch=settings.serving.watch, limits=limits, settings=settings
        ) as nitka,
    ):
        door.tell(door.texts.working)
        work(door, nitka)


def work(door: Door, nitka: sync.Nitka) -> NoReturn:
    """Settles now and then, and whenever the folds behind met a store that was away; until the process is told to
    stop. While the store is away that is at once: there is nothing that folds could still write.
    """
    told, pause = 0.0, BREAKS[0]
    try:
        while True:
            try:
                nitka.settle()
            except StoreError:
                if not told or monotonic() - told >= SAY:
                    door.tell(door.texts.store_away)
                    told = monotonic()
                time.sleep(pause)
                pause = min(2 * pause, BREAKS[1])
                continue
            if told:
                door.tell(door.texts.store_back)
            told, pause = 0.0, BREAKS[0]
            rest(door)
    finally:
        if told:
            nitka._nitka._limits = replace(nitka._nitka._limits, close_seconds=0)


def rest(door: Door) -> None:
    """Waits for the next time to settle; not so long where the folds behind could not use the store."""
    until = monotonic() + SETTLE
    while monotonic() < until and not any(map(_is_of_store, door.notes.records)):
        door.notes.records.clear()  # what failed is tried again, and nobody reads it here
        time.sleep(POLL)
    door.notes.records.clear()


def _is_of_store(record: logging.LogRecord) -> bool:
    """Whether it tells of folds that could not use the store."""
    return record.module == "folds" and isinstance(record.args, tuple) and record.args[:1] in AWAY
