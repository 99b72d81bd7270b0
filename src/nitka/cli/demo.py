"""`nitka demo`: a shop's page with the widget, an example conversation in it, and the inspector beside.

Everything lies in a folder that is made for it and removed at its end, keys included; the store and the key ring of
whoever runs it are not touched, nor is the environment asked for a model.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from urllib.parse import quote

import typer

from nitka.app import Nitka
from nitka.cli.chat import leaving_properly
from nitka.cli.door import Door
from nitka.config import Settings
from nitka.errors import BadInput

HOST = "127.0.0.1"
PORT = 8765

app = typer.Typer()


@app.command()
def demo(
    ctx: typer.Context,
    *,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65_535, help="Where it listens, on this machine alone; 0: any.")
    ] = PORT,
) -> None:
    """Show the widget and the inspector at work.

    In a browser, on this machine alone, with an offline stand-in for a model.
    """
    door: Door = ctx.obj
    try:
        listening = socket.create_server((HOST, port))
    except OSError:
        door.stop(door.texts.port_busy.format(port=port))
    with (
        listening,
        leaving_properly(),
        TemporaryDirectory(prefix="nitka-demo-", ignore_cleanup_errors=True) as folder,
    ):
        door.say(door.texts.demo_what)
        door.say(door.texts.demo_folder.format(path=folder))
        _serve(door, Path(folder), listening)


def _serve(door: Door, folder: Path, listening: socket.socket) -> None:
    try:
        import uvicorn  # here, since the web framework takes a while to load and only this needs it

        from nitka.server.inspector.demo import PURPOSE, demo_app
    except ImportError as error:
        raise BadInput("The server is an extra: pip install nitka[server].") from error
    port = listening.getsockname()[1]
    settings = Settings(key_file=folder / "keys.json", store=f"sqlite:///{quote(bytes(folder / 'nitka.db'))}")
    nitka = Nitka.open(settings.store, watch={"": PURPOSE}, settings=settings)
    web = demo_app(nitka, port, lambda: door.say(door.texts.demo_open.format(url=f"http://{HOST}:{port}/")))
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    server = uvicorn.Server(uvicorn.Config(web, log_config=None, access_log=False, timeout_graceful_shutdown=1))
    asyncio.run(server.serve(sockets=[listening]))
