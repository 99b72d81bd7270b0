"""What all tests share: async tests on asyncio, how Hypothesis searches, and where development data lies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

# Time is for benchmarks. A build that others wait for repeats its examples; everywhere else each run looks further.
settings.register_profile("nitka", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("nitka")

ALONE = Path(__file__).parent / "acceptance"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: whoever shares the files out has the small ones left to even out the end."""
    astray = [item.nodeid for item in items if item.get_closest_marker("alone") and ALONE not in item.path.parents]
    if astray:
        raise pytest.UsageError(f"`make tests` looks for tests that are marked alone in {ALONE} only: {astray}")
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


@pytest.fixture
def anyio_backend() -> str:
    """Async tests are marked `pytest.mark.anyio` and run on asyncio."""
    return "asyncio"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of development data beside the repository; tests that need it are skipped elsewhere, and say why."""
    folder = Path(__file__).resolve().parents[2] / "shared"
    if not folder.is_dir():
        pytest.skip("no development data beside the repository")
    return folder
