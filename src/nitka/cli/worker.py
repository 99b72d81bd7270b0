"""`nitka worker`: does what is due, apart from the processes that answer."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

import typer

from nitka import sync
from nitka.cli.chat import leaving_properly
from nitka.cli.door import Door, ModelName, ModelTimeout, StoreUrl
from nitka.types import Limits

app = typer.Typer()

POLL = 1.0  # seconds between looks for due work
SETTLE = 600.0  # seconds between looks for what only `settle` does: erasures to finish, what goes by age


@app.command()
def worker(
    ctx: typer.Context,
    *,
    store: StoreUrl = None,
    model: ModelName = None,
    fold_model: Annotated[
        str | None,
        typer.Option("--fold-model", metavar="NAME", help="What writes summaries and facts; the same by default."),
    ] = None,
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
    limits = replace(Limits(), poll_seconds=POLL, retain_days=retain_days, retain_facts_days=retain_facts_days)
    writer = fold_model or settings.serving.fold_model or model or settings.model
    with (
        leaving_properly(),
        sync.Nitka.open(
            settings.store, model=writer, watch=settings.serving.watch, limits=limits, settings=settings
        ) as nitka,
    ):
        door.tell(door.texts.working)
        while True:
            nitka.settle()
            time.sleep(SETTLE)
