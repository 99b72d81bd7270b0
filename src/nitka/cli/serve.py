"""`nitka serve`, and the keys that its callers hold: `nitka keys create`, `list`, `revoke`."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, TypeVar

import typer

from nitka import sync
from nitka.cli.door import Door, FoldModel, ModelName, ModelTimeout, StoreUrl, own_folders
from nitka.cli.keep import keys, ring_of
from nitka.config import Settings, purposes
from nitka.errors import BadInput
from nitka.server import keys as api_keys
from nitka.store.choose import choose_store
from nitka.store.port import ApiKeyRow, Store
from nitka.types import Limits
from nitka.vault.keychain import Keychain
from nitka.world import random_bytes, system_clock

T = TypeVar("T")

app = typer.Typer()


@app.command()
def serve(
    ctx: typer.Context,
    *,
    store: StoreUrl = None,
    model: ModelName = None,
    fold_model: FoldModel = None,
    timeout: ModelTimeout = None,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen at; 127.0.0.1 by default.")] = None,
    port: Annotated[int | None, typer.Option("--port", min=0, max=65_535, help="The port; 8080 by default.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", min=1, max=256, help="Processes; 1 by default.")] = None,
    grace: Annotated[
        float | None,
        typer.Option("--grace", metavar="SECONDS", min=1, help="What open answers have at a stop; 30 by default."),
    ] = None,
    anonymous: Annotated[
        str | None,
        typer.Option(
            "--anonymous",
            metavar="HOW",
            help='Requests that name no user or no session: "refuse" (by default), or "passthrough", unkept.',
        ),
    ] = None,
    watch: Annotated[
        list[str] | None,
        typer.Option(
            "--watch",
            metavar="TENANT=PURPOSE",
            help="Watch a tenant's conversations, for a stated purpose; may be repeated. Read docs/responsible-use.md.",
        ),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option("--webhook", metavar="URL", help="Where alerts go, signed with NITKA_WEBHOOK_SECRET."),
    ] = None,
    folds: Annotated[
        bool, typer.Option("--folds/--no-folds", help="Bring memory up to date here, or leave it to `nitka worker`.")
    ] = True,
    make_key: Annotated[
        bool, typer.Option("--make-key", help="Where there is no API key yet, make one and print it.")
    ] = False,
) -> None:
    """Serve conversations to OpenAI clients.

    Callers need an API key: see `nitka keys create`.
    """
    door: Door = ctx.obj
    settings = door.settings(store, timeout=timeout)
    default = settings.serving
    serving = replace(
        default,
        host=host or default.host,
        port=default.port if port is None else port,
        workers=workers or default.workers,
        grace=grace or default.grace,
        fold_model=fold_model or default.fold_model,
        anonymous=default.anonymous if anonymous is None else _is_passthrough(anonymous),
        watch=_purposes(watch) if watch else default.watch,
        webhook=webhook or default.webhook,
        folds=folds,
    )
    settings = replace(settings, model=model or settings.model, serving=serving)
    _check_port(door, serving.host, serving.port)
    run = _runner()
    _prepare(door, settings, store)
    known = _with_keys(settings, _granted)
    if not known:
        _first_key(door, settings) if make_key else door.tell(door.texts.no_api_keys)
    run(settings)


def _check_port(door: Door, host: str, port: int) -> None:
    """Ends the command where nothing can listen, before all that takes seconds."""
    try:
        socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            door.stop(door.texts.port_busy.format(port=port))
        door.stop(door.texts.cannot_listen.format(host=host, port=port, why=error.strerror or type(error).__name__))


def _runner() -> Callable[[Settings], None]:
    try:
        from nitka.server.run import run  # here, since the web framework takes a while to load and only this needs it
    except ImportError as error:
        raise BadInput("The server is an extra: pip install nitka[server].") from error
    return run


def _is_passthrough(word: str) -> bool:
    if word not in ("refuse", "passthrough"):
        raise BadInput('--anonymous is "refuse" or "passthrough".')
    return word == "passthrough"


def _purposes(entries: list[str]) -> dict[str, str]:
    found = purposes(entries)
    if found is None:
        raise BadInput("--watch is TENANT=PURPOSE, each tenant once, or PURPOSE alone where there are no tenants.")
    return found


def _prepare(door: Door, settings: Settings, store: str | None) -> None:
    """Opens and closes everything once: what is wrong is told in one line, before a process is started."""
    if store is None and settings.store.startswith("sqlite:"):
        own_folders(settings)
    new_key = not settings.root_keys and not settings.key_file.exists()
    with sync.Nitka.open(settings.store, model=settings.model, settings=settings):
        pass
    if new_key:
        door.tell(door.texts.key_made.format(path=settings.key_file))


def _first_key(door: Door, settings: Settings) -> None:
    grant = api_keys.grant_of(scopes=("turns", "read", "admin", "parse"), name="first")
    secret = _with_keys(settings, lambda store, chain: _add(store, chain, grant))
    door.tell(door.texts.api_key_made.format(id=api_keys.id_of(api_keys.hash_of(secret))))
    door.say(secret)


@keys.command()
def create(
    ctx: typer.Context,
    *,
    scope: Annotated[
        list[str],
        typer.Option(
            "--scope", help="What it may do: turns, read, admin, parse, metrics; or widget, for a public key."
        ),
    ],
    tenant: Annotated[str, typer.Option("--tenant", metavar="ID", help="Whose users it speaks for.")] = "",
    name: Annotated[str, typer.Option("--name", metavar="TEXT", help="What you will know it by.")] = "",
    origin: Annotated[
        list[str] | None, typer.Option("--origin", metavar="URL", help="Of a widget's key: the pages it works on.")
    ] = None,
    rate: Annotated[int, typer.Option("--rate", min=1, help="Requests a minute.")] = api_keys.RATE,
    days: Annotated[
        int | None, typer.Option("--days", min=1, max=36_500, help="How long it works; for ever by default.")
    ] = None,
    store: StoreUrl = None,
) -> None:
    """Make an API key and print it, once.

    It is kept as a hash: whoever loses it makes another. With a widget's key, on a second line, comes the secret by
    which the server of its pages says who has signed in there.
    """
    door: Door = ctx.obj
    scopes = [word for words in scope for word in words.replace(",", " ").split()]
    until = int((system_clock() + timedelta(days=days)).timestamp() * 1000) if days else 0
    grant = api_keys.grant_of(
        scopes=scopes,
        tenant=tenant,
        name=name,
        origins=origin or (),
        rate=rate,
        until=until,
        signing=api_keys.signing_of(random_bytes(api_keys.SECRET_BYTES)),
    )
    settings = door.settings(store)
    _prepare(door, settings, store)
    secret = _with_keys(settings, lambda files, chain: _add(files, chain, grant))
    door.tell(door.texts.api_key_made.format(id=api_keys.id_of(api_keys.hash_of(secret))))
    door.say(secret)
    if grant.signing:
        door.tell(door.texts.signing_made)
        door.say(grant.signing)


@keys.command("list")
def list_keys(ctx: typer.Context, store: StoreUrl = None) -> None:
    """List the API keys by their ids.

    The keys themselves are kept nowhere.
    """
    door: Door = ctx.obj
    settings = door.settings(store)
    door.files(settings)
    for line in _with_keys(settings, _described):
        door.say(line)


@keys.command()
def revoke(
    ctx: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As `nitka keys list` shows it.")],
    store: StoreUrl = None,
) -> None:
    """Make an API key worthless.

    A running server may still take it for ten seconds.
    """
    door: Door = ctx.obj
    settings = door.settings(store)
    door.files(settings)
    if not _with_keys(settings, lambda files, chain: _remove(files, key_id)):
        door.stop(door.texts.no_such_api_key)
    door.say(door.texts.api_key_revoked.format(id=key_id))


def _with_keys(settings: Settings, act: Callable[[Store, Keychain], Awaitable[T]]) -> T:
    """What `act` gives, done on the opened store with its key ring."""

    async def run() -> T:
        store = choose_store(settings.store, wait=Limits().wait_seconds, keys=settings.keys_store)
        await store.start()
        try:
            chain = Keychain(store.keys, ring_of(settings), Limits())
            await chain.prepare()
            return await act(store, chain)
        finally:
            await store.close()

    return asyncio.run(run())


async def _add(store: Store, chain: Keychain, grant: api_keys.Grant) -> str:
    secret = api_keys.secret_of(grant.kind, random_bytes(api_keys.SECRET_BYTES))
    made = int(system_clock().timestamp() * 1000)
    await store.add_api_key(api_keys.seal(await chain.system_key(), api_keys.hash_of(secret), made, grant))
    return secret


async def _described(store: Store, chain: Keychain) -> list[str]:
    return [_line(row.hash, row.made, grant) for row, grant in await _granted(store, chain)]


async def _granted(store: Store, chain: Keychain) -> list[tuple[ApiKeyRow, api_keys.Grant]]:
    """The keys with what they may do; without those that may do nothing: each stands for an ended sign-in."""
    key = await chain.system_key()
    found = [(row, api_keys.unseal(key, row)) for row in await store.api_keys()]
    return [(row, grant) for row, grant in found if grant.scopes]


def _line(hash: bytes, made: int, grant: api_keys.Grant) -> str:
    until = f"until {_day(grant.until)}" if grant.until else ""
    words = (grant.tenant or "-", ",".join(grant.scopes), f"{grant.rate}/min", until, *grant.origins, grant.name)
    return "  ".join((api_keys.id_of(hash), _day(made), *filter(None, words)))


def _day(moment: int) -> str:
    return str(datetime.fromtimestamp(moment / 1000, UTC).date())


async def _remove(store: Store, key_id: str) -> bool:
    hashes = [row.hash for row in await store.api_keys() if api_keys.id_of(row.hash) == key_id]
    return bool([hash for hash in hashes if await store.remove_api_key(hash)])
