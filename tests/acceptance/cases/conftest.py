"""The cases run on every store where the store matters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.cases.stage import Stage


@pytest.fixture(params=["memory", "sqlite"])
async def stage(request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str) -> Stage:
    """A place for nitkas, on memory and on SQLite."""
    return Stage(tmp_path if request.param == "sqlite" else None)


@pytest.fixture
async def memory(anyio_backend: str) -> Stage:
    """A place for nitkas in memory, where the store does not matter."""
    return Stage()


@pytest.fixture
async def sqlite(tmp_path: Path, anyio_backend: str) -> Stage:
    """A place for nitkas on SQLite."""
    return Stage(tmp_path)
