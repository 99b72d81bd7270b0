"""A process is killed in the middle of a thousand turns, with folds running, five times on one file."""

from __future__ import annotations

import random
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from nitka import Nitka

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

TIMES = 5
PROGRAM = Path(__file__).parent / "programs" / "talker.py"
opened = runpy.run_path(str(PROGRAM))["opened"]


def killed(folder: Path, seed: int, after: int) -> list[str]:
    """Runs it until that many turns were acknowledged, kills it, and returns all that were."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), str(seed)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    said = [process.stdout.readline() for _ in range(after)]
    process.kill()
    said += process.stdout.read().splitlines(keepends=True)
    process.stdout.close()
    assert process.wait() == -9, "it was still at work"
    return [line.rstrip("\n") for line in said if line.endswith("\n")]


async def test_killed_five_times_it_has_whole_turns_and_folded_each_message_once(tmp_path: Path) -> None:
    rng = random.Random(5)
    acknowledged: list[str] = []
    for seed in range(TIMES):
        acknowledged += killed(tmp_path, seed, rng.randrange(40, 160))
        async with opened(tmp_path, later=10 * seed + 5) as nitka:
            assert sum((await check(nitka, acknowledged)).values()) > 0, "folds were running"
    async with opened(tmp_path, later=10 * TIMES) as nitka:
        await nitka.settle(rescan=True)
        folded = await check(nitka, acknowledged)
        for session, cursor in folded.items():
            rows = len(await nitka.history("anna", session, limit=10_000))
            assert cursor == rows - 4, "everything outside the window"


async def check(nitka: Nitka, acknowledged: list[str]) -> dict[str, int]:
    """No half turn, no gap, nothing acknowledged is missing, and each message was given to one committed fold."""
    cursors = {}
    for info in await nitka.sessions("anna"):
        rows = await nitka.history("anna", info.id, limit=10_000)
        assert [row.seq for row in rows] == list(range(len(rows)))
        assert [row.role for row in rows] == ["user", "assistant"] * (len(rows) // 2)
        assert info.messages == len(rows)
        questions = [row.text for row in rows[::2]]
        assert [row.text for row in rows[1::2]] == [f"answer to {text}" for text in questions]
        mine = [line.split(" ", 1)[1] for line in acknowledged if line.startswith(f"{info.id} ")]
        assert [text for text in questions if text in set(mine)] == mine
        assert len(questions) <= len(mine) + TIMES, "at most one turn more than was acknowledged, each time"
        summary = await nitka.summary("anna", info.id)
        # A step that three processes were killed in is written by the offline summariser, in words of its own.
        stood_in = {seq for line in summary.lines if line.offline for seq in range(line.first, line.last + 1)}
        lines = [line.full for line in summary.lines if not line.offline]
        assert lines == [f"{row.seq} {row.text}" for row in rows[: summary.cursor] if row.seq not in stood_in]
        cursors[info.id] = summary.cursor
    return cursors
