"""What was acknowledged is on disk, shown by counting: no acknowledgement comes before the sync that covers it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "syncs.py"
SKIPPED = 77


def counted(folder: Path, *pragmas: str) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), str(folder), *pragmas]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == SKIPPED:
        pytest.skip("SQLite is built into this Python; its calls cannot be counted")
    assert run.returncode == 0, run.stderr
    said: dict[str, Any] = json.loads(run.stdout)
    assert said["turns"] >= 360
    return said


def test_no_turn_is_acknowledged_before_the_sync_that_covers_it(tmp_path: Path) -> None:
    said = counted(tmp_path)
    assert (said["early"], said["early_alone"]) == (0, 0)
    assert 0 < said["syncs_per_turn_of_sixteen"] < 0.5, "turns that wait together share one"


@pytest.mark.parametrize("pragma", ["synchronous=off", "synchronous=normal"])
def test_the_count_tells_when_syncs_are_left_out(tmp_path: Path, pragma: str) -> None:
    said = counted(tmp_path, pragma)
    assert said["early"] > 300
    assert said["early_alone"] > 30
