"""What the routes share, made once by `create_app`, and the dependency that gives it to them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import Depends, Request

from nitka.app import Nitka
from nitka.conversation import Vault
from nitka.server.access import Access
from nitka.server.metrics import Meter
from nitka.server.retries import Retries
from nitka.server.upstream import Upstream
from nitka.server.webhook import Hook
from nitka.types import Limits
from nitka.world import Clock

PARSERS = 2
"""Texts that are analysed at once; what it takes is the processor, and others need it too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the server is told at its start."""

    anonymous: bool = False  # without a user or a session: pass through, nothing read or written; else refuse
    body_bytes: int = 20 << 20  # of one request
    key_seconds: float = 10.0  # an API key is remembered
    workers: int = 1  # processes that share every rate
    docs: bool = True
    warm: bool = False  # load the offline rules before the first request
    hook: Hook | None = None  # where alerts of the watch are delivered


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What the routes share. Holds nobody's data."""

    nitka: Nitka
    vault: Vault
    access: Access
    upstream: Upstream
    retries: Retries
    options: Options
    limits: Limits
    clock: Clock
    meter: Meter
    parsing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(PARSERS))


async def service(request: Request) -> Service:
    """A dependency: what the routes share. Not a plain function: those are run in a thread each time."""
    found: Service = request.app.state.service
    return found


Shared = Annotated[Service, Depends(service)]
