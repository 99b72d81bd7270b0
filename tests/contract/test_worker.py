"""`nitka worker` on a PostgreSQL that goes away and comes back: it waits, says so, and ends at once when it is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nitka import sync
from nitka.config import Settings
from tests.contract.cluster import FAST, Cluster, binaries, new_cluster
from tests.contract.databases import WHY

pytestmark = pytest.mark.slow


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    found = binaries()
    if found is None:
        pytest.skip(WHY)
    with new_cluster(found) as made:
        made.init()
        made.start(**FAST)
        yield made


class Hand:
    """A worker with its log, and whoever leaves it work."""

    def __init__(self, url: str, home: Path, name: str) -> None:
        keep = ("PATH", "PYTHONPATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH")
        env = {name: os.environ[name] for name in keep if name in os.environ}
        env |= {"HOME": str(home), "LANG": "C.UTF-8", "NITKA_STORE": url}
        self.settings, self._log = Settings.read(env), home / name
        self.tell("I live in Leeds.")  # which makes the keys
        with self._log.open("w") as stderr:
            self.process = subprocess.Popen([sys.executable, "-m", "nitka.cli", "worker"], stderr=stderr, env=env)

    def said(self) -> str:
        return self._log.read_text()

    def tell(self, text: str) -> None:
        with self._opened() as nitka:
            nitka.record("anna", "s", text=text, answer="Noted.")

    def known(self) -> int:
        with self._opened() as nitka:
            return len(nitka.facts("anna"))

    def end(self) -> float:
        """Tells it to stop; the seconds that takes."""
        begun = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 128 + signal.SIGTERM
        return time.monotonic() - begun

    def _opened(self) -> sync.Nitka:
        return sync.Nitka.open(self.settings.store, settings=self.settings, background=False)


@pytest.fixture
def hands(cluster: Cluster, tmp_path: Path) -> Iterator[list[Hand]]:
    made = [Hand(cluster.url(), tmp_path, name) for name in ("one", "other")]
    yield made
    for hand in made:
        hand.process.kill()
        hand.process.wait()


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)


def test_workers_outlast_their_store_and_end_at_once(cluster: Cluster, hands: list[Hand]) -> None:
    """One is told to stop while it is away, the other goes on when it is back; both say one line of it."""
    one, other = hands
    until(lambda: one.known() == 1)
    cluster.stop()
    until(lambda: all("cannot be used" in hand.said() for hand in hands))
    assert one.end() < 3, "at once, on a busy machine"
    cluster.start(**FAST)
    until(lambda: "can be used again" in other.said())
    other.tell("My name is Tom.")
    until(lambda: other.known() == 2)
    assert other.end() < 8
    assert [len(hand.said().splitlines()) for hand in hands] == [2, 3], other.said()
