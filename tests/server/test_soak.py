"""The soak for a few seconds: everything at once, workers ended, and the laws on what is left."""

from __future__ import annotations

import pytest

from benchmarks.soak import Outcome, Plan, slope, soak
from tests.contract.cluster import binaries

MB_A_MINUTE = [(float(second), 300 + second / 60) for second in range(0, 400, 5)]


@pytest.mark.slow
def test_the_laws_hold_while_everything_happens_at_once() -> None:
    """On PostgreSQL where there is one; `make soak` takes both stores, and ten minutes for each."""
    outcome = soak(Plan(seconds=5, people=6, workers=3, pause=0.1, kill=1.5), "postgres" if binaries() else "sqlite")
    assert outcome.ended["SIGTERM"] and outcome.ended["SIGKILL"]
    assert outcome.done.total() > 20 and outcome.kept["messages"] > 0
    assert outcome.growth is None, "too short to be judged"


def test_memory_is_judged_by_what_comes_after_the_third_minute() -> None:
    assert slope([(0, 1), (1, 3), (2, 5)]) == 2
    early = [(float(second), 1_000.0 - second) for second in range(0, 180, 5)]
    late = [point for point in MB_A_MINUTE if point[0] > 180]
    grown = Outcome(done=None, kept=None, ended=None, memory=early + late, log="").growth  # type: ignore[arg-type]
    assert grown == pytest.approx(1.0)
