"""What all tests share: async tests on asyncio, and where development data lies, if it is there."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Async tests are marked `pytest.mark.anyio` and run on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of development data beside the repository; tests that need it are skipped elsewhere, with the reason."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no development data beside the repository")
    return folder
