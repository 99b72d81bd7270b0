"""A server with a scripted upstream behind it. One serves all tests of a file; each finds it empty."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.server.stage import Script, Stage, serving


@pytest.fixture
def script() -> Script:
    """What an upstream will answer, for a server of the test's own."""
    return Script()


@pytest.fixture(scope="module")
def running() -> Iterator[Stage]:
    with serving(Script()) as stage:
        yield stage


@pytest.fixture
def stage(running: Stage) -> Iterator[Stage]:
    """The server, with nothing said yet."""
    running.script.__dict__.update(Script().__dict__)
    yield running
    running.clear()
