"""`nitka doctor`: looks at everything a conversation needs, and says what to do.

Rules: it makes nothing, neither a store nor a key. Each check gives findings and never stops the others. It asks a
configured model one short question, because nothing less shows that the model answers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import typer

from nitka.cli.door import Door, ModelName, ModelTimeout, StoreUrl, paths_of, store_of
from nitka.cli.keep import ring_of
from nitka.config import Settings
from nitka.errors import NitkaError
from nitka.models.choose import choose_chat
from nitka.store.sqlite_copy import is_sound
from nitka.tokens import default_counter
from nitka.types import Limits
from nitka.vault.keychain import Keychain

PRIVATE = 0o077  # what others may not do

app = typer.Typer()


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found. `advice` names a text; `values` fill it in."""

    check: str
    state: Literal["good", "bad", "note"]
    advice: str
    values: dict[str, object]


@app.command()
def doctor(ctx: typer.Context, store: StoreUrl = None, model: ModelName = None, timeout: ModelTimeout = None) -> None:
    """Check everything, and say what to do.

    Settings, keys, files, store, model. It makes nothing; a configured model is asked one short question.
    """
    door: Door = ctx.obj
    settings = door.settings(store, timeout=timeout)
    name = model or settings.model
    checks: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("settings", lambda: iter((Finding("settings", "good", "settings_ok", {}),))),
        ("keys", lambda: check_keys(settings)),
        ("file", lambda: check_files(settings)),
        ("store", lambda: check_store(settings)),
        ("model", lambda: check_model(name, settings)),
        ("tokens", check_tokens),
    )
    bad = sum(_run(door, check, run) for check, run in checks)
    door.say(door.texts.not_well.format(count=bad) if bad else door.texts.all_well)
    if bad:
        raise typer.Exit(1)


def _run(door: Door, check: str, run: Callable[[], Iterator[Finding]]) -> int:
    """Says what a check finds; returns how many problems that were."""
    bad = 0
    try:
        for finding in run():
            bad += finding.state == "bad"
            _tell(door, finding.check, finding.state, door.texts.advice[finding.advice].format(**finding.values))
    except NitkaError as error:
        bad += 1
        _tell(door, check, "bad", door.line(error).removeprefix("nitka: "))
    return bad


def _tell(door: Door, check: str, state: Literal["good", "bad", "note"], text: str) -> None:
    words = {"good": door.texts.good, "bad": door.texts.bad, "note": door.texts.note}
    width = max(map(len, words.values()))
    name = door.texts.checks[check]
    door.say(f"{words[state]:<{width}}  {name:<{max(map(len, door.texts.checks.values()))}}  {text}")


def check_keys(settings: Settings) -> Iterator[Finding]:
    """The ring is there, can be read, and is nobody else's to read. Raises `WrongKey`, `BadInput`."""
    if settings.root_keys:
        _ = ring_of(settings)
        yield Finding("keys", "good", "keys_environment", {})
    elif not settings.key_file.exists():
        yield Finding("keys", "note", "keys_none", {"path": settings.key_file})
    else:
        count = len(ring_of(settings).ring.roots)
        exposed = list(_exposed("keys", settings.key_file))
        yield from exposed or [Finding("keys", "good", "keys_ok", {"path": settings.key_file, "count": count})]


def check_files(settings: Settings) -> Iterator[Finding]:
    """Both database files are whole, and nobody else's to read. Raises `StoreError`."""
    found = 0
    for path in paths_of(store_of(settings)):
        if not path.exists():
            continue
        found += 1
        exposed = list(_exposed("file", path))
        if not is_sound(str(path)):
            exposed.append(Finding("file", "bad", "file_damaged", {"path": path}))
        found -= bool(exposed)
        yield from exposed
    if found == 2:
        yield Finding("file", "good", "file_ok", {})


def _exposed(check: str, path: Path) -> Iterator[Finding]:
    if path.stat().st_mode & PRIVATE:
        yield Finding(check, "bad", "file_open", {"path": path, "mode": "600"})


def check_store(settings: Settings) -> Iterator[Finding]:
    """It opens, with this schema and these keys. Raises `StoreError`, `KeyMissing`, `WrongKey`."""
    store = store_of(settings)
    path = next(iter(paths_of(store)), None)
    if path is not None and not path.exists():
        yield Finding("store", "note", "store_none", {"path": path})
        return
    unfinished, due = asyncio.run(_waiting(settings))
    yield Finding("store", "good", "store_ok", {"path": path or "PostgreSQL"})
    if not store.keys_apart:
        yield Finding("store", "note", "keys_together", {})
    if unfinished:
        yield Finding("store", "note", "unfinished", {"count": unfinished})
    if due:
        yield Finding("store", "note", "due", {"count": due})


async def _waiting(settings: Settings) -> tuple[int, int]:
    """Opens the store; how many erasures wait for `settle`, and how many sessions have something due."""
    files = store_of(settings)
    await files.start()
    try:
        await Keychain(files.keys, ring_of(settings), Limits()).prepare()
        return len(await files.erasures()), await files.due_sessions()
    finally:
        await files.close()


def check_model(name: str, settings: Settings) -> Iterator[Finding]:
    """It answers. Raises `BadInput` for a name that says nothing."""
    if name == "offline":
        yield Finding("model", "note", "model_offline", {})
        return
    try:
        asyncio.run(_ask(name, settings))
    except NitkaError as error:
        yield Finding("model", "bad", "model_bad", {"model": name, "text": error})
    else:
        yield Finding("model", "good", "model_ok", {"model": name})


async def _ask(name: str, settings: Settings) -> None:
    model = choose_chat(name, settings)
    try:
        await model.complete([{"role": "user", "content": "Say OK."}], max_tokens=512)  # reasoning takes some too
    finally:
        await model.close()


def check_tokens() -> Iterator[Finding]:
    """Whether sizes are exact."""
    counter = default_counter()
    if counter.margin:
        values = {"name": counter.name, "margin": round(100 * counter.margin)}
        yield Finding("tokens", "note", "tokens_estimate", values)
    else:
        yield Finding("tokens", "good", "tokens_exact", {"name": counter.name})
