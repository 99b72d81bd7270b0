"""Many threads of many processes on one file: nobody is turned away, nothing is lost, nobody waits long.

NITKA_TEST_SECONDS sets how long they write; 30 for a thorough run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nitka import Nitka
from nitka.testing import FakeModel

pytestmark = [pytest.mark.anyio, pytest.mark.slow, pytest.mark.alone]

SECONDS = float(os.environ.get("NITKA_TEST_SECONDS", "8"))
PROCESSES = 4
LONGEST = {"together": 5.0, "apart": 10.0}  # seconds of a whole turn; a quiet machine takes well under one
PROGRAM = Path(__file__).parent / "programs" / "writers.py"


def run(folder: Path, how: str, seconds: float) -> list[dict[str, Any]]:
    command = [sys.executable, str(PROGRAM), str(folder)]
    started = [
        subprocess.Popen(
            [*command, f"p{at}", str(seconds), how], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for at in range(PROCESSES)
    ]
    for process in started:
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    said = [process.communicate(timeout=seconds + 90)[0] for process in started]
    assert [process.returncode for process in started] == [0] * PROCESSES
    return [json.loads(line) for line in said]


@pytest.mark.parametrize("how", ["together", "apart"])
async def test_thirty_two_threads_of_four_processes_write_one_file(tmp_path: Path, how: str) -> None:
    folder = tmp_path / "db"
    folder.mkdir()
    async with opened(folder):
        pass
    reports = run(folder, how, SECONDS if how == "together" else SECONDS / 2)
    assert [report["errors"] for report in reports] == [[]] * PROCESSES
    done = {session: count for report in reports for session, count in report["done"].items()}
    assert len(done) == 8 * PROCESSES, "every thread had its turns"
    async with opened(folder) as nitka:
        for name, count in done.items():
            user, session = name.split("/")
            rows = [m async for m in messages(nitka, user, session)]
            assert [m.text for m in rows if m.role == "user"] == [f"{session} turn {turn}" for turn in range(count)]
            assert [m.role for m in rows] == ["user", "assistant"] * count
            assert [m.seq for m in rows] == list(range(2 * count))
    longest = max(report["longest"] for report in reports)
    fewest, most = min(done.values()), max(done.values())
    print(f"{how}: {sum(done.values())} turns, longest {longest:.3f} s, per thread {fewest} to {most}")
    assert longest < LONGEST[how]


def opened(folder: Path) -> Nitka:
    return Nitka.open(f"sqlite:///{folder / 'nitka.db'}", model=FakeModel(), keys=folder.parent / "keys.json")


async def messages(nitka: Nitka, user: str, session: str) -> Any:
    before: int | None = None
    pages = []
    while page := await nitka.history(user, session, before=before, limit=500):
        pages.append(page)
        before = page[0].seq
    for page in reversed(pages):
        for message in page:
            yield message
