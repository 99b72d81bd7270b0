"""Runs the server: uvicorn, its worker processes, its logs, and a stop that is not abrupt.

* At a stop nothing new is accepted; open answers have `grace` seconds to end. Then they are cut off: what was handed
  out is kept, marked interrupted. Folds end cleanly; what is left is due for the next start.
* The settings go to worker processes as a value, by pickle; nobody reads the environment twice.
* Logs go to stderr, one line each. uvicorn's access log, which has paths in it, is off: `nitka.server.edge` has ours.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from nitka.app import Nitka
from nitka.config import OPENAI, Settings, share_numbers
from nitka.errors import BadInput
from nitka.models.choose import choose_chat
from nitka.models.offline import OfflineChat
from nitka.models.ports import ChatModel
from nitka.server.app import create_app
from nitka.server.metrics import Meter
from nitka.server.observing import ObservedModel, Probe
from nitka.server.service import Options
from nitka.server.tracing import Tracer, start
from nitka.server.upstream import HttpUpstream
from nitka.server.webhook import Hook
from nitka.world import monotonic

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
    if serving.traces and not start():
        raise BadInput("Spans are to be exported, but that is an extra: pip install nitka[otel].")
    probe = Probe(Meter(serving.shared_numbers), Tracer(), monotonic)
    options = Options(
        anonymous=serving.anonymous,
        body_bytes=serving.body_bytes,
        workers=serving.workers,
        warm=serving.folds and "offline" in (serving.fold_model or settings.model),
        hook=hook_of(settings),
    )
    nitka = Nitka.open(
        settings.store,
        model=observed(settings.model, settings, probe),
        fold_model=observed(serving.fold_model, settings, probe) if serving.fold_model else None,
        watch=serving.watch,
        background=serving.folds,
        settings=settings,
    )
    return create_app(nitka, upstream=upstream_of(settings), options=options, probe=probe)


def observed(name: str, settings: Settings, probe: Probe) -> ChatModel:
    """The model of that name, counted and traced; the offline one as it is, since nitka must know it. Raises
    `BadInput`.
    """
    model = choose_chat(name, settings)
    return model if isinstance(model, OfflineChat) else ObservedModel(model, probe)


def hook_of(settings: Settings) -> Hook | None:
    """Where alerts are delivered. Raises `BadInput`."""
    serving = settings.serving
    return Hook.of(serving.webhook, serving.webhook_secrets) if serving.webhook else None


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
    """Serves until it is told to stop (SIGINT, SIGTERM). Raises `BadInput`."""
    hook_of(settings)  # told here, and not by a process that does not start
    if settings.serving.workers == 1:
        uvicorn.Server(configured(settings)).run()
        return
    with TemporaryDirectory(prefix="nitka-numbers-") as folder:
        share_numbers(Path(folder))
        config = configured(replace(settings, serving=replace(settings.serving, shared_numbers=Path(folder))))
        Multiprocess(config, sockets=[config.bind_socket()]).run()
