"""Runs the server: uvicorn, its worker processes, its logs, and a stop that is not abrupt.

* At a stop nothing new is accepted; open answers have `grace` seconds to end. Then they are cut off: what was handed
  out is kept, marked interrupted. Folds end cleanly; what is left is due for the next start.
* The settings go to worker processes as a value, by pickle; nobody reads the environment twice.
* Logs go to stderr, one line each. uvicorn's access log, which has paths in it, is off: `nitka.server.edge` has ours.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from nitka.app import Nitka
from nitka.config import OPENAI, Settings
from nitka.errors import BadInput
from nitka.server.app import create_app
from nitka.server.service import Options
from nitka.server.upstream import HttpUpstream

LOGS: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "loggers": {
        "nitka": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
        "uvicorn": {"handlers": ["stderr"], "level": "INFO", "propagate": False},
    },
}


def build(settings: Settings) -> FastAPI:
    """The application that the settings describe. Raises `BadInput`."""
    serving = settings.serving
    options = Options(anonymous=serving.anonymous, body_bytes=serving.body_bytes, workers=serving.workers)
    nitka = Nitka.open(settings.store, model=settings.model, fold_model=serving.fold_model or None, settings=settings)
    return create_app(nitka, upstream=upstream_of(settings), options=options)


def upstream_of(settings: Settings) -> HttpUpstream | None:
    """The server that requests are forwarded to; None where the model is one of ours. Raises `BadInput`."""
    kind, _, name = settings.model.partition(":")
    if kind != "openai":
        return None
    if not settings.api_key and settings.base_url == OPENAI:
        raise BadInput("OPENAI_API_KEY is not set; a server that needs none is named by OPENAI_BASE_URL.")
    return HttpUpstream(name.strip(), base_url=settings.base_url, api_key=settings.api_key, timeout=settings.timeout)


def configured(settings: Settings) -> uvicorn.Config:
    """How uvicorn shall run the application."""
    serving = settings.serving
    return uvicorn.Config(
        partial(build, settings),
        factory=True,
        host=serving.host,
        port=serving.port,
        workers=serving.workers,
        access_log=False,
        log_config=LOGS,
        server_header=False,
        date_header=True,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(serving.grace)),
        timeout_worker_healthcheck=60,  # one that is starting on a busy machine is not dead
    )


def run(settings: Settings) -> None:
    """Serves until it is told to stop (SIGINT, SIGTERM)."""
    config = configured(settings)
    if config.workers > 1:
        Multiprocess(config, sockets=[config.bind_socket()]).run()
    else:
        uvicorn.Server(config).run()
