"""`nitka` as a person meets it: in a terminal, with a home folder of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

SECONDS = 60  # for one answer, on a machine that is busy with other things
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
PROMPTS = {"en": "you> ", "ru": "вы> "}


class Terminal:
    """A chat in a terminal of 40 lines and 110 columns. What is seen is without colours and with plain line ends."""

    def __init__(self, env: dict[str, str], words: tuple[str, ...], language: str) -> None:
        self._prompt = PROMPTS[language]
        self._screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 110, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "nitka.cli", *words],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=env,
            start_new_session=True,
        )
        os.close(theirs)

    def until_prompt(self) -> str:
        """What is shown up to the next prompt."""
        return self.until(self._prompt)

    def until(self, end: str) -> str:
        """What is shown up to and with `end`, or to the end of the process."""
        seen, give_up = b"", time.monotonic() + SECONDS
        while not COLOURS.sub("", seen.decode(errors="replace")).endswith(end):
            ready, _, _ = select.select([self._screen], [], [], max(0.0, give_up - time.monotonic()))
            assert ready, seen.decode(errors="replace")
            try:
                piece = os.read(self._screen, 1 << 16)
            except OSError:  # Linux says so when the other end is closed
                break
            if not piece:
                break
            seen += piece
        return COLOURS.sub("", seen.decode(errors="replace")).replace("\r", "")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._screen)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder where nothing was ever run."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    """The environment of somebody who has set nothing."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    return {"HOME": str(home), "PATH": path, "LANG": "C.UTF-8", "TERM": "xterm-256color"}


@pytest.fixture
def terminal(env: dict[str, str]) -> Iterator[Callable[..., Terminal]]:
    """Starts chats: `terminal("--user", "anna", language="ru")`."""
    started: list[Terminal] = []

    def start(*words: str, language: str = "en", **more: str) -> Terminal:
        locale = {"en": "en_US.UTF-8", "ru": "ru_RU.UTF-8"}[language]
        started.append(Terminal(env | more | {"LANG": locale}, ("chat", *words), language))
        return started[-1]

    yield start
    for each in started:
        each.close()
