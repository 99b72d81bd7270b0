"""`nitka worker`: what one process leaves undone another does, until it is told to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from nitka import Limits, sync
from nitka.config import Settings


@pytest.mark.slow
def test_a_worker_does_what_others_leave_undone_and_ends_when_told(cli: Any, home: Path) -> None:
    cli("chat", "--user", "anna", lines="Hello.\n")
    settings = Settings.read()
    with sync.Nitka.open(settings.store, settings=settings, background=False, limits=Limits(window=2)) as nitka:
        nitka.record("anna", "web-1", text="I live in Leeds.", answer="Noted.")
        time.sleep(0.5)
        assert nitka.facts("anna") == ()
        worker = subprocess.Popen([sys.executable, "-m", "nitka.cli", "worker"], stderr=subprocess.PIPE, text=True)
        try:
            end = time.monotonic() + 60
            while not nitka.facts("anna") and time.monotonic() < end:
                time.sleep(0.2)
            nitka.record("anna", "web-1", text="My name is Tom.", answer="Noted.")
            while len(nitka.facts("anna")) < 2 and time.monotonic() < end:
                time.sleep(0.2)
        finally:
            worker.send_signal(signal.SIGTERM)
            _, said = worker.communicate(timeout=60)
        assert {fact.value for fact in nitka.facts("anna")} == {"Leeds", "Tom"}
    assert "Traceback" not in said and worker.returncode == 128 + signal.SIGTERM
